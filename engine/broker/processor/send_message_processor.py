"""SendMessageProcessor: a client sends a message, or sends back one that failed.

What a consumer could not consume goes to the group's retry topic as a copy with one
more reconsume time, and is delayed; after too many tries it goes to the dead-letter
topic. The copy is stored before the consumer is answered, so it may then commit past
the message.

Source:
org.apache.rocketmq.broker.processor.AbstractSendMessageProcessor#consumerSendMsgBack,
SendMessageProcessor#handleRetryAndDLQ, RocketMQ 5.3. Differs: a group without retry
queues is answered with an error, where RocketMQ answers success and stores nothing;
under SYNC_FLUSH a copy is answered once it is durable, as any message; the copy is of
what the consumer had, not of what lies at its phy_offset by now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

from crashmq.engine.broker.client.rebalance_lock_manager import RebalanceLockManager
from crashmq.engine.broker.subscription.subscription_group_manager import (
    SubscriptionGroupManager,
)
from crashmq.engine.broker.topic.topic_config_manager import (
    CLIENT_QUEUE_NUMS,
    TopicConfigManager,
)
from crashmq.engine.common.message_ext import PROPERTY_RETRY_TOPIC
from crashmq.engine.common.message_queue import RETRY_GROUP_TOPIC_PREFIX
from crashmq.engine.common.mix_all import dlq_topic_of, retry_topic_of
from crashmq.engine.common.subscription_group_config import SubscriptionGroupConfig
from crashmq.engine.common.topic_config import TopicConfig
from crashmq.engine.host.probe import probe
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.errors import StoreStopped
from crashmq.engine.store.message.message import (
    PROPERTY_CRC32,
    PROPERTY_DELAY,
    PROPERTY_MULTI_QUEUE_OFFSET,
    PROPERTY_WAIT_STORE_OK,
    Message,
    is_not_sent_to,
)
from crashmq.engine.store.message.message_decoder import MessageExt, decode_message_ext
from crashmq.engine.store.results import PutMessageResult, PutMessageStatus

PROPERTY_ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
DLQ_NUMS_PER_GROUP = 1
FIRST_DELAY_LEVEL = 3
GROUPS_OWN = -1
"""``max_reconsume_times`` of a client that leaves it to the group's configuration."""

# Of the record, not of the message: another record gets its own.
_OF_THE_RECORD = (PROPERTY_CRC32, PROPERTY_MULTI_QUEUE_OFFSET, PROPERTY_WAIT_STORE_OK)

RETRIED = probe("send_back.retried", "a message came back to be consumed again")
DEAD = probe("send_back.dead", "a message came back too often, or for good")
GONE = probe("send_back.gone", "a message was sent back that the log no longer holds")
UNRETRIED = probe("send_back.no_queue", "a group without retry queues sent one back")
OF_ITS_OWN = probe("send_back.sent.own", "a message was sent to RocketMQ's own topic")
DEAD_AT_ONCE = probe("send_back.sent.dead", "a message sent to a retry topic was dead")
NO_SUCH_QUEUE = probe(
    "send_message.no_queue", "a message was sent to a queue past its topic's queues"
)


class MessageKeeper(Protocol):
    """The part of a store that sent messages need."""

    def put_message(self, message: Message) -> PutMessageResult:
        """Store one message."""

    def look_message_by_offset(self, phy_offset: int) -> bytes | None:
        """The record that begins at a phy_offset; None if none does."""


class SendResponse(NamedTuple):
    """The answer to a sent message; ``result`` None: it was not put."""

    code: ResponseCode
    result: PutMessageResult | None = None
    remark: str = ""


