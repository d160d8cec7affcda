"""The files of the index: a hash table from keys to records in each.

Layout, big-endian: begin_timestamp i64 | end_timestamp i64 | begin_phy_offset i64 |
end_phy_offset i64 | hash_slot_count i32 | index_count i32; then the slots, an i32 each;
then entries of 20 bytes: key_hash i32 | phy_offset i64 | seconds i32 | previous i32.
Entry 0 is never used and ``index_count`` is the number of the next one. No field says
how many slots a file has: a harness knows the number, and otherwise ``guessed_slots``
infers it from how the entries are linked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from crashmq.models.files.lazy import lazy
from crashmq.models.files.record import Bytes, Record, parse_properties
from crashmq.models.files.sparse import next_data, written_size

HEADER_SIZE = 40
SLOT_SIZE = 4
ENTRY_SIZE = 20
NAME_DIGITS = 17
_FOLDER = "index/"
SECONDS_MAX = 0x7FFFFFFF
DEFAULT_SLOTS = 5_000_000
DEFAULT_FILE_SIZE = 420_000_040
_GUESSED_SIZE_MAX = 1 << 24
_LOOKED_AT_MAX = 64

_HEADER = struct.Struct(">qqqqii")
_ENTRY = struct.Struct(">iqii")
_CHUNK_SLOTS = 1 << 16
_ZERO_ENTRIES_MAX = 1 << 20
"""A count that has more entries of zeros behind the last written one is no count."""


class IndexHeader(NamedTuple):
    """The 40 bytes at the beginning of an index file, decoded."""

    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int
    hash_slot_count: int
    index_count: int


class IndexEntry(NamedTuple):
    """One index entry, decoded."""

    key_hash: int
    phy_offset: int
    seconds: int
    previous: int


@dataclass(frozen=True)
class IndexFileImage:
    """One index file: its header, and the entries that the header counts.

    Not slotted: rarely used properties are computed on first use and kept.

    Attributes:
        slot_num: how many slots it has; 0 if unknown, and then no entry is decoded.
        index_num: how many entries it has room for, the unused entry 0 included.
        entries: those from number 1 on.
    """

    data: Bytes
    slot_num: int
    index_num: int
    header: IndexHeader
    entries: tuple[IndexEntry, ...]

    @property
    def has_unknown_slots(self) -> bool:
        """Whether the file is written, but its number of slots could not be inferred.

        For a large file only one or two numbers were tried.
        """
        if self.slot_num or len(self.data) > _GUESSED_SIZE_MAX:
            return False
        return self.header.index_count > 1 or written_size(self.data) > HEADER_SIZE

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another entry."""
        return 0 < self.index_num <= self.header.index_count

    @lazy
    def recounted(self) -> tuple[dict[int, int], tuple[int, ...]]:
        """What the entries require: each slot's newest entry, and each entry's link."""
        newest: dict[int, int] = {}
        links: list[int] = []
        for number, entry in enumerate(self.entries, 1):
            slot = entry.key_hash % self.slot_num
            links.append(newest.get(slot, 0))
            newest[slot] = number
        return newest, tuple(links)

    @lazy
    def written_slots(self) -> dict[int, int]:
        """Every slot that is not empty, as stored."""
        found: dict[int, int] = {}
        first = self._next_slot(0)
        while first < self.slot_num:
            count = min(_CHUNK_SLOTS, self.slot_num - first)
            at = HEADER_SIZE + SLOT_SIZE * first
            part = bytes(self.data[at : at + SLOT_SIZE * count])
            if part.strip(b"\0"):
                whole = part[: len(part) - len(part) % SLOT_SIZE]  # of a file cut short
                numbers = struct.unpack(f">{len(whole) // SLOT_SIZE}i", whole)
                found.update((first + n, v) for n, v in enumerate(numbers) if v)
            first = self._next_slot(first + count)
        return found

    def _next_slot(self, first: int) -> int:
        """The first slot from ``first`` on that may be outside a hole of the file."""
        at = next_data(self.data, HEADER_SIZE + SLOT_SIZE * first)
        return (at - HEADER_SIZE) // SLOT_SIZE

    @lazy
    def written_entries(self) -> int:
        """The number of the last entry that is not all zeros, counted or not."""
        return _entries_in(self.data, self.entry_at(1), self.entry_at(self.index_num))

    def phy_offset_of(self, number: int) -> int:
        """The phy_offset in an entry, whether or not the header counts it."""
        at = self.entry_at(number) + 4
        return int.from_bytes(self.data[at : at + 8], "big", signed=True)

    def entry_at(self, number: int) -> int:
        """The byte in the file at which an entry begins."""
        return HEADER_SIZE + SLOT_SIZE * self.slot_num + ENTRY_SIZE * number


