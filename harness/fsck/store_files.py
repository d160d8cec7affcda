"""The files of a store directory, opened and mapped for reading alone.

Nothing is created, locked or written: a directory that someone else owns, or that is
the only copy of what broke, can be looked at. A file that shrinks while it is mapped
ends the process; a store that runs is to be copied first.

Whatever lies there, reading ends: only regular files are opened, side files up to a
bound, and links that leave the directory are told and not followed unless that is asked
for. ``/proc`` and its like are never entered.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NoReturn

from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.recognise import ForeignLayout, NotAStore, recognise
from crashmq.models.files.config_files import CONFIG_PATHS
from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.sparse import SparseMap
from crashmq.models.files.store_image import Bytes, place_of

__all__ = ["NotAStore", "Found", "find_files", "read_files", "queue_folders"]

SIDE_FILE_SIZE_MAX: Final = 32 << 20
"""A table of half a million consumers' offsets has 25 MB."""
_PARTS_MAX: Final = 2_000_000
CHECKPOINT_SIZE_MAX: Final = 1 << 16
_LOCK_SHOWN: Final = 16
PATHS_MAX: Final = 1_000_000
DEPTH_MAX: Final = 16
_MAPPED_SIZE_MIN: Final = 1 << 18
# Mapping costs more than reading below this, and a process has 65,530 mappings.
_MAPPINGS_MAX: Final = 60_000
_SIDE_FILES: Final = frozenset({DELETED_PATH, *CONFIG_PATHS})
_FILE_PLACE: Final = re.compile(
    r"commitlog/\d{20}|consumequeue/[^/]+/\d+/\d{20}|checkpoint"
)
_JUDGED_DIRS: Final = ("commitlog/", "consumequeue/", "consumequeue_ext/", "index/")
_ALONE: Final = ("abort", "lock")
_PSEUDO: Final = ("/proc", "/sys", "/dev")
_MEMORY_DISK: Final = "/dev/shm"
_STORE_PLACES: Final = frozenset(
    {"commitlog", "consumequeue", "index", "config", "checkpoint", DELETED_PATH}
)
_QUEUE_DEPTH: Final = 2  # a topic's folder, and a queue's


@dataclass(frozen=True, slots=True)
class Found:
    """What a directory holds.

    Attributes:
        files: contents by path from the root on; those no law reads are empty.
        folders: names in ``consumequeue``, also of those without a file.
        oddities: (path, what is odd) of what was not read, or not as it stands.
        paths: where each of ``files`` lies.
    """

    files: dict[str, Bytes]
    folders: tuple[str, ...]
    oddities: tuple[tuple[str, str], ...] = ()
    paths: dict[str, Path] = field(default_factory=dict)


@dataclass(slots=True)
class _Reading:
    """One directory being read, and what was odd so far."""

    places: Places
    files: dict[str, Bytes] = field(default_factory=dict)
    odd: list[tuple[str, str]] = field(default_factory=list)
    mappings: int = 0

    def note(self, path: str, what: str) -> None:
        self.odd.append((path, what))


def find_files(places: Places) -> Found:
    """Every file of a store by its path.

    Raises:
        NotAStore: it is no store that can be read.
    """
    root = places.root
    try:
        recognise(places)
        reading = _Reading(places)
        found = dict(_paths_below(root, reading))
        for folder in places.logs:
            _add_log(folder, found, reading)
        for path in sorted(found):
            data = _contents(found[path], path, reading)
            if data is not None:
                reading.files[path] = data
        folders, odd = queue_folders(root), tuple(reading.odd)
        return Found(reading.files, folders, odd, found)
    except OSError as error:
        raise NotAStore(
            f"{error.filename or root} cannot be read: {error.strerror}. Make the "
            f"whole store readable for this user, or judge a copy of it."
        ) from error
    except ValueError as error:
        if isinstance(error, NotAStore):
            raise
        raise NotAStore(f"{str(root)!r} cannot be the name of a directory.") from None


