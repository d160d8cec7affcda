"""The services that make data durable; SYNC_FLUSH has its own in ``group_commit``.

Source: org.apache.rocketmq.store.CommitLog.CommitRealTimeService, FlushRealTimeService,
DefaultMessageStore.FlushConsumeQueueService, RocketMQ 5.3. Differs: a failed sync
acknowledges nothing and stops the store until a start has written the range again;
timestamps of the checkpoint move after the sync they stand for.
"""

from __future__ import annotations

from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.log_sums import LogSums
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
from crashmq.engine.store.running_flags import RunningFlags
from crashmq.engine.store.store_checkpoint import DurableMark, StoreCheckpoint

SYNC_FAILED = probe("flush.sync_failed", "the disk failed a sync; the store stops")
LEAST_PAGES = probe("flush.real_time.least_pages", "a flush looked at whole pages only")
THOROUGH = probe("flush.real_time.thorough", "a flush took every byte")
COMMIT_LEAST = probe("flush.commit.least_pages", "a commit looked at whole pages only")
COMMIT_THOROUGH = probe("flush.commit.thorough", "a commit took every byte")
QUEUES_LEAST = probe("flush.queues.least_pages", "queues were flushed by whole pages")
QUEUES_THOROUGH = probe("flush.queues.thorough", "queues were flushed to the last unit")


class CommitLogFlusher:
    """Syncs the log, and stops puts when a sync fails.

    One flush runs at a time: a shutdown flushes too, while a host may still run
    services.

    Invariants:
        physic_msg_timestamp is not newer than what was flushed, once a flush has run
        flushed_where is not beyond the log's end
    """

    def __init__(
        self,
        commit_log: CommitLog,
        checkpoint: StoreCheckpoint,
        flags: RunningFlags,
        runtime: Runtime,
    ) -> None:
        self._commit_log = commit_log
        self._checkpoint = checkpoint
        self._flags = flags
        self._lock = runtime.lock()

    def _check(self) -> None:
        log = self._commit_log
        assert log.flushed_where <= max(log.min_offset, log.max_offset), log

    def flush(self, least_pages: int) -> bool:
        """Sync one file; return whether the log's flushed_where moved.

        Raises:
            OSError: it did not, and no put is taken until the next start.
        """
        with self._lock:
            return self._flush(least_pages)

    def _flush(self, least_pages: int) -> bool:
        if not self._flags.is_flushable:
            return False
        try:
            moved = self._commit_log.flush(least_pages)
        except OSError:
            SYNC_FAILED.hit()
            self._flags.stop_flushing()
            raise
        self._checkpoint.physic_msg_timestamp = max(
            self._checkpoint.physic_msg_timestamp, self._commit_log.flushed_timestamp
        )
        return moved

    def flush_all(self) -> int:
        """Sync up to the log's end; returns how many files were synced."""
        synced = 0
        while self.flush(0):
            synced += 1
        return synced


class CommitRealTimeService:
    """With a TransientStorePool: writes buffered appends to the files."""

    name = "commit"

    def __init__(
        self, config: StoreConfig, commit_log: CommitLog, runtime: Runtime
    ) -> None:
        self.interval_ms = config.commit_interval_commit_log
        self._config = config
        self._commit_log = commit_log
        self._runtime = runtime
        self._last_thorough_ms = 0

    def run_once(self) -> int:
        """Commit one file if enough is buffered, or all; returns the commits.

        Raises:
            OSError: the disk failed the write; the next round tries it again.

        Source: CommitRealTimeService#run.
        """
        now = self._runtime.now_ms()
        waited = now - self._last_thorough_ms
        if 0 <= waited < self._config.commit_commit_log_thorough_interval:
            COMMIT_LEAST.hit()
            least_pages = self._config.commit_commit_log_least_pages
            return int(self._commit_log.commit(least_pages))
        self._last_thorough_ms = now
        return self.run_last()

    def run_last(self) -> int:
        """Commit everything, so that the last round of dispatch sees it."""
        COMMIT_THOROUGH.hit()
        return self._commit_log.commit_all()


