"""The log's files, and the chain of records through them as recovery follows it.

Each file is read on its own, from its first byte: record after record up to a BLANK
that reaches its end, or up to the first bytes that are not a record. The chain runs
through the files in order as long as each is closed by its BLANK and the next one
exists.

Past the chain's end intact records are searched by their magic: one counts if it
contains its own phy_offset and its CRC is right.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from crashmq.models.files.deleted import NOTHING_DELETED, DeletedImage
from crashmq.models.files.lazy import lazy
from crashmq.models.files.left_out import NO_SKIPS, NOTHING, LeftOut, Skips
from crashmq.models.files.message_delay_level import DEFAULT_LEVELS, DelayLevels
from crashmq.models.files.oddity import is_odd, is_odd_to_rocketmq
from crashmq.models.files.places import misnamed_base
from crashmq.models.files.record import (
    MAGIC_BLANK,
    MULTI_QUEUE_OFFSET,
    BadRecord,
    Bytes,
    FlawKind,
    Record,
    as_listed,
    parse_record,
    without_body,
)
from crashmq.models.files.sparse import is_mapped_file, let_go, next_data
from crashmq.models.verdict import Place

_CHUNK = 1 << 20
_FIRST_CHUNK = 1 << 12
_ZEROS = bytes(_CHUNK)
_NEVER_WRITTEN = bytes(8)
_MAGIC = re.compile(b"\xda\xa3\x20[\xa7\xab]")


QueueKey: TypeAlias = tuple[str, int]


class LogStop(NamedTuple):
    """Where the chain of records ends, and why.

    ``kind`` is ``end`` (the last file's end), ``zeros`` (the next header was never
    written, or zeroed), ``missing_file`` (later files exist, the next one does not),
    or what is wrong with the bytes there: ``magic``, ``size``, ``lengths``, ``crc``,
    ``phy_offset``, ``properties``, ``filler``.
    """

    kind: FlawKind
    path: str
    position: int
    phy_offset: int
    seen: str

    @property
    def where(self) -> Place:
        """The stop as a place: path, byte and phy_offset."""
        return Place(self.path, self.position, f"phy_offset {self.phy_offset}")


ALL_OURS = range(1 << 62)


class Writer(NamedTuple):
    """Who wrote a log.

    Attributes:
        is_rocketmq: RocketMQ wrote it, so properties may have NULs.
        ours: the phy_offsets at which only our store can have begun a record.
        levels: the delay levels of the broker.
    """

    is_rocketmq: bool
    ours: range
    levels: DelayLevels


class LogFile(NamedTuple):
    """One file of the log, read from its first byte up to where reading stopped.

    Attributes:
        base: the phy_offset of its first byte.
        limit: the first byte that is not read: the file's length, or the common size of
            the files where this one is longer.
        records: those read, without those in ``skips``.
        end: the byte where reading stopped.
        flaw: why it stopped; None if a BLANK closes the file.
        odd_records: those of ``records`` with a value that no store writes.
        by_rocketmq: whether RocketMQ wrote the file, so that properties may have NULs.
        ours: the phy_offsets at which only our store can have begun a record; others
            may have NULs in their properties.
        skips: what is not decoded.
        levels: the delay levels by which it was decoded.
    """

    path: str
    base: int
    data: Bytes
    limit: int
    records: tuple[Record, ...]
    end: int
    flaw: FlawKind | None
    seen: str
    odd_records: tuple[Record, ...]
    by_rocketmq: bool = False
    ours: range = ALL_OURS
    skips: Skips = NO_SKIPS
    levels: DelayLevels = DEFAULT_LEVELS


@dataclass(frozen=True)
class LogImage:
    """The log as decoded from its files.

    Not slotted: rarely used properties are decoded on first use and kept.

    Attributes:
        files: in order of their bases.
        file_size: what most files' lengths and names agree on; 0 without files.
        records: the chain, from the log's minimum on.
        stop: where and why the chain ends.
        odd_paths: paths in the log's directory that are not log files.
        deleted: which records are dead because their topic or queue was deleted.
        runs: records that are not decoded; see ``LeftOut``.
    """

    files: tuple[LogFile, ...]
    file_size: int
    records: tuple[Record, ...]
    stop: LogStop
    odd_paths: tuple[str, ...]
    deleted: DeletedImage = NOTHING_DELETED
    runs: Mapping[tuple[int, int], int] = field(default_factory=dict)

    @property
    def min_phy_offset(self) -> int:
        """The base of the first file; 0 without files."""
        return self.files[0].base if self.files else 0

    @property
    def max_phy_offset(self) -> int:
        """Where the chain ends; after the last filler if that closes the last file."""
        return self.stop.phy_offset

    @lazy
    def record_at(self) -> Mapping[int, Record]:
        """The records of the chain by phy_offset."""
        return self._by_place(self.records, range(self.max_phy_offset))

    @lazy
    def record_beyond_at(self) -> Mapping[int, Record]:
        """The intact records past the chain's end by phy_offset."""
        return self._by_place(self.records_beyond, range(self.max_phy_offset, 1 << 63))

    def _by_place(
        self, records: Sequence[Record], within: range
    ) -> Mapping[int, Record]:
        found = {record.phy_offset: record for record in records}
        is_whole = not any(file.skips for file in self.files)
        return found if is_whole else _AlsoLeftOut(found, self, within)

    def follow(self, before: Record, after: Record) -> bool:
        """Whether no record of their queue is missing between two records of it."""
        is_next = after.queue_offset == before.queue_offset + 1
        return is_next or (before.phy_offset, after.phy_offset) in self.runs

    def count(self, records: Sequence[Record]) -> int:
        """How many records of one queue these are, undecoded ones between included."""
        return len(records) + sum(map(len, self.undecoded(records)))

    def undecoded(self, records: Sequence[Record]) -> list[range]:
        """The queue_offsets of the undecoded records between these of one queue."""
        if not self.runs:
            return []
        return [
            range(before.queue_offset + 1, after.queue_offset)
            for before, after in pairwise(records)
            if (before.phy_offset, after.phy_offset) in self.runs
        ]

    @property
    def count_of_chain(self) -> int:
        """How many records the chain has."""
        return len(self.records) + self.left_out_in(range(self.max_phy_offset))

    @property
    def count_beyond(self) -> int:
        """How many intact records there are past the chain's end."""
        beyond = range(self.max_phy_offset, 1 << 63)
        return len(self.records_beyond) + self.left_out_in(beyond)

    def those(
        self, records: Sequence[Record], holds: Callable[[Record], bool]
    ) -> list[Record]:
        """The records of one queue for which ``holds`` returns true.

        If it is true for only one end of a run, the records of the run are decoded.
        """
        if not self.runs:
            return [record for record in records if holds(record)]
        found: list[Record] = []
        for number, record in enumerate(records):
            before = records[max(0, number - 1)]
            is_run = (before.phy_offset, record.phy_offset) in self.runs
            if is_run and holds(before) != holds(record):
                found.extend(filter(holds, self.left_out_between(before, record)))
            if holds(record):
                found.append(record)
        return found

    def left_out_between(self, before: Record, after: Record) -> Iterator[Record]:
        """Decode the records of a queue between two of it that enclose a run."""
        file = next(f for f in reversed(self.files) if f.base <= before.phy_offset)
        position = before.end - file.base
        while position + file.base < after.phy_offset:
            record = _record_at(file, position)
            is_of_queue = record.queue_id == after.queue_id and record.is_indexed
            if is_of_queue and record.topic == after.topic:
                yield record
            position += record.size

    def every_record(self) -> Iterator[Record]:
        """All records of the chain in log order; those left out are decoded."""
        for record in self.records:
            yield record
            file = next(f for f in reversed(self.files) if f.base <= record.phy_offset)
            position = record.end - file.base
            skip = file.skips.get(position)
            while skip is not None and position < skip.end:
                record = _record_at(file, position)
                yield record
                position += record.size

    def left_out_in(self, phy_offsets: range) -> int:
        """How many records in a range of phy_offsets are not decoded."""
        return sum(
            skip.records
            for file in self.files
            for at, skip in file.skips.items()
            if file.base + at in phy_offsets
        )

    @lazy
    def indexed_records(self) -> dict[QueueKey, list[Record]]:
        """Records of the chain that need a unit, in log order, by (topic, queue_id).

        A light queue has records of other topics, changed by ``as_listed``. Of a
        deleted topic only the records put after its deletion are there.
        """
        by_queue: dict[QueueKey, list[Record]] = {}
        for record in self.records:
            if record.is_indexed:
                key = (record.topic, record.queue_id)
                if key in by_queue:
                    by_queue[key].append(record)
                else:
                    by_queue[key] = [record]
                if MULTI_QUEUE_OFFSET in record.properties_raw:
                    for name, _ in record.light_places:
                        listed = as_listed(record, name)
                        by_queue.setdefault((name, 0), []).append(listed)
        if self.deleted.places:
            return self._without_dead(by_queue)
        return by_queue

    def goes_on_behind(self, phy_offset: int) -> bool:
        """Whether whole records lie behind the log's end, from ``phy_offset`` on."""
        return any(one.phy_offset >= phy_offset for one in self.records_beyond)

    def _without_dead(
        self, by_queue: dict[QueueKey, list[Record]]
    ) -> dict[QueueKey, list[Record]]:
        alive: dict[QueueKey, list[Record]] = {}
        for key, records in by_queue.items():
            dead_below = self.deleted.dead_below(*key)
            if kept := [r for r in records if r.phy_offset >= dead_below]:
                alive[key] = kept
        return alive

    @lazy
    def unit_tuples(self) -> dict[QueueKey, tuple[tuple[int, int, int, int], ...]]:
        """The units that the log's records require, by (topic, queue_id)."""
        return {
            key: tuple(
                [(r.queue_offset, r.phy_offset, r.size, r.tags_code) for r in records]
            )
            for key, records in self.indexed_records.items()
        }

    @lazy
    def misnumbered_queues(self) -> tuple[QueueKey, ...]:
        """Queues in which some record's queue_offset is not the one before plus 1."""
        if self.runs:
            return tuple(
                [
                    key
                    for key, records in self.indexed_records.items()
                    if not all(self.follow(*two) for two in pairwise(records))
                ]
            )
        return tuple(
            [
                key
                for key, units in self.unit_tuples.items()
                if [unit[0] for unit in units]
                != [*range(units[0][0], units[0][0] + len(units))]
            ]
        )

    @lazy
    def newest_store_timestamp(self) -> int:
        """The highest store timestamp of the chain; 0 without records."""
        return max([record.store_timestamp for record in self.records], default=0)

    @lazy
    def newest_listed_timestamp(self) -> int:
        """The highest store timestamp of records that need a unit; 0 without any."""
        return max([r.store_timestamp for r in self.records if r.is_indexed], default=0)

    def stored_before(self, end: int) -> int:
        """Store time of the last record that ends by ``end``; 0 if unknown."""
        if end > self.max_phy_offset:
            return 0
        ended = (r.store_timestamp for r in reversed(self.records) if r.end <= end)
        return next(ended, 0)

    @lazy
    def store_timestamps_rise(self) -> bool:
        """Whether store timestamps never decrease along the chain."""
        stamps = [record.store_timestamp for record in self.records]
        return stamps == sorted(stamps)

    def where(self, phy_offset: int) -> Place:
        """A phy_offset as a place: path, byte and phy_offset."""
        for file in reversed(self.files):
            if file.base <= phy_offset:
                at = phy_offset - file.base
                return Place(file.path, at, f"phy_offset {phy_offset}")
        return Place("commitlog", known_as=f"phy_offset {phy_offset}")

    @lazy
    def first_written_past_stop(self) -> tuple[str, int] | None:
        """(path, byte) of the first byte past the stop that is not zero."""
        return next(self._written_past_stop(), None)

    @lazy
    def later_file_written(self) -> str | None:
        """The first file after the one where the chain ends that is not all zeros."""
        paths = (path for path, _ in self._written_past_stop())
        return next((path for path in paths if path != self.stop.path), None)

    @lazy
    def records_beyond(self) -> tuple[Record, ...]:
        """Intact records past the chain's end, each at its own phy_offset."""
        return tuple(part for part in self._beyond if isinstance(part, Record))

    @lazy
    def breaks(self) -> tuple[LogStop, ...]:
        """The places from the chain's end on where written bytes are not a record.

        Empty when the chain ends at space that was never written.
        """
        if self.first_written_past_stop is None:
            return ()
        later = [part for part in self._beyond if isinstance(part, LogStop)]
        return (self.stop, *later)

    @lazy
    def _beyond(self) -> tuple[Record | LogStop, ...]:
        """Records and breaks past the chain's end, in log order."""
        found: list[Record | LogStop] = []
        for file in self.files:
            if file.path == self.stop.path and file.flaw is not None:
                found.extend(read_on(file))
            elif file.base >= self.stop.phy_offset:
                found.extend(file.records)
                if file.flaw is not None and first_nonzero(file.data, file.end) < len(
                    file.data
                ):
                    found.append(_stop_of(file, file.end, file.flaw, file.seen))
                    found.extend(read_on(file))
        return tuple(found)

    def _written_past_stop(self) -> Iterator[tuple[str, int]]:
        """For each file from the stop on, its first byte there that is not zero."""
        for file in self.files:
            position = max(0, self.stop.phy_offset - file.base)
            if position < len(file.data):
                written = first_nonzero(file.data, position)
                if written < len(file.data):
                    yield file.path, written


