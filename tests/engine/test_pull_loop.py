"""The pull loop: when a queue is pulled, and what becomes of an answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from consumer_bench import FIRST, SUCCESS, Bench, T
from fake_broker import queue_of, turn, waits
from messages import record_of

from crashmq.engine.client.consumer.default_mq_push_consumer import (
    DefaultMQPushConsumer,
)
from crashmq.engine.client.impl.broker_api import PullAnswer
from crashmq.engine.remoting.pull_message import (
    PullMessageRequest,
    PullMessageResponse,
    PullSysFlag,
)
from crashmq.engine.remoting.response_code import ResponseCode

MIB = 1024 * 1024


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.broker.create("T")
    return bench


def test_a_new_queue_is_pulled_half_a_second_later(bench: Bench) -> None:
    consumer = bench.consumer()
    consumer.start()
    turn(consumer, "rebalance")

    bench.runtime.advance(499)
    assert turn(consumer, "pull_message") == 0
    bench.runtime.advance(1)
    assert turn(consumer, "pull_message") == 2  # its retry topic has a queue, too


def test_a_pull_asks_as_rocketmqs_does(bench: Bench) -> None:
    consumer = bench.started(subscriptions=(("T", "A", "TAG"),), pull_batch_size=7)
    bench.pull(consumer)

    pull = next(pull for pull in bench.broker.pulls if pull.topic == "T")
    subscription = bench.broker.clients["g"]["c0"].subscriptions[1]
    assert pull == PullMessageRequest(
        consumer_group="g",
        topic="T",
        queue_id=0,
        queue_offset=0,
        max_msg_nums=7,
        sys_flag=PullSysFlag.SUSPEND,
        suspend_timeout_millis=15_000,
        subscription="A",
        sub_version=subscription.sub_version,
        expression_type="TAG",
        client_id="c0",
    )


def test_a_pull_carries_its_expression_only_if_it_is_told_to(bench: Bench) -> None:
    bench.pull(bench.started(post_subscription_when_pull=True))

    flags = bench.broker.pulls[0].sys_flag
    assert flags == PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION


def test_a_pull_tells_how_far_the_group_is_unless_that_is_0(bench: Bench) -> None:
    consumer = bench.started()
    bench.broker.put("T", count=2)
    bench.pull(consumer)
    bench.consume_all(consumer)
    bench.broker.put("T")
    bench.pull(consumer)

    told = [(p.sys_flag, p.commit_offset) for p in bench.broker.pulls if p.topic == "T"]
    with_commit = PullSysFlag.SUSPEND | PullSysFlag.COMMIT_OFFSET
    assert told == [
        (PullSysFlag.SUSPEND, 0),
        (PullSysFlag.SUSPEND, 0),
        (with_commit, 2),
    ]
    assert bench.committed() == 2


@pytest.mark.slow
@pytest.mark.parametrize(("waiting", "last"), [(1000, 1000), (1001, 992)])
def test_a_queue_is_not_pulled_while_too_many_messages_wait(
    bench: Bench, waiting: int, last: int
) -> None:
    consumer = bench.started()
    bench.broker.put("T", count=waiting)

    bench.pull(consumer, rounds=40)
    assert consumer.process_queue_table[T].msg_count == waiting
    assert bench.asked_of()[-1] == last

    bench.consume_all(consumer)
    bench.runtime.advance(50)
    bench.pull(consumer)
    assert bench.asked_of()[-1] == waiting


def test_a_queue_is_not_pulled_while_too_many_bytes_wait(bench: Bench) -> None:
    consumer = bench.started(pull_threshold_size_for_queue=2, pull_batch_size=1)
    bench.broker.put("T", count=5, body=b"z" * MIB)

    bench.pull(consumer, rounds=9)

    assert consumer.process_queue_table[T].msg_count == 3


@pytest.mark.parametrize("orderly", [False, True])
def test_a_queue_is_not_pulled_while_its_first_and_last_lie_far_apart(
    bench: Bench, orderly: bool
) -> None:
    consumer = bench.started(consume_concurrently_max_span=63, is_orderly=orderly)
    bench.broker.put("T", count=160)

    bench.pull(consumer, rounds=9)
    if orderly:
        assert bench.asked_of() == [0, 32, 64, 96, 128, 160]
        return
    assert bench.asked_of() == [0, 32, 64]
    for _ in range(50):
        consumer.consume(1)  # never the first one: the span stays what it is
    bench.runtime.advance(50)
    bench.pull(consumer)
    assert bench.asked_of() == [0, 32, 64]
    consumer.consume(0)
    bench.runtime.advance(50)
    bench.pull(consumer)
    assert bench.asked_of() == [0, 32, 64, 96]


def test_a_topics_thresholds_are_divided_by_its_queues(bench: Bench) -> None:
    bench.broker.create("T", queues=3)
    consumer = bench.started(pull_threshold_for_topic=8, pull_batch_size=1)
    bench.broker.put("T", count=9)

    bench.pull(consumer, rounds=20)

    # Three queues, and the retry topic's: 8 // 4, and one more is pulled.
    assert consumer.process_queue_table[T].msg_count == 3


def test_what_the_tags_hash_let_through_is_not_consumed_e2(bench: Bench) -> None:
    consumer = bench.started(
        subscriptions=(("T", "Aa", "TAG"),), consume_from_where=FIRST
    )
    for tags in ("Aa", "BB", "TagA", "Aa", "", "BB"):
        bench.broker.put("T", tags=tags)

    bench.pull(consumer)
    assert consumer.process_queue_table[T].offsets == (0, 3)
    memory = bench.stores["c0"].clone_offset_table
    consumer.consume(0)
    assert memory("T")[T] == 3
    consumer.consume(0)
    assert memory("T")[T] == 4
    assert bench.asked_of()[-1] == 6
    bench.runtime.advance(15_000)
    bench.broker.wake()
    bench.pull(consumer, rounds=1)
    assert memory("T")[T] == 6
    assert bench.listener.offsets == [0, 3]


def test_entries_that_do_not_match_are_passed_by_and_committed_e2(
    bench: Bench,
) -> None:
    consumer = bench.started(
        subscriptions=(("T", "Aa", "TAG"),), consume_from_where=FIRST
    )
    bench.broker.put("T", count=2000, tags="TagA")

    bench.pull(consumer, rounds=6)
    turn(consumer, "persist_all_consumer_offset")

    assert bench.asked_of() == [0, 800, 1600, 2000]
    assert bench.committed() == 2000


def test_while_a_message_waits_an_empty_poll_commits_nothing(bench: Bench) -> None:
    consumer = bench.started(
        subscriptions=(("T", "Aa", "TAG"),), consume_from_where=FIRST
    )
    bench.broker.put("T", tags="Aa")
    bench.broker.put("T", count=5, tags="TagA")

    bench.pull(consumer)
    bench.runtime.advance(15_000)
    bench.broker.wake()
    bench.pull(consumer)
    turn(consumer, "persist_all_consumer_offset")

    assert bench.committed() == 0


class Mailbox:
    """A broker's pulls that are answered by hand."""

    def __init__(self, bench: Bench) -> None:
        self.asked: list[tuple[PullMessageRequest, PullAnswer]] = []
        bench.broker.pull_message = (  # type: ignore[method-assign] # by hand
            lambda request, answer: self.asked.append((request, answer))
        )

    def offsets(self, topic: str = "T") -> list[int]:
        return [request.queue_offset for request, _ in self.asked_of(topic)]

    def asked_of(self, topic: str) -> list[tuple[PullMessageRequest, PullAnswer]]:
        return [each for each in self.asked if each[0].topic == topic]

    def answer(self, response: PullMessageResponse, nth: int = -1) -> None:
        self.asked_of("T")[nth][1](response)


