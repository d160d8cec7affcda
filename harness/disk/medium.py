"""The two images of the simulated disk and the effects that lie between them.

``Medium`` keeps the names readers see and the committed ones, the inodes of both, and
the directory changes in between, in their order. It knows what a commit and a power
loss do to them. Who may call, what is counted and what fails belongs to its callers.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from engine.host.disk import Usage
from harness.disk.inode import Inode, InodeImage
from harness.disk.namespace import (
    DIRECTORY,
    ROOT,
    Created,
    Effect,
    Namespace,
    Removed,
    Renamed,
    Sized,
    os_error,
    parent_of,
)
from harness.disk.profiles import DiskProfile
from harness.disk.survivors import Remains, UpTo, choice_of, remains
from models.ops import Survivors

Clock: TypeAlias = Callable[[], int]


def stopped_clock() -> int:
    """The clock of a disk that nobody asks for times."""
    return 0


@dataclass(frozen=True, slots=True)
class MediumImage:
    """A medium at one moment; nobody changes what it leads to."""

    names: dict[str, int]
    committed: dict[str, int]
    effects: tuple[Effect, ...]
    inodes: dict[int, InodeImage]
    next_number: int
    capacity: int = 0
    foreign_size: int = 0


class Medium:
    """Names and bytes, as readers see them and as they are certain.

    Invariants:
        committed names with all effects applied are the names readers see
        every number in either, and in an effect, leads to an inode
    """

    __slots__ = (
        "_committed",
        "_effects",
        "_next_number",
        "capacity",
        "foreign_size",
        "inodes",
        "namespace",
        "now_ms",
        "profile",
    )

    def __init__(
        self, profile: DiskProfile, now_ms: Clock = stopped_clock, capacity: int = 0
    ) -> None:
        self.profile = profile
        self.now_ms = now_ms
        self.capacity = capacity
        self.foreign_size = 0
        self.namespace = Namespace({ROOT: DIRECTORY})
        self.inodes: dict[int, Inode] = {}
        self._committed = {ROOT: DIRECTORY}
        self._effects: list[Effect] = []
        self._next_number = DIRECTORY + 1

    @classmethod
    def of_image(cls, profile: DiskProfile, image: MediumImage) -> Medium:
        """A medium that starts from ``image``, sharing its buffers."""
        medium = cls(profile, capacity=image.capacity)
        medium.foreign_size = image.foreign_size
        medium.namespace = Namespace(image.names)
        medium.inodes = {n: Inode.of_image(i) for n, i in image.inodes.items()}
        medium._committed = image.committed
        medium._effects = list(image.effects)
        medium._next_number = image.next_number
        return medium

    def image(self) -> MediumImage:
        """The medium as it is now, by sharing buffers until they change."""
        return MediumImage(
            names=self.namespace.names.copy(),
            committed=self._committed,
            effects=tuple(self._effects),
            inodes={number: inode.share() for number, inode in self.inodes.items()},
            next_number=self._next_number,
            capacity=self.capacity,
            foreign_size=self.foreign_size,
        )

    def usage(self) -> Usage:
        """Bytes of all files, the foreign one too, of the disk's capacity."""
        sizes = [len(self.inodes[n].cache) for _, n in self.namespace.files()]
        return Usage(sum(sizes) + self.foreign_size, self.capacity)

    def room_for(self, path: str, size: int) -> None:
        """Insist that the disk has so many bytes more.

        Raises:
            OSError: ENOSPC.
        """
        if not self.capacity:
            return
        used, total = self.usage()
        if used + size > total:
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
        """Do a directory change, for readers only."""
        self.namespace.apply(effect)
        self._effects.append(effect)

    def create(self, action: int, path: str) -> int:
        """Make an empty file, for readers only; its inode number."""
        number = self._add(Inode(path, b"", self.now_ms()))
        self.record(Created(action, path, number))
        return number

    def resize(self, action: int, path: str, size: int) -> None:
        """Set a file's size, for readers only."""
        number = self.namespace.file(path)
        self.inodes[number].resize(action, size)
        self.inodes[number].mtime_ms = self.now_ms()
        self._effects.append(Sized(action, number, size))

    def commit(self) -> None:
        """Make every directory change certain (P9)."""
        if not self._effects:
            return
        for effect in self._effects:
            match effect:
                case Sized(action, number, size):
                    self.inodes[number].commit_size(action, size)
                case Renamed(action, _, _, number, True):
                    self.inodes[number].write_back_before(action)
        gone = any(isinstance(effect, Removed | Renamed) for effect in self._effects)
        self._effects = []
        self._committed = self.namespace.names.copy()
        if gone:
            self.inodes = {
                number: self.inodes[number]
                for number in self._committed.values()
                if number != DIRECTORY
            }

    def place(self, path: str, content: bytes) -> None:
        """Put a file on the medium for certain, with the directories it needs."""
        self.commit()
        names = self.namespace.names.copy()
        above = parent_of(path)
        while above not in names:
            names[above] = DIRECTORY
            above = parent_of(above)
        if path in names:
            del self.inodes[self.namespace.file(path)]
        inode = Inode(path, content, self.now_ms())
        self._settle(names | {path: self._add(inode)})

    def displace(self, path: str) -> None:
        """Take a file off the medium for certain."""
        self.commit()
        del self.inodes[self.namespace.file(path)]
        names = self.namespace.names.copy()
        del names[path]
        self._settle(names)

    def files(self) -> dict[str, bytes]:
        """What readers see, sorted by path; unchanged files are the same object."""
        inodes = self.inodes
        return {
            path: inodes[number].content() for path, number in self.namespace.files()
        }

    def durable_files(self) -> dict[str, bytes]:
        """What is certain, sorted by path: a power loss leaves at least this."""
        if not self.profile.loses_unsynced:
            return self.files()
        left = remains(self._committed, self._effects, self.inodes, UpTo(0))
        return {
            path: left.contents.get(number, self.inodes[number].content())
            for path, number in sorted(left.names.items())
            if number != DIRECTORY
        }

    def pending_actions(self) -> list[int]:
        """The action of each pending store and directory change, in no order."""
        return [
            *(effect.action for effect in self._effects),
            *(store[0] for inode in self.inodes.values() for store in inode.pending),
        ]

    def lose_power(self, survivors: Survivors) -> None:
        """Keep what is certain and what ``survivors`` says; nothing pends after."""
        if not self.profile.loses_unsynced:
            return
        choice = choice_of(survivors, self.profile, self.pending_actions())
        left = remains(self._committed, self._effects, self.inodes, choice)
        self.inodes = self._settled_inodes(left)
        self._effects = []
        self._settle(left.names)

    def _settled_inodes(self, left: Remains) -> dict[int, Inode]:
        inodes: dict[int, Inode] = {}
        for path, number in left.names.items():
            if number == DIRECTORY:
                continue
            inode = self.inodes[number]
            content = left.contents.get(number)
            if content is None:
                inode.durable_size = len(inode.cache)
                inodes[number] = inode
            else:
                # The identical object tells a reader that nothing has changed.
                seen = inode.image
                inodes[number] = Inode(
                    path, seen if seen == content else content, inode.mtime_ms
                )
        return inodes

    def _settle(self, names: dict[str, int]) -> None:
        assert not self._effects
        if names != self.namespace.names:
            self.namespace = Namespace(names)
        self._committed = names

    def _add(self, inode: Inode) -> int:
        number = self._next_number
        self._next_number += 1
        self.inodes[number] = inode
        return number
