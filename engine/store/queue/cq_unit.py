"""The units of a ConsumeQueue: 20 bytes that point at one record of the log.

Layout, big-endian: phy_offset i64 | size i32 | tags_code i64.

Source: org.apache.rocketmq.store.ConsumeQueue#putMessagePositionInfo, #fillPreBlank,
RocketMQ 5.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

CQ_STORE_UNIT_SIZE = 20
UNIT = struct.Struct(">qiq")
assert UNIT.size == CQ_STORE_UNIT_SIZE
BLANK_SIZE = 0x7FFFFFFF
PRE_BLANK = UNIT.pack(0, BLANK_SIZE, 0)


def encode_unit(phy_offset: int, size: int, tags_code: int) -> bytes:
    """One unit, big-endian: phy_offset i64 | size i32 | tags_code i64, 20 bytes.

    Raises:
        ValueError: phy_offset or size is out of range; such a unit would be read as
            the queue's end.

    Source: ConsumeQueue#putMessagePositionInfo.
    """
    if phy_offset < 0 or size <= 0:
        raise ValueError(
            f"cannot index a message at phy_offset {phy_offset} of {size} bytes: it "
            f"must be >= 0, and size > 0. Pass what CommitLog.put_message returned."
        )
    return UNIT.pack(phy_offset, size, tags_code)


def decode_units(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(phy_offset, size, tags_code) of each whole unit in ``data``."""
    return UNIT.iter_unpack(data[: len(data) - len(data) % CQ_STORE_UNIT_SIZE])


def is_pre_blank(unit: bytes) -> bool:
    """Whether a unit is a placeholder for a queue_offset that has no record here."""
    return unit == PRE_BLANK


def end_of_units(data: bytes) -> int:
    """The end of the well-formed units at the beginning of ``data``."""
    for n, (phy_offset, size, _) in enumerate(UNIT.iter_unpack(data)):
        if phy_offset < 0 or size <= 0:
            return n * CQ_STORE_UNIT_SIZE
    return len(data)
