"""The crash state that a choice leaves: names, sizes and bytes after a power loss.

A crash state is the committed disk, plus the pending directory effects that the choice
keeps, plus for each file that then exists the stores that it keeps. This module
computes it and does not change the disk; ``survivors`` and ``units`` define which
effects and stores may be chosen.

Source: rules P1, P6 to P10 of the disk fault model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from crashmq.harness.disk.hashing import garbage
from crashmq.harness.disk.inode import Cut, Inode, Store, clipped
from crashmq.harness.disk.namespace import (
    DIRECTORY,
    Effect,
    Renamed,
    Sized,
    apply_to_names,
    paths_of,
    reachable,
)
from crashmq.models.ops import UNIT_END, UNIT_ENTRY
from crashmq.models.quickly_made import quickly_made

Slot: TypeAlias = tuple[str, int]


class Choice(Protocol):
    """Which effects survive, and which stores of each file."""

    def effects(self, pending: Sequence[Effect]) -> Sequence[Effect]:
        """The effects of ``pending`` that survive, oldest first."""

    def merge(
        self, name: str, inode: Inode, base: bytearray, stores: Sequence[Store]
    ) -> None:
        """Apply those of ``stores`` that survive to ``base``; ``name``: the file's."""

    def tail(self, name: str) -> int:
        """What never synced space has: 0 zeros, 1 garbage, 2 another file's bytes."""


@quickly_made
@dataclass(frozen=True, slots=True)
class CrashState:
    """The disk's content after a power loss.

    Attributes:
        names: inode number by path.
        contents: bytes by inode number, of the files that may differ from what readers
            saw before the power loss.
    """

    names: dict[str, int]
    contents: dict[int, bytes]


@quickly_made
@dataclass(frozen=True, slots=True)
class Layout:
    """Names and sizes after a power loss, without the bytes.

    Attributes:
        names: inode numbers by path.
        sizes: of the inodes whose size is not the durable one.
        carried: for an inode whose rename carries its data: the rename's action; all
            stores before it survive.
        survived: the size changes that survive, as (action, size).
    """

    names: dict[str, int]
    sizes: dict[int, int]
    carried: dict[int, int]
    survived: frozenset[Cut]

    def size(self, number: int, inode: Inode) -> int:
        """The size of a file."""
        return self.sizes.get(number, inode.durable_size)

    def pieces(self, number: int, inode: Inode) -> tuple[bytearray, list[Store]]:
        """The durable bytes of a file, and its pending stores."""
        size = self.size(number, inode)
        base = bytearray(inode.durable)
        base.extend(bytes(max(0, size - len(base))))
        stores = _after_cuts(base, inode.pending, inode.cuts, self.survived)
        if len(base) > size:
            del base[size:]
            stores = [kept for store in stores if (kept := clipped(store, size))[2]]
        carried = self.carried.get(number, 0)
        if carried:
            for action, offset, data in stores:
                if action < carried:
                    base[offset : offset + len(data)] = data
            stores = [store for store in stores if store[0] >= carried]
        return base, stores


def layout(committed: Mapping[str, int], surviving: Sequence[Effect]) -> Layout:
    """Names and sizes that result from the committed ones and the surviving effects."""
    names = dict(committed)
    sizes: dict[int, int] = {}
    carried: dict[int, int] = {}
    survived: list[Cut] = []
    for effect in surviving:
        apply_to_names(names, effect)
        match effect:
            case Sized(action, number, size):
                sizes[number] = size
                survived.append((action, size))
            case Renamed(action, _, _, number, True):
                carried[number] = action
    return Layout(names, sizes, carried, frozenset(survived))


