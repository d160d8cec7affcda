"""Orderly consumption: one batch after the other, under a lock of the broker."""

from __future__ import annotations

from typing import Any

import pytest
from consumer_bench import COMMIT, FIRST, IN_ORDER, ROLLBACK, SUSPEND, Bench, T
from fake_broker import ClientKilled, turn, waits

from crashmq.engine.client.consumer.default_mq_push_consumer import (
    DefaultMQPushConsumer,
)


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.broker.create("T")
    return bench


def pulled(bench: Bench, count: int, **config: Any) -> DefaultMQPushConsumer:
    """A consumer that has ``count`` messages of T to consume in order."""
    consumer = bench.started(consume_from_where=FIRST, is_orderly=True, **config)
    bench.broker.put("T", count=count)
    bench.pull(consumer)
    return consumer


def told(bench: Bench, consumer: DefaultMQPushConsumer) -> int:
    turn(consumer, "persist_all_consumer_offset")
    return bench.committed()


def test_a_queue_is_consumed_in_its_order(bench: Bench) -> None:
    consumer = pulled(bench, 5, consume_message_batch_max_size=2)

    assert waits(consumer) == 1
    commits = []
    while waits(consumer):
        consumer.consume(7)
        commits.append(told(bench, consumer))

    assert bench.listener.offsets == [0, 1, 2, 3, 4]
    assert commits == [2, 4, 5, 5]  # the last run found nothing, and ended


def test_a_run_that_ended_is_begun_again_by_the_next_messages(bench: Bench) -> None:
    consumer = pulled(bench, 1)
    bench.consume_all(consumer)

    bench.broker.put("T", count=2)
    bench.pull(consumer)
    bench.consume_all(consumer)

    assert bench.listener.offsets == [0, 1, 2]


@pytest.mark.parametrize(("asked", "ms"), [(-1, 1000), (5, 10), (99_000, 30_000)])
def test_after_a_failure_the_queue_stands_still_for_a_moment(
    bench: Bench, asked: int, ms: int
) -> None:
    consumer = pulled(bench, 2)

    def fails(_: object, context: Any) -> object:
        context.suspend_current_queue_time_millis = asked
        return SUSPEND

    bench.listener.answer = fails
    consumer.consume(0)
    bench.listener.answer = bench.listener.succeeds

    bench.runtime.advance(ms - 1)
    assert waits(consumer) == 0
    bench.runtime.advance(1)
    turn(consumer, "lock_mq_periodically")
    bench.consume_all(consumer)
    assert bench.listener.offsets == [0, 0, 1]
    assert told(bench, consumer) == 2


def test_an_error_of_the_listener_is_a_failure(bench: Bench) -> None:
    consumer = pulled(bench, 1)

    def fail(*_: object) -> None:
        raise ValueError("the listener's own")

    bench.listener.answer = fail
    consumer.consume(0)

    assert told(bench, consumer) == 0
    assert consumer.process_queue_table[T].offsets == (0,)


def test_what_failed_too_often_is_a_dead_letter_and_the_rest_comes_again(
    bench: Bench,
) -> None:
    consumer = pulled(bench, 3, consume_message_batch_max_size=3, max_reconsume_times=1)
    bench.listener.answer = lambda *_: SUSPEND
    consumer.consume(0)
    bench.runtime.advance(1000)
    bench.broker.refuse_next = [False, True, False]
    consumer.consume(0)
    assert bench.broker.sent_back == [(0, -1), (2, -1)]

    bench.listener.answer = bench.listener.succeeds
    bench.runtime.advance(1000)
    bench.consume_all(consumer)

    assert bench.listener.offsets == [0, 1, 2, 0, 1, 2, 1]
    assert told(bench, consumer) == 2
    assert len(bench.broker.dead) == 2
    bench.broker.wake()
    bench.runtime.advance(15_000)
    bench.broker.wake()
    bench.pull(consumer)
    assert told(bench, consumer) == 3


