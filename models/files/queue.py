"""The files of one ConsumeQueue: units of 20 bytes, unit n at byte n * 20.

Layout of a unit, big-endian: phy_offset i64 | size i32 | tags_code i64. A unit of zeros
was never written. A queue whose first records are not in this log begins with pre-blank
units: phy_offset 0, size 0x7FFFFFFF, tags_code 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from crashmq.models.files.left_out import NO_SKIPS
from crashmq.models.files.record import Bytes
from crashmq.models.files.sparse import let_go, next_data
from crashmq.models.verdict import Place

UNIT_SIZE = 20
PRE_BLANK_SIZE = 0x7FFFFFFF

_UNIT = struct.Struct(">qiq")
_CHUNK_UNITS = 1024
_SEARCHED_UNITS = 3 << 10  # few enough for the nearest cache
_ZEROS = bytes(_SEARCHED_UNITS * UNIT_SIZE)
assert _UNIT.size == UNIT_SIZE


class Unit(NamedTuple):
    """One ConsumeQueue unit, decoded."""

    queue_offset: int
    phy_offset: int
    size: int
    tags_code: int

    @property
    def is_pre_blank(self) -> bool:
        """Whether it is a pre-blank unit: a placeholder without a record."""
        return self[1:] == (0, PRE_BLANK_SIZE, 0)


class QueueFile(NamedTuple):
    """One file of a queue: its units up to the first one of zeros."""

    path: str
    base: int
    data: Bytes
    units: tuple[Unit, ...]

    @property
    def is_full(self) -> bool:
        """Whether every unit of the file is written."""
        if not self.units:
            return len(self.data) < UNIT_SIZE
        end = (self.units[-1].queue_offset + 1) * UNIT_SIZE - self.base
        return end > len(self.data) - UNIT_SIZE


class QueueImage(NamedTuple):
    """One queue as decoded from its files.

    Attributes:
        units: what a reader sees: from the first file's base up to the first unit that
            was never written, whose file is missing, or that a short file cut.
        stray_units: units past that end that are not all zeros.
        skips: units that are not decoded: by the first of their queue_offsets, the one
            after their last.
    """

    topic: str
    queue_id: int
    files: tuple[QueueFile, ...]
    units: tuple[Unit, ...]
    stray_units: tuple[Unit, ...] = ()
    skips: Mapping[int, int] = NO_SKIPS

    @property
    def key(self) -> tuple[str, int]:
        """Topic and queue id."""
        return self.topic, self.queue_id

    @property
    def all_units(self) -> tuple[Unit, ...]:
        """What a reader sees, and the units past that end."""
        return (*self.units, *self.stray_units)

    @property
    def name(self) -> str:
        """``topic/queue_id``."""
        return f"{self.topic}/{self.queue_id}"

    def follow(self, before: Unit, after: Unit) -> bool:
        """Whether no unit is missing between two: only undecoded ones may lie there."""
        number = before.queue_offset + 1
        return after.queue_offset == self.skips.get(number, number)

    def count(self, units: Sequence[Unit]) -> int:
        """The number of units, undecoded ones between them included."""
        if not self.skips:
            return len(units)
        between = (
            after.queue_offset - before.queue_offset - 1
            for before, after in pairwise(units)
            if before.queue_offset + 1 in self.skips and self.follow(before, after)
        )
        return len(units) + sum(between)

    @property
    def end(self) -> int:
        """The queue_offset after the last unit."""
        if self.units:
            return self.units[-1].queue_offset + 1
        return self.first_number

    @property
    def end_of_last_file(self) -> int:
        """As ``end``, but as if every file before the last one were full."""
        end = max(self.end, self.files[-1].base // UNIT_SIZE if self.files else 0)
        for unit in self.stray_units:
            end += unit.queue_offset == end and unit.size > 0
        return end

    def where(self, queue_offset: int, file_size: int = 0) -> Place:
        """A unit as a place: path, byte and queue_offset.

        ``file_size`` is that of the store's queue files, for a queue without a file.
        """
        at, known_as = queue_offset * UNIT_SIZE, f"queue_offset {queue_offset}"
        for file in self.files:
            if file.base <= at < file.base + len(file.data):
                at -= file.base
                return Place(file.path, at, known_as)
        size = file_size or max((len(f.data) for f in self.files), default=0)
        if not size:
            return Place(f"consumequeue/{self.name}", known_as=known_as)
        base = at - at % size
        path = f"consumequeue/{self.name}/{base:020d}"
        return Place(path, at - base, known_as)

    @property
    def begins_late(self) -> bool:
        """Whether the first unit is not at the beginning of the first file."""
        return bool(self.units) and self.units[0].queue_offset > self.first_number

    @property
    def first_number(self) -> int:
        """The queue_offset at the beginning of the first file; 0 without a file."""
        return self.files[0].base // UNIT_SIZE if self.files else 0

    def behind_rot(self, first_alive: int) -> QueueImage:
        """The queue from after the last broken unit below ``first_alive`` on.

        Units of expired records are never read: damage among them neither ends the
        queue nor makes a gap in it.
        """
        hole, units, strays = self.end, self.units, self.stray_units
        while hole < first_alive:
            strays = tuple(unit for unit in strays if unit.queue_offset > hole)
            if not strays:
                break
            found: list[Unit] = []
            for unit in strays:
                if (found and not self.follow(found[-1], unit)) or unit.size <= 0:
                    break
                found.append(unit)
            hole = strays[0].queue_offset
            if found:
                hole = found[-1].queue_offset + 1
                units, strays = tuple(found), strays[len(found) :]
        return self._replace(units=units, stray_units=strays)

    def strays(self) -> Iterator[Unit]:
        """Units that are not all zeros, past the end of what a reader sees."""
        end = self.end
        for file in self.files:
            first = file.base // UNIT_SIZE
            if first + len(file.data) // UNIT_SIZE > end:
                yield from _written_units(file, max(0, end - first), self.skips)


def read_queue(
    topic: str,
    queue_id: int,
    files: dict[int, tuple[str, Bytes]],
    previous: QueueImage | None,
    skips: Mapping[int, int] = NO_SKIPS,
) -> QueueImage:
    """Decode one queue.

    Args:
        topic: the queue's topic.
        queue_id: its number in the topic.
        files: (path, bytes) by base.
        previous: an older image; files that have not changed are taken from it.
        skips: units not to decode, as in ``QueueImage``.
    """
    if previous is not None and _is_unchanged(files, previous):
        return previous
    known = {file.path: file for file in previous.files} if previous else {}
    read = tuple(
        _read_file(*files[base], base, known.get(files[base][0]), skips)
        for base in sorted(files)
    )
    is_same = previous is not None and read == previous.files
    if previous is not None and is_same and not previous.begins_late:
        return previous
    image = QueueImage(topic, queue_id, read, _chain(read), (), skips)
    return image._replace(stray_units=tuple(image.strays()))


def _is_unchanged(files: dict[int, tuple[str, Bytes]], image: QueueImage) -> bool:
    """Whether the files are the same bytes objects as in ``image``.

    False for views of mapped files, which may have changed, and for a queue that begins
    late: the log decides where.
    """
    if len(files) != len(image.files) or image.begins_late:
        return False
    for file in image.files:
        path, data = files.get(file.base, ("", b""))
        if data is not file.data or path != file.path or type(data) is not bytes:
            return False
    return True


def _chain(files: tuple[QueueFile, ...]) -> tuple[Unit, ...]:
    """The units of the files, as long as each file is full and the next one follows."""
    if len(files) == 1:
        return files[0].units
    units: list[Unit] = []
    expected = files[0].base
    for file in files:
        if file.base != expected:
            break
        units.extend(file.units)
        if not file.is_full or len(file.data) % UNIT_SIZE:
            break
        expected = file.base + len(file.data)
    return tuple(units)


def _read_file(
    path: str,
    data: Bytes,
    base: int,
    known: QueueFile | None,
    skips: Mapping[int, int],
) -> QueueFile:
    # Only bytes are trusted to be what they were: a view may have changed below us.
    if known is not None and type(data) is bytes and data == known.data:
        return known
    units: list[Unit] = []
    number = base // UNIT_SIZE
    whole = len(data) - len(data) % UNIT_SIZE
    for start, end in _read_ranges(number, whole, skips):
        number = (base + start) // UNIT_SIZE
        part = data[start:end]
        for phy_offset, size, code in _UNIT.iter_unpack(part):
            if size <= 0:
                return QueueFile(path, base, data, tuple(units))
            unit = (number, phy_offset, size, code)
            units.append(tuple.__new__(Unit, unit))
            number += 1
    let_go(data)
    return QueueFile(path, base, data, tuple(units))


def _read_ranges(
    first: int, size: int, skips: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """The byte ranges of a file to read; ``first`` is its first queue_offset."""
    start = 0
    left_out = [
        ((at - first) * UNIT_SIZE, (end - first) * UNIT_SIZE)
        for at, end in sorted(skips.items())
        if 0 <= at - first < size // UNIT_SIZE
    ]
    for begin, end in (*left_out, (size, size)):
        for at in range(start, begin, _CHUNK_UNITS * UNIT_SIZE):
            yield at, min(at + _CHUNK_UNITS * UNIT_SIZE, begin)
        start = end


def _written_units(
    file: QueueFile, start: int, skips: Mapping[int, int]
) -> Iterator[Unit]:
    """Units that are not all zero, from the ``start``-th of the file on."""
    whole = len(file.data) - len(file.data) % UNIT_SIZE
    position = next_data(file.data, start * UNIT_SIZE)
    first = file.base // UNIT_SIZE
    left_out = sorted((at, end) for at, end in skips.items() if end > first + start)
    while position < whole:
        position -= position % UNIT_SIZE
        end = min(position + _SEARCHED_UNITS * UNIT_SIZE, whole)
        number = first + position // UNIT_SIZE
        while left_out and left_out[0][1] <= number:
            left_out.pop(0)
        if left_out and left_out[0][0] <= number:
            position = next_data(file.data, (left_out[0][1] - first) * UNIT_SIZE)
            continue
        if left_out:
            end = min(end, (left_out[0][0] - first) * UNIT_SIZE)
        part = bytes(file.data[position:end])
        if part != (_ZEROS if len(part) == len(_ZEROS) else bytes(len(part))):
            number = (file.base + position) // UNIT_SIZE
            for phy_offset, size, code in _UNIT.iter_unpack(part):
                if phy_offset or size or code:
                    yield Unit(number, phy_offset, size, code)
                number += 1
        position = next_data(file.data, end)
