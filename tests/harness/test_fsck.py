from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path

import pytest
from golden_store import QUEUE, Damage, Damaged, golden, i32, i64

from crashmq.harness.fsck.fsck import FsckReport, NotAStore, fsck
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.recognise import ForeignLayout

# Message 500 is audit-log/0[166], 501 bytes with a body of 380 from byte 88 on.
LOG_FILE = "commitlog/00000000000000131072"
RECORD = 181706 - 131072
UNIT = 166 * 20
FIRST_ENTRY = 40 + 4 * 256 + 20
LAST_LOG_FILE = "commitlog/00000000000000393216"


@pytest.fixture
def damaged(tmp_path: Path) -> Damaged:
    return Damaged(golden("clean").unpack(tmp_path / "store"))


def ids(report: FsckReport) -> set[str]:
    return {finding.law for finding in report.violations}


def fingerprint(root: Path) -> list[tuple[str, int, int, str]]:
    """Path, length, time of change and SHA-256 of everything below ``root``."""
    found = []
    for path in sorted(root.rglob("*")):
        status = path.stat()
        data = path.read_bytes() if path.is_file() else b""
        found.append(
            (
                path.relative_to(root).as_posix(),
                status.st_size,
                status.st_mtime_ns,
                hashlib.sha256(data).hexdigest(),
            )
        )
    return found


def test_the_fixture_is_where_the_tests_below_believe(damaged: Damaged) -> None:
    message = damaged.message

    assert damaged.place() == (LOG_FILE, RECORD)
    assert (message["topic"], message["queue_offset"]) == ("audit-log", UNIT // 20)
    assert (message["size"], message["body_size"]) == (501, 380)


def test_a_store_shut_down_by_rocketmq_keeps_every_law(damaged: Damaged) -> None:
    report = fsck(damaged.root)

    assert report.is_clean
    assert (report.mode, report.notes, report.next_start) == ("clean", (), ())
    assert (report.summary.records, report.summary.units) == (1200, 1200)
    assert (report.summary.log_files, report.summary.log_file_size) == (7, 65536)
    assert report.summary.max_phy_offset == 449067 + 204
    queues = {queue.queue: queue.max_offset for queue in report.summary.queues}
    assert queues["audit-log/0"] == 400


@pytest.mark.parametrize("name", ["killed", "killed-sync"])
def test_a_store_killed_amid_its_work_keeps_every_law(
    name: str, tmp_path: Path
) -> None:
    report = fsck(golden(name).unpack(tmp_path / "store"))

    assert report.is_clean
    assert report.mode == "crashed"
    assert report.summary.records == 1200
    assert report.next_start == (
        "removes 1 log file(s) past the end: commitlog/00000000000000458752.",
    )


def test_nothing_in_the_directory_is_changed(damaged: Damaged) -> None:
    damaged.in_record(90)
    (damaged.root / "abort").write_text("1")
    before = fingerprint(damaged.root)

    fsck(damaged.root)

    assert fingerprint(damaged.root) == before


def test_the_report_is_json_with_offsets_as_numbers(damaged: Damaged) -> None:
    damaged.in_record(90)

    report = json.loads(json.dumps(fsck(damaged.root).to_json()))

    assert report["mode"] == "clean"
    assert report["summary"]["max_phy_offset"] == 181706
    assert report["violations"][0]["law"] == "CL-1"
    assert report["violations"][0]["catalogue"] == "I2 I15"


TEN: dict[str, tuple[Damage, str, str, int]] = {
    "a body byte": (lambda d: d.in_record(100), "CL-1", LOG_FILE, RECORD),
    "a size field": (lambda d: d.in_record(0, i32(77777)), "CL-1", LOG_FILE, RECORD),
    "a magic": (lambda d: d.in_record(5), "CL-1", LOG_FILE, RECORD),
    "a physical offset": (lambda d: d.in_record(35), "CL-1", LOG_FILE, RECORD),
    "a log file cut in a record": (
        lambda d: d.cut(LOG_FILE, RECORD + 50), "CL-2", LOG_FILE, RECORD + 50,
    ),
    "a log file removed": (lambda d: d.remove(LOG_FILE), "CL-2", LOG_FILE, 0),
    "a unit's physical offset": (
        lambda d: d.write(QUEUE, UNIT, i64(181707)), "CQ-1", QUEUE, UNIT,
    ),
    "a unit's size": (
        lambda d: d.write(QUEUE, UNIT + 8, i32(500)), "CQ-1", QUEUE, UNIT,
    ),
    "two units swapped": (
        lambda d: d.swap(QUEUE, UNIT, UNIT + 20, 20), "CQ-1", QUEUE, UNIT,
    ),
    "a queue file cut in a unit": (
        lambda d: d.cut(QUEUE, UNIT + 7), "CQ-5", QUEUE, UNIT + 7,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TEN)
def test_each_of_ten_damages_is_named_by_law_file_and_offset(
    name: str, damaged: Damaged
) -> None:
    damage, law, path, position = TEN[name]
    damage(damaged)

    found = fsck(damaged.root).violations

    places = [f.where for f in found if f.law == law]
    assert any(f"{where} ".startswith(f"{path} byte {position} ") for where in places)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEN)
def test_after_a_crash_each_of_them_is_still_told(name: str, damaged: Damaged) -> None:
    damage, law, path, position = TEN[name]
    damage(damaged)
    (damaged.root / "abort").write_text("1")

    report = fsck(damaged.root)

    told = [str(finding) for finding in report.violations] + list(report.notes)
    assert any(f"{law}" in line and f"{path} byte {position}" in line for line in told)


def zero_page(path: str, page: int) -> Damage:
    return lambda d: d.write(path, page * 4096, bytes(4096))


def swap_log_files(damaged: Damaged) -> None:
    first, second = damaged.root / LOG_FILE, damaged.root / LAST_LOG_FILE
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)


