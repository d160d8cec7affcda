"""MappedFile: one fixed-size file of a queue, appended to from the front.

It knows bytes and positions; records and units belong to its users. With a write
buffer, appends go to the buffer and a commit writes them to the file.

Source: org.apache.rocketmq.store.logfile.DefaultMappedFile, RocketMQ 5.3. Differs: a
failed write or sync moves no position (in RocketMQ a failed force counts as flushed),
nor does a sync of a file that is being destroyed; reads end at the committed position
only where there is a buffer; and bytes cut from the end are erased, so that discarded
bytes are never read again.
"""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.host.disk import PAGE_SIZE, Disk, File, T, Terms
from crashmq.engine.host.probe import probe
from crashmq.engine.store.logfile.reference_resource import ReferenceResource
from crashmq.engine.store.logfile.transient_store_pool import TransientStorePool
from crashmq.engine.store.unreadable import (
    SECTOR_SIZE,
    TAKEN_FOR_ZEROS,
    examined,
    is_unreadable,
    sectors_of,
    with_zeros,
)

_CHUNK = 1024 * 1024

ERASED = probe("mapped_file.erase", "bytes beyond the end of the data were erased")
EXTENDED = probe("mapped_file.extend", "a file shorter than its size was extended")
COMMITTED = probe("mapped_file.commit", "bytes went from a write buffer to the file")
COMMIT_FAILED = probe(
    "mapped_file.commit.failed", "a write of a buffer failed; it is repeated"
)
FLUSHED_GONE = probe(
    "mapped_file.flush.gone",
    "a flush met a closed file",
    unreachable=(
        "a file goes once all of it is flushed, and flushes have one lock: "
        "nobody flushes between the two lines"
    ),
)
READ_GONE = probe("mapped_file.read.gone", "a read met a closed file")


def file_name(offset: int) -> str:
    """The name of the file that begins at ``offset``: at least 20 digits.

    Source: UtilAll#offset2FileName.
    """
    return f"{offset:020d}"


def is_file_name(name: str) -> bool:
    """Whether a file of a MappedFileQueue can have this name."""
    return name.isascii() and name.isdigit() and file_name(int(name)) == name


def is_number(name: str) -> bool:
    """Whether RocketMQ takes a name for an offset, although a store never writes it so.

    Source: DefaultMappedFile#init, ``Long.parseLong``.
    """
    return name.isascii() and name.isdigit() and not is_file_name(name)


def _are_zeros(data: bytes, size: int) -> bool:
    return data == bytes(size)