class _AlsoLeftOut(Mapping[int, Record]):
    """Records by phy_offset; those that were left out are decoded on access."""

    def __init__(self, found: dict[int, Record], log: LogImage, within: range) -> None:
        self._found, self._within = found, within
        self._skips = sorted(
            [
                (file.base + at, file.base + skip.end, file)
                for file in log.files
                for at, skip in file.skips.items()
            ],
            key=itemgetter(0),
        )
        self._starts = [start for start, *_ in self._skips]

    def __getitem__(self, phy_offset: int) -> Record:
        record = self._found.get(phy_offset) or self._decoded(phy_offset)
        if record is None:
            raise KeyError(phy_offset)
        return record

    def __iter__(self) -> Iterator[int]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def _decoded(self, phy_offset: int) -> Record | None:
        number = bisect_right(self._starts, phy_offset) - 1
        if number < 0 or phy_offset not in self._within:
            return None
        _, end, file = self._skips[number]
        if phy_offset >= end:
            return None
        try:
            return _record_at(file, phy_offset - file.base)
        except BadRecord:
            return None


def read_log(
    files: dict[int, tuple[str, Bytes]],
    odd_paths: tuple[str, ...],
    previous: LogImage | None,
    deleted: DeletedImage = NOTHING_DELETED,
    watch: Callable[[str], None] | None = None,
    *,
    by: Writer,
    left_out: LeftOut = NOTHING,
) -> LogImage:
    """Decode the log.

    Args:
        files: (path, bytes) by base.
        odd_paths: paths in the log's directory that are not log files.
        previous: an older image; files that have not changed are taken from it.
        deleted: which topics and queues were deleted.
        watch: called with the path of each file that was decoded.
        by: who wrote the log.
        left_out: what not to decode.
    """
    if not files:
        stop = LogStop("end", "commitlog", 0, 0, "there is no log file")
        return LogImage((), 0, (), stop, odd_paths, deleted)
    bases = sorted(files)
    size = common_size(bases, [len(files[base][1]) for base in bases])
    known = {file.path: file for file in previous.files} if previous else {}
    each = []
    for base in bases:
        path, data = files[base]
        file = known.get(path)
        how = by, left_out.records.get(path, NO_SKIPS)
        each.append(_read_file(path, data, base, size, file, how=how))
        if watch is not None:
            watch(path)
    read = tuple(each)
    if previous is not None and (odd_paths, deleted) == (
        previous.odd_paths,
        previous.deleted,
    ):
        kept = zip(read, previous.files, strict=False)
        if len(read) == len(previous.files) and all(now is old for now, old in kept):
            return previous
    last, stop = _chain_end(read, size)
    records = tuple(chain.from_iterable([f.records for f in read[: last + 1]]))
    return LogImage(read, size, records, stop, odd_paths, deleted, left_out.runs)


