"""Records that a salvage writes in the place of lost messages.

A *filler* takes up bytes: a rolled-back message, which no queue and no index lists. A
*placeholder* takes the number of a lost message in its queue, so that those after it
keep theirs; it has no body and the property ``CRASHMQ_LOST``.

Layout and the CRC of a whole record: ``models/files/record.py``.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from crashmq.models.files.record import MAGIC_V1, MAGIC_V2, Record, has_property_crc

_HEAD: Final = struct.Struct(">iIIiiqqiq8sq8siqi")
_QUEUE_OFFSET_AT: Final = 20
_CRC_SIZE: Final = 20
_CRC_NAME: Final = b"__CRC32#\x01"
_HOST: Final = bytes((127, 0, 0, 1, 0, 0, 0, 0))
_ROLLBACK: Final = 0xC
FILLER_TOPIC: Final = "CRASHMQ_SALVAGE"
LOST: Final = b"CRASHMQ_LOST\x01true\x02"
SHORT_TOPIC_MAX: Final = 127
BLANK_SIZE_MIN: Final = 8
assert _HEAD.size == 88


def overhead(topic: str, *, has_crc: bool) -> int:
    """The size of a record of a topic without body and properties, in bytes."""
    name = topic.encode()
    length = 1 if len(name) <= SHORT_TOPIC_MAX else 2
    return _HEAD.size + length + len(name) + 2 + (_CRC_SIZE if has_crc else 0)


def filler_size_min(*, has_crc: bool) -> int:
    """The size of the smallest filler, in bytes: its topic has one letter."""
    return overhead(FILLER_TOPIC[:1], has_crc=has_crc)


def filler_topic(size: int, *, has_crc: bool) -> str:
    """The topic of a filler of this many bytes: as much of the name as has room."""
    more = size - filler_size_min(has_crc=has_crc)
    return FILLER_TOPIC[: 1 + more]


def filler(size: int, phy_offset: int, store_timestamp: int, *, has_crc: bool) -> bytes:
    """A rolled-back record of exactly this many bytes."""
    topic = filler_topic(size, has_crc=has_crc)
    body = size - overhead(topic, has_crc=has_crc)
    place = topic, 0, 0, phy_offset, store_timestamp
    return _record(place, bytes(body), _ROLLBACK, b"", has_crc=has_crc)


def placeholder(
    place: tuple[str, int, int],
    phy_offset: int,
    store_timestamp: int,
    size: int,
    *,
    has_crc: bool,
) -> bytes:
    """A message for (topic, queue_id, queue_offset) of exactly this many bytes."""
    room = size - overhead(place[0], has_crc=has_crc)
    properties = LOST if room >= len(LOST) else b""
    body = bytes(room - len(properties))
    whole = *place, phy_offset, store_timestamp
    return _record(whole, body, 0, properties, has_crc=has_crc)


def _record(
    place: tuple[str, int, int, int, int],
    body: bytes,
    sys_flag: int,
    properties: bytes,
    *,
    has_crc: bool,
) -> bytes:
    """``place`` is topic, queue_id, queue_offset, phy_offset and store_timestamp."""
    topic, queue_id, queue_offset, phy_offset, store_timestamp = place
    name = topic.encode()
    is_short = len(name) <= SHORT_TOPIC_MAX
    magic = MAGIC_V1 if is_short else MAGIC_V2
    length = len(name).to_bytes(1 if is_short else 2, "big")
    tail = len(properties) + (_CRC_SIZE if has_crc else 0)
    size = _HEAD.size + len(body) + len(length) + len(name) + 2 + tail
    crc = crc32(body) & 0x7FFFFFFF if body else 0
    head = _HEAD.pack(
        *(size, magic, crc, queue_id, 0, queue_offset, phy_offset, sys_flag),
        *(store_timestamp, _HOST, store_timestamp, _HOST, 0, 0, len(body)),
    )
    covered = b"".join((head, body, length, name, tail.to_bytes(2, "big"), properties))
    return covered + (_crc_of(covered) if has_crc else b"")


def _crc_of(covered: bytes) -> bytes:
    digits = str(crc32(covered) & 0x7FFFFFFF)[::-1].ljust(10, "0")
    return _CRC_NAME + digits.encode() + b"\x02"


def renumbered(raw: bytes, record: Record, queue_offset: int) -> bytes:
    """The bytes of a record with another queue_offset."""
    at = _QUEUE_OFFSET_AT
    changed = raw[:at] + queue_offset.to_bytes(8, "big") + raw[at + 8 :]
    if has_property_crc(record.properties_raw):
        covered = changed[:-_CRC_SIZE]
        return covered + _crc_of(covered)
    return changed


def blank(size: int) -> bytes:
    """The head of a BLANK of this many bytes, which ends its file."""
    return struct.pack(">iI", size, 0xCBD43194)
