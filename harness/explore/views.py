"""Views: what a store will find on a disk, as small keys that are equal if it is.

A view is every path, its time and its bytes. Contents are given numbers, each once, so
that a key is a short tuple and two crashes that leave the same files are seen to. What
neither a store nor the judge ever reads has no part in it: of ``lock`` and ``abort``
only that they are there (``tests/harness/test_explore_views.py`` holds the engine to
that).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from harness.disk.inode import Inode
from harness.disk.namespace import DIRECTORY
from models.image.record import Bytes
from models.store_image import StoreImage, read_store

View: TypeAlias = tuple[int, ...]

NEVER_READ = frozenset({"lock", "abort"})
_IMAGES_MAX = 4096


class Views:
    """The numbers given so far, and the images decoded so far."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._images: dict[tuple[tuple[str, int], ...], StoreImage] = {}

    def number(self, value: Hashable) -> int:
        """The number of a value; equal values have the same one."""
        return self._numbers.setdefault(value, len(self._numbers))

    def content(self, paths: Sequence[str], content: bytes) -> int:
        """The number of a file's bytes; 0 if nobody reads them."""
        return 0 if paths[0] in NEVER_READ else self.number(content) + 1

    def of(self, names: Mapping[str, int], inodes: Mapping[int, Inode]) -> View:
        """The view of a disk as readers see it."""
        paths: dict[int, list[str]] = {}
        for path, number in sorted(names.items()):
            paths.setdefault(number, []).append(path)
        directories = tuple(paths.pop(DIRECTORY, ()))
        frame: list[Hashable] = [directories]
        contents = []
        for number, known_by in paths.items():
            inode = inodes[number]
            frame.append((tuple(known_by), inode.mtime_ms))
            contents.append(self.content(known_by, inode.content()))
        return (self.number(tuple(frame)), *contents)

    def read(
        self, files: Mapping[str, Bytes], previous: StoreImage | None = None
    ) -> StoreImage:
        """The image of files, decoded once for all who see the same ones."""
        numbers = self._numbers
        key = tuple(
            [
                (path, numbers.setdefault(data, len(numbers)))
                for path, data in files.items()
            ]
        )
        image = self._images.get(key)
        if image is None:
            if len(self._images) >= _IMAGES_MAX:
                self._images.clear()
            image = self._images[key] = read_store(files, previous)
        return image
