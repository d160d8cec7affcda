"""Consumers: one consumer of each group, reduced to its offset store.

It runs in the store's process and ends with it. It asks the broker for the offset of a
queue before it commits one there.
"""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.broker.processor.admin_broker_processor import LATEST
from crashmq.engine.client.consumer.pull_from_where import (
    ConsumeFromWhere,
    compute_pull_from_where,
)
from crashmq.engine.client.consumer.store.offset_store import ReadOffsetType
from crashmq.engine.client.consumer.store.remote_broker_offset_store import (
    KeptOffset,
    OffsetNotFound,
    RemoteBrokerOffsetStore,
)
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.remoting.pull_message import (
    PullMessageRequest,
    PullMessageResponse,
    PullSysFlag,
)
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.errors import StoreStopped
from crashmq.harness.subjects.questions import (
    answer_of_broker,
    change_topic,
    configure_group,
)
from crashmq.harness.subjects.subscribers import Subscribers
from crashmq.models.observations import (
    BROKER_CODES,
    EPOCH_MS,
    BrokerPulled,
    Committed,
    Done,
    LowestOffsets,
    Observation,
    OffsetKept,
    OffsetReset,
    PullHeld,
    QueueTaken,
    Skipped,
)
from crashmq.models.ops import (
    AskBroker,
    ChangeTopic,
    ConfigureGroup,
    FromWhere,
    PullThroughBroker,
    ResetTarget,
)
from crashmq.models.program import Setup

BROKER_NAME = "broker-a"
_WHERE = {
    "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    "timestamp": ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
}
_STOPPING = Skipped("the store is stopping")


