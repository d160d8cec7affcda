"""Schedule: the parts of a broker that delay and deliver messages, as one."""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.broker.persist_services import PersistDelayOffsetService
from crashmq.engine.broker.schedule.delayed_message import DelayedMessages
from crashmq.engine.broker.schedule.deliver_delayed_service import (
    DeliverDelayedService,
)
from crashmq.engine.broker.schedule.schedule_message_service import (
    ScheduleMessageService,
)
from crashmq.engine.broker.topic.topic_config_manager import (
    DEFAULT_TOPIC_QUEUE_NUMS,
)
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import PutMessageResult

PutInItsTopic = Callable[[str, Callable[[], PutMessageResult], int], PutMessageResult]


class Schedule:
    """Delays messages of a store, and delivers them."""

    def __init__(
        self,
        store: MessageStore,
        disk: Disk,
        runtime: Runtime,
        put_in_its_topic: PutInItsTopic,
    ) -> None:
        """``put_in_its_topic`` puts a message and makes sure that its topic exists.

        A topic that was deleted while a message of it was delayed gets as many queues
        as a broker gives at most: the message goes into the queue that it was sent to.
        """
        self.service = ScheduleMessageService(store, disk, runtime)

        def put(message: Message) -> PutMessageResult:
            return put_in_its_topic(
                message.topic,
                lambda: store.put_accepted(message),
                DEFAULT_TOPIC_QUEUE_NUMS,
            )

        self.service.put = put
        self.deliver = DeliverDelayedService(self.service, runtime)
        self.persist = PersistDelayOffsetService(self.service, runtime)
        store.hook_puts(DelayedMessages(store.config).schedule)
