"""One record of the log: 17 fields, decoded and checked to be intact.

A record is intact if its magic, its size, its inner lengths, the CRC of its body and
its own phy_offset are right. Apache RocketMQ checks all but the last; without that
check a record left over from an earlier life of the file would pass.

Layout, big-endian: size i32 | magic i32 | body_crc i32 | queue_id i32 | flag i32 |
queue_offset i64 | phy_offset i64 | sys_flag i32 | born_timestamp i64 | born_host |
store_timestamp i64 | store_host | reconsume_times i32 | prepared_transaction_offset
i64 | body length i32, body | topic length i8 (v2: i16), topic | properties length
i16, properties. A host is 4 or 16 bytes of address and an i32 port.

If the properties end with ``__CRC32#``, its digits cover everything before them and are
checked too; the store adds it, so it does not belong to the message.

This is written from the format's description alone and shares nothing with the
engine's codec, so that one mistake cannot be in both.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from crashmq.models.files.checksum import crc32
from crashmq.models.files.message_delay_level import DEFAULT_LEVELS, DelayLevels

Bytes: TypeAlias = bytes | memoryview

MAGIC_V1 = 0xDAA320A7
MAGIC_V2 = 0xDAA320AB
MAGIC_BLANK = 0xCBD43194
RECORD_SIZE_MIN = 91
FILLER_SIZE_MIN = 8

FlawKind = Literal[
    "end",
    "zeros",
    "magic",
    "size",
    "lengths",
    "crc",
    "phy_offset",
    "store_timestamp",
    "properties",
    "filler",
    "missing_file",
]

_HOST_SIZES = ((8, 8), (20, 8), (8, 20), (20, 20))
_HEADS = tuple(
    struct.Struct(f">iIIiiqqiq{born}sq{store}siqi") for born, store in _HOST_SIZES
)
_HEAD = _HEADS[0]
assert [head.size for head in _HEADS] == [88, 100, 100, 112]

_TRANSACTION_MASK = 0xC
_TRANSACTION_NAMES = {0x0: "none", 0x4: "prepared", 0x8: "commit", 0xC: "rollback"}
# Prepared and rollback share bit 2; bit 7 is an inner batch.
_INNER_BATCH = 0x80
_NOT_INDEXED_MASK = 0x84

_PIECE = bytes(64)  # the least part of a page that a power loss takes
_CRC_PROPERTY = b"__CRC32#\x01"
_CRC_PROPERTY_SIZE = 20  # with ten digits and the separator
_LIGHT_QUEUE = re.compile(r"%LMQ%[^/\0\n]+")
_TOPIC_SIZE_MAX = 255
MULTI_QUEUE_OFFSET = b"INNER_MULTI_QUEUE_OFFSET\x01"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"


class BadRecord(ValueError):
    """The bytes are not an intact record; ``kind`` and the text say why."""

    def __init__(self, kind: FlawKind, seen: str) -> None:
        super().__init__(seen)
        self.kind = kind
        self.seen = seen


class Record(NamedTuple):
    """One intact record, as decoded from the log.

    A named tuple and not a dataclass: thousands are made per second, at a fifth of the
    cost. ``body`` is a view into the file where the file was given as one.
    """

    phy_offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    tags_code: int
    store_timestamp: int
    sys_flag: int
    body: Bytes
    properties_raw: bytes
    magic: int
    body_crc: int
    flag: int
    born_timestamp: int
    born_host: bytes
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int

    @property
    def end(self) -> int:
        """The first byte after the record."""
        return self.phy_offset + self.size

    @property
    def transaction_type(self) -> str:
        """``none``, ``prepared``, ``commit`` or ``rollback``."""
        return _TRANSACTION_NAMES[self.sys_flag & _TRANSACTION_MASK]

    @property
    def is_indexed(self) -> bool:
        """Whether a ConsumeQueue has to list it.

        It does not list prepared and rolled back messages, nor inner batches, which
        belong to a BatchConsumeQueue.
        """
        return self.sys_flag & _NOT_INDEXED_MASK == 0

    @property
    def is_inner_batch(self) -> bool:
        """Whether it is an inner batch, which only a BatchConsumeQueue can list."""
        return self.sys_flag & _INNER_BATCH != 0

    @property
    def properties(self) -> dict[str, str]:
        """Properties by name, decoded as by RocketMQ: the last of a name counts."""
        properties = parse_properties(self.properties_raw)
        properties.pop("__CRC32#", None)
        return properties

    @property
    def has_property_crc(self) -> bool:
        """Whether a CRC covers the whole record, not only its body."""
        return has_property_crc(self.properties_raw)

    @property
    def light_places(self) -> tuple[tuple[str, int], ...]:
        """The light queues (LMQ) that list it, each with its queue_offset there."""
        if MULTI_QUEUE_OFFSET not in self.properties_raw:
            return ()
        properties = parse_properties(self.properties_raw)
        names = properties.get("INNER_MULTI_DISPATCH", "").split(",")
        offsets = properties.get("INNER_MULTI_QUEUE_OFFSET", "").split(",")
        if len(names) != len(offsets):
            return ()
        return tuple(
            [
                (name, int(offset))
                for name, offset in zip(names, offsets, strict=True)
                if is_light_queue(name) and _is_number(offset)
            ]
        )


def without_body(record: Record) -> Record:
    """The record with an empty body; equal hosts become one object.

    A body is not needed after its CRC was checked, and those of a large log would not
    fit into memory.
    """
    head, tail = record[:8], record[9:14]
    hosts = _shared(record.born_host), _shared(record.store_host)
    return tuple.__new__(Record, (*head, b"", *tail, *hosts, *record[16:]))


@lru_cache(maxsize=4096)
def _shared(host: bytes) -> bytes:
    return host


def as_listed(record: Record, topic: str) -> Record:
    """The record as the queues of ``topic`` list it.

    A light queue lists it under its own name, with the queue_offset that the record has
    for this light queue.
    """
    if record.topic != topic:
        for name, queue_offset in record.light_places:
            if name == topic:
                return record._replace(
                    topic=name, queue_id=0, queue_offset=queue_offset
                )
    return record


@lru_cache(maxsize=64)
def decode_record(data: bytes, *, takes_nul: bool = False) -> Record:
    """Decode ``data``, which must be exactly one intact record.

    Its place in the log is unknown, so its own ``phy_offset`` is not checked. Cached,
    since pulls read the same records again. ``takes_nul``: as for ``parse_record``.

    Raises:
        BadRecord: ``data`` is not an intact record.
    """
    if len(data) < RECORD_SIZE_MIN:
        raise BadRecord("size", f"{len(data)} bytes are fewer than a record's 91")
    record = parse_record(data, 0, len(data), None, takes_nul=takes_nul)
    if record.size != len(data):
        raise BadRecord("size", f"size field {record.size}, but {len(data)} bytes")
    return record


def message_id(store_host: bytes, phy_offset: int) -> str:
    """RocketMQ's offsetMsgId, for a store host as in a record.

    Source: MessageDecoder#createMessageId.
    """
    return f"{store_host.hex()}{phy_offset:016x}".upper()


def decode_answer(data: bytes) -> Record:
    """Decode a record that a store has returned, as a client does.

    Clients accept a NUL in a property, as RocketMQ does; comparing with what was put
    shows whether it was put like that.

    Raises:
        BadRecord: as ``decode_record``.
    """
    return decode_record(data, takes_nul=True)


def parse_record(
    data: Bytes,
    position: int,
    limit: int,
    phy_offset: int | None,
    *,
    takes_nul: bool = False,
    levels: DelayLevels = DEFAULT_LEVELS,
) -> Record:
    """Decode and check the record at ``position``.

    Args:
        data: the file.
        position: the record's first byte in ``data``.
        limit: the first byte that no longer belongs to the file.
        phy_offset: the record's position in the log; None if unknown.
        takes_nul: the properties may have NULs, unless these show that bytes were lost.
        levels: those of the broker, by which a delayed message's tags code is computed.

    Raises:
        BadRecord: no intact record is there; checked in the order magic, size, inner
            lengths, body CRC, own phy_offset, store time, properties.
    """
    if limit - position < RECORD_SIZE_MIN:
        raise _too_short(data, position, limit)
    head = _HEAD.unpack_from(data, position)
    size, magic, sys_flag = head[0], head[1], head[7]
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        raise _bad_magic(size, magic)
    end = position + size
    if size < RECORD_SIZE_MIN or end > limit:
        raise _bad_size(size, position, limit)
    body_at = position + 88
    if sys_flag & 0x30:
        layout = _HEADS[(sys_flag >> 4) & 3]
        body_at = position + layout.size
        if body_at + 4 > end:
            raise _bad_lengths(size)
        head = layout.unpack_from(data, position)
    topic_at = body_at + head[14]
    if topic_at < body_at or topic_at + 3 > end:
        raise _bad_lengths(size)
    name_at = topic_at + 1
    length = data[topic_at]
    if magic == MAGIC_V2:
        name_at = topic_at + 2
        length = length << 8 | data[topic_at + 1]
    elif length > 127:
        raise _bad_lengths(size)
    properties_at = name_at + length
    if properties_at + 2 > end:
        raise _bad_lengths(size)
    length = data[properties_at] << 8 | data[properties_at + 1]
    if properties_at + 2 + length != end or length > 32767:
        raise _bad_lengths(size, properties_at + 2 + length - position)
    body = data[body_at:topic_at]
    if topic_at > body_at and crc32(body) & 0x7FFFFFFF != head[2]:
        raise _bad_crc(head[2], body)
    _prove_place(head[6], phy_offset, head[10])
    raw = bytes(data[properties_at + 2 : end])
    name = bytes(data[name_at:properties_at])
    if 0 in name or (
        0 in raw and not (takes_nul and _is_kept(raw, data, end, head[6] + size))
    ):
        _prove_no_nul(name, raw)
    if raw[-_CRC_PROPERTY_SIZE:-11] == _CRC_PROPERTY:
        _prove_property_crc(bytes(data[position : end - _CRC_PROPERTY_SIZE]), raw)
    topic = _text(name)
    code = _tags_code_of(raw) if b"TAGS\x01" in raw else 0
    if topic == SCHEDULE_TOPIC:
        code = _delivery_time(raw, head[10], code, levels)
    place = (head[6], size, topic, head[3], head[5], code, head[10], sys_flag)
    rest = (magic, head[2], head[4], *head[8:10], *head[11:14])
    return tuple.__new__(Record, (*place, body, raw, *rest))


@lru_cache(maxsize=4096)
def tags_code(tags: str) -> int:
    """Java ``String.hashCode``: 31 * h + unit over UTF-16 units, 32 bits, signed."""
    code = 0
    for (unit,) in struct.iter_unpack(">H", tags.encode("utf-16-be", "surrogatepass")):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code - 0x100000000 if code & 0x80000000 else code


def parse_properties(raw: bytes) -> dict[str, str]:
    """Properties by name: ``name 0x01 value 0x02`` each; empty ones are dropped."""
    properties: dict[str, str] = {}
    for piece in raw.decode("utf-8", "replace").split("\x02"):
        name, _, value = piece.partition("\x01")
        if name and value:
            properties[name] = value
    return properties


def is_light_queue(name: str) -> bool:
    """Whether the name is a light queue's (LMQ), which lists other topics' messages."""
    return bool(_LIGHT_QUEUE.fullmatch(name)) and len(name) <= _TOPIC_SIZE_MAX


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def written_part(raw: bytes) -> bytes:
    """The properties without the 20 bytes that RocketMQ 5.3.0 appends by mistake.

    Behind a record's offsets in light queues it reserves room for a CRC that it does
    not write, so that old bytes of its buffer stay there.
    """
    if MULTI_QUEUE_OFFSET in raw and raw[-21:-20] == b"\x02":
        return raw if has_property_crc(raw) else raw[:-_CRC_PROPERTY_SIZE]
    return raw


def _is_kept(raw: bytes, data: Bytes, end: int, phy_end: int) -> bool:
    """Whether NULs in the properties do not show that bytes were lost.

    Lost are as many zeros in a row as ``_PIECE`` has; or a NUL at the end, if only
    zeros follow the record, or if all of its last ``_PIECE`` of the file is zeros. The
    record ends at ``end`` of ``data``, and at ``phy_end`` in the log.
    """
    written = written_part(raw)
    behind = bytes(data[end : end + 4])
    in_piece = phy_end % len(_PIECE)
    last_piece = raw[-in_piece:] + behind[: len(_PIECE) - in_piece]
    is_loss = not any(behind) or not any(last_piece)
    is_end_lost = written[-1:] == b"\0" and bool(behind) and is_loss
    return not is_end_lost and _PIECE not in written


def _prove_place(seen: int, phy_offset: int | None, store_timestamp: int) -> None:
    if seen != phy_offset and phy_offset is not None:
        raise BadRecord("phy_offset", f"the record carries phy_offset {seen}")
    if not store_timestamp:
        raise BadRecord("store_timestamp", "0: lost bytes that no CRC covers")


def _prove_no_nul(name: bytes, raw: bytes) -> None:
    """Reject a NUL: no CRC covers these texts, and a lost sector reads as zeros."""
    if 0 in name or 0 in written_part(raw):
        where = "topic" if 0 in name else "properties"
        raise BadRecord("properties", f"the {where} hold a NUL: bytes were lost")


def has_property_crc(raw: bytes) -> bool:
    """Whether properties end with the CRC of their record."""
    return raw[-_CRC_PROPERTY_SIZE:-11] == _CRC_PROPERTY


def _prove_property_crc(covered: bytes, raw: bytes) -> None:
    """Check the CRC: ten decimal digits, the lowest first, padded with zeros."""
    computed = str(crc32(covered) & 0x7FFFFFFF)[::-1].ljust(10, "0").encode()
    if raw[-11:] != computed + b"\x02":
        text = f"property CRC {raw[-11:-1]!r} is stored, the record's is {computed!r}"
        raise BadRecord("crc", text)


def _delivery_time(
    raw: bytes, store_timestamp: int, code: int, levels: DelayLevels
) -> int:
    """The tags code of a unit of the schedule topic: when to deliver."""
    level = parse_properties(raw).get("DELAY", "")
    if not _is_number(level) or int(level) == 0:
        return code
    return store_timestamp + levels.delay_ms(int(level))


def _tags_code_of(raw: bytes) -> int:
    at = raw.find(b"TAGS\x01")
    is_plain = at == 0 or raw[at - 1] == 2
    if is_plain and raw.find(b"TAGS\x01", at + 5) < 0:
        # Nearly always: TAGS stands there once, as a name of its own.
        tags = _text(raw[at + 5 :].partition(b"\x02")[0])
    else:
        tags = parse_properties(raw).get("TAGS", "")
    return tags_code(tags) if tags else 0


@lru_cache(maxsize=4096)
def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _too_short(data: Bytes, position: int, limit: int) -> BadRecord:
    rest = bytes(data[position:limit])
    if not rest:
        return BadRecord("end", "the file ends")
    if not any(rest[:8]):
        return BadRecord("zeros", "never written")
    if len(rest) < FILLER_SIZE_MIN:
        return BadRecord("size", f"{len(rest)} bytes are left, too few for a filler")
    size, magic = struct.unpack_from(">iI", rest)
    if magic in (MAGIC_V1, MAGIC_V2):
        return _bad_size(size, position, limit)
    return _bad_magic(size, magic)


def _bad_magic(size: int, magic: int) -> BadRecord:
    if magic == MAGIC_BLANK:
        return BadRecord("filler", f"a filler of {size} bytes")
    if magic == 0 and size == 0:
        return BadRecord("zeros", "never written")
    text = f"magic 0x{magic:08X} is neither a record's nor a filler's"
    return BadRecord("magic", text)


def _bad_size(size: int, position: int, limit: int) -> BadRecord:
    if size < RECORD_SIZE_MIN:
        return BadRecord("size", f"size field {size} is below {RECORD_SIZE_MIN}")
    left = limit - position
    text = f"size field {size}, but {left} bytes are left in the file"
    return BadRecord("size", text)


def _bad_lengths(size: int, total: int | None = None) -> BadRecord:
    if total is None:
        text = f"the inner lengths run past the size field, {size}"
    else:
        text = f"the inner lengths add up to {total}, the size field is {size}"
    return BadRecord("lengths", text)


def _bad_crc(stored: int, body: Bytes) -> BadRecord:
    computed = crc32(body) & 0x7FFFFFFF
    text = f"body CRC 0x{stored:08X} is stored, the body's is 0x{computed:08X}"
    return BadRecord("crc", text)
