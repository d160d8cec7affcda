"""Encodes a message into its record, all but its offsets and store time.

``message_codec`` describes the layout, and decodes it.

Source: org.apache.rocketmq.store.MessageExtEncoder, RocketMQ 5.3. Differs: the version
is chosen by the topic's length in bytes, not in characters; the flags for IPv6 are set
by the addresses; and a message is refused that would not be decoded as it was put: a
NUL, a number out of its range, a delay that is not a number, a property whose name only
the store may use.
"""

from __future__ import annotations

from struct import Struct
from zlib import crc32

from crashmq.engine.store.message.message import (
    BORN_HOST_V6_FLAG,
    INNER_BATCH_FLAG,
    LIGHT_PREFIX,
    PROPERTY_CRC32,
    PROPERTY_DELAY,
    PROPERTY_INNER_NUM,
    PROPERTY_MULTI_QUEUE_OFFSET,
    SCHEDULE_TOPIC,
    STORE_HOST_V6_FLAG,
    TOPIC_SIZE_MAX,
    Message,
    is_light_queue,
    is_number,
    is_topic,
    properties_to_bytes,
)
from crashmq.engine.store.message.message_codec import (
    HEADERS,
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    PROP_CRC_NAME,
    PROP_CRC_SIZE,
    PROPERTIES_SIZE_MAX,
    SHORT,
    TOPIC_SIZE_MAX_V1,
    prop_crc_digits,
)
from crashmq.engine.store.results import PutMessageStatus

EXTRA_SIZE_MAX = 65536
QUEUE_ID_MAX = 0x7FFFFFFF
SYS_FLAG_MAX = 0x7FF
_ILLEGAL = PutMessageStatus.MESSAGE_ILLEGAL
_I32 = 1 << 31
_I64 = 1 << 63


