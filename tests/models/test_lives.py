"""Which offsets of earlier runs are good: those that no start since has lost."""

from __future__ import annotations

from crashmq.models.knowledge.lives import RUNS_KEPT, Lives

T0 = ("T0", 0)


def after(*ends: int | None) -> Lives:
    """Lives after starts that have found these ends of a queue."""
    lives = Lives()
    for run, end in enumerate(ends, start=1):
        lives.began(run, None if end is None else {T0: end})
    return lives


def test_an_offset_is_good_up_to_the_lowest_end_since_it_was_told() -> None:
    lives = after(9, 5, 7)

    assert lives.are_good(T0, 9, run=3, now=3)
    assert lives.are_good(T0, 7, run=2, now=3)
    assert lives.are_good(T0, 5, run=1, now=3)
    assert not lives.are_good(T0, 6, run=1, now=3)


def test_nothing_is_known_of_a_start_that_found_damage() -> None:
    lives = after(9, None, 9)

    assert lives.are_good(T0, 3, run=2, now=3)
    assert not lives.are_good(T0, 3, run=1, now=3)


def test_nothing_is_known_of_deleted_topics_and_of_lost_tables() -> None:
    deleted, lost = after(9, 9), after(9, 9)
    deleted.may_be_deleted("T0")
    lost.forget()

    assert not deleted.are_good(T0, 1, run=1, now=2)
    assert not lost.are_good(T0, 1, run=1, now=2)


def test_only_the_newest_starts_are_kept() -> None:
    assert len(after(*range(9)).ends) == RUNS_KEPT


def test_a_queue_ended_at_the_lowest_of_the_starts_since_then() -> None:
    lives, unsure = after(9, 5, 7), after(9, None, 7)

    assert lives.end_since(T0, 1, 3) == 5
    assert lives.end_since(T0, 2, 3) == 7
    assert lives.end_since(("T1", 0), 2, 3) == 0
    assert lives.end_since(T0, 3, 3) is None
    assert unsure.end_since(T0, 1, 3) is None
