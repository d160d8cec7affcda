"""rebuild and salvage: what is whole is served, judged by fsck and by RocketMQ."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from golden_store import golden
from test_fsck_answers import PAGE, SIZES, THIRD, zero_a_page

from crashmq.harness.cli import main
from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.store_files import Found, find_files
from crashmq.harness.reading.differing import differences
from crashmq.harness.reading.looking import message_at
from crashmq.harness.repair import rebuild as rebuilding
from crashmq.harness.repair.copying import CannotRepair
from crashmq.harness.repair.rebuild import (
    rebuild,
    rebuild_in_place,
    sizes_of,
    undo,
)
from crashmq.harness.repair.salvage import salvage

GoldenWriter = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = {"queue_file_size": 6000, "index_slots": 256, "index_entries": 1024}
NAMES = (
    *("clean", "killed", "rolled-clean", "rolled-killed", "batch-clean"),
    *("lmq-clean", "ipv6-killed", "crc-clean", "expired-clean", "blanked-killed"),
)


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def unpack(name: str, tmp_path: Path) -> tuple[Path, Places]:
    root = golden(name).unpack(tmp_path / "store")
    settings = json.loads(golden(name).files.get("settings.json", b"{}"))
    size = settings.get("queue_file_size", 6000)
    return root, Places(root, **{**SMALL, "queue_file_size": size})


def contents(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def differing(one: Found, root: Path) -> list[str]:
    other = find_files(Places(root))
    return [str(found) for found in differences(one.files, other.files)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_queues_and_index_are_made_again_as_they_were(
    name: str, tmp_path: Path
) -> None:
    root, places = unpack(name, tmp_path)
    whole = find_files(places)
    before = contents(root)
    copy = shutil.copytree(root, tmp_path / "copy")
    shutil.rmtree(copy / "consumequeue")
    shutil.rmtree(copy / "index", ignore_errors=True)
    (copy / "checkpoint").unlink()
    bare = Places(copy, **{f: getattr(places, f) for f in SMALL})

    made = rebuild(find_files(bare), bare, tmp_path / "new")

    assert differing(whole, tmp_path / "new") == []
    assert fsck(tmp_path / "new").verdict == "CLEAN"
    assert made.unlisted == 0
    assert contents(root) == before


def test_units_are_those_of_rocketmq_byte_by_byte(tmp_path: Path) -> None:
    root, places = unpack("rolled-clean", tmp_path)

    rebuild(find_files(places), places, tmp_path / "new")

    for path in sorted((root / "consumequeue").rglob("0*")):
        if path.is_file() and any(path.read_bytes()):
            other = tmp_path / "new" / path.relative_to(root)
            assert other.read_bytes() == path.read_bytes(), path


def test_linked_files_are_those_that_nobody_writes_any_more(tmp_path: Path) -> None:
    root, places = unpack("clean", tmp_path)

    rebuild(find_files(places), places, tmp_path / "new", link=True)

    links = [path.stat().st_nlink for path in sorted((root / "commitlog").iterdir())]
    assert links == [2, 2, 2, 2, 2, 1, 1]


def test_a_damaged_log_is_not_rebuilt_and_a_taken_name_not_used(
    tmp_path: Path,
) -> None:
    root, _ = unpack("clean", tmp_path)

    taken = run("rebuild", root, "--out", root)
    zero_a_page(root)
    damaged = run("rebuild", root, "--out", tmp_path / "new")

    assert taken.exit_code == damaged.exit_code == 1
    assert "exists already" in taken.stdout
    assert "crashmq salvage" in damaged.stdout
    assert not (tmp_path / "new").exists()
    again = run("salvage", root, "--out", tmp_path / "new")
    assert again.exit_code == 1


def test_salvage_says_which_topics_it_takes_for_deleted(tmp_path: Path) -> None:
    root, _ = unpack("clean", tmp_path)
    shutil.rmtree(root / "consumequeue/orders")
    zero_a_page(root)

    done = run("salvage", root, "--out", tmp_path / "new")
    listed = run("rebuild", tmp_path / "new", "--out", tmp_path / "all", "--all-topics")

    assert "orders: taken for deleted" in " ".join(done.stdout.split())
    report = json.loads((tmp_path / "new/salvage.json").read_text("utf-8"))
    assert report["taken_for_deleted"] == ["orders"]
    assert listed.exit_code == 0
    assert (tmp_path / "all/consumequeue/orders").is_dir()


def test_in_place_keeps_what_it_replaces_and_gives_it_back(tmp_path: Path) -> None:
    root, places = unpack("killed", tmp_path)
    shutil.rmtree(root / "consumequeue/orders")
    before = contents(root)

    done = run("rebuild", root, "--in-place")
    verdict = fsck(root).verdict
    undone = run("rebuild", root, "--in-place", "--undo")

    assert (done.exit_code, verdict, undone.exit_code) == (0, "CLEAN", 0)
    assert contents(root) == before
    assert places.root == root


class _Stop(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("step", range(12))
def test_wherever_it_is_interrupted_nothing_is_lost(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, places = unpack("clean", tmp_path)
    whole = find_files(places)
    before = contents(root)
    left = iter(range(step))

    def sync(folder: Path) -> None:
        if next(left, None) is None:
            raise _Stop(folder)

    monkeypatch.setattr(rebuilding, "sync_folder", sync)
    try:
        rebuild_in_place(find_files(places), places)
        is_done = True
    except _Stop:
        is_done = False
    monkeypatch.undo()

    is_begun = (root / rebuilding.BACKUP).exists()
    log = contents(root / "commitlog")
    assert log == {p[10:]: d for p, d in before.items() if p.startswith("commitlog/")}
    if not is_done and not (root / "abort").exists():
        # Nobody would replay the log: so nothing may be amiss.
        own = (rebuilding.BACKUP, rebuilding.STAGE)
        now = {p: d for p, d in contents(root).items() if not p.startswith(own)}
        assert now == before or differing(whole, root) == []
    if is_begun:
        undo(root)
        assert contents(root) == before
    assert differing(whole, root) == []


def test_an_interrupted_copy_leaves_no_store_and_the_next_one_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, places = unpack("clean", tmp_path)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rebuilding, "copy_rest", stop)
    result = run("rebuild", root, "--out", tmp_path / "new")
    monkeypatch.undo()

    assert result.exit_code == 130
    assert not (tmp_path / "new").exists()
    assert run("rebuild", root, "--out", tmp_path / "new").exit_code == 0
    assert not (tmp_path / "new.partial").exists()
    assert places.root == root


def lost_in_a_page(rows: list[dict[str, Any]]) -> set[tuple[str, int, int]]:
    first = int(THIRD[-20:]) + 4 * PAGE
    return {
        (row["topic"], row["queue_id"], row["queue_offset"])
        for row in rows
        if row["phy_offset"] < first + PAGE and row["phy_offset"] + row["size"] > first
    }


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["clean", "killed"])
def test_all_but_what_a_page_of_zeros_took_is_served(ends: str, tmp_path: Path) -> None:
    root, places = unpack(ends, tmp_path)
    whole = find_files(places)
    rows = golden(ends).manifest
    before = Found({**whole.files}, whole.folders)
    served = {
        (r["topic"], r["queue_id"], r["queue_offset"]): message_at(
            before.files, r["topic"], r["queue_id"], r["queue_offset"]
        )
        for r in rows[380:430]
    }
    zero_a_page(root)

    done = salvage(find_files(places), places, tmp_path / "new")

    gone = lost_in_a_page(rows)
    report = fsck(tmp_path / "new")
    after = find_files(Places(tmp_path / "new")).files
    assert {lost for hole in done.holes for lost in hole.lost} == gone
    assert (done.kept, done.unplaced) == (1200 - len(gone), [])
    assert report.verdict == "CLEAN"
    for place, record in served.items():
        found = message_at(after, *place)
        assert found is not None
        if place in gone:
            assert found.properties.get("CRASHMQ_LOST") == "true"
        else:
            assert found == record


def test_renumbered_queues_have_no_holes_and_groups_go_on_where_they_were(
    tmp_path: Path,
) -> None:
    root, places = unpack("clean", tmp_path)
    zero_a_page(root)
    (root / "config").mkdir()
    table = {"offsetTable": {"audit-log@g": {"0": 300}, "orders@g": {"0": 3}}}
    (root / "config/consumerOffset.json").write_text(json.dumps(table))

    done = salvage(find_files(places), places, tmp_path / "new", renumber=True)

    shifted = json.loads((tmp_path / "new/config/consumerOffset.json").read_text())
    gone = lost_in_a_page(golden("clean").manifest)
    of_log = sum(topic == "audit-log" for topic, *_ in gone)
    report = fsck(tmp_path / "new")
    assert shifted["offsetTable"] == {
        "audit-log@g": {"0": 300 - of_log},
        "orders@g": {"0": 3},
    }
    assert (report.verdict, report.counts.whole) == ("CLEAN", 1200 - len(gone))
    assert done.renumbered > 500


@pytest.mark.slow
@pytest.mark.parametrize("bit", [0, 1, 4, 20, 62])
@pytest.mark.parametrize("name", ["rolled-clean", "killed"])
def test_a_flipped_bit_of_a_queue_offset_is_mended_by_the_queues_unit(
    name: str, bit: int, tmp_path: Path
) -> None:
    root, places = unpack(name, tmp_path)
    message = golden(name).manifest[60]
    log = sorted((root / "commitlog").iterdir())
    size = log[0].stat().st_size
    path = log[message["phy_offset"] // size]
    with path.open("r+b") as file:
        file.seek(message["phy_offset"] % size + 20)
        number = int.from_bytes(file.read(8), "big")
        file.seek(-8, os.SEEK_CUR)
        file.write((number ^ (1 << bit)).to_bytes(8, "big"))

    done = salvage(find_files(places), places, tmp_path / "new")

    assert number == message["queue_offset"]
    assert (done.mended, done.lost) == (1, 0)
    assert fsck(tmp_path / "new").verdict == "CLEAN"


def test_a_packed_log_file_is_told_of_before_its_messages_are_given_up(
    tmp_path: Path,
) -> None:
    root, places = unpack("rolled-clean", tmp_path)
    second = sorted((root / "commitlog").iterdir())[1]
    with gzip.open(f"{second}.gz", "wb") as packed:
        packed.write(second.read_bytes())
    second.unlink()

    found = fsck(root)
    done = salvage(find_files(places), places, tmp_path / "new")

    assert {cause.remedy for cause in found.causes} == {"unpack"}
    assert "unpack it" in " ".join(found.advice)
    assert f"{second.name}.gz may hold it" in done.holes[0].why
    assert done.lost


@pytest.mark.slow
def test_a_log_file_whose_name_is_wrong_lies_where_its_records_say(
    tmp_path: Path,
) -> None:
    root, places = unpack("rolled-clean", tmp_path)
    second = sorted((root / "commitlog").iterdir())[1]
    second.rename(second.with_name(f"{int(second.name) + 1:020d}"))
    found = find_files(places)

    done = salvage(found, places, tmp_path / "new")
    rebuild(found, places, tmp_path / "other")
    with pytest.raises(CannotRepair, match=second.name):
        rebuild_in_place(found, places)

    assert done.kept == len(golden("rolled-clean").manifest)
    assert not done.lost
    assert fsck(tmp_path / "new").verdict == "CLEAN"
    assert fsck(tmp_path / "other").verdict == "CLEAN"
    assert find_files(places).paths == found.paths


def test_what_queues_list_behind_a_cut_tail_counts_as_lost(tmp_path: Path) -> None:
    root, places = unpack("rolled-clean", tmp_path)
    rows = golden("rolled-clean").manifest
    newest = sorted((root / "commitlog").iterdir())[-1]
    lost = [row for row in rows if row["phy_offset"] > int(newest.name) + 100]
    with newest.open("r+b") as file:
        file.truncate(100)

    done = salvage(find_files(places), places, tmp_path / "new")

    assert len(lost) >= 2
    (tail,) = done.holes
    told = {(row["topic"], row["queue_id"], row["queue_offset"]) for row in lost}
    assert {*tail.lost} >= told
    assert len(tail.lost) - len(told) <= 1, "one record was cut in two"
    assert done.lost == len(tail.lost)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["crc-clean", "lmq-clean", "batch-killed"])
@pytest.mark.parametrize("file", [1, 2])
def test_a_log_file_that_is_gone_leaves_the_others(
    name: str, file: int, tmp_path: Path
) -> None:
    root, places = unpack(name, tmp_path)
    sorted((root / "commitlog").iterdir())[file].unlink()

    done = salvage(find_files(places), places, tmp_path / "new")

    counts = fsck(tmp_path / "new").counts
    assert done.kept + done.lost >= 240
    assert counts.lost_by_rocketmq == 0
    assert not counts.rocketmq_refuses
    assert fsck(tmp_path / "new").verdict == "CLEAN" or name == "lmq-clean"


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize("how", ["rebuild", "salvage", "salvage --renumber"])
def test_rocketmq_serves_what_was_made_again(
    golden_writer: GoldenWriter, tmp_path: Path, how: str
) -> None:
    root, _ = unpack("killed", tmp_path)
    command, *options = how.split()
    if command == "salvage":
        zero_a_page(root)
    else:
        shutil.rmtree(root / "consumequeue")
        shutil.rmtree(root / "index")
        conf = tmp_path / "broker.conf"
        conf.write_text(
            "mappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=256\nmaxIndexNum=1024\n"
        )
        options = ["--broker-conf", str(conf)]

    made = run(command, root, "--out", tmp_path / "new", *options)
    done = golden_writer("read", tmp_path / "new", *SIZES)

    gone = lost_in_a_page(golden("killed").manifest) if command == "salvage" else set()
    lines = len(done.stdout.splitlines())
    assert made.exit_code == (1 if gone else 0)
    assert (done.returncode, lines) == (0, 1200 - (len(gone) if options else 0))
    assert (tmp_path / "new/commitlog").is_dir()


@pytest.mark.parametrize("make", [rebuild, salvage])
def test_a_topic_that_a_crash_left_without_a_folder_is_listed(
    make: Callable[[Found, Places, Path], object], tmp_path: Path
) -> None:
    root, places = unpack("killed", tmp_path)
    whole = find_files(places)
    shutil.rmtree(root / "consumequeue/orders")

    make(find_files(places), places, tmp_path / "new")

    assert differing(whole, tmp_path / "new") == []


@pytest.mark.parametrize("by_bytes", [-100, 4096])
def test_a_log_file_of_another_length_gets_that_of_the_others(
    by_bytes: int, tmp_path: Path
) -> None:
    root, places = unpack("clean", tmp_path)
    *_, before, last = sorted((root / "commitlog").iterdir())
    size = before.stat().st_size
    os.truncate(last, size + by_bytes)
    found = find_files(places)

    rebuild(found, places, tmp_path / "new", link=True)
    with pytest.raises(CannotRepair, match=f"{size + by_bytes} bytes.*but {size}"):
        rebuild_in_place(found, places)

    new = (tmp_path / "new/commitlog").iterdir()
    assert {path.stat().st_size for path in new} == {size}
    assert last.stat().st_size == size + by_bytes
    assert fsck(tmp_path / "new").verdict == "CLEAN"


def queue_size(lengths: dict[str, int], told: int = 0) -> int:
    files = {f"consumequeue/{path}": bytes(size) for path, size in lengths.items()}
    places = Places(Path("store"), queue_file_size=told)
    return sizes_of(files, places).queue_file_size


def test_queue_files_get_the_size_that_the_broker_expects() -> None:
    """A copy that lost the zeros at the ends of files has them in many lengths."""
    first, second = f"{0:020d}", f"{1200:020d}"
    cut = {f"a/0/{first}": 280, f"a/1/{first}": 280, f"b/0/{first}": 460}

    assert queue_size(dict.fromkeys(cut, 1200)) == 1200
    assert queue_size({**cut, f"b/1/{first}": 700}) == 6_000_000
    assert queue_size({**cut, f"b/0/{second}": 20}) == 1200
    assert queue_size(cut, told=1200) == 1200
    assert queue_size({}) == 6_000_000


@pytest.mark.parametrize("told", ["", "mappedFileSizeConsumeQueue=1200\n"])
def test_a_size_that_no_queue_file_shows_is_said_to_be_guessed(
    told: str, tmp_path: Path
) -> None:
    root, _ = unpack("clean", tmp_path)
    shutil.rmtree(root / "consumequeue")
    conf = tmp_path / "broker.conf"
    conf.write_text(told)
    asked = ["rebuild", str(root), "--out", str(tmp_path / "new")]

    done = CliRunner().invoke(main, [*asked, "--broker-conf", str(conf)])

    assert done.exit_code == 0
    assert ("no queue file showed its size" in done.stdout) == (not told)
