"""The first line of fsck, its table and its causes, for an operator's damages."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from golden_store import golden

from crashmq.harness.cli import main
from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.places import places_of, read_conf
from crashmq.harness.fsck.recognise import lock_holder

GoldenWriter = Callable[..., "subprocess.CompletedProcess[str]"]
THIRD = "commitlog/00000000000000131072"
PAGE = 4096
SIZES = ("--log-file-size", "65536", "--queue-file-size", "6000")
Damage = Callable[[Path], None]


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["fsck", *map(str, args)])


def zero_a_page(root: Path) -> None:
    with (root / THIRD).open("r+b") as file:
        file.seek(4 * PAGE)
        file.write(bytes(PAGE))


def exchange_queue_files(root: Path) -> None:
    one, other = (
        root / f"consumequeue/{name}/00000000000000000000"
        for name in ("orders/0", "orders/1")
    )
    data, data_other = one.read_bytes(), other.read_bytes()
    one.write_bytes(data_other)
    other.write_bytes(data)


def remove_a_queue(root: Path) -> None:
    shutil.rmtree(root / "consumequeue/orders/1")


def remove_a_log_file(root: Path) -> None:
    (root / THIRD).unlink()


def zero_the_tail(root: Path) -> None:
    path = root / "commitlog/00000000000000393216"
    path.write_bytes(path.read_bytes()[:30_000].ljust(65536, b"\0"))


def tear_the_index(root: Path) -> None:
    path = sorted((root / "index").iterdir())[0]
    data = bytearray(path.read_bytes())
    data[2048:3072] = bytes(1024)
    path.write_bytes(data)


def cut_a_log_file(root: Path) -> None:
    path = root / THIRD
    path.write_bytes(path.read_bytes()[:-PAGE])


def exchange_log_files(root: Path) -> None:
    one, other = root / THIRD, root / "commitlog/00000000000000196608"
    data, data_other = one.read_bytes(), other.read_bytes()
    one.write_bytes(data_other)
    other.write_bytes(data)


def a_queue_file_of_another_broker(root: Path) -> None:
    target = root / "consumequeue/orders/0/00000000000000000000"
    units = [struct.pack(">qiq", 1 + 333 * n, 333, 0) for n in range(300)]
    target.write_bytes(b"".join(units))


DAMAGES: dict[str, tuple[Damage, str]] = {
    "page": (zero_a_page, "a page of zeros"),
    "exchanged": (exchange_queue_files, "queue files exchanged"),
    "queue gone": (remove_a_queue, "a queue's folder is gone"),
    "log file gone": (remove_a_log_file, "a log file is missing"),
    "tail": (zero_the_tail, "the log's tail is cut off or zeroed"),
    "index": (tear_the_index, "the index is damaged"),
    "cut": (cut_a_log_file, "a log file is too short or too long"),
    "log exchanged": (exchange_log_files, "log files exchanged or renamed"),
    "stranger": (a_queue_file_of_another_broker, "a queue file of another broker"),
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return golden("clean").unpack(tmp_path / "store")


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_called_by_its_cause_and_leaves_what_is_whole(
    name: str, store: Path
) -> None:
    damage, cause = DAMAGES[name]
    damage(store)

    report = fsck(store)

    assert report.verdict.startswith("DAMAGED: ")
    assert cause in {one.name for one in report.causes}
    assert report.counts.whole + report.counts.damaged == 1200
    assert report.advice


@pytest.mark.parametrize(
    ("name", "damaged"), [("page", None), ("exchanged", 0), ("queue gone", 0)]
)
def test_messages_are_counted_by_their_records(
    name: str, damaged: int | None, store: Path
) -> None:
    DAMAGES[name][0](store)
    log = b"".join(
        path.read_bytes() for path in sorted((store / "commitlog").iterdir())
    )
    changed = [
        row
        for row in golden("clean").manifest
        if row["phy_offset"] < 131072 + 5 * PAGE
        and row["phy_offset"] + row["size"] > 131072 + 4 * PAGE
    ]

    report = fsck(store)

    assert len(log) == 7 * 65536
    expected = len(changed) if damaged is None else damaged
    assert report.counts.damaged == expected
    assert report.counts.whole == 1200 - expected


def test_what_salvage_cannot_mend_has_another_advice(
    store: Path, tmp_path: Path
) -> None:
    row = golden("clean").manifest[7]
    number, at = divmod(row["phy_offset"] + row["size"] - 4, 65536)
    with (store / f"commitlog/{number * 65536:020d}").open("r+b") as file:
        file.seek(at)
        file.write(bytes(4))  # of its properties, which no CRC covers
    saved = tmp_path / "saved"

    before = fsck(store)
    args = ["salvage", str(store), "--out", str(saved)]
    CliRunner().invoke(main, args, catch_exceptions=False)
    after = fsck(saved)

    assert before.counts.whole == after.counts.whole == 1200
    for report in (before, after):
        odd = [one for one in report.causes if one.laws == ("CL-5",)]
        assert [one.remedy for one in odd] == ["keep"]
        assert not any("salvage" in one for one in report.advice)


def test_a_killed_store_that_a_start_would_cut_says_so_first(tmp_path: Path) -> None:
    root = golden("killed").unpack(tmp_path / "store")
    zero_a_page(root)

    text, machine = run(root), run(root, "--json")

    said = json.loads(machine.stdout)
    lost = said["messages"]["lost_by_rocketmq"]
    assert (text.exit_code, machine.exit_code) == (6, 6)
    assert text.stdout.splitlines()[0] == said["verdict"]
    assert said["verdict"] == f"CLEAN, BUT A START LOSES {lost} MESSAGES"
    assert lost > 700
    assert "crashmq salvage" in text.stdout


def test_a_store_that_is_well_fits_on_a_screen(store: Path) -> None:
    result = run(store)

    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0] == "CLEAN"
    assert len(lines) < 24
    assert all(len(line) <= 100 for line in lines)
    assert any(line.split()[:2] == ["audit-log/0", "400"] for line in lines)


def test_a_thousand_breaches_fit_on_a_screen_but_for_all(store: Path) -> None:
    for path in sorted((store / "consumequeue").rglob("0000*")):
        data = bytearray(path.read_bytes())
        data[7::40] = bytes([0x55]) * len(data[7::40])
        path.write_bytes(data)

    short, whole = run(store), run(store, "--all")

    assert short.exit_code == whole.exit_code == 1
    assert len(short.stdout.splitlines()) < 70
    assert len(whole.stdout.splitlines()) > 500


@contextmanager
def held(path: Path, how: str) -> Iterator[None]:
    """The lock of a store, held by a process as RocketMQ or as crashmq holds it."""
    code = (
        f"import fcntl, sys; f = open({str(path)!r}, 'r+b'); {how}; "
        f"print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.kill()


@pytest.mark.parametrize(
    "how",
    [
        "fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)",
        "fcntl.flock(f, fcntl.LOCK_EX)",
    ],
)
def test_a_store_in_use_is_told_by_its_lock_which_stays_held(
    how: str, store: Path
) -> None:
    with held(store / "lock", how):
        result, again = run(store), run(store)

    assert result.exit_code == again.exit_code == 2
    assert result.stdout.splitlines()[0] == again.stdout.splitlines()[0] == "RUNNING"


def test_to_ask_for_the_lock_takes_none(store: Path) -> None:
    assert lock_holder(store / "lock") == ""
    with (store / "lock").open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)

        assert lock_holder(store / "lock") == f"process {os.getpid()}"


def foreign(root: Path) -> None:
    (root / "commitlog").rename(root / "elsewhere")


def ledger(root: Path) -> None:
    foreign(root)
    (root / "dledger-n0" / "data").mkdir(parents=True)


def level(root: Path) -> None:
    inside = root.parent / "inside"
    root.rename(inside)
    root.mkdir()
    inside.rename(root / "store")


@pytest.mark.parametrize(
    ("change", "word", "hint"),
    [
        (foreign, "FOREIGN LAYOUT", "--commitlog"),
        (ledger, "FOREIGN LAYOUT", "DLedger"),
        (level, "NOT A STORE", "has one"),
    ],
)
def test_what_is_no_store_is_called_by_its_name(
    change: Damage, word: str, hint: str, store: Path
) -> None:
    change(store)

    result, machine = run(store), run(store, "--json")

    assert result.exit_code == machine.exit_code == 2
    assert (
        result.stdout.splitlines()[0] == json.loads(machine.stdout)["verdict"] == word
    )
    assert hint in " ".join(result.stdout.split())


def test_a_log_elsewhere_is_read_where_it_is_said_to_be(store: Path) -> None:
    other = store.parent / "second"
    other.mkdir()
    foreign(store)
    for path in sorted((store / "elsewhere").iterdir())[::2]:
        path.rename(other / path.name)
    conf = store.parent / "broker.conf"
    conf.write_text(
        f"# of the broker\nbrokerName = b\nstorePathRootDir={store}\n"
        f"storePathCommitLog={store / 'elsewhere'},{other}\n"
        f"mappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue=6000\n"
    )

    told = run(store, "--broker-conf", conf)
    named = run(store, "--commitlog", store / "elsewhere", "--commitlog", other)

    assert told.exit_code == named.exit_code == 0
    assert told.stdout.splitlines()[0] == named.stdout.splitlines()[0] == "CLEAN"


def test_what_to_do_next_says_again_where_the_files_are(store: Path) -> None:
    conf = store.parent / "broker.conf"
    conf.write_text("mappedFileSizeConsumeQueue=6000\n")
    shutil.rmtree(store / "consumequeue")

    told = run(store, "--broker-conf", conf, "--follow-links").stdout

    words = f"crashmq rebuild {store} --broker-conf {conf} --follow-links --out NEW"
    assert words in " ".join(told.split())


def test_a_size_that_the_broker_does_not_have_is_told(store: Path) -> None:
    conf = store.parent / "broker.conf"
    conf.write_text("mappedFileSizeConsumeQueue=7000\n")

    report = fsck(store, places=places_of(store, read_conf(conf)))

    assert [(one.law, one.expected) for one in report.violations] == [
        ("DIR-2", "7,000, as mappedFileSizeConsumeQueue says")
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"a=1", "1"),
        (b"  a : 1  ", "1"),
        (b"a 1", "1"),
        (b"# a=2 \\\na=1", "1"),
        (b"a=x\\\r\n   y\\\n z", "xyz"),
        (b"a=C:\\\\dir\\\\\nb=2", "C:\\dir\\"),
        (b"a=\\u0041\\tb", "A\tb"),
        (b"a==5\r\n", "=5"),
        (b"a=\xc4\xe3", "\xc4\xe3"),  # a byte is a character, whatever was meant
        (b"\xef\xbb\xbfb=2\na=1", "1"),
        (b"a", ""),
    ],
)
def test_a_configuration_is_read_as_java_reads_it(
    text: bytes, value: str, tmp_path: Path
) -> None:
    """Held against java.util.Properties of Java 17."""
    conf = tmp_path / "broker.conf"
    conf.write_bytes(text)

    assert read_conf(conf).values["a"] == value


@pytest.mark.parametrize("text", ["mappedFileSizeCommitLog=1G", "messageDelayLevel=3x"])
def test_a_configuration_that_makes_no_sense_is_refused(text: str, store: Path) -> None:
    conf = store.parent / "broker.conf"
    conf.write_text(text)

    result = run(store, "--broker-conf", conf)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize("ends", ["clean", "killed"])
@pytest.mark.parametrize("name", DAMAGES)
def test_rocketmq_loses_what_the_table_says(
    golden_writer: GoldenWriter, tmp_path: Path, name: str, ends: str
) -> None:
    root = golden(ends).unpack(tmp_path / "store")
    DAMAGES[name][0](root)
    report = fsck(root)
    counts = report.counts

    done = golden_writer("read", root, *SIZES)

    if "serves the record of" in done.stderr:
        # It hands out what is no message, or another one, and the reader stops there.
        assert report.violations or counts.lost_by_rocketmq
        assert not counts.rocketmq_refuses
    else:
        assert counts.rocketmq_refuses == bool(done.returncode)
        left = 0 if done.returncode else counts.whole - counts.lost_by_rocketmq
        assert len(done.stdout.splitlines()) == left
