"""A fast reader of large stores: is the log whole, and do the queues list it?

It reads the log a window at a time: one loop follows the records' sizes, numpy looks at
all their fields at once, zlib at each body; then each queue's units of that window are
compared with the queue's file. Memory is that of a window, whatever the store's size.

What it cannot prove at once (IPv6 hosts, long topics, property CRCs, NULs) it gives to
``parse_record``, one by one. It says "agrees" or where the first thing differs, and
never what that means: the laws judge whatever differs. It reads no index, no tags codes
and no fields that nothing proves.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, TypeAlias
from zlib import crc32

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from crashmq.harness.guards.interrupts import left_to_parent
from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.files.record import (
    MAGIC_BLANK,
    MAGIC_V1,
    MULTI_QUEUE_OFFSET,
    RECORD_SIZE_MIN,
    BadRecord,
    parse_record,
)

WINDOW: Final = 32 << 20
_SIZE: Final = struct.Struct(">i")
_HEAD: Final = np.dtype(
    [
        *(("size", ">i4"), ("magic", ">u4"), ("crc", ">u4"), ("queue_id", ">i4")),
        *(("flag", ">i4"), ("queue_offset", ">i8"), ("phy_offset", ">i8")),
        *(("sys_flag", ">i4"), ("born", ">i8"), ("born_host", "V8")),
        *(("stored", ">i8"), ("store_host", "V8"), ("times", ">i4")),
        *(("prepared", ">i8"), ("body_size", ">i4")),
    ]
)
_UNIT: Final = np.dtype([("phy", ">i8"), ("size", ">i4"), ("code", ">i8")])
assert (_HEAD.itemsize, _UNIT.itemsize) == (88, UNIT_SIZE)
_IPV6: Final = 0x30
_NOT_INDEXED: Final = 0x84
_PROPERTIES_MAX: Final = 32767
Ints: TypeAlias = NDArray[np.int64]
Tell: TypeAlias = Callable[[str, int, int], None]


@dataclass(slots=True)
class QueueSpan:
    """A queue's messages in one log file; offsets are queue_offsets, times in ms."""

    first: int
    last: int
    first_time: int
    last_time: int
    messages: int


@dataclass(slots=True)
class FileScan:
    """What one log file holds.

    Attributes:
        end: the byte where its last record ends.
        closed: a BLANK follows up to the file's end.
        differs: the first thing that is not as it must be; "" if nothing.
    """

    path: str
    base: int
    size: int
    records: int = 0
    end: int = 0
    closed: bool = False
    differs: str = ""
    queues: dict[tuple[str, int], QueueSpan] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scan:
    """What all files hold together; ``differs`` as in ``FileScan``."""

    files: tuple[FileScan, ...]
    queues: dict[tuple[str, int], QueueSpan]
    differs: str

    @property
    def records(self) -> int:
        """How many whole records the log has."""
        return sum(file.records for file in self.files)

    @property
    def size(self) -> int:
        """How many bytes of records were read."""
        return sum(file.end for file in self.files)


def scan_store(
    log: Path, queues: Path | None, *, workers: int = 1, tell: Tell | None = None
) -> Scan:
    """Read a whole log, and compare the queues with it.

    Args:
        log: the directory of its files.
        queues: that of the queues; None: only the log is read.
        workers: processes that read, each a log file at a time.
        tell: told how far it is.

    Raises:
        OSError: a file cannot be read.
    """
    names = [name for name in _names_in(log) if len(name) == 20]
    jobs = [(log / name, queues) for name in names if name.isdecimal()]
    files: list[FileScan] = []
    for one in _scanned(jobs, workers):
        files.append(one)
        if tell is not None:
            tell("scanning log files", len(files), len(jobs))
    joined, differs = _join(files)
    if not differs and queues is not None:
        differs = _rest_of_queues(queues, joined)
    return Scan(tuple(files), joined, differs)


