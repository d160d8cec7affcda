"""Every state that a power loss at one crash point can leave.

A state is a choice of names and sizes, and then of each sector's version. If there are
few states, all are made. If not, those are made that are known to find most bugs: all
lost, all kept, each unit lost alone, the states of a disk that writes in order, each
unit kept alone, each prefix of the units, each pair lost; then random ones, each with
its own share of survivors. A state is identified by its key; its ``Survivors`` are
built only if the key is new.

Source: section 7 of the disk fault model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, product
from math import prod
from typing import NamedTuple

from crashmq.harness.disk.hashing import mixed
from crashmq.harness.disk.read_tracking import Read
from crashmq.harness.disk.settling import Settling
from crashmq.harness.disk.sim_disk import DiskSnapshot
from crashmq.harness.disk.survivors import bad_sectors
from crashmq.harness.disk.units import (
    Left,
    LeftFile,
    PendingUnits,
    Unit,
)
from crashmq.harness.explore.read_classes import ReadClasses
from crashmq.harness.explore.state_key import StateKey, StateKeys
from crashmq.models.ops import KeptUnit, Survivors

_WORD = 1 << 32


class Vector(NamedTuple):
    """One state: the choice of names, by number, and each sector's version."""

    names: tuple[int, ...]
    sectors: tuple[int, ...]


class State(NamedTuple):
    """A vector, its state key, and whether it was drawn at random."""

    vector: Vector
    state_key: StateKey
    is_drawn: bool


