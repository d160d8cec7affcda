"""Rebalance: which queues come and go, and what is kept of them."""

from __future__ import annotations

import pytest
from consumer_bench import FIRST, LAST, Bench, T
from fake_broker import queue_of, turn

from crashmq.engine.client.consumer.default_mq_push_consumer import (
    DefaultMQPushConsumer,
)
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_by_config import (
    AllocateMessageQueueByConfig,
)
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_consistent_hash import (  # noqa: E501 - RocketMQ's name
    AllocateMessageQueueConsistentHash,
)
from crashmq.engine.common.message_queue import MessageQueue


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.broker.create("T", queues=8)
    return bench


def queues_of(consumer: DefaultMQPushConsumer) -> list[int]:
    table = consumer.process_queue_table
    return [queue.queue_id for queue in table if queue.topic == "T"]


def test_queues_go_over_to_who_joins_and_come_back_from_who_leaves(
    bench: Bench,
) -> None:
    first = bench.started("c0")
    assert queues_of(first) == list(range(8))

    second = bench.started("c1")
    assert queues_of(second) == [4, 5, 6, 7]
    assert turn(first, "rebalance") == 4
    assert queues_of(first) == [0, 1, 2, 3]

    second.shutdown()
    assert turn(first, "rebalance") >= 4
    assert queues_of(first) == list(range(8))
    assert turn(first, "rebalance") == 0


def test_in_whatever_order_brokers_list_clients_and_queues_each_has_one_owner(
    bench: Bench,
) -> None:
    consumers = [bench.started(cid) for cid in ("c2", "c0", "c1")]
    for bench.broker.lists_backwards, consumer in zip(
        (0, 1, 0), consumers, strict=True
    ):
        turn(consumer, "rebalance")

    assert [queues_of(each) for each in consumers] == [[6, 7], [0, 1, 2], [3, 4, 5]]


def test_a_queue_that_goes_is_told_and_the_next_owner_goes_on_there(
    bench: Bench,
) -> None:
    first = bench.started("c0", consume_from_where=FIRST)
    bench.broker.put("T", 5, count=4)
    bench.pull(first)
    for _ in range(3):
        first.consume(0)

    second = bench.started("c1", consume_from_where=FIRST)
    turn(first, "rebalance")
    turn(second, "rebalance")
    assert bench.committed(5) == 3
    # The second one has begun before the first one told: what came between comes again.
    bench.pull(second)
    bench.consume_all(second)
    turn(second, "persist_all_consumer_offset")

    assert bench.committed(5) == 4
    assert bench.listener.offsets[:3] == [0, 1, 2]
    assert bench.listener.offsets[-1] == 3


def test_a_client_that_the_broker_does_not_know_gives_up_its_queues(
    bench: Bench,
) -> None:
    consumer = bench.started()
    bench.broker.put("T", 0, count=2)
    bench.pull(consumer)
    bench.consume_all(consumer)
    bench.broker.clients["g"]["c9"] = bench.broker.clients["g"].pop("c0")
    bench.broker.send_heartbeat = bench.fails  # type: ignore[assignment,method-assign] # for a while

    turn(consumer, "rebalance")

    assert queues_of(consumer) == []
    assert bench.committed() == 2
    del bench.broker.send_heartbeat
    turn(consumer, "heartbeat")
    turn(consumer, "rebalance")
    assert queues_of(consumer) == [0, 1, 2, 3]


@pytest.mark.parametrize("what", ["broker", "topic", "clients"])
def test_what_cannot_be_asked_for_leaves_the_queues_as_they_are(
    bench: Bench, what: str
) -> None:
    consumer = bench.started()
    if what == "broker":
        bench.broker.down = True
    elif what == "topic":
        bench.broker.queues = {}
    else:
        bench.broker.clients = {}

    assert turn(consumer, "rebalance") == 0
    assert queues_of(consumer) == list(range(8))
    assert consumer.services[0].interval_ms == 1_000


def test_a_queue_whose_beginning_nobody_knows_is_begun_by_a_later_round(
    bench: Bench,
) -> None:
    consumer = bench.consumer()
    consumer.start()
    bench.broker.max_offset = bench.fails  # type: ignore[assignment,method-assign] # for a while
    turn(consumer, "rebalance")
    assert queues_of(consumer) == []
    assert consumer.services[0].interval_ms == 1_000

    del bench.broker.max_offset
    turn(consumer, "rebalance")
    assert queues_of(consumer) == list(range(8))


def test_a_queue_whose_request_was_lost_is_begun_anew(bench: Bench) -> None:
    consumer = bench.started(consume_from_where=FIRST)
    bench.broker.put("T", 0, count=2)
    bench.pull(consumer)
    consumer.consume(0)
    before = consumer.process_queue_table[T]

    bench.runtime.advance(120_000)
    turn(consumer, "rebalance")
    assert consumer.process_queue_table[T] is before
    bench.runtime.advance(1)
    turn(consumer, "rebalance")

    assert before.dropped
    assert consumer.process_queue_table[T] is not before
    assert bench.committed() == 1