def lose_queue(damaged: Damaged) -> None:
    damaged.remove("consumequeue/orders/2/00000000000000000000")
    (damaged.root / "consumequeue/orders/2").rmdir()


MORE: dict[str, tuple[Damage, set[str], str]] = {
    "a zeroed page of the log": (zero_page(LOG_FILE, 3), {"CL-1"}, LOG_FILE),
    "a zeroed page amid a queue": (zero_page(QUEUE, 0), {"CQ-2", "CQ-4"}, QUEUE),
    "a record copied over another": (
        lambda d: d.copy_record_over(500, 501), {"CL-1"}, LOG_FILE,
    ),
    "a topic byte": (
        lambda d: d.in_record(88 + 380 + 1), {"CQ-1", "CQ-4", "OFF-1"}, QUEUE,
    ),
    "a queue id": (lambda d: d.in_record(15), {"CQ-1", "CQ-4", "OFF-1"}, QUEUE),
    "a queue offset": (lambda d: d.in_record(27), {"CQ-1", "OFF-1"}, LOG_FILE),
    "a body length": (lambda d: d.in_record(87), {"CL-1"}, LOG_FILE),
    "a topic length": (lambda d: d.in_record(88 + 380), {"CL-1"}, LOG_FILE),
    "a properties length": (lambda d: d.in_record(88 + 380 + 11), {"CL-1"}, LOG_FILE),
    "a property's name": (
        lambda d: d.in_record(88 + 380 + 12), {"CL-5"}, LOG_FILE,
    ),
    "a body CRC": (lambda d: d.in_record(8), {"CL-1"}, LOG_FILE),
    "a transaction flag": (lambda d: d.in_record(36, i32(4)), {"OFF-1"}, LOG_FILE),
    "a host flag": (lambda d: d.in_record(36, i32(16)), {"CL-1"}, LOG_FILE),
    "a store timestamp moved back": (
        lambda d: d.in_record(56, i64(1795247787398 - 60000)), {"CL-4"}, LOG_FILE,
    ),
    "a store timestamp moved on": (
        lambda d: d.in_record(56, i64(1795247787398 + 60000)), {"CL-4"}, LOG_FILE,
    ),
    "a filler": (
        lambda d: d.write(*last_filler(d), bytes(8)), {"CL-1", "CL-3"}, LOG_FILE,
    ),
    "a unit's tags code": (lambda d: d.flip(QUEUE, UNIT + 19), {"CQ-1"}, QUEUE),
    "a unit's size gone": (
        lambda d: d.write(QUEUE, UNIT + 8, bytes(4)), {"CQ-2", "CQ-4"}, QUEUE,
    ),
    "a unit's physical offset negative": (
        lambda d: d.write(QUEUE, UNIT, b"\xff"), {"CQ-1", "CQ-2"}, QUEUE,
    ),
    "a unit far past the log": (
        lambda d: d.write(QUEUE, UNIT, b"\x7f"), {"CQ-3"}, QUEUE,
    ),
    "a unit more than there are records": (
        lambda d: d.write(
            "consumequeue/audit-log/0/00000000000000006000", 2000,
            struct.pack(">qiq", 0, 147, 0),
        ), {"CQ-1"}, "consumequeue/audit-log/0/00000000000000006000 byte 2000",
    ),
    "the first queue file removed": (lambda d: d.remove(QUEUE), {"CQ-4"}, QUEUE),
    "the last queue file removed": (
        lambda d: d.remove("consumequeue/audit-log/0/00000000000000006000"), {"CQ-4"},
        "consumequeue/audit-log/0/00000000000000006000",
    ),
    "a queue's directory removed": (lose_queue, {"CQ-4"}, "consumequeue/orders/2"),
    "the last log file removed": (
        lambda d: d.remove(LAST_LOG_FILE), {"CL-1", "CQ-3"}, "consumequeue/audit-log/0",
    ),
    "two log files exchanged": (swap_log_files, {"CL-1"}, LOG_FILE),
    "a log file emptied": (lambda d: d.cut(LOG_FILE, 0), {"CL-1", "CL-2"}, LOG_FILE),
    "the last record damaged": (
        lambda d: d.in_record(90, number=1199), {"CL-1", "CQ-3"}, LAST_LOG_FILE,
    ),
    "the checkpoint garbage": (
        lambda d: d.write("checkpoint", 0, bytes(range(90, 130))), {"CP-2", "CP-5"},
        "checkpoint byte 0",
    ),
    "a byte of the checkpoint that is no field's": (
        lambda d: d.flip("checkpoint", 2000), {"CP-10"}, "checkpoint byte 2000",
    ),
    "a time of dispatch later than all records": (
        lambda d: d.write("checkpoint", 8, i64(1 << 42)), {"CP-5"}, "checkpoint byte 8",
    ),
    "a time of the index before all records": (
        lambda d: d.write("checkpoint", 16, i64(77)), {"CP-5"}, "checkpoint byte 16",
    ),
    "an index entry past the log": (
        lambda d: d.flip(index_file(d), FIRST_ENTRY + 5), {"IX-3", "IX-4"},
        f"byte {FIRST_ENTRY} ",
    ),
    "an index entry's seconds": (
        lambda d: d.flip(index_file(d), FIRST_ENTRY + 15), {"IX-4"},
        f"byte {FIRST_ENTRY} ",
    ),
    "an index entry in the wrong place": (
        lambda d: d.swap(index_file(d), FIRST_ENTRY, FIRST_ENTRY + 400, 20),
        {"IX-4", "IX-5"}, f"byte {FIRST_ENTRY + 20} ",
    ),
    "an index header's count": (
        lambda d: d.flip(index_file(d), 39), {"IX-3"}, "index/",
    ),
    "an index header's first place": (
        lambda d: d.flip(index_file(d), 23), {"IX-3"}, "byte 16",
    ),
    "an index file cut": (
        lambda d: d.cut(index_file(d), 21_000), {"IX-7"}, "byte 21000",
    ),
    "a unit behind a queue's end that never was one": (
        lambda d: d.write("consumequeue/orders/1/00000000000000000000", 4008, b"\xff"),
        {"CQ-2"}, "consumequeue/orders/1/00000000000000000000",
    ),
    "the checkpoint cut": (
        lambda d: d.cut("checkpoint", 13), {"CP-5"}, "checkpoint byte 13",
    ),
    "a stray file in the log": (
        lambda d: d.write_new("commitlog/core"), {"CL-2"}, "commitlog/core",
    ),
    "a stray file in a queue": (
        lambda d: d.write_new("consumequeue/orders/1/tmp"), {"CQ-5"},
        "consumequeue/orders/1/tmp",
    ),
}  # fmt: skip


