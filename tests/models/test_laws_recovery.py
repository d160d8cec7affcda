from __future__ import annotations

from dataclasses import replace
from zlib import crc32

import pytest
from written_store import (
    WrittenStore,
    log_path,
    patched,
    summed_slot_bytes,
    without,
)

from crashmq.models.files.store_image import read_store
from crashmq.models.laws.recovery import (
    orderly_end_is_durable,
    refusal_changes_nothing,
    refuses_only_damage,
    second_start_changes_nothing,
    start_after_orderly_end_changes_nothing,
    start_knows_how_it_ended,
    start_reads_what_it_must,
)
from crashmq.models.laws.run import nobody_else_opens_it, nothing_is_held
from crashmq.models.observations import Failed, Refused, Skipped, Started, Stopped
from crashmq.models.program import Setup

FILES = WrittenStore().fill(60).files()
WINDOWED = Setup(start_window=0)


@pytest.mark.parametrize(
    "after",
    [
        patched(FILES, log_path(4096), 7, b"?"),
        without(FILES, log_path(4096)),
        {**FILES, "consumequeue/T0/7/00000000000000000000": b""},
    ],
)
def test_a_start_that_refused_or_was_the_second_must_change_nothing(
    after: dict[str, bytes],
) -> None:
    for law in (
        refusal_changes_nothing,
        second_start_changes_nothing,
        start_after_orderly_end_changes_nothing,
    ):
        assert law.violations(FILES, FILES) == []
        assert len(law.violations(FILES, after)) == 1


def test_of_the_index_a_start_may_remove_what_has_expired() -> None:
    law, index = start_after_orderly_end_changes_nothing, "index/20231114221320000"
    before = {**FILES, index: b"1"}

    assert law.violations(before, FILES, [index]) == []
    assert len(law.violations(before, FILES)) == 1
    assert len(law.violations(before, {**FILES, index: b"2"}, [index])) == 1


def test_only_a_second_start_may_write_its_marks() -> None:
    after = {**FILES, "checkpoint": b"other", "abort": b"1"}

    assert second_start_changes_nothing.violations(FILES, after) == []
    assert len(refusal_changes_nothing.violations(FILES, after)) == 2


def test_a_start_must_not_read_what_the_mark_vouches_for() -> None:
    image = read_store(FILES)
    mark = image.checkpoint.mark
    assert mark is not None
    assert len(image.commit_log.files) == 4
    proven = mark._replace(dispatched_offset=mark.durable_offset)
    checkpoint = image.checkpoint._replace(mark=proven)
    found = replace(image, checkpoint=checkpoint)
    whole, windowed = 4 * 4096, 2 * 4096

    assert start_reads_what_it_must.violations(image, whole, WINDOWED) == []
    assert start_reads_what_it_must.violations(found, windowed, WINDOWED) == []
    assert len(start_reads_what_it_must.violations(found, whole, WINDOWED)) == 1
    assert start_reads_what_it_must.violations(found, whole, Setup()) == []


def test_a_clean_end_must_leave_every_file_synced_and_any_end_must_close_it() -> None:
    left = Stopped(clean=True, unsynced=("checkpoint",), left_open=("lock", "abort"))
    unclean = Stopped(clean=False, unsynced=("checkpoint",))

    assert len(orderly_end_is_durable.violations(left)) == 1
    assert orderly_end_is_durable.violations(unclean) == []
    assert len(nothing_is_held.violations(left)) == 2
    assert nothing_is_held.violations(unclean) == []


def test_a_directory_in_use_must_be_refused_to_others() -> None:
    assert nobody_else_opens_it.violations(Refused("held")) == []
    assert nobody_else_opens_it.violations(Skipped("down")) == []
    assert len(nobody_else_opens_it.violations(Started(last_exit_ok=False))) == 1
    assert len(nobody_else_opens_it.violations(Failed("OSError", "EIO"))) == 1


def test_bytes_that_no_crc_covers_are_a_reason_to_refuse_below_the_mark() -> None:
    end = len(WrittenStore().fill(60).log)
    sums = tuple(
        crc32(FILES[log_path(base)][: end - base]) for base in range(0, end, 4096)
    )
    proven = patched(FILES, "checkpoint", 512, summed_slot_bytes(8, end, 0, sums))
    whole = read_store(proven)
    flagged = read_store(patched(proven, log_path(0), 16, b"?"))
    law = refuses_only_damage

    assert law.violations(whole, whole, "", log_is_damaged=True) == []
    assert len(law.violations(whole, whole, "no", log_is_damaged=True)) == 1
    assert law.violations(flagged, flagged, "no", log_is_damaged=True) == []
    assert len(law.violations(flagged, flagged, "", log_is_damaged=True)) == 1


def test_a_start_must_tell_an_orderly_end_from_a_crash() -> None:
    for last_exit_ok in (True, False):
        start = Started(last_exit_ok)
        told = start_knows_how_it_ended.violations(start, ended=last_exit_ok)
        wrong = start_knows_how_it_ended.violations(start, ended=not last_exit_ok)
        assert (told, len(wrong)) == ([], 1)
