"""The fast half of fsck: finds what of a large store is right, so laws can skip it.

The log is cut into splits, which are read independently, by processes or by Spark. A
split finds its first record by itself, follows the sizes from there past its own end,
and resumes behind damage. Each window of it is walked (``numpy_walk.py``, or
``compiled.py``); then each queue's units are compared with the files of that queue.
Memory is that of a window and of what is kept.

*Left out* are messages that are whole, have nothing odd, follow each other in number
and time, and either all have the unit they must have, or none. Everything else is kept,
with the records around it and the ends of every run: the laws see those, as they see
all of a small store, and they alone decide. What cannot be proven at once (IPv6 hosts,
long topics, property CRCs, NULs) is parsed as the laws' reader does it.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from crashmq.harness.fsck.columns import (
    ODD,
    PLAIN,
    UNPROVEN,
    Bools,
    Ints,
    Records,
    Walk,
    Window,
)
from crashmq.harness.fsck.numpy_walk import walk
from crashmq.harness.fsck.store_files import extents
from crashmq.models.files.left_out import LeftOut, Skip
from crashmq.models.files.log import LogFile, QueueKey, first_nonzero, next_record
from crashmq.models.files.oddity import is_odd, is_odd_to_rocketmq
from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.files.record import (
    MAGIC_BLANK,
    MULTI_QUEUE_OFFSET,
    SCHEDULE_TOPIC,
    BadRecord,
    parse_record,
)
from crashmq.models.files.sparse import SparseMap

WINDOW: Final = 128 << 20
_SMALL_RECORD: Final = 1 << 12
_UNIT: Final = np.dtype([("phy", ">i8"), ("size", ">i4"), ("code", ">i8")])
assert _UNIT.itemsize == UNIT_SIZE
_INNER_BATCH: Final = 0x80
_NOT_INDEXED: Final = 0x84
_IPV6: Final = 0x30
_NEAR_IN_LOG: Final = 2
"""So many records around one that is kept: laws compare times and properties."""
_NEAR_IN_QUEUE: Final = 26
"""So many units around one that is kept: those of a sector prove each other."""
_DIFFERS, _AGREES, _ABSENT = 0, 1, 2
_SCHEDULE: Final = SCHEDULE_TOPIC.encode()
QueueFiles: TypeAlias = Mapping[QueueKey, Sequence[tuple[int, int, str]]]
"""Of each queue its files: (base, size, where it lies), in order."""


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a log file: the records that begin in [start, end) of it.

    ``path`` is the file's in the store, ``place`` where it lies, ``limit`` the first
    byte that is not read. ``is_compiled``: small records are read by the compiled walk,
    if it is there.
    """

    path: str
    place: str
    base: int
    limit: int
    start: int
    end: int
    is_compiled: bool = False


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
    files: Iterable[tuple[str, Path, int, int]],
    size: int,
    split_size: int,
    is_compiled: bool = False,
) -> list[Split]:
    """The splits of log files of one size; (path, place, base, length) of each."""
    return [
        Split(
            *(path, str(place), base, limit),
            *(start, min(start + split_size, limit), is_compiled),
        )
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
            window = Window(
                data,
                view,
                split.base,
                split.limit,
                position,
                _window_end(position, split),
            )
            position, is_searched = _read_on(window, found, queues)
            found.end = position
            data.madvise(mmap.MADV_DONTNEED)
            if is_searched and _is_closing(view, position, split.limit):
                found.is_closed = True
                break
            found.is_through = not is_searched and position >= split.end
            position += is_searched
    return found


def _window_end(start: int, split: Split) -> int:
    return min(start + WINDOW, split.end)


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


def _read_on(window: Window, found: SplitScan, queues: QueueFiles) -> tuple[int, bool]:
    """Read a window; where it ends, and whether the chain of records breaks there."""
    records = walk_of(found.split, window)(window)
    broken = _first_broken(window, records)
    if broken >= 0:
        records = records.up_to(broken)
    if whole := len(records.places):
        found.records += whole
        _leave_out(records, window.base, found, queues)
    return records.stop.at, not records.stop.goes_on


def walk_of(split: Split, window: Window) -> Walk:
    """How to read a window: compiled code pays where records are small and many."""
    if split.is_compiled and _size_at(window) <= _SMALL_RECORD:
        return compiled_walk() or walk
    return walk


def _size_at(window: Window) -> int:
    at = window.start
    return int.from_bytes(window.view[at : at + 4], "big")


@cache
def compiled_walk() -> Walk | None:
    """The walk that numba compiles; None where it is not installed."""
    try:
        from crashmq.harness.fsck.compiled import walk
    except ImportError:
        return None
    return walk


def _first_broken(window: Window, records: Records) -> int:
    """The first record that is not whole; -1 if all are.

    Those that are not proven yet are asked of the laws' reader one by one.
    """
    for number in np.flatnonzero(records.kinds == UNPROVEN).tolist():
        if not _parse(window, records, number):
            return int(number)
    return -1


def _parse(window: Window, records: Records, number: int) -> bool:
    """Ask the laws' reader for one record; it may be whole all the same."""
    at = int(records.places[number])
    try:
        record = parse_record(
            window.view, at, window.limit, window.base + at, takes_nul=True
        )
    except BadRecord:
        return False
    if record.size != records.sizes[number]:
        return False
    raw = record.topic.encode()
    records.topic_of[number] = records.topics.setdefault(raw, len(records.topics))
    records.codes[number] = record.tags_code
    if records.flags[number] & _IPV6:
        records.stored[number] = record.store_timestamp
        records.hosts[number] = crc32(record.store_host)
    odd = is_odd(record) or is_odd_to_rocketmq(record)
    is_seen = odd or MULTI_QUEUE_OFFSET in record.properties_raw
    records.kinds[number] = ODD if is_seen else PLAIN
    return True


def _leave_out(
    records: Records, base: int, found: SplitScan, queues: QueueFiles
) -> None:
    """Note what is left out of whole records."""
    places, sizes, numbers = records.places, records.sizes, records.numbers
    texts = {raw: raw.decode("utf-8", "replace") for raw in records.topics}
    names = sorted(set(texts.values()))
    known = {raw: names.index(text) for raw, text in texts.items()}
    ids = np.array(list(known.values()), np.int64)[records.topic_of]
    keys = ids << 32 | records.queue_ids
    kept = _kept_in_log(records)
    if _SCHEDULE in known:  # whose delay levels only all of them tell
        kept |= keys >> 32 == known[_SCHEDULE]
    listed = np.flatnonzero(records.flags & _NOT_INDEXED == 0)
    order = listed[_order_of(keys[listed])]
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    of = [(names[int(key >> 32)], int(key & 0xFFFFFFFF)) for key in keys[order[starts]]]
    bounds = [*starts.tolist(), len(order)]
    rows = _Rows(numbers[order], bounds, [queues.get(key, ()) for key in of])
    state = rows.states((places[order] + base, sizes[order], records.codes[order]))
    runs = rows.runs(state, _dilated(kept[order] | (state == _DIFFERS), _NEAR_IN_QUEUE))
    kept[order] = ~_interiors(len(order), runs)
    _note(records, kept, found)
    for first, last in runs:
        a, b = (int(places[order[at]]) + base for at in (first, last))
        found.runs[a, b] = last - first - 1
        if state[first] == _AGREES:
            begin, end = int(rows.numbers[first]), int(rows.numbers[last])
            key = of[bisect_right(bounds, first) - 1]
            found.units.append((key, begin + 1, end))


def _order_of(keys: Ints) -> Ints:
    """Those of one queue together, each queue's as they came."""
    topics, queues = keys >> 32, keys & 0xFFFFFFFF
    width = int(queues.max(initial=0)) + 1
    if int(topics.max(initial=0)) * width + width <= 1 << 16:
        # Of numbers of two bytes numpy counts how many there are of each.
        return np.argsort((topics * width + queues).astype(np.uint16), kind="stable")
    return np.argsort(keys, kind="stable")


def _kept_in_log(records: Records) -> Bools:
    """Records that are odd, out of order, of another host, or at the ends."""
    kept = (records.kinds == ODD) | (records.flags & _INNER_BATCH != 0)
    kept[1:] |= np.diff(records.stored) < 0
    kept = _dilated(kept, _NEAR_IN_LOG)
    kept[1:] |= np.diff(records.hosts) != 0
    kept[0] = kept[-1] = True
    return kept


def _note(records: Records, kept: Bools, found: SplitScan) -> None:
    rows = np.flatnonzero(kept)
    for before, after in pairwise(rows.tolist()):
        if after > before + 1:
            at = int(records.places[before] + records.sizes[before])
            end = int(records.places[after])
            found.skips[at] = Skip(end, after - before - 1)


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
        self._units = np.zeros(len(numbers), _UNIT)
        self._differs = np.zeros(len(numbers), bool)
        self._begins = np.zeros(len(numbers), bool)
        """Rows where a queue begins, or a file of it."""
        if not len(numbers):
            return
        starts = np.array(bounds[:-1], np.int64)
        self._begins[starts] = True
        jumps = np.diff(numbers, prepend=0) != 1
        jumps[starts] = False
        each = zip(
            pairwise(bounds),
            files,
            np.minimum.reduceat(numbers, starts).tolist(),
            np.maximum.reduceat(numbers, starts).tolist(),
            np.logical_or.reduceat(jumps, starts).tolist(),
            strict=True,
        )
        for (start, end), of, first, last, jumps_once in each:
            self._judge_files(start, end, of, (first, last))
            if not jumps_once:
                _read_units(self._units[start:end], of, first)
            elif last - first >= 4 * (end - start) + 1024:
                self._differs[start:end] = True  # numbers that no queue has
            else:
                units = np.zeros(last + 1 - first, _UNIT)
                _read_units(units, of, first)
                self._units[start:end] = units[numbers[start:end] - first]

    def _judge_files(
        self,
        start: int,
        end: int,
        files: Sequence[tuple[int, int, str]],
        ends: tuple[int, int],
    ) -> None:
        """Note where a file of a queue begins, and units that two files have."""
        numbers, (first, last) = self.numbers[start:end], ends
        for base, _, _ in files:
            at = base // UNIT_SIZE
            if first <= at <= last:
                self._begins[start:end] |= numbers == at
        for (base, size, _), (later, _, _) in pairwise(files):
            if later < base + size:
                both = later // UNIT_SIZE, (base + size) // UNIT_SIZE
                self._differs[start:end] |= (numbers >= both[0]) & (numbers < both[1])

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


def _read_units(
    units: NDArray[Any], files: Sequence[tuple[int, int, str]], first: int
) -> None:
    """Read units of a queue from a number on; zeros stay where it has no file."""
    raw = units.view(np.uint8).data
    start, end = first * UNIT_SIZE, (first + len(units)) * UNIT_SIZE
    for base, size, place in files:
        at, until = max(base, start), min(base + size, end)
        if at < until:
            handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.preadv(handle, [raw[at - start : until - start]], at - base)
            finally:
                os.close(handle)
