"""Schedule: all that a broker has to deliver delayed messages."""

from __future__ import annotations

from crashmq.engine.broker.schedule.delayed_message import DelayedMessages
from crashmq.engine.broker.schedule.schedule_message_service import (
    ScheduleMessageService,
)
from crashmq.engine.broker.schedule.schedule_services import (
    DeliverDelayedService,
    PersistDelayOffsetService,
)
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.message_store import MessageStore


class Schedule:
    """What lets messages of a store wait, and delivers them."""

    def __init__(self, store: MessageStore, disk: Disk, runtime: Runtime) -> None:
        self.service = ScheduleMessageService(store, disk, runtime)
        self.deliver = DeliverDelayedService(self.service, runtime)
        self.persist = PersistDelayOffsetService(self.service, runtime)
        store.hook_puts(DelayedMessages(store.config).schedule)
