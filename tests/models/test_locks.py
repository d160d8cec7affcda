"""Locks of queues: what answers of brokers tell of them, and what laws make of it."""

from __future__ import annotations

import pytest

from crashmq.models.history import OneQueue
from crashmq.models.knowledge.locks import NOBODY, UNSURE, Lock, Locks
from crashmq.models.laws.consumption import (
    a_free_lock_is_given,
    an_orderly_consumer_begins_locked,
    an_orderly_consumer_has_the_lock,
    one_consumer_has_the_lock,
)

C0, C1 = OneQueue("c0", "g", "T0", 0), OneQueue("c1", "g", "T0", 0)
KEY = ("g", "T0", 0)
MINUTE_MS, LEASE_MS = 60_000, 30_000


def test_a_lock_is_of_whoever_was_given_it_last() -> None:
    locks = Locks()
    assert locks.of(KEY).client == NOBODY

    locks.granted(C0, Lock("c0", 5, 6))
    assert locks.of(KEY) == Lock("c0", 5, 6)
    assert locks.of_clients == {C0: 6}
    locks.returned(C1, is_sure=True)
    assert locks.of(KEY).client == "c0"
    locks.returned(C0, is_sure=True)

    assert (locks.of(KEY).client, locks.of_clients) == (NOBODY, {})


def test_what_events_do_not_tell_in_order_leaves_a_lock_unsure() -> None:
    locks = Locks()
    locks.granted(C0, Lock("c0"))
    locks.returned(C0, is_sure=False)

    assert locks.of(KEY).client == UNSURE


def test_a_client_forgets_locks_of_queues_that_it_gave_up_and_a_broker_all() -> None:
    locks = Locks()
    for queue in (C0, C0._replace(queue_id=1), C1._replace(queue_id=2)):
        locks.granted(queue, Lock(queue.client))
    locks.forgotten("c0", (("T0", 1),))

    assert [*locks.of_clients] == [C0._replace(queue_id=1), C1._replace(queue_id=2)]
    assert locks.of(KEY).client == "c0"
    locks.broker_started()
    assert locks.of(KEY).client == NOBODY
    assert len(locks.of_clients) == 2
    locks.refused(C1._replace(queue_id=2))
    assert len(locks.of_clients) == 1


@pytest.mark.parametrize(
    ("lock", "at_ms", "may_be_given", "may_be_refused"),
    [
        (Lock(NOBODY), 0, True, False),
        (Lock(UNSURE), 0, True, True),
        (Lock("c1", 0, 0), 10 * MINUTE_MS, True, False),
        (Lock("c0", 100, 100), 100 + MINUTE_MS, False, True),
        (Lock("c0", 100, 100), 101 + MINUTE_MS, True, False),
        (Lock("c0", 100, 200), 101 + MINUTE_MS, True, True),
    ],
)
def test_a_lock_that_another_one_has_is_given_after_a_minute(
    lock: Lock, at_ms: int, may_be_given: bool, may_be_refused: bool
) -> None:
    given = one_consumer_has_the_lock.violations(C1, lock, at_ms)
    refused = a_free_lock_is_given.violations(C1, lock, at_ms)

    assert (not given, not refused) == (may_be_given, may_be_refused)


@pytest.mark.parametrize(
    ("locks", "ended_ms", "are_held"),
    [
        ((), 0, False),
        ((Lock("c0", 100, 100),), 100 + MINUTE_MS, True),
        ((Lock("c0", 100, 100),), 101 + MINUTE_MS, False),
        ((Lock("c0", 100, 200),), 101 + MINUTE_MS, None),
        ((Lock("c0", 0, 0), Lock("c1", 200, 200)), 101 + MINUTE_MS, True),
        ((Lock("c0", 0, 0), Lock("c1", 1, 1)), 101 + MINUTE_MS, False),
        ((Lock(UNSURE),), 101 + MINUTE_MS, None),
        ((Lock(UNSURE), Lock("c1", 200, 200)), 101 + MINUTE_MS, True),
    ],
)
def test_a_group_holds_a_lock_until_the_last_of_them_has_expired(
    locks: tuple[Lock, ...], ended_ms: int, are_held: bool | None
) -> None:
    known = Locks()
    for number, lock in enumerate(locks):
        known.of_broker["g", "T0", number] = lock
    known.of_broker["h", "T0", 0] = Lock("c9", ended_ms, ended_ms)

    assert known.are_held("g", ended_ms, ended_ms) is are_held


def test_a_step_in_which_the_last_lock_may_expire_does_not_tell() -> None:
    known = Locks()
    known.granted(C0, Lock("c0", 100, 100))

    assert known.are_held("g", 100 + MINUTE_MS, 101 + MINUTE_MS) is None


def test_an_orderly_consumer_works_under_a_lock_that_it_was_told_of_lately() -> None:
    given = an_orderly_consumer_has_the_lock.violations
    begins = an_orderly_consumer_begins_locked.violations

    assert not given(C0, 7, LEASE_MS)
    assert given(C0, 7, LEASE_MS + 1)
    assert given(C0, 7, None)
    assert not begins(C0, has_lock=True)
    assert begins(C0, has_lock=False)
