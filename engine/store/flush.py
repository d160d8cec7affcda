"""The services that make things durable, and what a put waits for.

Source: org.apache.rocketmq.store.CommitLog.GroupCommitService, FlushRealTimeService,
DefaultMessageStore.FlushConsumeQueueService, RocketMQ 5.3. Differs: a failed sync
acknowledges nothing and stops the store until a start has written the range again;
timestamps of the checkpoint move after the sync they stand for.
"""

from __future__ import annotations

from engine.host.probe import probe
from engine.host.runtime import Runtime
from engine.store.checkpoint import DurableMark, StoreCheckpoint
from engine.store.commit_log import CommitLog
from engine.store.config import StoreConfig
from engine.store.consume_queue_store import ConsumeQueueStore
from engine.store.results import PutMessageStatus
from engine.store.running_flags import RunningFlags

GROUP_COMMITTED = probe("flush.group.committed", "a waiting put was covered by a sync")
GROUP_BEFORE = probe("flush.group.before", "a waiting put was covered already")
GROUP_IDLE = probe("flush.group.idle", "a group commit without a waiting put")
GROUP_FAILED = probe("flush.group.failed", "a waiting put could not be covered")
TIMED_OUT = probe("flush.group.timed_out", "a put stopped waiting for its sync")
SYNC_FAILED = probe("flush.sync_failed", "the disk failed a sync; the store stops")
LEAST_PAGES = probe("flush.real_time.least_pages", "a flush looked at whole pages only")
THOROUGH = probe("flush.real_time.thorough", "a flush took every byte")
QUEUES_LEAST = probe("flush.queues.least_pages", "queues were flushed by whole pages")
QUEUES_THOROUGH = probe("flush.queues.thorough", "queues were flushed to the last unit")


class CommitLogFlusher:
    """Syncs the log, and answers for a sync that failed.

    One flush at a time: a shutdown flushes too, while a host may still turn services.

    Invariants:
        physic_msg_timestamp is that of a record below flushed_where
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

    def flush(self, least_pages: int) -> bool:
        """Sync one file; whether the log's flushed mark moved.

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
        if moved:
            self._checkpoint.physic_msg_timestamp = max(
                self._checkpoint.physic_msg_timestamp,
                self._commit_log.flushed_timestamp,
            )
        return moved

    def flush_all(self) -> int:
        """Sync to the log's end; how many files that took."""
        synced = 0
        while self.flush(0):
            synced += 1
        return synced


class FlushRealTimeService:
    """ASYNC_FLUSH: syncs whole pages often, and everything now and then."""

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
        """Sync one file if enough was written; returns the files synced.

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


class GroupCommitRequest:
    """A put that waits until the log is durable up to ``next_offset``."""

    def __init__(self, next_offset: int, runtime: Runtime) -> None:
        self.next_offset = next_offset
        self._done = runtime.event()
        self._status: PutMessageStatus | None = None

    def complete(self, status: PutMessageStatus) -> None:
        """Answer the put; the first answer stands."""
        if self._status is None:
            self._status = status
            self._done.set()

    def wait(self, timeout_ms: int) -> PutMessageStatus:
        """The answer; FLUSH_DISK_TIMEOUT if none came in time."""
        if not self._done.wait(timeout_ms):
            TIMED_OUT.hit()
            self.complete(PutMessageStatus.FLUSH_DISK_TIMEOUT)
        assert self._status is not None, "an event is set after the status"
        return self._status


class GroupCommitService:
    """SYNC_FLUSH: one sync answers every put that waits for it."""

    name = "flush_commit_log"
    interval_ms = 10

    def __init__(
        self, commit_log: CommitLog, flusher: CommitLogFlusher, runtime: Runtime
    ) -> None:
        self._commit_log = commit_log
        self._flusher = flusher
        self._runtime = runtime
        self._lock = runtime.lock()
        self._requests: list[GroupCommitRequest] = []

    def put_request(self, next_offset: int) -> GroupCommitRequest:
        """Ask for the log to be durable up to ``next_offset``."""
        request = GroupCommitRequest(next_offset, self._runtime)
        with self._lock:
            self._requests.append(request)
        return request

    def run_once(self) -> int:
        """Answer every waiting put; returns the answers and syncs.

        Raises:
            OSError: the disk failed the sync; every waiting put was answered.

        Source: GroupCommitService#doCommit.
        """
        with self._lock:
            requests, self._requests = self._requests, []
        if not requests:
            GROUP_IDLE.hit()
            return int(self._flusher.flush(0))
        try:
            for request in requests:
                self._commit(request)
        except OSError:
            for request in requests:
                request.complete(PutMessageStatus.FLUSH_DISK_TIMEOUT)
            raise
        return len(requests)

    def _commit(self, request: GroupCommitRequest) -> None:
        if self._commit_log.flushed_where >= request.next_offset:
            GROUP_BEFORE.hit()
        while (before := self._commit_log.flushed_where) < request.next_offset:
            self._flusher.flush(0)
            # Another flush may have moved the mark meanwhile, so look at the mark.
            if self._commit_log.flushed_where == before:
                GROUP_FAILED.hit()
                request.complete(PutMessageStatus.FLUSH_DISK_TIMEOUT)
                return
        GROUP_COMMITTED.hit()
        request.complete(PutMessageStatus.PUT_OK)


class FlushConsumeQueueService:
    """Syncs the queues; a thorough pass moves logics_msg_timestamp."""

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
        """Sync every unit, then let the checkpoint say so; returns files synced."""
        QUEUES_THOROUGH.hit()
        dispatched = self._consume_queues.dispatched_timestamp
        synced = self._consume_queues.flush(0)
        if not self._consume_queues.flush_failed:
            self._checkpoint.logics_msg_timestamp = max(
                self._checkpoint.logics_msg_timestamp, dispatched
            )
        return synced


class CheckpointService:
    """Writes the checkpoint every second."""

    name = "checkpoint"

    def __init__(
        self, config: StoreConfig, commit_log: CommitLog, checkpoint: StoreCheckpoint
    ) -> None:
        self.interval_ms = config.flush_interval_checkpoint
        self._config = config
        self._commit_log = commit_log
        self._checkpoint = checkpoint

    def run_once(self) -> int:
        """Write what has become durable; returns 1 if there was anything.

        Raises:
            OSError: the disk failed the write or the sync.

        Source: DefaultMessageStore#addScheduleTask, its checkpoint flush.
        """
        self._checkpoint.mark = DurableMark(
            max(0, self._commit_log.min_offset),
            self._commit_log.flushed_where,
            self._config.mapped_file_size_commit_log,
            self._config.queue_file_size,
        )
        return int(self._checkpoint.flush())