def found(*offsets: int) -> PullMessageResponse:
    records = tuple(record_of(offset) for offset in offsets)
    code = ResponseCode.SUCCESS
    return PullMessageResponse(code, offsets[-1] + 1, 0, offsets[-1] + 1, records)


def by_hand(bench: Bench) -> tuple[DefaultMQPushConsumer, Mailbox]:
    consumer = bench.started(consume_from_where=FIRST)
    mailbox = Mailbox(bench)
    bench.pull(consumer)
    return consumer, mailbox


def test_an_answer_waits_for_the_next_round(bench: Bench) -> None:
    consumer, mailbox = by_hand(bench)

    mailbox.answer(found(0, 1))
    assert waits(consumer) == 0
    turn(consumer, "pull_message")

    assert waits(consumer) == 2
    assert mailbox.offsets() == [0, 2]


def test_a_pull_without_an_answer_is_tried_again_after_30_seconds(
    bench: Bench,
) -> None:
    consumer, mailbox = by_hand(bench)

    bench.runtime.advance(29_999)
    bench.pull(consumer)
    assert mailbox.offsets() == [0]
    bench.runtime.advance(1)
    bench.pull(consumer)
    assert mailbox.offsets() == [0]
    bench.runtime.advance(1_000)
    bench.pull(consumer)
    assert mailbox.offsets() == [0, 0]

    mailbox.answer(found(0, 1), nth=0)  # too late
    bench.pull(consumer)
    assert waits(consumer) == 0
    mailbox.answer(found(0, 1, 2))
    bench.pull(consumer)
    assert waits(consumer) == 3
    assert mailbox.offsets() == [0, 0, 3]