def index_file(damaged: Damaged) -> str:
    """The first of its index files, whose names are times."""
    return min(path for path in golden("clean").files if path.startswith("index/"))


def last_filler(damaged: Damaged) -> tuple[str, int]:
    """Where the filler of the log file begins in which message 500 lies."""
    inside = [
        message
        for message in golden("clean").manifest
        if 131072 <= message["phy_offset"] < 196608
    ]
    return LOG_FILE, inside[-1]["phy_offset"] + inside[-1]["size"] - 131072


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_other_damages_are_found_too(name: str, damaged: Damaged) -> None:
    damage, laws, where = MORE[name]
    damage(damaged)

    report = fsck(damaged.root)

    assert laws <= ids(report)
    assert any(where in finding.where for finding in report.violations)


def test_damage_amid_the_log_leaves_whole_records_and_their_units_alone(
    damaged: Damaged,
) -> None:
    damaged.in_record(100)

    report = fsck(damaged.root)

    assert [finding.law for finding in report.violations] == ["CL-1", "CQ-3"]
    # RocketMQ looks at the last three files alone after an orderly end.
    assert report.next_start[0].startswith(f"passes over {LOG_FILE} byte {RECORD} ")


def test_what_the_next_start_after_a_crash_cuts_is_told(damaged: Damaged) -> None:
    damaged.in_record(100)
    damaged.write("checkpoint", 0, bytes(16))
    (damaged.root / "abort").write_text("1")

    report = fsck(damaged.root)

    assert report.next_start[0].startswith(f"cuts the log at {LOG_FILE} byte {RECORD} ")
    assert "699 whole records behind it are dropped" in report.next_start[0]