class CrashStates:
    """The states of one disk at one crash point."""

    def __init__(self, snapshot: DiskSnapshot, state_keys: StateKeys) -> None:
        self._snapshot = snapshot
        self._pending = PendingUnits.of(snapshot)
        self._state_keys = state_keys
        self._sides: dict[tuple[int, ...], _Side] = {}
        self._newest = tuple(unit.versions - 1 for unit in self._pending.names)

    def space(self, most: int) -> int:
        """How many states there are; an upper bound where they cannot be counted.

        What is computed on the way is kept only for up to ``most`` states, since the
        files of more choices of names would not fit in memory.
        """
        if prod([unit.versions for unit in self._pending.names]) > most:
            return self._pending.count().states
        return sum(self._side(names).count for names in self._all_names())

    def all(self) -> Iterator[State]:
        """Yield each state once: all lost first, all kept last."""
        for names in self._all_names():
            side = self._side(names)
            for sectors in product(*(range(unit.versions) for unit in side.units)):
                yield State(Vector(names, sectors), side.state_key(sectors), False)

    def some(self, seed: int, promising: int, draws: int) -> Iterator[State]:
        """Yield the ``promising`` states that find most, then ``draws`` random ones."""
        seen: set[Vector] = set()
        for vector in self._promising():
            if len(seen) == promising:
                break
            if vector not in seen:
                seen.add(vector)
                yield self._state(vector, is_drawn=False)
        for number in range(draws):
            vector = self._drawn(mixed(seed + number))
            if vector not in seen:
                seen.add(vector)
                yield self._state(vector, is_drawn=True)

    def by_reads(
        self,
        decide: Callable[[State], Sequence[Read] | None],
        most: int,
        stops: Callable[[], bool],
    ) -> int | None:
        """Decide at least one state of each class of states that starts read alike.

        Args:
            decide: decides a state and returns what the start on it reads; None:
                unknown.
            most: gives up if there are more classes, or choices of names.
            stops: asked before each state; True: give up.

        Returns:
            how many states all classes have; None if it gave up.
        """
        if prod([unit.versions for unit in self._pending.names]) > most:
            return None
        states, left = 0, most
        for names in self._all_names():
            side = self._side(names)
            classes = ReadClasses(side.varying, self._snapshot.profile.sector_size)
            for one in classes.all(partial(self._decided, decide, names)):
                left -= 1
                if one is None or left < 0 or stops():
                    return None
                states += one.size
                for sectors in one.others:
                    decide(self._state(Vector(names, sectors), is_drawn=False))
        return states

    def _decided(
        self,
        decide: Callable[[State], Sequence[Read] | None],
        names: tuple[int, ...],
        sectors: tuple[int, ...],
    ) -> Sequence[Read] | None:
        return decide(self._state(Vector(names, sectors), is_drawn=False))

    def survivors(self, vector: Vector) -> Survivors:
        """The vector as ``Survivors`` of a program."""
        names = _kept(self._pending.names, vector.names)
        sectors = _kept(self._side(vector.names).units, vector.sectors)
        return Survivors("units", units=(*names, *sectors))

    def files(self, vector: Vector) -> dict[str, bytes]:
        """The files after the power loss that the vector describes, by path."""
        return self._side(vector.names).files(vector.sectors)

    def disk(self, vector: Vector) -> DiskSnapshot:
        """The disk after the power loss that the vector describes."""
        if not self._snapshot.profile.loses_unsynced:
            return self._snapshot
        side = self._side(vector.names)
        return side.settling.disk(side.contents(vector.sectors))

    def _all_names(self) -> Iterator[tuple[int, ...]]:
        return product(*(range(unit.versions) for unit in self._pending.names))

    def _state(self, vector: Vector, *, is_drawn: bool) -> State:
        state_key = self._side(vector.names).state_key(vector.sectors)
        return State(vector, state_key, is_drawn)

    def _side(self, names: tuple[int, ...]) -> _Side:
        side = self._sides.get(names)
        if side is None:
            left = self._pending.left(_kept(self._pending.names, names))
            side = self._sides[names] = _Side(self._snapshot, left, self._state_keys)
        return side

    def _promising(self) -> Iterator[Vector]:
        newest = self._newest
        nothing = tuple(0 for _ in newest)
        yield Vector(nothing, tuple(0 for _ in self._side(nothing).units))
        kept = self._all_kept(newest)
        yield Vector(newest, kept)
        lost = tuple(0 for _ in kept)
        yield Vector(newest, lost)
        for names in self._other_names():
            yield Vector(names, self._all_kept(names))
            yield Vector(names, tuple(0 for _ in self._side(names).units))
        places = range(len(kept))
        for place in places:
            for version in range(kept[place]):
                yield Vector(newest, _with(kept, place, version))
        yield from self._write_order()
        for place in places:
            for version in range(1, kept[place] + 1):
                yield Vector(newest, _with(lost, place, version))
        for end in places:
            yield Vector(newest, kept[:end] + lost[end:])
        for one, other in combinations(places, 2):
            yield Vector(newest, _with(_with(kept, one, 0), other, 0))

    def _write_order(self) -> Iterator[Vector]:
        for kept in self._pending.write_order():
            at = {(unit.path, unit.place): unit.version for unit in kept}
            names = tuple(at.get(unit[:2], 0) for unit in self._pending.names)
            units = self._side(names).units
            yield Vector(names, tuple(at.get(unit[:2], 0) for unit in units))

    def _other_names(self) -> Iterator[tuple[int, ...]]:
        """Each name alone at each other version, or each prefix of their order."""
        newest = self._newest
        for place, top in enumerate(newest):
            for version in range(top):
                yield _with(newest, place, version)

    def _all_kept(self, names: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(unit.versions - 1 for unit in self._side(names).units)

    def _drawn(self, seed: int) -> Vector:
        density = mixed(seed + 1) % _WORD
        names = tuple(
            mixed(seed + 2 + place) % (top + 1)
            if mixed(seed - place) % _WORD < _WORD // 2
            else top
            for place, top in enumerate(self._newest)
        )
        sectors = tuple(
            1 + (draw >> 32) % top
            if (draw := mixed(seed + 99 + place)) % _WORD < density
            else 0
            for place, top in enumerate(self._all_kept(names))
        )
        return Vector(names, sectors)


@dataclass(slots=True)
class _Varying:
    """A file with units: its index among the files, and its units' among all units.

    ``made`` numbers the contents that were made. Only the last one is kept, in
    ``newest`` and ``content``: all of them would not fit in memory.
    """

    file: LeftFile
    number: int
    begin: int
    end: int
    made: dict[tuple[int, ...], int] = field(default_factory=dict)
    newest: tuple[int, ...] = ()
    content: bytes = b""


class _Side:
    """The states of one choice of names and sizes."""

    __slots__ = (
        "_files",
        "_has_bad",
        "_plain",
        "_profile",
        "_sector_size",
        "_state_keys",
        "_varying",
        "settling",
        "units",
    )

    def __init__(
        self, snapshot: DiskSnapshot, left: Left, state_keys: StateKeys
    ) -> None:
        self._state_keys = state_keys
        self._profile = snapshot.profile
        self._sector_size = snapshot.profile.sector_size
        self.settling = Settling(snapshot, left)
        self.units: tuple[Unit, ...] = tuple(
            unit for file in left.files for unit, _ in file.units
        )
        files, medium = left.files, snapshot.medium
        self._has_bad = medium.has_bad
        self._plain = [
            state_keys.frame(
                left.directories,
                [(f.paths, f.inode.mtime_ms, len(f.content)) for f in files],
                medium.room.foreign_size,
                has_bad=medium.has_bad,
            ),
            *[self._number(file, file.content) for file in files],
        ]
        found = [(path, file.content) for file in files for path in file.paths]
        self._files = dict(sorted(found))
        self._varying: list[_Varying] = []
        begin = 0
        for number, file in enumerate(files):
            if file.units:
                end = begin + len(file.units)
                self._varying.append(_Varying(file, number, begin, end))
                begin = end

    @property
    def varying(self) -> list[LeftFile]:
        """The files with units, in the order of ``units``."""
        return [one.file for one in self._varying]

    @property
    def count(self) -> int:
        """The number of vectors of sectors."""
        return prod([unit.versions for unit in self.units])

    def state_key(self, sectors: tuple[int, ...]) -> StateKey:
        """The state key of a vector: what a store will find."""
        numbers = self._plain.copy()
        for one in self._varying:
            numbers[one.number + 1] = self._made(one, sectors)
        return tuple(numbers)

    def files(self, sectors: tuple[int, ...]) -> dict[str, bytes]:
        """The same as files, sorted by path."""
        files = self._files.copy()
        for one in self._varying:
            content = self._content(one, sectors)
            for path in one.file.paths:
                files[path] = content
        return files

    def contents(self, sectors: tuple[int, ...]) -> dict[int, bytes]:
        """The bytes of the files that have units, by their index among all files."""
        return {one.number: self._content(one, sectors) for one in self._varying}

    def _made(self, one: _Varying, sectors: tuple[int, ...]) -> int:
        """The number of a file's bytes."""
        versions = sectors[one.begin : one.end]
        known = one.made.get(versions)
        if known is None:
            content = self._content(one, sectors)
            known = one.made[versions] = self._number(one.file, content)
        return known

    def _content(self, one: _Varying, sectors: tuple[int, ...]) -> bytes:
        """A file's bytes."""
        versions = sectors[one.begin : one.end]
        if one.newest != versions:
            one.newest, one.content = versions, self._merged(one.file, versions)
        return one.content

    def _number(self, file: LeftFile, content: bytes) -> int:
        if not self._has_bad:
            return self._state_keys.content(file.paths, content)
        inode = file.inode
        bad = inode.unreadable_sectors()
        if not file.is_certain:
            bad = bad_sectors(self._profile, inode, content)
        return self._state_keys.content(file.paths, content, bad)

    def _merged(self, file: LeftFile, chosen: tuple[int, ...]) -> bytes:
        if not any(chosen):
            return file.content
        merged = bytearray(file.content)
        for (unit, versions), version in zip(file.units, chosen, strict=True):
            if version:
                old = versions[0]
                start = unit.place * self._sector_size
                merged[start : start + len(old)] = versions[version]
        return bytes(merged)


def _kept(units: Sequence[Unit], versions: Sequence[int]) -> tuple[KeptUnit, ...]:
    return tuple(
        KeptUnit(unit.path, unit.place, version)
        for unit, version in zip(units, versions, strict=True)
        if version
    )


def _with(versions: tuple[int, ...], place: int, version: int) -> tuple[int, ...]:
    return (*versions[:place], version, *versions[place + 1 :])
