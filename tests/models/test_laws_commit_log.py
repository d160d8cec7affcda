from __future__ import annotations

import struct
import zlib

import pytest
from damaged_store import END, FILES, STORE, broken, first, i64, in_record, judged
from written_store import (
    FIRST_MS,
    WrittenStore,
    log_path,
    patched,
    record_bytes,
    slot_bytes,
    without,
)

from crashmq.models.files.store_image import read_store
from crashmq.models.laws import commit_log


@pytest.mark.parametrize(
    ("at", "data"),
    [
        (0, struct.pack(">i", 999)),
        (4, b"\x12"),
        (28, i64(1)),
        (90, b"\0"),
        (0, bytes(200)),
    ],
)
def test_cl_1_names_the_place_of_a_broken_record(at: int, data: bytes) -> None:
    phy_offset = STORE.records[30][0]

    violation = first("CL-1", in_record(30, at, data))

    assert violation.where == (
        f"{log_path(4096)} byte {phy_offset - 4096} (phy_offset {phy_offset})"
    )


def test_cl_1_names_every_broken_record() -> None:
    files = in_record(30, 90, b"\0")
    files = patched(files, log_path(0), STORE.records[3][0] + 90, b"\0")

    assert len(commit_log.every_record_is_whole.violations(judged(files))) == 2


