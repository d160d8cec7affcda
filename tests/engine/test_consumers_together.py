"""Consumers that join, leave and are killed: each queue has one owner, nothing is lost.

What happens is drawn: puts, rounds of services in any order, completions in any order
and with any outcome, a broker that cannot be reached or forgets its connections and
locks, a client that is killed in the middle of a call. After each step no committed
offset may be above a message that is not finished, and no orderly listener got a
message before one in front of it was consumed; at the end, when all is let run
out, each queue is exactly one client's, and everything put was consumed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from consumer_bench import FIRST, IN_ORDER, LAST, LATER, SUCCESS, SUSPEND, Bench
from fake_broker import ClientKilled, queue_of, turn
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from crashmq.engine.client.consumer.default_mq_push_consumer import (
    DefaultMQPushConsumer,
)
from crashmq.engine.common.message_ext import decode_message
from crashmq.harness.scheduling.turns import Turns
from crashmq.models.ops import Schedule

QUEUES = 5
CLIENTS = ("c0", "c1", "c2", "c3", "c4")
SERVICES = (
    *("rebalance", "rebalance", "pull_message", "pull_message", "pull_message"),
    *("persist_all_consumer_offset", "heartbeat", "last"),
)
JOBS = (
    *("rebalance", "pull_message", "persist_all_consumer_offset", "heartbeat"),
    *("consume 0", "consume 1", "consume 3"),
)
QUIET_SECONDS = 200


class ConsumersTogether(RuleBasedStateMachine):
    """A group of consumers of a topic, and what of it is finished."""

    @initialize(orderly=st.booleans(), where=st.sampled_from((FIRST, LAST)))
    def begin(self, orderly: bool, where: Any) -> None:
        self.bench = Bench()
        self.bench.broker.create("T", queues=QUEUES)
        self.config: dict[str, Any] = {
            "is_orderly": orderly,
            "consume_from_where": where,
            "pull_batch_size": 3,
            "consume_message_batch_max_size": 2,
        }
        self.consumers: dict[str, DefaultMQPushConsumer] = {}
        self.outcome: Any = None
        self.due: set[str] = set()  # bodies that have to be consumed
        self.done: set[str] = set()
        self.out_of_order: list[str] = []
        self.bench.listener.answer = self.answer
        for client_id in CLIENTS[:2]:
            self.join(client_id)
        self.work()
        for queue_id in range(QUEUES):
            self.put(queue_id, 4)

    def answer(self, messages: Any, context: Any) -> Any:
        """What the listener comes to."""
        if self.outcome == "killed":
            raise ClientKilled("killed by its listener")
        if self.outcome == "fails":
            return SUSPEND if self.config["is_orderly"] else LATER
        if self.config["is_orderly"]:
            self.nothing_comes_before(messages)
        self.done |= {message.body.decode() for message in messages}
        return IN_ORDER if self.config["is_orderly"] else SUCCESS

    def nothing_comes_before(self, messages: Any) -> None:
        """Of an orderly queue all that has to be consumed came in its order."""
        topic, queue_id, first = messages[0].body.decode().split("/")
        earlier = {f"{topic}/{queue_id}/{offset}" for offset in range(int(first))}
        if earlier & self.due - self.done:
            self.out_of_order.append(messages[0].body.decode())

    def has_begun(self, queue_id: int) -> bool:
        """Whether the group's place in a queue is known: no message may be skipped."""
        return self.config["consume_from_where"] is FIRST or (
            self.bench.committed(queue_id) >= 0
        )

    @rule(queue_id=st.integers(0, QUEUES - 1), count=st.integers(1, 7))
    def put(self, queue_id: int, count: int) -> None:
        offsets = self.bench.broker.put("T", queue_id, count)
        if self.has_begun(queue_id):
            self.due |= {f"T/{queue_id}/{offset}" for offset in offsets}

    @rule()
    def work(self) -> None:
        """Each client gives up, takes and pulls what is its own."""
        for name in ("rebalance", "pull_message", "pull_message"):
            for client_id in tuple(self.consumers):
                self.turn_one(client_id, name)
            self.time_passes(1)

    @rule(nths=st.lists(st.integers(0, 9), min_size=1, max_size=6))
    def consume_some(self, nths: list[int]) -> None:
        """Each client consumes some, in an order that is drawn, and tells it."""
        for client_id in tuple(self.consumers):
            for nth in nths:
                self.consume(client_id, nth, "succeeds")
            self.turn_one(client_id, "persist_all_consumer_offset")

    @rule(
        jobs=st.lists(
            st.tuples(st.sampled_from(CLIENTS[:3]), st.sampled_from(JOBS)),
            min_size=2,
            max_size=5,
            unique=True,
        ),
        seed=st.integers(0, 1 << 16),
    )
    def at_once(self, jobs: list[tuple[str, str]], seed: int) -> None:
        """Rounds and completions at the same time, in a drawn order of their steps."""
        runtime = self.bench.runtime
        bodies = [
            (f"{client_id} {job}", self.body_of(self.consumers[client_id], job))
            for client_id, job in jobs
            if client_id in self.consumers
        ]
        schedule = Schedule(kind="pct", seed=seed, depth=3, steps=60)
        if bodies:
            runtime.run(lambda: runtime.together(bodies, Turns(schedule)))

    def body_of(self, consumer: DefaultMQPushConsumer, job: str) -> Callable[[], int]:
        if job.startswith("consume"):
            return lambda: consumer.consume(int(job[-1]))
        return next(s for s in consumer.services if s.name == job).run_once

    @rule(client_id=st.sampled_from(CLIENTS))
    def join(self, client_id: str) -> None:
        if client_id not in self.consumers:
            consumer = self.bench.consumer(client_id, **self.config)
            self.consumers[client_id] = consumer
            self.unless_killed(client_id, consumer.start)

    def unless_killed(self, client_id: str, call: Any) -> None:
        try:
            call()
        except ClientKilled:
            self.kill(client_id)

    def kill(self, client_id: str) -> None:
        """A client is gone; the broker finds out."""
        del self.consumers[client_id]
        self.bench.broker.kill("g", client_id)

    @rule(client_id=st.sampled_from(CLIENTS))
    def leave(self, client_id: str) -> None:
        if client_id in self.consumers:
            consumer = self.consumers[client_id]
            self.unless_killed(client_id, consumer.shutdown)
            self.consumers.pop(client_id, None)
            self.bench.broker.kill("g", client_id)

    @rule(
        client_id=st.sampled_from(CLIENTS),
        calls=st.integers(1, 12),
        name=st.sampled_from(SERVICES),
    )
    def is_killed_amid(self, client_id: str, calls: int, name: str) -> None:
        if client_id in self.consumers:
            self.bench.broker.break_in(calls)
            self.turn_one(client_id, name)
            self.bench.broker.breaks_at_call = 0
            if client_id in self.consumers:
                self.kill(client_id)

    @rule(
        client_id=st.sampled_from(CLIENTS),
        calls=st.integers(1, 12),
        name=st.sampled_from(SERVICES),
    )
    def is_broken_off_and_lives(self, client_id: str, calls: int, name: str) -> None:
        """The broker's process ends in the middle of a client's round."""
        if client_id in self.consumers:
            self.bench.broker.break_in(calls)
            try:
                self.turn_service(self.consumers[client_id], name)
            except ClientKilled:
                self.bench.broker.restart()
            self.bench.broker.breaks_at_call = 0

    @rule(client_id=st.sampled_from(CLIENTS), name=st.sampled_from(SERVICES))
    def turn_one(self, client_id: str, name: str) -> None:
        if client_id in self.consumers:
            consumer = self.consumers[client_id]
            self.unless_killed(client_id, lambda: self.turn_service(consumer, name))

    def turn_service(self, consumer: DefaultMQPushConsumer, name: str) -> None:
        if name == "last":
            consumer.services[-1].run_once()
        else:
            turn(consumer, name)

    @rule(
        client_id=st.sampled_from(CLIENTS),
        nth=st.integers(0, 9),
        outcome=st.sampled_from(("fails", "succeeds", "succeeds", "killed")),
    )
    def consume(self, client_id: str, nth: int, outcome: str) -> None:
        if client_id in self.consumers:
            self.outcome = outcome
            consumer = self.consumers[client_id]
            self.unless_killed(client_id, lambda: consumer.consume(nth))
            self.outcome = None

    @rule(seconds=st.sampled_from((1, 1, 2, 6, 31, 61, 121)))
    def time_passes(self, seconds: int) -> None:
        self.bench.runtime.advance(seconds * 1000)
        self.bench.broker.wake()

    @rule()
    def the_broker_comes_and_goes(self) -> None:
        self.bench.broker.down = not self.bench.broker.down

    @rule()
    def the_broker_forgets(self) -> None:
        self.bench.broker.restart()

    @invariant()
    def no_offset_is_above_what_is_not_finished(self) -> None:
        if not hasattr(self, "bench"):
            return
        broker = self.bench.broker
        finished = self.done | broker.bodies_sent_back
        for (_, queue), committed in broker.offsets.items():
            if queue.topic != "T":
                continue
            skipped = [
                f"T/{queue.queue_id}/{offset}"
                for offset in range(committed)
                if f"T/{queue.queue_id}/{offset}" in self.due - finished
            ]
            assert skipped == [], (queue, committed)
        assert self.out_of_order == []

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            self.let_all_run_out()

    def let_all_run_out(self) -> None:
        broker = self.bench.broker
        broker.down = False
        if not self.consumers:
            self.join("c0")
        for _ in range(QUIET_SECONDS):
            for consumer in self.consumers.values():
                for service in consumer.services:
                    service.run_once()
                self.bench.consume_all(consumer)
            self.bench.runtime.advance(1000)
            broker.wake()
        owners = [
            queue
            for consumer in self.consumers.values()
            for queue, each in consumer.process_queue_table.items()
            if not each.dropped
        ]
        assert sorted(owners) == sorted(broker.queues)
        assert self.due <= self.done
        assert {queue: broker.offsets.get(("g", queue)) for queue in broker.queues} == {
            queue: there.max_offset for queue, there in broker.queues.items()
        }
        dead = [decode_message(record).body.decode() for record in broker.dead]
        assert dead == []
        assert queue_of("T") in owners


ConsumersTogether.TestCase.settings = settings(
    max_examples=60, stateful_step_count=60, deadline=None
)
TestConsumersTogether = pytest.mark.slow(ConsumersTogether.TestCase)
