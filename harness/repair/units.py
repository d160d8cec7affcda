"""Queues, index and checkpoint written from records, as RocketMQ writes them.

Records come in log order, one at a time; of each queue some units wait in memory, and
one file of the index is mapped. Files have their full length at once, and are sparse.

Source: ConsumeQueue#putMessagePositionInfo, #fillPreBlank, IndexFile#putKey,
StoreCheckpoint#flush, RocketMQ 5.3.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from crashmq.models.files.checkpoint import CHECKPOINT_SIZE
from crashmq.models.files.index import (
    ENTRY_SIZE,
    HEADER_SIZE,
    SECONDS_MAX,
    SLOT_SIZE,
    index_hash,
    keys_of,
)
from crashmq.models.files.queue import PRE_BLANK_SIZE, UNIT_SIZE
from crashmq.models.files.record import Record

_UNIT: Final = struct.Struct(">qiq")
_HEADER: Final = struct.Struct(">qqqqii")
_ENTRY: Final = struct.Struct(">iqii")
_PRE_BLANK: Final = _UNIT.pack(0, PRE_BLANK_SIZE, 0)
_WAITING_MAX: Final = 16 << 20
_SKIPPED_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """In bytes and in numbers; ``index_entries`` counts the unused first one.

    ``is_guessed``: nothing told or showed the size of queue files.
    """

    queue_file_size: int = 6_000_000
    index_slots: int = 5_000_000
    index_entries: int = 20_000_000
    is_guessed: bool = False

    @property
    def index_file_size(self) -> int:
        """The length of an index file."""
        return (
            HEADER_SIZE + SLOT_SIZE * self.index_slots + ENTRY_SIZE * self.index_entries
        )


class QueueWriter:
    """The files of one queue, appended to from its first record's number on.

    Invariants:
        0 <= first <= next
    """

    def __init__(self, folder: Path, file_size: int, first: int) -> None:
        self._folder = folder
        self._file_size = file_size
        self.first = first
        self.next = first
        self._waiting = bytearray()
        self._at = first * UNIT_SIZE
        base = self._at - self._at % file_size
        if base < self._at:
            # A queue begins with its file: before its first unit lie blank ones.
            self._waiting += _PRE_BLANK * ((self._at - base) // UNIT_SIZE)
            self._at = base

    def _check(self) -> None:
        assert 0 <= self.first <= self.next, self

    @property
    def waiting(self) -> int:
        """How many bytes are not written yet."""
        return len(self._waiting)

    def put(self, phy_offset: int, size: int, tags_code: int) -> None:
        """Append a unit."""
        self._waiting += _UNIT.pack(phy_offset, size, tags_code)
        self.next += 1

    def flush(self) -> None:
        """Write what waits."""
        data = memoryview(bytes(self._waiting))
        self._waiting.clear()
        while data:
            base = self._at - self._at % self._file_size
            part = data[: base + self._file_size - self._at]
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{base:020d}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            handle = os.open(path, flags, 0o644)
            try:
                os.truncate(handle, self._file_size)
                os.pwrite(handle, part, self._at - base)
            finally:
                os.close(handle)
            self._at += len(part)
            data = data[len(part) :]


class IndexWriter:
    """The files of the index, in log order of the keys.

    Invariants:
        1 <= count <= entries, while a file is open
    """

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self._folder = folder
        self._sizes = sizes
        self._map: mmap.mmap | None = None
        self._count = self._slots_used = 0
        self._begin = self._end = (0, 0)  # store_timestamp and phy_offset
        self._name_ms = 0
        self.files = 0
        self.ended_timestamp = 0
        """The end of the last full file; 0 without one."""

    def _check(self) -> None:
        assert self._map is None or 1 <= self._count <= self._sizes.index_entries, self

    def put(self, record: Record) -> None:
        """List every key of a record; none if it is rolled back."""
        if record.transaction_type == "rollback":
            return
        for key in keys_of(record.properties_raw):
            self._put_key(index_hash(f"{record.topic}#{key}"), record)

    def _put_key(self, key_hash: int, record: Record) -> None:
        if self._map is not None and self._count >= self._sizes.index_entries:
            self.ended_timestamp = self._end[0]
            self.close()
        if self._map is None:
            self._begin_file(record)
        assert self._map is not None
        slot_at = HEADER_SIZE + SLOT_SIZE * (key_hash % self._sizes.index_slots)
        previous = int.from_bytes(self._map[slot_at : slot_at + SLOT_SIZE], "big")
        since = max(0, record.store_timestamp - self._begin[0]) // 1000
        at = (
            HEADER_SIZE + SLOT_SIZE * self._sizes.index_slots + ENTRY_SIZE * self._count
        )
        entry = _ENTRY.pack(
            key_hash, record.phy_offset, min(since, SECONDS_MAX), previous
        )
        self._map[at : at + ENTRY_SIZE] = entry
        self._map[slot_at : slot_at + SLOT_SIZE] = self._count.to_bytes(4, "big")
        self._slots_used += not previous
        self._count += 1
        self._end = record.store_timestamp, record.phy_offset

    def _begin_file(self, record: Record) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._name_ms = max(self._name_ms + 1, record.store_timestamp)
        path = self._folder / index_name(self._name_ms)
        size = self._sizes.index_file_size
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.truncate(handle, size)
            self._map = mmap.mmap(handle, size)
        finally:
            os.close(handle)
        self._count, self._slots_used = 1, 0
        self._begin = record.store_timestamp, record.phy_offset
        self.files += 1

    def close(self) -> None:
        """Write the header of the file in work."""
        if self._map is None:
            return
        times, places = zip(self._begin, self._end, strict=True)
        self._map[:HEADER_SIZE] = _HEADER.pack(
            *times, *places, self._slots_used, self._count
        )
        self._map.flush()
        self._map.close()
        self._map = None


def index_name(time_ms: int) -> str:
    """The name of an index file: its time in UTC, as yyyyMMddHHmmssSSS."""
    try:
        at = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms % 10**17:017d}"
    return f"{at:%Y%m%d%H%M%S}{time_ms % 1000:03d}"


class UnitWriter:
    """The queues and the index of a whole log."""

    def __init__(self, root: Path, sizes: Sizes) -> None:
        self._root = root
        self._sizes = sizes
        self._queues: dict[tuple[str, int], QueueWriter] = {}
        self._index = IndexWriter(root / "index", sizes)
        self._waiting = 0
        self.units = 0
        self.newest = self.newest_listed = 0

    def put_unit(self, record: Record, *, fills_holes: bool = False) -> bool:
        """Append the unit of a record, as its queue lists it.

        With ``fills_holes`` also under each number that was skipped, of which there
        may be a million.

        Returns:
            False if its number is not the queue's next one: nothing was done.
        """
        key = record.topic, record.queue_id
        queue = self._queues.get(key)
        if queue is None:
            folder = self._root / "consumequeue" / record.topic / str(record.queue_id)
            size = self._sizes.queue_file_size
            queue = QueueWriter(folder, size, record.queue_offset)
            self._queues[key] = queue
        skipped = record.queue_offset - queue.next
        if skipped and not (fills_holes and 0 < skipped <= _SKIPPED_MAX):
            return False
        before = queue.waiting
        for _ in range(skipped + 1):
            queue.put(record.phy_offset, record.size, record.tags_code)
        self.units += skipped + 1
        self._waiting += queue.waiting - before
        if self._waiting > _WAITING_MAX:
            self.flush()
        self.newest_listed = max(self.newest_listed, record.store_timestamp)
        return True

    def restart(self, key: tuple[str, int]) -> bool:
        """Forget a queue whose topic was deleted and created; False: it is new."""
        queue = self._queues.pop(key, None)
        if queue is None:
            return False
        self._waiting -= queue.waiting
        self.units -= queue.next - queue.first
        folder = self._root / "consumequeue" / key[0] / str(key[1])
        if folder.is_dir():
            for path in folder.iterdir():
                path.unlink()
        return True

    def next_of(self, key: tuple[str, int]) -> int:
        """The number that a queue's next message has; -1 if it has none yet."""
        queue = self._queues.get(key)
        return queue.next if queue is not None else -1

    def put_keys(self, record: Record) -> None:
        """List the keys of a record."""
        self.newest = max(self.newest, record.store_timestamp)
        self._index.put(record)

    def flush(self) -> None:
        """Write the units that wait, of all queues."""
        for queue in self._queues.values():
            queue.flush()
        self._waiting = 0

    def close(self) -> None:
        """Write all, and the checkpoint of an orderly end."""
        self.flush()
        self._index.close()
        ended = self._index.ended_timestamp
        fields = struct.pack(">5q", self.newest, self.newest_listed, ended, 0, 0)
        (self._root / "checkpoint").write_bytes(fields.ljust(CHECKPOINT_SIZE, b"\0"))

    @property
    def queues(self) -> int:
        """How many queues there are."""
        return len(self._queues)

    @property
    def index_files(self) -> int:
        """How many index files there are."""
        return self._index.files