def test_an_answer_counts_once(bench: Bench) -> None:
    consumer, mailbox = by_hand(bench)

    mailbox.answer(found(0))
    mailbox.answer(found(0))
    bench.pull(consumer)

    assert waits(consumer) == 1
    assert mailbox.offsets() == [0, 1]


@pytest.mark.parametrize("last", ["A", "*"])
@pytest.mark.parametrize(
    "code", [ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY]
)
def test_an_answer_to_what_was_subscribed_before_is_asked_for_again(
    bench: Bench, last: str, code: ResponseCode
) -> None:
    consumer, mailbox = by_hand(bench)
    consumer.subscribe("T", "A")
    consumer.subscribe("T", last)

    mailbox.answer(replace(found(0), code=code))
    bench.pull(consumer)

    assert waits(consumer) == 0
    assert mailbox.offsets() == [0, 0]


@pytest.mark.parametrize(
    ("code", "delay_ms"),
    [
        (ResponseCode.FLOW_CONTROL, 20),
        (ResponseCode.SYSTEM_ERROR, 1_000),
        (ResponseCode.SUBSCRIPTION_NOT_LATEST, 1_000),
    ],
)
def test_after_an_error_a_pull_is_tried_again_where_it_was(
    bench: Bench, code: ResponseCode, delay_ms: int
) -> None:
    consumer, mailbox = by_hand(bench)

    mailbox.answer(PullMessageResponse(code, 77))
    bench.pull(consumer)
    bench.runtime.advance(delay_ms - 1)
    bench.pull(consumer)
    assert mailbox.offsets() == [0]
    bench.runtime.advance(1)
    bench.pull(consumer)
    assert mailbox.offsets() == [0, 0]


def test_a_pull_that_could_not_be_sent_is_tried_again(bench: Bench) -> None:
    consumer = bench.started()
    bench.broker.down = True
    bench.pull(consumer)
    bench.broker.down = False
    bench.broker.put("T")

    bench.runtime.advance(999)
    bench.pull(consumer)
    assert bench.asked_of() == []
    bench.runtime.advance(1)
    bench.pull(consumer)
    assert bench.asked_of() == [0, 1]


def test_between_pulls_that_bring_messages_lies_the_pull_interval(
    bench: Bench,
) -> None:
    consumer = bench.started(pull_interval=200)
    bench.broker.put("T", count=64)

    bench.pull(consumer)
    assert bench.asked_of() == [0]
    bench.runtime.advance(200)
    bench.pull(consumer)
    assert bench.asked_of() == [0, 32]


