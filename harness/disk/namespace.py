"""Names of the simulated disk, and the directory changes that are not durable yet.

A namespace maps each path to the number of an inode, or to ``DIRECTORY``. The disk has
two: the names that readers see and the committed ones. An ordered list of ``Effect``
leads from the committed names to those readers see. ``inode`` has the bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, assert_never

from crashmq.models.quickly_made import quickly_made

DIRECTORY = 0  # stands for an inode number; files are numbered from 1
ROOT = ""


@quickly_made
@dataclass(frozen=True, slots=True)
class Created:
    """A name now leads to a new and empty file."""

    action: int
    path: str
    inode: int


@quickly_made
@dataclass(frozen=True, slots=True)
class Sized:
    """A file has another size."""

    action: int
    inode: int
    size: int


@quickly_made
@dataclass(frozen=True, slots=True)
class Renamed:
    """A file has another path; ``carries_data``: durable only after its bytes (P10)."""

    action: int
    source: str
    target: str
    inode: int
    carries_data: bool


@quickly_made
@dataclass(frozen=True, slots=True)
class Linked:
    """A second path leads to a file: the first half of a rename made of two changes."""

    action: int
    path: str
    inode: int


@quickly_made
@dataclass(frozen=True, slots=True)
class Removed:
    """The path of a file or of an empty directory is gone."""

    action: int
    path: str


@quickly_made
@dataclass(frozen=True, slots=True)
class DirectoryMade:
    """A path leads to an empty directory."""

    action: int
    path: str


Effect: TypeAlias = Created | Sized | Renamed | Linked | Removed | DirectoryMade


def apply_to_names(names: dict[str, int], effect: Effect) -> None:
    """Apply ``effect`` to ``names``; sizes are ignored.

    A name that the effect removes may be missing: where effects have no order, its
    creation can be lost and its removal kept.
    """
    match effect:
        case Created(_, path, inode) | Linked(_, path, inode):
            names[path] = inode
        case Renamed(_, source, target, inode):
            names.pop(source, None)
            names[target] = inode
        case Removed(_, path):
            names.pop(path, None)
        case DirectoryMade(_, path):
            names[path] = DIRECTORY
        case Sized():
            pass
        case _:
            assert_never(effect)


def paths_of(effect: Effect) -> tuple[str, ...]:
    """The directory entries an effect changes."""
    match effect:
        case Renamed(_, source, target):
            return source, target
        case Sized():
            return ()
        case _:
            return (effect.path,)


def inode_of(effect: Effect) -> int:
    """The inode an effect changes; ``DIRECTORY`` if none."""
    match effect:
        case Removed() | DirectoryMade():
            return DIRECTORY
        case _:
            return effect.inode


def reachable(names: Mapping[str, int]) -> dict[str, int]:
    """The names whose parent directories all exist."""
    kept = {ROOT: DIRECTORY}
    for path in sorted(names):
        if path != ROOT and kept.get(parent_of(path)) == DIRECTORY:
            kept[path] = names[path]
    return kept


def parent_of(path: str) -> str:
    """The directory a path lies in."""
    return path.rpartition("/")[0]


class Namespace:
    """The paths that readers see; listings are computed once per change."""

    __slots__ = ("_files", "_listings", "_shared", "names")

    def __init__(self, names: Mapping[str, int]) -> None:
        self.names = dict(names)
        self._listings: dict[str, list[str]] | None = None
        self._files: list[tuple[str, int]] | None = None
        self._shared: dict[str, int] | None = None

    def shared_names(self) -> dict[str, int]:
        """The names as they are now; the returned mapping is never changed."""
        if self._shared is None:
            self._shared = self.names.copy()
        return self._shared

    def apply(self, effect: Effect) -> None:
        """Make a directory change."""
        apply_to_names(self.names, effect)
        self._listings = None
        self._files = None
        self._shared = None

    def files(self) -> list[tuple[str, int]]:
        """Every file's path and inode number, sorted by path."""
        if self._files is None:
            self._files = sorted(
                entry for entry in self.names.items() if entry[1] != DIRECTORY
            )
        return self._files

    def list_dir(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        if self.names.get(path) != DIRECTORY:
            raise self._not_a_directory(path)
        if self._listings is None:
            self._listings = _listings(self.names)
        return self._listings[path].copy()

    def file(self, path: str) -> int:
        """The inode number of a file."""
        number = self.names.get(path)
        if number is None:
            raise self._absent(path)
        if number == DIRECTORY:
            raise os_error(errno.EISDIR, path, "is a directory; a file is needed")
        return number

    def directory(self, path: str) -> None:
        """Raise OSError unless a directory has this path."""
        if self.names.get(path) != DIRECTORY:
            raise self._not_a_directory(path)

    def has(self, path: str) -> bool:
        """Whether a file or directory has this path."""
        if path in self.names:
            return True
        check_path(path)
        return False

    def room_for(self, path: str) -> None:
        """Raise OSError unless the directory of ``path`` exists."""
        check_path(path)
        if path == ROOT:
            raise ValueError('the path "" is the root itself; give a name below it.')
        self.directory(parent_of(path))

    def _not_a_directory(self, path: str) -> OSError:
        if path in self.names:
            return os_error(errno.ENOTDIR, path, "is a file; a directory is needed")
        return self._absent(path)

    def _absent(self, path: str) -> OSError:
        check_path(path)
        above = path
        while above not in self.names:
            above = parent_of(above)
        if self.names[above] != DIRECTORY:
            return os_error(errno.ENOTDIR, path, f"{above} is a file, no directory")
        return os_error(errno.ENOENT, path, f"nothing has this path below {above!r}")


def _listings(names: Mapping[str, int]) -> dict[str, list[str]]:
    listings: dict[str, list[str]] = {
        path: [] for path, number in names.items() if number == DIRECTORY
    }
    for path in sorted(names):
        if path != ROOT:
            directory, _, name = path.rpartition("/")
            listings[directory].append(name)
    return listings


@lru_cache(maxsize=4096)
def check_path(path: str) -> None:
    """Check that a path is names joined by single slashes.

    Raises:
        ValueError: it is not.
    """
    if path != ROOT and any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(
            f"path {path!r} is not one below the store's root: give names joined by "
            f"single slashes, without '.' and '..'."
        )


def os_error(number: int, path: str, why: str) -> OSError:
    """The ``OSError`` of an errno, with the path and what was wrong."""
    return OSError(number, f"{os.strerror(number)}: {why}", path)
