"""ConsumeQueueStore: all queues, and the next queue offset of each.

Source: org.apache.rocketmq.store.queue.ConsumeQueueStore, QueueOffsetOperator, RocketMQ
5.3. Differs: a start compares every unit with its record, so it knows which units each
queue lacks; the next queue offsets follow from the log's records too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.clean.deleted_topics import ALL_QUEUES, DeletedTopics
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.damage import Damage
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.foreign import Losses, UnitsToCome, count_queues
from crashmq.engine.store.log_scan import LogScan
from crashmq.engine.store.logfile.mapped_file import MappedFile
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.engine.store.message.message import (
    DELAYS_MS,
    SCHEDULE_TOPIC,
    is_light_queue,
)
from crashmq.engine.store.queue.consume_queue import ConsumeQueue
from crashmq.engine.store.queue.consume_queue_ext import EXT_DIR, ConsumeQueueExt
from crashmq.engine.store.queue.queue_audit import QueueAudit, QueueKey
from crashmq.engine.store.queue.schedule_consume_queue import ScheduleConsumeQueue

AGREED = probe("consume_queue_store.audit.agreed", "every record had its unit")
UNLOGGED = probe(
    "consume_queue_store.audit.unlogged", "the log has no record of a queue"
)
LIGHT = probe("consume_queue_store.dispatch.light", "a light queue listed a record")
NO_UNIT = probe("consume_queue_store.dispatch.none", "a record that no queue lists")
DEAD = probe(
    "consume_queue_store.dispatch.dead", "a deleted topic's record was passed over"
)
LEFT_OVER = probe(
    "consume_queue_store.recover.left_over",
    "a start removed files that a deletion had left",
)


class ConsumeQueueStore:
    """Every queue of the store, found by topic and queue id.

    Attributes:
        deleted: the topics and queues whose older records are dead.
        flush_lock: held while queues are synced or removed.
    """

    def __init__(
        self,
        config: StoreConfig,
        disk: Disk,
        runtime: Runtime,
    ) -> None:
        self._config = config
        self._disk = disk
        self.deleted = DeletedTopics(disk)
        self.flush_lock = runtime.lock()
        self._dispatch_lock = runtime.lock()
        self._queues: dict[QueueKey, ConsumeQueue] = {}
        self._next_offsets: dict[QueueKey, int] = {}
        self.dispatched_timestamp = 0
        self.dispatched_offset = 0
        self.durable_dispatched_offset = 0
        self.flush_failed = False

    def load(self, trusted_below: int = 0) -> None:
        """Open every queue and find the end of its units without changing files.

        The file of deleted topics is read first.

        Args:
            trusted_below: queue files of records before this phy_offset are not read.

        Source: ConsumeQueueStore#load, #recover.
        """
        self.deleted.load()
        roots = ["consumequeue"]
        if self._config.enable_consume_queue_ext:
            roots.append(EXT_DIR)  # a crash may have come before a queue's first unit
        for root in roots:
            for topic, queue_id in self._queues_in(root):
                if (topic, queue_id) not in self._queues:
                    self._queue(topic, queue_id).load()
        for queue in self._queues.values():
            queue.recover(trusted_below)
            queue.mapped_files.lose_no_more()

    def _queues_in(self, root: str) -> Iterator[QueueKey]:
        """The queues that have a directory below ``root``."""
        for topic in self._disk.list_dir(root) if self._disk.is_dir(root) else ():
            topic_dir = f"{root}/{topic}"
            if not self._disk.is_dir(topic_dir):
                continue
            for name in self._disk.list_dir(topic_dir):
                if name.isascii() and name.isdigit() and str(int(name)) == name:
                    yield topic, int(name)

    def recover_all(self) -> None:
        """Read every file of every queue again."""
        for queue in self._queues.values():
            queue.mapped_files.lose_again()
            queue.recover()
            queue.mapped_files.lose_no_more()

    def _queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        key = (topic, queue_id)
        queue = self._queues.get(key)
        if queue is None:
            size = self._config.queue_file_size
            ext = None
            if self._config.enable_consume_queue_ext and not is_light_queue(topic):
                ext_size = self._config.mapped_file_size_consume_queue_ext
                ext = ConsumeQueueExt(self._disk, topic, queue_id, ext_size)
            levels = self._config.delay_levels
            if topic == SCHEDULE_TOPIC and levels.delays_ms != DELAYS_MS:
                queue = ScheduleConsumeQueue(self._disk, key, size, ext, levels)
            else:
                queue = ConsumeQueue(self._disk, topic, queue_id, size, ext)
            self._queues[key] = queue
        return queue

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue; None if no record was ever dispatched to it."""
        return self._queues.get((topic, queue_id))

    def audit(
        self, durable_offset: int, damage: Damage, *, trusts_bit_maps: bool = False
    ) -> QueueAudit:
        """Begin to compare the loaded queues with the log.

        Args:
            durable_offset: units of records before it are known to be durable.
            damage: the damage of the log found so far; it grows during the scan.
            trusts_bit_maps: whether the bit maps of all units are known to be durable.
        """
        return QueueAudit(
            self._queues,
            durable_offset,
            damage,
            self.deleted,
            trusts_bit_maps=trusts_bit_maps,
        )

    @property
    def has_units(self) -> bool:
        """Whether a start found any unit."""
        return any(queue.recovered_units for queue in self._queues.values())

    def files(self) -> list[MappedFile]:
        """The files of every queue, without those of consumequeue_ext."""
        queues = [queue for _, queue in sorted(self._queues.items())]
        return [file for queue in queues for file in queue.mapped_files.files]

    def misnamed(self) -> list[str]:
        """Files of queues that RocketMQ would load and this store skips.

        See ``MappedFileQueue.misnamed``.
        """
        queues = [queue for _, queue in sorted(self._queues.items())]
        return [path for queue in queues for path in queue.mapped_files.misnamed()]

    def count_losses(
        self, losses: Losses, to_come: UnitsToCome, scan: LogScan, *, crashed: bool
    ) -> None:
        """Count the units that ``recover`` would cut and dispatch not build again."""
        queues, deleted = self._queues, self.deleted
        ends = {
            key: self._end_of(key, queue, to_come.audit, scan)
            for key, queue in queues.items()
        }
        count_queues(losses, queues, to_come, ends, scan, deleted, crashed=crashed)

    def recover(self, audit: QueueAudit, scan: LogScan) -> None:
        """Cut each queue where it disagrees with the log; set the next queue offsets.

        Source: ConsumeQueueStore#truncateDirty, #recoverOffsetTable.
        """
        self.dispatched_timestamp = audit.dispatched_timestamp
        lacks = audit.first_wrong_phy_offset
        self.dispatched_offset = lacks if lacks >= 0 else scan.end
        if not audit.first_wrong:
            AGREED.hit()
        if self.deleted:
            self._remove_left_overs(audit, scan.read_from)
        for key, queue in self._queues.items():
            self._cut(key, queue, audit, scan)
            first_unflushed = audit.first_unflushed.get(key)
            if audit.damage.ranges or audit.durable_offset < scan.start:
                # Nobody knows of the units of records that are damaged, or gone though
                # no mark says that they were dispatched; all are synced again.
                first_unflushed = queue.first_offset
            queue.set_flushed(first_unflushed)
            if scan.read_from <= scan.start and not audit.damage.ranges:
                # A unit of an expired record may have rotted: nothing proves it.
                first = audit.first_offsets.get(key, 0)
                queue.first_known = min(first, queue.max_offset)
            queue.correct_min_offset(scan.start)
            queue.mapped_files.be_strict()
            self._next_offsets[key] = queue.max_offset
        for key, next_offset in audit.next_offsets.items():
            known = self._next_offsets.get(key, 0)
            self._next_offsets[key] = max(known, next_offset)

    def sync_found(self) -> None:
        """Make durable what a start has kept, cut and removed.

        The previous run may have ended between a removal and its sync. A queue without
        new units is not flushed again, so a removed file could come back even after an
        orderly shutdown.

        Raises:
            OSError: it may not be durable; the next start tries again.
        """
        for files in self._folders():
            files.sync_found()

    def settle_deletions(self) -> None:
        """Sync directories where the sync of the cleaner's last removal failed.

        Raises:
            OSError: a power loss may bring back a file.
        """
        for files in self._folders():
            files.settle_deletion()

    def _folders(self) -> list[MappedFileQueue]:
        return [files for queue in self._queues.values() for files in queue.folders]

    def _remove_left_overs(self, audit: QueueAudit, read_from: int) -> None:
        """Finish deletions that a crash interrupted: remove queues without live units.

        Records before ``read_from`` were not read, so a queue with units of such
        records stays.
        """
        for key, queue in list(self._queues.items()):
            dead_below = self.deleted.dead_below(*key)
            if not dead_below or key in audit.next_offsets:
                continue
            alive_until = queue.first_unit_at_or_past(max(dead_below, read_from))
            if queue.first_unit_at_or_past(dead_below) == alive_until:
                LEFT_OVER.hit()
                queue.remove()  # if it fails, the queue is closed with the others
                del self._queues[key]

    @staticmethod
    def _cut(
        key: QueueKey,
        queue: ConsumeQueue,
        audit: QueueAudit,
        scan: LogScan,
    ) -> None:
        end = ConsumeQueueStore._end_of(key, queue, audit, scan)
        if end is not None:
            queue.truncate_dirty_units(end)
            return
        UNLOGGED.hit()
        until = queue.first_offset  # of a log read from 0 no record has expired
        if scan.read_from:
            until = queue.first_unit_at_or_past(scan.read_from)
        queue.truncate_dirty_units(until)
        has_expired = queue.first_offset and audit.damage.log_min_offset
        if queue.is_empty and not has_expired:
            queue.destroy()  # else its name alone says how far the queue has counted

    @staticmethod
    def _end_of(
        key: QueueKey, queue: ConsumeQueue, audit: QueueAudit, scan: LogScan
    ) -> int | None:
        """The queue_offset at which to cut a queue; None if the log has none of it."""
        wrong = audit.first_wrong.get(key)
        end = wrong.queue_offset if wrong else audit.next_offsets.get(key)
        if audit.damage.ranges and wrong is None:
            # Of its last messages nothing may be left but their numbers.
            known = queue.first_offset if end is None else end
            units = queue.recovered_units
            reach = queue.end_of_damaged(known, units, audit.damage, scan.end)
            end = reach if reach > known else end
        return end

    def next_queue_offset(self, topic: str, queue_id: int) -> int:
        """The next queue_offset of a queue, undispatched messages included."""
        return self._next_offsets.get((topic, queue_id), 0)

    def next_queue_offsets(self) -> tuple[tuple[QueueKey, int], ...]:
        """The next queue_offset of each queue that ever had a message, sorted."""
        return tuple(sorted(self._next_offsets.items()))

    def increase_queue_offset(self, topic: str, queue_id: int, count: int = 1) -> None:
        """Advance a queue's next queue_offset by ``count`` messages."""
        key = (topic, queue_id)
        self._next_offsets[key] = self._next_offsets.get(key, 0) + count

    def dispatch(self, request: DispatchRequest) -> None:
        """Append one record's unit to its queue, unless the queue has it.

        Raises:
            OSError: the unit may be missing; call again.

        Source: CommitLogDispatcherBuildConsumeQueue.
        """
        if not request.has_unit:
            NO_UNIT.hit()
        else:
            # Or a queue might go while it is written.
            with self._dispatch_lock:
                self._list_in_queue(request)
                if request.light_places:
                    self._list_in_light_queues(request)
            if request.store_timestamp > self.dispatched_timestamp:
                self.dispatched_timestamp = request.store_timestamp
        # The index may lack records that the queues have: those come again.
        end = request.commit_log_offset + request.msg_size
        if end > self.dispatched_offset:
            self.dispatched_offset = end

    def _list_in_light_queues(self, request: DispatchRequest) -> None:
        for light in request.in_light_queues():
            LIGHT.hit()
            self._list_in_queue(light)

    def _list_in_queue(self, request: DispatchRequest) -> None:
        if self.deleted:
            dead_below = self.deleted.dead_below(request.topic, request.queue_id)
            if request.commit_log_offset < dead_below:
                DEAD.hit()
                return
        queue = self._queue(request.topic, request.queue_id)
        queue.put_message_position_info(request)

    @property
    def max_phy_offset(self) -> int:
        """The end of the newest record that any queue lists; 0 if none does.

        Raises:
            OSError: the medium could not be read.

        Source: ConsumeQueueStore#getMaxPhyOffsetInConsumeQueue.
        """
        newest = [queue.max_phy_offset for queue in self._queues.values()]
        return max(newest, default=0)

    def flush(self, least_pages: int) -> int:
        """Sync each queue that has enough dirty pages; returns how many files.

        Raises:
            OSError: some units may never be durable in this life of the store.
        """
        synced = 0
        try:
            with self.flush_lock:
                # A list: dispatch may add a queue while another is being synced.
                for queue in list(self._queues.values()):
                    # To its present end: dispatch may append faster than disks sync.
                    files = queue.mapped_files
                    end = files.max_offset
                    while files.flushed_where < end and queue.flush(least_pages):
                        synced += 1
        except OSError:
            self.flush_failed = True
            raise
        return synced

    def topics(self) -> list[str]:
        """Every topic that has a queue or a message, sorted."""
        return sorted({topic for topic, _ in (*self._queues, *self._next_offsets)})

    def knows(self, topic: str, queue_id: int) -> bool:
        """Whether this queue exists, or with ``ALL_QUEUES`` any queue of the topic."""
        keys = (*self._queues, *self._next_offsets)
        return any(_is_of(key, topic, queue_id) for key in keys)

    def delete(self, topic: str, queue_id: int) -> None:
        """Remove a queue, or with ``ALL_QUEUES`` every queue of the topic.

        The caller holds ``flush_lock`` and keeps puts out.

        Raises:
            OSError: some files may be left; a start removes them.
        """
        with self._dispatch_lock:
            for key in [
                key for key in self._next_offsets if _is_of(key, topic, queue_id)
            ]:
                del self._next_offsets[key]
            gone = [key for key in self._queues if _is_of(key, topic, queue_id)]
            removed = [self._queues.pop(key) for key in gone]
            try:
                for queue in removed:
                    queue.remove()
            except OSError:
                # Nobody else will: they are in no list any more.
                for queue in removed:
                    queue.close()
                raise

    def correct_min_offset(self, log_min_offset: int) -> None:
        """Set each queue's min_offset to its first unit whose record the log has."""
        for queue in list(self._queues.values()):
            queue.correct_min_offset(log_min_offset)

    def min_offsets(self) -> list[tuple[ConsumeQueue, int]]:
        """Each queue that has units, with its min_offset.

        Where an empty queue begins is for dispatch to say, which may be doing so.
        """
        queues = list(self._queues.values())
        return [(queue, queue.min_offset) for queue in queues if not queue.is_empty]

    def delete_expired(self, log_min_offset: int, pause: Callable[[], None]) -> int:
        """Delete queue files with only expired units; returns how many.

        ``pause`` is called between two files of a queue, and after a queue of which
        files were deleted.

        Raises:
            OSError: the disk failed; call again.

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
        """Close every file."""
        for queue in self._queues.values():
            queue.close()


def _is_of(key: QueueKey, topic: str, queue_id: int) -> bool:
    return key[0] == topic and queue_id in (ALL_QUEUES, key[1])
