"""A push consumer against brokers in memory: alone, among others, and killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fake_broker import FakeBroker, queue_of, turn

from crashmq.engine.client.consumer.default_mq_push_consumer import (
    DefaultMQPushConsumer,
)
from crashmq.engine.client.consumer.listener.message_listener_concurrently import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
)
from crashmq.engine.client.consumer.pull_from_where import ConsumeFromWhere
from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.store.remote_broker_offset_store import (
    RemoteBrokerOffsetStore,
)
from crashmq.engine.common.message_ext import MessageExt
from crashmq.harness.scheduling.sim_runtime import SimRuntime

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
T = queue_of("T")


class Listener:
    """Consumes; ``answer`` says what comes of a batch."""

    def __init__(self) -> None:
        self.got: list[tuple[str, int, int]] = []
        self.answer: Callable[
            [Sequence[MessageExt], ConsumeConcurrentlyContext],
            ConsumeConcurrentlyStatus | None,
        ] = lambda messages, context: SUCCESS

    def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus | None:
        self.got += [
            (m.topic, context.queue.queue_id, m.queue_offset) for m in messages
        ]
        return self.answer(messages, context)

    @property
    def offsets(self) -> list[int]:
        return [offset for _, _, offset in self.got]


class Bench:
    """A broker, a clock, and consumers of the group g."""

    def __init__(self) -> None:
        self.runtime = SimRuntime(1_000_000)
        self.broker = FakeBroker(self.runtime)
        self.listener = Listener()

    def consumer(self, client_id: str = "c0", **config: Any) -> DefaultMQPushConsumer:
        """A consumer of T that is started and has its queues."""
        config.setdefault("subscriptions", (("T", "*", "TAG"),))
        store = RemoteBrokerOffsetStore("g", self.broker, self.runtime)
        consumer = DefaultMQPushConsumer(
            PushConsumerConfig(client_id, "g", **config),
            self.broker,
            store,
            self.runtime,
            self.listener,
        )
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


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_is_put_is_consumed_and_committed(bench: Bench) -> None:
    bench.broker.create("T", queues=2)
    consumer = bench.consumer()
    for queue_id in range(2):
        bench.broker.put("T", queue_id, count=40)

    bench.pull(consumer)
    bench.consume_all(consumer)
    turn(consumer, "persist_all_consumer_offset")

    assert sorted(bench.listener.got) == [
        ("T", queue_id, offset) for queue_id in range(2) for offset in range(40)
    ]
    assert bench.broker.offsets["g", T] == bench.broker.offsets["g", queue_of("T", 1)]
    assert bench.broker.offsets["g", T] == 40
