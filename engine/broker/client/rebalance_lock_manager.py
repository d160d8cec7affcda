"""RebalanceLockManager: which client of a group may consume a queue in order.

A client holds a lock for 60 seconds after it was last granted. It asks again every 20
seconds, and treats its lock as lost after 30. Locks are only in memory: a restarted
broker has none.

Source: org.apache.rocketmq.broker.client.rebalance.RebalanceLockManager, RocketMQ 5.3.
Differs: if the clock was set back, the time of a lock that was granted later by that
clock starts again; there, it lasts until the clock has caught up.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

REBALANCE_LOCK_MAX_LIVE_TIME = 60_000

GRANTED = probe("rebalance_lock.granted", "a client got the lock of a queue")
REFUSED = probe("rebalance_lock.refused", "another client held the lock of a queue")
TAKEN_OVER = probe("rebalance_lock.taken_over", "a lock had expired, another got it")


@dataclass(slots=True)
class _Lock:
    client_id: str
    last_update_ms: int

    def is_expired(self, now_ms: int) -> bool:
        self.last_update_ms = min(self.last_update_ms, now_ms)
        return now_ms - self.last_update_ms > REBALANCE_LOCK_MAX_LIVE_TIME


class RebalanceLockManager:
    """The locks of all groups."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = runtime.lock()
        self._locks: dict[str, dict[MessageQueue, _Lock]] = {}

    def try_lock_batch(
        self, group: str, queues: Collection[MessageQueue], client_id: str
    ) -> tuple[MessageQueue, ...]:
        """Lock queues or renew their locks; returns those the client now holds, sorted.

        Source: RebalanceLockManager#tryLockBatch.
        """
        with self._lock:
            now_ms = self._runtime.now_ms()
            locks = self._locks.setdefault(group, {})
            return tuple(
                queue
                for queue in sorted(queues)
                if _try_lock(locks, queue, client_id, now_ms)
            )

    def unlock_batch(
        self, group: str, queues: Collection[MessageQueue], client_id: str
    ) -> None:
        """Release those of the queues that the client holds; other locks stay.

        Source: RebalanceLockManager#unlockBatch.
        """
        with self._lock:
            locks = self._locks.get(group, {})
            for queue in queues:
                known = locks.get(queue)
                if known is not None and known.client_id == client_id:
                    del locks[queue]

    def is_locked(self, group: str, queue: MessageQueue, client_id: str) -> bool:
        """Whether the client holds the queue's lock, and it has not expired."""
        with self._lock:
            known = self._locks.get(group, {}).get(queue)
            if known is None or known.client_id != client_id:
                return False
            return not known.is_expired(self._runtime.now_ms())

    def is_lock_all_expired(self, group: str) -> bool:
        """Whether no client of a group holds any queue.

        Source: RebalanceLockManager#isLockAllExpired.
        """
        with self._lock:
            now_ms = self._runtime.now_ms()
            locks = self._locks.get(group, {})
            return all(lock.is_expired(now_ms) for lock in locks.values())


def _try_lock(
    locks: dict[MessageQueue, _Lock], queue: MessageQueue, client_id: str, now_ms: int
) -> bool:
    known = locks.get(queue)
    if known is not None and known.client_id != client_id:
        if not known.is_expired(now_ms):
            REFUSED.hit()
            return False
        TAKEN_OVER.hit()
    GRANTED.hit()
    locks[queue] = _Lock(client_id, now_ms)
    return True
