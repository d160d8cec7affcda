from __future__ import annotations

from zlib import crc32

import pytest
from damaged_store import END, FILES, broken, first, i64, in_unit
from written_store import (
    FIRST_MS,
    log_path,
    patched,
    queue_path,
    slot_bytes,
    summed_slot_bytes,
    without,
)

from crashmq.models.files.store_image import Mark, read_store
from crashmq.models.laws import checkpoint


def test_cp_1_names_a_mark_past_the_log_and_one_before_it() -> None:
    ahead = patched(FILES, "checkpoint", 1024, slot_bytes(8, 0, END + 1))
    headless = without(FILES, log_path(0))

    assert first("CP-1", ahead, clean=False).where == "checkpoint byte 1024"
    assert first("CP-1", headless).seen == "log_min_offset 0"


def test_cp_2_names_a_flushed_time_past_the_newest_record() -> None:
    ahead = patched(FILES, "checkpoint", 0, i64(FIRST_MS + 60))

    assert first("CP-2", ahead, clean=False).where == "checkpoint byte 0"


def test_cp_3_asks_for_the_units_of_all_that_was_stored_before() -> None:
    files = without(FILES, queue_path(base=400))
    early = patched(files, "checkpoint", 8, i64(FIRST_MS + 40))
    late = patched(files, "checkpoint", 8, i64(FIRST_MS + 41))

    assert "CP-3" not in broken(early, clean=False)
    assert "CP-3" in broken(late, clean=False)
    assert "CP-3" not in broken(late, clean=False, monotonic_clock=False)


def test_cp_3_takes_no_torn_unit_for_a_unit_after_a_crash() -> None:
    files = in_unit(14, i64(5))

    assert broken(files, clean=False) == {"CP-3"}


def test_cp_4_names_each_mark_that_fell() -> None:
    before = read_store(FILES).checkpoint
    older = patched(FILES, "checkpoint", 0, i64(5, 5))
    older = patched(older, "checkpoint", 512, slot_bytes(6, 0, END - 1))
    after = read_store(older).checkpoint
    gone = read_store(patched(FILES, "checkpoint", 512, bytes(36))).checkpoint

    law = checkpoint.marks_never_move_backwards

    assert law.violations(before, before) == []
    assert [v.where for v in law.violations(before, after)] == [
        "checkpoint byte 0",
        "checkpoint byte 8",
        "checkpoint byte 512",
        "checkpoint byte 512",
    ]
    assert [v.seen for v in law.violations(before, gone)] == ["no durable mark"]


def test_cp_4_asks_the_same_of_what_was_dispatched() -> None:
    marks = [
        read_store(patched(FILES, "checkpoint", 1024, slot)).checkpoint
        for slot in (
            summed_slot_bytes(8, END, END, ()),
            summed_slot_bytes(9, END, 1, ()),
        )
    ]

    (fallen,) = checkpoint.marks_never_move_backwards.violations(*marks)

    assert fallen.seen == "dispatched_offset 1"


def test_cp_4_says_that_what_another_program_wrote_stays_its_own() -> None:
    mark = Mark(7, 0, 200, 4096, 200, 512, 200, (), 150)
    older = read_store(FILES).checkpoint._replace(mark=mark)
    law = checkpoint.marks_never_move_backwards

    def becomes(changed: Mark) -> list[str]:
        newer = older._replace(mark=changed._replace(sequence=8))
        return [violation.seen for violation in law.violations(older, newer)]

    assert becomes(mark._replace(others_until=149)) == ["others_until 149"]
    assert becomes(mark._replace(others_until=160)) == []
    cut = mark._replace(others_until=100, durable_offset=100)
    assert becomes(cut) == ["durable_offset 100"]


@pytest.mark.parametrize(
    ("at", "data", "where"),
    [
        (0, i64(-1), "checkpoint byte 0"),
        (16, i64(-7), "checkpoint byte 16"),
        (24, i64(1 << 40), "checkpoint byte 24"),
        (32, i64(-2), "checkpoint byte 32"),
    ],
)
def test_cp_5_names_a_field_out_of_range(at: int, data: bytes, where: str) -> None:
    assert first("CP-5", patched(FILES, "checkpoint", at, data)).where == where


def test_cp_5_names_a_length_that_is_no_checkpoints_and_two_torn_slots() -> None:
    short = {**FILES, "checkpoint": FILES["checkpoint"][:3000]}
    torn = patched(FILES, "checkpoint", 512, b"\1")
    torn = patched(torn, "checkpoint", 1024, b"\1")

    assert first("CP-5", short).seen == "3000 bytes"
    assert first("CP-5", torn).where == "checkpoint byte 512"


LOG = b"".join(FILES[path] for path in sorted(FILES) if path.startswith("commitlog"))
SUMS = tuple(crc32(LOG[at : min(at + 4096, END)]) for at in range(0, END, 4096))


def marked(slot: bytes, files: dict[str, bytes] = FILES) -> dict[str, bytes]:
    return patched(files, "checkpoint", 1024, slot)


def test_cp_7_asks_for_the_unit_of_every_record_the_mark_says_was_dispatched() -> None:
    whole = marked(summed_slot_bytes(8, END, END, SUMS))
    lacking = without(whole, queue_path(base=400))
    ahead = marked(summed_slot_bytes(8, END, END + 1, SUMS))

    assert broken(whole, clean=False) == set()
    assert "CP-7" in broken(lacking, clean=False)
    assert "CP-7" in broken(ahead, clean=False)


@pytest.mark.parametrize("at", [16, 60, 4095, 4096 + 16, END - 1])
def test_cp_8_names_the_file_of_any_changed_byte_below_the_mark(at: int) -> None:
    slot = summed_slot_bytes(8, END, 0, SUMS)
    path, byte = log_path(at - at % 4096), at % 4096
    rotten = patched(FILES, path, byte, bytes((FILES[path][byte] ^ 1,)))

    assert first("CP-8", marked(slot, rotten), clean=False).where == path


def test_cp_8_asks_nothing_of_what_lies_past_the_mark_or_has_no_sum() -> None:
    rotten = patched(FILES, log_path(4096), 16, b"!")

    for slot in (
        summed_slot_bytes(8, END, 0, SUMS[2:]),
        summed_slot_bytes(8, 4096, 0, SUMS[:1]),
        slot_bytes(8, 0, END),
    ):
        assert "CP-8" not in broken(marked(slot, rotten), clean=False)


@pytest.mark.parametrize(
    ("slot", "seen"),
    [
        (summed_slot_bytes(8, END, 0, SUMS), []),
        (summed_slot_bytes(8, END - 1, 0, SUMS), [f"durable_offset {END - 1}"]),
        (summed_slot_bytes(8, END, 0, ()), ["no sum"]),
    ],
)
def test_cp_9_asks_for_a_mark_and_its_sum(slot: bytes, seen: list[str]) -> None:
    image = read_store(marked(slot))

    broken_by = checkpoint.round_marks_what_is_flushed.violations(image, END)

    assert [violation.seen for violation in broken_by] == seen


@pytest.mark.parametrize("at", [40, 511, 1536, 4095])
def test_cp_10_names_what_lies_where_no_field_is(at: int) -> None:
    law = checkpoint.rest_of_the_checkpoint_is_zero
    image = read_store(patched(FILES, "checkpoint", at, b"?"))

    assert law.violations(read_store(FILES)) == []
    assert [found.where for found in law.violations(image)] == [f"checkpoint byte {at}"]
