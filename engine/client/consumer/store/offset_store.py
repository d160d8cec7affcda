"""OffsetStore: the offsets of one consumer, in memory and where they are persisted.

In memory there is an offset for each queue. They are persisted in a file of the client
(broadcasting) or at the broker (clustering). A negative answer is no offset:
``NOT_FOUND`` says that there is none, ``FAILED`` that it is unknown. Mistaking the one
for the other restarts the queue, and loses messages that were not consumed.

Source: org.apache.rocketmq.client.consumer.store.OffsetStore, ControllableOffset,
RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.runtime import Runtime

NOT_FOUND = -1
FAILED = -2


class ReadOffsetType(Enum):
    """Where an offset is looked up. Source: ReadOffsetType."""

    READ_FROM_MEMORY = "memory"
    READ_FROM_STORE = "store"
    MEMORY_FIRST_THEN_STORE = "memory, else store"


class OffsetStore(Protocol):
    """The offsets of one consumer."""

    def load(self) -> None:
        """Read the persisted offsets, if they are in a file of the client."""

    def update_offset(
        self, queue: MessageQueue, offset: int, *, increase_only: bool
    ) -> None:
        """Set an offset in memory; with ``increase_only`` never to a lower one."""

    def update_and_freeze_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set an offset that no update changes until the queue is removed."""

    def read_offset(self, queue: MessageQueue, read_type: ReadOffsetType) -> int:
        """The offset of a queue; ``NOT_FOUND`` or ``FAILED`` without one."""

    def persist(self, queue: MessageQueue) -> int:
        """Persist the offset of one queue; returns it, or ``NOT_FOUND``."""

    def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Persist the offsets of these queues."""

    def remove_offset(self, queue: MessageQueue) -> None:
        """Forget a queue's offset in memory."""

    def clone_offset_table(self, topic: str) -> Mapping[MessageQueue, int]:
        """The offsets in memory of a topic's queues; "": of all topics."""

    def heard_of(self, queue: MessageQueue, broker_life: int) -> None:
        """Record the broker life (``RecoveredEnds``) that answered an offset."""

    def broker_life_of(self, queue: MessageQueue) -> int:
        """The broker life in which a queue's offset was last answered; 0: none."""


@dataclass(slots=True)
class _ControllableOffset:
    value: int
    is_frozen: bool = False


class OffsetTable:
    """The offsets that a store has in memory.

    A frozen offset, and the broker life in which it was answered, do not change until
    the queue is removed.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._offsets: dict[MessageQueue, _ControllableOffset] = {}
        self._lives: dict[MessageQueue, int] = {}
        self._lock = runtime.lock()

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """As ``OffsetStore.update_offset``. Source: ControllableOffset#update."""
        with self._lock:
            known = self._offsets.get(queue)
            if known is None:
                self._offsets[queue] = _ControllableOffset(offset)
            elif not known.is_frozen:
                known.value = max(known.value, offset) if increase_only else offset

    def freeze(self, queue: MessageQueue, offset: int) -> None:
        """As ``OffsetStore.update_and_freeze_offset``."""
        with self._lock:
            self._offsets[queue] = _ControllableOffset(offset, is_frozen=True)

    def get(self, queue: MessageQueue) -> int:
        """The offset of a queue; ``NOT_FOUND`` without one."""
        with self._lock:
            known = self._offsets.get(queue)
            return known.value if known is not None else NOT_FOUND

    def remove(self, queue: MessageQueue) -> None:
        """Forget a queue."""
        with self._lock:
            self._offsets.pop(queue, None)
            self._lives.pop(queue, None)

    def heard_of(self, queue: MessageQueue, broker_life: int) -> None:
        """As ``OffsetStore.heard_of``; one step, so without the lock."""
        self._lives[queue] = broker_life

    def broker_life_of(self, queue: MessageQueue) -> int:
        """As ``OffsetStore.broker_life_of``; one step, so without the lock."""
        return self._lives.get(queue, 0)

    def of_topic(self, topic: str = "") -> dict[MessageQueue, int]:
        """The offsets of a topic's queues; "": of all topics."""
        with self._lock:
            return {
                queue: known.value
                for queue, known in self._offsets.items()
                if topic in ("", queue.topic)
            }


def read_offset_of(
    table: OffsetTable, queue: MessageQueue, read_type: ReadOffsetType
) -> int | None:
    """The answer of the memory to a read; None: the persisted offset must be read."""
    if read_type is ReadOffsetType.READ_FROM_STORE:
        return None
    offset = table.get(queue)
    if offset >= 0 or read_type is ReadOffsetType.READ_FROM_MEMORY:
        return offset
    return None
