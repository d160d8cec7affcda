"""State keys: small keys for what a store finds on a disk, equal if that is equal.

A state key is a *frame* (every path, time and size) with each file's bytes and
unreadable sectors. Each content gets a number once, so that a key is a short tuple and
crashes that leave the same files are recognised. What neither a store nor the judge
ever reads is left out: of ``lock`` and ``abort`` only that they exist
(``tests/harness/test_explore_state_key.py`` checks that the engine keeps to it).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeAlias

from crashmq.harness.disk.inode import Inode
from crashmq.harness.disk.namespace import DIRECTORY
from crashmq.models.files.message_delay_level import DEFAULT_LEVELS, DelayLevels
from crashmq.models.files.record import Bytes
from crashmq.models.files.store_image import StoreImage, read_store

StateKey: TypeAlias = tuple[int, ...]

NEVER_READ = ("abort", "lock")
_IMAGES_SIZE_MAX = 256 * 1024 * 1024  # by the largest file; the others are shared
_KEPT_MAX = 8192
"""Larger contents are known by their digest: thousands of them fill the memory."""


class StateKeys:
    """The numbers given so far, and the images decoded so far."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._images: dict[tuple[Hashable, ...], StoreImage] = {}
        self._size = 0

    def number(self, value: Hashable) -> int:
        """The number of a value; equal values have the same one."""
        return self._numbers.setdefault(value, len(self._numbers))

    def content(
        self, paths: Sequence[str], content: bytes, bad: frozenset[int] = frozenset()
    ) -> int:
        """The number of a file's content; 0 if no start ever reads it.

        Sectors in ``bad`` cannot be read; which they are is part of the content.
        """
        if paths[0] in NEVER_READ:
            return 0
        known = _known_by(content)
        return self.number((known, bad) if bad else known) + 1

    def frame(
        self,
        directories: tuple[str, ...],
        files: Iterable[tuple[tuple[str, ...], int, int]],
        foreign_size: int,
        *,
        has_bad: bool,
    ) -> int:
        """The number of everything but the files' bytes.

        Args:
            directories: their paths.
            files: each file's paths, time and length.
            foreign_size: bytes that foreign files take of the disk.
            has_bad: whether there may be unreadable sectors.
        """
        told = [
            (paths, mtime_ms, 0 if paths[0] in NEVER_READ else size)
            for paths, mtime_ms, size in files
        ]
        return self.number((directories, foreign_size, has_bad, *told))

    def of(
        self,
        names: Mapping[str, int],
        inodes: Mapping[int, Inode],
        foreign_size: int = 0,
        has_bad: bool = False,
    ) -> StateKey:
        """The key of a disk as readers see it; arguments as for ``SimDisk.seen``."""
        paths: dict[int, list[str]] = {}
        for path, number in sorted(names.items()):
            paths.setdefault(number, []).append(path)
        directories = tuple(paths.pop(DIRECTORY, ()))
        files: list[tuple[tuple[str, ...], int, int]] = []
        contents = []
        for number, known_by in paths.items():
            inode = inodes[number]
            files.append((tuple(known_by), inode.mtime_ms, len(inode.cache)))
            bad = inode.unreadable_sectors() if has_bad else inode.bad
            contents.append(self.content(known_by, inode.content(), bad))
        frame = self.frame(directories, files, foreign_size, has_bad=has_bad)
        return (frame, *contents)

    def read(
        self,
        files: Mapping[str, Bytes],
        previous: StoreImage | None = None,
        levels: DelayLevels = DEFAULT_LEVELS,
    ) -> StoreImage:
        """The image of files by these delay levels, decoded once for all equal ones."""
        key = (
            levels,
            *[(path, self.number(_known_by(data))) for path, data in files.items()],
        )
        image = self._images.get(key)
        if image is None:
            self._size += max(map(len, files.values()), default=0)
            if self._size > _IMAGES_SIZE_MAX:
                self._images.clear()
                self._size = 0
            image = self._images[key] = read_store(files, previous, levels)
        return image


def _known_by(content: Bytes) -> Hashable:
    """The key of a content: the bytes themselves, or the digest of a large one."""
    if len(content) <= _KEPT_MAX:
        return content
    return len(content), blake2b(content, digest_size=16).digest()
