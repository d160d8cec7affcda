"""Units: the independent pieces of pending data, and their versions.

A *unit* survives or not independently of others: one sector of one file, one directory
entry, one size, or, where directory changes keep their order, how many of them survive.
Version 0 of a unit is the durable one, the highest is what readers see. A crash state
is a vector of versions, written as ``Survivors`` of kind ``units`` that list the units
which are not at version 0. So every crash state is part of an ordinary program, which
replays and shrinks.

Which sectors matter depends on which files survive. So names and sizes are chosen first
(``PendingUnits.names``), and the sectors' units follow from that choice
(``PendingUnits.sectors``). Sectors whose versions are all equal are not units.

Source: section 7 of the disk fault model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from crashmq.harness.disk.choices import ordered_actions
from crashmq.harness.disk.crash_state import (
    Layout,
    UnitNames,
    fill_room,
    layout,
    slot_of,
)
from crashmq.harness.disk.inode import Inode
from crashmq.harness.disk.medium import MediumImage
from crashmq.harness.disk.namespace import DIRECTORY, reachable
from crashmq.harness.disk.profiles import DiskProfile
from crashmq.harness.disk.sim_disk import DiskSnapshot
from crashmq.harness.disk.survivors import tearable, versions_of
from crashmq.harness.disk.unit_choice import ORDER_SLOT, TAIL_VERSIONS, UnitChoice
from crashmq.models.ops import UNIT_TAIL, KeptUnit, Survivors

EXACT_COUNT_MAX = 4096


class Unit(NamedTuple):
    """One unit.

    Attributes:
        path: the path at which the file was created, or the entry's; "" for ``ORDER``.
        place: number of the sector, or ``ENTRY``, ``SIZE``, ``ORDER``.
        versions: how many it has, >= 2.
    """

    path: str
    place: int
    versions: int


class StateCount(NamedTuple):
    """How many crash states there are; if not exact, at most so many."""

    states: int
    is_exact: bool


class LeftFile(NamedTuple):
    """One file as a choice of names and sizes leaves it.

    Attributes:
        number: of its inode.
        inode: as readers see it; read only.
        is_certain: whether the content is what readers saw, whichever sectors survive.
        paths: every path that leads to it.
        content: the bytes if every sector is at version 0.
        units: the file's sectors, each with the bytes of its versions.
    """

    number: int
    inode: Inode
    is_certain: bool
    paths: tuple[str, ...]
    content: bytes
    units: tuple[tuple[Unit, list[bytes]], ...]


class Left(NamedTuple):
    """The directories and files that a choice of names and sizes leaves.

    Attributes:
        names: what each path leads to.
        directories: sorted.
        files: by their first paths.
    """

    names: dict[str, int]
    directories: tuple[str, ...]
    files: tuple[LeftFile, ...]


class PendingUnits:
    """The units of one disk at one moment.

    Attributes:
        names: the units of names and sizes, which are independent of each other.
    """

    def __init__(
        self, profile: DiskProfile, image: MediumImage, done: int | None = None
    ) -> None:
        self._profile = profile
        self._committed = image.committed
        self._effects = image.effects if profile.loses_unsynced else ()
        self._inodes: Mapping[int, Inode] = {
            number: Inode.of_image(inode, done, image.taken_ms)
            for number, inode in image.inodes.items()
        }
        self._file_names = UnitNames(self._inodes)
        self._ordered = ordered_actions(profile, self._effects, self._inodes)
        self._sectors: dict[tuple[object, ...], dict[Unit, list[bytes]]] = {}
        self.names: tuple[Unit, ...] = self._name_units()

    @classmethod
    def of(cls, snapshot: DiskSnapshot) -> PendingUnits:
        """The units of a disk as it was at a snapshot."""
        return cls(snapshot.profile, snapshot.medium, snapshot.done)

    def sectors(self, kept: Iterable[KeptUnit] = ()) -> tuple[Unit, ...]:
        """The pending sectors of the files, if names and sizes survive as ``kept``."""
        return tuple(self.contents(kept))

    def contents(self, kept: Iterable[KeptUnit] = ()) -> dict[Unit, list[bytes]]:
        """The pending sectors with their versions' bytes, given surviving names."""
        choice = UnitChoice(tuple(kept), self._profile, self._file_names, self._ordered)
        left = layout(self._committed, choice.effects(self._effects))
        return {
            unit: versions
            for number in self._present(left)
            for unit, versions in self._sectors_of(number, left, choice).items()
        }

    def left(self, kept: Iterable[KeptUnit] = ()) -> Left:
        """The directories and files, if names and sizes survive as in ``kept``."""
        choice = self._choice(kept)
        left = layout(self._committed, choice.effects(self._effects))
        names = self._names_of(left)
        paths: dict[int, list[str]] = {}
        for path, number in sorted(names.items()):
            paths.setdefault(number, []).append(path)
        directories = tuple(paths.pop(DIRECTORY, ()))
        files: list[LeftFile] = []
        for number, known_by in paths.items():
            inode = self._inodes[number]
            content = inode.content()
            is_certain = inode.is_certain(left.size(number, inode))
            if not is_certain:
                name = self._file_names.of(number)
                base, stores = left.pieces(number, inode)
                fill_room(base, number, self._inodes, choice.tail(name))
                choice.merge(name, inode, base, stores)
                content = bytes(base)
            units = tuple(self._sectors_of(number, left, choice).items())
            files.append(
                LeftFile(number, inode, is_certain, tuple(known_by), content, units)
            )
        return Left(names, directories, tuple(files))

    def write_order(self) -> Iterator[tuple[KeptUnit, ...]]:
        """The crash states of a disk that writes in order: prefixes of the changes.

        Each as the units that are not at version 0, shortest prefix first, without the
        empty one.
        """
        actions = {effect.action for effect in self._effects}
        for inode in self._inodes.values():
            actions.update(store[0] for store in inode.pending)
        for action in sorted(actions):
            names = tuple(self._names_up_to(action))
            yield (*names, *self._sectors_up_to(action, names))

    def _names_up_to(self, action: int) -> Iterator[KeptUnit]:
        if self._profile.metadata == "subset":
            survived = [e for e in self._effects if e.action <= action]
            slots = Counter(slot_of(e, self._file_names) for e in survived)
            yield from (KeptUnit(*slot, count) for slot, count in slots.items())
            return
        count = sum(1 for ordered in self._ordered if ordered <= action)
        if count:
            yield KeptUnit(*ORDER_SLOT, count)

    def _sectors_up_to(
        self, action: int, names: Sequence[KeptUnit]
    ) -> Iterator[KeptUnit]:
        choice = self._choice(names)
        left = layout(self._committed, choice.effects(self._effects))
        size = self._profile.sector_size
        for number in self._present(left):
            units = self._sectors_of(number, left, choice)
            if not units:
                continue
            base, stores = left.pieces(number, self._inodes[number])
            for made, offset, data in stores:
                if made <= action:
                    base[offset : offset + len(data)] = data
            for unit, versions in units.items():
                start = unit.place * size
                version = versions.index(bytes(base[start : start + size]))
                if version:
                    yield KeptUnit(unit.path, unit.place, version)

    def choices(self) -> Iterator[Survivors]:
        """Every crash state: all lost first, all kept last."""
        for names in _vectors(self.names):
            for sectors in _vectors(self.sectors(names)):
                yield Survivors("units", units=(*names, *sectors))

    def count(self) -> StateCount:
        """How many states ``choices`` yields.

        Exact unless there are too many choices of names to try each; then an upper
        bound, as if every file had all of its sectors' units in each choice.
        """
        named = prod(unit.versions for unit in self.names)
        if named <= EXACT_COUNT_MAX:
            states = sum(
                prod(unit.versions for unit in self.sectors(names))
                for names in _vectors(self.names)
            )
            return StateCount(states, is_exact=True)
        whole = layout(self._committed, self._effects)
        choice = self._choice(())
        most = prod(
            unit.versions
            for number in self._inodes
            for unit in self._sectors_of(number, whole, choice)
        )
        return StateCount(named * most, is_exact=False)

    def _choice(self, kept: Iterable[KeptUnit]) -> UnitChoice:
        return UnitChoice(tuple(kept), self._profile, self._file_names, self._ordered)

    def _names_of(self, left: Layout) -> dict[str, int]:
        is_ordered = self._profile.metadata != "subset"
        return left.names if is_ordered else reachable(left.names)

    def _present(self, left: Layout) -> list[int]:
        return sorted(set(self._names_of(left).values()) - {DIRECTORY})

    def _name_units(self) -> tuple[Unit, ...]:
        if self._profile.metadata == "subset":
            slots = Counter(slot_of(e, self._file_names) for e in self._effects)
            rooms = (
                (self._file_names.of(number), UNIT_TAIL)
                for number, inode in self._inodes.items()
                if inode.unwritten
            )
            return (
                *(Unit(*slot, count + 1) for slot, count in slots.items()),
                *(Unit(*room, TAIL_VERSIONS) for room in rooms),
            )
        if not self._ordered:
            return ()
        return (Unit(*ORDER_SLOT, len(self._ordered) + 1),)

    def _sectors_of(
        self, number: int, left: Layout, choice: UnitChoice
    ) -> dict[Unit, list[bytes]]:
        inode = self._inodes[number]
        cuts = tuple(cut for cut in inode.cuts if cut in left.survived)
        size = left.size(number, inode)
        tail = choice.tail(self._file_names.of(number))
        key = (number, size, left.carried.get(number, 0), cuts, tail)
        found = self._sectors.get(key)
        if found is None:
            found = self._sectors[key] = self._differing(number, left, tail)
        return found

    def _differing(
        self, number: int, left: Layout, tail: int
    ) -> dict[Unit, list[bytes]]:
        inode = self._inodes[number]
        profile = self._profile
        if not profile.loses_unsynced:
            return {}
        if profile.keeps_write_order and not inode.mapped:
            return {}
        base, stores = left.pieces(number, inode)
        fill_room(base, number, self._inodes, tail)
        name = self._file_names.of(number)
        units: dict[Unit, list[bytes]] = {}
        for sector, pieces in sorted(tearable(profile, stores, len(base)).items()):
            versions = versions_of(profile, inode, base, sector, pieces)
            if len(versions) > 1:
                units[Unit(name, sector, len(versions))] = versions
        return units


def _vectors(units: Sequence[Unit]) -> Iterator[tuple[KeptUnit, ...]]:
    for versions in product(*(range(unit.versions) for unit in units)):
        yield tuple(
            KeptUnit(unit.path, unit.place, version)
            for unit, version in zip(units, versions, strict=True)
            if version
        )