def without_index(found: Found) -> Found:
    """The files but for those of the index."""
    kept = {p: data for p, data in found.files.items() if not p.startswith("index/")}
    return replace(found, files=kept)


def read_files(root: Path) -> dict[str, Bytes]:
    """Every file below ``root`` by its path; those no law reads are given empty.

    Raises:
        NotAStore: ``root`` is not a directory, holds no log, or cannot be read.
    """
    return find_files(Places(root)).files


def queue_folders(root: Path) -> tuple[str, ...]:
    """Names of the folders in ``consumequeue``, also of those without a file.

    One with nothing in it is what RocketMQ 4.9 leaves of a topic that was deleted.
    """
    folder = root / "consumequeue"
    if not folder.is_dir():
        return ()
    found = [path for path in folder.iterdir() if path.is_dir()]
    return tuple(sorted(path.name for path in found if any(path.iterdir())))


def _add_log(folder: Path, found: dict[str, Path], reading: _Reading) -> None:
    """The log files of one of several directories; of two of a name the first."""
    for file in sorted(folder.iterdir()):
        path = f"commitlog/{file.name}"
        if not file.is_file():
            continue
        if path in found:
            reading.note(path, f"is in {found[path].parent} and in {folder} too")
        else:
            found[path] = file


def _paths_below(root: Path, reading: _Reading) -> Iterator[tuple[str, Path]]:
    """(path from the root, file) of the regular files; a loop is entered once.

    A directory that stands where a file has to be is given with a ``/`` at its end.
    """
    entered: set[tuple[int, int]] = set()
    count = 0
    home = os.path.realpath(root)
    for folder, folders, names in os.walk(root, onerror=_raise, followlinks=True):
        base = Path(folder)
        # The root of a file system of its own has one that none but root may read.
        folders[:] = sorted(name for name in folders if name != "lost+found")
        for name in [*folders]:
            place = (base / name).relative_to(root).as_posix()
            if place in _ALONE:
                reading.note(place, "is a directory")
                yield f"{place}/", base / name
                folders.remove(name)
            elif _FILE_PLACE.fullmatch(place):
                yield f"{place}/", base / name
            elif _is_foreign_folder(place) and _is_passed_over(place):
                yield f"{place}/", base / name
                folders.remove(name)
            elif place.count("/") >= DEPTH_MAX:
                reading.note(place, "lies too deep, and is not read")
                folders.remove(name)
            elif (base / name).is_symlink() and not _may_follow(
                base / name, place, home, reading
            ):
                folders.remove(name)
        status = base.stat()
        if (status.st_dev, status.st_ino) in entered:
            folders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        for name in sorted(names):
            count += 1
            if count > PATHS_MAX:
                raise NotAStore(f"{root} has more than {PATHS_MAX:,} files.")
            path = base / name
            place = path.relative_to(root).as_posix()
            if _is_readable_file(path, place, home, reading):
                yield place, path


def _is_passed_over(place: str) -> bool:
    """Whether a foreign folder is told by its name: whatever is in it, nothing reads.

    Among index files RocketMQ passes over all whose name is no number.

    A snapshot of a file system, or a copy that somebody left, may be larger than the
    store, or not readable at all.
    """
    top, _, rest = place.partition("/")
    return top in ("commitlog", "index") if rest else top != "consumequeue"


def _is_foreign_folder(place: str) -> bool:
    top, _, name = place.partition("/")
    if top == "index" and name:
        return not name.isdecimal()
    return place_of(f"{place}/x").kind == "foreign"


def _may_follow(path: Path, place: str, home: str, reading: _Reading) -> bool:
    """Whether a link to a file or a directory is followed; if not, it is told."""
    target = os.path.realpath(path)
    if _is_below(target, home):
        return True
    is_pseudo = any(_is_below(target, pseudo) for pseudo in _PSEUDO)
    if is_pseudo and not _is_below(target, _MEMORY_DISK):
        reading.note(place, f"is a link to {target}, which is no file of a disk")
        return False
    if reading.places.follow_links:
        return True
    if _is_of_the_store(place, path):
        raise ForeignLayout(
            f"{path} is a link out of the directory, to {target}. Add --follow-links "
            f"if that is this store's."
        )
    reading.note(
        place,
        f"is a link out of the directory, to {target}, and is not followed; "
        f"--follow-links reads it",
    )
    return False


