"""What is known of the queue locks of orderly consumers.

A broker grants a lock to one client of a group at a time, and keeps locks only in
memory. A client uses a lock for a while after its last confirmation without asking.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crashmq.models.files.offsets import OffsetKey
from crashmq.models.history import OneQueue
from crashmq.models.plain_state import Forked

NOBODY: Final = ""
UNSURE: Final = "?"
"""Who has a lock when the answers of one step do not tell."""

LOCK_MS: Final = 60_000
"""A broker's lock is its client's so long after it was taken or renewed.

Source: RebalanceLockManager#REBALANCE_LOCK_MAX_LIVE_TIME.
"""

LEASE_MS: Final = 30_000
"""A client works on a queue so long after it was told that the lock is its own.

Source: ProcessQueue#REBALANCE_LOCK_MAX_LIVE_TIME.
"""


class Lock(NamedTuple):
    """A queue lock at the broker.

    Attributes:
        client: the owner; or ``NOBODY``; or ``UNSURE`` if it is unknown.
        least_ms: the earliest time at which it was granted or renewed last.
        most_ms: the latest such time.
    """

    client: str
    least_ms: int = 0
    most_ms: int = 0


_FREE: Final = Lock(NOBODY)


@dataclass(slots=True)
class Locks(Forked):
    """The queue locks of all groups, at the broker and as their clients know them.

    Attributes:
        of_broker: by group, topic and queue, the lock at the broker.
        of_clients: by consumer and queue, when the broker last confirmed the lock.
    """

    of_broker: dict[OffsetKey, Lock] = field(default_factory=dict)
    of_clients: dict[OneQueue, int] = field(default_factory=dict)

    def of(self, key: OffsetKey) -> Lock:
        """The lock of a queue."""
        return self.of_broker.get(key, _FREE)

    def is_kept(self, queue: OneQueue, at_ms: int) -> bool:
        """Whether the broker certainly holds the queue's lock for this client."""
        lock = self.of(queue[1:])
        return lock.client == queue.client and at_ms - lock.least_ms <= LOCK_MS

    def is_lasting(self, queue: OneQueue, at_ms: int) -> bool:
        """Whether the broker confirmed a client's lock recently enough to use it."""
        told_ms = self.of_clients.get(queue)
        return told_ms is not None and 0 < at_ms - told_ms < LEASE_MS

    def are_held(self, group: str, begun_ms: int, ended_ms: int) -> bool | None:
        """Whether a client of a group holds a lock at some time in a step.

        None: unknown. Both times are the broker's.
        """
        locks = [one for key, one in self.of_broker.items() if key[0] == group]
        held = [one for one in locks if one.client not in (NOBODY, UNSURE)]
        if any(ended_ms - one.least_ms <= LOCK_MS for one in held):
            return True
        is_sure = len(held) == len(locks)
        are_over = all(begun_ms - one.most_ms > LOCK_MS for one in held)
        return False if is_sure and are_over else None

    def granted(self, queue: OneQueue, lock: Lock) -> None:
        """Record that a broker confirmed a lock to a client."""
        self.of_broker[queue[1:]] = lock
        self.of_clients[queue] = max(lock.least_ms, lock.most_ms)

    def refused(self, queue: OneQueue) -> None:
        """Record that a broker refused a lock to a client."""
        self.of_clients.pop(queue, None)

    def returned(self, queue: OneQueue, *, is_sure: bool) -> None:
        """Record that a client unlocks a queue, if it holds the lock."""
        self.of_clients.pop(queue, None)
        if not is_sure:
            self.of_broker[queue[1:]] = Lock(UNSURE)
        elif self.of(queue[1:]).client == queue.client:
            del self.of_broker[queue[1:]]

    def forgotten(self, client: str, but_for: tuple[tuple[str, int], ...]) -> None:
        """Record that only the queues ``but_for`` are assigned to a client now."""
        gone = [
            one
            for one in self.of_clients
            if one.client == client and (one.topic, one.queue_id) not in but_for
        ]
        for one in gone:
            del self.of_clients[one]

    def clock_was_set_back(self) -> None:
        """Record that nobody knows any more when a lock is over."""
        self.of_broker = dict.fromkeys(self.of_broker, Lock(UNSURE))

    def broker_started(self) -> None:
        """Record that a broker has started, and so has lost all locks."""
        self.of_broker = {}
