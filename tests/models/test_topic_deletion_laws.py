"""The laws of deleted topics, each on what breaks it."""

from __future__ import annotations

from zlib import crc32

import pytest
from written_store import WrittenStore

from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.store_image import read_store
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.topic_deletion import (
    deletion_ends_where_the_log_did,
    deletions_are_remembered,
    expired_deletions_are_forgotten,
    no_unit_points_at_the_dead,
    nothing_is_left_of_the_deleted,
    record_of_deletions_is_whole,
    what_is_retained_stays,
)

TOPIC = ("T0", -1)


def said(*lines: str) -> bytes:
    text = "".join([f"{line}\n" for line in ("crashmq deleted topics 1", *lines)])
    return text.encode() + b"%08x\n" % crc32(text.encode())


def judged_with(data: bytes) -> Judged:
    files = {**WrittenStore().fill(5).files(), DELETED_PATH: data}
    files.pop("abort", None)
    return Judged(read_store(files))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", said()[:-1], said("3 T0"), said("x -1 T0"), said("99999999 -1 T0")),
        said("1 -1 T9").replace(b"T9", b"T8"),
    ],
)
def test_a_record_of_deletions_is_whole_and_within_the_log(data: bytes) -> None:
    assert record_of_deletions_is_whole.violations(judged_with(data))
    assert not record_of_deletions_is_whole.violations(judged_with(said("1 -1 T9")))


def test_no_unit_may_point_at_the_dead() -> None:
    assert no_unit_points_at_the_dead.violations(judged_with(said("1 -1 T0")))
    assert not no_unit_points_at_the_dead.violations(judged_with(said("1 -1 T9")))


@pytest.mark.parametrize(
    ("found", "cut_short", "holds"),
    [
        ({TOPIC: 300}, {}, True),
        ({}, {}, False),
        ({TOPIC: 300, ("T1", 0): 9}, {}, False),
        ({TOPIC: 300, ("T1", 0): 400}, {("T1", 0): (400, 500)}, True),
        ({TOPIC: 300}, {("T1", 0): (400, 500)}, True),
    ],
)
def test_a_start_goes_by_the_deletions_there_were(
    found: dict[tuple[str, int], int],
    cut_short: dict[tuple[str, int], tuple[int, int]],
    holds: bool,
) -> None:
    violations = deletions_are_remembered.violations(
        found, {TOPIC: 300}, cut_short, 0, 1000
    )

    assert (not violations) == holds


def test_a_deletion_that_lost_its_log_moves_back_and_an_expired_one_may_go() -> None:
    law = deletions_are_remembered

    assert not law.violations({TOPIC: 200}, {TOPIC: 300}, {}, 0, 200)
    assert law.violations({TOPIC: 300}, {TOPIC: 300}, {}, 0, 200)
    assert not law.violations({}, {TOPIC: 300}, {}, 400, 1000)


@pytest.mark.parametrize(
    ("dead_below", "holds"), [(99, False), (100, True), (101, False), (-1, False)]
)
def test_a_deletion_takes_what_was_put_before(dead_below: int, holds: bool) -> None:
    violations = deletion_ends_where_the_log_did.violations(
        dead_below, 100, 100, had_messages=True
    )

    assert (not violations) == holds


def test_of_what_was_deleted_no_file_must_be_left() -> None:
    law = nothing_is_left_of_the_deleted
    queue, beside = "consumequeue/T0/1/0", "consumequeue_ext/T0/1/0"
    files = (queue, beside, "consumequeue/T00/1/0", "consumequeue/T0/11/0")

    assert [found.where for found in law.violations(files, "T0", 1)] == [queue, beside]
    assert len(law.violations(files, "T0", -1)) == 3
    assert law.violations(files, "T1", -1) == []


def test_a_deletion_is_forgotten_once_all_its_records_have_expired() -> None:
    law = expired_deletions_are_forgotten
    deletions = {TOPIC: 100, ("T1", 0): 101}

    assert not law.violations(deletions, 99)
    assert len(law.violations(deletions, 100)) == 1
    assert len(law.violations(deletions, 101)) == 2


def test_what_is_retained_stays_and_what_goes_is_counted() -> None:
    judge = what_is_retained_stays.violations

    assert not judge(["T1"], ["T0", "T2"], 2)
    assert not judge([""], [], 0)
    assert judge(["T1"], ["T0", "T1"], 2)
    assert judge([], ["%LMQ%a"], 1)
    assert judge([], ["SCHEDULE_TOPIC_XXXX"], 1)
    assert judge([], ["T0"], 2)
