"""BrokerController: a message store, and what its consumers have done, as one.

It has the life of a store: ``load`` reads all and may refuse, ``start`` opens,
``shutdown`` ends in order, and a host runs the ``services`` meanwhile.

Source: org.apache.rocketmq.broker.BrokerController#initialize, #shutdown, RocketMQ
5.3. Differs: the store's lock is taken before any file is read, and a table that could
not be read is never written over; there, a start that fails persists empty tables.
"""

from __future__ import annotations

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.filter.commit_log_dispatcher_calc_bit_map import (
    CommitLogDispatcherCalcBitMap,
)
from crashmq.engine.broker.filter.consumer_filter_manager import ConsumerFilterManager
from crashmq.engine.broker.filter.persist_consumer_filter_service import (
    PersistConsumerFilterService,
)
from crashmq.engine.broker.offset.consumer_offset_manager import ConsumerOffsetManager
from crashmq.engine.broker.offset.persist_consumer_offset_service import (
    PersistConsumerOffsetService,
)
from crashmq.engine.broker.processor.consumer_manage_processor import (
    ConsumerManageProcessor,
)
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.host.service import Service
from crashmq.engine.store.errors import StoreError
from crashmq.engine.store.message_store import MessageStore

UNPERSISTED = probe(
    "broker_controller.shutdown.unpersisted", "a shutdown could not persist a table"
)


DEFAULTS = BrokerConfig()


class BrokerController:
    """One store, and the offsets and filters of its groups, on one directory.

    Filters are read and kept only where property filters are on.
    """

    def __init__(
        self,
        store: MessageStore,
        disk: Disk,
        runtime: Runtime,
        config: BrokerConfig = DEFAULTS,
    ) -> None:
        self.config = config
        self.message_store = store
        self.consumer_filter_manager = ConsumerFilterManager(config, disk, runtime)
        self._persist_filters = PersistConsumerFilterService(
            self.consumer_filter_manager, runtime
        )
        self.consumer_offset_manager = ConsumerOffsetManager(disk, runtime)
        self.consumer_manage_processor = ConsumerManageProcessor(
            self.consumer_offset_manager, store
        )
        self._persist = PersistConsumerOffsetService(
            self.consumer_offset_manager, runtime
        )
        self._stop_lock = runtime.lock()
        self.is_started = False
        self._stopped_clean = False

    @property
    def services(self) -> tuple[Service, ...]:
        """The services that a host runs while the broker is started, in order."""
        filters = [self._persist_filters] if self.config.enable_property_filter else []
        return (*self.message_store.services, self._persist, *filters)

    @property
    def waited_for(self) -> tuple[Service, ...]:
        """The services whose rounds answer callers that wait inside the store."""
        return self.message_store.waited_for

    def load(self) -> None:
        """Lock the directory and read it whole; nothing on it is changed.

        Raises:
            StoreError: as ``MessageStore.load``, or a table cannot be read.
            OSError: the disk failed.

        Source: BrokerController#initialize.
        """
        self.message_store.load()
        try:
            self.consumer_offset_manager.load()
            if self.config.enable_property_filter:
                self.consumer_filter_manager.load()
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
            self.consumer_offset_manager.settle()
            if self.config.enable_property_filter:
                self.consumer_filter_manager.settle()
        except OSError:
            self.message_store.abandon()
            raise
        self.message_store.start()
        self._begin_to_filter()
        self.is_started = True

    def _begin_to_filter(self) -> None:
        """Let filters cover what is stored from now on, and dispatch ask them.

        Source: BrokerController#registerProcessor's dispatchers,
        CommitLogDispatcherCalcBitMap.
        """
        store, filters = self.message_store, self.consumer_filter_manager
        if self.config.enable_calc_filter_bit_map:
            store.calc_bit_map(CommitLogDispatcherCalcBitMap(filters).calc)
        if self.config.enable_property_filter:
            filters.open(store.commit_log.newest_store_time)

    def shutdown(self) -> bool:
        """Persist the tables and stop the store; True if it has nothing to repair.

        What could not be persisted is that of the last persist at the next start. A
        second caller waits for the first one and gets its answer.

        Source: BrokerController#shutdown.
        """
        with self._stop_lock:
            if self.is_started:
                self.is_started = False
                self._stopped_clean = self._stop()
        return self._stopped_clean

    def _stop(self) -> bool:
        kept = [self._persist.stop]
        if self.config.enable_property_filter:
            kept.append(self._persist_filters.stop)
        for stop in kept:
            try:
                stop()
            except OSError:
                UNPERSISTED.hit()
        return self.message_store.shutdown()
