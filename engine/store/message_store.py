"""MessageStore: a store from load to shutdown.

``load`` reads everything and may refuse, having changed nothing; ``start`` makes the
files agree with what was read and opens the store; then messages are put and read,
while the host runs the store's ``services``; ``shutdown`` leaves files that the next
start need not repair.

Source: org.apache.rocketmq.store.DefaultMessageStore, RocketMQ 5.3. Differs: dispatch
resumes at the first record that any queue lacks, and the abort file is durable before
anything is changed.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection
from typing import TypeVar

from crashmq.engine.host.disk import Disk, FileLock
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.host.service import Service
from crashmq.engine.store.abort_file import AbortFile
from crashmq.engine.store.clean.deletion import Deletion
from crashmq.engine.store.clean.disk_space import DiskSpace
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import FlushDiskType, StoreConfig
from crashmq.engine.store.damage import DamagedRange
from crashmq.engine.store.dispatch import CommitLogDispatcher, DispatchRequest
from crashmq.engine.store.errors import (
    Place,
    StoreCorrupted,
    StoreForeign,
    StoreLocked,
    StoreStopped,
)
from crashmq.engine.store.flush import (
    CheckpointService,
    CommitLogFlusher,
    CommitRealTimeService,
    FlushConsumeQueueService,
    FlushRealTimeService,
)
from crashmq.engine.store.foreign import Losses
from crashmq.engine.store.group_commit import GroupCommitService
from crashmq.engine.store.index.index_service import FlushIndexService, IndexService
from crashmq.engine.store.index.key_query import KeyQuery
from crashmq.engine.store.log_sums import LogSums
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message.message_reader import ListedMessage, MessageReader
from crashmq.engine.store.message.tags_filter import ANY_TAGS, Wanted
from crashmq.engine.store.put_service import PutMessageHook, PutService
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
from crashmq.engine.store.queue.queue_audit import QueueKey
from crashmq.engine.store.reput_message_service import ReputMessageService
from crashmq.engine.store.results import (
    GetMessageResult,
    PutMessageResult,
    QueryMessageResult,
)
from crashmq.engine.store.rounds import Rounds
from crashmq.engine.store.running_flags import RunningFlags
from crashmq.engine.store.start_up import StartUp
from crashmq.engine.store.store_checkpoint import StoreCheckpoint
from crashmq.engine.store.store_stats_service import StoreStatsService
from crashmq.engine.store.time_search import BoundaryType

_DISPATCH_POLL_MS = 1000

REFUSED = probe(
    "message_store.load.refused", "a start refused a log damaged below the mark"
)
CLEAN = probe("message_store.shutdown.clean", "a shutdown left nothing to repair")
BEHIND = probe("message_store.shutdown.behind", "a shutdown met undispatched records")
UNFLUSHED = probe("message_store.shutdown.unflushed", "a shutdown could not sync")
CLOSED_UNDER = probe("message_store.read.closed", "files were let go under a read")


_T = TypeVar("_T")


class MessageStore:
    """One store on one directory.

    Invariants while it is started:
        abort exists durably
        reput_from_offset <= max_phy_offset, flushed_where <= max_phy_offset
    """

    def __init__(self, config: StoreConfig, disk: Disk, runtime: Runtime) -> None:
        self._config = config
        self._disk = disk
        self._runtime = runtime
        self._flags = RunningFlags()
        self._abort = AbortFile(disk, config.process_id)
        self._checkpoint = StoreCheckpoint(disk)
        self._consume_queues = ConsumeQueueStore(config, disk, runtime)
        self.deleted_topics = self._consume_queues.deleted
        space = DiskSpace(config, disk, self._flags)
        queues, marks = self._consume_queues, self._checkpoint
        log = self.commit_log = CommitLog(config, disk, runtime, queues, space)
        index = self._index = IndexService(config, disk, runtime, marks)
        # Queues before the index: what a query by key finds can be pulled as well.
        dispatchers: list[CommitLogDispatcher] = [queues]
        if config.message_index_enable:
            dispatchers.append(index)
        stats = StoreStatsService(runtime)
        self.reput = ReputMessageService(config, log, dispatchers, stats)
        self._flusher = CommitLogFlusher(log, marks, self._flags, runtime)
        self._group_commit = GroupCommitService(log, self._flusher, runtime)
        self._puts = PutService(config, self._flags, self._group_commit, stats, runtime)
        self._flush_queues = FlushConsumeQueueService(config, queues, marks, runtime)
        sums = LogSums(log.mapped_files, runtime)
        rounds = CheckpointService(config, log, queues, marks, sums, runtime)
        self._checkpoint_service = rounds
        self._flush_index = FlushIndexService(config, index, log)
        self._key_query = KeyQuery(config, log, index, queues.deleted)
        expire = (index.delete_expired,) if config.message_index_enable else ()
        self.deletion = Deletion(
            config,
            disk,
            runtime,
            space,
            log,
            queues,
            self.reput,
            rounds,
            expire,
            self._flags,
        )
        self._reader = MessageReader(config, log, queues)
        self._flush_commit_log: Service = (
            self._group_commit
            if config.flush_disk_type is FlushDiskType.SYNC_FLUSH
            else FlushRealTimeService(config, self._flusher, runtime)
        )
        self._services = self._services_of(config, runtime)
        self._start_up = StartUp(
            config, disk, self._abort, marks, log, queues, index, sums
        )
        self._lock: FileLock | None = None
        self._was_loaded = self.is_started = self._has_let_go = False
        self._stop_lock = runtime.lock()
        self._stopped_clean = False

    @property
    def last_exit_ok(self) -> bool:
        """Whether ``load`` found that the previous run had an orderly shutdown."""
        return self._start_up.last_exit_ok

    @property
    def losses(self) -> Losses:
        """What ``start`` would remove of a directory that other programs wrote to.

        ``load`` counts it, and refuses if there is anything, unless ``adopt`` is set.
        """
        return self._start_up.losses

    @property
    def damaged_ranges(self) -> tuple[DamagedRange, ...]:
        """The ranges whose records the store skips; see ``scan_around``."""
        return tuple(self.commit_log.damage.ranges)

    @property
    def next_queue_offsets(self) -> tuple[tuple[QueueKey, int], ...]:
        """The next queue_offset of each queue that ever had a message."""
        return self._consume_queues.next_queue_offsets()

    def next_queue_offset(self, topic: str, queue_id: int) -> int:
        """The queue_offset that the next message of a queue gets, dispatched or not."""
        return self._consume_queues.next_queue_offset(topic, queue_id)

    def _services_of(self, config: StoreConfig, runtime: Runtime) -> tuple[Rounds, ...]:
        services: list[Service] = []
        if config.transient_store_pool_enable:
            # Before reput, so that the last commit comes before the last dispatch.
            services.append(CommitRealTimeService(config, self.commit_log, runtime))
        services.append(self.reput)
        services.append(self._flush_commit_log)
        services.append(self._flush_queues)
        services.append(self._checkpoint_service)
        services += self.deletion.services
        if config.message_index_enable:
            services.append(self._flush_index)
        if config.allocate_ahead:
            services.append(self.commit_log.allocate)
        return tuple([Rounds(service, runtime) for service in services])

    @property
    def config(self) -> StoreConfig:
        """The configuration of the store."""
        return self._config

    @property
    def services(self) -> tuple[Service, ...]:
        """The services that a host runs, in this order, while the store is started."""
        return self._services

    @property
    def free_buffers(self) -> int:
        """How many write buffers can be borrowed; -1 without a pool.

        Source: DefaultMessageStore#remainTransientStoreBufferNumbs, which returns the
        greatest integer without a pool.
        """
        pool = self.commit_log.pool
        return -1 if pool is None else pool.available

    @property
    def stats(self) -> StoreStatsService:
        """The statistics of puts since the store started."""
        return self._puts.stats

    @property
    def waited_for(self) -> tuple[Service, ...]:
        """The services for whose rounds callers of the store wait."""
        name = self._flush_commit_log.name
        return tuple([rounds for rounds in self._services if rounds.name == name])

    def load(self) -> None:
        """Lock the directory and read it, without changing anything in it.

        A store object is started once: to start again, make another one.

        Raises:
            StoreStopped: it has read a directory already.
            StoreLocked: another store holds the directory.
            StoreForeign: a folder stands where a file has to be, or a start would lose
                what lies there.
            StoreCorrupted: data that the mark says was durable is missing, or the files
                are not of the configured sizes.
            OSError: the disk failed.

        Source: DefaultMessageStore#load.
        """
        if self._was_loaded:
            raise StoreStopped("a store is loaded once: make another MessageStore.")
        try:
            self._lock = self._disk.lock("lock")
        except BlockingIOError:
            raise StoreLocked(
                "the directory is held by another store: its file `lock` is locked. "
                "Stop that store first."
            ) from None
        except IsADirectoryError:
            raise StoreForeign(
                "a folder stands where the file to lock has to be. Move it away. "
                "Nothing was changed.",
                Place("lock"),
            ) from None
        self._was_loaded = True
        try:
            self._start_up.read()
        except StoreCorrupted:
            REFUSED.hit()
            self._let_go()
            raise
        except OSError:
            self._let_go()
            raise

    def start(self, before_opening: Callable[[], None] | None = None) -> None:
        """Make the files agree with what ``load`` read, and open the store.

        Args:
            before_opening: called when ``next_queue_offsets`` are those of the
                recovered log, and no message can be put yet.

        Raises:
            StoreStopped: ``load`` has not succeeded.
            OSError: the disk failed, or ``before_opening`` raised it; the store is
                not started.

        Source: DefaultMessageStore#recover, #start.
        """
        if not self._start_up.has_read:
            raise StoreStopped("load() the store before start().")
        try:
            self._start_up.take_over()
            self._abort.create()
            self.reput.reput_from_offset = self._start_up.mend()
            if self._config.duplication_enable:
                # What was ever listed was confirmed, and is served.
                self.set_confirm_offset(self._consume_queues.max_phy_offset)
                self.set_confirm_offset(self.reput.reput_from_offset)
            self._checkpoint.open()
            self._checkpoint_service.run_once()
            # What the checkpoint said of the index is taken back by now.
            self._index.mend()
            if before_opening is not None:
                before_opening()
        except OSError:
            self._let_go()
            raise
        self.is_started = True

    def abandon(self) -> None:
        """Release the directory after a ``load`` that no ``start`` follows."""
        if not self.is_started:
            self._let_go()

    def calc_bit_map(self, bit_map_of: Callable[[DispatchRequest], bytes]) -> None:
        """Set the function that computes each dispatched record's bit map.

        It is called before any dispatcher; the queues store its result in
        consumequeue_ext.

        Source: CommitLogDispatcherCalcBitMap, which a broker puts before the others.
        """
        self.reput.calc_bit_map = bit_map_of

    def add_dispatcher(self, dispatcher: CommitLogDispatcher) -> None:
        """Append a dispatcher: it receives each record after the present ones.

        Source: DefaultMessageStore#getDispatcherList, which a broker adds to.
        """
        self.reput.dispatchers.append(dispatcher)

    def set_confirm_offset(self, phy_offset: int) -> None:
        """Record that replicas have the log up to ``phy_offset``; see ``reput``."""
        self.reput.set_confirm_offset(phy_offset)

    def hook_puts(self, hook: PutMessageHook) -> None:
        """Set a hook: the store puts what ``hook`` returns for a message.

        Source: DefaultMessageStore#setPutMessageHook.
        """
        self._puts.hook = hook

    def put_message(self, message: Message) -> PutMessageResult:
        """Store one message, and wait for its sync under SYNC_FLUSH.

        Source: DefaultMessageStore#putMessage, CommitLog#handleDiskFlush.
        """
        append = self.commit_log.put_message
        return self._puts.put(message, append, is_started=self.is_started)

    def put_accepted(self, message: Message) -> PutMessageResult:
        """Store a message that was accepted before, as one whose delay is over.

        ``max_message_size`` may be less than it was then; refused for that, the message
        would keep all behind it in its queue for ever.
        """
        append = self.commit_log.put_accepted
        return self._puts.put(message, append, is_started=self.is_started)

    def put_messages(self, batch: Message) -> PutMessageResult:
        """Store the messages of a batch's body: all, or none."""
        append = self.commit_log.put_messages
        return self._puts.put(batch, append, is_started=self.is_started)

    def get_message(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_msg_nums: int,
        wanted: Wanted = ANY_TAGS,
    ) -> GetMessageResult:
        """Read up to ``max_msg_nums`` messages of one queue; tags as ``A || B``.

        Raises:
            StoreStopped: the store is not started, was stopped meanwhile, or must
                not be read.
            OSError: the medium could not be read.

        Source: DefaultMessageStore#getMessage.
        """
        self._refuse_unless_readable()
        return self._unless_let_go(
            self._reader.get_message(
                topic, queue_id, queue_offset, max_msg_nums, wanted
            )
        )

    def listed_messages(
        self, topic: str, queue_id: int, queue_offset: int, count: int
    ) -> list[ListedMessage]:
        """Up to ``count`` units of a queue; fewer, or none, at a file's end.

        Raises:
            StoreStopped: the store is not started, was stopped meanwhile, or must
                not be read.
            OSError: the medium could not be read.

        Source: DefaultMessageStore#getConsumeQueue, ConsumeQueue#iterateFrom.
        """
        self._refuse_unless_readable()
        return self._unless_let_go(
            self._reader.listed_messages(topic, queue_id, queue_offset, count)
        )

    def look_message_by_offset(self, phy_offset: int) -> bytes | None:
        """The record that begins at a phy_offset; None if none does.

        Raises:
            StoreStopped: the store is not started, was stopped meanwhile, or must
                not be read.
            OSError: the medium could not be read.

        Source: DefaultMessageStore#selectOneMessageByOffset.
        """
        self._refuse_unless_readable()
        return self._unless_let_go(self.commit_log.look_message_by_offset(phy_offset))

    def get_offset_in_queue_by_time(
        self,
        topic: str,
        queue_id: int,
        timestamp: int,
        boundary: BoundaryType = BoundaryType.LOWER,
    ) -> int:
        """The queue_offset of a store time; see ``time_search``.

        Raises:
            StoreStopped: the store is not started, was stopped meanwhile, or must
                not be read.
            OSError: the medium could not be read.

        Source: DefaultMessageStore#getOffsetInQueueByTime.
        """
        self._refuse_unless_readable()
        return self._unless_let_go(
            self._reader.offset_by_time(topic, queue_id, timestamp, boundary)
        )

    def get_message_store_timestamp(
        self, topic: str, queue_id: int, queue_offset: int
    ) -> int:
        """Store time of a message; -1 if the queue does not have it.

        Raises:
            StoreStopped: the store is not started, was stopped meanwhile, or must
                not be read.
            OSError: the medium could not be read.

        Source: DefaultMessageStore#getMessageStoreTimeStamp.
        """
        self._refuse_unless_readable()
        return self._unless_let_go(
            self._reader.store_timestamp(topic, queue_id, queue_offset)
        )

    def get_earliest_message_time(self) -> int:
        """Store time of the log's first message; -1 if it has none.

        Raises:
            StoreStopped: the store is not started, was stopped meanwhile, or must
                not be read.
            OSError: the medium could not be read.

        Source: DefaultMessageStore#getEarliestMessageTime.
        """
        self._refuse_unless_readable()
        return self._unless_let_go(self._reader.earliest_timestamp())

    def get_min_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """The first queue_offset that a queue still has; 0 without the queue.

        Raises:
            StoreStopped: the store is not started, was stopped meanwhile, or must
                not be read.

        Source: DefaultMessageStore#getMinOffsetInQueue.
        """
        self._refuse_unless_readable()
        return self._unless_let_go(self._reader.min_offset(topic, queue_id))

    def get_max_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """The queue_offset of the next message dispatched; 0 without the queue.

        Raises:
            StoreStopped: the store is not started, was stopped meanwhile, or must
                not be read.

        Source: DefaultMessageStore#getMaxOffsetInQueue.
        """
        self._refuse_unless_readable()
        return self._unless_let_go(self._reader.max_offset(topic, queue_id))

    def check_in_mem_by_consume_offset(
        self, topic: str, queue_id: int, queue_offset: int
    ) -> bool:
        """Whether a queue has a message there, so near the log's end as to be cached.

        Raises:
            StoreStopped: the store is not started, was stopped meanwhile, or must
                not be read.
            OSError: the medium could not be read.

        Source: DefaultMessageStore#checkInMemByConsumeOffset.
        """
        self._refuse_unless_readable()
        return self._unless_let_go(
            self._reader.is_in_memory(topic, queue_id, queue_offset)
        )

    def _refuse_unless_readable(self) -> None:
        if not self.is_started or not self._flags.is_readable:
            raise StoreStopped("the store is not started: start() it to read.")

    def _unless_let_go(self, answer: _T) -> _T:
        """Return ``answer``, unless the store has closed its files meanwhile.

        A closed file reads as an expired one, so the answer would skip messages that
        exist.

        Source: none in RocketMQ: its getMessage returns nothing once a shutdown has
        begun, and its shutdown unmaps files while earlier readers use them.
        """
        if self._has_let_go:
            CLOSED_UNDER.hit()
            raise StoreStopped(
                "the store was stopped while this was read: start() it to read."
            )
        return answer

    def get_next_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """The queue_offset that the next put gets, undispatched messages included."""
        return self._consume_queues.next_queue_offset(topic, queue_id)

    @property
    def is_sound(self) -> bool:
        """Whether no disk that failed has stopped the store's puts and deletions."""
        return self._flags.is_sound

    def flush(self) -> int:
        """Make durable what was put so far; returns the phy_offset it is flushed to.

        Raises:
            OSError: the disk failed, now or in an earlier sync; the store takes no put
                until the next start.

        Source: DefaultMessageStore#flush.
        """
        self.commit_log.commit_all()
        self._flusher.flush_all()
        if not self._flags.is_flushable:
            raise OSError(
                errno.EIO,
                "an earlier sync of the log failed, so later ones prove nothing. "
                "Restart the store.",
            )
        return self.commit_log.flushed_where

    def query_message(
        self, topic: str, key: str, max_num: int, begin_ms: int, end_ms: int
    ) -> QueryMessageResult:
        """Read the newest messages of a topic that have ``key``, in log order.

        At most ``max_num`` of those stored in [begin_ms, end_ms], and never more than
        ``max_msgs_num_batch``.

        Raises:
            StoreStopped: the store is not started, was stopped meanwhile, or must
                not be read.
            OSError: the medium could not be read.

        Source: DefaultMessageStore#queryMessage.
        """
        self._refuse_unless_readable()
        return self._unless_let_go(
            self._key_query.query(topic, key, max_num, begin_ms, end_ms)
        )

    def delete_topics(self, topics: Collection[str]) -> int:
        """Delete topics for good; returns how many existed. See ``TopicDeletion``.

        Raises:
            StoreStopped: the store is not started, or takes no deletion.
            OSError: the disk failed.

        Source: DefaultMessageStore#deleteTopics.
        """
        self._refuse_unless_readable()
        return self.deletion.topics.delete_topics(topics)

    def clean_unused_topic(self, retained: Collection[str]) -> int:
        """Delete every topic but ``retained``; raises as ``delete_topics``.

        Source: DefaultMessageStore#cleanUnusedTopic.
        """
        self._refuse_unless_readable()
        return self.deletion.topics.clean_unused_topic(retained)

    def delete_queue(self, topic: str, queue_id: int) -> int:
        """Delete one queue for good; returns 1 if it existed.

        Source: ConsumeQueueStore#destroy.
        """
        self._refuse_unless_readable()
        return self.deletion.topics.delete_queue(topic, queue_id)

    def shutdown(self) -> bool:
        """Shut down; returns True if the next start has nothing to repair.

        Waits up to ``shutdown_dispatch_timeout`` for dispatch to catch up, since a host
        may still run it. If records stay undispatched, or a sync fails, the abort file
        stays and the next start repairs. A second caller waits for the first one and
        gets its answer.

        Source: DefaultMessageStore#shutdown.
        """
        with self._stop_lock:
            if self.is_started:
                self.is_started = False
                self._stopped_clean = self._stop()
        return self._stopped_clean

    def _stop(self) -> bool:
        self.deletion.stop()
        self.commit_log.refuse_puts()
        try:
            return self._make_durable()
        except OSError:
            UNFLUSHED.hit()
            return False
        finally:
            self._let_go()

    def _make_durable(self) -> bool:
        try:
            self.commit_log.commit_all()
            self._flusher.flush_all()
        finally:
            self._group_commit.stop()
        self.commit_log.allocate.discard()
        self.commit_log.mapped_files.settle_deletion()
        self._wait_for_dispatch()
        self._stop_rounds()
        self.reput.stop()
        self._consume_queues.settle_deletions()
        self._flush_queues.flush_thoroughly()
        self._index.flush()
        self._checkpoint_service.run_once()
        clean = self._flags.is_sound and self.reput.behind <= 0
        clean = clean and self.reput.unconfirmed <= 0
        clean = clean and not self.commit_log.append_failed
        clean = clean and not self._consume_queues.flush_failed
        clean = clean and not self._index.flush_failed
        (CLEAN if clean else BEHIND).hit()
        if clean:
            self._abort.remove()
        return clean

    def _wait_for_dispatch(self) -> None:
        waited = 0
        timeout = self._config.shutdown_dispatch_timeout
        while self.reput.behind + self.reput.unconfirmed > 0 and waited < timeout:
            self._runtime.sleep_ms(_DISPATCH_POLL_MS)
            waited += _DISPATCH_POLL_MS

    def _stop_rounds(self) -> None:
        for rounds in self._services:
            rounds.stop()

    def _let_go(self) -> None:
        self._has_let_go = True  # before any file is
        self._stop_rounds()
        self._checkpoint.close()
        self._index.close()
        self._consume_queues.close()
        self.commit_log.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