def test_when_all_were_sent_away_the_queue_goes_on(bench: Bench) -> None:
    consumer = pulled(bench, 2, max_reconsume_times=0)
    bench.listener.answer = lambda *_: SUSPEND

    bench.consume_all(consumer)

    assert told(bench, consumer) == 2
    assert bench.broker.sent_back == [(0, -1), (1, -1)]


def by_hand(answer: Any) -> Any:
    """An answer of a listener that commits by itself."""

    def answers(_: object, context: Any) -> object:
        context.auto_commit = False
        return answer

    return answers


def test_without_auto_commit_only_a_commit_commits(bench: Bench) -> None:
    consumer = pulled(bench, 3)
    commits = []
    for answer in (IN_ORDER, IN_ORDER, COMMIT):
        bench.listener.answer = by_hand(answer)
        consumer.consume(0)
        commits.append(told(bench, consumer))

    assert commits == [0, 0, 3]


def test_a_rollback_brings_back_all_since_the_last_commit(bench: Bench) -> None:
    consumer = pulled(bench, 4)
    for answer in (COMMIT, IN_ORDER, ROLLBACK):
        bench.listener.answer = by_hand(answer)
        consumer.consume(0)
    assert told(bench, consumer) == 1

    bench.runtime.advance(1000)
    bench.listener.answer = bench.listener.succeeds
    bench.consume_all(consumer)
    assert bench.listener.offsets == [0, 1, 2, 1, 2, 3]
    assert told(bench, consumer) == 4


def test_without_auto_commit_a_queue_is_given_back_at_the_last_commit(
    bench: Bench,
) -> None:
    consumer = pulled(bench, 3)
    for answer in (COMMIT, IN_ORDER):
        bench.listener.answer = by_hand(answer)
        consumer.consume(0)

    consumer.shutdown()

    assert bench.listener.offsets == [0, 1]
    assert bench.committed() == 1  # the next owner is given 1 again


@pytest.mark.parametrize("answer", [COMMIT, ROLLBACK])
def test_with_auto_commit_the_others_are_taken_for_a_success(
    bench: Bench, answer: Any
) -> None:
    consumer = pulled(bench, 1)
    bench.listener.answer = lambda *_: answer
    consumer.consume(0)

    assert told(bench, consumer) == 1


def test_without_auto_commit_what_was_sent_away_is_not_committed_yet(
    bench: Bench,
) -> None:
    consumer = pulled(bench, 2, max_reconsume_times=0)
    bench.listener.answer = by_hand(SUSPEND)
    consumer.consume(0)
    assert told(bench, consumer) == 0

    bench.listener.answer = by_hand(COMMIT)
    consumer.consume(0)
    assert told(bench, consumer) == 2


def test_without_the_lock_nothing_is_consumed_and_it_is_asked_for(
    bench: Bench,
) -> None:
    consumer = pulled(bench, 1)
    bench.runtime.advance(30_001)

    consumer.consume(0)
    assert bench.listener.got == []
    assert consumer.process_queue_table[T].lease.holds(bench.runtime.now_ms())
    bench.runtime.advance(10)
    consumer.consume(0)
    assert bench.listener.offsets == [0]


def test_a_lock_that_another_client_has_is_asked_for_every_three_seconds(
    bench: Bench,
) -> None:
    consumer = pulled(bench, 1)
    bench.broker.locks["g", T] = "another", bench.runtime.now_ms()
    assert turn(consumer, "lock_mq_periodically") == 1  # that of the retry topic

    assert consumer.consume(0) == 1
    bench.runtime.advance(2_999)
    assert waits(consumer) == 0
    bench.runtime.advance(1)
    assert waits(consumer) == 1
    assert bench.listener.got == []