def test_where_a_group_begins_is_told_at_once(bench: Bench) -> None:
    bench.broker.put("T", 0, count=5)
    bench.started(consume_from_where=LAST)

    assert [bench.committed(queue_id) for queue_id in (0, 1)] == [5, 0]


def test_where_a_group_begins_is_decided_once_even_if_nobody_hears_of_it(
    bench: Bench,
) -> None:
    bench.broker.loses_updates = True
    consumer = bench.started(is_orderly=True, consume_from_where=LAST)
    bench.broker.put("T", 0, count=4)  # before the first pull, which asks once more
    bench.pull(consumer)
    bench.consume_all(consumer)

    assert bench.listener.offsets == [0, 1, 2, 3]


def test_what_a_broker_has_lost_since_is_no_beginning_any_more(bench: Bench) -> None:
    bench.broker.offsets["g", T] = 3
    consumer = bench.started(is_orderly=True, consume_from_where=FIRST)
    del bench.broker.offsets["g", T]  # with the end of its log, by a power loss
    bench.broker.put("T", 0, count=4)
    bench.pull(consumer)
    bench.consume_all(consumer)

    assert bench.listener.offsets == [0, 1, 2, 3]


def test_where_a_group_is_already_is_not_told_again(bench: Bench) -> None:
    bench.broker.offsets["g", T] = 3
    bench.started()

    told = [queue for queue, _ in bench.broker.commits]
    assert T not in told
    assert queue_of("T", 1) in told


def test_a_change_of_queues_is_told_with_a_newer_version(bench: Bench) -> None:
    consumer = bench.started()
    version = bench.broker.clients["g"]["c0"].subscriptions[1].sub_version

    bench.started("c1")
    turn(consumer, "rebalance")
    newer = bench.broker.clients["g"]["c0"].subscriptions[1].sub_version
    assert newer > version

    bench.runtime.advance(-3_600_000)
    bench.broker.kill("g", "c1")
    turn(consumer, "rebalance")
    assert bench.broker.clients["g"]["c0"].subscriptions[1].sub_version > newer


def test_a_queue_that_another_client_has_locked_is_not_begun(bench: Bench) -> None:
    bench.broker.locks["g", T] = "another", bench.runtime.now_ms()
    consumer = bench.started(is_orderly=True)
    assert queues_of(consumer) == [1, 2, 3, 4, 5, 6, 7]

    del bench.broker.locks["g", T]
    turn(consumer, "rebalance")
    assert queues_of(consumer) == list(range(8))
    assert bench.broker.locks["g", T][0] == "c0"


def test_by_config_nobody_sees_to_it_that_each_queue_has_an_owner(
    bench: Bench,
) -> None:
    def listed(*queue_ids: int) -> tuple[MessageQueue, ...]:
        return tuple(queue_of("T", queue_id) for queue_id in queue_ids)

    first = bench.started(
        "c0",
        allocate_message_queue_strategy=AllocateMessageQueueByConfig(listed(0, 1)),
    )
    second = bench.started(
        "c1",
        allocate_message_queue_strategy=AllocateMessageQueueByConfig(listed(1, 2)),
    )

    assert (queues_of(first), queues_of(second)) == ([0, 1], [1, 2])
    assert queue_of("%RETRY%g") not in first.process_queue_table


def test_on_the_ring_few_queues_move(bench: Bench) -> None:
    ring = AllocateMessageQueueConsistentHash()
    consumers = [
        bench.started(cid, allocate_message_queue_strategy=ring)
        for cid in ("c0", "c1", "c2")
    ]
    for consumer in consumers:
        turn(consumer, "rebalance")
    assert [queues_of(each) for each in consumers] == [[0, 1, 5, 6], [3, 4], [2, 7]]

    bench.started("c3", allocate_message_queue_strategy=ring)
    for consumer in consumers:
        turn(consumer, "rebalance")
    assert [queues_of(each) for each in consumers] == [[0, 1, 5, 6], [4], [2, 7]]


def test_a_queue_that_could_not_be_written_goes_in_a_later_round(
    bench: Bench,
) -> None:
    consumer = bench.started()
    store = bench.stores["c0"]
    bench.broker.clients["g"]["b9"] = bench.broker.clients["g"]["c0"]

    def fails(*_: object) -> int:
        raise OSError("the disk is full")

    store.persist = fails  # type: ignore[assignment,method-assign] # for a while
    with pytest.raises(OSError, match="full"):
        turn(consumer, "rebalance")
    retry = queue_of("%RETRY%g")
    assert consumer.process_queue_table[retry].dropped

    del store.persist
    bench.broker.kill("g", "b9")
    turn(consumer, "rebalance")
    assert queues_of(consumer) == list(range(8))
    assert not consumer.process_queue_table[retry].dropped
