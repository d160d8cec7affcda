from __future__ import annotations

import pytest

from crashmq.models.history import RoundDone, Step
from crashmq.models.knowledge.rounds import Rounds, Within
from crashmq.models.laws.registry import LawViolated
from crashmq.models.laws.rounds import (
    group_commit_flushes_all,
    is_enough,
    next_file_is_there,
    nobody_waits_for_longer,
    round_answers_whom_it_covers,
    round_commits_what_is_enough,
    round_deletes_a_batch_at_most,
    round_leaves_what_is_little,
)
from crashmq.models.observations import Positions, Ran
from crashmq.models.program import FLUSH_THOROUGH_MS, Setup

LARGE = Setup(log_file_size=1 << 16)


def positions(end: int, flushed: int, committed: int | None = None) -> Positions:
    committed = end if committed is None else committed
    return Positions(0, end, flushed, 0, committed, committed)


def turned(
    before: Positions, after: Positions, service: str, work: int = 1
) -> RoundDone:
    return RoundDone(service, work, 1, 0, before, after)


@pytest.mark.parametrize(
    ("start", "end", "is_full", "enough"),
    [
        (0, 4 * 4096, False, True),
        (0, 4 * 4096 - 1, False, False),
        (4095, 4 * 4096, False, True),  # by the numbers of the pages, as RocketMQ does
        (4096, 5 * 4096 - 1, False, False),
        (10, 11, True, True),
        (11, 11, True, False),
    ],
)
def test_enough_is_a_difference_of_pages_or_any_byte_of_a_full_file(
    start: int, end: int, is_full: bool, enough: bool
) -> None:
    assert is_enough(start, end, 4, is_full=is_full) is enough
    assert is_enough(start, end, 0, is_full=False) is (end > start)


def test_a_flush_of_too_few_pages_is_more_than_is_due() -> None:
    before = positions(3 * 4096, 0)
    did, left = positions(3 * 4096, 3 * 4096), before

    round_leaves_what_is_little.hold(
        {}, turned(before, left, "flush_commit_log"), LARGE
    )
    with pytest.raises(LawViolated):
        round_leaves_what_is_little.hold(
            {}, turned(before, did, "flush_commit_log"), LARGE
        )


def test_a_file_that_is_written_full_may_be_flushed_though_its_end_waits() -> None:
    setup = Setup(log_file_size=4096)
    before, after = positions(5000, 0, 3000), positions(5000, 3000, 3000)

    round_leaves_what_is_little.hold(
        {}, turned(before, after, "flush_commit_log"), setup
    )


def test_a_commit_takes_four_pages_and_leaves_three() -> None:
    for pages, breaks in ((3, False), (4, True)):
        stood = positions(pages * 4096, 0, 0)
        done = turned(stood, stood, "commit", work=0)
        assert bool(round_commits_what_is_enough.violations(done, LARGE)) is breaks


def test_group_commit_leaves_no_byte_of_its_file() -> None:
    before = positions(100, 0)

    group_commit_flushes_all.hold({}, turned(before, positions(100, 100), ""), LARGE)
    with pytest.raises(LawViolated):
        group_commit_flushes_all.hold({}, turned(before, positions(100, 99), ""), LARGE)


def test_a_round_deletes_no_more_than_a_batch() -> None:
    setup = Setup(log_file_size=4096, delete_batch=2)
    before = Positions(0, 40_000, 40_000, 40_000)
    after = Positions(3 * 4096, 40_000, 40_000, 40_000)
    done = turned(before, after, "clean_commit_log", work=2)

    round_deletes_a_batch_at_most.hold({}, done, setup, is_alone=False)
    with pytest.raises(LawViolated):
        round_deletes_a_batch_at_most.hold({}, done, setup, is_alone=True)


def test_the_next_file_is_due_once_a_put_has_begun_one() -> None:
    setup = Setup(log_file_size=4096)
    there = {f"commitlog/{4096:020d}": b""}

    next_file_is_there.hold({}, positions(10, 0), 4096, setup, {})  # begun before
    next_file_is_there.hold({}, positions(10, 0), 0, setup, there)
    with pytest.raises(LawViolated):
        next_file_is_there.hold({}, positions(10, 0), 0, setup, {})


def test_a_put_waits_five_seconds_and_what_it_stood_still() -> None:
    nobody_waits_for_longer.hold({}, [(5000, 0), (5001, 1)], [5000])
    with pytest.raises(LawViolated):
        nobody_waits_for_longer.hold({}, [(5001, 0)], [])
    with pytest.raises(LawViolated):
        nobody_waits_for_longer.hold({}, [], [4999])


def test_a_put_that_a_round_covered_does_not_wait_for_the_next() -> None:
    round_answers_whom_it_covers.hold({}, [])
    with pytest.raises(LawViolated):
        round_answers_whom_it_covers.hold({}, [(0, 7)])


def test_rounds_know_when_a_flush_takes_everything() -> None:
    rounds, stood = Rounds(), positions(0, 0)
    rounds.begin_life(0, 0)

    def takes_all(at_ms: int) -> bool | None:
        done = RoundDone("flush_commit_log", 0, 1, at_ms, stood, stood)
        return rounds.takes_all(done)

    assert takes_all(10_000) is True  # the first of a life
    assert takes_all(10_000 + FLUSH_THOROUGH_MS - 1) is False
    assert takes_all(10_000 + FLUSH_THOROUGH_MS) is True
    assert takes_all(11_000) is True  # the clock was set back
    rounds.saw_unclear(Step.that_saw(Ran(0)), "flush_commit_log")
    assert takes_all(11_500) is None


def test_what_may_be_long_ago_or_not_is_not_known() -> None:
    within = Within(1000, 1500)

    assert within.is_past(3500, 2000) is True
    assert within.is_past(2999, 2000) is False
    assert within.is_past(3200, 2000) is None
    assert within.is_past(1200, 2000) is None
    assert within.is_past(999, 2000) is True
