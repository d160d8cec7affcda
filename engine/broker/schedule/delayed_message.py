"""Delayed messages: converting a message for its delay level's queue, and back.

A message with a delay level goes to a queue of the schedule topic, with its real topic
and queue among its properties. Once it is due it is put to its real topic unchanged,
with these properties and its level still in it, as RocketMQ's released broker does.

Source: org.apache.rocketmq.broker.util.HookUtils#handleScheduleMessage,
#transformDelayLevelMessage, ScheduleMessageService#messageTimeUp, RocketMQ 5.3.
Differs: a message that could not be delivered is refused when it is put. In RocketMQ
its delivery is tried again every 100 ms for ever, and blocks its level.
"""

from __future__ import annotations

import re
from dataclasses import replace

from crashmq.engine.host.probe import probe
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.message.message import (
    BORN_HOST_V6_FLAG,
    PROPERTY_DELAY,
    PROPERTY_MULTI_QUEUE_OFFSET,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    SCHEDULE_TOPIC,
    STORE_HOST_V6_FLAG,
    TRANSACTION_COMMIT,
    TRANSACTION_MASK,
    TRANSACTION_NOT_TYPE,
    Host,
    Message,
    is_number,
)
from crashmq.engine.store.message.message_codec import (
    BLANK_SIZE_MIN,
    HEADERS,
    properties_of,
)
from crashmq.engine.store.message.message_encoder import (
    MessageRejected,
    check_light_queues,
    encode_message,
)
from crashmq.engine.store.results import PutMessageStatus

SCHEDULED = probe("delayed_message.scheduled", "a message went to the queue of a level")
CLAMPED = probe("delayed_message.clamped", "a message asked for too high a level")
UNDELIVERABLE = probe(
    "delayed_message.undeliverable", "a message that its real queue cannot take came"
)

_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_INTEGER_MAX = 0x7FFFFFFF
_OFFSET_DIGITS_MAX = 19


class DelayedMessages:
    """Converts messages into delayed ones, by a store's delay levels; stateless."""

    def __init__(self, config: StoreConfig) -> None:
        self._config = config
        self._levels = config.delay_levels

    def schedule(self, message: Message) -> Message:
        """The message as it is put: to its level's queue, if it has a level.

        Raises:
            MessageRejected: it names the schedule topic itself, its level is no
                integer, or its real queue could not take it.

        Source: HookUtils#handleScheduleMessage, TopicValidator#isNotAllowedSendTopic.
        """
        if message.is_delivered:
            return message
        if message.topic == SCHEDULE_TOPIC:
            raise _illegal(f"{SCHEDULE_TOPIC} takes no message from outside.")
        kind = message.sys_flag & TRANSACTION_MASK
        if kind not in (TRANSACTION_NOT_TYPE, TRANSACTION_COMMIT):
            return message
        level = _level_of(message)
        if level <= 0:
            return message
        if level > self._levels.level_max:
            CLAMPED.hit()
            level = self._levels.level_max
        scheduled = self._in_queue_of(level, message)
        try:
            self._refuse_what_cannot_be_delivered(message, scheduled)
        except MessageRejected:
            UNDELIVERABLE.hit()
            raise
        SCHEDULED.hit()
        return scheduled

    def _in_queue_of(self, level: int, message: Message) -> Message:
        """The message in its level's queue. Source: #transformDelayLevelMessage."""
        properties = {
            **message.properties,
            PROPERTY_DELAY: f"{level}",
            PROPERTY_REAL_TOPIC: message.topic,
            PROPERTY_REAL_QUEUE_ID: f"{message.queue_id}",
        }
        return replace(
            message, topic=SCHEDULE_TOPIC, queue_id=level - 1, properties=properties
        )

    def _refuse_what_cannot_be_delivered(
        self, message: Message, scheduled: Message
    ) -> None:
        """Refuse a message that its real queue will not accept once it is due.

        Its light queue offsets are not known yet, so their longest form is assumed.
        """
        config, properties = self._config, scheduled.properties
        if config.enable_multi_dispatch and message.light_queues:
            check_light_queues(message.topic, message.light_queues)
            longest = "9" * _OFFSET_DIGITS_MAX
            places = ",".join([longest] * len(message.light_queues))
            properties = {**properties, PROPERTY_MULTI_QUEUE_OFFSET: places}
        delivered = replace(message, properties=properties)
        crc = config.enabled_append_prop_crc
        encoded = encode_message(delivered, config.max_message_size, prop_crc=crc)
        if encoded.size + BLANK_SIZE_MIN > config.mapped_file_size_commit_log:
            raise _illegal(f"a record of {encoded.size} bytes fits no file of the log.")


def delivered_message(record: bytes) -> Message | None:
    """The message for the real topic, from an intact record of the schedule topic.

    None if the record does not name its real topic and queue.

    Source: ScheduleMessageService#messageTimeUp.
    """
    properties = properties_of(record)
    topic = properties.get(PROPERTY_REAL_TOPIC, "")
    queue_id = properties.get(PROPERTY_REAL_QUEUE_ID, "")
    if not topic or not is_number(queue_id):
        return None
    sys_flag = int.from_bytes(record[36:40], "big")
    header = HEADERS[
        16 if sys_flag & BORN_HOST_V6_FLAG else 4,
        16 if sys_flag & STORE_HOST_V6_FLAG else 4,
    ]
    fields = header.unpack_from(record)
    body_size = fields[16]
    return Message(
        topic,
        int(queue_id),
        record[header.size : header.size + body_size],
        properties,
        fields[8],
        fields[4],
        sys_flag,
        fields[14],
        born_host=Host(fields[9], fields[10]),
        store_host=Host(fields[12], fields[13]),
        is_delivered=True,
    )


def _level_of(message: Message) -> int:
    """The level that a message asks for; 0: none. Source: Message#getDelayTimeLevel."""
    text = message.properties.get(PROPERTY_DELAY, "")
    if not text:
        return 0
    if _INTEGER.fullmatch(text) is None or abs(int(text)) > _INTEGER_MAX:
        raise _illegal(f"{PROPERTY_DELAY} {text!r} is no level.")
    return int(text)


def _illegal(why: str) -> MessageRejected:
    return MessageRejected(PutMessageStatus.MESSAGE_ILLEGAL, why)
