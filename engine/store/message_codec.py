"""The record of a message in the CommitLog: seventeen fields, byte for byte.

Layout, big-endian: totalSize i32 | magic i32 | bodyCRC i32 | queueId i32 | flag i32 |
queueOffset i64 | physicalOffset i64 | sysFlag i32 | bornTimestamp i64 | bornHost 8 or
20 | storeTimestamp i64 | storeHost 8 or 20 | reconsumeTimes i32 |
preparedTransactionOffset i64 | bodyLength i32, body | topicLength i8 (v1) or i16 (v2),
topic | propertiesLength i16, properties. A file ends with a filler: the bytes left
i32 | BLANK magic i32.

Source: MessageExtEncoder, CommitLog#checkMessageAndReturnSize, RocketMQ 5.3. Differs:
a record counts only at the offset it says is its own, its length is bounded before
anything is read, a filler must reach to its file's end, and the version follows the
topic's bytes, not its characters. No CRC covers topic and properties, and a lost
sector reads as zeros: so a put refuses a NUL, and a check of CRCs takes one as loss.
"""

from __future__ import annotations

import struct
from zlib import crc32

from engine.store.dispatch import FILLER, ILLEGAL, DispatchRequest
from engine.store.message import (
    BORN_HOST_V6_FLAG,
    PROPERTY_TAGS,
    STORE_HOST_V6_FLAG,
    Message,
    is_topic,
    properties_from_text,
    properties_to_bytes,
    tags_code,
)
from engine.store.results import PutMessageStatus

MESSAGE_MAGIC_CODE = -626843481  # 0xDAA320A7
MESSAGE_MAGIC_CODE_V2 = -626843477  # 0xDAA320AB
BLANK_MAGIC_CODE = -875286124  # 0xCBD43194
BLANK_SIZE_MIN = 8
PROPERTIES_SIZE_MAX = 32767
TOPIC_SIZE_MAX_V1 = 127
TOPIC_SIZE_MAX = 255
QUEUE_ID_MAX = 0x7FFFFFFF
EXTRA_SIZE_MAX = 65536
FIXED_SIZE = 91  # of a v1 record with two IPv4 hosts, without body, topic, properties

_LENGTH_AND_MAGIC = struct.Struct(">ii")
_OFFSETS = struct.Struct(">qq")
_OFFSETS_AT = 20
_TIMESTAMP = struct.Struct(">q")
_STORE_TIMESTAMP_AT = {4: 56, 16: 68}
# totalSize to bodyLength, for each width of born and store address
_HEADERS = {
    (born, store): struct.Struct(f">iiiiiqqiq{born}siq{store}siiqi")
    for born in (4, 16)
    for store in (4, 16)
}
assert _HEADERS[4, 4].size == 88
_SHORT = struct.Struct(">h")


