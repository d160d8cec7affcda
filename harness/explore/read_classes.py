"""ReadClasses: classes of crash states that no start can tell apart.

A start is run on one state. It reads, for example, the log up to the first torn record,
and cuts off the rest. Each read touches few units of pending data, and which read comes
next depends only on the answers so far. So for each read the versions of the units that
it touches are divided by the answer that they give: the class keeps those with the
answer that the start got, and for each other answer another start is run. Units that no
start reads are never divided, so one class may have a billion states.

Units are independent until a read divides them; from then on the versions of those it
has touched are combined, row by row.

Source: dynamic partial order reduction decides lazily, too (Flanagan and Godefroid,
POPL 2005); the reads are those of ``harness/explore/read_log.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple, TypeAlias

from crashmq.harness.disk.read_tracking import Read
from crashmq.harness.disk.units import LeftFile

ROWS_MAX = 1 << 16
"""With more combinations of versions one read is not divided."""

Versions: TypeAlias = tuple[int, ...]


class _Rows(NamedTuple):
    """Units whose versions go together, and the combinations that are left."""

    units: tuple[int, ...]
    rows: tuple[Versions, ...]


class _Unit(NamedTuple):
    """A unit: its file's index, its first byte there, and its versions."""

    file: int
    start: int
    versions: list[bytes]


class _Seen:
    """The bytes that a read returns from a file, updated sector by sector."""

    def __init__(self, content: bytes, read: Read) -> None:
        self.data = bytearray(content[read.start : read.end])
        self._start = read.start

    def put(self, start: int, sector: bytes) -> None:
        """Put the part of the sector at ``start`` that lies within the read."""
        at = start - self._start
        kept = sector[max(0, -at) : len(self.data) - at]
        self.data[max(0, at) : max(0, at) + len(kept)] = kept


class ReadClass(NamedTuple):
    """States that starts read alike.

    Attributes:
        size: how many they are.
        others: the states of the class with the oldest and with the newest versions,
            but for the one on which the start was run.
    """

    size: int
    others: tuple[Versions, ...]


class ReadClasses:
    """The classes of the states of some files, for one choice of names and sizes."""

    def __init__(self, files: Sequence[LeftFile], sector_size: int) -> None:
        self._files = files
        self._by_path = {path: n for n, file in enumerate(files) for path in file.paths}
        self._units = [
            _Unit(number, unit.place * sector_size, versions)
            for number, file in enumerate(files)
            for unit, versions in file.units
        ]

    def all(
        self, reads_of: Callable[[Versions], Sequence[Read] | None]
    ) -> Iterator[ReadClass | None]:
        """Yield each class once; None, and then nothing, if a class cannot be computed.

        That is so if one read has too many answers, or if ``reads_of`` returns None.

        Args:
            reads_of: runs the start on a state and returns what it has read, in order.
        """
        groups = [
            _Rows((number,), tuple((n,) for n in range(len(unit.versions))))
            for number, unit in enumerate(self._units)
        ]
        waiting: list[tuple[list[_Rows], int]] = [(groups, 0)]
        while waiting:
            groups, known = waiting.pop()
            first = self._newest(groups)
            reads = reads_of(first)
            if reads is None:
                yield None
                return
            for number in range(known, len(reads)):
                divided = self._divided(groups, reads[number])
                if divided is None:
                    yield None
                    return
                rest, (own, *others) = divided
                groups = [*rest, *own]
                waiting.extend(([*rest, *other], number + 1) for other in others)
            size = prod([len(group.rows) for group in groups])
            found = (self._oldest(groups), self._newest(groups))
            yield ReadClass(
                size, tuple(dict.fromkeys(one for one in found if one != first))
            )

    def _divided(
        self, groups: list[_Rows], read: Read
    ) -> tuple[list[_Rows], list[list[_Rows]]] | None:
        """Divide the groups that a read touches by the answers that they give.

        Returns the groups that stay as they are, and those of each answer; the answer
        of the newest versions comes first. None if there are too many rows.
        """
        met = [group for group in groups if self._meets(group, read)]
        open_, fixed = _split(met)
        if not open_:
            return groups, [[]]
        if prod([len(group.rows) for group in open_]) > ROWS_MAX:
            return None
        seen = _Seen(self._files[self._by_path[read.path]].content, read)
        for group in fixed:
            self._put(seen, group.units, group.rows[0], read)
        units = tuple(unit for group in open_ for unit in group.units)
        own = [n for n, unit in enumerate(units) if self._is_of(unit, read)]
        answers: dict[Versions, Hashable] = {}
        divided: dict[Hashable, list[Versions]] = {}
        answer: Hashable = None
        for rows in product(*(group.rows for group in open_)):
            row = tuple(version for one in rows for version in one)
            shown = tuple(row[n] for n in own)
            if shown not in answers:
                self._put(seen, [units[n] for n in own], shown, read)
                answers[shown] = read.answer_to(bytes(seen.data))
            answer = answers[shown]
            divided.setdefault(answer, []).append(row)
        if len(divided) == 1:
            return groups, [[]]
        newest = divided.pop(answer)  # of the last row
        rest = [group for group in groups if group not in open_]
        each = [newest, *divided.values()]
        return rest, [[_Rows(units, tuple(rows))] for rows in each]

    def _meets(self, group: _Rows, read: Read) -> bool:
        return any(self._is_of(number, read) for number in group.units)

    def _is_of(self, number: int, read: Read) -> bool:
        file, start, versions = self._units[number]
        is_there = self._by_path.get(read.path) == file
        return is_there and start < read.end and read.start < start + len(versions[0])

    def _put(
        self, seen: _Seen, units: Sequence[int], row: Versions, read: Read
    ) -> None:
        for number, version in zip(units, row, strict=True):
            if self._is_of(number, read):
                unit = self._units[number]
                seen.put(unit.start, unit.versions[version])

    def _newest(self, groups: list[_Rows]) -> Versions:
        return self._of([group.rows[-1] for group in groups], groups)

    def _oldest(self, groups: list[_Rows]) -> Versions:
        return self._of([group.rows[0] for group in groups], groups)

    def _of(self, rows: Sequence[Versions], groups: list[_Rows]) -> Versions:
        versions = [0] * len(self._units)
        for group, row in zip(groups, rows, strict=True):
            for unit, version in zip(group.units, row, strict=True):
                versions[unit] = version
        return tuple(versions)


def _split(groups: Sequence[_Rows]) -> tuple[list[_Rows], list[_Rows]]:
    """The groups with more than one row, and those with one."""
    open_ = [group for group in groups if len(group.rows) > 1]
    return open_, [group for group in groups if len(group.rows) == 1]
