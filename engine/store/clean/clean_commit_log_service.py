"""CleanCommitLogService: deletes the log's first files once they have expired.

A file is deleted when it has not changed for ``file_reserved_time``, none of its
records is younger, and all of it is flushed and dispatched. Files are deleted from the
front, and the last one never. Before a deletion, in this order: the queues' units are
made durable, since only they say how far a queue has counted; the durable mark is
moved, so that a start finds the log beginning at or before it; each queue is told to
begin after the deleted files.

Source: DefaultMessageStore.CleanCommitLogService, RocketMQ 5.3. Differs: undispatched
records are never deleted, and unexpired ones only if ``clean_file_forcibly_enable`` is
set, which is off by default; hours are UTC; a file with readers is removed at once, and
its readers read on.
"""

from __future__ import annotations

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.clean.disk_space import DiskSpace
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.flush import CheckpointService
from crashmq.engine.store.logfile.mapped_file import MappedFile
from crashmq.engine.store.queue.consume_queue import ConsumeQueue
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
from crashmq.engine.store.reput_message_service import ReputMessageService

MAX_MANUAL_DELETE_FILE_TIMES = 20
_HOUR_MS = 3_600_000

NOT_DUE = probe("clean_commit_log.not_due", "it is not the time to delete")
BY_HOUR = probe("clean_commit_log.by_hour", "the hour of deletion has come")
BY_HAND = probe("clean_commit_log.by_hand", "a deletion was requested by hand")
BY_SPACE = probe("clean_commit_log.by_space", "the disk is full enough to delete")
FORCED = probe("clean_commit_log.forced", "unexpired files are deleted by force")
YOUNG = probe("clean_commit_log.young", "the first file has not expired")
YOUNG_RECORD = probe(
    "clean_commit_log.young_record", "a file looks old, but its records are young"
)
NEEDED = probe(
    "clean_commit_log.needed", "the first file is not dispatched or flushed yet"
)
BATCH_FULL = probe(
    "clean_commit_log.batch_full", "more files may be deleted than in one round"
)
UNPROVEN = probe(
    "clean_commit_log.unproven",
    "nothing is deleted: the queues could not be made durable",
)
DELETED = probe("clean_commit_log.deleted", "files of the log were deleted")


class CleanCommitLogService:
    """Checks every ten seconds whether files may be deleted."""

    name = "clean_commit_log"

    def __init__(
        self,
        config: StoreConfig,
        disk: Disk,
        runtime: Runtime,
        commit_log: CommitLog,
        consume_queues: ConsumeQueueStore,
        reput: ReputMessageService,
        checkpoint: CheckpointService,
        space: DiskSpace,
    ) -> None:
        self.interval_ms = config.clean_resource_interval
        self._config = config
        self._disk = disk
        self._runtime = runtime
        self._commit_log = commit_log
        self._consume_queues = consume_queues
        self._reput = reput
        self._checkpoint = checkpoint
        self._space = space
        self.lock = runtime.lock()
        self._manual_times = 0
        self._is_stopped = False

    def execute_delete_files_manually(self) -> None:
        """Let the next rounds delete expired files at any hour.

        Source: DefaultMessageStore#executeDeleteFilesManually.
        """
        self._manual_times = MAX_MANUAL_DELETE_FILE_TIMES

    def run_once(self) -> int:
        """Delete the files that may go, if it is time; returns how many.

        Raises:
            OSError: the disk failed; the log begins where its files say.

        Source: CleanCommitLogService#run, #deleteExpiredFiles.
        """
        with self.lock:
            if self._is_stopped:
                return 0
            percent = self._space.watch()
            if not self._is_due(percent):
                NOT_DUE.hit()
                return 0
            return self._delete(immediately=self._is_forced(percent))

    def stop(self) -> None:
        """Wait for a round in progress; delete nothing after it."""
        with self.lock:
            self._is_stopped = True

    def _is_due(self, percent: int) -> bool:
        is_due = False
        if self._runtime.now_ms() // _HOUR_MS % 24 in self._config.delete_hours:
            BY_HOUR.hit()
            is_due = True
        if percent > self._config.disk_max_used_space_ratio:
            BY_SPACE.hit()
            is_due = True
        if self._manual_times:
            BY_HAND.hit()
            self._manual_times -= 1
            is_due = True
        return is_due

    def _is_forced(self, percent: int) -> bool:
        return (
            self._config.clean_file_forcibly_enable
            and percent > self._config.disk_space_clean_forcibly_ratio
        )

    def _delete(self, *, immediately: bool) -> int:
        end = self._end_of_what_may_go(immediately=immediately)
        if end < 0:
            return 0
        self._consume_queues.flush(0)
        if self._consume_queues.flush_failed:
            UNPROVEN.hit()
            return 0
        if immediately:
            FORCED.hit()
        self._commit_log.begin_deletion(end)
        self._checkpoint.run_once()
        return self._delete_until(end)

    def _delete_until(self, end: int) -> int:
        before: list[tuple[ConsumeQueue, int]] = []
        log_begins = 0

        def may_go(file: MappedFile) -> bool:
            nonlocal before, log_begins
            if file.end_offset > end:
                return False
            # Before the file goes, so that no reader is sent to what is not there.
            before, log_begins = self._consume_queues.min_offsets(), file.end_offset
            self._consume_queues.correct_min_offset(file.end_offset)
            return True

        DELETED.hit()
        try:
            return self._commit_log.mapped_files.delete_first_files(
                may_go,
                at_most=self._config.delete_file_batch_max,
                pause=self._pause,
            )
        finally:
            if self._commit_log.min_offset < log_begins:
                # It is still there, and the queues may be as unreadable as its name.
                for queue, min_offset in before:
                    queue.min_offset = min_offset

    def _pause(self) -> None:
        self._runtime.sleep_ms(self._config.delete_commit_log_files_interval)

    def _end_of_what_may_go(self, *, immediately: bool) -> int:
        """The end of the last file that may be deleted now; -1 if none may."""
        # What is not durable or not dispatched may be asked for after a crash.
        safe = min(self._reput.reput_from_offset, self._commit_log.flushed_where)
        files = list(self._commit_log.mapped_files.files)
        end, count = -1, 0
        for file in files[:-1]:
            if file.end_offset > safe:
                NEEDED.hit()
                break
            if not (immediately or self._has_expired(file)):
                YOUNG.hit()
                break
            if count == self._config.delete_file_batch_max:
                BATCH_FULL.hit()
                break
            end, count = file.end_offset, count + 1
        return end

    def _has_expired(self, file: MappedFile) -> bool:
        """Whether both the file's mtime and the next file's first record are old.

        The mtime alone proves little: a copied file looks young, a touched one may look
        old.
        """
        newest_ms = self._runtime.now_ms() - self._config.file_reserved_time * _HOUR_MS
        if self._disk.mtime_ms(file.path) > newest_ms:
            return False
        behind = self._commit_log.damage.end_of(file.end_offset)
        stored_ms = self._commit_log.store_timestamp_at(behind)
        if not 0 < stored_ms <= newest_ms:
            # Nothing was put after it yet, or what was is too young.
            YOUNG_RECORD.hit()
            return False
        return True