class MessageRejected(Exception):
    """A message that no record can hold; ``status`` is the answer to its put."""

    def __init__(self, status: PutMessageStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class EncodedMessage:
    """A record whole but for what only the append knows: its offsets and its time."""

    __slots__ = ("_timestamp_at", "record")

    def __init__(self, record: bytearray, timestamp_at: int) -> None:
        self.record = record
        self._timestamp_at = timestamp_at

    def place(self, queue_offset: int, phy_offset: int, store_timestamp: int) -> None:
        """Fill in where the record will lie and when it was stored."""
        _OFFSETS.pack_into(self.record, _OFFSETS_AT, queue_offset, phy_offset)
        _TIMESTAMP.pack_into(self.record, self._timestamp_at, store_timestamp)


def encode_message(message: Message, max_message_size: int) -> EncodedMessage:
    """Encode one record; ``place`` it before it is written.

    Raises:
        MessageRejected: MESSAGE_ILLEGAL or PROPERTIES_SIZE_EXCEEDED, before anything
            is consumed.

    Source: MessageExtEncoder#encode.
    """
    _check_address(message)
    topic = message.topic.encode()
    properties = _encode_properties(message.properties)
    body = message.body
    _check_sizes(len(topic), len(body), len(properties), max_message_size)
    born, store = message.born_host, message.store_host
    sys_flag = message.sys_flag & ~(BORN_HOST_V6_FLAG | STORE_HOST_V6_FLAG)
    if len(born.ip) == 16:
        sys_flag |= BORN_HOST_V6_FLAG
    if len(store.ip) == 16:
        sys_flag |= STORE_HOST_V6_FLAG
    if len(topic) > TOPIC_SIZE_MAX_V1:
        magic, topic_size = MESSAGE_MAGIC_CODE_V2, _SHORT.pack(len(topic))
    else:
        magic, topic_size = MESSAGE_MAGIC_CODE, bytes((len(topic),))
    header = _HEADERS[len(born.ip), len(store.ip)]
    tail = b"".join((body, topic_size, topic, _SHORT.pack(len(properties)), properties))
    size = header.size + len(tail)
    if size > max_message_size + EXTRA_SIZE_MAX:
        raise MessageRejected(
            PutMessageStatus.MESSAGE_ILLEGAL,
            f"the record would take {size} bytes, more than "
            f"{max_message_size + EXTRA_SIZE_MAX}.",
        )
    record = bytearray(
        header.pack(
            size,
            magic,
            crc32(body) & 0x7FFFFFFF,
            message.queue_id,
            message.flag,
            0,
            0,
            sys_flag,
            message.born_timestamp,
            born.ip,
            born.port,
            0,
            store.ip,
            store.port,
            message.reconsume_times,
            message.prepared_transaction_offset,
            len(body),
        )
    )
    record += tail
    return EncodedMessage(record, _STORE_TIMESTAMP_AT[len(born.ip)])


def _check_address(message: Message) -> None:
    if not is_topic(message.topic):
        raise MessageRejected(
            PutMessageStatus.MESSAGE_ILLEGAL,
            f"{message.topic!r} is no topic: use letters, digits, and % | _ -.",
        )
    if not 0 <= message.queue_id <= QUEUE_ID_MAX:
        raise MessageRejected(
            PutMessageStatus.MESSAGE_ILLEGAL,
            f"queue_id {message.queue_id} is not in [0, {QUEUE_ID_MAX}].",
        )


def _encode_properties(properties: dict[str, str]) -> bytes:
    try:
        data = properties_to_bytes(properties)
    except UnicodeEncodeError as error:
        why = f"a property is no Unicode text: {error}."
        raise MessageRejected(PutMessageStatus.MESSAGE_ILLEGAL, why) from None
    if 0 in data:
        raise MessageRejected(
            PutMessageStatus.MESSAGE_ILLEGAL,
            "a property holds a NUL, which recovery could not tell from a lost sector.",
        )
    return data


def _check_sizes(topic: int, body: int, properties: int, body_max: int) -> None:
    if topic > TOPIC_SIZE_MAX:
        raise MessageRejected(
            PutMessageStatus.MESSAGE_ILLEGAL,
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
            PutMessageStatus.MESSAGE_ILLEGAL,
            f"the body takes {body} bytes, max_message_size is {body_max}.",
        )


def encode_filler(size: int) -> bytes:
    """The eight bytes that close a file with ``size`` bytes left."""
    assert size >= BLANK_SIZE_MIN, size
    return _LENGTH_AND_MAGIC.pack(size, BLANK_MAGIC_CODE)


def check_message(
    data: bytes, at: int, phy_offset: int, left_in_file: int, *, check_crc: bool
) -> DispatchRequest:
    """What lies at ``data[at:]``, read as a record; see ``DispatchRequest``.

    Args:
        data: bytes of one log file, at least up to the end of the record.
        at: where in ``data`` the record begins.
        phy_offset: where in the log that is.
        left_in_file: bytes from there to the end of the log file.
        check_crc: compare the body with its CRC.

    Source: CommitLog#checkMessageAndReturnSize.
    """
    if len(data) - at < BLANK_SIZE_MIN:
        return ILLEGAL
    total_size, magic = _LENGTH_AND_MAGIC.unpack_from(data, at)
    if magic == BLANK_MAGIC_CODE:
        return FILLER if total_size == left_in_file else ILLEGAL
    if magic not in (MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2):
        return ILLEGAL
    end = at + total_size
    if total_size < FIXED_SIZE or end > len(data) or total_size > left_in_file:
        return ILLEGAL
    sys_flag = int.from_bytes(data[at + 36 : at + 40], "big")
    header = _HEADERS[
        16 if sys_flag & BORN_HOST_V6_FLAG else 4,
        16 if sys_flag & STORE_HOST_V6_FLAG else 4,
    ]
    if total_size < header.size:
        return ILLEGAL
    fields = header.unpack_from(data, at)
    body_at = at + header.size
    topic_at = body_at + fields[16]
    if fields[6] != phy_offset or fields[16] < 0 or topic_at >= end:
        return ILLEGAL
    body = data[body_at:topic_at]
    if check_crc and body and crc32(body) & 0x7FFFFFFF != fields[2]:
        return ILLEGAL
    if magic == MESSAGE_MAGIC_CODE:
        topic_size = data[topic_at]
        topic_at += 1
        if topic_size > TOPIC_SIZE_MAX_V1:
            return ILLEGAL
    else:
        topic_size = int.from_bytes(data[topic_at : topic_at + 2], "big")
        topic_at += 2
    properties_at = topic_at + topic_size + 2
    if not topic_size or properties_at > end:
        return DispatchRequest(False, total_size)
    properties_size = int.from_bytes(data[properties_at - 2 : properties_at], "big")
    if properties_at + properties_size != end:
        return DispatchRequest(False, total_size)
    if properties_size > PROPERTIES_SIZE_MAX:
        return ILLEGAL
    if check_crc and 0 in data[topic_at : properties_at - 2]:
        return ILLEGAL
    properties = data[properties_at:end]
    if check_crc and 0 in properties:
        return ILLEGAL
    topic = data[topic_at : topic_at + topic_size].decode(errors="replace")
    code = _tags_code_of(properties) if properties else 0
    place = (topic, fields[3], phy_offset, code, fields[11], fields[5], sys_flag)
    # Past its generated constructor: a start makes one for every record of the log.
    return tuple.__new__(DispatchRequest, (True, total_size, *place, properties))


def size_beyond(data: bytes, at: int, left_in_file: int) -> int:
    """How many bytes to read from ``at`` to have the whole record, if more are needed.

    0 if what is there will do: the record is whole, or it is none.
    """
    there = len(data) - at
    if there < BLANK_SIZE_MIN:
        return min(left_in_file, BLANK_SIZE_MIN) if there < left_in_file else 0
    total_size, magic = _LENGTH_AND_MAGIC.unpack_from(data, at)
    if magic not in (MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2):
        return 0
    return total_size if there < total_size <= left_in_file else 0


def store_timestamp_of(record: bytes) -> int:
    """When a record was stored, by its first ``FIXED_SIZE`` bytes."""
    sys_flag = int.from_bytes(record[36:40], "big")
    at = _STORE_TIMESTAMP_AT[16 if sys_flag & BORN_HOST_V6_FLAG else 4]
    timestamp: int = _TIMESTAMP.unpack_from(record, at)[0]
    return timestamp


def _tags_code_of(properties: bytes) -> int:
    at = properties.find(b"TAGS\x01")
    if at < 0:
        return 0
    is_plain = at == 0 or properties[at - 1] == 2
    if is_plain and properties.find(b"TAGS\x01", at + 5) < 0:
        # Nearly always: TAGS stands there once, as a name of its own.
        value = properties[at + 5 :].partition(b"\x02")[0]
        return tags_code(value.decode(errors="replace"))
    parsed = properties_from_text(properties.decode(errors="replace"))
    return tags_code(parsed.get(PROPERTY_TAGS, ""))
