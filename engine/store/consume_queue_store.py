"""ConsumeQueueStore: all queues, and the next queue offset of each.

Source: org.apache.rocketmq.store.queue.ConsumeQueueStore, QueueOffsetOperator,
RocketMQ 5.3. Differs: a start holds every unit against its record, so what a queue
lacks is known by queue, and the next queue offset comes from the log as well.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.host.disk import Disk
from engine.host.probe import probe
from engine.store.config import StoreConfig
from engine.store.consume_queue import ConsumeQueue
from engine.store.dispatch import DispatchRequest

QueueKey = tuple[str, int]

DISAGREED = probe("consume_queue_store.audit.disagreed", "a unit is not its record's")
LACKED = probe("consume_queue_store.audit.lacked", "a record has no unit")
AGREED = probe("consume_queue_store.audit.agreed", "every record had its unit")
UNLOGGED = probe("consume_queue_store.audit.unlogged", "the log names not a queue")
NO_UNIT = probe("consume_queue_store.dispatch.none", "a record that no queue lists")


class QueueAudit:
    """What the log says of the queues, gathered while a start scans it."""

    def __init__(
        self, queues: dict[QueueKey, ConsumeQueue], durable_timestamp: int
    ) -> None:
        self._queues = queues
        self._durable_timestamp = durable_timestamp
        self.next_offsets: dict[QueueKey, int] = {}
        self.first_wrong: dict[QueueKey, int] = {}
        self.first_unflushed: dict[QueueKey, int] = {}
        self.first_wrong_phy_offset = -1
        self.first_wrong_timestamp = -1
        self.dispatched_timestamp = 0

    def visit(self, request: DispatchRequest) -> None:
        """Hold one record against its queue; records come in the log's order."""
        if not request.has_unit:
            return
        key = (request.topic, request.queue_id)
        self.next_offsets[key] = request.consume_queue_offset + 1
        if request.store_timestamp >= self._durable_timestamp:
            self.first_unflushed.setdefault(key, request.consume_queue_offset)
        if key in self.first_wrong:
            return
        queue = self._queues.get(key)
        if queue is not None and queue.agrees_with(request):
            if not self.first_wrong:
                self.dispatched_timestamp = request.store_timestamp
            return
        (LACKED if queue is None else DISAGREED).hit()
        self.first_wrong[key] = request.consume_queue_offset
        if self.first_wrong_phy_offset < 0:
            self.first_wrong_phy_offset = request.commit_log_offset
            self.first_wrong_timestamp = request.store_timestamp