@dataclass(frozen=True)
class IndexImage:
    """The index: its files by path, the oldest first.

    ``odd_paths`` lie in the index directory, but their names are not those of index
    files.
    """

    files: tuple[tuple[str, IndexFileImage], ...]
    odd_paths: tuple[str, ...]

    @lazy
    def entries(self) -> tuple[tuple[str, IndexFileImage, int, IndexEntry], ...]:
        """Each entry with its file's path, its file and its number, oldest first."""
        return tuple(
            [
                (path, file, number, entry)
                for path, file in self.files
                for number, entry in enumerate(file.entries, 1)
            ]
        )

    @property
    def reach(self) -> tuple[int, int]:
        """The phy_offset of the newest entry, and how many entries that record has.

        (-1, 0) without an entry.
        """
        if not self.entries:
            return -1, 0
        last = self.entries[-1][3].phy_offset
        return last, sum(entry.phy_offset == last for _, _, _, entry in self.entries)


class LogKey(NamedTuple):
    """One key of a record of the log: an index must have an entry for it."""

    key_hash: int
    record: Record


def is_index_file(path: str) -> bool:
    """Whether a path is that of an index file: its name is a time."""
    name = path.removeprefix(_FOLDER)
    is_name = len(name) == NAME_DIGITS and name.isascii() and name.isdecimal()
    return path.startswith(_FOLDER) and is_name


def read_index(files: Mapping[str, Bytes], slot_num: int) -> IndexImage:
    """Decode the index among a store's files.

    Args:
        files: contents by path.
        slot_num: how many slots each file has; 0: infer the number.
    """
    below = [path for path in sorted(files) if path.startswith(_FOLDER)]
    found = [(path, files[path]) for path in below if is_index_file(path)]
    odd = [path for path in below if not is_index_file(path)]
    if not slot_num:
        slot_num = next((n for _, data in found if (n := guessed_slots(data))), 0)
    read = tuple([(path, _read_file(data, slot_num)) for path, data in found])
    return IndexImage(read, tuple(odd))


def _read_file(data: Bytes, slot_num: int) -> IndexFileImage:
    # A view may change below us, and its hash is that of all its bytes.
    if type(data) is bytes:
        return _read_bytes(data, slot_num)
    return _decode(data, slot_num)


@lru_cache(maxsize=512)
def _read_bytes(data: bytes, slot_num: int) -> IndexFileImage:
    return _decode(data, slot_num)


def _decode(data: Bytes, slot_num: int) -> IndexFileImage:
    raw = bytes(data[:HEADER_SIZE]).ljust(HEADER_SIZE, b"\0")
    header = IndexHeader._make(_HEADER.unpack(raw))
    first = HEADER_SIZE + SLOT_SIZE * slot_num
    index_num = max(0, len(data) - first) // ENTRY_SIZE if slot_num else 0
    end = first + ENTRY_SIZE * max(0, min(header.index_count, index_num))
    entries: tuple[IndexEntry, ...] = ()
    begin = first + ENTRY_SIZE
    if end > begin:
        written = _entries_in(data, begin, end)
        is_no_count = header.index_count > written + _ZERO_ENTRIES_MAX
        if header.index_count > index_num or is_no_count:
            end = begin + written * ENTRY_SIZE
        entries = tuple(map(IndexEntry._make, _ENTRY.iter_unpack(data[begin:end])))
    return IndexFileImage(data, slot_num, index_num, header, entries)


