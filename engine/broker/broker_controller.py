"""BrokerController: a message store together with its broker's tables and clients.

It has a store's life cycle: ``load`` reads everything and may refuse, ``start`` opens,
``shutdown`` ends in an orderly way, and a host runs the ``services`` in between.

Source: org.apache.rocketmq.broker.BrokerController#initialize, #shutdown, RocketMQ 5.3.
Differs: the store's lock is taken before any file is read, and a table that could not
be read is never overwritten; in RocketMQ a start that fails persists empty tables.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.broker_tables import BrokerTables
from crashmq.engine.broker.client.broker_clients import BrokerClients
from crashmq.engine.broker.filter.consumer_filter_manager import ConsumerFilterManager
from crashmq.engine.broker.filter.filtering import Filtering
from crashmq.engine.broker.longpolling.notify_message_arriving_listener import (
    NotifyMessageArrivingListener,
)
from crashmq.engine.broker.offset.consumer_offset_manager import ConsumerOffsetManager
from crashmq.engine.broker.offset.recovered_ends import RecoveredEnds
from crashmq.engine.broker.persist_services import PersistConsumerOffsetService
from crashmq.engine.broker.processor.admin_broker_processor import AdminBrokerProcessor
from crashmq.engine.broker.processor.client_manage_processor import (
    ClientManageProcessor,
)
from crashmq.engine.broker.processor.consumer_manage_processor import (
    ConsumerManageProcessor,
)
from crashmq.engine.broker.processor.pull_checks import PullChecks
from crashmq.engine.broker.processor.pull_message_processor import PullMessageProcessor
from crashmq.engine.broker.processor.send_message_processor import SendMessageProcessor
from crashmq.engine.broker.schedule.schedule import Schedule
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.host.service import Service
from crashmq.engine.store.errors import StoreError
from crashmq.engine.store.message_store import MessageStore

UNPERSISTED = probe(
    "broker_controller.shutdown.unpersisted", "a shutdown could not persist a table"
)
UNFLUSHED = probe(
    "broker_controller.shutdown.unflushed", "a shutdown could not sync the deliveries"
)


class BrokerController:
    """One store, its tables and its clients, on one directory.

    With ``delivers_delayed``, messages with a delay level wait for its time.

    Attributes:
        tables: topics, groups and offsets, each with a file.
        consumer_manager: the members of each group, by their heartbeats.
        rebalance_lock_manager: the locks of queues that are consumed in order.
        admin_broker_processor: answers deletions, resets and group configurations.
        client_manage_processor: answers heartbeats.
        consumer_manage_processor: answers commits and queries of offsets.
        send_message_processor: answers messages that are sent, and sent back.
        filtering: the filters of groups.
    """

    def __init__(
        self,
        store: MessageStore,
        disk: Disk,
        runtime: Runtime,
        config: BrokerConfig | None = None,
        *,
        delivers_delayed: bool = False,
    ) -> None:
        self.config = config = config or BrokerConfig()
        self.message_store = store
        tables = self.tables = BrokerTables(disk, runtime)
        tables.consumer_offset_manager.bound_by(store.next_queue_offset)
        clients = BrokerClients(runtime)
        self.consumer_manager = clients.consumer_manager
        self.filtering = Filtering(config, disk, runtime, clients.consumer_manager)
        self.rebalance_lock_manager = clients.rebalance_lock_manager
        ends = self._recovered_ends = RecoveredEnds(disk, runtime)
        self.admin_broker_processor = AdminBrokerProcessor(store, tables, ends)
        self.consumer_manage_processor = ConsumerManageProcessor(
            tables.consumer_offset_manager, store, ends
        )
        topics, groups = tables.topic_config_manager, tables.subscription_group_manager
        self.client_manage_processor = ClientManageProcessor(
            self.consumer_manager, topics, groups
        )
        self.send_message_processor = SendMessageProcessor(
            store, topics, groups, self.rebalance_lock_manager
        )
        self.pull_message_processor = PullMessageProcessor(
            store,
            tables.consumer_offset_manager,
            runtime,
            config,
            PullChecks(
                config,
                topics,
                groups,
                consumers=clients.consumer_manager,
                filters=self.filtering.manager,
            ),
            ends,
            self.filtering.filter_of,
        )
        self._hold = self.pull_message_processor.hold
        if config.long_polling_enable:
            listener = NotifyMessageArrivingListener(self._hold)
            store.reput.arriving_listener = listener
        self._persist = PersistConsumerOffsetService(
            tables.consumer_offset_manager, runtime
        )
        self._housekeeping = clients.housekeeping
        self.schedule: Schedule | None = None
        if delivers_delayed:
            put_in_its_topic = self.send_message_processor.put_in_its_topic
            self.schedule = Schedule(store, disk, runtime, put_in_its_topic)
        self._stop_lock = runtime.lock()
        self.is_started = False
        self._stopped_clean = False

    @property
    def services(self) -> tuple[Service, ...]:
        """The services that a host runs while the broker is started, in order."""
        own: list[Service] = [self._hold, self._persist, self._housekeeping]
        if self.filtering.persist is not None:
            own.append(self.filtering.persist)
        if self.schedule is not None:
            own += [self.schedule.deliver, self.schedule.persist]
        return (*self.message_store.services, *own)

    @property
    def consumer_offset_manager(self) -> ConsumerOffsetManager:
        """The offset of each group on each queue."""
        return self.tables.consumer_offset_manager

    @property
    def waited_for(self) -> tuple[Service, ...]:
        """The services whose rounds wake callers that wait inside the store."""
        return self.message_store.waited_for

    def load(self) -> None:
        """Lock the directory and read all of it; no file is changed.

        Raises:
            StoreError: as ``MessageStore.load``, or a table cannot be read.
            OSError: the disk failed.

        Source: BrokerController#initialize.
        """
        self.message_store.load()
        try:
            self.tables.load()
            self._recovered_ends.load()
            self.filtering.load()
            if self.schedule is not None:
                self.schedule.service.load()
        except (StoreError, OSError):
            self.message_store.abandon()
            raise

    def start(self) -> None:
        """Make durable what was loaded, and open the store.

        Raises:
            StoreStopped: ``load`` has not succeeded.
            OSError: the disk failed; nothing is started.

        Source: BrokerController#start.
        """
        try:
            self.tables.settle()
            self._recovered_ends.settle()
            self.filtering.settle()
            if self.schedule is not None:
                self.schedule.service.settle()
        except OSError:
            self.message_store.abandon()
            raise
        self.message_store.start(self._correct_offsets)
        self.filtering.begin(self.message_store)
        if self.schedule is not None:
            self.schedule.service.correct_delay_offset()
        self.is_started = True

    @property
    def consumer_filter_manager(self) -> ConsumerFilterManager:
        """The filters of all groups."""
        return self.filtering.manager

    def _correct_offsets(self) -> None:
        """Lower the offset of each group that is past the end of a recovered queue.

        Source: none in RocketMQ, which serves a group whose offset lies past the log's
        end, and skips the messages that are put at lower offsets meanwhile.
        """
        ends = dict(self.message_store.next_queue_offsets)
        self.consumer_offset_manager.correct_offsets(ends)
        is_orderly = self.message_store.last_exit_ok
        self._recovered_ends.begin(ends, is_orderly=is_orderly)

    def shutdown(self) -> bool:
        """Answer held pulls, persist the offsets and stop the store.

        Returns whether the store's files need no recovery. If the offsets could not be
        persisted, the next start has those of the last persist. A second caller waits
        for the first one and gets its answer.

        Source: BrokerController#shutdown.
        """
        with self._stop_lock:
            if self.is_started:
                self.is_started = False
                self._stopped_clean = self._stop()
        return self._stopped_clean

    def _stop(self) -> bool:
        self._hold.stop()
        if self.schedule is not None:
            self._stop_delivery(self.schedule)
        kept: list[Callable[[], object]] = [self._persist.stop, self._end_life]
        if self.filtering.persist is not None:
            kept.append(self.filtering.persist.stop)
        for stop in kept:
            try:
                stop()
            except OSError:
                UNPERSISTED.hit()
        self.tables.end()
        return self.message_store.shutdown()

    def _end_life(self) -> None:
        self._recovered_ends.end(self._make_all_durable)

    def _make_all_durable(self) -> None:
        """Flush the store.

        Raises:
            OSError: a disk failed, now or before; a queue whose deletion it interrupted
                may be gone at the next start.
        """
        self.message_store.flush()
        if not self.message_store.is_sound:
            raise OSError(errno.EIO, "a disk has failed since the start.")

    def _stop_delivery(self, schedule: Schedule) -> None:
        """Stop delivering, sync what was delivered, and persist the delay offsets."""
        schedule.deliver.stop()
        try:
            self.message_store.flush()
        except OSError:
            UNFLUSHED.hit()
        try:
            schedule.persist.stop()
        except OSError:
            UNPERSISTED.hit()
