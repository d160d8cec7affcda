"""Copies of a store's files: data alone, holes stay holes, nothing is overwritten."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from crashmq.harness.fsck.store_files import extents

_CHUNK: Final = 4 << 20
_MARK: Final = ".crashmq-partial"
MADE_AGAIN: Final = frozenset({"consumequeue", "index", "checkpoint", "abort", "lock"})
"""What a rebuild makes, or what no copy needs."""


class CannotRepair(ValueError):
    """It cannot be made again; the message says why, and nothing was changed."""


@contextmanager
def made_whole(out: Path) -> Iterator[Path]:
    """A directory to fill that has its name only once it is filled.

    It lies in ``NAME.partial`` until then, beside a file that says whose that is. What
    an interrupt leaves is that directory; the next one begins again there.

    Raises:
        CannotRepair: ``out`` exists, or something else has the partial's name.
    """
    if os.path.lexists(out):
        raise CannotRepair(f"{out} exists already. Name a directory that does not.")
    partial = out.with_name(f"{out.name}.partial")
    if os.path.lexists(partial):
        if not _is_ours(partial):
            raise CannotRepair(f"{partial} exists and is not ours. Name another place.")
        _remove(partial)
    partial.mkdir(parents=True)
    (partial / _MARK).write_bytes(b"")
    sync_folder(partial)  # or a power loss leaves a store there that is nobody's
    store = partial / "store"
    store.mkdir()
    yield store
    sync_tree(store)
    store.rename(out)
    sync_folder(out.absolute().parent)
    sync_folder(partial)
    _remove(partial)


def _is_ours(partial: Path) -> bool:
    """Whether an interrupt left it, perhaps before it was marked."""
    is_folder = partial.is_dir() and not partial.is_symlink()
    return is_folder and ((partial / _MARK).is_file() or not any(partial.iterdir()))


def _remove(partial: Path) -> None:
    """Remove it so that whatever an interrupt leaves of it is still ours."""
    if (partial / "store").exists():
        shutil.rmtree(partial / "store")
        sync_folder(partial)
    if (partial / _MARK).exists():
        (partial / _MARK).unlink()
    partial.rmdir()


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file's data and length; a hole stays one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    read = os.open(source, flags)
    try:
        size = os.fstat(read).st_size
        written = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.truncate(written, size)
            for start, end in extents(read, size):
                for at in range(start, end, _CHUNK):
                    part = os.pread(read, min(_CHUNK, end - at), at)
                    os.pwrite(written, part, at)
        finally:
            os.close(written)
    finally:
        os.close(read)


def link_file(source: Path, target: Path) -> None:
    """Link a file that is no longer written; copy it where links are not possible."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        copy_file(source, target)


def erase(path: Path, start: int) -> None:
    """Make the bytes from ``start`` on a hole, in a file of the same length."""
    size = path.stat().st_size
    os.truncate(path, start)
    os.truncate(path, size)


def copy_rest(root: Path, out: Path, left_out: Collection[str]) -> None:
    """Copy everything below ``root`` except the top-level names in ``left_out``.

    Only regular files are copied; links are not followed.
    """
    for folder, folders, names in os.walk(root):
        base = Path(folder)
        if base == root:
            folders[:] = sorted({*folders} - {*left_out, "lost+found"})
            names = sorted({*names} - {*left_out})
        for name in names:
            path = base / name
            if path.is_file() and not path.is_symlink():
                copy_file(path, out / path.relative_to(root))


def sync_tree(root: Path) -> None:
    """Make every file and directory below survive a power loss."""
    for folder, _, names in os.walk(root):
        for name in names:
            sync_file(Path(folder) / name)
        sync_folder(Path(folder))


def sync_file(path: Path) -> None:
    """Make a file's bytes and length survive a power loss."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make the entries of a directory survive a power loss."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
