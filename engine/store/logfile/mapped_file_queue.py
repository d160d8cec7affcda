"""MappedFileQueue: files of one size in a row, each named by its first offset.

Source: org.apache.rocketmq.store.MappedFileQueue, RocketMQ 5.3. Differs: loading does
not change the disk, so that a start may still refuse; files of other names are skipped;
and bytes count as flushed only once the names of their files are durable.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.store.errors import Place, StoreCorrupted
from crashmq.engine.store.logfile.mapped_file import (
    MappedFile,
    file_name,
    is_file_name,
    is_number,
)
from crashmq.engine.store.logfile.transient_store_pool import TransientStorePool

FOREIGN = probe(
    "mapped_file_queue.load.foreign", "a path that is no file of the queue was met"
)
SHORT = probe("mapped_file_queue.load.short", "a file shorter than its size was met")
LEFT_EMPTY = probe(
    "mapped_file_queue.load.empty", "a file without a byte was met: its allocation lost"
)
GAP = probe("mapped_file_queue.load.gap", "a file is missing between two others")
CREATED = probe("mapped_file_queue.create", "a file was created")
REMOVED = probe(
    "mapped_file_queue.truncate.remove", "a file beyond the end was removed"
)
CUT = probe("mapped_file_queue.truncate.cut", "the end was moved inside a file")
RESET = probe(
    "mapped_file_queue.reset",
    "the end was moved back on request",
    unreachable="replication alone moves a log's end back amid a life",
)
TOO_FAR = probe(
    "mapped_file_queue.reset.too_far",
    "the end was not moved that far back",
    unreachable="as mapped_file_queue.reset",
)
DELETED = probe("mapped_file_queue.delete", "the first file was deleted")
NOT_DELETED = probe(
    "mapped_file_queue.delete.failed", "the first file could not be deleted"
)


def make_dirs(disk: Disk, path: str) -> None:
    """Create a directory and its parents, each durable in its parent.

    Raises:
        OSError: one could not be created or made durable; the next call tries again.
    """
    if disk.is_dir(path):
        return
    parent = path.rpartition("/")[0]
    if parent:
        make_dirs(disk, parent)
    disk.make_dir(path)
    try:
        disk.sync_dir(parent)
    except OSError:
        disk.remove_dir(path)  # or the next call would take its name for durable
        raise


def new_file(
    disk: Disk, path: str, file_size: int, pool: TransientStorePool | None = None
) -> MappedFile:
    """Create one file, and its directory if it is missing.

    Raises:
        OSError: it could not be created, and does not exist.
    """
    folder = path.rpartition("/")[0]
    make_dirs(disk, folder)
    if disk.exists(path):
        # What an earlier life left under this name was lost to it, and is to us.
        disk.remove(path)
    try:
        file = MappedFile(disk, path, file_size, create=True, pool=pool)
        try:
            # New room may hold what another file had there, and no CRC covers all of a
            # record: until its zeros are durable, a torn record could end in old bytes.
            file.sync()
        except OSError:
            try:
                file.destroy()
            finally:
                file.close()  # it may exist still, and nobody uses it
            raise
    except OSError:
        # Meanwhile another's sync of the folder may have made the name durable.
        with suppress(OSError):
            disk.sync_dir(folder)
        raise
    return file


class MappedFileQueue:
    """Files in the order of their offsets.

    One thread appends files and another deletes them from the front; each changes the
    list in a single step. A lookup that finds the list changed searches it again.

    Bytes [min_offset, flushed_where) survive power loss, and so do their names; bytes
    [flushed_where, committed_where) survive a process kill.

    Args:
        make: creates the file that begins at an offset; by default one without buffer.
        is_derived: the data can be built again, so unreadable bytes are read as zeros
            until ``be_strict``.

    Invariants:
        files have one size and begin at multiples of it, each after the one before
        no more names are durable than were made
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        file_size: int,
        make: Callable[[int], MappedFile] | None = None,
        *,
        is_derived: bool = False,
    ) -> None:
        self._is_derived = is_derived
        self.path = path
        self.file_size = file_size
        self.files: list[MappedFile] = []
        self._make = make or self._make_plain
        self._buffered: list[MappedFile] = []
        self.flushed_where = 0
        self.flushed_timestamp = 0
        self._disk = disk
        self._names_made = 0
        self._names_durable = -1  # how many of those a sync has covered
        self._is_path_durable = self._may_come_back = False

    def _check(self) -> None:
        end = 0
        for file in self.files:
            assert file.file_size == self.file_size, file
            assert file.file_from_offset % self.file_size == 0, file
            assert file.file_from_offset >= end, file
            end = file.end_offset
        assert self._names_durable <= self._names_made, self.path
        assert self.flushed_where >= 0, self.flushed_where

    def load(self) -> None:
        """Open the files with positions at 0, without changing the disk.

        Raises:
            StoreCorrupted: a file is larger than the configured size, or its offset is
                not a multiple of it.

        Source: MappedFileQueue#load.
        """
        if not self._disk.is_dir(self.path):
            return
        for name in self._disk.list_dir(self.path):
            path = f"{self.path}/{name}"
            if not is_file_name(name) or self._disk.is_dir(path):
                FOREIGN.hit()
                continue
            self._load_file(path, int(name))
        if self.first_gap() is not None:
            GAP.hit()
        self._names_durable = -1

    def _load_file(self, path: str, offset: int) -> None:
        size = self._disk.file_size(path)
        if size > self.file_size or offset % self.file_size:
            raise StoreCorrupted(
                f"{size} bytes at offset {offset} do not fit a store whose files here "
                f"have {self.file_size} bytes. Start it with the sizes it was written "
                f"with; nothing was changed.",
                Place(path),
            )
        if size < self.file_size:
            (SHORT if size else LEFT_EMPTY).hit()
        file = MappedFile(self._disk, path, self.file_size, create=False)
        file.may_lose = self._is_derived
        self.files.append(file)

    def misnamed(self) -> list[str]:
        """Paths of files that RocketMQ would load and ``load`` skips."""
        names = self._disk.list_dir(self.path) if self._disk.is_dir(self.path) else []
        paths = [f"{self.path}/{name}" for name in names if is_number(name)]
        return [path for path in paths if not self._disk.is_dir(path)]

    def lose_no_more(self) -> None:
        """From now on, only bytes already found unreadable are read as zeros."""
        for file in self.files:
            file.may_lose = False

    def lose_again(self) -> None:
        """Let unreadable bytes read as zeros again, as after ``load``."""
        for file in self.files:
            file.may_lose = self._is_derived

    def be_strict(self) -> None:
        """From now on, reading an unreadable byte raises OSError."""
        for file in self.files:
            file.may_lose = False
            file.known_lost.clear()

    def first_gap(self) -> int | None:
        """The offset of the first missing file; None if the run is unbroken."""
        for before, after in zip(self.files, self.files[1:], strict=False):
            if after.file_from_offset != before.end_offset:
                return before.end_offset
        return None

    @property
    def min_offset(self) -> int:
        """The offset at which the first file begins; -1 without a file."""
        files = self.files
        return files[0].file_from_offset if files else -1

    @property
    def max_offset(self) -> int:
        """The end of the appended data, committed or not; 0 without a file.

        Source: MappedFileQueue#getMaxWrotePosition.
        """
        files = self.files  # the list that a deletion puts another one in place of
        if not files:
            return 0
        last = files[-1]
        return last.file_from_offset + last.wrote

    @property
    def committed_where(self) -> int:
        """The end of the data that is in files, not only in a buffer, and can be read.

        Source: MappedFileQueue#getMaxOffset, which asks the last file alone.
        """
        end = self.max_offset  # first, so that what is appended meanwhile is not in it
        for file in list(self._buffered) if self._buffered else ():
            if file.committed < file.wrote:
                return min(end, file.file_from_offset + file.committed)
        return end

    def find_mapped_file_by_offset(self, offset: int) -> MappedFile | None:
        """The file that covers ``offset``; None if there is none.

        Source: MappedFileQueue#findMappedFileByOffset, without its option to return the
        first file instead.
        """
        files = self.files
        try:
            index = (offset - files[0].file_from_offset) // self.file_size
            if index >= 0:
                file = files[index]
                if 0 <= offset - file.file_from_offset < self.file_size:
                    return file
        except IndexError:
            pass  # there is none, or the first ones have just been deleted
        for file in list(files):
            if file.file_from_offset <= offset < file.end_offset:
                return file
        return None

    def get_or_create_last_mapped_file(self, start_offset: int) -> MappedFile:
        """The file to append to; created if there is none or the last one is full.

        Args:
            start_offset: an offset that the first file of an empty queue must cover.

        Raises:
            OSError: no file could be created; the queue is as it was.

        Source: MappedFileQueue#getLastMappedFile.
        """
        if self.files and not self.files[-1].is_full:
            return self.files[-1]
        if self.files:
            offset = self.files[-1].end_offset
        else:
            offset = start_offset - start_offset % self.file_size
        return self._create(offset)

    def _create(self, offset: int) -> MappedFile:
        # No file system need keep names in their order: without the one before, this
        # file would be a log that begins in its middle.
        self.sync_names()
        file = self._make(offset)
        if not self.files:
            self.flushed_where = offset
        # Before a flush can see the file, it must know of a name to be synced.
        self._names_made += 1
        if file.has_buffer:
            self._buffered.append(file)
        self.files.append(file)
        CREATED.hit()
        return file

    def _make_plain(self, offset: int) -> MappedFile:
        path = f"{self.path}/{file_name(offset)}"
        return new_file(self._disk, path, self.file_size)

    def commit(self, least_pages: int) -> bool:
        """Commit the first file with buffered bytes; False if they are too few.

        One file per call; the caller runs one commit at a time.

        Raises:
            OSError: the disk failed the write; call again.

        Source: MappedFileQueue#commit.
        """
        for file in list(self._buffered):
            before = file.committed
            if before < file.wrote:
                moved = file.commit(least_pages) > before
                if not file.has_buffer:
                    self._buffered.remove(file)
                return moved
        return False

    def flush(self, least_pages: int) -> bool:
        """Sync the file at ``flushed_where``; return whether that position moved.

        One file per call, as RocketMQ does; call again while it returns True.

        Raises:
            OSError: ``flushed_where`` has not moved, and no later sync may move it.

        Source: MappedFileQueue#flush.
        """
        file = self._file_to_flush()
        if file is None:
            return False
        flushed = file.file_from_offset + file.flush(least_pages)
        self.flushed_timestamp = max(self.flushed_timestamp, file.flushed_timestamp)
        if flushed <= self.flushed_where:
            return False
        self.sync_names()
        self.flushed_where = flushed
        return True

    def _file_to_flush(self) -> MappedFile | None:
        file = self.find_mapped_file_by_offset(self.flushed_where)
        if file is not None or not self.files:
            return file
        first = self.files[0]
        return first if self.flushed_where < first.file_from_offset else None

    def sync_names(self) -> None:
        """Sync the directory if a file was created since its last sync."""
        if self._names_durable < self._names_made and self.files:
            self._sync_names_now()

    def _sync_names_now(self) -> None:
        made = self._names_made  # a name made during the sync needs another one
        self._sync_path()
        self._disk.sync_dir(self.path)
        self._names_durable = made

    def _sync_path(self) -> None:
        """Sync the parent directories, once; not the root, which a start syncs."""
        if not self._is_path_durable:
            parts = self.path.split("/")
            for depth in range(1, len(parts)):
                self._disk.sync_dir("/".join(parts[:depth]))
            self._is_path_durable = True

    def begin_at(self, offset: int) -> None:
        """Create the file that begins at ``offset``, with a gap before it.

        Raises:
            OSError: it could not be created, or a power loss may remove it.
        """
        assert offset % self.file_size == 0, offset
        self._create(offset)
        self.flushed_where = offset
        self.sync_names()

    def truncate_dirty_files(
        self, offset: int, untouched: frozenset[int] = frozenset()
    ) -> None:
        """End the data at ``offset``: remove later files, erase later bytes.

        Files that are too short are extended, except those that begin at an offset in
        ``untouched``.

        Source: MappedFileQueue#truncateDirtyFiles, which leaves the bytes.
        """
        removed = False
        while self.files and self.files[-1].file_from_offset > offset:
            self.files[-1].destroy()
            self.files.pop()
            removed = True
            REMOVED.hit()
        for file in self.files:
            if file.file_from_offset not in untouched:
                file.extend()
            file.set_positions(min(offset - file.file_from_offset, file.file_size))
            if not file.is_full:
                file.erase(file.wrote)
                CUT.hit()
        self.flushed_where = min(self.flushed_where, offset)
        if removed:
            self._disk.sync_dir(self.path)

    def reset_offset(self, offset: int) -> bool:
        """Move the end back to ``offset``; False if that is over two files back.

        Source: MappedFileQueue#resetOffset, which leaves the files on the disk.
        """
        if self.max_offset - offset > 2 * self.file_size:
            TOO_FAR.hit()
            return False
        RESET.hit()
        self.truncate_dirty_files(offset)
        return True

    def delete_first_files(
        self,
        may_go: Callable[[MappedFile], bool],
        *,
        at_most: int,
        pause: Callable[[], None] | None = None,
    ) -> int:
        """Delete files from the front while ``may_go`` allows; returns how many.

        The last file is never deleted. Each removal is durable before the next one, so
        that a crash leaves no gap. Readers in progress read on.

        Args:
            may_go: whether a file is no longer needed.
            at_most: how many files one call deletes, > 0.
            pause: called between two files.

        Raises:
            OSError: the disk failed; the file stays, or its name may come back after
                a power loss. Call again.

        Source: MappedFileQueue#deleteExpiredFileByTime, #deleteExpiredFileByOffset.
        """
        deleted = 0
        while deleted < at_most and len(self.files) > 1 and may_go(self.files[0]):
            if deleted and pause is not None:
                pause()
            self._delete_first()
            deleted += 1
        return deleted

    def _delete_first(self) -> None:
        first = self.files[0]
        try:
            self.settle_deletion()
            first.destroy()
            self._may_come_back = True  # before anybody sees that it is gone
            del self.files[0]
            DELETED.hit()
            self.settle_deletion()
        except OSError:
            NOT_DELETED.hit()
            raise

    def settle_deletion(self) -> None:
        """Sync the directory if the sync of the last removal has failed."""
        if self._may_come_back:
            self._sync_names_now()
            self._may_come_back = False

    def rewrite(self, start: int) -> None:
        """Write the bytes from ``start`` on again, and replace unreadable sectors."""
        for file in self.files:
            if file.known_lost:
                file.mend_lost()
            file.rewrite(max(0, start - file.file_from_offset), file.wrote)

    def sync_from(self, start: int) -> None:
        """Sync every file that reaches beyond ``start``, and the names."""
        for file in self.files:
            if file.end_offset > start:
                file.sync()
        self._names_durable = -1
        self.sync_names()

    def sync_found(self) -> None:
        """Sync the names, and the files that reach beyond the data's end.

        No later flush syncs these, and the previous run may not have synced them.

        Raises:
            OSError: a power loss may bring back what was removed or erased.
        """
        for file in self.files:
            if file.end_offset > self.max_offset:
                file.sync()
        if self._disk.is_dir(self.path):
            self._sync_names_now()

    def close(self) -> None:
        """Close every file."""
        for file in self.files:
            file.close()

    def destroy(self) -> None:
        """Remove every file, durably; the directory stays.

        Raises:
            OSError: some files may exist still, or after a power loss.
        """
        for file in self.files:
            file.destroy()
        if self.files:
            self._disk.sync_dir(self.path)
        self.files = []
        self.flushed_where = 0

    def remove(self) -> None:
        """Remove every file and the emptied directories, durably.

        With them goes a file that a failed creation left and could not remove.

        Raises:
            OSError: some may exist still, or after a power loss.
        """
        self.destroy()
        path = self.path
        for name in self._disk.list_dir(path) if self._disk.is_dir(path) else ():
            left = f"{path}/{name}"
            if is_file_name(name) and not self._disk.is_dir(left):
                self._disk.remove(left)  # a start lists all, so it was made since
        while self._disk.is_dir(path):
            # Or a directory of this name, made again, might have its old files.
            self._disk.sync_dir(path)
            if "/" not in path or self._disk.list_dir(path):
                break
            self._disk.remove_dir(path)
            path = path.rpartition("/")[0]
