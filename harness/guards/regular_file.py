"""Reads a whole file that a user names, and only a regular one.

Pipes, sockets, devices and directories are refused at once. So are files such as those
of ``/proc``, which have a length of 0 and some bytes, or no end: reading them could
take for ever.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class NotReadable(ValueError):
    """A path does not lead to a readable regular file; the message says why."""


def read_regular(path: Path, size_max: int) -> bytes:
    """The bytes of a regular file, at most ``size_max``.

    Raises:
        NotReadable: it is none, is larger, or cannot be read.
    """
    try:
        _check_kind(path, path.stat())  # to open some devices is to do something
        handle = os.open(path, _FLAGS)
        try:
            return _contents(handle, path, size_max)
        finally:
            os.close(handle)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise NotReadable(f"{path}: cannot be read: {why}.") from None
    except ValueError as error:
        if isinstance(error, NotReadable):
            raise
        raise NotReadable(f"{str(path)!r}: cannot be the name of a file.") from None


def _check_kind(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise NotReadable(f"{path}: cannot be read: it is {kind}, no regular file.")


def _contents(handle: int, path: Path, size_max: int) -> bytes:
    status = os.fstat(handle)
    _check_kind(path, status)
    if status.st_size > size_max:
        raise NotReadable(f"{path}: has {status.st_size} bytes, at most {size_max}.")
    left, read = status.st_size + 1, []
    while left and (piece := os.read(handle, left)):
        read.append(piece)
        left -= len(piece)
    if not left:
        raise NotReadable(
            f"{path}: has more bytes than the {status.st_size} it says: it is being "
            f"written, or is no file of a disk."
        )
    return b"".join(read)
