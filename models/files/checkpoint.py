"""The checkpoint: five fields of RocketMQ, and the durable mark in two slots.

Bytes 0..39, big-endian i64: physic_msg_timestamp | logics_msg_timestamp |
index_msg_timestamp | master_flushed_offset | confirm_phy_offset.

Bytes 512 and 1024, a slot each: magic u32 "CRMQ" | version u32 = 2 | sequence i64 |
log_min_offset i64 | durable_offset i64 | log_file_size i32 | queue_file_size i32 |
dispatched_offset i64 | number of sums u32 | the sums, u32 each | CRC-32 u32 of all
before; version 1 ends with queue_file_size and its CRC; version 3, of a log that
another program wrote to as well, has others_until i64 | damaged_until i64 in front of
the number of sums. A sum is the CRC-32 of a log
file; the last one that of its file's bytes below durable_offset. The two are written in
turn, so a torn write leaves the older one; RocketMQ ignores both.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

from crashmq.models.files.record import Bytes

CHECKPOINT_SIZE = 4096
SLOT_POSITIONS = (512, 1024)

_FIELDS = struct.Struct(">5q")
_SLOTS = {
    1: struct.Struct(">IIqqqii"),
    2: struct.Struct(">IIqqqiiqI"),
    3: struct.Struct(">IIqqqiiqqqI"),
}
_SLOT_MAGIC = 0x43524D51
SECTOR_SIZE = 512
"""Of a medium: what a write tears, it tears between two sectors; a slot has one."""
SUMS_MAX = 64
assert [slot.size for slot in _SLOTS.values()] == [40, 52, 68]


class Mark(NamedTuple):
    """The durable mark: the log is durable from log_min_offset to durable_offset.

    Records below ``dispatched_offset`` have durable units too. Those below
    ``others_until`` may be another program's, and damage below ``damaged_until`` is
    older than this store.
    """

    sequence: int
    log_min_offset: int
    durable_offset: int
    log_file_size: int
    queue_file_size: int
    position: int
    dispatched_offset: int = 0
    sums: tuple[int, ...] = ()
    others_until: int = 0
    damaged_until: int = 0

    def sum_of(self, base: int) -> int | None:
        """The mark's CRC-32 of the log file at ``base``; None if it has none."""
        if self.log_file_size <= 0:
            return None
        last = (self.durable_offset - 1) // self.log_file_size * self.log_file_size
        number = len(self.sums) - 1 - (last - base) // self.log_file_size
        return self.sums[number] if 0 <= number < len(self.sums) else None

    @property
    def is_empty(self) -> bool:
        """Whether the mark promises no bytes."""
        return self.durable_offset <= self.log_min_offset


class CheckpointImage(NamedTuple):
    """The decoded checkpoint; fields past the file's end are 0.

    ``torn_slots`` are the positions of slots that are neither valid nor all zero.
    """

    physic_msg_timestamp: int
    logics_msg_timestamp: int
    index_msg_timestamp: int
    master_flushed_offset: int
    confirm_phy_offset: int
    mark: Mark | None
    torn_slots: tuple[int, ...]
    size: int

    @property
    def is_confirmed_by_others(self) -> bool:
        """Whether RocketMQ, as of 5.0, has written it since the mark was.

        Source: StoreCheckpoint#setConfirmPhyOffset; this store never sets the field.
        """
        is_ours_alone = self.mark is not None and not self.mark.others_until
        return is_ours_alone and self.confirm_phy_offset > 0


def read_checkpoint(data: Bytes) -> CheckpointImage:
    """Decode a checkpoint of any length."""
    head = bytes(data[: _FIELDS.size]).ljust(_FIELDS.size, b"\0")
    physic, logics, index, master, confirm = _FIELDS.unpack(head)
    mark: Mark | None = None
    torn: list[int] = []
    for position in SLOT_POSITIONS:
        raw = bytes(data[position : position + SECTOR_SIZE])
        slot = _read_slot(raw, position)
        if slot is None:
            if raw.strip(b"\0"):
                torn.append(position)
        elif mark is None or slot.sequence > mark.sequence:
            mark = slot
    return CheckpointImage(
        physic, logics, index, master, confirm, mark, tuple(torn), len(data)
    )


def _read_slot(raw: bytes, position: int) -> Mark | None:
    layout = _SLOTS.get(int.from_bytes(raw[4:8], "big"))
    if layout is None or len(raw) < layout.size:
        return None
    magic, version, sequence, *rest = layout.unpack_from(raw)
    count = min(rest[-1], SUMS_MAX) if version > 1 else 0
    end = layout.size + 4 * count
    if magic != _SLOT_MAGIC or raw[end : end + 4] != crc32(raw[:end]).to_bytes(
        4, "big"
    ):
        return None
    sums = struct.unpack_from(f">{count}I", raw, layout.size)
    dispatched = rest[4] if version > 1 else 0
    others = rest[5:7] if version > 2 else (0, 0)
    return Mark._make((sequence, *rest[:4], position, dispatched, sums, *others))