def common_size(bases: list[int], lengths: list[int]) -> int:
    """The size that files of the log, or of a queue, are meant to have.

    It is the smallest distance of two bases, if some file has that length: a missing
    file makes the distance greater. Otherwise it is the length that most files have: a
    file that was cut has another. 0 without files.
    """
    if not lengths:
        return 0
    first = lengths[0]
    if len(bases) > 1:
        distance = min(after - base for base, after in pairwise(bases))
        if distance in lengths:
            return distance
    if lengths.count(first) == len(lengths):
        return first
    return max(Counter(lengths).items(), key=lambda item: (item[1], item[0]))[0]


def with_misnamed(
    named: Mapping[int, tuple[str, Bytes]], odd: Mapping[str, Bytes]
) -> dict[int, tuple[str, Bytes]]:
    """Add files whose odd names RocketMQ reads as numbers.

    Only if no other file has that base, and the file's size is that of the others.
    """
    found: dict[int, tuple[str, Bytes]] = {}
    for path, data in sorted(odd.items()):
        base = misnamed_base(path.rpartition("/")[2])
        if base is not None and base not in named:
            found.setdefault(base, (path, data))
    of = named or found
    size = common_size(sorted(of), [len(of[base][1]) for base in sorted(of)])
    fits = {
        base: (path, data)
        for base, (path, data) in found.items()
        if size and len(data) == size and base % size == 0
    }
    return {**named, **fits}