class FlushRealTimeService:
    """ASYNC_FLUSH: syncs full pages often, and all bytes once per thorough interval."""

    name = "flush_commit_log"

    def __init__(
        self, config: StoreConfig, flusher: CommitLogFlusher, runtime: Runtime
    ) -> None:
        self.interval_ms = config.flush_interval_commit_log
        self._config = config
        self._flusher = flusher
        self._runtime = runtime
        self._last_thorough_ms = 0

    def run_once(self) -> int:
        """Sync one file if enough pages are dirty; returns the files synced.

        Raises:
            OSError: the disk failed the sync.

        Source: FlushRealTimeService#run.
        """
        now = self._runtime.now_ms()
        least_pages = self._config.flush_commit_log_least_pages
        waited = now - self._last_thorough_ms
        if not 0 <= waited < self._config.flush_commit_log_thorough_interval:
            self._last_thorough_ms = now
            least_pages = 0
        (LEAST_PAGES if least_pages else THOROUGH).hit()
        return int(self._flusher.flush(least_pages))


class FlushConsumeQueueService:
    """Syncs the queues; a thorough pass advances logics_msg_timestamp."""

    name = "flush_consume_queue"

    def __init__(
        self,
        config: StoreConfig,
        consume_queues: ConsumeQueueStore,
        checkpoint: StoreCheckpoint,
        runtime: Runtime,
    ) -> None:
        self.interval_ms = config.flush_interval_consume_queue
        self._config = config
        self._consume_queues = consume_queues
        self._checkpoint = checkpoint
        self._runtime = runtime
        self._last_thorough_ms = 0

    def run_once(self) -> int:
        """Sync what is due; returns the files synced.

        Raises:
            OSError: the disk failed a sync; the timestamp stays until the next start.

        Source: FlushConsumeQueueService#doFlush.
        """
        now = self._runtime.now_ms()
        waited = now - self._last_thorough_ms
        if 0 <= waited < self._config.flush_consume_queue_thorough_interval:
            QUEUES_LEAST.hit()
            least_pages = self._config.flush_consume_queue_least_pages
            return self._consume_queues.flush(least_pages)
        self._last_thorough_ms = now
        return self.flush_thoroughly()

    def flush_thoroughly(self) -> int:
        """Sync every unit and advance the checkpoint's time; returns files synced."""
        QUEUES_THOROUGH.hit()
        dispatched = self._consume_queues.dispatched_timestamp
        dispatched_offset = self._consume_queues.dispatched_offset
        synced = self._consume_queues.flush(0)
        if not self._consume_queues.flush_failed:
            self._consume_queues.durable_dispatched_offset = dispatched_offset
            self._checkpoint.logics_msg_timestamp = max(
                self._checkpoint.logics_msg_timestamp, dispatched
            )
        return synced


class CheckpointService:
    """Writes the checkpoint every second.

    One round runs at a time: the log's cleaner asks for a round before it deletes, so
    an older round must not end after that one.
    """

    name = "checkpoint"

    def __init__(
        self,
        config: StoreConfig,
        commit_log: CommitLog,
        consume_queues: ConsumeQueueStore,
        checkpoint: StoreCheckpoint,
        sums: LogSums,
        runtime: Runtime,
    ) -> None:
        self.interval_ms = config.flush_interval_checkpoint
        self._config = config
        self._commit_log = commit_log
        self._consume_queues = consume_queues
        self._checkpoint = checkpoint
        self._sums = sums
        self._lock = runtime.lock()

    def run_once(self) -> int:
        """Write what has become durable; returns 1 if anything had changed.

        Raises:
            OSError: the disk failed the write or the sync.

        Source: DefaultMessageStore#addScheduleTask, its checkpoint flush.
        """
        with self._lock:
            return self._write()

    def _write(self) -> int:
        flushed_where = self._commit_log.flushed_where
        self._checkpoint.mark = DurableMark(
            self._commit_log.kept_from_offset,
            flushed_where,
            self._config.mapped_file_size_commit_log,
            self._config.queue_file_size,
            min(flushed_where, self._consume_queues.durable_dispatched_offset),
            self._sums.of(flushed_where),
            self._checkpoint.others_until,
            self._checkpoint.damaged_until,
        )
        return int(self._checkpoint.flush())
