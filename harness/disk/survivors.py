"""What a power loss leaves of a disk: one crash state, chosen by ``Survivors``.

A crash state is the committed disk, a prefix of the pending directory effects, and for
each sector of each file that then exists one of the versions it had since its last
sync. ``hashed`` draws from (seed, path, sector) alone, so cutting an op from a program
does not reshuffle the sectors the op never touched. This module computes and changes
nothing.

Source: rules P1-P3, P6-P10 and P13 of the disk fault model.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, assert_never

from harness.disk.inode import Cut, Inode, Store, clipped
from harness.disk.namespace import (
    DIRECTORY,
    Created,
    Effect,
    Renamed,
    Sized,
    apply_to_names,
)
from harness.disk.profiles import PERCENT, DiskProfile
from models.ops import Survivors

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Choice(Protocol):
    """What survives: how many effects, and of each file which stores."""

    def effects(self, pending: Sequence[Effect]) -> int:
        """Length of the prefix of ``pending`` that survives."""

    def merge(self, path: str, base: bytearray, stores: Sequence[Store]) -> None:
        """Put into ``base`` what survives of ``stores``; ``path`` names the file."""


@dataclass(frozen=True, slots=True)
class Remains:
    """The disk after a power loss.

    Attributes:
        names: inode numbers by path.
        contents: bytes by inode number, of the files that readers may have seen
            otherwise; the others are as they were seen.
    """

    names: dict[str, int]
    contents: dict[int, bytes]


def remains(
    committed: Mapping[str, int],
    effects: Sequence[Effect],
    inodes: Mapping[int, Inode],
    choice: Choice,
) -> Remains:
    """The crash state that ``choice`` leaves.

    Args:
        committed: the names that are certain.
        effects: directory changes since then, in order.
        inodes: every file that a committed name or an effect leads to.
        choice: what of the pending survives.
    """
    surviving = effects[: choice.effects(effects)]
    names = dict(committed)
    sizes: dict[int, int] = {}
    carried: dict[int, int] = {}
    for effect in surviving:
        apply_to_names(names, effect)
        match effect:
            case Created(_, _, number):
                sizes[number] = 0
            case Sized(_, number, size):
                sizes[number] = size
            case Renamed(action, _, _, number, True):
                carried[number] = action
    contents: dict[int, bytes] = {}
    last_action = surviving[-1].action if surviving else 0
    for number in names.values():
        if number != DIRECTORY:
            inode = inodes[number]
            size = sizes.get(number, inode.durable_size)
            if not inode.is_certain(size):
                contents[number] = _content(
                    inode, size, last_action, carried.get(number, 0), choice
                )
    return Remains(names, contents)


def _content(
    inode: Inode, size: int, last_action: int, carried: int, choice: Choice
) -> bytes:
    base = bytearray(inode.durable)
    base.extend(bytes(max(0, size - len(base))))
    stores = _after_cuts(base, inode.pending, inode.cuts, last_action)
    for action, offset, data in stores:
        if action < carried:
            base[offset : offset + len(data)] = data
    later = [store for store in stores if store[0] >= carried]
    choice.merge(inode.birth_path, base, later)
    return bytes(base[:size])


def _after_cuts(
    base: bytearray, stores: list[Store], cuts: list[Cut], last_action: int
) -> list[Store]:
    """The stores that can survive, given which cuts do.

    A surviving cut takes the bytes beyond it for good. Beyond a cut that is lost, what
    was stored later went to new blocks that nothing leads to.
    """
    for made, size in cuts:
        survives = made <= last_action
        if survives:
            base[size:] = bytes(len(base) - size)
        stores = [
            clipped(store, size) if (store[0] < made) == survives else store
            for store in stores
        ]
    return [store for store in stores if store[2]]


class UpTo:
    """Everything up to one action survives, nothing after it."""

    __slots__ = ("_action",)

    def __init__(self, action: int) -> None:
        self._action = action

    def effects(self, pending: Sequence[Effect]) -> int:
        """Those up to the action."""
        return sum(effect.action <= self._action for effect in pending)

    def merge(self, path: str, base: bytearray, stores: Sequence[Store]) -> None:
        """Put the stores up to the action into ``base``."""
        del path  # the same for every file
        for action, offset, data in stores:
            if action <= self._action:
                base[offset : offset + len(data)] = data


class Hashed:
    """Each sector's version drawn by a hash of (seed, path, sector)."""

    __slots__ = ("_density", "_profile", "_run_sectors", "_seed")

    def __init__(self, seed: int, profile: DiskProfile) -> None:
        self._profile = profile
        self._seed = mixed(seed)
        kind = mixed(self._seed + 1) % PERCENT
        density = (mixed(self._seed + 2) >> 32) / (1 << 32)
        if kind < profile.everything_percent:
            density = 1.0
        elif kind < profile.everything_percent + profile.nothing_percent:
            density = 0.0
        self._density = density
        runs = mixed(self._seed + 3) % PERCENT < profile.runs_percent
        self._run_sectors = profile.run_sectors if runs else 1

    def effects(self, pending: Sequence[Effect]) -> int:
        """Any length, all alike likely; all or none at the two extreme densities."""
        if self._density in (0.0, 1.0):
            return round(self._density) * len(pending)
        draw = mixed(self._seed + 4) >> 32
        return (draw * (len(pending) + 1)) >> 32

    def merge(self, path: str, base: bytearray, stores: Sequence[Store]) -> None:
        """Put the drawn version of each stored sector into ``base``."""
        if self._density == 0.0:
            return
        if self._density == 1.0:
            for _, offset, data in stores:
                base[offset : offset + len(data)] = data
            return
        size = self._profile.sector_size
        key = self._seed ^ mixed(zlib.crc32(path.encode()))
        for sector, pieces in _by_sector(stores, size).items():
            draw = mixed(key + _GOLDEN * (sector // self._run_sectors + 1))
            if (draw & 0xFFFFFFFF) < self._density * (1 << 32):
                start = sector * size
                old = bytes(base[start : start + size])
                newer = sector_versions(old, pieces, start)[1:]
                if newer:
                    chosen = newer[((draw >> 32) * len(newer)) >> 32]
                    base[start : start + len(old)] = chosen


def choice_of(
    survivors: Survivors,
    profile: DiskProfile,
    pending_actions: Sequence[int],
) -> Choice:
    """The choice that ``survivors`` names.

    Args:
        survivors: which of the pending effects outlive the power loss.
        profile: the disk's.
        pending_actions: the action of each pending store and effect, in any order.
    """
    match survivors.kind:
        case "none":
            return UpTo(0)
        case "all":
            return UpTo(max(pending_actions, default=0))
        case "prefix":
            ordered = sorted(pending_actions)
            count = min(max(0, survivors.number), len(ordered))
            return UpTo(ordered[count - 1] if count else 0)
        case "hashed":
            return Hashed(survivors.number, profile)
        case _:
            assert_never(survivors.kind)


def sector_versions(old: bytes, stores: Sequence[Store], start: int) -> list[bytes]:
    """The contents a sector had, the medium's first, each different content once."""
    now = bytearray(old)
    versions = {old: None}
    for _, offset, data in stores:
        begin = max(0, offset - start)
        end = min(len(now), offset + len(data) - start)
        now[begin:end] = data[start + begin - offset : start + end - offset]
        versions[bytes(now)] = None
    return list(versions)


def _by_sector(stores: Sequence[Store], size: int) -> dict[int, list[Store]]:
    pieces: dict[int, list[Store]] = {}
    for store in stores:
        _, offset, data = store
        for sector in range(offset // size, (offset + len(data) - 1) // size + 1):
            pieces.setdefault(sector, []).append(store)
    return pieces


def mixed(value: int) -> int:
    """64 bits, each of which depends on all of ``value`` (the splitmix64 mixer)."""
    word = (value + _GOLDEN) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)
