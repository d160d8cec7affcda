"""The choices that ``Survivors`` names: what survives a power loss.

``hashed`` depends on (seed, path, sector) alone, so removing an op from a program does
not change the choice for sectors that the op never touched. ``crash_state`` computes
what a choice leaves; ``unit_choice`` is the explicit choice of every unit.

Source: rules P1-P3, P8, P9 and P13 of the disk fault model.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace

from crashmq.harness.disk.crash_state import Slot, UnitNames, in_no_order
from crashmq.harness.disk.hashing import GOLDEN, garbage, mixed
from crashmq.harness.disk.inode import Inode, Store
from crashmq.harness.disk.namespace import Effect
from crashmq.harness.disk.profiles import PERCENT, SECTOR_SIZE, DiskProfile

BLOCKS_TORN = 4  # of so many dirty blocks chance tears one
UNREADABLE = garbage(SECTOR_SIZE)[::-1]
"""What stands for a sector that nobody can read, where a state says its bytes."""


class UpTo:
    """Of a power loss: what was done up to one disk action survives, nothing later."""

    __slots__ = ("_action",)

    def __init__(self, action: int) -> None:
        self._action = action

    def effects(self, pending: Sequence[Effect]) -> Sequence[Effect]:
        """Of the changes of names that are not synced those that survive."""
        return [effect for effect in pending if effect.action <= self._action]

    def merge(
        self, name: str, inode: Inode, base: bytearray, stores: Sequence[Store]
    ) -> None:
        """Apply the stores up to the action to ``base``."""
        del name, inode  # the same for every file
        for action, offset, data in stores:
            if action <= self._action:
                base[offset : offset + len(data)] = data

    def tail(self, name: str) -> int:
        """What never synced space has: 0, zeros."""
        del name
        return 0


class Hashed:
    """Each sector's version drawn by a hash of (seed, path, sector)."""

    __slots__ = (
        "_density",
        "_names",
        "_profile",
        "_run_sectors",
        "_seed",
        "_whole",
        "_written",
    )

    def __init__(
        self,
        seed: int,
        profile: DiskProfile,
        names: UnitNames,
        ordered_actions: Sequence[int],
    ) -> None:
        self._profile = profile
        self._whole = replace(profile, torn_block=0) if profile.torn_block else profile
        self._names = names
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
        self._written: UpTo | None = None
        if profile.keeps_write_order:
            self._written = UpTo(self._end(ordered_actions))

    def effects(self, pending: Sequence[Effect]) -> Sequence[Effect]:
        """A prefix of the effects, each length equally likely; or all, or none.

        If effects have no order, each directory entry and size keeps a prefix of its
        own effects.
        """
        if self._density in (0.0, 1.0):
            return pending[: round(self._density) * len(pending)]
        if self._written is not None:
            return self._written.effects(pending)
        if self._profile.metadata == "subset":
            return in_no_order(pending, self._names, self._stand)
        draw = mixed(self._seed + 4) >> 32
        return pending[: (draw * (len(pending) + 1)) >> 32]

    def merge(
        self, name: str, inode: Inode, base: bytearray, stores: Sequence[Store]
    ) -> None:
        """Apply the drawn version of each stored sector to ``base``."""
        if self._density == 0.0:
            return
        if self._density == 1.0:
            for _, offset, data in stores:
                base[offset : offset + len(data)] = data
            return
        if self._written is not None and not inode.mapped:
            self._written.merge(name, inode, base, stores)
            return
        size = self._profile.sector_size
        key = self._seed ^ mixed(zlib.crc32(name.encode()))
        for sector, pieces in tearable(self._profile, stores, len(base)).items():
            profile = self._profile if self._tears(key, sector) else self._whole
            draw = mixed(key + GOLDEN * (sector // self._run_sectors + 1))
            if (draw & 0xFFFFFFFF) < self._density * (1 << 32):
                start = sector * size
                newer = versions_of(profile, inode, base, sector, pieces)[1:]
                if newer:
                    chosen = newer[((draw >> 32) * len(newer)) >> 32]
                    base[start : start + len(chosen)] = chosen

    def tail(self, name: str) -> int:
        """What never synced space has: 0 zeros, 1 garbage, 2 another file's bytes."""
        if self._density in (0.0, 1.0):
            return 0
        return (0, 0, 1, 2)[mixed(self._seed ^ mixed(zlib.crc32(name.encode()))) >> 62]

    def _tears(self, key: int, sector: int) -> bool:
        block = self._profile.torn_block
        number = sector * self._profile.sector_size // block if block else 0
        return bool(block) and mixed(key ^ mixed(number)) % BLOCKS_TORN == 0

    def _stand(self, slot: Slot, count: int) -> int:
        """How many of the ``count`` effects on one slot survive."""
        path, place = slot
        draw = mixed(self._seed ^ mixed(zlib.crc32(path.encode()) - place))
        if (draw & 0xFFFFFFFF) >= self._density * (1 << 32):
            return 0
        return 1 + (((draw >> 32) * count) >> 32)

    def _end(self, ordered_actions: Sequence[int]) -> int:
        draw = mixed(self._seed + 4) >> 32
        count = (draw * (len(ordered_actions) + 1)) >> 32
        return ordered_actions[count - 1] if count else 0


def versions_of(
    profile: DiskProfile,
    inode: Inode,
    base: bytearray,
    sector: int,
    stores: Sequence[Store],
) -> list[bytes]:
    """The possible contents of one sector of a file; the medium's comes first.

    Args:
        profile: the disk's.
        inode: the file.
        base: its durable bytes.
        sector: the sector's number.
        stores: those that touch it, oldest first.
    """
    start = sector * profile.sector_size
    old = bytes(base[start : start + profile.sector_size])
    parts = profile.store_size if inode.mapped else 0
    versions = sector_versions(old, stores, start, parts)
    if profile.shorn_sectors and len(versions) > 1:
        versions = with_shorn(versions)
    return with_torn(versions) if profile.torn_block else versions


def sector_versions(
    old: bytes, stores: Sequence[Store], start: int, store_size: int = 0
) -> list[bytes]:
    """The contents that a sector had, the medium's first; equal ones once.

    Args:
        old: the durable bytes.
        stores: those that touch the sector, oldest first.
        start: the sector's first byte in the file.
        store_size: a store may be done up to any multiple of this many bytes of the
            file, as a copy into a mapping is; 0: as a whole or not at all.
    """
    now = bytearray(old)
    versions = {old: None}
    for _, offset, data in stores:
        begin = max(0, offset - start)
        end = min(len(now), offset + len(data) - start)
        if store_size:
            for cut in range(begin - begin % store_size + store_size, end, store_size):
                now[begin:cut] = data[start + begin - offset : start + cut - offset]
                versions[bytes(now)] = None
        now[begin:end] = data[start + begin - offset : start + end - offset]
        versions[bytes(now)] = None
    return list(versions)


def with_shorn(versions: list[bytes]) -> list[bytes]:
    """The versions, and what a torn write may leave, before the newest (P4)."""
    old, new = versions[0], versions[-1]
    half = len(old) // 2
    shorn = [new[:half] + old[half:], old[:half] + new[half:], garbage(len(old))]
    found = dict.fromkeys([*versions[:-1], *shorn])
    found.pop(new, None)
    return [*found, new]


def with_torn(versions: list[bytes]) -> list[bytes]:
    """The versions; before the newest, what a torn block leaves of a sector (P4).

    For a sector that was not written, the only version is both the oldest and the
    newest.
    """
    size = len(versions[0])
    torn = [garbage(size), UNREADABLE[:size]]
    return [*(versions[:-1] or versions), *torn, versions[-1]]


def bad_sectors(
    profile: DiskProfile, inode: Inode, content: bytes | bytearray
) -> frozenset[int]:
    """The unreadable sectors of a file that has ``content`` after a power loss."""
    bad = inode.still_bad(content)
    if not profile.torn_block or UNREADABLE[:1] not in content:
        return bad
    sectors = range(-(-len(content) // SECTOR_SIZE))
    return bad.union(n for n in sectors if _is_unreadable(content, n))


def _is_unreadable(content: bytes | bytearray, sector: int) -> bool:
    start = sector * SECTOR_SIZE
    found = content[start : start + SECTOR_SIZE]
    return found == UNREADABLE[: len(found)]


def tearable(
    profile: DiskProfile, stores: Sequence[Store], end: int
) -> dict[int, list[Store]]:
    """The sectors that a power loss may change, with the stores that touch each.

    In a torn block that is each sector up to the file's ``end``.
    """
    size = profile.sector_size
    pieces = by_sector(stores, size)
    if not profile.torn_block:
        return pieces
    count = profile.torn_block // size
    for block in sorted({sector // count for sector in pieces}):
        for sector in range(block * count, min((block + 1) * count, -(-end // size))):
            pieces.setdefault(sector, [])
    return pieces


def by_sector(stores: Sequence[Store], size: int) -> dict[int, list[Store]]:
    """The stores that touch each sector, oldest first."""
    pieces: dict[int, list[Store]] = {}
    for store in stores:
        _, offset, data = store
        for sector in range(offset // size, (offset + len(data) - 1) // size + 1):
            pieces.setdefault(sector, []).append(store)
    return pieces
