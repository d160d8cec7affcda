"""The record of a message in the CommitLog: seventeen fields, byte for byte.

Layout, big-endian: totalSize i32 | magic i32 | bodyCRC i32 | queueId i32 | flag i32 |
queueOffset i64 | physicalOffset i64 | sysFlag i32 | bornTimestamp i64 | bornHost 8 or
20 | storeTimestamp i64 | storeHost 8 or 20 | reconsumeTimes i32 |
preparedTransactionOffset i64 | bodyLength i32, body | topicLength i8 (v1) or i16 (v2),
topic | propertiesLength i16, properties. A file ends with a filler: the number of bytes
left in the file i32 | BLANK magic i32.

With ``enabled_append_prop_crc`` the properties end with ``__CRC32#`` 0x01, ten decimal
digits, the lowest first, and 0x02: a CRC over all of the record before them. Records
without it, from before the option was turned on, are checked by their body's CRC alone.

Without it no CRC covers topic and properties, and a lost sector reads as zeros. So this
store refuses to put a NUL there, and takes a NUL that it reads for lost bytes. RocketMQ
puts NULs; so of another program's record only two things count as loss: as many NULs in
a row as ``_PIECE`` has; or a NUL at the properties' end, if only zeros follow the
record, or if all of its ``_PIECE`` of the file is zeros.

Source: CommitLog#checkMessageAndReturnSize, MessageExtEncoder, RocketMQ 5.3. Differs:
a record counts only at the phy_offset that it contains, its length is checked before
anything else is read, and a filler must reach to its file's end.
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32

from crashmq.engine.store.dispatch import FILLER, DispatchRequest, illegal
from crashmq.engine.store.message.message import (
    BORN_HOST_V6_FLAG,
    PROPERTY_DELAY,
    PROPERTY_TAGS,
    SCHEDULE_TOPIC,
    STORE_HOST_V6_FLAG,
    delivery_time,
    has_unit,
    is_number,
    light_places,
    properties_from_text,
    tags_code,
)

MESSAGE_MAGIC_CODE = -626843481  # 0xDAA320A7
MESSAGE_MAGIC_CODE_V2 = -626843477  # 0xDAA320AB
_MESSAGE_MAGICS = (MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2)
BLANK_MAGIC_CODE = -875286124  # 0xCBD43194
BLANK_SIZE_MIN = 8
PROPERTIES_SIZE_MAX = 32767
TOPIC_SIZE_MAX_V1 = 127
FIXED_SIZE = 91  # of a v1 record with two IPv4 hosts, without body, topic, properties

_LENGTH_AND_MAGIC = struct.Struct(">ii")
_TIMESTAMP = struct.Struct(">q")
_STORE_TIMESTAMP_AT = {4: 56, 16: 68}
# totalSize to bodyLength, for each width of born and store address
HEADERS = {
    (born, store): struct.Struct(f">iiiiiqqiq{born}siq{store}siiqi")
    for born in (4, 16)
    for store in (4, 16)
}
_HEADER_V4 = HEADERS[4, 4]
assert _HEADER_V4.size == 88
_V6_FLAGS = BORN_HOST_V6_FLAG | STORE_HOST_V6_FLAG
SHORT = struct.Struct(">h")

_PIECE = bytes(64)  # the least part of a page that a power loss takes
SEEN_BEHIND = 4  # bytes after a record that are lost if its end is
_MULTI_QUEUE_OFFSET = b"INNER_MULTI_QUEUE_OFFSET\x01"
PROP_CRC_NAME = b"__CRC32#\x01"
PROP_CRC_SIZE = len(PROP_CRC_NAME) + 11
assert PROP_CRC_SIZE == 20

# Why bytes are no record, in the order in which it is asked.
TOO_SHORT = illegal("fewer bytes than a length and a magic")
BAD_FILLER = illegal("a filler that does not reach its file's end")
BAD_MAGIC = illegal("neither a record's magic nor a filler's")
BAD_SIZE = illegal("a size that no record has, or that its file has not")
BAD_BODY = illegal("a body of a size that its record has not")
BAD_OFFSET = illegal("a record of another offset")
BAD_TIME = illegal("no time at which it was stored: lost bytes that no CRC covers")
BAD_BODY_CRC = illegal("a body that is not its CRC's")
BAD_TOPIC = illegal("a topic whose length is negative, or that lost bytes")
BAD_PROPERTIES = illegal("properties too long, or that lost bytes")
BAD_PROP_CRC = illegal("a record that is not its property CRC's")
_HALF = "lengths that do not add up"


def _header_of(sys_flag: int) -> struct.Struct:
    """The header layout before the body of a record with these flags."""
    return HEADERS[
        16 if sys_flag & BORN_HOST_V6_FLAG else 4,
        16 if sys_flag & STORE_HOST_V6_FLAG else 4,
    ]


def encode_filler(size: int) -> bytes:
    """The eight bytes of a BLANK that closes a file with ``size`` bytes left."""
    assert size >= BLANK_SIZE_MIN, size
    return _LENGTH_AND_MAGIC.pack(size, BLANK_MAGIC_CODE)


def prop_crc_digits(covered: bytes | memoryview) -> bytes:
    """The ten digits of a record's CRC: decimal, lowest first, padded with zeros.

    Source: MessageExtEncoder, UtilAll#crc32 over the record, CRC32 as a property.
    """
    return str(crc32(covered) & 0x7FFFFFFF)[::-1].ljust(10, "0").encode()


def check_message(
    data: bytes,
    at: int,
    phy_offset: int,
    left_in_file: int,
    *,
    check_crc: bool,
    prop_crc: bool = False,
    takes_nul: bool = False,
) -> DispatchRequest:
    """Decode the record at ``data[at:]``; see ``DispatchRequest``.

    Args:
        data: bytes of one log file, at least up to the end of the record; with
            ``takes_nul`` also the ``SEEN_BEHIND`` bytes after it, if the file has them.
        at: where in ``data`` the record begins.
        phy_offset: where that is in the log.
        left_in_file: bytes from there to the end of the log file.
        check_crc: check the body's CRC.
        prop_crc: with ``check_crc``, also the CRC over the record, where it has one.
        takes_nul: the properties may have NULs, since RocketMQ may have written them.

    Source: CommitLog#checkMessageAndReturnSize.
    """
    if len(data) - at < BLANK_SIZE_MIN:
        return TOO_SHORT
    total_size, magic = _LENGTH_AND_MAGIC.unpack_from(data, at)
    if magic == BLANK_MAGIC_CODE:
        return FILLER if total_size == left_in_file else BAD_FILLER
    if magic not in _MESSAGE_MAGICS:
        return BAD_MAGIC
    end = at + total_size
    if total_size < FIXED_SIZE or end > len(data) or total_size > left_in_file:
        return BAD_SIZE
    header = _HEADER_V4
    fields = header.unpack_from(data, at)
    if fields[7] & _V6_FLAGS:
        header = _header_of(fields[7])
        if total_size < header.size:
            return BAD_SIZE
        fields = header.unpack_from(data, at)
    body_at = at + header.size
    topic_at = body_at + fields[16]
    if fields[16] < 0 or topic_at >= end:
        return BAD_BODY
    if fields[6] != phy_offset:
        return BAD_OFFSET
    if check_crc:
        if not fields[11]:
            return BAD_TIME
        body = data[body_at:topic_at]
        if body and crc32(body) & 0x7FFFFFFF != fields[2]:
            return BAD_BODY_CRC
    request = _check_names(
        data, topic_at, end, fields, check_nul=check_crc, takes_nul=takes_nul
    )
    if check_crc and prop_crc and request.success:
        stored = request.properties[-PROP_CRC_SIZE:]
        covered = data[at : end - PROP_CRC_SIZE]
        crc = prop_crc_digits(covered) + b"\x02"
        if ends_with_crc(stored) and stored[9:] != crc:
            return BAD_PROP_CRC
    return request


def _check_names(
    data: bytes,
    topic_at: int,
    end: int,
    fields: tuple[Any, ...],
    *,
    check_nul: bool,
    takes_nul: bool,
) -> DispatchRequest:
    """Check topic and properties of a record whose header and body are right."""
    if fields[1] == MESSAGE_MAGIC_CODE:
        topic_size = data[topic_at]
        topic_at += 1
        if topic_size > TOPIC_SIZE_MAX_V1:
            return BAD_TOPIC
    else:
        topic_size = int.from_bytes(data[topic_at : topic_at + 2], "big")
        topic_at += 2
    properties_at = topic_at + topic_size + 2
    if not topic_size or properties_at > end:
        return DispatchRequest(False, fields[0], flaw=_HALF)
    properties_size = int.from_bytes(data[properties_at - 2 : properties_at], "big")
    if properties_at + properties_size != end:
        return DispatchRequest(False, fields[0], flaw=_HALF)
    if properties_size > PROPERTIES_SIZE_MAX:
        return BAD_PROPERTIES
    raw_topic, properties = data[topic_at : properties_at - 2], data[properties_at:end]
    if check_nul and 0 in raw_topic:
        return BAD_TOPIC
    if check_nul and 0 in properties:
        behind = data[end : end + SEEN_BEHIND]
        in_piece = (fields[6] + fields[0]) % len(_PIECE)
        if _has_lost(properties, behind, in_piece, takes_nul=takes_nul):
            return BAD_PROPERTIES
    topic = raw_topic.decode(errors="replace")
    code = _tags_code_of(properties) if properties else 0
    if topic == SCHEDULE_TOPIC:
        code = _delivery_time(properties, fields[11], code)
    lights: tuple[tuple[str, int], ...] = ()
    if _MULTI_QUEUE_OFFSET in properties and has_unit(fields[7]):
        lights = light_places(properties_from_bytes(properties))
    place = (topic, fields[3], fields[6], code, fields[11], fields[5], fields[7])
    # Past its generated constructor: a start makes one for every record of the log.
    return tuple.__new__(
        DispatchRequest, (True, fields[0], *place, properties, lights, "", -1, b"")
    )


def _has_lost(
    properties: bytes, behind: bytes, in_piece: int, *, takes_nul: bool
) -> bool:
    """Whether NULs in the properties show that bytes were lost.

    ``behind`` are the bytes after the record, ``in_piece`` how many of the record's
    last bytes lie in the same ``_PIECE`` of the file as they: whatever loses these
    bytes loses those too.
    """
    written = _written_part(properties)
    if not takes_nul:
        return 0 in written
    if _PIECE in written:
        return True
    if written[-1:] != b"\0" or not behind:
        return False
    last_piece = properties[-in_piece:] + behind[: len(_PIECE) - in_piece]
    return not any(behind) or not any(last_piece)


def _written_part(properties: bytes) -> bytes:
    """The properties without the 20 bytes that RocketMQ 5.3.0 appends by mistake.

    Behind a record's offsets in light queues it reserves room for a CRC that it does
    not write, so that old bytes of its buffer stay there. This store's records end with
    the offsets, or with the CRC.
    """
    if _MULTI_QUEUE_OFFSET not in properties or properties[-21:-20] != b"\x02":
        return properties
    return properties if ends_with_crc(properties) else properties[:-PROP_CRC_SIZE]


def ends_with_crc(properties: bytes) -> bool:
    """Whether properties end with the CRC of their record, correct or not."""
    return properties[-PROP_CRC_SIZE:-11] == PROP_CRC_NAME


def properties_of(record: bytes) -> dict[str, str]:
    """The properties of a record that is known to be intact."""
    header = _header_of(int.from_bytes(record[36:40], "big"))
    topic_at = header.size + int.from_bytes(
        record[header.size - 4 : header.size], "big"
    )
    is_v2 = record[4:8] == MESSAGE_MAGIC_CODE_V2.to_bytes(4, "big", signed=True)
    name_at = topic_at + (2 if is_v2 else 1)
    topic_size = int.from_bytes(record[topic_at:name_at], "big")
    return properties_from_bytes(record[name_at + topic_size + 2 :])


def size_beyond(data: bytes, at: int, left_in_file: int) -> int:
    """How many bytes from ``at`` on must be read to have the whole record.

    0 if ``data`` has enough: the record is all there, or it is not a record.
    """
    there = len(data) - at
    if there < BLANK_SIZE_MIN:
        return min(left_in_file, BLANK_SIZE_MIN) if there < left_in_file else 0
    total_size, magic = _LENGTH_AND_MAGIC.unpack_from(data, at)
    if magic not in _MESSAGE_MAGICS:
        return 0
    return total_size if there < total_size <= left_in_file else 0


def store_timestamp_of(record: bytes) -> int:
    """A record's store time in milliseconds, from its first ``FIXED_SIZE`` bytes."""
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
    return tags_code(properties_from_bytes(properties).get(PROPERTY_TAGS, ""))


def properties_from_bytes(properties: bytes) -> dict[str, str]:
    """Properties by name, decoded from a record's bytes."""
    return properties_from_text(properties.decode(errors="replace"))


def _delivery_time(properties: bytes, store_timestamp: int, code: int) -> int:
    level = properties_from_bytes(properties).get(PROPERTY_DELAY, "")
    if not is_number(level) or int(level) == 0:
        return code
    return delivery_time(int(level), store_timestamp)
