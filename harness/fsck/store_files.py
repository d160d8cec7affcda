"""The files of a store directory, opened and mapped for reading alone.

Nothing is created, locked or written: a directory that someone else owns, or that is
the only copy of what broke, can be looked at. A file that shrinks while it is mapped
ends the process; a store that runs is to be copied first.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from crashmq.models.files.config_files import CONFIG_PATHS
from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.sparse import SparseMap
from crashmq.models.files.store_image import Bytes

# Mapping costs more than reading below this, and a process has 65,530 mappings.
_MAPPED_SIZE_MIN = 1 << 18
_JUDGED_FILES = (
    *("checkpoint", DELETED_PATH),
    *CONFIG_PATHS,
)
_FILE_PLACE = re.compile(r"commitlog/\d{20}|consumequeue/[^/]+/\d+/\d{20}|checkpoint")
_JUDGED_DIRS = ("commitlog/", "consumequeue/", "consumequeue_ext/", "index/")


class NotAStore(ValueError):
    """The path is not a readable store directory; the message says why."""


def read_files(root: Path) -> dict[str, Bytes]:
    """Every file below ``root`` by its path; those no law reads are given empty.

    Raises:
        NotAStore: ``root`` is not a directory, holds no log, or cannot be read.
    """
    try:
        if not root.is_dir():
            problem = "is no directory" if root.exists() else "does not exist"
            raise NotAStore(f"{root} {problem}. Give the root directory of a store.")
        if not (root / "commitlog").is_dir():
            raise NotAStore(
                f"{root} has no directory `commitlog`, so it is no store. {_hint(root)}"
            )
        return {
            path: _contents(root / path, path) for path in sorted(_paths_below(root))
        }
    except OSError as error:
        raise NotAStore(
            f"{error.filename or root} cannot be read: {error.strerror}. Make the "
            f"whole store readable for this user, or judge a copy of it."
        ) from error


def _hint(root: Path) -> str:
    """Where the store may be that was meant."""
    for near in (root / "store", root.absolute().parent):
        if (near / "commitlog").is_dir():
            return f"{near} has one: give that."
    if (root / "consumequeue").is_dir():
        return (
            "If its log lies elsewhere, as `storePathCommitLog` can say, link that "
            "folder as `commitlog` into a copy."
        )
    return "Give the directory that `commitlog` and `consumequeue` lie in."


def queue_folders(root: Path) -> tuple[str, ...]:
    """Names of the folders in ``consumequeue``, also of those without a file."""
    folder = root / "consumequeue"
    if not folder.is_dir():
        return ()
    return tuple(sorted(path.name for path in folder.iterdir() if path.is_dir()))


def _paths_below(root: Path) -> Iterator[str]:
    """Paths of the regular files; directories may be links, a loop is entered once.

    A directory that stands where a file has to be is given with a ``/`` at its end.
    """
    entered: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(root, onerror=_raise, followlinks=True):
        # The root of a file system of its own has one that none but root may read.
        folders[:] = sorted(name for name in folders if name != "lost+found")
        for name in folders:
            place = (Path(folder) / name).relative_to(root).as_posix()
            if _FILE_PLACE.fullmatch(place):
                yield f"{place}/"
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in entered:
            folders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        for name in names:
            path = Path(folder) / name
            # A link to nothing is no file; a pipe would never end.
            if path.is_file():
                yield path.relative_to(root).as_posix()


def _raise(error: OSError) -> NoReturn:
    raise error


def _contents(file: Path, path: str) -> Bytes:
    is_judged = path in _JUDGED_FILES or path.startswith(_JUDGED_DIRS)
    if path.endswith("/") or not is_judged:
        return b""
    handle = _opened(file)
    try:
        size = os.fstat(handle).st_size
        if size >= _MAPPED_SIZE_MIN:
            mapped = SparseMap(handle, size, access=mmap.ACCESS_READ)
            mapped.extents = tuple(_extents(handle, size))
            return memoryview(mapped)
        with os.fdopen(handle, "rb", closefd=False) as opened:
            data = opened.read(size + 1)
        if len(data) > size:
            raise NotAStore(
                f"{file} has more bytes than the {size} it says: it is being written, "
                f"or is no file of a disk. Judge a copy of the store."
            )
        return data
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        os.close(handle)


def _opened(file: Path) -> int:
    """A handle for reading, which leaves the time of the last reading where it can."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(file, flags | getattr(os, "O_NOATIME", 0))
    except PermissionError:  # only the owner may ask for that
        return os.open(file, flags)


def _extents(handle: int, size: int) -> Iterator[tuple[int, int]]:
    """The ranges of a file outside which it was never written."""
    end = 0
    while end < size:
        try:
            start = os.lseek(handle, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole up to the end
                return
            raise
        end = os.lseek(handle, start, os.SEEK_HOLE)
        yield start, end
