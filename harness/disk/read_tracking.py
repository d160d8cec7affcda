"""Records which bytes a life of a store read of the files that it found.

Two disks with the same paths, sizes and times look the same to a life as long as each
read returns the same bytes. So what it did and left follows from what it read, and from
the bytes that it left unchanged; ``Asked`` records both. Reading bytes that the life
itself wrote is recorded too, which is more than needed. If the life only examined bytes
(``File.examine``) that it had not changed, the result is recorded, not the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeAlias

from crashmq.engine.host.disk import T, Terms
from crashmq.harness.disk.controls import Controls
from crashmq.harness.disk.medium import Medium
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.sim_file import Life, SimFile

Examined: TypeAlias = tuple[Callable[..., Hashable], *tuple[Hashable, ...]]


class Read(NamedTuple):
    """Bytes [start, end) of a file, by the path at which it was found.

    ``of``: the bytes were not read but examined by this function, with these arguments.
    """

    path: str
    start: int
    end: int
    of: Examined | None = None

    def answer(self, content: bytes) -> Hashable:
        """What this read returns if the file has this content."""
        return self.answer_to(content[self.start : self.end])

    def answer_to(self, data: bytes) -> Hashable:
        """What this read returns if these are its bytes."""
        if self.of is None:
            return data
        of, *terms = self.of
        try:
            return of(data, *terms)
        except Exception as error:
            return type(error), data  # who asks falls over it, and may tell the bytes


class Asked:
    """What one life has read so far of files that existed at its start.

    Attributes:
        reads: oldest first, each without bytes that an earlier one has read.
    """

    def __init__(self, medium: Medium) -> None:
        self._medium = medium
        self._found: dict[int, str] = {}
        for path, number in medium.namespace.files():
            self._found.setdefault(number, path)
        self._kept = {
            number: len(medium.inodes[number].cache) for number in self._found
        }
        self._content = {
            number: medium.inodes[number].content() for number in self._found
        }
        self._known: dict[str, list[tuple[int, int]]] = {}
        self.reads: list[Read] = []

    def note(
        self, number: int, start: int, end: int, of: Examined | None = None
    ) -> None:
        """Record that bytes [start, end) of a file were read, or left unchanged.

        ``of``: they were only examined, by this function.
        """
        path = self._found.get(number)
        if path is None or start >= end:
            return
        known = self._known.setdefault(path, [])
        if any(begin <= start and end <= until for begin, until in known):
            return
        if of is None or not self._is_as_found(number):
            known.append((start, end))
            self.reads.append(Read(path, start, end))
        else:
            self.reads.append(Read(path, start, end, of))

    def _is_as_found(self, number: int) -> bool:
        inode = self._medium.inodes.get(number)
        return inode is not None and inode.image is self._content[number]

    def cut(self, number: int, size: int) -> None:
        """Record that bytes from ``size`` on were cut off."""
        if number in self._kept:
            self._kept[number] = min(self._kept[number], size)

    def all(self) -> tuple[Read, ...]:
        """Everything that was read, then what was left unchanged of the found files."""
        for _, number in self._medium.namespace.files():
            self.note(number, 0, self._kept.get(number, 0))
        return tuple(self.reads)


class TrackedFile(SimFile):
    """A file whose reads are recorded."""

    __slots__ = ("_asked",)

    def __init__(
        self,
        asked: Asked,
        medium: Medium,
        controls: Controls,
        life: Life,
        path: str,
        *,
        mapped: bool,
    ) -> None:
        super().__init__(medium, controls, life, path, mapped=mapped)
        self._asked = asked

    def read_at(self, offset: int, size: int) -> bytes:
        """As ``SimFile.read_at``, recorded."""
        data = super().read_at(offset, size)
        self._asked.note(self._number, offset, offset + size)
        return data

    def examine(
        self,
        offset: int,
        size: int,
        of: Callable[[bytes, *Terms], T],
        /,
        *terms: *Terms,
    ) -> T:
        """As ``SimFile.examine``, recorded."""
        data = super().read_at(offset, size)
        self._asked.note(self._number, offset, offset + size, (of, *terms))
        return of(data, *terms)


class TrackingMount(Mount):
    """A mount that records reads and truncations."""

    __slots__ = ("_asked",)

    def __init__(
        self, asked: Asked, medium: Medium, controls: Controls, life: Life
    ) -> None:
        super().__init__(medium, controls, life)
        self._asked = asked

    def truncate(self, path: str, size: int) -> None:
        """As ``Mount.truncate``, recorded."""
        super().truncate(path, size)
        self._asked.cut(self._medium.namespace.file(path), size)

    def _opened(self, path: str, *, mapped: bool) -> SimFile:
        return TrackedFile(
            self._asked, self._medium, self._controls, self._life, path, mapped=mapped
        )
