"""The port to files: all a store may do to a disk, and what each call promises.

A path is relative to the store's root, its parts joined by ``/``; ``""`` is the root
itself. Two crashes are told apart throughout: a *process kill* keeps whatever a call
that returned has done, a *power loss* keeps only what a sync made durable. An error
of the disk is an ``OSError`` with its ``errno``; after one, nothing of that call's
effect may be relied on, and a failed sync proves nothing ever after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar, TypeVarTuple

PAGE_SIZE = 4096

T = TypeVar("T")
Terms = TypeVarTuple("Terms")


class File(Protocol):
    """One open file of a fixed size."""

    @property
    def size(self) -> int:
        """Bytes in the file; it does not change while the file is open."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes [offset, offset + size), all of them.

        Raises:
            ValueError: the range leaves the file.
            OSError: the medium could not be read (EIO).
        """

    def examine(
        self,
        offset: int,
        size: int,
        of: Callable[[bytes, *Terms], T],
        /,
        *terms: *Terms,
    ) -> T:
        """Return ``of(bytes)`` for [offset, offset + size) without showing the bytes.

        ``of`` must be a pure function, so the caller learns only its result.

        Raises:
            ValueError: the range leaves the file.
            OSError: the medium could not be read (EIO).
        """

    def write_at(self, offset: int, data: bytes | bytearray) -> None:
        """Overwrite bytes from ``offset`` on; written bytes survive a process kill.

        Raises:
            ValueError: the range does not lie in the file.
            OSError: nothing, or any prefix of ``data``, was written.
        """

    def sync(self) -> None:
        """Make every byte written so far, and the file's size, survive power loss.

        Raises:
            OSError: some bytes may never become durable, even if a later sync
                succeeds; only writing them again and syncing that does.
        """

    def close(self) -> None:
        """Close the file; unsynced bytes stay unsynced. Idempotent."""


class Usage(NamedTuple):
    """How full the file system is; ``total`` 0: it has no limit."""

    used: int
    total: int

    @property
    def percent(self) -> int:
        """The share in use, rounded up to a whole percent.

        Source: UtilAll#getDiskPartitionSpaceUsedPercent.
        """
        return -(-self.used * 100 // self.total) if self.total else 0


class FileLock(Protocol):
    """An exclusive lock on one path, held until released or the process ends."""

    def release(self) -> None:
        """Release the lock, so that another store can take it. Idempotent."""


def examine_by_reading(
    file: File,
    offset: int,
    size: int,
    of: Callable[[bytes, *Terms], T],
    /,
    *terms: *Terms,
) -> T:
    """``File.examine`` for a file that does not track which bytes are read."""
    return of(file.read_at(offset, size), *terms)


class Disk(Protocol):
    """A directory tree. Entries made, renamed or removed survive a process kill."""

    def open(self, path: str, size: int, *, create: bool, mapped: bool) -> File:
        """Open a file of exactly ``size`` bytes for reading and writing.

        ``create`` makes the file if it is absent, its space allocated and reading as
        zeros; a crash inside may leave it with no bytes, an error leaves nothing.
        ``mapped`` asks for a memory mapping: a write is then a run of stores, which
        a kill may cut anywhere.

        Raises:
            FileNotFoundError: the file is absent and ``create`` is false, or its
                directory is absent.
            OSError: the size differs (EINVAL), or no space or name could be had
                (ENOSPC, EIO).
        """

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this path."""

    def is_dir(self, path: str) -> bool:
        """Whether a directory has this path."""

    def list_dir(self, path: str) -> list[str]:
        """Names in a directory, sorted; FileNotFoundError if there is none."""

    def file_size(self, path: str) -> int:
        """Bytes in a file; FileNotFoundError if there is none."""

    def mtime_ms(self, path: str) -> int:
        """The wall-clock time in ms at which the content of a file last changed.

        It is the file system's mtime: that of a copied file may be newer, and a user
        may set it.
        """

    def usage(self) -> Usage:
        """How full the file system of the root is."""

    def truncate(self, path: str, size: int) -> None:
        """Set the size of a file no one holds open; new bytes read as zeros."""

    def rename(self, source: str, target: str) -> None:
        """Give a file another path; a file at ``target`` is replaced at once."""

    def remove(self, path: str) -> None:
        """Remove a file; FileNotFoundError if there is none."""

    def make_dir(self, path: str) -> None:
        """Make one directory; FileExistsError if the path is taken."""

    def remove_dir(self, path: str) -> None:
        """Remove one empty directory."""

    def sync_dir(self, path: str) -> None:
        """Make the entries of this directory survive power loss."""

    def lock(self, path: str) -> FileLock:
        """Hold ``path`` exclusively; the file is made if absent.

        Raises:
            BlockingIOError: another store holds it.
        """
