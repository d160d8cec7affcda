"""BrokerController: a message store, and what its consumers have done, as one.

It has the life of a store: ``load`` reads all and may refuse, ``start`` opens,
``shutdown`` ends in order, and a host runs the ``services`` meanwhile.

Source: org.apache.rocketmq.broker.BrokerController#initialize, #shutdown, RocketMQ
5.3. Differs: the store's lock is taken before any file is read, and a table that could
not be read is never written over; there, a start that fails persists empty tables.
"""

from __future__ import annotations

from crashmq.engine.broker.offset.consumer_offset_manager import ConsumerOffsetManager
from crashmq.engine.broker.offset.persist_consumer_offset_service import (
    PersistConsumerOffsetService,
)
from crashmq.engine.broker.processor.consumer_manage_processor import (
    ConsumerManageProcessor,
)
from crashmq.engine.broker.schedule.delayed_message import DelayedMessages
from crashmq.engine.broker.schedule.schedule_message_service import (
    ScheduleMessageService,
)
from crashmq.engine.broker.schedule.schedule_services import (
    DeliverDelayedService,
    PersistDelayOffsetService,
)
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.host.service import Service
from crashmq.engine.store.errors import StoreError
from crashmq.engine.store.message_store import MessageStore

UNPERSISTED = probe(
    "broker_controller.shutdown.unpersisted", "a shutdown could not persist the offsets"
)


UNFLUSHED = probe(
    "broker_controller.shutdown.unflushed", "a shutdown could not sync the deliveries"
)


class Schedule:
    """What a broker has that delivers delayed messages."""

    def __init__(self, store: MessageStore, disk: Disk, runtime: Runtime) -> None:
        self.service = ScheduleMessageService(store, disk, runtime)
        self.deliver = DeliverDelayedService(self.service, runtime)
        self.persist = PersistDelayOffsetService(self.service, runtime)


class BrokerController:
    """One store and the offsets of its groups, on one directory.

    With ``delivers_delayed`` messages that ask for a delay level wait for it.
    """

    def __init__(
        self,
        store: MessageStore,
        disk: Disk,
        runtime: Runtime,
        *,
        delivers_delayed: bool = False,
    ) -> None:
        self.message_store = store
        self.consumer_offset_manager = ConsumerOffsetManager(disk, runtime)
        self.consumer_manage_processor = ConsumerManageProcessor(
            self.consumer_offset_manager, store
        )
        self._persist = PersistConsumerOffsetService(
            self.consumer_offset_manager, runtime
        )
        self.schedule: Schedule | None = None
        if delivers_delayed:
            self.schedule = Schedule(store, disk, runtime)
            store.hook_puts(DelayedMessages(store.config).schedule)
        self._stop_lock = runtime.lock()
        self.is_started = False
        self._stopped_clean = False

    @property
    def services(self) -> tuple[Service, ...]:
        """The services that a host runs while the broker is started, in order."""
        services = (*self.message_store.services, self._persist)
        if self.schedule is None:
            return services
        return (*services, self.schedule.deliver, self.schedule.persist)

    @property
    def waited_for(self) -> tuple[Service, ...]:
        """The services whose rounds answer callers that wait inside the store."""
        return self.message_store.waited_for

    def load(self) -> None:
        """Lock the directory and read it whole; nothing on it is changed.

        Raises:
            StoreError: as ``MessageStore.load``, or the offsets cannot be read.
            OSError: the disk failed.

        Source: BrokerController#initialize.
        """
        self.message_store.load()
        try:
            self.consumer_offset_manager.load()
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
            self.consumer_offset_manager.settle()
            if self.schedule is not None:
                self.schedule.service.settle()
        except OSError:
            self.message_store.abandon()
            raise
        self.message_store.start()
        if self.schedule is not None:
            self.schedule.service.correct_delay_offset()
        self.is_started = True

    def shutdown(self) -> bool:
        """Persist the offsets and stop the store; True if it has nothing to repair.

        Offsets that could not be persisted are those of the last persist at the next
        start. A second caller waits for the first one and gets its answer.

        Source: BrokerController#shutdown.
        """
        with self._stop_lock:
            if self.is_started:
                self.is_started = False
                self._stopped_clean = self._stop()
        return self._stopped_clean

    def _stop(self) -> bool:
        if self.schedule is not None:
            self._stop_delivery(self.schedule)
        try:
            self._persist.stop()
        except OSError:
            UNPERSISTED.hit()
        return self.message_store.shutdown()

    def _stop_delivery(self, schedule: Schedule) -> None:
        """Deliver nothing more, and persist all that was, made durable first."""
        schedule.deliver.stop()
        try:
            self.message_store.flush()
        except OSError:
            UNFLUSHED.hit()
        try:
            schedule.persist.stop()
        except OSError:
            UNPERSISTED.hit()
