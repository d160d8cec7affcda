"""The fast half of fsck: finds what of a large store is right, so laws can skip it.

The log is cut into splits, which are read independently, by processes or by Spark. A
split finds its first record by itself, follows the sizes from there past its own end,
and resumes behind damage. For each window of it one loop follows the sizes, numpy
checks all fields at once, zlib each body; then each queue's units are compared with the
files of that queue. Memory is that of a window and of what is kept.

*Left out* are messages that are whole, have nothing odd, follow each other in number
and time, and either all have the unit they must have, or none. Everything else is kept,
with the records around it and the ends of every run: the laws see those, as they see
all of a small store, and they alone decide. What cannot be proven at once (IPv6 hosts,
long topics, property CRCs, NULs) is parsed as the laws' reader does it.
"""

from __future__ import annotations

import mmap
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias
from zlib import crc32

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from crashmq.harness.fsck.shapes import (
    GROUP_MIN,
    crcs_of,
    groups_of,
    numbered,
    read_each,
    read_tails,
)
from crashmq.harness.fsck.store_files import extents
from crashmq.models.files.left_out import LeftOut, Skip
from crashmq.models.files.log import LogFile, QueueKey, first_nonzero, next_record
from crashmq.models.files.oddity import is_odd, is_odd_to_rocketmq
from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.files.record import (
    MAGIC_BLANK,
    MAGIC_V1,
    MULTI_QUEUE_OFFSET,
    RECORD_SIZE_MIN,
    SCHEDULE_TOPIC,
    BadRecord,
    parse_record,
)
from crashmq.models.files.sparse import SparseMap

WINDOW: Final = 128 << 20
WINDOW_RECORDS: Final = 1 << 17
_SIZE: Final = struct.Struct(">i")
_HEAD: Final = np.dtype(
    [
        *(("size", ">i4"), ("magic", ">u4"), ("crc", ">u4"), ("queue_id", ">i4")),
        *(("flag", ">i4"), ("queue_offset", ">i8"), ("phy_offset", ">i8")),
        *(("sys_flag", ">i4"), ("born", ">i8"), ("born_host", "V4")),
        *(("born_port", ">u4"), ("stored", ">i8"), ("store_host", ">u4")),
        *(("store_port", ">u4"), ("times", ">i4"), ("prepared", ">i8")),
        ("body_size", ">i4"),
    ]
)
_UNIT: Final = np.dtype([("phy", ">i8"), ("size", ">i4"), ("code", ">i8")])
assert (_HEAD.itemsize, _UNIT.itemsize) == (88, UNIT_SIZE)
_INNER_BATCH: Final = 0x80
_NOT_INDEXED: Final = 0x84
_ENDS_HALF: Final = 0x8
_IPV6: Final = 0x30
_PLAIN_FLAGS: Final = 0x3CF  # no IPv6 host, no bit that nobody sets
_PROPERTIES_MAX: Final = 32767
_NEAR_IN_LOG: Final = 2
"""So many records around one that is kept: laws compare times and properties."""
_NEAR_IN_QUEUE: Final = 26
"""So many units around one that is kept: those of a sector prove each other."""
_ALIKE: Final = 16
_ALIKE_MAX: Final = 1 << 12
TAILS: Final = 1 << 14
_DIFFERS, _AGREES, _ABSENT = 0, 1, 2
_SCHEDULE: Final = SCHEDULE_TOPIC.encode()
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
QueueFiles: TypeAlias = Mapping[QueueKey, Sequence[tuple[int, int, str]]]
"""Of each queue its files: (base, size, where it lies), in order."""


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a log file: the records that begin in [start, end) of it.

    ``path`` is the file's in the store, ``place`` where it lies, ``limit`` the first
    byte that is not read.
    """

    path: str
    place: str
    base: int
    limit: int
    start: int
    end: int


@dataclass(slots=True)
class SplitScan:
    """What a split holds.

    Attributes:
        begin, end: from its first record to where its last one ends.
        is_through: the chain of records leads past the split's end.
        is_closed: a BLANK closes the file in it.
        records: how many whole records were seen, kept or left out.
        skips, runs, units: as ``LeftOut`` has them, of this split.
    """

    split: Split
    begin: int = -1
    end: int = -1
    is_through: bool = False
    is_closed: bool = False
    records: int = 0
    skips: dict[int, Skip] = field(default_factory=dict)
    runs: dict[tuple[int, int], int] = field(default_factory=dict)
    units: list[tuple[QueueKey, int, int]] = field(default_factory=list)


def splits_of(
    files: Iterable[tuple[str, Path, int, int]], size: int, split_size: int
) -> list[Split]:
    """The splits of log files of one size; (path, place, base, length) of each."""
    return [
        Split(path, str(place), base, limit, start, min(start + split_size, limit))
        for path, place, base, length in files
        if (limit := min(length, size)) and base % size == 0
        for start in range(0, limit, split_size)
    ]


def joined(scans: Iterable[SplitScan]) -> LeftOut:
    """What all splits leave out together; they come in the order of the log.

    One that does not begin where the one before it ends found something that is no
    record of the chain: then nothing of it is left out.
    """
    skips: dict[str, dict[int, Skip]] = {}
    runs: dict[tuple[int, int], int] = {}
    units: dict[QueueKey, dict[int, int]] = {}
    before: SplitScan | None = None
    for scan in scans:
        if before is not None and before.split.path == scan.split.path:
            if before.is_closed:
                continue
            if before.is_through and scan.begin != before.end:
                continue
        before = scan
        skips.setdefault(scan.split.path, {}).update(scan.skips)
        runs.update(scan.runs)
        for key, first, end in scan.units:
            units.setdefault(key, {})[first] = end
    return LeftOut(skips, runs, units)


def scan_split(split: Split, queues: QueueFiles) -> SplitScan:
    """Read one split.

    Raises:
        OSError: a file cannot be read.
    """
    found = SplitScan(split)
    with (
        Path(split.place).open("rb") as file,
        SparseMap(file.fileno(), split.limit, access=mmap.ACCESS_READ) as data,
        memoryview(data) as view,
    ):
        data.extents = tuple(extents(file.fileno(), split.limit))
        position = split.start
        is_searched = position > 0
        while position < split.end:
            if is_searched:
                position = _next_start(view, position, split)
                if not 0 <= position < split.end:
                    break
            if found.begin < 0:
                found.begin = position
            position, is_searched = _read_on(data, view, position, found, queues)
            found.end = position
            data.madvise(mmap.MADV_DONTNEED)
            if is_searched and _is_closing(view, position, split.limit):
                found.is_closed = True
                break
            found.is_through = not is_searched and position >= split.end
            position += is_searched
    return found


def _next_start(view: memoryview, position: int, split: Split) -> int:
    """The first intact record from there on, as the laws' reader finds it; or -1."""
    if first_nonzero(view, position) >= split.end:
        return -1
    file = LogFile(
        *(split.path, split.base, view, split.limit, (), 0, None, "", ()),
        by_rocketmq=True,
    )
    return next_record(file, position)