def _scanned(jobs: list[tuple[Path, Path | None]], workers: int) -> Iterator[FileScan]:
    if workers <= 1 or len(jobs) <= 1:
        for log, queues in jobs:
            yield scan_file(log, queues)
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, left_to_parent) as pool:
        yield from pool.map(_scan_job, jobs)


def _scan_job(job: tuple[Path, Path | None]) -> FileScan:
    return scan_file(*job)


def _join(files: list[FileScan]) -> tuple[dict[tuple[str, int], QueueSpan], str]:
    """The queues through all files, and the first place where they do not follow."""
    found: dict[tuple[str, int], QueueSpan] = {}
    differs = ""
    for number, file in enumerate(files):
        differs = differs or file.differs
        if number and not differs:
            before = files[number - 1]
            is_empty = not file.records and not before.closed
            if file.base != before.base + before.size:
                differs = f"{file.path} does not follow {before.path}"
            elif not (before.closed or is_empty):
                differs = f"{before.path} has no BLANK, and {file.path} follows"
        for key, span in file.queues.items():
            known = found.get(key)
            if known is None:
                found[key] = span
                continue
            if span.first != known.last + 1 and not differs:
                differs = f"{file.path}: {key[0]}/{key[1]} goes on with {span.first}"
            known.last, known.last_time = span.last, span.last_time
            known.messages += span.messages
    return found, differs


def _rest_of_queues(folder: Path, queues: dict[tuple[str, int], QueueSpan]) -> str:
    """The first queue that lists more than the log has; "" if none does."""
    for topic in _names_in(folder):
        if not (folder / topic).is_dir():
            return f"consumequeue/{topic} is no directory"
        for queue_id in _names_in(folder / topic):
            where = folder / topic / queue_id
            if not (queue_id.isdecimal() and where.is_dir()):
                return f"consumequeue/{topic}/{queue_id} is no queue"
            span = queues.get((topic, int(queue_id)))
            end = 0 if span is None else span.last + 1
            for name in _names_in(where):
                if not name.isdecimal():
                    return f"consumequeue/{topic}/{queue_id}/{name} is no queue file"
                begin = max(0, end * UNIT_SIZE - int(name))
                if _is_written(where / name, begin):
                    return f"consumequeue/{topic}/{queue_id} has units past {end}"
    return ""


def _names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _is_written(path: Path, start: int) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        at = start
        while at < size:
            try:
                at = max(at, os.lseek(file.fileno(), at, os.SEEK_DATA))
            except OSError:  # a hole up to the end
                return False
            part = os.pread(file.fileno(), 1 << 20, at)
            if part.strip(b"\0"):
                return True
            at += len(part)
    return False


def scan_file(path: Path, queues: Path | None) -> FileScan:
    """Read one log file; ``queues`` as ``scan_store`` has it."""
    size = path.stat().st_size
    found = FileScan(f"commitlog/{path.name}", int(path.name), size)
    if not size:
        found.differs = f"{found.path} is empty"
        return found
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data,
    ):
        position = 0
        while not found.differs:
            places, position, goes_on = _chain(data, position, size)
            if places:
                _look_at(data, places, found, queues)
            data.madvise(mmap.MADV_DONTNEED)
            if not goes_on:
                break
        found.end = max(found.end, 0)
        if not found.differs:
            _look_at_end(data, position, found)
    return found


def _chain(data: mmap.mmap, start: int, size: int) -> tuple[list[int], int, bool]:
    """Where the records of a window begin, by their sizes alone.

    Returns:
        (their positions, where the next one begins, whether there may be one).
    """
    unpack, places = _SIZE.unpack_from, list[int]()
    at, end = start, min(start + WINDOW, size)
    last = size - RECORD_SIZE_MIN
    while at < end and at <= last:
        (length,) = unpack(data, at)
        if length < RECORD_SIZE_MIN or at + length > size:
            return places, at, False
        if at + length == size and _is_blank(data, at):
            return places, at, False
        places.append(at)
        at += length
    return places, at, at <= last