def _entries_in(data: Bytes, begin: int, end: int) -> int:
    """How many entries there are in a range of a file up to the last not of zeros."""
    return -(-(written_size(data, begin, end) - begin) // ENTRY_SIZE)


def guessed_slots(data: Bytes) -> int:
    """The likely number of hash slots of an index file; 0 if no number fits.

    A number fits if with it at least three quarters of the examined entries are linked
    as in an index. Of several numbers the one with most such entries counts. For a
    large file only two numbers are tried: RocketMQ's, and that with four entries to a
    slot.
    """
    if len(data) == DEFAULT_FILE_SIZE:
        return DEFAULT_SLOTS
    if len(data) > _GUESSED_SIZE_MAX:
        slots, rest = divmod(len(data) - HEADER_SIZE, SLOT_SIZE + 4 * ENTRY_SIZE)
        likely = (DEFAULT_SLOTS, *([] if rest else [slots]))
        return _best(data, likely, _LOOKED_AT_MAX)
    if len(data) <= HEADER_SIZE:
        return 0
    raw = bytes(data)
    every = range(1, (len(raw) - HEADER_SIZE - 2 * ENTRY_SIZE) // SLOT_SIZE + 1)
    whole = [n for n in every if _is_whole(len(raw), n)]
    counted = min(_LOOKED_AT_MAX, _HEADER.unpack_from(raw)[5] - 1)
    # The header's count may be wrong; and a file that was cut or lengthened has no
    # whole number of entries any more.
    for candidates in (whole, every):
        for looked_at in (counted, _LOOKED_AT_MAX):
            if found := _best(raw, candidates, looked_at):
                return found
    return 0


def _is_whole(length: int, slot_num: int) -> bool:
    return (length - HEADER_SIZE - SLOT_SIZE * slot_num) % ENTRY_SIZE == 0


def _best(raw: Bytes, candidates: Iterable[int], looked_at: int) -> int:
    begin = _HEADER.unpack_from(raw)[2]
    best = (0, False, 0)
    for slot_num in candidates:
        first = HEADER_SIZE + SLOT_SIZE * slot_num
        if not any(raw[first : first + ENTRY_SIZE]):  # entry 0 is never used
            good, seen = _linked(raw, slot_num, looked_at)
            if good and good * 4 >= seen * 3:
                begins = _ENTRY.unpack_from(raw, first + ENTRY_SIZE)[1] == begin
                best = max(best, (good, begins, slot_num))
    return best[2]


def _linked(raw: Bytes, slot_num: int, looked_at: int) -> tuple[int, int]:
    """How many of the first entries are linked correctly, and how many there are."""
    first = HEADER_SIZE + SLOT_SIZE * slot_num
    last = min((len(raw) - first) // ENTRY_SIZE, looked_at + 1)
    good = seen = 0
    for number in range(1, last):
        entry = _ENTRY.unpack_from(raw, first + ENTRY_SIZE * number)
        key_hash, phy_offset, seconds, previous = entry
        if not any(entry):
            break
        seen += 1
        if key_hash >= 0 and phy_offset >= 0 and seconds >= 0:
            at = HEADER_SIZE + SLOT_SIZE * (key_hash % slot_num)
            newest = int.from_bytes(raw[at : at + SLOT_SIZE], "big")
            good += 0 <= previous < number <= newest
        if seen == 4 and good < 2:
            break
    return good, seen


def keys_of_log(records: tuple[Record, ...]) -> Iterator[LogKey]:
    """Every key that an index of these records must list, in log order."""
    for record in records:
        if record.transaction_type != "rollback":
            for key_hash in _hashes_of(record.topic, record.properties_raw):
                yield LogKey(key_hash, record)


def tag_keys_of_log(records: tuple[Record, ...]) -> frozenset[tuple[int, int]]:
    """(hash, phy_offset) of each entry that RocketMQ as of 5.4.0 has for tags.

    Source: IndexService#buildIndex, MessageConst.INDEX_TAG_TYPE.
    """
    found: set[tuple[int, int]] = set()
    for record in records:
        tags = record.properties.get("TAGS", "")
        if tags and record.transaction_type != "rollback":
            code = index_hash(f"{record.topic}#T#{tags}")
            found.add((code, record.phy_offset))
    return frozenset(found)


@lru_cache(maxsize=65536)
def keys_of(properties_raw: bytes) -> tuple[str, ...]:
    """The keys of a message: its UNIQ_KEY, then the words of KEYS; no empty ones."""
    properties = parse_properties(properties_raw)
    words = [properties.get("UNIQ_KEY", ""), *properties.get("KEYS", "").split(" ")]
    return tuple([word for word in words if word])


@lru_cache(maxsize=65536)
def _hashes_of(topic: str, properties_raw: bytes) -> tuple[int, ...]:
    return tuple([index_hash(f"{topic}#{key}") for key in keys_of(properties_raw)])


def index_hash(text: str) -> int:
    """The absolute value of Java's ``String.hashCode``; 0 for that of -2**31."""
    code = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        code = (31 * code + unit) & 0xFFFFFFFF
    if code == 0x80000000:
        return 0
    return 0x100000000 - code if code & 0x80000000 else code
