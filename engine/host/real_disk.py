"""RealDisk: the port to files over ``os`` and ``mmap``.

A mapped file is written through its mapping, any other by pwrite. Both are synced by
fdatasync, which also syncs pages made dirty through a shared mapping and, unlike msync
as Python offers it, lets other threads run meanwhile. Space is allocated when a file is
created, so that no later write can fail on a full disk. A disk opened read only refuses
every call that could change a byte.

Paths are checked as text: none leaves the root through ``..``. A symbolic link inside
the root is followed, since a broker's directories may be links to other volumes.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
from pathlib import Path
from typing import TypeAlias

from crashmq.engine.host.disk import Usage, examine_by_reading

_Inode: TypeAlias = tuple[int, int]  # device, number
_SHUT = -1  # as a limit it turns every range away


class RealFile:
    """One open file, through a mapping or through its descriptor."""

    __slots__ = ("_disk", "_fd", "_inode", "_limit", "_map", "_path", "size")

    def __init__(self, disk: RealDisk, path: str, fd: int, *, mapped: bool) -> None:
        found = os.fstat(fd)
        self.size = found.st_size
        self._limit = found.st_size
        self._disk = disk
        self._fd = fd
        self._inode: _Inode = (found.st_dev, found.st_ino)
        self._path = path
        self._map: mmap.mmap | None = None
        if mapped and self.size:  # a mapping cannot be empty
            access = mmap.ACCESS_READ if disk.read_only else mmap.ACCESS_WRITE
            self._map = mmap.mmap(fd, self.size, access=access)
        disk.note_open(self._inode, +1)

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes [offset, offset + size), all of them."""
        self._check_range(offset, size)
        if self._map is not None:
            return self._map[offset : offset + size]
        parts: list[bytes] = []
        while size:
            part = os.pread(self._fd, size, offset)
            if not part:
                raise OSError(errno.EIO, f"no bytes at {offset}: it shrank", self._path)
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return b"".join(parts)

    examine = examine_by_reading

    def write_at(self, offset: int, data: bytes | bytearray) -> None:
        """Overwrite bytes from ``offset`` on; see ``File``."""
        end = offset + len(data)
        if offset < 0 or end > self._limit:
            self._check_range(offset, len(data))
        if self._disk.read_only:
            self._disk.check_writable("write to", self._path)
        if self._map is not None:
            self._map[offset:end] = data
            return
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._fd, rest, offset)
            offset += written
            rest = rest[written:]

    def sync(self) -> None:
        """Make every byte written so far, and the file's size, survive power loss."""
        self._check_range(0, 0)
        self._disk.check_writable("sync", self._path)
        os.fdatasync(self._fd)

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._limit == _SHUT:
            return
        self._limit = _SHUT
        self._disk.note_open(self._inode, -1)
        if self._map is not None:
            self._map.close()
        os.close(self._fd)

    def _check_range(self, offset: int, size: int) -> None:
        if self._limit == _SHUT:
            raise ValueError(f"file {self._path} is closed; open it again first.")
        if offset < 0 or size < 0 or offset + size > self._limit:
            raise ValueError(
                f"bytes [{offset}, {offset + size}) leave file {self._path} of "
                f"{self.size} bytes. Keep the range inside the file."
            )


class RealLock:
    """An exclusive lock on one file: flock and a POSIX record lock together.

    flock excludes other stores in the same process too; the record lock on the first
    byte is that of Java's ``FileChannel.lock``, so it excludes a running RocketMQ
    broker.
    """

    __slots__ = ("_fd",)

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except OSError as error:
            self.release()
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            held = "another store holds the lock; stop it first"
            raise BlockingIOError(errno.EAGAIN, held, str(path)) from None

    def release(self) -> None:
        """Release the lock, so that another store can take it. Idempotent."""
        fd, self._fd = self._fd, _SHUT
        if fd != _SHUT:
            os.close(fd)


