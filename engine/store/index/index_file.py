"""IndexFile: a hash table from keys to records, in one file of a fixed size.

Layout, big-endian: a header of 40 bytes (begin_timestamp i64 | end_timestamp i64 |
begin_phy_offset i64 | end_phy_offset i64 | hash_slot_count i32 | index_count i32); the
slots, each the number of its newest entry as i32, 0 if it has none; the entries of 20
bytes (key_hash i32 | phy_offset i64 | seconds since begin_timestamp i32 | number of the
previous entry of the slot i32, 0 if it is the first). Entry 0 is never used, so
``index_count`` is the number the next entry gets.

Source: org.apache.rocketmq.store.index.IndexFile, IndexHeader, RocketMQ 5.3. Differs:
the first entry's seconds count from its own time, not from the end of the file before;
a link that does not lead back ends its chain; and an entry that failed half way is put
again as if nothing had been written.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from crashmq.engine.host.disk import Disk, File
from crashmq.engine.host.probe import probe

HEADER_SIZE = 40
SLOT_SIZE = 4
ENTRY_SIZE = 20
SECONDS_MAX = 0x7FFFFFFF
_HEADER = struct.Struct(">qqqqii")
_SLOT = struct.Struct(">i")
_ENTRY = struct.Struct(">iqii")
assert _HEADER.size == HEADER_SIZE
assert _ENTRY.size == ENTRY_SIZE
_WINDOW_ENTRIES = 4096
_CHUNK = 1024 * 1024

PUT_FIRST = probe("index_file.put.first", "a key began the chain of its slot")
PUT_LINKED = probe("index_file.put.linked", "a key was linked before those of its slot")
PUT_AGAIN = probe("index_file.put.again", "a put that had failed half-way was repeated")
LOOPED = probe(
    "index_file.select.looped",
    "a link that does not lead back was met",
    unreachable="a start mends every link, and who rots them has to wait for a stop",
)


class Entry(NamedTuple):
    """One entry of an index file."""

    key_hash: int
    phy_offset: int
    seconds: int
    previous: int


class Header(NamedTuple):
    """The header of an index file, with RocketMQ's field names."""

    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_phy_offset: int = 0
    end_phy_offset: int = 0
    hash_slot_count: int = 0
    index_count: int = 1

    @classmethod
    def decode(cls, data: bytes) -> Header:
        """Decode the first bytes of a file; a header of zeros counts no entry."""
        read = cls._make(_HEADER.unpack_from(data))
        return read if read.index_count > 0 else read._replace(index_count=1)

    def encode(self) -> bytes:
        """Encode the header's 40 bytes."""
        return _HEADER.pack(*self)

    def entry_for(
        self, key_hash: int, phy_offset: int, store_timestamp: int, previous: int
    ) -> bytes:
        """The bytes that the next entry would have."""
        begin = self.begin_timestamp if self.index_count > 1 else store_timestamp
        seconds = min(max(0, store_timestamp - begin) // 1000, SECONDS_MAX)
        return _ENTRY.pack(key_hash, phy_offset, seconds, previous)

    def counting(self, phy_offset: int, store_timestamp: int, previous: int) -> Header:
        """The header after one more entry."""
        is_first = self.index_count == 1
        return Header(
            store_timestamp if is_first else self.begin_timestamp,
            store_timestamp,
            phy_offset if is_first else self.begin_phy_offset,
            phy_offset,
            self.hash_slot_count + (not previous),
            self.index_count + 1,
        )


class IndexFile:
    """One file of the index, appended to entry by entry.

    Each link leads to an entry of a lower number, and so does a slot.

    Invariants:
        a file that entries were put to counts at least 1, the unused entry 0
        it never counts more than it has room for
    """

    def __init__(
        self, disk: Disk, path: str, slot_num: int, index_num: int, *, create: bool
    ) -> None:
        self.path = path
        self.slot_num = slot_num
        self.index_num = index_num
        size = file_size(slot_num, index_num)
        self._file: File = disk.open(path, size, create=create, mapped=True)
        self.header = Header()
        if not create:
            try:
                self.header = Header.decode(self._file.read_at(0, HEADER_SIZE))
            except OSError:
                self._file.close()
                raise
        self.is_dirty = create
        self.is_unproven = False
        # The slot and the link of a put that failed half way: the slot's bytes may be
        # anything by now.
        self._unfinished: tuple[int, int] | None = None

    def _check(self) -> None:
        if self.is_dirty:
            assert 1 <= self.header.index_count <= self.index_num, self.header
        if self._unfinished is not None:
            assert 0 <= self._unfinished[0] < self.slot_num, self._unfinished

    @property
    def is_full(self) -> bool:
        """Whether no entry can be added; entry 0 is never used."""
        return self.header.index_count >= self.index_num

    def put_key(self, key_hash: int, phy_offset: int, store_timestamp: int) -> bool:
        """Add one entry; return False, with no change, if the file is full.

        Raises:
            OSError: it was not added; put the same key again.

        Source: IndexFile#putKey.
        """
        if self.is_full:
            return False
        header = self.header
        slot = key_hash % self.slot_num
        previous = self._newest_of(slot)
        if self._unfinished is not None:
            PUT_AGAIN.hit()
        entry = header.entry_for(key_hash, phy_offset, store_timestamp, previous)
        self.is_dirty = True
        self._unfinished = (slot, previous)
        self._file.write_at(self._entry_at(header.index_count), entry)
        self._file.write_at(self._slot_at(slot), _SLOT.pack(header.index_count))
        counted = header.counting(phy_offset, store_timestamp, previous)
        self._file.write_at(0, counted.encode())
        self.header = counted
        self._unfinished = None
        (PUT_LINKED if previous else PUT_FIRST).hit()
        return True

    def _newest_of(self, slot: int) -> int:
        """The number of a slot's newest entry; 0 if it has none."""
        if self._unfinished is not None and self._unfinished[0] == slot:
            return self._unfinished[1]
        (number,) = _SLOT.unpack(self._file.read_at(self._slot_at(slot), SLOT_SIZE))
        return number if 0 < number < self.header.index_count else 0

    def newest(self, key_hash: int) -> int:
        """The newest entry number in the chain of this hash; 0 if it has none.

        Entries that are in a chain never change, only what a slot names does.
        """
        return self._newest_of(key_hash % self.slot_num)

    def chain(self, number: int, key_hash: int) -> Iterator[Entry]:
        """The entries with this hash from ``number`` on, from new to old.

        A link that does not lead to a lower number ends the chain, so damage may hide
        entries but never makes a reader loop.

        Source: IndexFile#selectPhyOffset.
        """
        while number:
            entry = self.entry(number)
            if entry.key_hash == key_hash:
                yield entry
            if not 0 <= entry.previous < number:
                LOOPED.hit()
                return
            number = entry.previous

    def entry(self, number: int) -> Entry:
        """The entry of that number, as stored."""
        return decode_entry(self._file.read_at(self._entry_at(number), ENTRY_SIZE))

    def may_hold(self, entry: Entry, begin_ms: int, end_ms: int) -> bool:
        """Whether the entry's record may have been stored in [begin_ms, end_ms].

        An entry keeps whole seconds, limited to 0 and to their maximum, so this is not
        exact.
        """
        least = self.header.begin_timestamp + 1000 * entry.seconds
        if entry.seconds and least > end_ms:
            return False
        return entry.seconds == SECONDS_MAX or least + 999 >= begin_ms

    def entries_from(self, number: int) -> bytes:
        """The bytes of several entries from that number on; empty after the last."""
        count = min(_WINDOW_ENTRIES, self.index_num - number)
        if count <= 0:
            return b""
        return self._file.read_at(self._entry_at(number), count * ENTRY_SIZE)

    def has_slots(self, slots: array[int]) -> bool:
        """Whether the slots are exactly these."""
        return all(
            self._file.read_at(at, len(data)) == data for at, data in _encoded(slots)
        )

    def settle(self, header: Header, slots: array[int] | None) -> None:
        """Write this header and these slots; None: the slots are right already.

        Raises:
            OSError: header and slots may be half written; the next start repairs them.
        """
        if slots is not None:
            for at, data in _encoded(slots):
                self._file.write_at(at, data)
        self._file.write_at(0, header.encode())
        self.header = header
        self.is_dirty = True

    def flush(self) -> None:
        """Sync the file; bytes of an earlier run are written again first.

        Raises:
            OSError: the file may never be durable in this life of the store.

        Source: IndexFile#flush.
        """
        self.is_dirty = False
        if self.is_unproven:
            end = self._entry_at(self.header.index_count)
            for at in range(0, end, _CHUNK):
                data = self._file.read_at(at, min(_CHUNK, end - at))
                self._file.write_at(at, data)
            self.is_unproven = False
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @staticmethod
    def _slot_at(slot: int) -> int:
        return HEADER_SIZE + SLOT_SIZE * slot

    def _entry_at(self, number: int) -> int:
        return HEADER_SIZE + SLOT_SIZE * self.slot_num + ENTRY_SIZE * number


def decode_entry(data: bytes) -> Entry:
    """Decode the 20 bytes of an entry."""
    return Entry._make(_ENTRY.unpack(data))


def file_size(slot_num: int, index_num: int) -> int:
    """The size in bytes of an index file with these numbers of slots and entries."""
    return HEADER_SIZE + SLOT_SIZE * slot_num + ENTRY_SIZE * index_num


def _encoded(slots: array[int]) -> Iterator[tuple[int, bytes]]:
    """The slots' bytes in pieces, each with its position in the file."""
    for first in range(0, len(slots), _CHUNK // SLOT_SIZE):
        part = slots[first : first + _CHUNK // SLOT_SIZE]
        yield HEADER_SIZE + SLOT_SIZE * first, struct.pack(f">{len(part)}i", *part)
