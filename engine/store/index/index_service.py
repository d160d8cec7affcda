"""IndexService: finds messages by their keys, in files of one hash table each.

Dispatch adds the keys of each record; a full file is closed and a new one created,
named by the time. A query walks the files from the newest to the oldest.

The index follows from the log, so a start trusts none of it: ``IndexAudit`` compares it
with the log, entries that disagree are removed, and dispatch adds them again.

Source: org.apache.rocketmq.store.index.IndexService, RocketMQ 5.3. Differs: no file is
deleted because of the checkpoint, a record's keys are never added twice, a file that
could not be created is requested again by the same record, and only a file whose sync
succeeded moves the checkpoint.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.errors import Place
from crashmq.engine.store.foreign import Losses
from crashmq.engine.store.index.index_audit import IndexAudit, Recount
from crashmq.engine.store.index.index_file import IndexFile, file_size
from crashmq.engine.store.index.index_keys import index_key_hash, key_hashes, tag_hash
from crashmq.engine.store.log_scan import LogScan
from crashmq.engine.store.logfile.mapped_file_queue import make_dirs
from crashmq.engine.store.store_checkpoint import StoreCheckpoint
from crashmq.engine.store.unreadable import is_unreadable

INDEX_DIR = "index"
NAME_DIGITS = 17  # yyyyMMddHHmmssSSS
YEAR_9999_MS = 253_370_764_800_000

CREATED = probe("index_service.create", "an index file was made")
FAILED = probe("index_service.put.failed", "the disk failed the indexing of a key")
BUILT = probe(
    "index_service.dispatch.built", "a record with all its keys indexed came again"
)
RESUMED = probe(
    "index_service.dispatch.resumed",
    "the missing keys of a half-indexed record were added",
)
ODD = probe("index_service.load.odd", "an index file of another length was met")
LEFT_OUT = probe("index_service.load.unreadable", "a file that cannot be read was met")
FOREIGN = probe("index_service.load.foreign", "a path that is no index file was met")
DROPPED = probe("index_service.recover.dropped", "an index file was removed at a start")
SETTLED = probe("index_service.recover.settled", "a start repaired an index file")
TORN = probe(
    "index_service.recover.torn", "the time of the index was none of a full file's"
)
ROLLED = probe("index_service.flush.rolled", "a full index file was made durable")
EXPIRED = probe(
    "index_service.delete_expired", "an index file of expired records was removed"
)


class IndexService:
    """The index files, oldest first, and how far the log is indexed.

    The files hold the keys of every record before ``_next_phy_offset`` exactly once.
    Files whose last entry is older than index_msg_timestamp survive a power loss whole.

    Invariants:
        files are in the order of their names, and no name is used twice
        the last name given is not before that of any file
    """

    def __init__(
        self,
        config: StoreConfig,
        disk: Disk,
        runtime: Runtime,
        checkpoint: StoreCheckpoint,
    ) -> None:
        self._config = config
        self._disk = disk
        self._runtime = runtime
        self._checkpoint = checkpoint
        self._lock = runtime.lock()
        self._files: list[IndexFile] = []
        self._deleted: list[IndexFile] = []
        self._readers: list[object] = []
        self._odd_paths: list[str] = []
        self._unsettled: list[Recount] = []
        self._last_name = 0
        self._names_are_durable = True
        self._next_phy_offset = 0
        self._keys_there = 0
        self._indexes_tags = False
        self.flush_failed = False

    def _check(self) -> None:
        names = [int(file.path.rpartition("/")[2]) for file in self._files]
        assert names == sorted(set(names)), names
        assert not names or names[-1] <= self._last_name, (names, self._last_name)

    def load(self) -> None:
        """Open every file of the configured size, without changing the disk.

        Source: IndexService#load, which maps files of any length.
        """
        if not self._config.message_index_enable or not self._disk.is_dir(INDEX_DIR):
            return
        slots, entries = self._config.max_hash_slot_num, self._config.max_index_num
        for name in self._disk.list_dir(INDEX_DIR):
            path = f"{INDEX_DIR}/{name}"
            is_name = len(name) == NAME_DIGITS and name.isascii() and name.isdigit()
            if not is_name or self._disk.is_dir(path):
                FOREIGN.hit()
                continue
            self._last_name = int(name)
            if self._disk.file_size(path) == file_size(slots, entries):
                self._load_file(path, slots, entries)
            else:
                ODD.hit()
                self._odd_paths.append(path)

    def _load_file(self, path: str, slots: int, entries: int) -> None:
        try:
            file = IndexFile(self._disk, path, slots, entries, create=False)
        except OSError as error:
            if not is_unreadable(error):
                raise
            self._odd_paths.append(path)
        else:
            self._files.append(file)

    def leave_out(self, path: object) -> bool:
        """Drop a file that cannot be read, for dispatch to build it again from the log.

        Returns whether ``path`` is that of an index file.
        """
        for file in self._files:
            if file.path == path:
                LEFT_OUT.hit()
                self._files.remove(file)
                self._odd_paths.append(file.path)
                file.close()
                return True
        return False

    def audit(self, log_min_offset: int) -> IndexAudit:
        """Begin to compare the loaded files with the log."""
        return IndexAudit(self._files, log_min_offset)

    def count_losses(self, losses: Losses, scan: LogScan, *, crashed: bool) -> None:
        """Count the files that ``recover`` drops and dispatch does not rebuild.

        A file that cannot be read is not counted: its entries are lost already.
        """
        for path in self._odd_paths:
            if (size := self._disk.file_size(path)) not in (0, self._file_size):
                losses.index_files += 1
                losses.note(
                    Place(path), f"{size} bytes, {self._file_size} in this store"
                )
        for file in self._files:
            last = file.header.end_phy_offset
            is_empty = file.header.index_count <= 1
            if not is_empty and last >= scan.end and not (crashed and scan.records):
                losses.index_files += 1
                why = f"entries up to offset {last}, of which the log has no record"
                losses.note(Place(file.path), why)

    @property
    def _file_size(self) -> int:
        config = self._config
        return file_size(config.max_hash_slot_num, config.max_index_num)

    def recover(self, audit: IndexAudit, log_end: int, *, clean: bool) -> None:
        """Keep the entries that agree with the log, and lower the checkpoint's time.

        The disk is changed only by ``mend``, once the lower time is durable.

        Args:
            audit: the comparison with the log, to be finished here.
            log_end: the phy_offset at which the log ends.
            clean: whether the previous shutdown was orderly, so that all files are
                durable.
        """
        if not self._config.message_index_enable:
            return
        audit.finish()
        first_wrong = audit.first_wrong_phy_offset
        self._next_phy_offset = first_wrong if first_wrong >= 0 else log_end
        self._keys_there = audit.keys_there if first_wrong >= 0 else 0
        self._indexes_tags = audit.indexes_tags
        kept = [recount.file for recount in audit.recounts]
        for file in self._files:
            if file not in kept:
                file.close()
                self._odd_paths.append(file.path)
        self._files = kept
        self._unsettled = [one for one in audit.recounts if one.needs_settling]
        self._names_are_durable = clean
        said = self._checkpoint.index_msg_timestamp
        ends = {file.header.end_timestamp for file in kept if file.is_full}
        is_older = any(file.header.end_timestamp < said for file in kept)
        if is_older and not (clean or said in ends):
            # Files go from the oldest on, so no file had it: a crash has torn it.
            TORN.hit()
            said = self._checkpoint.index_msg_timestamp = 0
        for recount in audit.recounts:
            file = recount.file
            is_durable = clean or file.header.end_timestamp < said
            file.is_unproven = file.is_dirty = not is_durable
        if audit.first_wrong_timestamp < said or any(
            recount.header.end_timestamp < said for recount in self._unsettled
        ):
            self._checkpoint.index_msg_timestamp = 0

    def mend(self) -> None:
        """Remove the files that are not kept, and correct headers and slots.

        The previous run may have been killed between a removal and its sync, and then a
        power loss could bring the file back. So every start but one after an orderly
        shutdown syncs the directory.

        Raises:
            OSError: the disk failed; the next start tries again.
        """
        for path in self._odd_paths:
            self._disk.remove(path)
            DROPPED.hit()
        is_unsure = not self._names_are_durable and self._disk.is_dir(INDEX_DIR)
        if self._odd_paths or is_unsure:
            self._disk.sync_dir(INDEX_DIR)
            self._odd_paths = []
            self._names_are_durable = True
        for recount in self._unsettled:
            recount.file.settle(recount.header, recount.slots)
            # Else a crash could bring back the header whose times were wrong, and the
            # checkpoint's time would stand beside it.
            recount.file.flush()
            SETTLED.hit()
        self._unsettled = []

    def dispatch(self, request: DispatchRequest) -> None:
        """Add the keys of one record that the index does not have yet.

        Raises:
            OSError: some keys may be missing; call again, and only those are added.

        Source: IndexService#buildIndex.
        """
        phy_offset = request.commit_log_offset
        if phy_offset < self._next_phy_offset:
            BUILT.hit()
            return
        if phy_offset > self._next_phy_offset:
            self._next_phy_offset, self._keys_there = phy_offset, 0
        if self._keys_there:
            RESUMED.hit()
        for number, key_hash in enumerate(self._hashes_of(request)):
            if number >= self._keys_there:
                self._put_key(key_hash, phy_offset, request.store_timestamp)
                self._keys_there += 1
        self._next_phy_offset, self._keys_there = phy_offset + request.msg_size, 0

    def _hashes_of(self, request: DispatchRequest) -> Iterator[int]:
        """The hashes of the record's keys, and of its tags if the index has tags."""
        yield from key_hashes(request)
        if self._indexes_tags and (of_tags := tag_hash(request)) is not None:
            yield of_tags

    def _put_key(self, key_hash: int, phy_offset: int, store_timestamp: int) -> None:
        with self._lock:
            try:
                file = self._file_with_space()
                file.put_key(key_hash, phy_offset, store_timestamp)
            except OSError:
                FAILED.hit()
                raise

    def _file_with_space(self) -> IndexFile:
        if self._files and not self._files[-1].is_full:
            return self._files[-1]
        make_dirs(self._disk, INDEX_DIR)
        name = max(_name_of(self._runtime.now_ms()), self._last_name + 1)
        path = f"{INDEX_DIR}/{name:0{NAME_DIGITS}d}"
        if self._disk.exists(path):
            # An earlier life lost the file of this name, or never began to fill it.
            self._disk.remove(path)
        # Even if it cannot be made, another's sync may make its name durable meanwhile.
        self._names_are_durable = False
        file = IndexFile(
            self._disk,
            path,
            self._config.max_hash_slot_num,
            self._config.max_index_num,
            create=True,
        )
        self._last_name = name
        self._files.append(file)
        CREATED.hit()
        return file

    def offsets(
        self, topic: str, key: str, begin_ms: int, end_ms: int
    ) -> Generator[int, None, None]:
        """The phy_offsets of records that may have the key, each once, newest first.

        Another key may have the same hash, so the caller checks each record. Times are
        stored in seconds and clocks may step back: a file or entry is skipped only if
        its record cannot have been stored in [begin_ms, end_ms].

        Source: IndexService#queryOffset.
        """
        key_hash = index_key_hash(topic, key)
        last = -1
        with self._reading_files() as files:
            for file in reversed(files):
                with self._lock:
                    newest = file.newest(key_hash)
                for entry in file.chain(newest, key_hash):
                    is_known = entry.phy_offset == last
                    if not is_known and file.may_hold(entry, begin_ms, end_ms):
                        last = entry.phy_offset
                        yield last

    @contextmanager
    def _reading_files(self) -> Iterator[list[IndexFile]]:
        """The files as they are now; none is closed until the reader is done."""
        reader = object()
        self._readers.append(reader)
        try:
            yield list(self._files)
        finally:
            self._readers.remove(reader)
            self._close_deleted()

    def _close_deleted(self) -> None:
        if not self._readers:
            deleted, self._deleted = self._deleted, []
            for file in deleted:
                file.close()

    def flush_full(self, log_flushed_where: int) -> int:
        """Sync full files and advance the checkpoint's time; returns their number.

        Only files whose records are all flushed, so that no crash takes back a record
        that the checkpoint counts as indexed.

        Raises:
            OSError: a sync failed; the checkpoint's time stays until the next start.

        Source: IndexService#getAndCreateLastIndexFile, its flush of the file before.
        """
        with self._reading_files() as files:
            return self._flush(
                [
                    file
                    for file in files
                    if file.is_full and file.header.end_phy_offset < log_flushed_where
                ]
            )

    def flush(self) -> int:
        """Sync every file, also the one being filled; returns how many were synced.

        Raises:
            OSError: as ``flush_full``.

        Source: IndexService#shutdown.
        """
        with self._reading_files() as files:
            return self._flush(files)

    def _flush(self, files: list[IndexFile]) -> int:
        synced = 0
        try:
            for file in files:
                if file.is_dirty:
                    file.flush()
                    synced += 1
            if files and not self._names_are_durable:
                self._names_are_durable = True
                self._disk.sync_dir(INDEX_DIR)
        except OSError:
            self.flush_failed = True
            raise
        ended = [file.header.end_timestamp for file in files if file.is_full]
        if synced and ended and not self.flush_failed:
            ROLLED.hit()
            self._checkpoint.index_msg_timestamp = max(
                self._checkpoint.index_msg_timestamp, ended[-1]
            )
        return synced

    def delete_expired(self, min_phy_offset: int) -> int:
        """Delete files with only records below ``min_phy_offset``; returns how many.

        The newest file is never deleted.

        Raises:
            OSError: the disk failed; call again.

        Source: IndexService#deleteExpiredFile.
        """
        deleted = 0
        with self._lock:
            while (
                len(self._files) > 1
                and self._files[0].header.end_phy_offset < min_phy_offset
            ):
                EXPIRED.hit()
                self._names_are_durable = False  # until a sync, be it that of a stop
                self._disk.remove(self._files[0].path)
                self._deleted.append(self._files.pop(0))
                deleted += 1
            if deleted:
                self._disk.sync_dir(INDEX_DIR)
                self._names_are_durable = True
        self._close_deleted()
        return deleted

    def close(self) -> None:
        """Close every file; a reader in progress reads to its end."""
        self._deleted += self._files
        self._files = []
        self._close_deleted()


class FlushIndexService:
    """Syncs index files once they are full."""

    name = "flush_index"

    def __init__(
        self, config: StoreConfig, index: IndexService, commit_log: CommitLog
    ) -> None:
        self.interval_ms = config.flush_interval_consume_queue
        self._index = index
        self._commit_log = commit_log

    def run_once(self) -> int:
        """Sync full files; returns how many.

        Raises:
            OSError: the disk failed a sync.
        """
        return self._index.flush_full(self._commit_log.flushed_where)


def _name_of(now_ms: int) -> int:
    """The name of an index file created at ``now_ms``, in UTC, as a number.

    Source: UtilAll#timeMillisToHumanString, which takes the local time.
    """
    shown_ms = min(max(0, now_ms), YEAR_9999_MS)
    at = datetime.fromtimestamp(shown_ms // 1000, UTC)
    return int(f"{at:%Y%m%d%H%M%S}{shown_ms % 1000:03d}")
