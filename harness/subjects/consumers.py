"""Consumers: a broker around the store, and the offset stores of the groups' consumers.

One consumer of each group lives in the store's process, and ends with it. It asks the
broker for the offset of a queue before it commits one there.
"""

from __future__ import annotations

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.client.consumer.pull_from_where import (
    ConsumeFromWhere,
    compute_pull_from_where,
)
from crashmq.engine.client.consumer.store.offset_store import ReadOffsetType
from crashmq.engine.client.consumer.store.remote_broker_offset_store import (
    OffsetNotFound,
    RemoteBrokerOffsetStore,
)
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.errors import StoreStopped
from crashmq.models.observations import (
    Committed,
    Done,
    Observation,
    OffsetKept,
    QueueTaken,
    Skipped,
)
from crashmq.models.ops import FromWhere

BROKER_NAME = "broker-a"
_WHERE = {
    "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
}
_STOPPING = Skipped("the store is stopping")


class Consumers:
    """One life of a broker, and what its clients know in it."""

    def __init__(self, broker: BrokerController, runtime: Runtime) -> None:
        self.broker = broker
        self._runtime = runtime
        self._manager = self.broker.consumer_offset_manager
        self._processor = self.broker.consumer_manage_processor
        self._stores: dict[str, RemoteBrokerOffsetStore] = {}

    def offsets(self) -> tuple[tuple[tuple[str, str, int], int], ...]:
        """The offset of every group, topic and queue_id, sorted."""
        rows = []
        for key, offsets in self._manager.offset_table.items():
            topic, _, group = key.partition("@")
            rows += [((group, topic, queue), at) for queue, at in offsets.items()]
        return tuple(sorted(rows))

    def commit_offset(
        self, group: str, topic: str, queue_id: int, offset: int
    ) -> Observation:
        """Let the consumer's offset store take note, and tell the broker."""
        queue = MessageQueue(topic, BROKER_NAME, queue_id)
        store = self._store_of(group)
        if not self.broker.is_started:
            return _STOPPING
        if store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY) < 0:
            try:
                store.read_offset(queue, ReadOffsetType.READ_FROM_STORE)
            except StoreStopped:
                return _STOPPING
        store.update_offset(queue, offset, increase_only=True)
        return Committed(store.persist(queue))

    def query_offset(self, group: str, topic: str, queue_id: int) -> Observation:
        """The offset of a group, as the broker's manager answers it."""
        return OffsetKept(self._manager.query_offset(group, topic, queue_id))

    def reset_offset(
        self, group: str, topic: str, queue_id: int, offset: int
    ) -> Observation:
        """Reset a group at the server."""
        if not self.broker.is_started:
            return _STOPPING
        self._manager.assign_reset_offset(topic, group, queue_id, offset)
        return Done()

    def take_queue(
        self, group: str, topic: str, queue_id: int, where: FromWhere
    ) -> Observation:
        """Let the consumer meet its reset, forget the queue and begin with it."""
        queue = MessageQueue(topic, BROKER_NAME, queue_id)
        store = self._store_of(group)
        self._manager.query_then_erase_reset_offset(topic, group, queue_id)
        store.remove_offset(queue)
        try:
            return QueueTaken(
                compute_pull_from_where(queue, store, self, _WHERE[where])
            )
        except StoreStopped:
            return _STOPPING

    def _store_of(self, group: str) -> RemoteBrokerOffsetStore:
        known = self._stores.get(group)
        if known is None:
            known = RemoteBrokerOffsetStore(group, self, self._runtime)
            self._stores[group] = known
        return known

    def query_consumer_offset(self, group: str, queue: MessageQueue) -> int:
        """Ask the broker for an offset, as a client's offset store does."""
        answer = self._processor.query_consumer_offset(
            group, queue.topic, queue.queue_id
        )
        if answer.code is not ResponseCode.SUCCESS:
            raise OffsetNotFound
        return answer.offset

    def update_consumer_offset_oneway(
        self, group: str, queue: MessageQueue, offset: int
    ) -> None:
        """Commit an offset, as a client's offset store does."""
        self._processor.update_consumer_offset(
            group, queue.topic, queue.queue_id, offset
        )

    def max_offset(self, queue: MessageQueue) -> int:
        """The end of a queue."""
        store = self.broker.message_store
        return store.get_max_offset_in_queue(queue.topic, queue.queue_id)

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The first message of a queue stored at or after a time."""
        store = self.broker.message_store
        return store.get_offset_in_queue_by_time(queue.topic, queue.queue_id, timestamp)
