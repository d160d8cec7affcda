"""CommitLog: every message of every topic, one after the other.

It appends, rolls from file to file, reads by offset, and finds the log's end at a
start. The consume queues and the index are left to dispatch.

Source: org.apache.rocketmq.store.CommitLog, RocketMQ 5.3. Differs: a start reads every
file, refuses damage below the durable mark instead of cutting it off, erases the bytes
that it cuts off, and syncs what it found before it counts as flushed.
"""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.clean.disk_space import DiskSpace
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.damage import Damage, Stop
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.log_scan import (
    ALL_OURS,
    FoundRecords,
    LogScan,
    RecordsMet,
    look_at,
    noted,
    why_stopped,
)
from crashmq.engine.store.log_writer import REJECTED, LogWriter
from crashmq.engine.store.logfile.allocate_mapped_file_service import (
    AllocateMappedFileService,
)
from crashmq.engine.store.logfile.mapped_file import MappedFile
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.engine.store.logfile.transient_store_pool import TransientStorePool
from crashmq.engine.store.message.message import Message, has_unit
from crashmq.engine.store.message.message_codec import (
    BLANK_SIZE_MIN,
    FIXED_SIZE,
    SEEN_BEHIND,
    check_message,
    encode_filler,
    size_beyond,
    store_timestamp_of,
)
from crashmq.engine.store.message.message_encoder import EncodedMessage
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
from crashmq.engine.store.results import PutMessageResult, PutMessageStatus
from crashmq.engine.store.scan_around import end_behind, files_cut_short, scan_around
from crashmq.engine.store.unreadable import readable

UNLISTED = probe("commit_log.put.unlisted", "a prepared or rollback message was put")
ROLLED = probe("commit_log.roll", "a message met the end of a file; BLANK was written")
NO_FILE = probe("commit_log.put.no_file", "a put found no file to append to")
REFUSED = probe("commit_log.put.refused", "a put that waited for the lock was refused")
WRITE_FAILED = probe("commit_log.put.write_failed", "the disk failed an append")
SCANNED_FILLER = probe("commit_log.recover.filler", "a scan met the BLANK of a file")
SCANNED_GAP = probe("commit_log.recover.gap", "a scan met a missing file")
SCANNED_FIRST = probe("commit_log.recover.first", "a scan left an old file unread")
SCANNED_ALL = probe("commit_log.recover.all_full", "a scan found every file full")
CRC_GOES_ON = probe(
    "commit_log.recover.prop_crc",
    "property CRCs stay on, since the log's records have them",
)
RECOVERED_EMPTY = probe("commit_log.recover.empty", "a start found no log")
RECOVERED_NORMALLY = probe(
    "commit_log.recover.normal", "a start after an orderly shutdown"
)
RECOVERED_ABNORMALLY = probe("commit_log.recover.abnormal", "a start after a crash")


