"""Consumers of one group with a broker in memory, a clock and a listener."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fake_broker import FakeBroker, queue_of, turn

from crashmq.engine.client.consumer.default_mq_push_consumer import (
    DefaultMQPushConsumer,
)
from crashmq.engine.client.consumer.listener.message_listener_concurrently import (
    ConsumeConcurrentlyStatus,
)
from crashmq.engine.client.consumer.listener.message_listener_orderly import (
    ConsumeOrderlyStatus,
)
from crashmq.engine.client.consumer.pull_from_where import ConsumeFromWhere
from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.store.remote_broker_offset_store import (
    BrokerFailed,
    RemoteBrokerOffsetStore,
)
from crashmq.engine.common.message_ext import MessageExt
from crashmq.harness.scheduling.sim_runtime import SimRuntime

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
IN_ORDER = ConsumeOrderlyStatus.SUCCESS
COMMIT = ConsumeOrderlyStatus.COMMIT
ROLLBACK = ConsumeOrderlyStatus.ROLLBACK
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
T = queue_of("T")
BEGUN_MS = 10_000_000


class Listener:
    """Consumes; ``answer`` says what comes of a batch, of either kind."""

    def __init__(self) -> None:
        self.got: list[tuple[str, int, int]] = []
        self.answer: Callable[[Sequence[MessageExt], Any], Any] = self.succeeds

    def succeeds(self, messages: Sequence[MessageExt], context: Any) -> Any:
        return IN_ORDER if hasattr(context, "auto_commit") else SUCCESS

    def consume_message(self, messages: Sequence[MessageExt], context: Any) -> Any:
        queue_id = context.queue.queue_id
        self.got += [(m.topic, queue_id, m.queue_offset) for m in messages]
        return self.answer(messages, context)

    @property
    def offsets(self) -> list[int]:
        """The queue_offsets that came, in order."""
        return [offset for _, _, offset in self.got]


class Bench:
    """A broker with the topic T, and consumers of the group g."""

    def __init__(self) -> None:
        self.runtime = SimRuntime(BEGUN_MS)
        self.broker = FakeBroker(self.runtime)
        self.listener = Listener()
        self.stores: dict[str, RemoteBrokerOffsetStore] = {}

    def consumer(self, client_id: str = "c0", **config: Any) -> DefaultMQPushConsumer:
        """A consumer of T that is not started."""
        config.setdefault("subscriptions", (("T", "*", "TAG"),))
        store = RemoteBrokerOffsetStore("g", self.broker, self.runtime)
        self.stores[client_id] = store
        return DefaultMQPushConsumer(
            PushConsumerConfig(client_id, "g", **config),
            self.broker,
            store,
            self.runtime,
            self.listener,
        )

    def started(self, client_id: str = "c0", **config: Any) -> DefaultMQPushConsumer:
        """A consumer of T that is started and may pull its queues."""
        consumer = self.consumer(client_id, **config)
        consumer.start()
        turn(consumer, "rebalance")
        self.runtime.advance(500)
        return consumer

    def pull(self, consumer: DefaultMQPushConsumer, rounds: int = 3) -> None:
        for _ in range(rounds):
            turn(consumer, "pull_message")

    def consume_all(self, consumer: DefaultMQPushConsumer) -> None:
        while consumer.waiting:
            consumer.consume(0)

    def committed(self, queue_id: int = 0) -> int:
        """What the broker has of T for the group; -1: nothing."""
        return self.broker.offsets.get(("g", queue_of("T", queue_id)), -1)

    def asked_of(self, topic: str = "T") -> list[int]:
        """The offsets at which a topic was pulled, in order."""
        return [p.queue_offset for p in self.broker.pulls if p.topic == topic]

    def fails(self, *_: object) -> Any:
        """What a broker answers that cannot be asked."""
        raise BrokerFailed("system busy")