class RealDisk:
    """The directory tree below ``root``, which must exist.

    Args:
        root: the store's directory.
        read_only: refuse every changing call with ``PermissionError``.
    """

    def __init__(self, root: Path, *, read_only: bool = False) -> None:
        self.root = root
        self.read_only = read_only
        self._open_counts: dict[_Inode, int] = {}

    def open(self, path: str, size: int, *, create: bool, mapped: bool) -> RealFile:
        """Open a file of exactly ``size`` bytes, making it if asked to."""
        if size < 0:
            raise ValueError(f"cannot open {path} of {size} bytes; give a size >= 0.")
        full = self._full(path)
        if create and not self.exists(path):
            self.check_writable("create", path)
            self._create(full, size)
        fd = self._open_existing(full)
        try:
            self._check_kind_and_size(fd, path, size)
            return RealFile(self, path, fd, mapped=mapped)
        except OSError:
            os.close(fd)
            raise

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this path, or a link that leads nowhere.

        A file cannot be made in the place of such a link.
        """
        full = self._full(path)
        return full.is_symlink() or full.exists()

    def is_dir(self, path: str) -> bool:
        """Whether a directory has this path."""
        return self._full(path).is_dir()

    def list_dir(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        return sorted(entry.name for entry in self._full(path).iterdir())

    def file_size(self, path: str) -> int:
        """Bytes in a file."""
        return self._file_stat(path).st_size

    def mtime_ms(self, path: str) -> int:
        """When the bytes of a file last changed, by the wall clock."""
        return self._file_stat(path).st_mtime_ns // 1_000_000

    def usage(self) -> Usage:
        """How full the file system is, as ``df`` shows it."""
        found = os.statvfs(self.root)
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        # What only root may still fill counts neither as used nor as free.
        return Usage(used, used + found.f_bavail * found.f_frsize)

    def truncate(self, path: str, size: int) -> None:
        """Set the size of a file no one holds open; new space is allocated."""
        found = self._file_stat(path)
        if size < 0:
            raise ValueError(f"cannot cut {path} to {size} bytes; give a size >= 0.")
        if (found.st_dev, found.st_ino) in self._open_counts:
            raise ValueError(f"cannot resize {path} while it is open; close it first.")
        self.check_writable("resize", path)
        fd = os.open(self._full(path), os.O_RDWR | os.O_CLOEXEC)
        try:
            _resize(fd, found.st_size, size)
        finally:
            os.close(fd)

    def rename(self, source: str, target: str) -> None:
        """Give a file another path; a file at ``target`` is replaced at once."""
        self._file_stat(source)
        self._check_not_root(target)
        if self.is_dir(target):
            raise _is_a_directory(target)
        self.check_writable("rename", source)
        self._full(source).replace(self._full(target))

    def remove(self, path: str) -> None:
        """Remove a file, or a link to one, wherever it leads."""
        if not self._full(path).is_symlink():
            self._file_stat(path)
        self.check_writable("remove", path)
        self._full(path).unlink()

    def make_dir(self, path: str) -> None:
        """Make one directory."""
        self.check_writable("make", path)
        self._full(path).mkdir()

    def remove_dir(self, path: str) -> None:
        """Remove one empty directory."""
        self._check_not_root(path)
        self.check_writable("remove", path)
        self._full(path).rmdir()

    def sync_dir(self, path: str) -> None:
        """Make the entries of this directory survive power loss."""
        self.check_writable("sync", path)
        fd = os.open(self._full(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> RealLock:
        """Hold ``path`` exclusively; the file is made if absent."""
        self.check_writable("lock", path)
        return RealLock(self._full(path))

    def check_writable(self, verb: str, path: str) -> None:
        """Check that this disk may be changed.

        Raises:
            PermissionError: EROFS; it was opened read only.
        """
        if self.read_only:
            raise PermissionError(
                errno.EROFS, f"cannot {verb} it: the disk was opened read only", path
            )

    def note_open(self, inode: _Inode, change: int) -> None:
        """Count the open handles of a file: an open file must not be resized."""
        count = self._open_counts.pop(inode, 0) + change
        if count:
            self._open_counts[inode] = count

    def _full(self, path: str) -> Path:
        parts = path.split("/") if path else []
        if any(part in ("", ".", "..") for part in parts):
            raise ValueError(
                f"path {path!r} is not one below the store's root: give names joined "
                f"by single slashes, without '.' and '..'."
            )
        return self.root.joinpath(*parts)

    def _file_stat(self, path: str) -> os.stat_result:
        found = self._full(path).stat()
        if stat.S_ISDIR(found.st_mode):
            raise _is_a_directory(path)
        return found

    def _check_not_root(self, path: str) -> None:
        if not path:
            raise ValueError('the path "" is the root itself; give a name below it.')

    def _open_existing(self, full: Path) -> int:
        access = os.O_RDONLY if self.read_only else os.O_RDWR
        return os.open(full, access | os.O_CLOEXEC)

    def _check_kind_and_size(self, fd: int, path: str, size: int) -> None:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            raise _is_a_directory(path)
        if found.st_size != size:
            raise OSError(
                errno.EINVAL,
                f"it has {found.st_size} bytes and {size} were asked for",
                path,
            )

    def _create(self, full: Path, size: int) -> None:
        fd = os.open(full, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            _resize(fd, 0, size)
        except OSError:
            full.unlink()
            raise
        finally:
            os.close(fd)


def _resize(fd: int, old_size: int, size: int) -> None:
    """Cut a file or allocate space for it; after an error its size is as before."""
    if size <= old_size:
        os.ftruncate(fd, size)
        return
    try:
        os.posix_fallocate(fd, old_size, size - old_size)
    except OSError:
        os.ftruncate(fd, old_size)
        raise


def _is_a_directory(path: str) -> OSError:
    return OSError(errno.EISDIR, "it is a directory; a file is needed", path)
