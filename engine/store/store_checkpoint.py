"""StoreCheckpoint: timestamps for RocketMQ, and a durable mark of our own.

The first 40 bytes of the 4096 are RocketMQ's five fields, i64 big-endian:
physicMsgTimestamp | logicsMsgTimestamp | indexMsgTimestamp | masterFlushedOffset |
confirmPhyOffset. At bytes 512 and 1024, in sectors of their own, lie two slots of the
durable mark, written in turn: magic u32 | version u32 | sequence i64 | log_min_offset
i64 | durable_offset i64 | log_file_size i32 | queue_file_size i32 | dispatched_offset
i64 | number of sums u32 | so many CRC-32 u32 | CRC-32 u32 of all before. Version 1 ends
with queue_file_size and its CRC. Version 3, for a store that another program wrote to,
has others_until i64 | damaged_until i64 before the number of sums. Each sum is that of
one whole log file; the last one is that of the newest file's durable part.

Of two valid slots the one with the higher sequence counts. Everything below
``durable_offset`` was synced before the mark was written, so what is not intact there
was damaged, and not lost in a power loss. The units of records below
``dispatched_offset`` were synced too, so a start need not read these records.

Source: org.apache.rocketmq.store.StoreCheckpoint, RocketMQ 5.3. Differs: a timestamp
moves only after the sync it stands for; RocketMQ never reads beyond byte 40.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from zlib import crc32

from crashmq.engine.host.disk import Disk, File
from crashmq.engine.host.probe import probe

CHECKPOINT_SIZE = 4096
_FIELDS = struct.Struct(">qqqqq")
_SLOT = struct.Struct(">IIqqqiiqI")
_SLOT_V1 = struct.Struct(">IIqqqii")
_SLOT_V3 = struct.Struct(">IIqqqiiqqqI")
SUMS_MAX = 64
_CRC = struct.Struct(">I")
_SLOTS_AT = (512, 1024)
_MAGIC, _VERSION, _VERSION_OF_OTHERS = 0x43524D51, 2, 3
_LAYOUTS = {1: _SLOT_V1, _VERSION: _SLOT, _VERSION_OF_OTHERS: _SLOT_V3}

MARKED = probe("checkpoint.load.mark", "a start found a durable mark")
UNMARKED = probe("checkpoint.load.no_mark", "a start found no durable mark")
ONE_SLOT = probe("checkpoint.load.one_slot", "only one slot of the mark is whole")
WRITTEN = probe("checkpoint.flush.written", "the checkpoint was written and synced")
LOWERED = probe("checkpoint.flush.lowered", "both slots of the mark were lowered")
UNCHANGED = probe(
    "checkpoint.flush.unchanged", "no field of the checkpoint had changed"
)


@dataclass(frozen=True, slots=True)
class DurableMark:
    """A promise that the log's bytes [log_min_offset, durable_offset) are durable.

    Attributes:
        log_file_size: bytes of a log file, so that a start can tell a file that was cut
            from another configuration; so is ``queue_file_size``.
        dispatched_offset: records before it had durable units, each in its queue.
        sums: the CRC-32 of each of the newest log files up to durable_offset, the
            newest last.
        others_until: records before it may be another program's.
        damaged_until: damage before it was there when this store took the directory
            over.
    """

    log_min_offset: int
    durable_offset: int
    log_file_size: int
    queue_file_size: int
    dispatched_offset: int = 0
    sums: tuple[int, ...] = ()
    others_until: int = 0
    damaged_until: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the mark promises no bytes."""
        return self.durable_offset <= self.log_min_offset


