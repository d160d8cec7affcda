"""Deletion: builds the cleaners and the topic deletion of one store.

Source: org.apache.rocketmq.store.DefaultMessageStore, its two cleaners and their
callers, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.host.service import Service
from crashmq.engine.store.clean.clean_commit_log_service import CleanCommitLogService
from crashmq.engine.store.clean.clean_consume_queue_service import (
    CleanConsumeQueueService,
)
from crashmq.engine.store.clean.disk_space import DiskSpace
from crashmq.engine.store.clean.topic_deletion import TopicDeletion
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.flush import CheckpointService
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
from crashmq.engine.store.reput_message_service import ReputMessageService
from crashmq.engine.store.running_flags import RunningFlags


class Deletion:
    """The services and requests by which a store deletes data.

    Args:
        followers: other owners of data by log offset; see CleanConsumeQueueService.

    Attributes:
        topics: deletes topics and queues on request.
    """

    def __init__(
        self,
        config: StoreConfig,
        disk: Disk,
        runtime: Runtime,
        space: DiskSpace,
        commit_log: CommitLog,
        consume_queues: ConsumeQueueStore,
        reput: ReputMessageService,
        checkpoint: CheckpointService,
        followers: Sequence[Callable[[int], int]],
        flags: RunningFlags,
    ) -> None:
        self._clean_commit_log = CleanCommitLogService(
            config, disk, runtime, commit_log, consume_queues, reput, checkpoint, space
        )
        self._clean_consume_queue = CleanConsumeQueueService(
            config, runtime, commit_log, consume_queues, followers
        )
        self.topics = TopicDeletion(
            runtime,
            flags,
            commit_log,
            consume_queues,
            (self._clean_commit_log.lock, self._clean_consume_queue.lock),
        )

    @property
    def services(self) -> tuple[Service, ...]:
        """The cleaners, as services for the host to run."""
        return (self._clean_commit_log, self._clean_consume_queue)

    def execute_delete_files_manually(self) -> None:
        """Let the cleaner's next rounds delete expired files at any hour.

        Source: DefaultMessageStore#executeDeleteFilesManually.
        """
        self._clean_commit_log.execute_delete_files_manually()

    def stop(self) -> None:
        """Wait for deletions in progress; delete nothing after them."""
        self.topics.stop()
        self._clean_commit_log.stop()
        self._clean_consume_queue.stop()
