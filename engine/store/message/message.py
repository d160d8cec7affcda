"""Message: what a producer puts, with its properties, id and light queues.

Source: org.apache.rocketmq.common.message.MessageExtBrokerInner, MessageSysFlag,
MessageDecoder, TopicValidator, RocketMQ 5.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

PROPERTY_TAGS = "TAGS"
PROPERTY_KEYS = "KEYS"
PROPERTY_UNIQ_KEY = "UNIQ_KEY"
PROPERTY_WAIT_STORE_OK = "WAIT"
PROPERTY_DELAY = "DELAY"
PROPERTY_REAL_TOPIC = "REAL_TOPIC"
PROPERTY_REAL_QUEUE_ID = "REAL_QID"
PROPERTY_INNER_NUM = "INNER_NUM"
PROPERTY_CRC32 = "__CRC32#"
PROPERTY_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
PROPERTY_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
RETRY_PREFIX = "%RETRY%"
SYSTEM_PREFIX = "rmq_sys_"
LIGHT_PREFIX = "%LMQ%"

NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"

BORN_HOST_V6_FLAG = 0x10
STORE_HOST_V6_FLAG = 0x20
TRANSACTION_MASK = 0xC
TRANSACTION_NOT_TYPE = 0x0
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC
INNER_BATCH_FLAG = 0x80

DELAYS_MS = tuple(
    1000 * seconds
    for seconds in (
        *(1, 5, 10, 30, 60, 120, 180, 240, 300, 360),
        *(420, 480, 540, 600, 1200, 1800, 3600, 7200),
    )
)


@dataclass(frozen=True, slots=True)
class Host:
    """An address as RocketMQ stores it: 4 or 16 raw bytes of IP, and a port."""

    ip: bytes
    port: int

    def __post_init__(self) -> None:
        if len(self.ip) not in (4, 16):
            raise ValueError(
                f"a host has an IP of 4 or 16 bytes, this one has {len(self.ip)}."
            )


def message_id(store_host: Host, phy_offset: int) -> str:
    """RocketMQ's offsetMsgId: the store host and the record's phy_offset.

    Source: MessageDecoder#createMessageId.
    """
    return f"{store_host.ip.hex()}{store_host.port:08x}{phy_offset:016x}".upper()


LOCAL_BORN = Host(b"\x7f\x00\x00\x01", 10911)
LOCAL_STORE = Host(b"\x7f\x00\x00\x01", 10912)


@dataclass(slots=True)
class Message:
    """A message as the store puts it. Times are milliseconds since the Unix epoch.

    ``is_delivered``: its delay is over, and the broker puts it into its real queue.
    ``raw_properties``: only of a message from a batch: the bytes of its properties,
    stored as the producer wrote them; b"" if the record's are encoded from
    ``properties``.

    Nothing here assigns to a field. The class is not frozen because that saves a tenth
    of the time of a put.
    """

    topic: str
    queue_id: int
    body: bytes
    properties: dict[str, str] = field(default_factory=dict)
    born_timestamp: int = 0
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    born_host: Host = LOCAL_BORN
    store_host: Host = LOCAL_STORE
    is_delivered: bool = False
    raw_properties: bytes = b""

    @property
    def waits_for_store(self) -> bool:
        """Whether the producer waits for the flush under SYNC_FLUSH.

        False for the delivery of a delayed message: no producer waits for it.
        """
        wants = self.properties.get(PROPERTY_WAIT_STORE_OK, "true") != "false"
        return wants and not self.is_delivered

    @property
    def light_queues(self) -> tuple[str, ...]:
        """The names of the light queues (LMQ) that are to list the message as well.

        Empty if no queue lists the message, and for topics whose messages are put
        again, into another topic, before a consumer reads them.

        Source: MultiDispatch#isNeedHandleMultiDispatch, LmqDispatch.
        """
        names = self.properties.get(PROPERTY_MULTI_DISPATCH, "")
        if not names or not has_unit(self.sys_flag):
            return ()
        if self.topic.startswith((RETRY_PREFIX, SYSTEM_PREFIX, SCHEDULE_TOPIC)):
            return ()
        return tuple(names.split(","))


def has_unit(sys_flag: int) -> bool:
    """Whether queues list messages with this sys_flag.

    They list those of transaction types none and commit, but no inner batches, which
    belong to a BatchConsumeQueue.
    """
    return sys_flag & (TRANSACTION_PREPARED | INNER_BATCH_FLAG) == 0


TOPIC_SIZE_MAX = 255
_TOPIC = re.compile(r"(?!\.{1,2}\Z)[^/\0\n\ud800-\udfff]+")


@lru_cache(maxsize=4096)
def is_topic(text: str) -> bool:
    """Whether a name can be that of a directory and of a line in ``deletedTopics``.

    RocketMQ's store takes any name. Its TopicValidator allows fewer than this function,
    but older brokers, and MQTT's light queues, use other characters too.

    Source: ConsumeQueueStore#createConsumeQueue; MixAll#isLmq.
    """
    return _TOPIC.fullmatch(text) is not None


# The static block of TopicValidator, and what TopicConfigManager adds on a broker by
# default: the name of its cluster.
_SYSTEM_TOPICS = frozenset(
    {
        "TBW102",
        "SELF_TEST_TOPIC",
        "CHECKPOINT_TOPIC",
        "DefaultCluster",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "RMQ_SYS_TRACE_TOPIC",
        SCHEDULE_TOPIC,
        "BenchmarkTest",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)


def is_system_topic(topic: str) -> bool:
    """Whether the topic is one of RocketMQ's own; case matters.

    Source: TopicValidator#isSystemTopic, RocketMQ 5.3.0.
    """
    return topic in _SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX)


# Brokers and transactions write to these; a producer may not.
_NOT_SENT_TO = frozenset(
    {
        SCHEDULE_TOPIC,
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)


def is_not_sent_to(topic: str) -> bool:
    """Whether a broker takes no message of a producer for the topic.

    Source: TopicValidator#isNotAllowedSendTopic, RocketMQ 5.3.0.
    """
    return topic in _NOT_SENT_TO


@lru_cache(maxsize=4096)
def is_light_queue(text: str) -> bool:
    """Whether the name is that of a light queue, which lists other topics' messages."""
    if not text.startswith(LIGHT_PREFIX) or len(text) > TOPIC_SIZE_MAX:
        return False
    return len(text) > len(LIGHT_PREFIX) and is_topic(text)