def first_nonzero(data: Bytes, start: int) -> int:
    """The first byte from ``start`` on that is not zero; the length if all are."""
    position = next_data(data, start)
    size = _FIRST_CHUNK  # nearly always it is not far
    while position < len(data):
        part = bytes(data[position : position + size])
        if part != _ZEROS[: len(part)]:
            return position + len(part) - len(part.lstrip(b"\0"))
        position = next_data(data, position + len(part))
        size = min(2 * size, _CHUNK)
    return len(data)


def _read_file(
    path: str,
    data: Bytes,
    base: int,
    size: int,
    known: LogFile | None,
    *,
    how: tuple[Writer, Skips],
) -> LogFile:
    limit = min(len(data), size)
    (by_rocketmq, ours, levels), skips = how
    records: list[Record] = []
    position = 0
    if known is not None and known.ours != ours and _may_hold_nul(known):
        known = None
    # Only bytes are trusted to be what they were: a view may have changed below us.
    if known is not None and known.limit == limit and type(data) is bytes:
        if data is known.data or data == known.data:
            return known
        if data[: known.end] == known.data[: known.end]:
            records.extend(known.records)
            position = known.end
    flaw: FlawKind | None
    is_mapped = is_mapped_file(data)
    odd = [] if not records or known is None else [*known.odd_records]
    try:
        while True:
            if data[position : position + 8] == _NEVER_WRITTEN:
                # What nearly every file ends with; nothing need be raised for it.
                flaw, seen = "zeros", "never written"
                break
            takes_nul = by_rocketmq or base + position not in ours
            record = parse_record(
                *(data, position, limit, base + position),
                takes_nul=takes_nul,
                levels=levels,
            )
            position += record.size
            if is_odd(record) or (by_rocketmq and is_odd_to_rocketmq(record)):
                odd.append(record)
            elif is_mapped:
                record = without_body(record)
            records.append(record)
            if position in skips:
                position = skips[position].end
                let_go(data)  # or a page for each record that is kept stays
    except BadRecord as bad:
        flaw, seen = bad.kind, bad.seen
    if is_mapped:
        let_go(data)
    if flaw == "filler":
        flaw, seen = _judge_filler(data, position, limit, seen)
    of_file = (tuple(records), position, flaw, seen, tuple(odd), by_rocketmq)
    read = LogFile(path, base, data, limit, *of_file, skips=skips, levels=levels)
    return read._replace(ours=ours) if _may_hold_nul(read) else read


