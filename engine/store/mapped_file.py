"""MappedFile: one fixed-size file of a queue, appended to from the front.

It knows bytes and positions; what a record or a unit is belongs to its users.

Source: org.apache.rocketmq.store.logfile.DefaultMappedFile, RocketMQ 5.3. Differs: a
failed write or sync moves no position (there a failed force counts as flushed), and
bytes cut from the end are erased, so that nothing discarded can be read again.
"""

from __future__ import annotations

from engine.host.disk import PAGE_SIZE, Disk, File
from engine.host.probe import probe

_CHUNK = 1024 * 1024

ERASED = probe("mapped_file.erase", "bytes beyond the end of the data were erased")
EXTENDED = probe("mapped_file.extend", "a file shorter than its size was extended")


def file_name(offset: int) -> str:
    """The name of the file that begins at ``offset``: at least 20 digits.

    Source: UtilAll#offset2FileName.
    """
    return f"{offset:020d}"


def is_file_name(name: str) -> bool:
    """Whether a file of a queue can have this name."""
    return name.isascii() and name.isdigit() and file_name(int(name)) == name


class MappedFile:
    """One file, three positions.

    Invariants:
        0 <= flushed <= committed <= wrote <= file_size
        bytes [0, flushed) survive power loss
        bytes [flushed, wrote) survive a process kill, not power loss
        committed equals wrote: there is no buffer before the file
    """

    __slots__ = (
        "_disk",
        "_file",
        "_on_disk_size",
        "committed",
        "file_from_offset",
        "file_size",
        "flushed",
        "flushed_timestamp",
        "path",
        "store_timestamp",
        "wrote",
    )

    def __init__(self, disk: Disk, path: str, file_size: int, *, create: bool) -> None:
        self._disk = disk
        self.path = path
        self.file_size = file_size
        self.file_from_offset = int(path.rpartition("/")[2])
        self._on_disk_size = file_size if create else disk.file_size(path)
        assert self._on_disk_size <= file_size, self
        self._file: File | None = None
        if self._on_disk_size:
            self._file = disk.open(path, self._on_disk_size, create=create, mapped=True)
        self.wrote = self.committed = self.flushed = 0
        self.store_timestamp = self.flushed_timestamp = 0

    def __repr__(self) -> str:
        return (
            f"MappedFile({self.path}, flushed {self.flushed}, committed "
            f"{self.committed}, wrote {self.wrote} of {self.file_size})"
        )

    @property
    def _open_file(self) -> File:
        assert self._file is not None, f"{self}: no byte on disk yet, extend() it"
        return self._file

    def _check(self) -> None:
        assert self.flushed >= 0, self
        assert self.flushed <= self.committed, self
        assert self.committed <= self.wrote, self
        assert self.wrote <= self.file_size, self

    @property
    def end_offset(self) -> int:
        """First offset after the file."""
        return self.file_from_offset + self.file_size

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be appended."""
        return self.wrote == self.file_size

    def append_message(self, data: bytes | bytearray) -> bool:
        """Append bytes at ``wrote``; False, and nothing done, if they do not fit.

        Raises:
            OSError: the position has not moved; what lies beyond it is unknown.

        Source: DefaultMappedFile#appendMessage(byte[]).
        """
        return self.append_declared(data, len(data))

    def append_declared(self, data: bytes | bytearray, declared: int) -> bool:
        """Append bytes but count ``declared``, as the filler of a log file does."""
        if self.wrote + declared > self.file_size:
            return False
        self._open_file.write_at(self.wrote, data)
        self.wrote = self.committed = self.wrote + declared
        self._check()
        return True

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the file; what a short file lacks reads as zeros.

        Raises:
            OSError: the medium could not be read.
        """
        there = self._on_disk_size - position
        if there >= size and self._file is not None:
            return self._file.read_at(position, size)
        if there <= 0:
            return bytes(size)
        return self._open_file.read_at(position, there) + bytes(size - there)

    def set_positions(self, position: int) -> None:
        """Let the data end at ``position``, all of it taken as flushed."""
        self.wrote = self.committed = self.flushed = position
        self._check()

    def is_able_to_flush(self, least_pages: int) -> bool:
        """Whether a flush of at least so many pages has work; 0: of any byte.

        Source: DefaultMappedFile#isAbleToFlush.
        """
        if self.is_full:
            return self.flushed < self.wrote
        if least_pages > 0:
            return self.wrote // PAGE_SIZE - self.flushed // PAGE_SIZE >= least_pages
        return self.wrote > self.flushed

    def flush(self, least_pages: int) -> int:
        """Sync what was written, if there is enough; the flushed position then.

        Raises:
            OSError: the position has not moved, and no later sync may move it.

        Source: DefaultMappedFile#flush.
        """
        if self.is_able_to_flush(least_pages):
            # An append moves wrote, committed, store_timestamp, in this order; so read
            # against it, neither mark gets ahead of what the sync below covers.
            timestamp = self.store_timestamp
            committed = self.committed
            self._open_file.sync()
            if committed > self.flushed:  # else another flush was first
                self.flushed, self.flushed_timestamp = committed, timestamp
            self._check()
        return self.flushed

    def sync(self) -> None:
        """Sync the file whatever its positions say."""
        self._open_file.sync()

    def rewrite(self, start: int, end: int) -> None:
        """Write bytes [start, end) again as they are read.

        A page that a failed sync left behind counts as clean, and no later sync
        writes it; only a new store into it does.
        """
        for at in range(start, end, _CHUNK):
            self._open_file.write_at(at, self.read(at, min(_CHUNK, end - at)))

    def erase(self, start: int) -> None:
        """Let bytes from ``start`` on be zeros, durably, if they are not.

        The file gives them back and gets new ones: zeros stored over them could be
        lost with the power, or left behind by a sync that failed, and what they hid
        would stand behind the data of a later life.
        """
        for at in range(start, self.file_size, _CHUNK):
            chunk = self.read(at, min(_CHUNK, self.file_size - at))
            if chunk != bytes(len(chunk)):
                ERASED.hit()
                self.close()
                self._disk.truncate(self.path, start)
                self._on_disk_size = start
                self.extend()
                self.sync()
                return

    def extend(self) -> None:
        """Give a file that is shorter than its size the bytes it lacks, as zeros."""
        if self._on_disk_size == self.file_size:
            return
        self.close()
        self._disk.truncate(self.path, self.file_size)
        self._file = self._disk.open(
            self.path, self.file_size, create=False, mapped=True
        )
        self._on_disk_size = self.file_size
        EXTENDED.hit()

    @property
    def on_disk_size(self) -> int:
        """Bytes the file has; fewer than ``file_size`` if something cut it."""
        return self._on_disk_size

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def destroy(self) -> None:
        """Close the file and remove it."""
        self.close()
        self._disk.remove(self.path)