class StoreCheckpoint:
    """The checkpoint file, and the values that the next flush writes.

    Each value on disk is at most what is durable of the files it stands for.

    Attributes:
        others_until: for the marks of this life, as in ``DurableMark``; so is
            ``damaged_until``.

    Invariants:
        no time is before the epoch
        a mark was written if and only if a sequence number was
        the slot of the newest sequence holds the mark that was written last
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._file: File | None = None
        self._loaded = b""
        self._written = b""
        self._sequence = 0
        self._mark_written: DurableMark | None = None
        self._in_slots: list[DurableMark | None] = [None, None]
        self.physic_msg_timestamp = 0
        self.logics_msg_timestamp = 0
        self.index_msg_timestamp = 0
        self.master_flushed_offset = 0
        self.confirm_phy_offset = 0
        self.mark: DurableMark | None = None
        self.others_until = self.damaged_until = 0

    def _check(self) -> None:
        assert self.physic_msg_timestamp >= 0, self.physic_msg_timestamp
        assert self.logics_msg_timestamp >= 0, self.logics_msg_timestamp
        assert self.index_msg_timestamp >= 0, self.index_msg_timestamp
        if self._mark_written is not None:
            assert self._sequence > 0, self._sequence
            newest = self._in_slots[self._sequence % 2]
            assert newest == self._mark_written, (newest, self._mark_written)

    def load(self) -> None:
        """Read the file, if it exists, without changing the disk.

        Fields that a short file lacks, and slots with a wrong CRC, count as missing.
        Without them a start only reads more, or warns of less.
        """
        data = self._read()
        if len(data) >= _FIELDS.size:
            (
                self.physic_msg_timestamp,
                self.logics_msg_timestamp,
                self.index_msg_timestamp,
                self.master_flushed_offset,
                self.confirm_phy_offset,
            ) = _FIELDS.unpack_from(data)
            # No record is of before the epoch; such a time is damage and tells nothing.
            self.physic_msg_timestamp = max(0, self.physic_msg_timestamp)
            self.logics_msg_timestamp = max(0, self.logics_msg_timestamp)
            self.index_msg_timestamp = max(0, self.index_msg_timestamp)
        slots = [slot for at in _SLOTS_AT if (slot := _decode_slot(data, at))]
        for sequence, mark in slots:
            self._in_slots[sequence % 2] = mark
        if len(slots) == 1 and slots[0][0] > 1:
            ONE_SLOT.hit()
        if slots:
            self._sequence, self.mark = max(slots, key=lambda slot: slot[0])
        (MARKED if slots else UNMARKED).hit()
        self._loaded = data

    def _read(self) -> bytes:
        if not self._disk.exists("checkpoint"):
            return b""
        size = self._disk.file_size("checkpoint")
        if not size:
            return b""
        file = self._disk.open("checkpoint", size, create=False, mapped=False)
        try:
            return file.read_at(0, min(size, CHECKPOINT_SIZE))
        finally:
            file.close()

    def trust_loaded(self) -> None:
        """Count the loaded values as durable, so that they are not written again.

        Only after an orderly shutdown: after a crash they may lie in the page cache
        alone.
        """
        if len(self._loaded) == CHECKPOINT_SIZE:
            self._written = self._loaded[: _FIELDS.size]
            self._mark_written = self.mark

    def open(self) -> None:
        """Create the file, or extend it to its full size, so that it can be written.

        Raises:
            OSError: no space for it.
        """
        if self._file is not None:
            return
        exists = self._disk.exists("checkpoint")
        if exists and self._disk.file_size("checkpoint") != CHECKPOINT_SIZE:
            self._disk.truncate("checkpoint", CHECKPOINT_SIZE)
        self._file = self._disk.open(
            "checkpoint", CHECKPOINT_SIZE, create=True, mapped=True
        )
        if not exists:
            self._disk.sync_dir("")
        if self.mark is not None and self._mark_written is None:
            # The newest slot may only lie in the page cache. Make it durable before
            # the other one, which may be the last that is, is written over.
            self._write_slot(self._sequence, self.mark)
            self._file.sync()

    def _write_slot(self, sequence: int, mark: DurableMark) -> None:
        assert self._file is not None, "open() the checkpoint before writing to it"
        self._file.write_at(_SLOTS_AT[sequence % 2], _encode_slot(sequence, mark))
        self._in_slots[sequence % 2] = mark

    def flush(self) -> bool:
        """Write and sync what changed; return whether anything had.

        Raises:
            OSError: the file may have the old values; the next flush writes the new
                ones.

        Source: StoreCheckpoint#flush.
        """
        assert self._file is not None, "open() the checkpoint before flush()"
        fields = _FIELDS.pack(
            self.physic_msg_timestamp,
            self.logics_msg_timestamp,
            self.index_msg_timestamp,
            self.master_flushed_offset,
            self.confirm_phy_offset,
        )
        if fields == self._written and self.mark == self._mark_written:
            UNCHANGED.hit()
            return False
        self._file.write_at(0, fields)
        sequence, mark = self._sequence, self.mark
        if mark is not None and mark != self._mark_written:
            sequence += 1
            self._write_slot(sequence, mark)
        self._file.sync()
        # Only now: until a slot is durable, the next attempt must not take the other.
        self._sequence = sequence
        if mark is not None:
            self._lower_the_older(mark)
        self._written, self._mark_written = fields, mark
        WRITTEN.hit()
        return True

    def _lower_the_older(self, mark: DurableMark) -> None:
        """Lower the older slot's dispatched_offset too, in case the newer slot rots."""
        assert self._file is not None, "open() the checkpoint before writing to it"
        older = self._in_slots[(self._sequence + 1) % 2]
        if older is not None and older.dispatched_offset > mark.dispatched_offset:
            LOWERED.hit()
            self._write_slot(self._sequence + 1, mark)
            self._file.sync()
            self._sequence += 1

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _encode_slot(sequence: int, mark: DurableMark) -> bytes:
    assert len(mark.sums) <= SUMS_MAX, mark
    fields = (
        sequence,
        mark.log_min_offset,
        mark.durable_offset,
        mark.log_file_size,
        mark.queue_file_size,
        mark.dispatched_offset,
    )
    if mark.others_until:
        of_others = (mark.others_until, mark.damaged_until, len(mark.sums))
        body = _SLOT_V3.pack(_MAGIC, _VERSION_OF_OTHERS, *fields, *of_others)
    else:
        body = _SLOT.pack(_MAGIC, _VERSION, *fields, len(mark.sums))
    body += struct.pack(f">{len(mark.sums)}I", *mark.sums)
    return body + _CRC.pack(crc32(body))


def _decode_slot(data: bytes, at: int) -> tuple[int, DurableMark] | None:
    layout = _LAYOUTS.get(int.from_bytes(data[at + 4 : at + 8], "big"))
    if layout is None or len(data) < at + layout.size + _CRC.size:
        return None
    magic, _, sequence, *mark = layout.unpack_from(data, at)
    end = at + layout.size
    if layout is not _SLOT_V1:
        count = min(mark.pop(), SUMS_MAX)
        end += 4 * count
        if len(data) < end + _CRC.size:
            return None
        mark.insert(5, struct.unpack_from(f">{count}I", data, at + layout.size))
    if magic != _MAGIC or _CRC.unpack_from(data, end)[0] != crc32(data[at:end]):
        return None
    return sequence, DurableMark(*mark)