class MappedFile(ReferenceResource):
    """One file with three positions.

    Bytes [0, flushed) survive power loss; [flushed, committed) survive a process kill;
    [committed, wrote) survive neither, and without a buffer there are none.

    Invariants:
        0 <= flushed <= committed <= wrote <= file_size
    """

    __slots__ = (
        "_buffer",
        "_buffered",
        "_committed_timestamp",
        "_disk",
        "_file",
        "_on_disk_size",
        "_pool",
        "committed",
        "file_from_offset",
        "file_size",
        "flushed",
        "flushed_timestamp",
        "known_lost",
        "may_lose",
        "path",
        "store_timestamp",
        "wrote",
    )

    def __init__(
        self,
        disk: Disk,
        path: str,
        file_size: int,
        *,
        create: bool,
        pool: TransientStorePool | None = None,
    ) -> None:
        super().__init__()
        self._disk = disk
        self.path = path
        self.file_size = file_size
        self.file_from_offset = int(path.rpartition("/")[2])
        self._on_disk_size = file_size if create else disk.file_size(path)
        assert self._on_disk_size <= file_size, self
        self._file: File | None = None
        self._pool = pool
        self._buffer = pool.borrow_buffer() if pool is not None else None
        self._buffered = 0  # bytes of the buffer that were appended, fillers' rest not
        self.may_lose = False
        self.known_lost: set[int] = set()
        self.wrote = self.committed = self.flushed = 0
        self.store_timestamp = self.flushed_timestamp = self._committed_timestamp = 0
        if self._on_disk_size:
            self._open(create=create)

    def _open(self, *, create: bool) -> None:
        """Open the file; mapped only without a buffer, so that a commit writes."""
        mapped = self._buffer is None
        try:
            self._file = self._disk.open(
                self.path, self._on_disk_size, create=create, mapped=mapped
            )
        except OSError:
            self._return_buffer()
            raise

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
        assert 0 <= self.flushed <= self.committed <= self.wrote <= self.file_size, self

    @property
    def end_offset(self) -> int:
        """First offset after the file."""
        return self.file_from_offset + self.file_size

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be appended."""
        return self.wrote == self.file_size

    def append_message(self, data: bytes | bytearray) -> bool:
        """Append bytes at ``wrote``; return False, with no change, if they do not fit.

        Raises:
            OSError: the position has not moved; what lies beyond it is unknown.

        Source: DefaultMappedFile#appendMessage(byte[]).
        """
        return self.append_declared(data, len(data))

    def append_declared(self, data: bytes | bytearray, declared: int) -> bool:
        """Append bytes but advance by ``declared`` bytes, as for a log file's BLANK."""
        start = self.wrote
        if start + declared > self.file_size:
            return False
        if self._buffer is None:
            self._open_file.write_at(start, data)
            self.wrote = self.committed = start + declared
        else:
            self._buffer[start : start + len(data)] = data
            self._buffered = start + len(data)
            self.wrote = start + declared
        self._check()
        return True

    @property
    def has_buffer(self) -> bool:
        """Whether appends go to a buffer, and can be read only after a commit."""
        return self._buffer is not None

    def is_able_to_commit(self, least_pages: int) -> bool:
        """Whether at least ``least_pages`` pages wait for a commit; 0: any byte.

        Source: DefaultMappedFile#isAbleToCommit.
        """
        return self._is_enough(self.committed, self.wrote, least_pages)

    def commit(self, least_pages: int) -> int:
        """Write the buffer's bytes if there are enough; returns the committed position.

        The caller runs one commit at a time.

        Raises:
            OSError: the position has not moved; the next commit writes it all again.

        Source: DefaultMappedFile#commit, which counts a short write as a whole one.
        """
        buffer = self._buffer
        if buffer is None or not self.is_able_to_commit(least_pages):
            return self.committed
        # An append moves _buffered, wrote, store_timestamp, in this order.
        timestamp, wrote = self.store_timestamp, self.wrote
        end = min(wrote, self._buffered)
        try:
            if end > self.committed:
                self._open_file.write_at(self.committed, buffer[self.committed : end])
        except OSError:
            COMMIT_FAILED.hit()
            raise
        COMMITTED.hit()
        self._committed_timestamp, self.committed = timestamp, wrote
        self._check()
        if self.committed == self.file_size:
            self._return_buffer()
        return self.committed

    def _return_buffer(self) -> None:
        buffer, self._buffer = self._buffer, None
        if buffer is not None and self._pool is not None:
            self._pool.return_buffer(buffer)

    def read(self, position: int, size: int) -> bytes:
        """Read bytes of the file; bytes that a short file lacks are zeros.

        Returns b"" once the file is closed: it was deleted, or the store has stopped.
        Unreadable sectors are read as zeros in two cases: ``may_lose`` says that the
        data can be built again; or the sector was unreadable whenever it was read. A
        sector that was read once never becomes zeros.

        Raises:
            OSError: the medium could not be read.
        """
        if not self.hold():
            READ_GONE.hit()
            return b""
        try:
            data = self._read(position, size)
            if self.known_lost:
                self.known_lost -= sectors_of(position, size)
            return data
        except OSError as error:
            return self._read_around(error, position, size)
        finally:
            self.release()

    def examine(
        self,
        position: int,
        size: int,
        of: Callable[[bytes, *Terms], T],
        /,
        *terms: *Terms,
    ) -> T:
        """Return ``of(data, *terms)``, where ``data`` is what ``read`` would return.

        A start that only asks something of bytes uses it: see ``File.examine``.
        """
        if not self.hold():
            READ_GONE.hit()
            return of(b"", *terms)
        try:
            said = self._examine(position, size, of, *terms)
            if self.known_lost:
                self.known_lost -= sectors_of(position, size)
            return said
        except OSError as error:
            return of(self._read_around(error, position, size), *terms)
        finally:
            self.release()

    def _examine(
        self,
        position: int,
        size: int,
        of: Callable[[bytes, *Terms], T],
        /,
        *terms: *Terms,
    ) -> T:
        if self._file is not None and position + size <= self._on_disk_size:
            return self._file.examine(position, size, of, *terms)
        return of(self._read(position, size), *terms)

    def _read_around(self, error: OSError, position: int, size: int) -> bytes:
        """Read zeros for unreadable sectors where allowed; else raise ``error``."""
        if not is_unreadable(error):
            raise error
        data, holes = with_zeros(self._read, position, size)
        lost = {n for at in holes for n in sectors_of(position + at.start, len(at))}
        if self.may_lose or (lost and lost <= self.known_lost):
            TAKEN_FOR_ZEROS.hit()
            self.known_lost |= lost
            return data
        why = f"bytes [{position}, {position + size}): {error.strerror}"
        raise OSError(error.errno, why, self.path) from error

    def _read(self, position: int, size: int) -> bytes:
        there = self._on_disk_size - position
        if there >= size and self._file is not None:
            return self._file.read_at(position, size)
        if there <= 0:
            return bytes(size)
        return self._open_file.read_at(position, there) + bytes(size - there)

    def set_positions(self, position: int) -> None:
        """Set all positions to ``position``: the data ends there and is flushed."""
        self.wrote = self.committed = self.flushed = position
        self._check()

    def is_able_to_flush(self, least_pages: int) -> bool:
        """Whether at least ``least_pages`` pages wait for a flush; 0: any byte.

        Source: DefaultMappedFile#isAbleToFlush.
        """
        return self._is_enough(self.flushed, self.committed, least_pages)

    def _is_enough(self, start: int, end: int, least_pages: int) -> bool:
        if least_pages > 0 and not self.is_full:
            return end // PAGE_SIZE - start // PAGE_SIZE >= least_pages
        return end > start

    def flush(self, least_pages: int) -> int:
        """Sync the written bytes if there are enough; returns the flushed position.

        Raises:
            OSError: the position has not moved, and no later sync may move it.

        Source: DefaultMappedFile#flush.
        """
        newest = self.store_timestamp
        if not self.is_able_to_flush(least_pages):
            if self.flushed == self.wrote:  # by a flush that overtook an append's time
                self.flushed_timestamp = newest
            return self.flushed
        if not self.hold():
            FLUSHED_GONE.hit()
            return self.flushed
        try:
            # An append moves wrote, committed, store_timestamp, in this order; so read
            # against it, neither mark gets ahead of what the sync below covers.
            timestamp = self.store_timestamp
            if self._buffer is not None:
                timestamp = self._committed_timestamp
            committed = self.committed
            self._open_file.sync()
        finally:
            self.release()
        if committed > self.flushed:  # else another flush was first
            self.flushed, self.flushed_timestamp = committed, timestamp
        self._check()
        return self.flushed

    def sync(self) -> None:
        """Sync the file, whatever its positions are."""
        self._open_file.sync()

    def rewrite(self, start: int, end: int) -> None:
        """Read bytes [start, end) and write them again.

        After a failed sync the page cache counts the pages as clean, and no later sync
        writes them; only a new store into them makes them dirty.
        """
        for at in range(start, end, _CHUNK):
            self._open_file.write_at(at, self.read(at, min(_CHUNK, end - at)))

    def erase(self, start: int) -> None:
        """Make all bytes from ``start`` on zeros, durably, unless they are zeros.

        The file is cut and extended with new space. Zeros written over the old bytes
        could get lost by a power loss or a failed sync; then the old bytes would stand
        after what a later run appends.
        """
        for at in range(start, self.file_size, _CHUNK):
            size = min(_CHUNK, self.file_size - at)
            if not self._is_zeros(at, size):
                ERASED.hit()
                self._renew(start)
                self.sync()
                return

    def _is_zeros(self, at: int, size: int) -> bool:
        return examined(self._examine, self._read, at, size, _are_zeros, size)

    def mend_lost(self) -> None:
        """Replace unreadable sectors by new space with zeros; the other bytes stay.

        The file is cut and extended, since a last sector that ends past the file cannot
        be written as a whole. The rest is written again and synced, since it may count
        as durable. A crash meanwhile leaves a shorter file.
        """
        start = min(self.known_lost) * SECTOR_SIZE
        data = self.read(start, self.file_size - start)
        self._renew(start)
        self._open_file.write_at(start, data)
        self.sync()
        self.known_lost = set()

    def _renew(self, start: int) -> None:
        """Cut the file at ``start`` and extend it again with zeros."""
        self._close_file()
        self._disk.truncate(self.path, start)
        self._on_disk_size = start
        self.extend()

    def extend(self) -> None:
        """Extend a file that is too short with zeros."""
        if self._on_disk_size == self.file_size:
            return
        self._close_file()
        self._disk.truncate(self.path, self.file_size)
        self._on_disk_size = self.file_size
        self._open(create=False)
        # Only its name may be durable, and it may never be written to.
        self.sync()
        EXTENDED.hit()

    @property
    def on_disk_size(self) -> int:
        """The file's length; less than ``file_size`` if something cut it."""
        return self._on_disk_size

    def close(self) -> None:
        """Release the file; it is closed when its last reader is done. Idempotent."""
        self.shutdown()

    def destroy(self) -> None:
        """Remove the file and release it; readers in progress read on.

        Raises:
            OSError: it was not removed, and stays in use.

        Source: DefaultMappedFile#destroy, which removes it once nobody holds it, and
        after an interval unmaps it under its readers.
        """
        self._disk.remove(self.path)
        self.shutdown()

    def clean_up(self) -> None:
        """Close the file and give the buffer back."""
        self._return_buffer()
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
