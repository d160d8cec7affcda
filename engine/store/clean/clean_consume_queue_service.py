"""CleanConsumeQueueService: deletes queue files whose records have all expired.

Source: DefaultMessageStore.CleanConsumeQueueService, RocketMQ 5.3. Differs: a queue's
min_offset is corrected when the log file is deleted, not here; and every round looks at
every queue, so that a file that could not be deleted, or was the queue's last, is
deleted in a later round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore

IDLE = probe("clean_consume_queue.idle", "the log begins at 0: nothing has expired")
DELETED = probe("clean_consume_queue.deleted", "files of queues were deleted")
NONE_TO_DELETE = probe(
    "clean_consume_queue.none",
    "the log begins above 0, but no queue file may be deleted",
)


class CleanConsumeQueueService:
    """Deletes queue, extension and index files whose records have all expired.

    Args:
        delete_expired: other owners of data by log offset, as the index; each is
            called with the log's min_phy_offset and returns how many files it deleted.
    """

    name = "clean_consume_queue"

    def __init__(
        self,
        config: StoreConfig,
        runtime: Runtime,
        commit_log: CommitLog,
        consume_queues: ConsumeQueueStore,
        delete_expired: Sequence[Callable[[int], int]] = (),
    ) -> None:
        self.interval_ms = config.clean_resource_interval
        self._config = config
        self._runtime = runtime
        self._commit_log = commit_log
        self._consume_queues = consume_queues
        self._delete_expired = delete_expired
        self.lock = runtime.lock()
        self._is_stopped = False

    def run_once(self) -> int:
        """Delete queue files with only expired units; returns how many.

        Raises:
            OSError: the disk failed; the next round goes on.

        Source: CleanConsumeQueueService#run, #deleteExpiredFiles.
        """
        with self.lock:
            log_min = self._commit_log.min_offset
            if self._is_stopped or log_min <= 0:
                IDLE.hit()
                return 0
            # The log's cleaner may be amid the removal of a file before that.
            self._commit_log.mapped_files.settle_deletion()
            deleted = self._consume_queues.delete_expired(log_min, self._pause)
            deleted += sum(delete(log_min) for delete in self._delete_expired)
        (DELETED if deleted else NONE_TO_DELETE).hit()
        return deleted

    def stop(self) -> None:
        """Wait for a round in progress; delete nothing after it."""
        with self.lock:
            self._is_stopped = True

    def _pause(self) -> None:
        self._runtime.sleep_ms(self._config.delete_consume_queue_files_interval)
