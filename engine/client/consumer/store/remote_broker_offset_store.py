"""RemoteBrokerOffsetStore: the offsets of a clustering consumer, stored at the broker.

A persist sends the offsets one-way: the client does not learn whether they arrived, and
the next persist sends them again.

Source: org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore, RocketMQ
5.3; up to 4.9 any error of the broker counted as "there is none".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from crashmq.engine.client.consumer.store.offset_store import (
    FAILED,
    NOT_FOUND,
    OffsetTable,
    ReadOffsetType,
    read_offset_of,
)
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

UNSENT = probe("remote_offset_store.unsent", "a commit did not come to the broker")
UNKNOWN = probe("remote_offset_store.unknown", "a broker could not say an offset")


class OffsetNotFound(Exception):
    """The broker has no offset of the group and queue, in the life of that number."""

    def __init__(self, broker_life: int = 0) -> None:
        super().__init__(f"no offset in life {broker_life} of the broker")
        self.broker_life = broker_life


class BrokerFailed(Exception):
    """The broker could not be asked, or answered with an error."""


class KeptOffset(NamedTuple):
    """A broker's answer for a group: the offset, and the broker's life."""

    offset: int
    broker_life: int = 0


class OffsetBroker(Protocol):
    """The requests of an offset store to the broker of a queue."""

    def query_consumer_offset(self, group: str, queue: MessageQueue) -> KeptOffset:
        """The offset of a group.

        Raises:
            OffsetNotFound: it has none.
            BrokerFailed: it is unknown.
        """

    def update_consumer_offset_oneway(
        self, group: str, queue: MessageQueue, offset: int, broker_life: int
    ) -> None:
        """Commit an offset; ``broker_life`` is the life it was answered in, or 0.

        Raises:
            BrokerFailed: it could not be sent; no answer is waited for.
        """


class RemoteBrokerOffsetStore:
    """The offsets of one consumer of ``group``."""

    def __init__(self, group: str, broker: OffsetBroker, runtime: Runtime) -> None:
        self._group = group
        self._broker = broker
        self._table = OffsetTable(runtime)

    def load(self) -> None:
        """Do nothing: the broker keeps the offsets."""

    def update_offset(
        self, queue: MessageQueue, offset: int, *, increase_only: bool
    ) -> None:
        """Set an offset in memory; with ``increase_only`` never to a lower one."""
        self._table.update(queue, offset, increase_only=increase_only)

    def update_and_freeze_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set an offset that no update changes until the queue is removed."""
        self._table.freeze(queue, offset)

    def read_offset(self, queue: MessageQueue, read_type: ReadOffsetType) -> int:
        """The offset of a queue; one that the broker answers is also set in memory."""
        in_memory = read_offset_of(self._table, queue, read_type)
        if in_memory is not None:
            return in_memory
        try:
            kept = self._broker.query_consumer_offset(self._group, queue)
        except OffsetNotFound as none:
            self._table.heard_of(queue, none.broker_life)
            return NOT_FOUND
        except BrokerFailed:
            UNKNOWN.hit()
            return FAILED
        self._table.heard_of(queue, kept.broker_life)
        self._table.update(queue, kept.offset, increase_only=False)
        return kept.offset

    def persist(self, queue: MessageQueue) -> int:
        """Send the offset of a queue to the broker, if there is one; returns it."""
        offset = self._table.get(queue)
        if offset >= 0:
            self._tell(queue, offset)
        return offset

    def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Send the offsets of these queues to the broker, and forget all others."""
        if not queues:
            return
        for queue, offset in self._table.of_topic().items():
            if queue in queues:
                self._tell(queue, offset)
            else:
                self._table.remove(queue)

    def _tell(self, queue: MessageQueue, offset: int) -> None:
        try:
            life = self._table.broker_life_of(queue)
            self._broker.update_consumer_offset_oneway(self._group, queue, offset, life)
        except BrokerFailed:
            UNSENT.hit()

    def remove_offset(self, queue: MessageQueue) -> None:
        """Forget a queue's offset in memory."""
        self._table.remove(queue)

    def clone_offset_table(self, topic: str) -> Mapping[MessageQueue, int]:
        """The offsets in memory of a topic's queues; "": of all topics."""
        return self._table.of_topic(topic)

    def heard_of(self, queue: MessageQueue, broker_life: int) -> None:
        """Record the broker life (``RecoveredEnds``) that answered an offset."""
        self._table.heard_of(queue, broker_life)

    def broker_life_of(self, queue: MessageQueue) -> int:
        """The broker life in which a queue's offset was last answered; 0: none."""
        return self._table.broker_life_of(queue)
