"""What a directory is, before any file of it is read.

A store that its owner has open is told by its lock, which is asked for and never taken:
RocketMQ and this store hold one on the file ``lock``.

Source: DefaultMessageStore#start, ``lockFile.getChannel().tryLock(0, 1, false)``.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Final

from crashmq.harness.fsck.places import Places

_FLOCK: Final = struct.Struct("hhqqi4x")  # l_type, l_whence, l_start, l_len, l_pid
_LOCKS: Final = Path("/proc/locks")
_LOCKS_SIZE_MAX: Final = 1 << 20
_LEVELS: Final = 3  # a queue's folder lies so far below its store
_LOOKED_AT_MAX: Final = 200


class NotAStore(ValueError):
    """The path is not a readable store directory; the message says why.

    ``word`` is what the report begins with.
    """

    word = "NOT A STORE"


class ForeignLayout(NotAStore):
    """A store in files that this program does not read."""

    word = "FOREIGN LAYOUT"


class StoreRuns(NotAStore):
    """A process has the store open, so reading it gives no consistent state."""

    word = "RUNNING"


def recognise(places: Places) -> None:
    """Look at the directory and its lock alone.

    Raises:
        NotAStore: it is absent, unreadable or no store.
        ForeignLayout: it is a store of another layout.
        StoreRuns: a process holds its lock.
        OSError: a directory cannot be looked at.
    """
    root = places.root
    if not root.is_dir():
        problem = "is no directory" if root.exists() else "does not exist"
        raise NotAStore(f"{root} {problem}. Give the root directory of a store.")
    if holder := lock_holder(root / "lock"):
        raise StoreRuns(
            f"{root} is in use: {holder} holds its file `lock`. Shut the broker down, "
            f"or judge a copy of the directory."
        )
    if places.layout:
        raise ForeignLayout(f"{root}: {places.layout}, which nothing here reads.")
    for folder in places.logs:
        if not folder.is_dir():
            raise NotAStore(f"{folder} is no directory. Name the one of the log.")
    if not places.logs and not (root / "commitlog").is_dir():
        near = _store_near(root)
        if near is None and not os.path.lexists(root / "commitlog"):
            _tell_other_layouts(root)
        hint = "Give the directory that `commitlog` and `consumequeue` lie in."
        if near is not None:
            hint = f"{near} has one: give that."
        raise NotAStore(
            f"{root} has no directory `commitlog`, so it is no store. {hint}"
        )
    _tell_ledger(root, places)


def _tell_other_layouts(root: Path) -> None:
    if ledgers := _ledgers(root):
        raise ForeignLayout(
            f"{root} has {ledgers[0]}: DLedger keeps this log, in entries that nothing "
            f"here reads. Use a replica with a plain log."
        )
    if (root / "consumequeue").is_dir():
        raise ForeignLayout(
            f"{root} has queues and no directory `commitlog`: its log lies elsewhere, "
            f"as `storePathCommitLog` can say. Name it with --commitlog PATH, or the "
            f"broker's configuration with --broker-conf FILE."
        )


def _tell_ledger(root: Path, places: Places) -> None:
    """DLedger beside an empty ``commitlog``; one with files is a store's own."""
    ledgers = _ledgers(root)
    has_log = any(any(folder.iterdir()) for folder in places.log_folders)
    if ledgers and not has_log:
        raise ForeignLayout(
            f"{root} has {ledgers[0]} and no log file: DLedger keeps this log, in "
            f"entries that nothing here reads."
        )


def _ledgers(root: Path) -> list[str]:
    return sorted(path.name for path in root.glob("dledger-*") if path.is_dir())


def _store_near(root: Path) -> Path | None:
    """The store that may be meant: the nearest some levels below, or above."""
    near = chain(_levels_below(root), root.absolute().parents[:_LEVELS])
    return next((path for path in near if (path / "commitlog").is_dir()), None)


def _levels_below(root: Path) -> Iterator[Path]:
    """Folders below, the nearest first, as far as they can be read."""
    level = [root]
    for _ in range(_LEVELS):
        below = list[Path]()
        for folder in level:
            with suppress(OSError):
                found = sorted(islice(folder.iterdir(), _LOOKED_AT_MAX))
                below += [p for p in found if p.is_dir() and not p.is_symlink()]
        level = below[:_LOOKED_AT_MAX]
        yield from level


def lock_holder(path: Path) -> str:
    """The process that holds a lock on the file, as ``process 123``; "" without one.

    No lock is tried. The kernel's list is asked first: a process that closes a file
    gives up its own locks on it. F_GETLK then sees what a file system lists elsewhere.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return ""
        if told := _holder_told(status):
            return told
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""  # no lock file, or none that we may read
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(handle, fcntl.F_GETLK, asked)
        kind, _, _, _, process = _FLOCK.unpack(answer)
    except OSError:
        kind, process = fcntl.F_UNLCK, 0
    finally:
        os.close(handle)
    if kind != fcntl.F_UNLCK:
        return f"process {process}" if process > 0 else "a process"
    return ""


def _holder_told(status: os.stat_result) -> str:
    """The holder of any lock on a file by the kernel's list."""
    major, minor = os.major(status.st_dev), os.minor(status.st_dev)
    wanted = f"{major:02x}:{minor:02x}:{status.st_ino}"
    try:
        with _LOCKS.open() as file:
            lines = file.read(_LOCKS_SIZE_MAX).splitlines()
    except OSError:
        return ""
    for line in lines:
        parts = line.split()
        if "->" not in parts and len(parts) > 5 and parts[5] == wanted:
            is_known = parts[4].isdecimal() and parts[4] != "0"
            return f"process {parts[4]}" if is_known else "a process"
    return ""