class CommitLog:
    """The log, and the lock under which it grows.

    Attributes:
        ours: the phy_offsets at which only this store can have begun a record.
    """

    def __init__(
        self,
        config: StoreConfig,
        disk: Disk,
        runtime: Runtime,
        consume_queues: ConsumeQueueStore,
        space: DiskSpace | None = None,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._consume_queues = consume_queues
        self._space = space
        self._writer = LogWriter(config, consume_queues)
        self.put_lock = runtime.lock()
        self._takes_puts, self.append_failed = True, False
        self._newest_timestamp = 1  # 0 says in a record and a checkpoint: none
        self._deleting_until = 0
        self.scanned_bytes = 0
        self.damage = Damage()
        self.ours = ALL_OURS
        self._file_size = config.mapped_file_size_commit_log
        self._commit_lock = runtime.lock()
        self.pool: TransientStorePool | None = None
        if config.transient_store_pool_enable:
            buffers = config.transient_store_pool_size
            self.pool = TransientStorePool(buffers, self._file_size)
        self.allocate = AllocateMappedFileService(
            disk, "commitlog", self._file_size, runtime, self.pool
        )
        self.mapped_files = MappedFileQueue(
            disk, "commitlog", self._file_size, self.allocate.take
        )

    @property
    def min_offset(self) -> int:
        """The phy_offset of the log's first byte; -1 while it has no file."""
        return self.mapped_files.min_offset

    @property
    def kept_from_offset(self) -> int:
        """The phy_offset from which no deletion that has begun removes anything."""
        return max(0, self.min_offset, self._deleting_until)

    def begin_deletion(self, end: int) -> None:
        """Record that files before phy_offset ``end`` are about to be deleted."""
        self._deleting_until = max(self._deleting_until, end)

    @property
    def max_offset(self) -> int:
        """The phy_offset at which the next record is appended."""
        return self.mapped_files.max_offset

    @property
    def committed_where(self) -> int:
        """Bytes below this phy_offset are in files: readable, and safe from a kill."""
        return self.mapped_files.committed_where

    @property
    def flushed_where(self) -> int:
        """Bytes below this phy_offset survive a power loss."""
        return self.mapped_files.flushed_where

    @property
    def flushed_timestamp(self) -> int:
        """Store time of the newest record below ``flushed_where``; 0 if none."""
        return self.mapped_files.flushed_timestamp

    def put_message(self, message: Message) -> PutMessageResult:
        """Append one message; it then survives a process kill.

        With a status other than PUT_OK it is not in the log.

        Raises:
            OSError: the disk failed the append; what lies beyond the log's end is
                unknown until a start has erased it, so nothing may be appended.

        Source: CommitLog#asyncPutMessage.
        """
        return self._writer.put_message(message, self._append_encoded)

    def put_accepted(self, message: Message) -> PutMessageResult:
        """Append a message that was accepted before, whatever its size.

        Raises:
            OSError: as ``put_message``.
        """
        return self._writer.put_message(message, self._append_encoded, is_accepted=True)

    @property
    def appends_prop_crc(self) -> bool:
        """Whether each new record ends with a CRC over all of it.

        So it is if configured, or if the newest record that the start found has one.
        """
        return self._writer.appends_prop_crc

    def put_messages(self, batch: Message) -> PutMessageResult:
        """Append the messages that a batch's body holds: all of them, or none.

        They lie one after the other in one file, each a record of its own. The result
        is that of the whole batch.

        Raises:
            OSError: as ``put_message``.

        Source: CommitLog#asyncPutMessages.
        """
        return self._writer.put_messages(batch, self._append_encoded)

    def newest_store_time(self) -> int:
        """Store time of the newest record; waits for a put that is in progress.

        No record that is appended after this call has an earlier one.
        """
        with self.put_lock:
            return self._newest_timestamp

    def _append_encoded(
        self,
        message: Message,
        encode: Callable[[], list[EncodedMessage]],
        light_queues: tuple[str, ...] = (),
        /,
    ) -> PutMessageResult:
        with self.put_lock:
            result = self._append(message, encode())
            if result.is_appended:
                for name in light_queues:
                    self._consume_queues.increase_queue_offset(name, 0)
            return result

    def _append(
        self, message: Message, encoded: list[EncodedMessage]
    ) -> PutMessageResult:
        size = sum([part.size for part in encoded])
        if size + BLANK_SIZE_MIN > self._file_size:
            REJECTED.hit()
            return PutMessageResult(PutMessageStatus.MESSAGE_ILLEGAL)
        if not self._takes_puts:
            REFUSED.hit()
            return PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
        try:
            file = self._file_with_space(size)
        except OSError:
            NO_FILE.hit()
            return PutMessageResult(PutMessageStatus.CREATE_MAPPED_FILE_FAILED)
        if file is None:
            return PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
        return self._append_to(file, message, encoded)

    def _file_with_space(self, size: int) -> MappedFile | None:
        """The file to append to; None if the disk is too full to create one."""
        files, space = self.mapped_files.files, self._space
        left = files[-1].file_size - files[-1].wrote if files else 0
        if size + BLANK_SIZE_MIN > left:
            if space is not None and not space.has_room_for(self._file_size):
                return None
            if left:
                self._write(files[-1], encode_filler(left), left)
                ROLLED.hit()
        file = self.mapped_files.get_or_create_last_mapped_file(0)
        if self.pool is not None and not file.has_buffer:
            # What is written directly must not get in front of what is not.
            self.commit_all()
        return file

    def _append_to(
        self, file: MappedFile, message: Message, encoded: list[EncodedMessage]
    ) -> PutMessageResult:
        queue = (message.topic, message.queue_id)
        listed = has_unit(message.sys_flag)
        first = self._consume_queues.next_queue_offset(*queue) if listed else 0
        # Searches by time, the checkpoint and expiry all lean on times that never
        # decrease along the log, and a wall clock may be set back.
        now = max(self._runtime.now_ms(), self._newest_timestamp)
        end = file.file_from_offset + file.wrote
        places: list[int] = []
        records: list[bytes] = []
        for number, part in enumerate(encoded):
            records.append(part.placed(first + number if listed else 0, end, now))
            places.append(end)
            end += part.size
        self._write(file, b"".join(records), end - places[0])
        file.store_timestamp = self._newest_timestamp = now
        if listed:
            self._consume_queues.increase_queue_offset(*queue, len(encoded))
        else:
            UNLISTED.hit()
        return PutMessageResult(
            PutMessageStatus.PUT_OK,
            places[0],
            end - places[0],
            first,
            tuple(places),
            message.store_host,
        )

    def _write(self, file: MappedFile, data: bytes, declared: int) -> None:
        try:
            appended = file.append_declared(data, declared)
        except OSError:
            WRITE_FAILED.hit()
            self._takes_puts, self.append_failed = False, True
            raise
        assert appended, file

    def refuse_puts(self) -> None:
        """Refuse all later puts, after the one in progress has ended."""
        with self.put_lock:
            self.refuse_puts_now()

    def refuse_puts_now(self) -> None:
        """As ``refuse_puts``; the caller holds ``put_lock``."""
        self._takes_puts = False

    def get_message(self, phy_offset: int, size: int) -> bytes | None:
        """Bytes [phy_offset, phy_offset + size), if they are written in one file.

        Source: CommitLog#getMessage.
        """
        file = self.mapped_files.find_mapped_file_by_offset(phy_offset)
        if file is None or size <= 0:
            return None
        position = phy_offset - file.file_from_offset
        if position + size > file.committed:
            return None
        if self.damage.ranges and self.damage.meets(phy_offset, phy_offset + size):
            return None
        return file.read(position, size) or None

    def look_message_by_offset(self, phy_offset: int) -> bytes | None:
        """The record that begins at ``phy_offset``; None if none begins there.

        Source: DefaultMessageStore#lookMessageByOffset, which believes the size there.
        """
        end = self.max_offset
        is_within = max(0, self.min_offset) <= phy_offset < end
        if not is_within or self.damage.end_of(phy_offset) > phy_offset:
            return None
        data = self.read_from(phy_offset, end, BLANK_SIZE_MIN)
        size = self.size_beyond(phy_offset, data, 0)
        if size > len(data):
            data = self.read_from(phy_offset, end, size)
        return data if self.is_record(phy_offset, data) else None

    def is_record(self, phy_offset: int, data: bytes) -> bool:
        """Whether ``data`` is the intact record of this position, body CRC included."""
        left = self._file_size - phy_offset % self._file_size
        takes_nul = phy_offset not in self.ours
        found = check_message(
            data, 0, phy_offset, left, check_crc=True, takes_nul=takes_nul
        )
        return found.success and found.msg_size == len(data) > 0

    def store_timestamp_at(self, phy_offset: int) -> int:
        """Store time of the record that begins at ``phy_offset``; -1 if unknown.

        Source: CommitLog#pickupStoreTimestamp.
        """
        data = self.get_message(phy_offset, FIXED_SIZE)
        return -1 if data is None else store_timestamp_of(data)

    def roll_next_file(self, offset: int) -> int:
        """The first offset of the file after the one that covers ``offset``."""
        return offset + self._file_size - offset % self._file_size

    def check_message(self, phy_offset: int, data: bytes, at: int) -> DispatchRequest:
        """Decode the record at ``data[at:]`` without checking its body.

        Source: CommitLog#checkMessageAndReturnSize, as doReput calls it.
        """
        left = self._file_size - phy_offset % self._file_size
        return check_message(data, at, phy_offset, left, check_crc=False)

    def size_beyond(self, phy_offset: int, data: bytes, at: int) -> int:
        """Size of the record at ``data[at:]``, if ``data`` ends inside it."""
        return size_beyond(data, at, self._file_size - phy_offset % self._file_size)

    def read_from(self, offset: int, end: int, size: int = 0) -> bytes:
        """Up to ``size`` bytes from ``offset`` on, below ``end``, of one file.

        Source: CommitLog#getData.
        """
        file = self.mapped_files.find_mapped_file_by_offset(offset)
        if file is None:
            return b""
        position = offset - file.file_from_offset
        until = position + (size or self._config.read_window_size)
        until = min(file.committed, end - file.file_from_offset, until)
        return file.read(position, until - position) if until > position else b""

    def commit(self, least_pages: int) -> bool:
        """Write one file's buffered bytes to it; returns whether it did.

        It does not if they fill fewer than ``least_pages`` pages.

        Raises:
            OSError: the write failed; the bytes are kept, so call it again.

        Source: MappedFileQueue#commit, which is synchronized.
        """
        with self._commit_lock:
            return self.mapped_files.commit(least_pages)

    def commit_all(self) -> int:
        """Write all buffered bytes to the files; returns how many commits.

        Raises:
            OSError: as ``commit``.
        """
        end, commits = self.max_offset, 0
        while self.committed_where < end and self.commit(0):
            commits += 1
        return commits

    def flush(self, least_pages: int) -> bool:
        """Sync one file; return whether ``flushed_where`` moved.

        Raises:
            OSError: it did not move, and no later sync may move it.
        """
        return self.mapped_files.flush(least_pages)

    def load(self) -> None:
        """Open the log's files without changing the disk."""
        self.mapped_files.load()

    def scan(
        self, visit: Callable[[DispatchRequest], None], read_from: int = 0
    ) -> LogScan:
        """Read the log's intact records from ``read_from`` up to its end.

        Calls ``visit`` with each record, in log order. Does not change the disk. Of
        files that end before ``read_from`` only the first record is read.

        Source: CommitLog#recoverNormally, recoverAbnormally: their common loop.
        """
        files = self.mapped_files.files
        if not files:
            RECOVERED_EMPTY.hit()
            return LogScan(0, 0, 0, 0, Stop.NO_FILES)
        met = RecordsMet(visit)
        firsts: list[DispatchRequest] = []
        start = end = files[0].file_from_offset
        for file in files:
            if file.file_from_offset != end:
                SCANNED_GAP.hit()
                why = Stop.MISSING_FILE
                break
            if file.end_offset <= read_from:
                position, why = self._scan_first(file, firsts)
            else:
                position, why = self._scan_file(file, met.meet)
            end += position
            if position < file.file_size:
                break
        else:
            SCANNED_ALL.hit()
            why = Stop.END
        read_from = max(start, read_from)
        return LogScan(
            start,
            end,
            met.newest,
            met.records,
            why,
            read_from,
            tuple(firsts),
            has_prop_crc=met.has_prop_crc,
            nul_until=met.nul_until,
        )

    def _scan_first(
        self, file: MappedFile, firsts: list[DispatchRequest]
    ) -> tuple[int, Stop]:
        """Read the first record of an older file; the rest is trusted."""
        SCANNED_FIRST.hit()
        if file.on_disk_size < file.file_size:
            return file.on_disk_size, Stop.CUT_SHORT
        begin, prop_crc = file.file_from_offset, self._config.force_verify_prop_crc
        behind = 0 if begin in self.ours else SEEN_BEHIND
        data = self._read(file, 0, BLANK_SIZE_MIN)
        if size := size_beyond(data, 0, file.file_size):
            data = self._read(file, 0, min(size + behind, file.file_size))
        request = check_message(
            data,
            0,
            begin,
            file.file_size,
            check_crc=True,
            prop_crc=prop_crc,
            takes_nul=begin not in self.ours,
        )
        if not request.success:
            return 0, noted(why_stopped(request, data, 0))
        firsts.append(request)
        return file.file_size, Stop.NOWHERE

    def _read(self, file: MappedFile, position: int, size: int) -> bytes:
        self.scanned_bytes += size
        return readable(file.read, position, size)

    def _scan_file(
        self, file: MappedFile, visit: Callable[[DispatchRequest], None], begin: int = 0
    ) -> tuple[int, Stop]:
        """Read one file's records; return where they end and why."""
        position, found = begin, FoundRecords()
        while position < file.file_size:
            # A record that goes on past a window is looked at again, from its start.
            left = file.file_size - position
            size = max(found.wanted, min(self._config.read_window_size, left))
            self.scanned_bytes += size
            prop_crc = self._config.force_verify_prop_crc
            found = look_at(
                file,
                position,
                size,
                found.wanted,
                prop_crc=prop_crc,
                ours=self.ours,
            )
            for request in found.records:
                visit(request)
            position += found.size
            if found.has_filler:
                SCANNED_FILLER.hit()
                left = file.file_size - position
                if len(readable(file.read, position, left)) < left:
                    return position, Stop.UNREADABLE
                position = file.file_size
            elif found.stopped_by:
                return position, noted(found.stopped_by)
        return position, Stop.NOWHERE

    def scan_around(
        self,
        visit: Callable[[DispatchRequest], None],
        damage: Damage,
        bounds: tuple[int, int],
    ) -> LogScan:
        """As ``scan``, but go on after damage within ``bounds``, the durable part."""
        return scan_around(
            self.mapped_files, bounds, damage, self._scan_file, visit, self.ours
        )

    def recover_normally(self, scan: LogScan) -> None:
        """Open the log of a store that had an orderly shutdown: all of it is durable.

        Source: CommitLog#recoverNormally.
        """
        RECOVERED_NORMALLY.hit()
        self.mapped_files.truncate_dirty_files(scan.end)
        self._set_recovered(scan)

    def recover_abnormally(self, scan: LogScan, durable_offset: int) -> None:
        """Open a log after a crash: cut it at its end and make it durable.

        Bytes from ``durable_offset`` on are written again before the sync: an earlier
        run's failed sync may have left their pages marked clean but not on the medium.

        Source: CommitLog#recoverAbnormally, which takes what it reads as flushed.
        """
        RECOVERED_ABNORMALLY.hit()
        self.damage = Damage(scan.damaged)
        durable_offset = max([durable_offset, *[known.end for known in scan.damaged]])
        cut = files_cut_short(self.damage, self._file_size)
        self.mapped_files.truncate_dirty_files(scan.end, cut)
        self.mapped_files.rewrite(durable_offset)
        self.mapped_files.sync_from(durable_offset)
        self._set_recovered(scan)
        if scan.damaged:
            end_behind(self.mapped_files, self.damage, scan.end)

    def _set_recovered(self, scan: LogScan) -> None:
        self.mapped_files.flushed_where = scan.end
        self.mapped_files.flushed_timestamp = scan.newest_timestamp
        self._newest_timestamp = max(1, scan.newest_timestamp)
        if scan.has_prop_crc and not self._writer.appends_prop_crc:
            # A broker that forces its check would cut the log at a record without.
            CRC_GOES_ON.hit()
            self._writer.appends_prop_crc = True
        if self.mapped_files.files:
            self.mapped_files.files[-1].store_timestamp = scan.newest_timestamp

    def close(self) -> None:
        """Close the files."""
        self.allocate.close()
        self.mapped_files.close()