def _is_blank(data: mmap.mmap, at: int) -> bool:
    return int.from_bytes(data[at + 4 : at + 8], "big") == MAGIC_BLANK


def _look_at_end(data: mmap.mmap, position: int, found: FileScan) -> None:
    """Behind the last record there is a BLANK up to the end, or nothing at all."""
    left = found.size - position
    head = data[position : position + 8]
    if len(head) == 8 and _is_blank(data, position):
        found.closed = int.from_bytes(head[:4], "big") == left
        if not found.closed:
            found.differs = f"{found.path} byte {position}: a BLANK of another length"
        return
    for at in range(position, found.size, 1 << 20):
        if data[at : at + (1 << 20)].strip(b"\0"):
            found.differs = f"{found.path} byte {position}: no record, and bytes follow"
            return


def _look_at(
    data: mmap.mmap, places: list[int], found: FileScan, queues: Path | None
) -> None:
    """Prove a window's records, and compare the units of its queues."""
    view = memoryview(data)
    try:
        window = _Window(data, view, np.array(places, np.int64), found)
        window.prove()
        if not found.differs:
            found.records += len(places)
            found.end = places[-1] + int(window.heads["size"][-1])
            window.compare(queues)
    finally:
        window = None  # type: ignore[assignment]  # its arrays hold the mapping
        view.release()


