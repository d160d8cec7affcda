"""Medium: the two images of the simulated disk and the changes between them.

``Medium`` has the names that readers see and the committed ones, the inodes of both,
and the directory changes in between, in order. It computes what a commit and a power
loss do to them. Permissions, counting and faults are left to its callers.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from crashmq.engine.host.disk import PAGE_SIZE, Usage
from crashmq.harness.disk.choices import choice_of
from crashmq.harness.disk.crash_state import Choice, CrashState, crash_state
from crashmq.harness.disk.inode import Inode, InodeImage
from crashmq.harness.disk.namespace import (
    DIRECTORY,
    ROOT,
    Created,
    Effect,
    Linked,
    Namespace,
    Removed,
    Renamed,
    Sized,
    apply_to_names,
    inode_of,
    os_error,
    parent_of,
    paths_of,
)
from crashmq.harness.disk.profiles import SECTOR_SIZE, DiskProfile
from crashmq.harness.disk.survivors import UpTo, bad_sectors
from crashmq.models.ops import Survivors

Clock: TypeAlias = Callable[[], int]


def stopped_clock() -> int:
    """The clock of a disk whose times are never read."""
    return 0


@dataclass(slots=True)
class Room:
    """What a disk has room for, in bytes; ``capacity`` 0: no limit.

    ``foreign_size`` is that of a file of others; ``full_calls`` how many calls were
    refused for want of room.
    """

    capacity: int = 0
    foreign_size: int = 0
    full_calls: int = 0


class MediumImage(NamedTuple):
    """A medium at one moment; the objects it refers to do not change."""

    names: dict[str, int]
    committed: dict[str, int]
    effects: tuple[Effect, ...]
    inodes: dict[int, InodeImage]
    next_number: int
    room: Room
    taken_ms: int = 0
    changes: int = 0
    has_bad: bool = False


class Medium:
    """Names and bytes, as readers see them and as they are durable.

    ``changes`` counts changes of names; ``_touched`` are the files that had changes
    other than stores since the newest image.

    Invariants:
        committed names with all effects applied are the names readers see
        every number in either, and in an effect, leads to an inode
    """

    __slots__ = (
        "_committed",
        "_effects",
        "_imaged",
        "_next_number",
        "_touched",
        "changes",
        "has_bad",
        "inodes",
        "namespace",
        "now_ms",
        "profile",
        "room",
    )

    def __init__(
        self, profile: DiskProfile, now_ms: Clock = stopped_clock, capacity: int = 0
    ) -> None:
        self.profile = profile
        self.now_ms = now_ms
        self.room = Room(capacity)
        self.has_bad = bool(profile.torn_block)
        self.namespace = Namespace({ROOT: DIRECTORY})
        self.inodes: dict[int, Inode] = {}
        self._committed = {ROOT: DIRECTORY}
        self._effects: list[Effect] = []
        self._next_number = DIRECTORY + 1
        self.changes = 0
        self._touched: set[int] = set()
        self._imaged: MediumImage | None = None

    def _check(self) -> None:
        names = self._committed.copy()
        for effect in self._effects:
            apply_to_names(names, effect)
        assert names == self.namespace.names, names
        for number in self.namespace.names.values():
            assert number == DIRECTORY or number in self.inodes, number

    @classmethod
    def of_image(
        cls, profile: DiskProfile, image: MediumImage, done: int | None = None
    ) -> Medium:
        """A medium that begins as ``image``, sharing its buffers.

        ``done``: with the later stores up to this action; None: without them.
        """
        medium = cls(profile)
        medium.room = replace(image.room)
        medium.namespace = Namespace(image.names)
        medium.inodes = {
            number: Inode.of_image(inode, done, image.taken_ms)
            for number, inode in image.inodes.items()
        }
        medium.has_bad = image.has_bad
        medium._committed = image.committed
        medium._effects = list(image.effects)
        medium._next_number = image.next_number
        return medium

    def image(self) -> MediumImage:
        """The medium as it is now; buffers are shared until they change."""
        inodes = {number: inode.share() for number, inode in self.inodes.items()}
        return self._image(inodes, self.now_ms())

    def lazy_image(self) -> MediumImage:
        """The medium as it is now, or as it was a few stores earlier.

        The image's user must say up to which action stores belong to it.
        """
        seen, now_ms = self._imaged, self.now_ms()
        if seen is None or seen.taken_ms != now_ms:
            return self.image()
        if not self._touched:
            return (
                seen
                if seen.changes == self.changes
                else self._image(seen.inodes, now_ms)
            )
        inodes = seen.inodes.copy()
        for number in self._touched:
            if number in self.inodes:
                inodes[number] = self.inodes[number].share()
        return self._image(inodes, now_ms)

    def _image(self, inodes: dict[int, InodeImage], now_ms: int) -> MediumImage:
        self._touched.clear()
        self._imaged = MediumImage(
            names=self.namespace.shared_names(),
            committed=self._committed,
            effects=tuple(self._effects),
            inodes=inodes,
            next_number=self._next_number,
            room=replace(self.room),
            taken_ms=now_ms,
            changes=self.changes,
            has_bad=self.has_bad,
        )
        return self._imaged

    def touch(self, number: int) -> None:
        """Record that a change other than a store was made to a file."""
        self._touched.add(number)

    def usage(self) -> Usage:
        """Bytes of all files, the foreign one included, and the disk's capacity."""
        sizes = [len(self.inodes[n].cache) for _, n in self.namespace.files()]
        return Usage(sum(sizes) + self.room.foreign_size, self.room.capacity)

    def room_for(self, path: str, size: int) -> None:
        """Raise unless the disk has room for ``size`` more bytes.

        Raises:
            OSError: ENOSPC.
        """
        if not self.room.capacity:
            return
        used, total = self.usage()
        if used + size > total:
            self.room.full_calls += 1
            why = f"{size} bytes are needed, {max(0, total - used)} are free"
            raise os_error(errno.ENOSPC, path, why)

    @property
    def has_effects(self) -> bool:
        """Whether a directory change waits for its commit."""
        return bool(self._effects)

    def inode(self, path: str) -> Inode:
        """The inode of the file readers see at ``path``."""
        return self.inodes[self.namespace.file(path)]

    def record(self, effect: Effect) -> None:
        """Make a directory change; it stays pending until it is committed."""
        self.changes += 1
        self.namespace.apply(effect)
        self._effects.append(effect)

    def create(self, action: int, path: str) -> int:
        """Create an empty file, pending; returns its inode number."""
        number = self._add(Inode(path, b"", self.now_ms()))
        self.record(Created(action, path, number))
        return number

    def rename(self, action: int, source: str, target: str) -> None:
        """Rename a file; the change stays pending."""
        number = self.namespace.file(source)
        if self.profile.metadata == "subset":
            self.record(Linked(action, target, number))
            self.record(Removed(action, source))
            return
        carries_data = self.profile.auto_da_alloc and self.namespace.has(target)
        self.record(Renamed(action, source, target, number, carries_data))

    def resize(self, action: int, path: str, size: int) -> None:
        """Set a file's size; the change stays pending."""
        number = self.namespace.file(path)
        inode = self.inodes[number]
        before = len(inode.cache)
        if self.profile.splits_truncation:
            for page in range((before - 1) // PAGE_SIZE, size // PAGE_SIZE, -1):
                self._resize(action, number, page * PAGE_SIZE)
        self._resize(action, number, size)
        if self.profile.tail == "any" and size > before:
            inode.unwritten = (*inode.unwritten, (before, size))

    def _resize(self, action: int, number: int, size: int) -> None:
        self.touch(number)
        self.inodes[number].resize(action, size)
        self._effects.append(Sized(action, number, size))

    def evict(self) -> None:
        """Drop every clean page from memory."""
        for number, inode in self.inodes.items():
            self.touch(number)
            inode.evict()

    def misdirect(self, number: int, page: int, away: int) -> tuple[str, int, int]:
        """Write a page of a file to another page's place; return its path and bytes.

        That is the next page of the same file; or, with ``away``, a page of the file so
        many places after it by path. For a file of one page it is one of the next file.
        """
        files = self.namespace.files()
        numbers = [inode for _, inode in files]
        source = self.inodes[number]
        start, end = source.page_range(page)
        content = bytes(source.cache[start:end])
        at = numbers.index(number) if number in numbers else 0
        if not away and len(source.cache) <= PAGE_SIZE:
            away = 1
        path, landed = files[(at + away) % len(files)]
        inode = self.inodes[landed]
        pages = max(1, -(-len(inode.cache) // PAGE_SIZE))
        place = (page + (0 if away else 1)) % pages
        self.touch(landed)
        inode.overwrite_page(place, content)
        return (path, *inode.page_range(place))

    def commit(self) -> None:
        """Make every directory change durable."""
        self._commit(self._effects, [])

    def commit_file(self, number: int, until: int) -> None:
        """Make durable what a file's sync commits of the changes up to ``until``."""
        if not self._may_commit():
            return
        if self.profile.metadata == "prefix":
            self._commit_all_in_order(until)
            return
        slots = {_size_slot(number)}
        if self.profile.fsync_new_file_persists_name:
            for effect in self._effects:
                if inode_of(effect) == number:
                    slots.update(paths_of(effect))
        self._commit_slots(slots, until)

    def commit_dir(self, path: str, until: int) -> None:
        """Make durable what a directory's sync commits of the changes until then."""
        if not self._may_commit():
            return
        if self.profile.metadata == "prefix":
            self._commit_all_in_order(until)
            return
        self._commit_slots(
            {
                entry
                for effect in self._effects
                for entry in paths_of(effect)
                if parent_of(entry) == path
            },
            until,
        )

    def _may_commit(self) -> bool:
        profile = self.profile
        pends = self._effects or profile.keeps_write_order
        return bool(pends) and profile.honours_sync

    def _commit_all_in_order(self, until: int) -> None:
        if not self.profile.keeps_write_order:
            done = [effect for effect in self._effects if effect.action <= until]
            self._commit(done, self._effects[len(done) :])
            return
        self.commit()
        for inode in self.inodes.values():
            if not inode.mapped:
                inode.write_back()
        self._imaged = None

    def _commit_slots(self, slots: set[str], until: int) -> None:
        """Commit the effects on some entries and sizes, with all that these depend on.

        An effect on two entries also commits the older effects on both. Where names
        keep their order, a new name also commits the directories above it.
        """
        rests_on_parents = self.profile.metadata == "log_tree"
        chosen: list[Effect] = []
        others: list[Effect] = []
        for effect in reversed(self._effects):
            paths = paths_of(effect)
            touched = set(paths)
            if isinstance(effect, Sized):
                touched = {_size_slot(effect.inode)}
            if effect.action > until or not touched & slots:
                others.append(effect)
                continue
            chosen.append(effect)
            slots |= touched
            if rests_on_parents:
                slots.update(above for path in paths for above in _above(path))
        self._commit(chosen[::-1], others[::-1])

    def _commit(self, effects: Sequence[Effect], left: list[Effect]) -> None:
        """Make ``effects`` durable; ``left`` are those that stay pending."""
        self.changes += 1
        if not effects:
            return
        for effect in effects:
            match effect:
                case Sized(action, number, size):
                    self.touch(number)
                    self.inodes[number].commit_size(action, size)
                case Renamed(action, _, _, number, True):
                    self.touch(number)
                    self.inodes[number].write_back_before(action)
        gone = any(isinstance(e, Removed | Renamed | Linked) for e in effects)
        if left:
            self._committed = self._committed.copy()
            for effect in effects:
                apply_to_names(self._committed, effect)
        else:
            self._committed = self.namespace.names.copy()
        self._effects = left
        if gone:
            self._drop_inodes()

    def _drop_inodes(self) -> None:
        """Drop files that no name leads to, now or after any crash."""
        kept = {*self._committed.values(), *self.namespace.names.values()}
        kept.update(inode_of(effect) for effect in self._effects)
        self._imaged = None
        self.inodes = {n: i for n, i in self.inodes.items() if n in kept}

    def place(self, path: str, content: bytes) -> None:
        """Create a durable file, with the directories it needs."""
        self.commit()
        names = self.namespace.names.copy()
        above = parent_of(path)
        while above not in names:
            names[above] = DIRECTORY
            above = parent_of(above)
        inode = Inode(path, content, self.now_ms())
        before = self.inodes.get(names.get(path, DIRECTORY))
        if before is not None and before.bad:
            size = len(content)
            inode.bad = frozenset([n for n in before.bad if n * SECTOR_SIZE < size])
        self._settle(names | {path: self._add(inode)})
        self._drop_inodes()

    def place_new(self, path: str, content: bytes | None) -> bool:
        """Create a file, or with None a directory; False if the path is taken."""
        names = self.namespace.names
        if self.namespace.has(path) or any(
            names.get(above, DIRECTORY) != DIRECTORY for above in _above(path)
        ):
            return False
        self.place(path, content if content is not None else b"")
        if content is None:
            self._settle(self.namespace.names | {path: DIRECTORY})
            self._drop_inodes()
        return True

    def make_unreadable(self, path: str, start: int, end: int) -> None:
        """Make the sectors of bytes [start, end) of a file unreadable."""
        number = self.namespace.file(path)
        inode = self.inodes[number]
        sectors = range(start // SECTOR_SIZE, -(-end // SECTOR_SIZE))
        inode.bad |= frozenset(sectors)
        self.has_bad = True
        self.touch(number)

    def displace(self, path: str) -> None:
        """Remove a file durably."""
        self.commit()
        self.namespace.file(path)
        names = self.namespace.names.copy()
        del names[path]
        self._settle(names)
        self._drop_inodes()

    def files(self) -> dict[str, bytes]:
        """The files readers see, by path; unchanged ones are the same objects."""
        inodes = self.inodes
        return {
            path: image
            if (image := inodes[number].image) is not None
            else inodes[number].content()
            for path, number in self.namespace.files()
        }

    def durable_files(self) -> dict[str, bytes]:
        """The durable files, sorted by path: a power loss leaves at least these."""
        if not self.profile.loses_unsynced:
            return self.files()
        left = self._remains(UpTo(0))
        return {
            path: left.contents.get(number, self.inodes[number].content())
            for path, number in sorted(left.names.items())
            if number != DIRECTORY
        }

    def lose_power(self, survivors: Survivors) -> None:
        """Keep what is durable and what ``survivors`` chooses; nothing is pending."""
        if not self.profile.loses_unsynced:
            return
        left = self._remains(
            choice_of(survivors, self.profile, self._effects, self.inodes)
        )
        self.inodes = self._settled_inodes(left)
        self._effects = []
        self._settle(left.names)

    def _remains(self, choice: Choice) -> CrashState:
        return crash_state(
            self._committed,
            self._effects,
            self.inodes,
            choice,
            ordered=self.profile.metadata != "subset",
        )

    def _settled_inodes(self, left: CrashState) -> dict[int, Inode]:
        inodes: dict[int, Inode] = {}
        for path, number in left.names.items():
            if number == DIRECTORY or number in inodes:
                continue
            inode = self.inodes[number]
            content = left.contents.get(number)
            if content is None:
                inode.durable_size = len(inode.cache)
                inodes[number] = inode
            else:
                # The identical object tells a reader that nothing has changed.
                seen = inode.image if inode.image == content else content
                inodes[number] = Inode(path, seen, inode.mtime_ms)
                inodes[number].bad = bad_sectors(self.profile, inode, content)
        return inodes

    def _settle(self, names: dict[str, int]) -> None:
        self._imaged = None
        assert not self._effects
        if names != self.namespace.names:
            self.namespace = Namespace(names)
        self._committed = names

    def _add(self, inode: Inode) -> int:
        number = self._next_number
        self._next_number += 1
        self.inodes[number] = inode
        self.touch(number)
        return number


def _size_slot(number: int) -> str:
    return f"#{number}"  # no path: it is never split at slashes


def _above(path: str) -> Iterator[str]:
    while path != ROOT:
        path = parent_of(path)
        yield path