def _may_hold_nul(known: LogFile) -> bool:
    """Whether it matters for a file which of its records our store wrote."""
    return bool(known.odd_records) or known.flaw not in (None, "zeros", "end")


def _judge_filler(
    data: Bytes, position: int, limit: int, seen: str
) -> tuple[FlawKind | None, str]:
    assert int.from_bytes(data[position + 4 : position + 8], "big") == MAGIC_BLANK
    left = limit - position
    if int.from_bytes(data[position : position + 4], "big", signed=True) == left:
        return None, seen
    return "filler", f"{seen}, but {left} bytes are left in the file"


def _chain_end(files: tuple[LogFile, ...], size: int) -> tuple[int, LogStop]:
    """The number of the file in which the chain ends, and the stop."""
    for number, file in enumerate(files):
        end_phy = file.base + file.limit
        is_last = number + 1 == len(files)
        if file.flaw is not None:
            return number, _stop_of(file, file.end, file.flaw, file.seen)
        if is_last:
            return number, _stop_of(file, file.limit, "end", "the last file ends")
        if files[number + 1].base != end_phy:
            path = f"commitlog/{end_phy:020d}"
            seen = f"no such file, but {files[number + 1].path} exists"
            return number, LogStop("missing_file", path, 0, end_phy, seen)
    raise AssertionError(f"{len(files)} files of {size} bytes have no end")