def test_cl_1_forgives_a_torn_tail_after_a_crash() -> None:
    torn = patched(FILES, log_path(END // 4096 * 4096), END % 4096, b"\xaa" * 50)

    assert broken(torn) == {"CL-1"}
    assert broken(torn, clean=False) == set()


def test_cl_1_forgives_nothing_below_the_durable_mark() -> None:
    files = in_record(30, 90, b"\0")

    assert {"CL-1", "CP-1"} <= broken(files, clean=False)


def test_cl_1_forgives_nothing_stored_before_the_flushed_time() -> None:
    unmarked = patched(in_record(30, 90, b"\0"), "checkpoint", 512, bytes(36))

    assert "CL-1" in broken(unmarked, clean=False)
    assert "CL-1" not in broken(unmarked, clean=False, monotonic_clock=False)


def test_left_over_bytes_are_excused_where_nothing_says_the_log_went_on() -> None:
    stale = patched(FILES, log_path(END // 4096 * 4096), END % 4096, b"\xaa" * 50)

    assert broken(stale, stale_allowed=True) == set()


@pytest.mark.parametrize("mark", [slot_bytes(7, 0, END), bytes(36)])
def test_a_lost_tail_is_not_excused(mark: bytes) -> None:
    files = patched(FILES, "checkpoint", 512, mark)
    lost = without(files, log_path(max(0, (END - 1) // 4096 * 4096)))

    assert {"CL-1", "CQ-3"} <= broken(lost, stale_allowed=True)


def cut_behind(number: int) -> dict[str, bytes]:
    """The next record is damaged; a recovery has left this one's start."""
    kept = STORE.records[number][0]
    files = patched(in_record(number + 1, 90, b"\0"), "checkpoint", 512, bytes(36))
    times = FIRST_MS + number, FIRST_MS + 59
    return patched(files, "checkpoint", 0, i64(*times, 0, 0, kept))


def test_a_tail_cut_by_recovery_is_excused() -> None:
    """RocketMQ's recovery leaves the start of the last record it kept."""
    assert broken(cut_behind(58), stale_allowed=True) == set()


def test_a_tail_is_not_cut_where_a_queue_lists_a_later_message() -> None:
    """Then RocketMQ went on behind that record, and left the checkpoint as it was."""
    assert broken(cut_behind(57), stale_allowed=True) == {"CL-1", "CQ-3"}


def test_cl_2_names_files_that_do_not_fit_together() -> None:
    longer = {**FILES, log_path(0): FILES[log_path(0)] + b"x"}
    odd = {**FILES, "commitlog/tmp": b""}
    gap = without(FILES, log_path(4096))

    assert first("CL-2", longer).where == f"{log_path(0)} byte 4096 (length 4097)"
    assert first("CL-2", odd).where == "commitlog/tmp"
    assert first("CL-2", gap).where == f"{log_path(4096)} byte 0 (phy_offset 4096)"


def test_cl_2_forgives_an_empty_file_after_a_crash_alone() -> None:
    files = {**FILES, log_path(16384): b""}

    assert "CL-2" in broken(files)
    assert broken(files, clean=False) == set()


def test_cl_3_names_a_lost_filler() -> None:
    image = read_store(FILES)
    end = image.commit_log.files[0].end

    lost = patched(FILES, log_path(0), end, bytes(8))

    assert first("CL-3", lost).where == f"{log_path(0)} byte {end} (phy_offset {end})"
    assert "CL-3" not in broken(in_record(3, 90, b"\0"))


def test_cl_4_names_a_time_that_fell() -> None:
    files = in_record(30, 56, i64(FIRST_MS - 5))

    assert "CL-4" in broken(files)
    assert "CL-4" not in broken(files, monotonic_clock=False)


def test_a_step_of_the_clock_is_told_from_one_damaged_time() -> None:
    store = WrittenStore()
    for ms in (50, 60, 70, 20, 30, 40):
        store.put(store_ms=FIRST_MS + ms)
    stepped, damaged_one = (
        read_store(store.files()),
        read_store(in_record(30, 56, i64(FIRST_MS - 5))),
    )

    steps = commit_log.clock_steps(stepped)

    assert [record.store_timestamp for record in steps] == [FIRST_MS + 20]
    assert commit_log.clock_steps(damaged_one) == ()


def steps_before_the_last(last_ms: int, born_ms: int) -> int:
    store = WrittenStore()
    for ms in (50, 60):
        store.put(store_ms=FIRST_MS + ms)
    store.put(store_ms=last_ms)
    at = store.records[-1][0] + 40
    store.log[at : at + 8] = i64(born_ms)
    return len(commit_log.clock_steps(read_store(store.files())))


def test_the_last_record_may_be_the_first_after_a_step_of_the_clock() -> None:
    last_ms = FIRST_MS - 5000

    assert steps_before_the_last(last_ms, last_ms - 3) == 1
    assert not steps_before_the_last(last_ms, last_ms - 90_000)
    assert not steps_before_the_last(last_ms, last_ms + 10)


def test_a_flipped_bit_of_the_last_time_is_no_step_of_the_clock() -> None:
    last_ms = FIRST_MS + 65
    lower = [last_ms & ~(1 << bit) for bit in range(10, 40) if last_ms >> bit & 1]

    assert len(lower) > 5
    assert not any(steps_before_the_last(ms, ms - 3) for ms in lower)


@pytest.mark.parametrize(
    ("at", "data", "seen"),
    [
        (12, b"\xff", "queue_id"),
        (20, b"\xff", "queue_offset"),
        (36, b"\x01", "sys_flag"),
        (56, b"\xff", "store_timestamp"),
        (72, b"\xff", "reconsume_times"),
        (76, b"\x01", "prepared_transaction_offset"),
        (88 + 120 + 3 + 2, b"\1", "properties"),
        (88 + 120 + 3 + 2 + 4, b"\2", "properties"),
        (88 + 120 + 3 + 2 + 6, b"\xff", "properties"),
    ],
)
def test_cl_5_names_a_field_out_of_range(at: int, data: bytes, seen: str) -> None:
    violation = first("CL-5", in_record(31, at, data))

    assert violation.seen.startswith(seen)
    assert f"(phy_offset {STORE.records[31][0]})" in violation.where


def test_cl_5_checks_the_crc_of_an_empty_body_and_the_topic() -> None:
    data = record_bytes(0, topic="", body=b"")
    log = (data[:8] + b"\0\0\0\1" + data[12:]).ljust(4096, b"\0")

    violations = commit_log.fields_are_in_range.violations(judged({log_path(0): log}))

    seen = [violation.seen for violation in violations]
    assert seen == ["no topic", "body_crc 1 of an empty body"]


@pytest.mark.parametrize(("digits", "kind"), [(b"5106569830", "crc"), (None, "zeros")])
def test_cl_1_proves_the_crc_over_the_whole_record(
    digits: bytes | None, kind: str
) -> None:
    raw = record_bytes(
        0, properties=b"KEYS\x01K1\x02__CRC32#\x01" + b"0" * 10 + b"\x02"
    )
    crc = str(zlib.crc32(raw[:-20]) & 0x7FFFFFFF)[::-1].ljust(10, "0").encode()
    log = (raw[:-11] + (digits or crc) + b"\x02").ljust(4096, b"\0")

    found = judged({log_path(0): log})

    assert found.image.commit_log.stop.kind == kind
    broken = commit_log.every_record_is_whole.violations(found)
    assert [violation.seen[:12] for violation in broken] == (
        ["property CRC"] if digits else []
    )
