from __future__ import annotations

import pytest

from crashmq.models.history import OneQueue
from crashmq.models.laws.giving_up import (
    CONSUME_TIMEOUT_MS,
    nothing_is_given_up_too_soon,
    nothing_is_sent_back_twice,
    what_has_expired_is_given_up,
)
from crashmq.models.laws.pull_loop import a_suspended_consumer_does_not_pull

QUEUE = OneQueue("c0", "g", "T0", 0)


@pytest.mark.parametrize(
    ("had_ms", "given_up", "is_wrong"),
    [
        (900_000, 0, False),
        (900_001, 0, True),
        (900_001, 15, True),
        (900_001, 16, False),
    ],
)
def test_what_is_left_is_young_or_behind_sixteen_others(
    had_ms: int, given_up: int, is_wrong: bool
) -> None:
    found = what_has_expired_is_given_up.violations(QUEUE, 3, had_ms, given_up)

    assert bool(found) is is_wrong


@pytest.mark.parametrize("had_ms", [None, -1, 0, CONSUME_TIMEOUT_MS])
def test_what_is_given_up_was_had_for_long(had_ms: int | None) -> None:
    assert nothing_is_given_up_too_soon.violations(QUEUE, 3, had_ms)
    assert not nothing_is_given_up_too_soon.violations(QUEUE, 3, 900_001)


def test_what_was_sent_back_is_so_once() -> None:
    assert nothing_is_sent_back_twice.violations(QUEUE, "k", again=True)
    assert not nothing_is_sent_back_twice.violations(QUEUE, "k", again=False)


def test_who_is_suspended_pulls_no_queue() -> None:
    found = a_suspended_consumer_does_not_pull.violations("c0", [QUEUE, QUEUE])

    assert len(found) == 2
    assert not a_suspended_consumer_does_not_pull.violations("c0", [])