class MessageRejected(Exception):
    """No record can hold this message; ``status`` is the answer to its put."""

    def __init__(self, status: PutMessageStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class EncodedMessage:
    """A record without the fields that only the append knows: offsets and store time.

    Attributes:
        size: the record's bytes.
    """

    __slots__ = ("_has_prop_crc", "_header", "_parts", "_tail", "size")

    def __init__(
        self,
        size: int,
        header: Struct,
        parts: tuple[tuple[object, ...], tuple[object, ...], tuple[object, ...]],
        tail: bytes,
        *,
        has_prop_crc: bool,
    ) -> None:
        self.size = size
        self._header = header
        self._parts = parts  # fields before the offsets, before the time, and after it
        self._tail = tail
        self._has_prop_crc = has_prop_crc

    def placed(self, queue_offset: int, phy_offset: int, store_timestamp: int) -> bytes:
        """The record as it is written at ``phy_offset``."""
        first, middle, last = self._parts
        header = self._header.pack(
            *first, queue_offset, phy_offset, *middle, store_timestamp, *last
        )
        record = header + self._tail
        if not self._has_prop_crc:
            return record
        return record[:-11] + prop_crc_digits(record[:-PROP_CRC_SIZE]) + b"\x02"


def encode_message(
    message: Message, max_message_size: int, *, prop_crc: bool = False
) -> EncodedMessage:
    """Encode one record, to be ``placed`` once its offsets are known.

    ``prop_crc`` ends it with a CRC over all of it.

    Raises:
        MessageRejected: MESSAGE_ILLEGAL or PROPERTIES_SIZE_EXCEEDED, it has taken no
            queue_offset.

    Source: MessageExtEncoder#encode.
    """
    _check_fields(message)
    topic = message.topic.encode()
    properties = _encode_properties(message, prop_crc=prop_crc)
    body = message.body
    _check_sizes(len(topic), len(body), len(properties), max_message_size)
    born, store = message.born_host, message.store_host
    sys_flag = message.sys_flag & ~(BORN_HOST_V6_FLAG | STORE_HOST_V6_FLAG)
    if len(born.ip) == 16:
        sys_flag |= BORN_HOST_V6_FLAG
    if len(store.ip) == 16:
        sys_flag |= STORE_HOST_V6_FLAG
    if len(topic) > TOPIC_SIZE_MAX_V1:
        magic, topic_size = MESSAGE_MAGIC_CODE_V2, SHORT.pack(len(topic))
    else:
        magic, topic_size = MESSAGE_MAGIC_CODE, bytes((len(topic),))
    header = HEADERS[len(born.ip), len(store.ip)]
    tail = b"".join((body, topic_size, topic, SHORT.pack(len(properties)), properties))
    size = header.size + len(tail)
    if size > max_message_size + EXTRA_SIZE_MAX:
        raise MessageRejected(
            _ILLEGAL,
            f"the record would take {size} bytes, more than "
            f"{max_message_size + EXTRA_SIZE_MAX}.",
        )
    crc = crc32(body) & 0x7FFFFFFF
    times, prepared_at = message.reconsume_times, message.prepared_transaction_offset
    parts = (
        (size, magic, crc, message.queue_id, message.flag),
        (sys_flag, message.born_timestamp, born.ip, born.port),
        (store.ip, store.port, times, prepared_at, len(body)),
    )
    return EncodedMessage(size, header, parts, tail, has_prop_crc=prop_crc)


def check_reserved(message: Message) -> None:
    """Refuse properties that only the store may write, and inner batches.

    Raises:
        MessageRejected: MESSAGE_ILLEGAL.

    Source: HookUtils#checkInnerBatch, DefaultMessageStore#asyncPutMessage.
    """
    properties = message.properties
    if message.sys_flag & INNER_BATCH_FLAG or PROPERTY_INNER_NUM in properties:
        why = "an inner batch needs a topic of batch queues, which this store has not."
        raise MessageRejected(_ILLEGAL, why)
    if PROPERTY_MULTI_QUEUE_OFFSET in properties:
        why = f"{PROPERTY_MULTI_QUEUE_OFFSET} is given by the store."
        raise MessageRejected(_ILLEGAL, why)
    delay = properties.get(PROPERTY_DELAY, "")
    if message.topic == SCHEDULE_TOPIC and delay and not is_number(delay):
        raise MessageRejected(_ILLEGAL, f"{PROPERTY_DELAY} {delay!r} is no number.")


def check_light_queues(topic: str, names: tuple[str, ...]) -> None:
    """Refuse a list of light queues with a name that is none, or with one name twice.

    Raises:
        MessageRejected: MESSAGE_ILLEGAL. RocketMQ appends such a record; then nothing
            after it is dispatched any more, and the store does not start again.
    """
    for number, name in enumerate(names):
        if not is_light_queue(name):
            why = f"{name!r} is no light queue: begin it with {LIGHT_PREFIX}."
            raise MessageRejected(_ILLEGAL, why)
        if name in names[:number] or name == topic:
            raise MessageRejected(_ILLEGAL, f"the light queue {name} is named twice.")


def _check_fields(message: Message) -> None:
    if not is_topic(message.topic):
        raise MessageRejected(
            _ILLEGAL,
            f"{message.topic!r} is no topic: it names a directory, so use no / in it, "
            f"nor a NUL or a line's end.",
        )
    if (
        0 <= message.queue_id <= QUEUE_ID_MAX
        and -_I32 <= message.flag < _I32
        and 0 <= message.sys_flag <= SYS_FLAG_MAX
        and -_I64 <= message.born_timestamp < _I64
        and 0 <= message.reconsume_times < _I32
        and 0 <= message.prepared_transaction_offset < _I64
    ):
        return
    for name, least, below in (
        ("queue_id", 0, QUEUE_ID_MAX + 1),
        ("flag", -_I32, _I32),
        ("sys_flag", 0, SYS_FLAG_MAX + 1),
        ("born_timestamp", -_I64, _I64),
        ("reconsume_times", 0, _I32),
        ("prepared_transaction_offset", 0, _I64),
    ):
        if not least <= getattr(message, name) < below:
            raise MessageRejected(
                _ILLEGAL,
                f"{name} {getattr(message, name)} is not in [{least}, {below}).",
            )


def _encode_properties(message: Message, *, prop_crc: bool) -> bytes:
    properties = message.properties
    if not properties and not prop_crc and not message.raw_properties:
        return b""
    if PROPERTY_CRC32 in properties:
        # One that was read carries the CRC of the record it was read from.
        properties = {k: v for k, v in properties.items() if k != PROPERTY_CRC32}
    try:
        data = message.raw_properties or properties_to_bytes(properties)
    except UnicodeEncodeError as error:
        why = f"a property is no Unicode text: {error}."
        raise MessageRejected(_ILLEGAL, why) from None
    if 0 in data:
        raise MessageRejected(
            _ILLEGAL,
            "a property holds a NUL, which recovery could not tell from a lost sector.",
        )
    if not prop_crc:
        return data
    if data and not data.endswith(b"\x02"):
        data += b"\x02"  # a producer of a batch may leave out the last one
    return data + PROP_CRC_NAME + b"0000000000\x02"


def _check_sizes(topic: int, body: int, properties: int, body_max: int) -> None:
    if topic > TOPIC_SIZE_MAX:
        raise MessageRejected(
            _ILLEGAL,
            f"the topic takes {topic} bytes, at most {TOPIC_SIZE_MAX} are allowed.",
        )
    if properties > PROPERTIES_SIZE_MAX:
        raise MessageRejected(
            PutMessageStatus.PROPERTIES_SIZE_EXCEEDED,
            f"the properties take {properties} bytes, at most "
            f"{PROPERTIES_SIZE_MAX} fit their length field.",
        )
    if body > body_max:
        raise MessageRejected(
            _ILLEGAL,
            f"the body takes {body} bytes, max_message_size is {body_max}.",
        )
