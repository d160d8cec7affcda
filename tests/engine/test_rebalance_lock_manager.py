from __future__ import annotations

import pytest

from crashmq.engine.broker.client.rebalance_lock_manager import RebalanceLockManager
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.harness.scheduling.sim_runtime import SimRuntime

Q0, Q1, Q2 = (MessageQueue("T", "broker-a", number) for number in range(3))


@pytest.fixture
def runtime() -> SimRuntime:
    return SimRuntime(1_700_000_000_000)


@pytest.fixture
def locks(runtime: SimRuntime) -> RebalanceLockManager:
    return RebalanceLockManager(runtime)


def test_a_queue_has_one_holder_in_each_group(locks: RebalanceLockManager) -> None:
    assert locks.try_lock_batch("g", [Q1, Q0], "a") == (Q0, Q1)
    assert locks.try_lock_batch("g", [Q0, Q2], "b") == (Q2,)
    assert locks.try_lock_batch("h", [Q0], "b") == (Q0,)
    assert locks.is_locked("g", Q0, "a")
    assert not locks.is_locked("g", Q0, "b")
    assert not locks.is_locked("none", Q0, "a")


def test_only_its_holder_unlocks_a_queue(locks: RebalanceLockManager) -> None:
    locks.try_lock_batch("g", [Q0, Q1], "a")

    locks.unlock_batch("g", [Q0], "b")
    locks.unlock_batch("none", [Q0], "a")
    assert locks.try_lock_batch("g", [Q0], "b") == ()

    locks.unlock_batch("g", [Q0], "a")
    assert locks.try_lock_batch("g", [Q0, Q1], "b") == (Q0,)


def test_a_lock_expires_after_60_seconds(
    locks: RebalanceLockManager, runtime: SimRuntime
) -> None:
    locks.try_lock_batch("g", [Q0], "a")
    runtime.advance(60_000)
    assert locks.try_lock_batch("g", [Q0], "b") == ()
    assert not locks.is_lock_all_expired("g")

    runtime.advance(1)
    assert locks.is_lock_all_expired("g")
    assert not locks.is_locked("g", Q0, "a")
    assert locks.try_lock_batch("g", [Q0], "b") == (Q0,)
    assert locks.try_lock_batch("g", [Q0], "a") == ()


def test_its_holder_holds_a_lock_longer_by_asking_again(
    locks: RebalanceLockManager, runtime: SimRuntime
) -> None:
    locks.try_lock_batch("g", [Q0], "a")
    runtime.advance(50_000)
    assert locks.try_lock_batch("g", [Q0], "a") == (Q0,)
    runtime.advance(50_000)

    assert locks.try_lock_batch("g", [Q0], "b") == ()
    assert locks.is_lock_all_expired("none")