def test_an_unlocked_queue_is_not_pulled_and_then_begins_where_the_group_is(
    bench: Bench,
) -> None:
    consumer = bench.consumer(consume_from_where=FIRST, is_orderly=True)
    bench.broker.put("T", count=9)
    consumer.start()
    turn(consumer, "rebalance")
    bench.broker.locks["g", T] = "another", bench.runtime.now_ms()
    turn(consumer, "lock_mq_periodically")
    bench.runtime.advance(500)
    bench.pull(consumer)
    assert bench.asked_of() == []

    bench.broker.offsets["g", T] = 5  # the other one came so far
    del bench.broker.locks["g", T]
    turn(consumer, "lock_mq_periodically")
    bench.runtime.advance(1000)
    bench.pull(consumer)
    assert bench.asked_of() == [5, 9]


def test_a_broker_that_cannot_be_asked_leaves_the_lease_to_run_out(
    bench: Bench,
) -> None:
    consumer = pulled(bench, 1)
    bench.broker.down = True
    bench.runtime.advance(10_000)
    turn(consumer, "lock_mq_periodically")

    lease = consumer.process_queue_table[T].lease
    assert lease.holds(bench.runtime.now_ms())
    bench.runtime.advance(20_001)
    assert not lease.holds(bench.runtime.now_ms())


def test_a_queue_is_not_given_up_while_a_listener_has_it(bench: Bench) -> None:
    consumer = pulled(bench, 1)

    def give_up_amid(*_: object) -> object:
        bench.broker.clients["g"]["b9"] = bench.broker.clients["g"]["c0"]
        turn(consumer, "rebalance")
        assert T in consumer.process_queue_table
        assert bench.broker.locks["g", T][0] == "c0"
        return IN_ORDER

    bench.listener.answer = give_up_amid
    consumer.consume(0)
    turn(consumer, "rebalance")

    assert T not in consumer.process_queue_table
    assert ("g", T) not in bench.broker.locks


def test_a_queue_that_a_listener_has_for_long_goes_over_by_the_brokers_time(
    bench: Bench,
) -> None:
    consumer = pulled(bench, 1)
    another = bench.broker.clients["g"]["c0"]
    locked = []

    def give_up_amid(*_: object) -> object:
        bench.broker.clients["g"]["b9"] = another
        for _round in range(4):
            bench.runtime.advance(20_000)
            turn(consumer, "rebalance")
            turn(consumer, "lock_mq_periodically")
            assert consumer.process_queue_table[T].dropped
            locked.append(bool(bench.broker.lock_batch("g", "b9", (T,))))
        return IN_ORDER

    bench.listener.answer = give_up_amid
    consumer.consume(0)
    turn(consumer, "rebalance")

    assert locked == [False, False, True, True]
    assert T not in consumer.process_queue_table
    assert bench.broker.locks["g", T][0] == "b9"
    assert bench.committed() == 0


def test_a_queue_that_comes_back_while_it_is_held_goes_on_behind_its_listener(
    bench: Bench,
) -> None:
    consumer = pulled(bench, 2)

    def leave_and_come_back(*_: object) -> object:
        bench.broker.clients["g"]["b9"] = bench.broker.clients["g"]["c0"]
        turn(consumer, "rebalance")
        bench.broker.kill("g", "b9")
        turn(consumer, "rebalance")
        return IN_ORDER

    bench.listener.answer = leave_and_come_back
    consumer.consume(0)
    turn(consumer, "rebalance")
    bench.runtime.advance(500)
    bench.pull(consumer)
    bench.listener.answer = bench.listener.succeeds
    bench.consume_all(consumer)

    assert bench.listener.offsets == [0, 1]


def test_a_run_that_is_broken_off_is_run_again(bench: Bench) -> None:
    consumer = pulled(bench, 2)

    def killed(*_: object) -> object:
        raise ClientKilled("the broker's process ended")

    bench.listener.answer = killed
    with pytest.raises(ClientKilled):
        consumer.consume(0)
    bench.listener.answer = bench.listener.succeeds
    bench.consume_all(consumer)

    assert bench.listener.offsets == [0, 0, 1]
    assert told(bench, consumer) == 2