def test_the_request_of_a_dropped_queue_ends(bench: Bench) -> None:
    consumer, mailbox = by_hand(bench)

    bench.broker.clients["g"] |= {"b9": bench.broker.clients["g"]["c0"]}
    turn(consumer, "rebalance")
    assert T not in consumer.process_queue_table
    mailbox.answer(found(0))
    bench.pull(consumer)
    bench.runtime.advance(60_000)
    bench.pull(consumer)

    assert mailbox.offsets() == [0]
    assert consumer.consume(0) == 0


def test_a_clock_set_back_delays_nothing_for_ever(bench: Bench) -> None:
    consumer, mailbox = by_hand(bench)
    mailbox.answer(PullMessageResponse(ResponseCode.SYSTEM_ERROR))
    bench.pull(consumer)

    bench.runtime.advance(-86_400_000)
    bench.pull(consumer)

    assert mailbox.offsets() == [0, 0]


def test_an_illegal_offset_is_corrected_and_the_queue_begun_anew(
    bench: Bench,
) -> None:
    bench.broker.create("T", base=10)
    bench.broker.put("T", count=20)
    bench.broker.offsets["g", T] = 12
    consumer = bench.started()
    bench.broker.expire(T, count=6)  # what was not consumed has expired
    bench.pull(consumer)

    assert T not in consumer.process_queue_table
    assert bench.committed() == 16
    assert consumer.services[0].interval_ms == 1_000
    turn(consumer, "rebalance")
    bench.runtime.advance(500)
    bench.pull(consumer)
    bench.consume_all(consumer)
    assert bench.listener.offsets == list(range(16, 30))


def test_a_queue_that_lost_its_end_goes_on_where_the_group_is(bench: Bench) -> None:
    bench.broker.put("T", count=100)
    bench.broker.offsets["g", T] = 100
    consumer = bench.started()
    bench.pull(consumer)

    # Power loss at the broker: a tail is lost, and the offset corrected by it.
    bench.broker.lose_tail(T, 10)
    bench.broker.restart()
    bench.broker.offsets["g", T] = 90
    bench.broker.bounds_commits = True
    bench.broker.put("T", count=5)
    for service in consumer.services[3:]:
        service.run_once()
    bench.runtime.advance(30_000)
    bench.pull(consumer)
    bench.runtime.advance(1_000)
    bench.pull(consumer)
    turn(consumer, "rebalance")
    bench.runtime.advance(500)
    bench.pull(consumer)
    bench.consume_all(consumer)

    assert bench.listener.offsets == [90, 91, 92, 93, 94]


def test_a_late_illegal_offset_does_not_hit_the_queue_that_came_after(
    bench: Bench,
) -> None:
    consumer, mailbox = by_hand(bench)
    alone = bench.broker.clients["g"]
    for clients in (alone | {"b9": alone["c0"]}, alone):
        bench.broker.clients["g"] = clients
        turn(consumer, "rebalance")
    anew = consumer.process_queue_table[T]
    bench.runtime.advance(500)
    bench.pull(consumer)

    mailbox.answer(PullMessageResponse(ResponseCode.PULL_OFFSET_MOVED, 7, 7, 9), nth=0)
    mailbox.answer(found(0, 1))
    bench.pull(consumer)
    bench.consume_all(consumer)
    turn(consumer, "persist_all_consumer_offset")

    assert consumer.process_queue_table[T] is anew
    assert bench.committed() == 2


def test_a_completion_does_not_move_an_offset_that_is_being_corrected(
    bench: Bench,
) -> None:
    bench.broker.put("T", count=50)
    consumer = bench.started(consume_from_where=FIRST)
    bench.pull(consumer)
    bench.broker.expire(T, count=50)
    bench.broker.create("T", base=0)  # the topic was made anew
    bench.broker.put("T", count=3)

    def corrected_amid(*_: object) -> object:
        bench.broker.restart()
        bench.runtime.advance(31_000)
        bench.pull(consumer)
        bench.runtime.advance(1_000)
        bench.pull(consumer)
        return SUCCESS

    bench.listener.answer = corrected_amid
    consumer.consume(40)
    assert T not in consumer.process_queue_table
    turn(consumer, "persist_all_consumer_offset")

    assert bench.committed() <= 3
    assert queue_of("T") == T