class ConsumeQueueStore:
    """Every queue of the store, found by topic and queue id."""

    def __init__(self, config: StoreConfig, disk: Disk) -> None:
        self._config = config
        self._disk = disk
        self._queues: dict[QueueKey, ConsumeQueue] = {}
        self._next_offsets: dict[QueueKey, int] = {}
        self.dispatched_timestamp = 0
        self.flush_failed = False

    def load(self) -> None:
        """Open every queue and find where its units end; changes nothing.

        Source: ConsumeQueueStore#load, #recover.
        """
        if not self._disk.is_dir("consumequeue"):
            return
        for topic in self._disk.list_dir("consumequeue"):
            topic_dir = f"consumequeue/{topic}"
            if not self._disk.is_dir(topic_dir):
                continue
            for name in self._disk.list_dir(topic_dir):
                if name.isascii() and name.isdigit() and str(int(name)) == name:
                    self._queue(topic, int(name)).load()
        for queue in self._queues.values():
            queue.recover()

    def _queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        key = (topic, queue_id)
        queue = self._queues.get(key)
        if queue is None:
            size = self._config.queue_file_size
            queue = ConsumeQueue(self._disk, topic, queue_id, size)
            self._queues[key] = queue
        return queue

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue, if any record was ever dispatched to it."""
        return self._queues.get((topic, queue_id))

    def audit(self, durable_timestamp: int) -> QueueAudit:
        """Begin to hold the loaded queues against the log.

        Args:
            durable_timestamp: units of records stored before are known durable.
        """
        return QueueAudit(self._queues, durable_timestamp)

    def recover(self, audit: QueueAudit, log_min_offset: int, *, clean: bool) -> None:
        """Cut every queue where it parts from the log, and settle the offsets.

        Source: ConsumeQueueStore#truncateDirty, #recoverOffsetTable.
        """
        self.dispatched_timestamp = audit.dispatched_timestamp
        if not audit.first_wrong:
            AGREED.hit()
        for key, queue in self._queues.items():
            self._cut(key, queue, audit, log_min_offset)
            durable = queue.max_offset
            if not clean:
                durable = min(durable, audit.first_unflushed.get(key, durable))
            queue.set_flushed(durable)
            queue.correct_min_offset(log_min_offset)
            self._next_offsets[key] = queue.max_offset
        for key, next_offset in audit.next_offsets.items():
            known = self._next_offsets.get(key, 0)
            self._next_offsets[key] = max(known, next_offset)

    @staticmethod
    def _cut(
        key: QueueKey, queue: ConsumeQueue, audit: QueueAudit, log_min_offset: int
    ) -> None:
        end = audit.first_wrong.get(key, audit.next_offsets.get(key))
        if end is not None:
            queue.truncate_dirty_units(end)
            return
        UNLOGGED.hit()
        queue.truncate_dirty_units(queue.first_unit_at_or_past(log_min_offset))
        if queue.is_empty:
            queue.destroy()

    def next_queue_offset(self, topic: str, queue_id: int) -> int:
        """The queue offset the next message of a queue gets, dispatched or not."""
        return self._next_offsets.get((topic, queue_id), 0)

    def increase_queue_offset(self, topic: str, queue_id: int) -> None:
        """Take note that a message has the next queue offset."""
        key = (topic, queue_id)
        self._next_offsets[key] = self._next_offsets.get(key, 0) + 1

    def dispatch(self, request: DispatchRequest) -> None:
        """List one record in its queue, unless it is.

        Raises:
            OSError: it may not be listed; ask again.

        Source: CommitLogDispatcherBuildConsumeQueue.
        """
        if not request.has_unit:
            NO_UNIT.hit()
            return
        queue = self._queue(request.topic, request.queue_id)
        queue.put_message_position_info(request)
        self.dispatched_timestamp = max(
            self.dispatched_timestamp, request.store_timestamp
        )

    def flush(self, least_pages: int) -> int:
        """Sync what is due in every queue; how many files were synced.

        Raises:
            OSError: some units may never be durable in this life of the store.
        """
        synced = 0
        try:
            # A list: dispatch may add a queue while another is being synced.
            for queue in list(self._queues.values()):
                # To its present end: dispatch may append faster than a disk syncs.
                files = queue.mapped_files
                end = files.max_offset
                while files.flushed_where < end and queue.flush(least_pages):
                    synced += 1
        except OSError:
            self.flush_failed = True
            raise
        return synced

    def correct_min_offset(self, log_min_offset: int) -> None:
        """Let every queue begin at its first unit whose record the log still has."""
        for queue in list(self._queues.values()):
            queue.correct_min_offset(log_min_offset)

    def delete_expired(self, log_min_offset: int, pause: Callable[[], None]) -> int:
        """Delete queue files that point before the log; how many went.

        ``pause`` is called between two files of a queue, and after a queue that lost
        any.

        Raises:
            OSError: the disk failed; ask again.

        Source: CleanConsumeQueueService#deleteExpiredFiles.
        """
        deleted = 0
        for queue in list(self._queues.values()):
            of_queue = queue.delete_expired(log_min_offset, pause)
            if of_queue:
                pause()
            deleted += of_queue
        return deleted

    def close(self) -> None:
        """Let go of every file."""
        for queue in self._queues.values():
            queue.mapped_files.close()