class SendMessageProcessor:
    """Answers messages that producers send, and that consumers send back.

    Attributes:
        put: puts a message into the store.
    """

    def __init__(
        self,
        store: MessageKeeper,
        topics: TopicConfigManager,
        groups: SubscriptionGroupManager,
        locks: RebalanceLockManager,
    ) -> None:
        self._store = store
        self.put = store.put_message
        self._topics = topics
        self._groups = groups
        self._locks = locks

    def send_message(
        self,
        message: Message,
        max_reconsume_times: int = GROUPS_OWN,
        queue_nums: int = CLIENT_QUEUE_NUMS,
    ) -> SendResponse:
        """Store a message; a new topic is created with ``queue_nums`` queues.

        A message for a retry topic goes to the dead-letter topic after
        ``max_reconsume_times`` tries, and at once if a client of the group holds a
        lock: then the group consumes in order, and has retried by itself.

        A message for a queue that its topic does not have is refused, and so is one for
        a topic that is RocketMQ's own.

        Raises:
            OSError: the disk failed before the message was put.

        Source: SendMessageProcessor#sendMessage, #handleRetryAndDLQ,
        AbstractSendMessageProcessor#msgCheck.
        """
        if message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            name = message.topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX)
            group = self._groups.find_subscription_group_config(name)
            if group is None:
                return _no_such_group(name)
            topic = self._retry_of(group)
            if topic is not None and not _has_queue(topic, message.queue_id):
                return _no_such_queue(message, topic)
            if self._is_dead_at_once(message, group, max_reconsume_times):
                DEAD_AT_ONCE.hit()
                return self._put(self._as_dead(message, name), self._dlq_of(name))
            if topic is None:
                return _no_retry_queue(name)
            return self._put(message, topic)
        if is_not_sent_to(message.topic):
            OF_ITS_OWN.hit()
            why = f"topic {message.topic} is RocketMQ's own: send to another."
            return SendResponse(ResponseCode.NO_PERMISSION, remark=why)
        known = self.topic_of(message.topic, queue_nums)
        if known is None:
            why = f"topic {message.topic} does not exist: create it."
            return SendResponse(ResponseCode.TOPIC_NOT_EXIST, remark=why)
        if not _has_queue(known, message.queue_id):
            return _no_such_queue(message, known)
        response = self._put(message, known)
        self.topic_of(message.topic, queue_nums)  # as ``put_in_its_topic``
        return response

    def topic_of(
        self, topic: str, queue_nums: int = CLIENT_QUEUE_NUMS
    ) -> TopicConfig | None:
        """The topic of a message; a new one is created with ``queue_nums`` queues.

        Returns:
            None: there is no such topic, and it cannot be created.

        Raises:
            OSError: the disk failed; nothing has changed.

        Source: AbstractSendMessageProcessor#msgCheck.
        """
        known = self._topics.select_topic_config(topic)
        if known is not None:
            self._topics.table.make_sure()
            return known
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            name = topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX)
            group = self._groups.find_subscription_group_config(name)
            return self._retry_of(group) if group is not None else None
        return self._topics.create_topic_in_send_message_method(
            topic, queue_nums=queue_nums
        )

    def put_in_its_topic(
        self,
        topic: str,
        put: Callable[[], PutMessageResult],
        queue_nums: int = CLIENT_QUEUE_NUMS,
    ) -> PutMessageResult:
        """Put a message and make sure that its topic still exists afterwards.

        Raises:
            OSError: the disk failed, before the message was put or after.

        Source: SendMessageProcessor#sendMessage. Differs: in RocketMQ a message that is
        put while its topic is deleted lies in a topic that no consumer may pull.
        """
        try:
            self.topic_of(topic, queue_nums)
        except StoreStopped:
            return PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
        result = put()
        try:
            self.topic_of(topic, queue_nums)
        except StoreStopped:  # it was deleted, so perhaps nobody ever pulls this
            return PutMessageResult(PutMessageStatus.UNKNOWN_ERROR)
        return result

    def _is_dead_at_once(
        self, message: Message, group: SubscriptionGroupConfig, max_times: int
    ) -> bool:
        most = group.retry_max_times if max_times < 0 else max_times
        if message.reconsume_times > most:
            return True
        return not self._locks.is_lock_all_expired(group.group_name)

    def consumer_send_msg_back(
        self,
        group: str,
        phy_offset: int,
        delay_level: int = 0,
        max_reconsume_times: int = GROUPS_OWN,
        record: bytes | None = None,
    ) -> SendResponse:
        """Store a copy of a message in its group's retry or dead-letter topic.

        Args:
            group: the group that could not consume it.
            phy_offset: where the message lies.
            delay_level: the level after which it is consumed again; 0: 3 plus one
                for each try; negative: never, it is a dead letter.
            max_reconsume_times: tries after which it is a dead letter.
            record: the message as its consumer had it, since the log may have lost
                it and hold another one there by now; None: whatever the log has
                there.

        Raises:
            StoreStopped: the store is not started.
            OSError: the disk failed before the copy was put.

        Source: AbstractSendMessageProcessor#consumerSendMsgBack.
        """
        config = self._groups.find_subscription_group_config(group)
        if config is None:
            return _no_such_group(group)
        if config.retry_queue_nums <= 0:
            return _no_retry_queue(group)
        if record is None:
            record = self._store.look_message_by_offset(phy_offset)
        if record is None:
            GONE.hit()
            why = f"the log has no message at {phy_offset}: send it again."
            return SendResponse(ResponseCode.SYSTEM_ERROR, remark=why)
        found = decode_message_ext(record)
        copy = _copy_of(found)
        most = max_reconsume_times
        if most < 0:
            most = config.retry_max_times
        times = found.message.reconsume_times
        if times >= most or delay_level < 0:
            DEAD.hit()
            return self._put(self._as_dead(copy, group), self._dlq_of(group))
        topic = self._retry_of(config)
        assert topic is not None, group
        level = delay_level or FIRST_DELAY_LEVEL + times
        RETRIED.hit()
        delayed = {**copy.properties, PROPERTY_DELAY: f"{level}"}
        queue_id = found.message.queue_id % max(1, topic.write_queue_nums)
        retry = replace(
            copy, topic=topic.topic_name, queue_id=queue_id, properties=delayed
        )
        return self._put(retry, topic)

    def _retry_of(self, group: SubscriptionGroupConfig) -> TopicConfig | None:
        """The group's retry topic; None: it has no queue."""
        if group.retry_queue_nums <= 0:
            return None
        return self._topics.create_topic_in_send_message_back_method(
            retry_topic_of(group.group_name), group.retry_queue_nums
        )

    def _dlq_of(self, group: str) -> TopicConfig:
        topic = dlq_topic_of(group)
        return self._topics.create_topic_in_send_message_back_method(
            topic, DLQ_NUMS_PER_GROUP
        )

    def _as_dead(self, message: Message, group: str) -> Message:
        properties = {**message.properties}
        properties.pop(PROPERTY_DELAY, None)
        return replace(
            message, topic=dlq_topic_of(group), queue_id=0, properties=properties
        )

    def _put(self, message: Message, topic: TopicConfig) -> SendResponse:
        if not topic.is_writeable:
            why = f"topic {topic.topic_name} takes no message: its perm says so."
            return SendResponse(ResponseCode.NO_PERMISSION, remark=why)
        result = self.put(message)
        if result.status is PutMessageStatus.PUT_OK:
            return SendResponse(ResponseCode.SUCCESS, result)
        return SendResponse(ResponseCode.SYSTEM_ERROR, result, result.status.value)