def _is_of_the_store(place: str, path: Path) -> bool:
    """Whether the store's owner reads what a link leads to: then it is part of it."""
    if place in _STORE_PLACES:
        return True
    top, _, rest = place.partition("/")
    if top == "config" or (top == "index" and not path.is_dir()):
        return place in _SIDE_FILES or (top == "index" and rest.isdecimal())
    if top == "consumequeue" and rest.count("/") < _QUEUE_DEPTH:
        return path.is_dir()
    return place_of(place).kind in ("log", "queue")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_readable_file(path: Path, place: str, home: str, reading: _Reading) -> bool:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            if not path.exists():
                reading.note(place, "is a link that leads nowhere")
                # Its owner takes it for a file without a byte.
                return place_of(place).kind in ("log", "queue")
            if not _may_follow(path, place, home, reading):
                return False
            mode = path.stat().st_mode
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOENT, errno.EACCES):
            raise
        reading.note(place, "is a link that leads nowhere")
        return False
    if stat.S_ISREG(mode):
        return True
    if not stat.S_ISDIR(mode):
        # A pipe would never end, and to open some devices is to do something.
        reading.note(place, "is no regular file, and is not read")
    return False


def _raise(error: OSError) -> NoReturn:
    raise error


def _contents(file: Path, path: str, reading: _Reading) -> Bytes | None:
    """What a file holds; empty if no law reads it, None if it cannot be a file."""
    is_side = path in _SIDE_FILES
    is_judged = is_side or path == "checkpoint" or path.startswith(_JUDGED_DIRS)
    if path == "lock":
        return _beginning(file)
    if path.endswith("/") or not is_judged or not file.exists():
        return b""
    handle = _opened(file)
    try:
        size = os.fstat(handle).st_size
        limit = SIDE_FILE_SIZE_MAX if is_side else CHECKPOINT_SIZE_MAX
        if (is_side or path == "checkpoint") and size > limit:
            reading.note(path, f"has {size:,} bytes; {limit:,} of them are read")
            return os.pread(handle, limit, 0)
        if size >= _MAPPED_SIZE_MIN and reading.mappings < _MAPPINGS_MAX:
            reading.mappings += 1
            mapped = SparseMap(handle, size, access=mmap.ACCESS_READ)
            mapped.extents = tuple(extents(handle, size))
            return memoryview(mapped)
        with os.fdopen(handle, "rb", closefd=False) as opened:
            data = opened.read(size + 1)
        if len(data) > size:
            raise NotAStore(
                f"{file} has more bytes than the {size} it says: it is being written, "
                f"or is no file of a disk. Judge a copy of the store."
            )
        if is_side and sum(map(data.count, (b"[", b"{", b","))) > _PARTS_MAX:
            reading.note(path, f"has more than {_PARTS_MAX:,} values, and is not read")
            return b""
        return data
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        os.close(handle)


def _beginning(file: Path) -> bytes:
    """What the lock file begins with: RocketMQ writes a word there."""
    handle = _opened(file)
    try:
        return os.pread(handle, _LOCK_SHOWN, 0)
    finally:
        os.close(handle)


def _opened(file: Path) -> int:
    """A handle for reading, which leaves the time of the last reading where it can."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(file, flags | getattr(os, "O_NOATIME", 0))
    except PermissionError:  # only the owner may ask for that
        return os.open(file, flags)


def extents(handle: int, size: int) -> Iterator[tuple[int, int]]:
    """The ranges of a file that were written; what lies between is a hole.

    Where the file system cannot tell, zeros may be in a range.
    """
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
