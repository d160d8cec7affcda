"""The log's files, and the chain of records through them as recovery follows it.

Each file is read on its own, from its first byte: record after record up to a BLANK
that reaches its end, or up to the first bytes that are not a record. The chain runs
through the files in order as long as each is closed by its BLANK and the next one
exists.

Past the chain's end nothing is trusted, but intact records can still be found there:
one that is found by its magic counts if it carries the very offset it lies at and
proves itself intact.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

from crashmq.models.files.deleted import NOTHING_DELETED, DeletedImage
from crashmq.models.files.lazy import lazy
from crashmq.models.files.oddity import is_odd, is_odd_to_rocketmq
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
        """The place: path, byte and phy_offset."""
        return Place(self.path, self.position, f"phy_offset {self.phy_offset}")


ALL_OURS = range(1 << 62)


class LogFile(NamedTuple):
    """One file of the log, read from its first byte up to where reading stopped.

    ``limit`` is the first byte that is not read: the file's length, or the common size
    of the files where this one is longer. ``end`` is where reading stopped; ``flaw``
    says why, and is None if a BLANK closes the file. ``odd_records`` are those of
    ``records`` with a field that no store writes. ``by_rocketmq``: RocketMQ wrote the
    file; but for records in ``ours`` it may have, and they may hold a NUL.
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
    """

    files: tuple[LogFile, ...]
    file_size: int
    records: tuple[Record, ...]
    stop: LogStop
    odd_paths: tuple[str, ...]
    deleted: DeletedImage = NOTHING_DELETED

    @property
    def min_phy_offset(self) -> int:
        """The base of the first file; 0 without files."""
        return self.files[0].base if self.files else 0

    @property
    def max_phy_offset(self) -> int:
        """Where the chain ends; past the last filler if that closes the last file."""
        return self.stop.phy_offset

    @lazy
    def record_at(self) -> dict[int, Record]:
        """The records of the chain by phy_offset."""
        return {record.phy_offset: record for record in self.records}

    @lazy
    def indexed_records(self) -> dict[QueueKey, list[Record]]:
        """Records of the chain that have a unit, in log order, by (topic, queue_id).

        Under a light queue's key stand records of other topics, ``as_listed`` there. Of
        a deleted topic only those put afterwards are listed.
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
        """Queues whose records' queue_offsets do not rise by exactly one."""
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
        """The highest store timestamp of records with a unit; 0 without any."""
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
        """A byte of the log: path, byte and phy_offset."""
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
        """Intact records past the chain's end, each at the offset it carries."""
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
        """The first byte that is not zero, of each file from the stop on."""
        for file in self.files:
            position = max(0, self.stop.phy_offset - file.base)
            if position < len(file.data):
                written = first_nonzero(file.data, position)
                if written < len(file.data):
                    yield file.path, written


def read_log(
    files: dict[int, tuple[str, Bytes]],
    odd_paths: tuple[str, ...],
    previous: LogImage | None,
    deleted: DeletedImage = NOTHING_DELETED,
    watch: Callable[[str], None] | None = None,
    *,
    by_rocketmq: bool = False,
    ours: range = ALL_OURS,
) -> LogImage:
    """Decode the log in ``files``, by base; unchanged files come from ``previous``."""
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
        by = (by_rocketmq, ours)
        each.append(_read_file(path, data, base, size, file, by=by))
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
    return LogImage(read, size, records, stop, odd_paths, deleted)


def common_size(bases: list[int], lengths: list[int]) -> int:
    """The file size that most names and lengths agree on.

    Names count only if one length agrees. The smallest distance of two names is the
    size unless files are missing, and lengths are the size unless files were cut.

    The smallest distance of two names is the size unless files are missing, and lengths
    are the size unless files were cut.
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


def first_nonzero(data: Bytes, start: int) -> int:
    """The first byte from ``start`` on that is not zero, or the length."""
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
    by: tuple[bool, range],
) -> LogFile:
    limit = min(len(data), size)
    by_rocketmq, ours = by
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
                data, position, limit, base + position, takes_nul=takes_nul
            )
            position += record.size
            if is_odd(record) or (by_rocketmq and is_odd_to_rocketmq(record)):
                odd.append(record)
            elif is_mapped:
                record = without_body(record)
            records.append(record)
    except BadRecord as bad:
        flaw, seen = bad.kind, bad.seen
    if is_mapped:
        let_go(data)
    if flaw == "filler":
        flaw, seen = _judge_filler(data, position, limit, seen)
    of_file = (tuple(records), position, flaw, seen, tuple(odd), by_rocketmq)
    read = LogFile(path, base, data, limit, *of_file)
    return read._replace(ours=ours) if _may_hold_nul(read) else read


def _may_hold_nul(known: LogFile) -> bool:
    """Whether it matters for a file which of its records are ours."""
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
    """Search one file for records after the place where reading stopped.

    Yields intact records in log order, and each place where they break off with more to
    follow.
    """
    position = next_record(file, file.end + 1)
    while position >= 0:
        try:
            record = _record_at(file, position)
            yield record
            position += record.size
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
    return parse_record(file.data, position, file.limit, at, takes_nul=takes_nul)


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