class _Window:
    """The records of one window of a file, as arrays."""

    def __init__(
        self, data: mmap.mmap, view: memoryview, places: Ints, found: FileScan
    ) -> None:
        self._data, self._view, self._found = data, view, found
        self._places = places
        raw = np.frombuffer(data, np.uint8)
        self.heads: NDArray[Any] = (
            sliding_window_view(raw, 88)[places].view(_HEAD).reshape(-1)
        )
        self._bytes = raw
        self._topics: list[bytes] = []

    def prove(self) -> None:
        """Note the first record that is not whole."""
        heads, places = self.heads, self._places
        sizes = heads["size"].astype(np.int64)
        bodies = heads["body_size"].astype(np.int64)
        topic_at = places + 88 + bodies
        ends = places + sizes
        plain = (heads["magic"] == MAGIC_V1) & (heads["sys_flag"] & _IPV6 == 0)
        plain &= (bodies >= 0) & (topic_at + 3 <= ends)
        topic_at = np.where(plain, topic_at, places)
        lengths = self._bytes[topic_at].astype(np.int64)
        behind = topic_at + 1 + lengths
        plain &= (lengths <= 127) & (behind + 2 <= ends)
        behind = np.where(plain, behind, places)
        high = self._bytes[behind].astype(np.int64)
        properties = high << 8 | self._bytes[behind + 1]
        plain &= (behind + 2 + properties == ends) & (properties <= _PROPERTIES_MAX)
        plain &= heads["phy_offset"] == places + self._found.base
        plain &= heads["stored"] != 0
        plain &= self._whole_bodies(places + 88, topic_at, bodies)
        tails = self._slices(behind + 2, ends)
        joined = b"".join(tails)
        if 0 in joined or b"__CRC32#\x01" in joined or MULTI_QUEUE_OFFSET in joined:
            marks = (b"\0", b"__CRC32#\x01", MULTI_QUEUE_OFFSET)
            odd = [any(mark in tail for mark in marks) for tail in tails]
            plain &= ~np.array(odd, bool)
        self._topics = self._slices(topic_at + 1, behind)
        for number in np.flatnonzero(~plain):
            if not self._parse(int(number)):
                return

    def _whole_bodies(self, starts: Ints, ends: Ints, sizes: Ints) -> NDArray[np.bool_]:
        # Maps of built-in functions: a fifth faster than a loop of Python's.
        bodies = map(self._view.__getitem__, map(slice, starts.tolist(), ends.tolist()))
        found = np.fromiter(map(crc32, bodies), np.uint32, len(sizes)) & 0x7FFFFFFF
        whole: NDArray[np.bool_] = (found == self.heads["crc"]) | (sizes == 0)
        return whole

    def _slices(self, starts: Ints, ends: Ints) -> list[bytes]:
        places = map(slice, starts.tolist(), ends.tolist())
        return list(map(self._data.__getitem__, places))

    def _parse(self, number: int) -> bool:
        """Ask the slow reader for one record; it may be whole all the same."""
        at, found = int(self._places[number]), self._found
        try:
            record = parse_record(
                self._view, at, found.size, found.base + at, takes_nul=True
            )
        except BadRecord as bad:
            found.differs = f"{found.path} byte {at}: {bad.seen}"
            return False
        if record.size != self.heads["size"][number] or record.light_places:
            found.differs = f"{found.path} byte {at}: light queues list it"
            return False
        self._topics[number] = record.topic.encode()
        if self.heads["sys_flag"][number] & _IPV6:
            fields = record.store_timestamp, record.prepared_transaction_offset
            self.heads["stored"][number], self.heads["prepared"][number] = fields
        return True

    def compare(self, queues: Path | None) -> None:
        """Compare numbers and units of each queue with its file."""
        known: dict[bytes, int] = {}
        ids = np.array(
            [known.setdefault(topic, len(known)) for topic in self._topics], np.int64
        )
        names = [topic.decode("utf-8", "replace") for topic in known]
        heads = self.heads
        listed = np.flatnonzero(heads["sys_flag"] & _NOT_INDEXED == 0)
        keys = (ids << 32 | heads["queue_id"].astype(np.int64))[listed]
        order = np.argsort(keys, kind="stable")
        listed, keys = listed[order], keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
        for first, rows in zip(
            starts.tolist(), np.split(listed, starts[1:]), strict=bool(len(starts))
        ):
            key = names[int(keys[first] >> 32)], int(keys[first] & 0xFFFFFFFF)
            self._compare_queue(key, rows, queues)
            if self._found.differs:
                return

    def _compare_queue(
        self, key: tuple[str, int], rows: Ints, queues: Path | None
    ) -> None:
        found, heads = self._found, self.heads[rows]
        numbers = heads["queue_offset"].astype(np.int64)
        where = f"{key[0]}/{key[1]}"
        if len(numbers) > 1 and (np.diff(numbers) != 1).any():
            found.differs = f"{found.path}: numbers of {where} do not follow"
            return
        first, last = int(numbers[0]), int(numbers[-1])
        times = int(heads["stored"][0]), int(heads["stored"][-1])
        known = found.queues.get(key)
        if known is None:
            found.queues[key] = QueueSpan(first, last, *times, len(numbers))
        else:
            if first != known.last + 1:
                found.differs = f"{found.path}: {where} goes on with {first}"
                return
            known.last, known.last_time = last, times[1]
            known.messages += len(numbers)
        if queues is None:
            return
        units = _units_of(queues / key[0] / str(key[1]), first, len(numbers))
        phys = self._places[rows] + found.base
        if (
            len(units) != len(numbers)
            or not ((units["phy"] == phys) & (units["size"] == heads["size"])).all()
        ):
            found.differs = f"consumequeue/{where}: units from {first} on are others"


def _units_of(folder: Path, first: int, count: int) -> NDArray[Any]:
    """So many units of a queue from a number on; fewer if its files end before."""
    parts, at, end = list[bytes](), first * UNIT_SIZE, (first + count) * UNIT_SIZE
    names = _names_in(folder) if folder.is_dir() else []
    for name in names:
        base = int(name) if name.isdecimal() else 1 << 62
        size = (folder / name).stat().st_size
        if base <= at < base + size and at < end:
            with (folder / name).open("rb") as file:
                part = os.pread(file.fileno(), min(end, base + size) - at, at - base)
            parts.append(part)
            at += len(part)
    raw = b"".join(parts)
    return np.frombuffer(raw[: len(raw) // UNIT_SIZE * UNIT_SIZE], _UNIT)