def _is_closing(view: memoryview, at: int, limit: int) -> bool:
    head = bytes(view[at : at + 8])
    is_blank = int.from_bytes(head[4:], "big") == MAGIC_BLANK
    return is_blank and int.from_bytes(head[:4], "big") == limit - at


def _read_on(
    data: mmap.mmap,
    view: memoryview,
    start: int,
    found: SplitScan,
    queues: QueueFiles,
) -> tuple[int, bool]:
    """Read a window; where it ends, and whether the chain of records breaks there."""
    split = found.split
    end = min(start + WINDOW, split.end)
    places, position, goes_on = _chain(data, start, end, split.limit)
    if len(places):
        window = _Window(data, view, places, split)
        try:
            whole = window.prove()
            if whole < len(places):
                position, goes_on = int(places[whole]), False
            if whole:
                found.records += whole
                window.leave_out(whole, found, queues)
        finally:
            window.release()
    return position, not goes_on


def _chain(data: mmap.mmap, start: int, end: int, limit: int) -> tuple[Ints, int, bool]:
    """Where the records of a window begin, by their sizes alone.

    Returns:
        (their positions, where the next one begins, whether there may be one).
    """
    unpack, places, parts = _SIZE.unpack_from, list[int](), list[Ints]()
    at, last, before, alike, room = start, limit - RECORD_SIZE_MIN, 0, 0, WINDOW_RECORDS
    while at < end and room > len(places):
        (length,) = unpack(data, at) if at <= last else (0,)
        if length < RECORD_SIZE_MIN or at + length > limit:
            break
        places.append(at)
        at += length
        alike, before = alike + 1 if length == before else 0, length
        if alike == _ALIKE:
            alike = 0
            count = min(-(-(end - at) // length), (limit - at) // length)
            count = _of_size(data, at, length, min(count, room - len(places)))
            parts += [np.array(places, np.int64), at + length * np.arange(count)]
            room -= len(places) + count
            places = []
            at += count * length
    else:
        return _together(parts, places), at, True
    return _together(parts, places), at, False


def _of_size(data: mmap.mmap, at: int, size: int, count: int) -> int:
    """How many records of one size follow each other; of the next ``count`` places."""
    if count <= 0:
        return 0
    sizes = np.ndarray((count,), ">i4", data, at, (size,))
    for first in range(0, count, _ALIKE_MAX):
        others = np.flatnonzero(sizes[first : first + _ALIKE_MAX] != size)
        if len(others):
            return first + int(others[0])
    return count


def _together(parts: list[Ints], places: list[int]) -> Ints:
    return np.concatenate([*parts, np.array(places, np.int64)])


class _Window:
    """The records of one window of a file, as arrays.

    ``differs`` marks those that the laws have to see.
    """

    def __init__(
        self, data: mmap.mmap, view: memoryview, places: Ints, split: Split
    ) -> None:
        self._data, self._view, self._split = data, view, split
        self._places = places
        self._bytes = np.frombuffer(data, np.uint8)
        rows = sliding_window_view(self._bytes, 88)[self._places]
        self._heads: NDArray[Any] = rows.view(_HEAD).reshape(-1)
        self._topics: dict[bytes, int] = {}
        self._topic_of = np.zeros(len(places), np.int64)
        self._codes = np.zeros(len(places), np.int64)
        self._differs = self._heads["sys_flag"] & _INNER_BATCH != 0

    def release(self) -> None:
        """Let the mapping go, which may be closed only then."""
        del self._bytes, self._view

    def prove(self) -> int:
        """How many records from the first one on are whole."""
        heads, places = self._heads, self._places
        bodies = heads["body_size"].astype(np.int64)
        topic_at = places + 88 + bodies
        ends = places + heads["size"]
        plain = (heads["magic"] == MAGIC_V1) & (heads["sys_flag"] & ~_PLAIN_FLAGS == 0)
        plain &= (bodies > 0) & (topic_at + 3 <= ends)
        topic_at = np.where(plain, topic_at, places)
        lengths = self._bytes[topic_at].astype(np.int64)
        behind = topic_at + 1 + lengths
        plain &= (lengths > 0) & (lengths <= 127) & (behind + 2 <= ends)
        behind = np.where(plain, behind, places)
        properties = self._bytes[behind].astype(np.int64) << 8
        properties |= self._bytes[behind + 1]
        plain &= (behind + 2 + properties == ends) & (properties <= _PROPERTIES_MAX)
        plain &= heads["phy_offset"] == places + self._split.base
        plain &= (heads["stored"] > 0) & _ends_a_half(heads)
        plain &= (heads["queue_offset"] >= 0) & (heads["queue_id"] >= 0)
        plain &= (heads["times"] >= 0) & (heads["born_port"] >> 16 == 0)
        plain &= heads["store_port"] >> 16 == 0
        ends, topic_at = (
            np.where(plain, ends, places),
            np.where(plain, topic_at, places),
        )
        behind = np.where(plain, behind, places)
        starts = np.where(plain, places + 88, places)
        crcs = crcs_of(self._bytes, self._view, starts, topic_at - starts)
        plain &= crcs & 0x7FFFFFFF == heads["crc"]
        plain &= self._read_tails(np.flatnonzero(plain), topic_at, behind, ends)
        for number in np.flatnonzero(~plain):
            if not self._parse(int(number)):
                return int(number)
        return len(places)

    def _read_tails(
        self, rows: Ints, topic_at: Ints, behind: Ints, ends: Ints
    ) -> Bools:
        """Which records have a plain topic and plain properties; both are noted."""
        plain = np.zeros(len(self._places), bool)
        shapes = (behind - topic_at - 1)[rows] << 16 | (ends - behind - 2)[rows]
        alone: list[Ints] = []
        for shape, members in groups_of(shapes):
            some, topic, size = rows[members], shape >> 16, shape & 0xFFFF
            if len(some) < GROUP_MIN:
                alone.append(some)
                continue
            every = sliding_window_view(self._bytes, topic + 2 + size)
            for first in range(0, len(some), TAILS):
                of = some[first : first + TAILS]
                block = every[topic_at[of] + 1]
                ids, names = numbered(block[:, :topic])
                known = np.array([self._topic_id(name) for name in names], np.int64)
                tails = read_tails(block[:, topic + 2 :])
                plain[of] = tails.plain & (known[ids] >= 0)
                self._topic_of[of], self._codes[of] = known[ids], tails.codes
                alone.append(of[~tails.plain])
        if len(of := np.concatenate([*alone, rows[:0]])):
            names = self._slices(topic_at[of] + 1, behind[of])
            known = np.array([self._topic_id(name) for name in names], np.int64)
            tails = read_each(self._slices(behind[of] + 2, ends[of]))
            plain[of] = tails.plain & (known >= 0)
            self._topic_of[of], self._codes[of] = known, tails.codes
        return plain

    def _slices(self, starts: Ints, ends: Ints) -> list[bytes]:
        places = map(slice, starts.tolist(), ends.tolist())
        return list(map(self._data.__getitem__, places))

    def _topic_id(self, raw: bytes) -> int:
        """The number of a topic in this window; -1 of none that is plain."""
        return -1 if 0 in raw else self._topics.setdefault(raw, len(self._topics))

    def _parse(self, number: int) -> bool:
        """Ask the slow reader for one record; it may be whole all the same."""
        at, split = int(self._places[number]), self._split
        try:
            record = parse_record(
                self._view, at, split.limit, split.base + at, takes_nul=True
            )
        except BadRecord:
            return False
        if record.size != self._heads["size"][number]:
            return False
        raw = record.topic.encode()
        self._topic_of[number] = self._topics.setdefault(raw, len(self._topics))
        self._codes[number] = record.tags_code
        if self._heads["sys_flag"][number] & _IPV6:
            self._heads["stored"][number] = record.store_timestamp
            self._heads["store_host"][number] = crc32(record.store_host)
        odd = is_odd(record) or is_odd_to_rocketmq(record)
        self._differs[number] |= odd or MULTI_QUEUE_OFFSET in record.properties_raw
        return True

    def leave_out(self, whole: int, found: SplitScan, queues: QueueFiles) -> None:
        """Note what is left out of the first ``whole`` records."""
        heads = self._heads[:whole]
        places, sizes = self._places[:whole], heads["size"].astype(np.int64)
        numbers = heads["queue_offset"].astype(np.int64)
        texts = {raw: raw.decode("utf-8", "replace") for raw in self._topics}
        names = sorted(set(texts.values()))
        known = {raw: names.index(text) for raw, text in texts.items()}
        ids = np.array(list(known.values()), np.int64)[self._topic_of[:whole]]
        keys = ids << 32 | heads["queue_id"].astype(np.int64)
        kept = self._kept_in_log(heads)
        if _SCHEDULE in known:  # whose delay levels only all of them tell
            kept |= keys >> 32 == known[_SCHEDULE]
        listed = np.flatnonzero(heads["sys_flag"] & _NOT_INDEXED == 0)
        order = listed[np.argsort(keys[listed], kind="stable")]
        starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        of = [
            (names[int(key >> 32)], int(key & 0xFFFFFFFF))
            for key in keys[order[starts]]
        ]
        bounds = [*starts.tolist(), len(order)]
        rows = _Rows(numbers[order], bounds, [queues.get(key, ()) for key in of])
        wanted = places[order] + self._split.base, sizes[order], self._codes[order]
        state = rows.states(wanted)
        runs = rows.runs(
            state, _dilated(kept[order] | (state == _DIFFERS), _NEAR_IN_QUEUE)
        )
        kept[order] = ~_interiors(len(order), runs)
        self._note(kept, sizes, found)
        for first, last in runs:
            ends = places[order[first]], places[order[last]]
            a, b = (int(at) + self._split.base for at in ends)
            found.runs[a, b] = last - first - 1
            if state[first] == _AGREES:
                begin, end = int(rows.numbers[first]), int(rows.numbers[last])
                key = of[bisect_right(bounds, first) - 1]
                found.units.append((key, begin + 1, end))

    def _kept_in_log(self, heads: NDArray[Any]) -> Bools:
        """Records that are odd, out of order, of another host, or at the ends."""
        kept = self._differs[: len(heads)].copy()
        kept[1:] |= np.diff(heads["stored"].astype(np.int64)) < 0
        kept = _dilated(kept, _NEAR_IN_LOG)
        for name in ("store_host", "store_port"):
            kept[1:] |= heads[name][1:] != heads[name][:-1]
        kept[0] = kept[-1] = True
        return kept

    def _note(self, kept: Bools, sizes: Ints, found: SplitScan) -> None:
        rows = np.flatnonzero(kept)
        for before, after in pairwise(rows[: len(rows)].tolist()):
            if after > before + 1:
                at = int(self._places[before] + sizes[before])
                end = int(self._places[after])
                found.skips[at] = Skip(end, after - before - 1)


def _ends_a_half(heads: NDArray[Any]) -> Bools:
    """Whether a commit or rollback names an earlier record, and no other does."""
    half = heads["prepared"]
    is_end = heads["sys_flag"] & _ENDS_HALF != 0
    is_earlier = (half >= 0) & (half <= heads["phy_offset"])
    found: Bools = (half == 0) | (is_end & is_earlier)
    return found


def _dilated(marks: Bools, by: int) -> Bools:
    """Also those up to so many places before and behind."""
    if not marks.any():
        return marks
    size = len(marks)
    edges = np.zeros(size + 1, np.int64)
    at = np.flatnonzero(marks)
    np.add.at(edges, np.maximum(at - by, 0), 1)
    np.add.at(edges, np.minimum(at + by + 1, size), -1)
    found: Bools = np.cumsum(edges[:-1]) > 0
    return found


def _interiors(size: int, runs: list[tuple[int, int]]) -> Bools:
    found = np.zeros(size, bool)
    for first, last in runs:
        found[first + 1 : last] = True
    return found


class _Rows:
    """The messages of a window by queue, each queue's in log order.

    A queue's rows are [bounds[n], bounds[n + 1]), its files ``files[n]``.
    """

    def __init__(
        self,
        numbers: Ints,
        bounds: list[int],
        files: list[Sequence[tuple[int, int, str]]],
    ) -> None:
        self.numbers = numbers
        self._bounds, self._files = bounds, files
        self._units = np.zeros(len(numbers), _UNIT)
        self._differs = np.zeros(len(numbers), bool)
        self._begins = np.zeros(len(numbers), bool)
        """Rows where a queue begins, or a file of it."""
        for (start, end), of in zip(pairwise(bounds), files, strict=True):
            self._read(start, end, of)

    def _read(
        self, start: int, end: int, files: Sequence[tuple[int, int, str]]
    ) -> None:
        numbers = self.numbers[start:end]
        self._begins[start] = True
        first, last = int(numbers.min()), int(numbers.max())
        if last - first >= 4 * len(numbers) + 1024:
            self._differs[start:end] = True  # numbers that no queue has
            return
        for base, _, _ in files:
            at = base // UNIT_SIZE
            if first <= at <= last:
                self._begins[start:end] |= numbers == at
        for (base, size, _), (later, _, _) in pairwise(files):
            if later < base + size:  # two files have these
                ends = later // UNIT_SIZE, (base + size) // UNIT_SIZE
                self._differs[start:end] |= (numbers >= ends[0]) & (numbers < ends[1])
        units = _units_of(files, first, last + 1 - first)
        self._units[start:end] = units[numbers - first]

    def states(self, wanted: tuple[Ints, Ints, Ints]) -> NDArray[np.int8]:
        """Of each message whether it has the unit it must have, another, or none."""
        units = self._units
        phys, sizes, codes = wanted
        agrees = (units["phy"] == phys) & (units["size"] == sizes)
        agrees &= units["code"] == codes
        is_zero = (units["phy"] == 0) & (units["size"] == 0) & (units["code"] == 0)
        state = np.where(agrees, _AGREES, np.where(is_zero, _ABSENT, _DIFFERS))
        state[self._differs] = _DIFFERS
        return state.astype(np.int8)

    def runs(self, state: NDArray[np.int8], kept: Bools) -> list[tuple[int, int]]:
        """(first, last) rows of what may be left out but for its ends.

        A run lies in one file of its queue.
        """
        if not len(self.numbers):
            return []
        breaks = self._begins | kept
        breaks[1:] |= (np.diff(self.numbers) != 1) | (np.diff(state) != 0)
        breaks[1:] |= kept[:-1]
        starts = np.flatnonzero(breaks)
        lasts = np.append(starts[1:], len(self.numbers)) - 1
        is_long = lasts - starts >= 2
        return list(zip(starts[is_long].tolist(), lasts[is_long].tolist(), strict=True))


def _units_of(
    files: Sequence[tuple[int, int, str]], first: int, count: int
) -> NDArray[Any]:
    """So many units of a queue from a number on; zeros where it has no file."""
    raw = bytearray(count * UNIT_SIZE)
    start, end = first * UNIT_SIZE, (first + count) * UNIT_SIZE
    for base, size, place in files:
        at, until = max(base, start), min(base + size, end)
        if at < until:
            with Path(place).open("rb") as file:
                file.seek(at - base)
                part = file.read(until - at)
            raw[at - start : at - start + len(part)] = part
    return np.frombuffer(raw, _UNIT)