def test_bytes_left_past_the_log_are_a_note(damaged: Damaged) -> None:
    damaged.write(LAST_LOG_FILE, 449271 - 393216, b"\xaa" * 300)

    report = fsck(damaged.root)

    assert report.is_clean
    assert report.notes[0].startswith(f"{LAST_LOG_FILE} byte {449271 - 393216} ")
    assert "cuts the log" in report.next_start[0]


def test_units_left_past_a_queue_are_a_note(damaged: Damaged) -> None:
    path = "consumequeue/audit-log/0/00000000000000006000"
    damaged.write(path, 2000, struct.pack(">qiqqiq", 449300, 100, 0, 449400, 100, 0))

    report = fsck(damaged.root)

    assert report.is_clean
    assert report.notes[0].startswith(f"{path} byte 2000 (queue_offset 400): 2 units")
    assert report.next_start[0].startswith(f"cuts 2 units at {path} byte 2000")


def test_a_clock_set_back_is_a_note(damaged: Damaged) -> None:
    for number in range(600, 1200):
        path, start = damaged.place(number)
        damaged.write(path, start + 56, i64(1795247787000 + number))

    report = fsck(damaged.root)

    assert "CL-4" not in ids(report)
    assert any("the clock was set back here" in note for note in report.notes)


@pytest.mark.parametrize("size", [7, 39, 41, 382, 1063, 1065])
def test_an_index_file_cut_amid_its_slots_is_named(damaged: Damaged, size: int) -> None:
    damaged.cut(index_file(damaged), size)

    breaches = [f for f in fsck(damaged.root).violations if f.law == "IX-7"]

    assert breaches[0].where == f"{index_file(damaged)} byte {size}"
    assert (breaches[0].path, breaches[0].byte) == (index_file(damaged), size)