def java_string_hash(text: str) -> int:
    """Java's ``String.hashCode``: over UTF-16 code units, wrapped to signed 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - 0x100000000 if value & 0x80000000 else value


@lru_cache(maxsize=4096)
def tags_code(tags: str) -> int:
    """The tags code of a unit: the Java hash of the message's TAGS, 0 if untagged.

    Source: MessageExtBrokerInner#tagsString2tagsCode.
    """
    return java_string_hash(tags) if tags else 0


def properties_to_bytes(properties: dict[str, str]) -> bytes:
    """Encode properties as in a record: ``name 0x01 value 0x02`` each.

    Source: MessageDecoder#messageProperties2String.
    """
    return "".join(
        [
            f"{name}{NAME_VALUE_SEPARATOR}{value}{PROPERTY_SEPARATOR}"
            for name, value in properties.items()
        ]
    ).encode()


def properties_from_text(text: str) -> dict[str, str]:
    """Decode properties; the last value of a name counts, empty pieces are skipped.

    Source: MessageDecoder#string2messageProperties.
    """
    out: dict[str, str] = {}
    for piece in text.split(PROPERTY_SEPARATOR):
        name, separator, value = piece.partition(NAME_VALUE_SEPARATOR)
        if separator and name and value:
            out[name] = value
    return out


def light_places(properties: dict[str, str]) -> tuple[tuple[str, int], ...]:
    """The light queues that list a record, each with its queue_offset there.

    A light queue with an illegal name, or without a number as its offset, is left out.

    Source: MultiDispatch, ConsumeQueue#multiDispatchLmqQueue, which fail on both.
    """
    names = properties.get(PROPERTY_MULTI_DISPATCH, "").split(",")
    offsets = properties.get(PROPERTY_MULTI_QUEUE_OFFSET, "").split(",")
    if len(names) != len(offsets):
        return ()
    return tuple(
        (name, int(offset))
        for name, offset in zip(names, offsets, strict=True)
        if is_light_queue(name) and is_number(offset)
    )


def is_number(text: str) -> bool:
    """Whether a text is a number as the store writes it: digits alone."""
    return text.isascii() and text.isdecimal() and len(text) < 20


def delivery_time(level: int, store_timestamp: int) -> int:
    """When a delayed message is due: the tags code of its unit.

    Source: CommitLog#checkMessageAndReturnSize, ScheduleMessageService.
    """
    assert level > 0, level
    return store_timestamp + DELAYS_MS[min(level, len(DELAYS_MS)) - 1]
