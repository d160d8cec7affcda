"""Concurrent consumption: what is finished, what comes again, and what is committed."""

from __future__ import annotations

from typing import Any

import pytest
from consumer_bench import FIRST, LATER, SUCCESS, Bench, T
from fake_broker import turn

from crashmq.engine.client.consumer.default_mq_push_consumer import (
    DefaultMQPushConsumer,
)

MINUTE_MS = 60_000


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.broker.create("T")
    return bench


def pulled(bench: Bench, count: int, **config: Any) -> DefaultMQPushConsumer:
    """A consumer that has ``count`` messages of T to consume."""
    consumer = bench.started(consume_from_where=FIRST, **config)
    bench.broker.put("T", count=count)
    bench.pull(consumer)
    return consumer


def told(bench: Bench, consumer: DefaultMQPushConsumer) -> int:
    turn(consumer, "persist_all_consumer_offset")
    return bench.committed()


def test_the_host_says_which_batch_is_consumed_next(bench: Bench) -> None:
    consumer = pulled(bench, 4)

    commits = []
    for nth in (2, 2, 0, 7):
        assert consumer.consume(nth) == 1
        commits.append(told(bench, consumer))

    assert bench.listener.offsets == [2, 3, 0, 1]
    assert commits == [0, 0, 1, 4]
    assert consumer.consume(0) == 0


def test_messages_come_in_batches(bench: Bench) -> None:
    consumer = pulled(bench, 5, consume_message_batch_max_size=2)

    batches = [[m.queue_offset for m in r.messages] for r in consumer.waiting]

    assert batches == [[0, 1], [2, 3], [4]]


def test_what_failed_goes_back_and_is_finished_here(bench: Bench) -> None:
    consumer = pulled(bench, 3)
    bench.listener.answer = lambda *_: LATER
    consumer.consume(0)
    bench.listener.answer = bench.listener.succeeds
    consumer.consume(0)

    assert bench.broker.sent_back == [(0, 0)]
    assert told(bench, consumer) == 2


def test_a_retry_comes_with_the_topic_that_it_was_of(bench: Bench) -> None:
    consumer = pulled(bench, 1)
    bench.listener.answer = lambda *_: LATER
    consumer.consume(0)
    bench.pull(consumer)
    bench.listener.answer = bench.listener.succeeds
    bench.consume_all(consumer)

    assert bench.listener.got == [("T", 0, 0), ("T", 0, 0)]
    turn(consumer, "persist_all_consumer_offset")
    offsets = {q.topic: offset for (_, q), offset in bench.broker.offsets.items()}
    assert offsets == {"T": 1, "%RETRY%g": 1}


def test_none_and_an_error_mean_again_later(bench: Bench) -> None:
    consumer = pulled(bench, 2)
    bench.listener.answer = lambda *_: None
    consumer.consume(0)

    def fail(*_: object) -> None:
        raise ValueError("the listener's own")

    bench.listener.answer = fail
    consumer.consume(0)

    assert bench.broker.sent_back == [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("ack_index", "sent_back"), [(0, [1, 2]), (1, [2]), (99, []), (-1, [0, 1, 2])]
)
def test_only_what_is_behind_the_ack_index_failed(
    bench: Bench, ack_index: int, sent_back: list[int]
) -> None:
    consumer = pulled(bench, 3, consume_message_batch_max_size=3)

    def acked(_: object, context: Any) -> object:
        context.ack_index = ack_index
        context.delay_level_when_next_consume = 5
        return SUCCESS

    bench.listener.answer = acked
    consumer.consume(0)

    assert bench.broker.sent_back == [(offset, 5) for offset in sent_back]
    assert told(bench, consumer) == 3


def test_a_message_that_failed_too_often_is_a_dead_letter(bench: Bench) -> None:
    consumer = pulled(bench, 1, max_reconsume_times=2)
    bench.listener.answer = lambda *_: LATER
    for _ in range(6):
        bench.consume_all(consumer)
        bench.pull(consumer)

    assert len(bench.listener.got) == 3
    assert len(bench.broker.dead) == 1


def test_what_could_not_be_sent_back_stays_and_is_tried_here(bench: Bench) -> None:
    consumer = pulled(bench, 2)
    bench.listener.answer = lambda *_: LATER
    bench.broker.down = True
    consumer.consume(0)
    bench.broker.down = False
    bench.listener.answer = bench.listener.succeeds
    consumer.consume(0)
    assert told(bench, consumer) == 0

    bench.runtime.advance(4_999)
    assert consumer.consume(0) == 0
    bench.runtime.advance(1)
    assert consumer.waiting[0].messages[0].reconsume_times == 1
    consumer.consume(0)
    assert told(bench, consumer) == 2
    assert bench.listener.offsets == [0, 1, 0]


def test_a_batch_of_a_dropped_queue_is_not_consumed(bench: Bench) -> None:
    consumer = pulled(bench, 2)
    consumer.process_queue_table[T].drop()

    bench.consume_all(consumer)

    assert bench.listener.got == []


def test_what_ends_after_the_queue_was_dropped_counts_not(bench: Bench) -> None:
    consumer = pulled(bench, 2)

    def dropped_amid(*_: object) -> object:
        consumer.process_queue_table[T].drop()
        return LATER

    bench.listener.answer = dropped_amid
    consumer.consume(0)

    assert bench.broker.sent_back == []
    assert told(bench, consumer) == 0


def hang(bench: Bench, consumer: DefaultMQPushConsumer, minutes: int) -> None:
    """Let a listener have the first message for so long, and sweep meanwhile."""

    def slowly(*_: object) -> object:
        bench.runtime.advance(minutes * MINUTE_MS)
        bench.listener.answer = bench.listener.succeeds
        turn(consumer, "clean_expired_msg")
        return LATER

    bench.listener.answer = slowly
    consumer.consume(0)


def test_a_message_that_a_listener_has_too_long_is_given_up(bench: Bench) -> None:
    consumer = pulled(bench, 2)

    hang(bench, consumer, minutes=16)

    assert bench.broker.sent_back == [(0, 3)]  # and not once more when it ended
    assert consumer.process_queue_table[T].offsets == (1,)
    consumer.consume(0)
    assert told(bench, consumer) == 2


def test_a_message_is_not_given_up_before_its_time(bench: Bench) -> None:
    consumer = pulled(bench, 2)

    hang(bench, consumer, minutes=15)

    assert bench.broker.sent_back == [(0, 0)]


def test_a_sweep_gives_up_sixteen_at_most_and_only_from_the_front(
    bench: Bench,
) -> None:
    consumer = pulled(bench, 20, consume_message_batch_max_size=20)

    hang(bench, consumer, minutes=16)
    assert [level for _, level in bench.broker.sent_back] == [3] * 16 + [0] * 4


def test_a_sweep_that_cannot_send_back_gives_up_nothing(bench: Bench) -> None:
    consumer = pulled(bench, 1)

    def slowly(*_: object) -> object:
        bench.runtime.advance(16 * MINUTE_MS)
        bench.broker.down = True
        turn(consumer, "clean_expired_msg")
        bench.broker.down = False
        return SUCCESS

    bench.listener.answer = slowly
    consumer.consume(0)

    assert told(bench, consumer) == 1


def test_once_all_were_given_up_the_next_empty_poll_commits(bench: Bench) -> None:
    consumer = pulled(bench, 1)

    hang(bench, consumer, minutes=16)
    assert told(bench, consumer) == 0
    bench.broker.wake()
    bench.pull(consumer)

    assert told(bench, consumer) == 1