def test_a_time_of_a_record_that_went_with_a_write_buffer_is_no_breach(
    damaged: Damaged,
) -> None:
    """RocketMQ names its last append there, wherever that still lies."""
    damaged.write("checkpoint", 0, i64(1795247790256 + 5000))

    assert ids(fsck(damaged.root)) == {"CP-2", "CL-1"}
    (damaged.root / "abort").write_text("1")
    assert ids(fsck(damaged.root)) == set()


def test_files_of_no_store_are_a_note(damaged: Damaged) -> None:
    damaged.write_new("core.7")

    report = fsck(damaged.root)

    assert report.is_clean
    assert report.notes == ("core.7 is no part of a store; nothing reads it.",)


def test_a_lost_first_log_file_is_told_by_the_units_below(damaged: Damaged) -> None:
    damaged.remove("commitlog/00000000000000000000")

    report = fsck(damaged.root)

    assert "pre-blank or point below the log's min, 65536" in report.notes[0]


def test_a_missing_checkpoint_is_a_note(damaged: Damaged) -> None:
    damaged.remove("checkpoint")

    assert fsck(damaged.root).notes[0].startswith("There is no checkpoint")


def test_what_the_next_start_dispatches_is_told(tmp_path: Path) -> None:
    root = golden("killed").unpack(tmp_path / "store")
    (root / "consumequeue/orders/2/00000000000000000000").unlink()

    report = fsck(root)

    # RocketMQ had already written how far dispatch had come.
    assert ids(report) == {"CP-3"}
    assert report.next_start[1].startswith(
        "dispatches to consumequeue/orders/2/00000000000000000000 byte 0 "
        "(queue_offset 0): 100 units"
    )


def test_odd_lengths_everywhere_are_findings(damaged: Damaged) -> None:
    for path in sorted(golden("clean").files):
        damaged.cut(path, 7)

    report = fsck(damaged.root)

    assert {"CL-2", "CP-5"} <= ids(report)
    assert report.next_start[0].startswith("refuses: ")


def test_a_log_of_links_to_another_disk_is_followed(
    damaged: Damaged, tmp_path: Path
) -> None:
    (damaged.root / "commitlog").rename(tmp_path / "elsewhere")
    (damaged.root / "commitlog").symlink_to(tmp_path / "elsewhere")
    (damaged.root / "commitlog" / "loop").symlink_to(damaged.root)
    (damaged.root / "dangling").symlink_to(tmp_path / "nothing")
    os.mkfifo(damaged.root / "pipe")

    places = Places(damaged.root, follow_links=True)
    assert fsck(damaged.root, places=places).is_clean
    with pytest.raises(ForeignLayout, match="link out of the directory"):
        fsck(damaged.root)


def test_an_empty_log_beside_queues_breaks_laws(damaged: Damaged) -> None:
    for file in (damaged.root / "commitlog").iterdir():
        file.unlink()

    assert {"CL-1", "CQ-3", "CP-2"} <= ids(fsck(damaged.root))


def test_what_is_no_store_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")

    for path, problem in (
        (tmp_path / "absent", "does not exist"),
        (file, "is no directory"),
        (tmp_path, "has no directory `commitlog`"),
    ):
        with pytest.raises(NotAStore, match=problem):
            fsck(path)


@pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="needs a file that cannot be read"
)
def test_a_link_to_what_is_no_file_is_told_and_not_read(damaged: Damaged) -> None:
    (damaged.root / "commitlog/unreadable").symlink_to("/proc/self/mem")

    (finding,) = fsck(damaged.root).violations

    assert (finding.law, finding.path) == ("DIR-1", "commitlog/unreadable")
    assert "no file of a disk" in finding.seen