class Consumers:
    """One life of a broker, and the offsets that its consumers know."""

    def __init__(self, broker: BrokerController, runtime: Runtime) -> None:
        self.broker = broker
        self.subscribers = Subscribers(broker)
        self._runtime = runtime
        self._manager = self.broker.consumer_offset_manager
        self._processor = self.broker.consumer_manage_processor
        self._stores: dict[str, RemoteBrokerOffsetStore] = {}
        self._refused: dict[tuple[str, MessageQueue], ResponseCode] = {}

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
        """Let the consumer's offset store set its offset and send it."""
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
        told, refused = store.persist(queue), self._refused.pop((group, queue), None)
        if refused is not None:
            store.remove_offset(queue)
        return Committed(told, accepted=refused is None)

    def query_offset(self, group: str, topic: str, queue_id: int) -> Observation:
        """The offset of a group, as the broker's manager answers it."""
        return OffsetKept(self._manager.query_offset(group, topic, queue_id))

    def reset_offset(
        self, group: str, topic: str, queue_id: int, offset: int, to: ResetTarget
    ) -> Observation:
        """Reset a group's offset at the broker.

        To ``offset``; or to the queue's end, or the offset for a time, as ``to`` says.
        """
        if not self.broker.is_started:
            return _STOPPING
        admin = self.broker.admin_broker_processor
        try:
            if to == "offset":
                answer = admin.reset_offset(group, topic, queue_id, offset)
            else:
                at = LATEST if to == "end" else max(0, EPOCH_MS + offset)
                answer = admin.reset_offset_by_time(group, topic, queue_id, at)
        except StoreStopped:
            return _STOPPING
        return OffsetReset(answer.offset)

    def delete_topic(self, topic: str, queue_id: int) -> int:
        """Delete a topic, or a queue of it, with what groups have consumed there.

        Their consumers forget it too.
        """
        admin = self.broker.admin_broker_processor
        if queue_id < 0:
            count = admin.delete_topic(topic)
        else:
            count = admin.delete_queue(topic, queue_id)
        for store in [*self._stores.values()]:
            for queue in store.clone_offset_table(topic):
                if queue_id in (-1, queue.queue_id):
                    store.remove_offset(queue)
        return count

    def delete_group(self, group: str) -> Observation:
        """Delete a group with its offsets; its consumer forgets them too."""
        if not self.broker.is_started:
            return _STOPPING
        try:
            self.broker.admin_broker_processor.delete_subscription_group(group)
        except StoreStopped:
            return _STOPPING
        self._stores.pop(group, None)
        return Done()

    def configure_group(self, config: ConfigureGroup, setup: Setup) -> Observation:
        """Set a group's configuration at the broker."""
        return configure_group(self.broker, config, setup)

    def clone_offset(self, group: str, target: str, topic: str) -> Observation:
        """Copy a group's offsets to another one, whose consumer forgets its own."""
        if not self.broker.is_started:
            return _STOPPING
        self.broker.admin_broker_processor.clone_group_offset(group, target, topic)
        self._stores.pop(target, None)
        return Done()

    def query_lowest_offsets(self, group: str, topic: str) -> Observation:
        """The lowest offset on each queue of a topic, of all groups but one."""
        admin = self.broker.admin_broker_processor
        try:
            lowest = admin.query_correction_offset(topic, (group,))
        except StoreStopped:
            return _STOPPING
        return LowestOffsets(tuple(sorted(lowest.items())))

    def clean_offsets(self, topic: str) -> Observation:
        """Remove all offsets on a topic; the consumers forget theirs too."""
        if not self.broker.is_started:
            return _STOPPING
        try:
            self._manager.clean_offset_by_topic(topic)
        except StoreStopped:
            return _STOPPING
        for store in [*self._stores.values()]:
            for queue in store.clone_offset_table(topic):
                store.remove_offset(queue)
        return Done()

    def change_topic(self, change: ChangeTopic) -> Observation:
        """Create or change a topic at the broker."""
        return change_topic(self.broker, change)

    def ask(self, question: AskBroker, setup: Setup) -> Observation:
        """Ask the broker a question."""
        return answer_of_broker(self.broker, question, setup)

    def take_queue(
        self, group: str, topic: str, queue_id: int, where: FromWhere, since_ms: int
    ) -> Observation:
        """Let the consumer apply its reset, forget the queue and begin with it."""
        queue = MessageQueue(topic, BROKER_NAME, queue_id)
        store = self._store_of(group)
        for _ in range(2):  # its first pull is told of the reset, the next has followed
            self._manager.query_then_erase_reset_offset(topic, group, queue_id)
        store.remove_offset(queue)
        try:
            return QueueTaken(
                compute_pull_from_where(queue, store, self, _WHERE[where], since_ms)
            )
        except StoreStopped:
            return _STOPPING

    def pull(
        self,
        pull: PullThroughBroker,
        begins: Callable[[int], None],
        answer: Callable[[BrokerPulled], None],
    ) -> Observation:
        """Let a consumer pull, committing the offset that its offset store has.

        After PULL_OFFSET_MOVED the consumer forgets its offset of the queue, as when it
        gives the queue up.
        """
        queue = MessageQueue(pull.topic, BROKER_NAME, pull.queue_id)
        store = self._store_of(pull.group)
        if not self.broker.is_started:
            return _STOPPING
        try:
            told = self._known_after(store, queue, pull.commit_offset)
        except StoreStopped:
            return _STOPPING
        begins(told)
        answers: list[BrokerPulled] = []

        def take(response: PullMessageResponse) -> None:
            if response.code is ResponseCode.PULL_OFFSET_MOVED:
                store.remove_offset(queue)
            answers.append(_answer_of(response))
            answer(answers[-1])

        self.broker.pull_message_processor.process_request(_asked(pull, told), take)
        return answers[0] if answers else PullHeld()

    @staticmethod
    def _known_after(
        store: RemoteBrokerOffsetStore, queue: MessageQueue, offset: int
    ) -> int:
        """What the next pull commits once all before ``offset`` is consumed.

        0 is never committed, and nothing is if ``offset`` is -1.

        Source: DefaultMQPushConsumerImpl#pullMessage.
        """
        if offset < 0:
            return -1
        if store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY) < 0:
            store.read_offset(queue, ReadOffsetType.READ_FROM_STORE)
        store.update_offset(queue, offset, increase_only=True)
        return store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY) or -1

    def _store_of(self, group: str) -> RemoteBrokerOffsetStore:
        known = self._stores.get(group)
        if known is None:
            known = RemoteBrokerOffsetStore(group, self, self._runtime)
            self._stores[group] = known
        return known

    def query_consumer_offset(self, group: str, queue: MessageQueue) -> KeptOffset:
        """Ask the broker for an offset, as a client's offset store does."""
        answer = self._processor.query_consumer_offset(
            group, queue.topic, queue.queue_id
        )
        if answer.code is not ResponseCode.SUCCESS:
            raise OffsetNotFound(answer.broker_life)
        return KeptOffset(answer.offset, answer.broker_life)

    def update_consumer_offset_oneway(
        self, group: str, queue: MessageQueue, offset: int, broker_life: int
    ) -> None:
        """Commit an offset, as a client's offset store does."""
        code = self._processor.update_consumer_offset(
            group, queue.topic, queue.queue_id, offset, broker_life=broker_life
        )
        if code is not ResponseCode.SUCCESS:
            self._refused[group, queue] = code

    def max_offset(self, queue: MessageQueue) -> int:
        """The end of a queue."""
        store = self.broker.message_store
        return store.get_max_offset_in_queue(queue.topic, queue.queue_id)

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The first message of a queue stored at or after a time."""
        store = self.broker.message_store
        return store.get_offset_in_queue_by_time(queue.topic, queue.queue_id, timestamp)


def _asked(pull: PullThroughBroker, told: int) -> PullMessageRequest:
    flag = PullSysFlag.SUBSCRIPTION
    if told >= 0:
        flag |= PullSysFlag.COMMIT_OFFSET
    if pull.suspends:
        flag |= PullSysFlag.SUSPEND
    if pull.is_lite:
        flag |= PullSysFlag.LITE_PULL_MESSAGE
    return PullMessageRequest(
        pull.group,
        pull.topic,
        pull.queue_id,
        pull.queue_offset,
        pull.max_msg_nums,
        flag,
        max(told, 0),
        subscription=pull.tags,
        expression_type=pull.expression_type,
    )


def _answer_of(response: PullMessageResponse) -> BrokerPulled:
    return BrokerPulled(
        BROKER_CODES[response.code.name],
        response.next_begin_offset,
        response.min_offset,
        response.max_offset,
        response.messages,
    )