def crash_state(
    committed: Mapping[str, int],
    effects: Sequence[Effect],
    inodes: Mapping[int, Inode],
    choice: Choice,
    *,
    ordered: bool,
) -> CrashState:
    """The crash state that ``choice`` leaves.

    Args:
        committed: the durable names.
        effects: directory changes since then, oldest first.
        inodes: every file that a committed name or an effect leads to.
        choice: which pending changes survive.
        ordered: whether effects survive in order, so that every name has its directory;
            if not, names without a directory are lost.
    """
    left = layout(committed, choice.effects(effects))
    names = left.names if ordered else reachable(left.names)
    contents: dict[int, bytes] = {}
    unit_names = UnitNames(inodes)
    for number in names.values():
        if number != DIRECTORY and number not in contents:
            inode = inodes[number]
            size = left.size(number, inode)
            if not inode.is_certain(size):
                name = unit_names.of(number)
                base, stores = left.pieces(number, inode)
                if inode.unwritten:
                    fill_room(base, number, inodes, choice.tail(name))
                choice.merge(name, inode, base, stores)
                contents[number] = bytes(base)
    return CrashState(names, contents)


def without_cuts(inode: Inode) -> tuple[bytearray, list[Store]]:
    """A file's durable bytes, and its pending stores, if no pending cut survives."""
    base = bytearray(inode.durable)
    return base, _after_cuts(base, inode.pending, inode.cuts, frozenset())


def fill_room(
    base: bytearray, number: int, inodes: Mapping[int, Inode], tail: int
) -> None:
    """Fill a file's never synced space with what ``Choice.tail`` says (P6)."""
    if tail == 0:
        return
    source: bytes | bytearray = garbage(len(base))
    if tail == 2:
        others = (inodes[other] for other in sorted(inodes) if other != number)
        source = next((other.durable for other in others if other.durable), source)
    for start, end in inodes[number].unwritten:
        found = source[start : min(end, len(base))]
        base[start : start + len(found)] = found


class UnitNames:
    """Names files in a choice: each by the path at which it was created.

    If several files were created at one path, all but the first are numbered:
    ``path#2``.
    """

    __slots__ = ("_inodes", "_names")

    def __init__(self, inodes: Mapping[int, Inode]) -> None:
        self._inodes = inodes
        self._names: dict[int, str] | None = None

    def of(self, number: int) -> str:
        """The name of one file."""
        if self._names is None:
            self._names = self._all()
        return self._names[number]

    def _all(self) -> dict[int, str]:
        names: dict[int, str] = {}
        seen: dict[str, int] = {}
        for number in sorted(self._inodes):
            path = self._inodes[number].birth_path
            seen[path] = seen.get(path, 0) + 1
            names[number] = path if seen[path] == 1 else f"{path}#{seen[path]}"
        return names


def slot_of(effect: Effect, names: UnitNames) -> Slot:
    """The directory entry, or the size, that an effect changes.

    Not for a rename, which changes two entries at once.
    """
    if isinstance(effect, Sized):
        return names.of(effect.inode), UNIT_END
    assert not isinstance(effect, Renamed), effect
    return paths_of(effect)[0], UNIT_ENTRY


def in_no_order(
    pending: Sequence[Effect], names: UnitNames, stand: Callable[[Slot, int], int]
) -> list[Effect]:
    """The effects that survive if each slot keeps its first few.

    Args:
        pending: effects, oldest first, that survive independently of other slots'.
        names: names the files.
        stand: given a slot and its number of effects, how many of them survive.
    """
    slots = [slot_of(effect, names) for effect in pending]
    left = {slot: stand(slot, count) for slot, count in Counter(slots).items()}
    kept: list[Effect] = []
    for slot, effect in zip(slots, pending, strict=True):
        if left[slot] > 0:
            left[slot] -= 1
            kept.append(effect)
    return kept


def _after_cuts(
    base: bytearray, stores: list[Store], cuts: list[Cut], survived: frozenset[Cut]
) -> list[Store]:
    """The stores that can survive, given which cuts do.

    A cut that survives removes the bytes beyond it for good. Beyond a cut that is lost,
    later stores went to new blocks, and these belong to no file then.
    """
    for made, size in cuts:
        survives = (made, size) in survived
        if survives:
            base[size:] = bytes(len(base) - size)
        stores = [
            clipped(store, size) if (store[0] < made) == survives else store
            for store in stores
        ]
    return [store for store in stores if store[2]]
