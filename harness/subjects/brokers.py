"""Brokers: the broker around a store, if the setup has one, and its own puts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from crashmq.engine.broker.broker_config import BrokerConfig
from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.message.message import Message, is_topic
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.results import PutMessageResult
from crashmq.harness.subjects.capabilities import PutOfBroker
from crashmq.harness.subjects.engine_messages import answer_of, put_of_broker
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Observation
from crashmq.models.program import Setup

TOPIC_QUEUES = 8
"""A client that sends to a new topic asks for so many, all that a broker gives, since
programs put into whatever queue they like."""


class Brokers:
    """The broker of each life of a store.

    Attributes:
        broker: that of the present life; None if there is none.
        put: does the puts of the broker itself, such as deliveries, and records them.
    """

    def __init__(self) -> None:
        self.broker: BrokerController | None = None
        self.put: PutOfBroker = _just_put

    def around(
        self, setup: Setup, store: MessageStore, disk: Disk, runtime: Runtime
    ) -> BrokerController | None:
        """Make the broker of a new life; None if the setup has a store alone."""
        delivers = setup.delivers_delayed
        if not (setup.keeps_progress or delivers):
            return None
        filters = setup.filters
        config = BrokerConfig(
            enable_property_filter=filters,
            enable_calc_filter_bit_map=filters,
            filter_support_retry=setup.filters_retries,
        )
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
        return sender.put_in_its_topic(topic, put, TOPIC_QUEUES)

    def delays(self) -> tuple[tuple[int, int], ...] | None:
        """For each level, the queue_offset of the next message to deliver, sorted."""
        if self.broker is None or self.broker.schedule is None:
            return None
        return tuple(sorted(self.broker.schedule.service.offset_table.items()))

    def _put(
        self, put_message: Callable[[Message], PutMessageResult], message: Message
    ) -> PutMessageResult:
        results: list[PutMessageResult] = []

        def put() -> Observation:
            results.append(put_message(message))
            return answer_of(results[0])

        told = put_of_broker(message)
        if not told.is_delivered:
            told = told.scheduled()
        self.put(told, put)
        return results[0]


def _just_put(message: MessageToPut, put: Callable[[], Observation]) -> None:
    """Do a put of the broker without recording it."""
    del message
    put()