def _copy_of(found: MessageExt) -> Message:
    """The message with one more reconsume time, and properties that name its origin."""
    was = found.message
    properties = {
        name: value
        for name, value in was.properties.items()
        if name not in _OF_THE_RECORD
    }
    properties.setdefault(PROPERTY_RETRY_TOPIC, was.topic)
    properties.setdefault(PROPERTY_ORIGIN_MESSAGE_ID, found.message_id)
    return replace(was, properties=properties, reconsume_times=was.reconsume_times + 1)


def _has_queue(topic: TopicConfig, queue_id: int) -> bool:
    """Whether a queue id lies below the topic's queues; the store refuses one below 0.

    Source: AbstractSendMessageProcessor#msgCheck.
    """
    return queue_id < _queue_nums(topic)


def _queue_nums(topic: TopicConfig) -> int:
    return max(topic.write_queue_nums, topic.read_queue_nums)


def _no_such_queue(message: Message, topic: TopicConfig) -> SendResponse:
    NO_SUCH_QUEUE.hit()
    most = _queue_nums(topic)
    why = f"topic {topic.topic_name} has {most} queues, so queue {message.queue_id} "
    why += "takes no message: send to one below."
    return SendResponse(ResponseCode.SYSTEM_ERROR, remark=why)


def _no_such_group(group: str) -> SendResponse:
    why = f"group {group} does not exist: create it."
    return SendResponse(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark=why)


def _no_retry_queue(group: str) -> SendResponse:
    """Differs: RocketMQ answers SUCCESS here, and the message is lost."""
    UNRETRIED.hit()
    why = f"group {group} has no retry queue, so nothing was stored: give it one."
    return SendResponse(ResponseCode.SYSTEM_ERROR, remark=why)