def read_on(file: LogFile) -> Iterator[Record | LogStop]:
    """Search one file for records behind the place where reading stopped.

    Yields intact records in log order, and a ``LogStop`` for each later place where
    they end and something that is not zero follows.
    """
    position = next_record(file, file.end + 1)
    while position >= 0:
        try:
            record = _record_at(file, position)
            yield record
            position += record.size
            if position in file.skips:
                position = file.skips[position].end
                let_go(file.data)
        except BadRecord as bad:
            kind, seen = bad.kind, bad.seen
            if kind == "filler":
                closed, seen = _judge_filler(file.data, position, file.limit, seen)
                if closed is None:
                    return
            if first_nonzero(file.data, position) == len(file.data):
                return
            yield _stop_of(file, position, kind, seen)
            position = next_record(file, position + 1)


def _stop_of(file: LogFile, position: int, kind: FlawKind, seen: str) -> LogStop:
    return LogStop(kind, file.path, position, file.base + position, seen)


def _record_at(file: LogFile, position: int) -> Record:
    at = file.base + position
    takes_nul = file.by_rocketmq or at not in file.ours
    return parse_record(
        *(file.data, position, file.limit, at), takes_nul=takes_nul, levels=file.levels
    )


def next_record(file: LogFile, start: int) -> int:
    """The position of the next intact record from ``start`` on; -1 if there is none."""
    for found in _magics(file.data, start + 4, file.limit):
        position = found - 4
        try:
            _record_at(file, position)
            return position
        except BadRecord:
            continue
    return -1


def _magics(data: Bytes, start: int, limit: int) -> Iterator[int]:
    """The positions of record magics from ``start`` on."""
    position = next_data(data, start)
    size = _FIRST_CHUNK
    while position < limit:
        part = bytes(data[position : min(position + size + 3, limit)])
        for hit in _MAGIC.finditer(part):
            yield position + hit.start()
        position = next_data(data, position + size)
        size = min(2 * size, _CHUNK)
