"""Brokers: the broker around a store, if the setup has one, and its own puts."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.errors import StoreStopped
from crashmq.engine.store.message.message import Message, is_topic
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import PutMessageResult
from crashmq.harness.subjects.capabilities import PutOfBroker
from crashmq.harness.subjects.engine_config import broker_config_of
from crashmq.harness.subjects.engine_messages import answer_of, put_of_broker
from crashmq.models.files.message_delay_level import DelayLevels
from crashmq.models.limits import QUEUES_OF_A_TOPIC
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Observation, Skipped
from crashmq.models.program import Setup


class Brokers:
    """The broker of each life of a store.

    Attributes:
        broker: that of the present life; None if there is none.
        put: does the puts of the broker itself, such as deliveries, and records them.
    """

    def __init__(self) -> None:
        self.broker: BrokerController | None = None
        self.put: PutOfBroker = _just_put
        self._levels: DelayLevels | None = None

    def around(
        self, setup: Setup, store: MessageStore, disk: Disk, runtime: Runtime
    ) -> BrokerController | None:
        """Make the broker of a new life; None if the setup has a store alone.

        Raises:
            ValueError: the setup has a wrong value that a broker refuses.
        """
        delivers = setup.delivers_delayed
        self._levels = setup.delay_levels if delivers else None
        if not (setup.keeps_progress or delivers):
            return None
        config = broker_config_of(setup)
        broker = BrokerController(
            store, disk, runtime, config, delivers_delayed=delivers
        )
        if broker.schedule is not None:
            service, sender = broker.schedule.service, broker.send_message_processor
            service.put = partial(self._put, service.put)
            sender.put = partial(self._put, sender.put)
        return broker

    def put_of_client(
        self, topic: str, put: Callable[[], PutMessageResult]
    ) -> PutMessageResult:
        """Do a client's put; the broker creates or knows its topic.

        Raises:
            OSError: the disk failed.
        """
        if self.broker is None or not is_topic(topic):
            return put()
        sender = self.broker.send_message_processor
        return sender.put_in_its_topic(topic, put, QUEUES_OF_A_TOPIC)

    def send(
        self,
        message: Message,
        max_reconsume_times: int,
        asks_queues: int,
        put: PutOfBroker,
    ) -> Observation:
        """Let a producer send a message; ``put`` does what the broker puts for it.

        Raises:
            OSError: the disk failed, before the message was put or after.
        """
        assert self.broker is not None, "nobody is there to be sent anything"
        if not is_topic(message.topic):
            return Skipped(f"{message.topic} is no name of a topic")
        put_message = self.broker.message_store.put_message
        sender = copy(self.broker.send_message_processor)
        sender.put = partial(self._put, put_message, told=put)
        try:
            response = sender.send_message(message, max_reconsume_times, asks_queues)
        except StoreStopped as stopped:
            return Skipped(str(stopped))
        if response.result is None:
            return Skipped(response.remark)
        return answer_of(response.result)

    def delays(self) -> tuple[tuple[int, int], ...] | None:
        """For each level, the queue_offset of the next message to deliver, sorted."""
        if self.broker is None or self.broker.schedule is None:
            return None
        return tuple(sorted(self.broker.schedule.service.offset_table.items()))

    def _put(
        self,
        put_message: Callable[[Message], PutMessageResult],
        message: Message,
        told: PutOfBroker | None = None,
    ) -> PutMessageResult:
        results: list[PutMessageResult] = []

        def put() -> Observation:
            results.append(put_message(message))
            return answer_of(results[0])

        made = put_of_broker(message)
        if self._levels is not None and not made.is_delivered:
            made = made.scheduled(self._levels)
        (told or self.put)(made, put)
        return results[0]


def _just_put(message: MessageToPut, put: Callable[[], Observation]) -> None:
    """Do a put of the broker without recording it."""
    del message
    put()
