"""What the scanner leaves out changes no word of a report, whatever is damaged."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner
from fsck_archive import ARCHIVES, archive
from fsck_breaking import Broken
from fsck_damages import broken_copies
from golden_store import golden

from crashmq.harness.cli import main
from crashmq.harness.fsck import numpy_walk, scanner, shapes
from crashmq.harness.fsck.fsck import FsckReport, fsck
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.recognise import NotAStore
from crashmq.harness.fsck.releases import Release
from crashmq.harness.fsck.store_files import find_files
from crashmq.harness.fsck.survey import Manner, by_processes, survey
from crashmq.models.files.left_out import LeftOut

WHOLE = Manner(small_size=1 << 60, with_index=False)
IN_SPLITS = Manner(small_size=0, split_size=100_000, with_index=False)
RELEASES: tuple[Release, ...] = ("4.9", "5.1", "5.3.2", "5.4")


def left_out(root: Path) -> LeftOut:
    found = find_files(Places(root))
    for path in [path for path in found.files if path.startswith("index/")]:
        del found.files[path]
    return survey(found, lambda *_: None, IN_SPLITS)


def count_of(left: LeftOut) -> int:
    return sum(s.records for skips in left.records.values() for s in skips.values())


def told(root: Path, manner: Manner) -> FsckReport | str:
    try:
        return fsck(root, manner=manner)
    except NotAStore as error:
        return str(error)


def put(broken: Broken, copy: Path) -> Path:
    for path, data in broken.files.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(data)
    for folder in broken.folders:
        (copy / "consumequeue" / folder).mkdir(parents=True, exist_ok=True)
    return copy


@pytest.fixture(autouse=True)
def small_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues of the golden stores have fewer units in a file than a store of days."""
    monkeypatch.setattr(scanner, "_NEAR_IN_QUEUE", 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
def test_of_a_golden_store_most_is_left_out_and_the_report_is_the_same(
    name: str, tmp_path: Path
) -> None:
    root = golden(name).unpack(tmp_path / "store")

    assert told(root, IN_SPLITS) == told(root, WHOLE)
    if name == "clean":
        assert count_of(left_out(root)) > 1000 > 1200 // 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
def test_damages_of_each_store_have_the_same_report(
    name: str, deep: bool, tmp_path: Path
) -> None:
    """The gate takes every twelfth of each store, others in each."""
    step = 1 if deep else 12
    damages = islice(
        broken_copies(archive(name), 1), ARCHIVES.index(name) % step, None, step
    )
    for number, (label, broken) in enumerate(damages):
        root = put(broken, tmp_path / str(number))

        assert told(root, IN_SPLITS) == told(root, WHOLE), label


def test_where_a_window_ends_is_nothing_to_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = golden("clean").unpack(tmp_path / "store")
    whole = told(root, WHOLE)
    monkeypatch.setattr(scanner, "WINDOW", 1 << 13)

    assert told(root, IN_SPLITS) == whole


def test_a_body_that_holds_a_record_of_its_own_place_is_no_record(
    tmp_path: Path,
) -> None:
    root = golden("clean").unpack(tmp_path / "store")
    known = archive("clean")
    row = next(r for r in known.rows if r["body_size"] > 400)
    path, start = known.place(row)
    data = bytearray((root / path).read_bytes())
    at = start + 120
    inner = bytearray(data[known.place(known.rows[0])[1] :][:300])
    inner[28:36] = (row["phy_offset"] + 120).to_bytes(8, "big")
    data[at : at + len(inner)] = inner[: row["body_size"] - 40]
    (root / path).write_bytes(data)
    splits = Manner(small_size=0, split_size=start % 65536 + 110, with_index=False)

    assert told(root, splits) == told(root, WHOLE)


@pytest.mark.slow
def test_processes_leave_out_what_one_leaves_out(tmp_path: Path) -> None:
    root = golden("clean").unpack(tmp_path / "store")
    beside = Manner(by_processes(2), 0, 100_000, with_index=False)

    assert told(root, beside) == told(root, IN_SPLITS)


def test_without_the_index_the_command_says_the_same_of_log_and_queues(
    tmp_path: Path,
) -> None:
    root = golden("clean").unpack(tmp_path / "store")
    clean = CliRunner().invoke(main, ["fsck", str(root), "--fast"])
    (root / "consumequeue/orders/1/00000000000000000000").write_bytes(bytes(6000))
    damaged = CliRunner().invoke(main, ["fsck", str(root), "--fast"])

    assert (clean.exit_code, clean.stdout.splitlines()[0]) == (0, "CLEAN")
    assert damaged.exit_code == 1
    assert damaged.stdout.startswith("DAMAGED: 0 messages unreadable, 1,200 whole")


def test_workers_and_a_master_exclude_each_other(tmp_path: Path) -> None:
    root = golden("clean").unpack(tmp_path / "store")
    asked = ["fsck", str(root), "--workers", "2", "--master", "local[2]"]

    assert CliRunner().invoke(main, asked).exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 1, 40, 149, 250])
@pytest.mark.parametrize("ends", ["clean", "killed"])
def test_what_a_start_loses_is_foretold_of_runs_that_are_left_out(
    ends: str, kept: int, tmp_path: Path
) -> None:
    """Of one queue units are gone from a number on, of another one all."""
    root = golden(ends).unpack(tmp_path / "store")
    for path in sorted((root / "consumequeue/audit-log/0").iterdir()):
        data = path.read_bytes()
        start = max(0, kept * 20 - int(path.name))
        path.write_bytes(data[:start].ljust(len(data), b"\0"))
    other = sorted((root / "consumequeue/orders/1").iterdir())
    other[0].write_bytes(bytes(other[0].stat().st_size))
    for release in RELEASES:
        whole = fsck(root, release=release, manner=WHOLE)
        split = fsck(root, release=release, manner=IN_SPLITS)

        assert split == whole
        assert whole.counts.lost_by_rocketmq or ends == "killed"


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
def test_company_is_nothing_to_what_is_left_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = golden(name).unpack(tmp_path / "store")
    found = []
    for least in (1, 1 << 30):
        for module in (numpy_walk, shapes):
            monkeypatch.setattr(module, "GROUP_MIN", least)
        found.append(left_out(root))

    assert found[0] == found[1]


@pytest.mark.parametrize("alike", [1, 2, 16])
def test_records_of_one_size_are_chained_as_all_others(
    alike: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches of this store have inner messages of one size."""
    root = golden("batch-clean").unpack(tmp_path / "store")
    usual = left_out(root)
    monkeypatch.setattr(numpy_walk, "_ALIKE", alike)

    assert left_out(root) == usual
