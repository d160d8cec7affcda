"""What a client's services owe in time: the pull loop and the periodic tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashmq.engine.common.message_queue import MessageQueue
from crashmq.harness.judging.judge import Judge
from crashmq.harness.subjects.allocation import strategy_of
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.brokers import broker_of
from crashmq.models.history import OneQueue
from crashmq.models.knowledge.allocation import share_of
from crashmq.models.knowledge.due_pulls import (
    ANY_TIME,
    DuePull,
    DuePulls,
    PullLimit,
)
from crashmq.models.laws.client_tasks import (
    a_client_renews_what_runs_out,
    a_client_reports_its_rounds,
    a_consumer_begins_where_it_is_told,
    a_consumer_tells_what_it_subscribes,
    a_persist_round_commits_progress,
    a_rebalance_is_repeated_in_time,
    a_rebalance_round_takes_the_share,
    a_stop_waits_for_nothing_else,
    a_stopped_consumer_does_nothing,
)
from crashmq.models.laws.pull_loop import (
    a_due_queue_is_pulled,
    no_queue_is_pulled_too_soon,
)
from crashmq.models.ops import StartConsumer
from crashmq.models.program import Setup

AT_C0 = OneQueue("c0", "g", "T0", 0)
STRATEGIES = (
    *("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM"),
    "MACHINE_ROOM_NEARBY",
)


def pulls(state: str = "sent", at_ms: int = 0) -> DuePulls:
    due = DuePulls()
    due.given(AT_C0, at_ms, locks=False)
    if state == "sent":
        due.sent(AT_C0, at_ms)
    return due


def test_a_queue_is_due_half_a_second_after_it_was_assigned() -> None:
    pull = pulls("waits", 100).pulls[AT_C0]

    assert (pull.least_ms, pull.most_ms) == (600, 600)
    assert not pull.is_due(599)
    assert pull.is_due(600)


def test_a_pull_without_an_answer_is_given_up_after_30_s_and_sent_after_31() -> None:
    pull = pulls().pulls[AT_C0]

    assert (pull.most_ms, pull.least_ms) == (30_000, 31_000)


def test_an_answer_makes_a_queue_due_at_once_and_a_refusal_after_a_second() -> None:
    answered, refused, found = pulls(), pulls(), pulls()
    answered.answered(AT_C0, 7, 3, "waits")
    refused.answered(AT_C0, 7, 0, "refused", 1_000)
    found.answered(AT_C0, 7, 3, "found", 300)

    assert answered.pulls[AT_C0] == DuePull("waits", 7, 7, brought=3)
    assert refused.pulls[AT_C0].least_ms == 1_007
    assert refused.pulls[AT_C0].is_due(7), "a round has to take it up"
    assert found.pulls[AT_C0].least_ms == 307
    assert found.pulls[AT_C0].is_due(7), "a round has to take it up"


def test_of_two_pulls_underway_an_answer_tells_nothing() -> None:
    due = pulls()
    due.sent(AT_C0, 31_000)
    due.answered(AT_C0, 31_001, 0, "waits")

    assert due.pulls[AT_C0].state == "unsure"
    assert due.pulls[AT_C0].most_ms == 61_000
    assert due.pulls[AT_C0].least_ms == 31_001


def test_after_what_nobody_saw_a_round_is_due_in_half_a_minute() -> None:
    due = pulls()
    due.unsure(500, frozenset({"c1"}))
    assert due.pulls[AT_C0].state == "sent"

    due.unsure(500, frozenset({"c0"}))
    assert due.pulls[AT_C0] == DuePull("unsure", ANY_TIME, 30_500)


def test_a_queue_that_is_given_up_is_due_no_more() -> None:
    due = pulls()
    due.forget("c0", (("T0", 0),))
    assert due.pulls

    due.forget("c0")
    assert not due.pulls


def test_a_copy_goes_on_by_itself() -> None:
    setup = Setup(keeps_progress=True)
    judge = Judge(setup, PythonStore(setup))
    other = judge.fork(PythonStore(setup))
    other.known.progress.due.given(AT_C0, 0, locks=False)

    assert not judge.known.progress.due.pulls


def test_what_is_due_is_pulled_and_not_before() -> None:
    late, soon = a_due_queue_is_pulled, no_queue_is_pulled_too_soon

    assert late.violations(AT_C0, 500, 700, is_sent=False)
    assert not late.violations(AT_C0, 500, 700, is_sent=True)
    assert soon.violations(AT_C0, 499, 500)
    assert not soon.violations(AT_C0, 500, 500)


def test_a_round_does_what_is_its_to_do() -> None:
    assert a_client_renews_what_runs_out.violations("c0", ["the lock of T0/0"])
    assert not a_client_renews_what_runs_out.violations("c0", [])
    assert a_persist_round_commits_progress.violations(AT_C0, -1, 1)
    assert a_persist_round_commits_progress.violations(AT_C0, 1, 2)
    assert not a_persist_round_commits_progress.violations(AT_C0, 2, 2)


@pytest.mark.parametrize(
    ("held", "refused", "is_right"),
    [
        ([("T0", 0), ("T0", 1)], [], True),
        ([("T0", 0)], [], False),
        ([("T0", 0)], [("T0", 1)], True),
        ([("T0", 0), ("T0", 1), ("T0", 2)], [], False),
    ],
)
def test_a_client_works_on_its_share(
    held: list[tuple[str, int]], refused: list[tuple[str, int]], is_right: bool
) -> None:
    share = [("T0", 0), ("T0", 1)]
    found = a_rebalance_round_takes_the_share.violations("c0", held, share, refused)

    assert bool(found) is not is_right


@pytest.mark.slow
@given(
    st.sampled_from(STRATEGIES),
    st.integers(1, 9),
    st.integers(1, 3),
    st.sets(st.integers(0, 12), min_size=1, max_size=6),
)
def test_the_shares_are_those_of_the_consumers_own_strategies(
    strategy: str, topic_queues: int, brokers: int, numbers: set[int]
) -> None:
    setup = Setup(keeps_progress=True, topic_queues=topic_queues, brokers=brokers)
    queues = [("T0", number) for number in range(topic_queues)]
    clients = sorted([f"c{number}" for number in numbers])
    for client in clients:
        op = StartConsumer(client, "g", "T0", strategy=strategy)  # type: ignore[arg-type]
        all_of = [MessageQueue(t, broker_of(t, q, setup), q) for t, q in queues]
        share = strategy_of(op, setup).allocate("g", client, sorted(all_of), clients)
        theirs = {(queue.topic, queue.queue_id) for queue in share}

        assert share_of(op, queues, clients, setup) == theirs


def test_a_consumer_that_is_told_where_to_begin_commits_that() -> None:
    judge = a_consumer_begins_where_it_is_told.violations

    assert not judge(AT_C0, 3, 3)
    assert judge(AT_C0, 3, 4)
    assert judge(AT_C0, 3, 2)


def test_a_client_that_has_ended_was_told_nothing() -> None:
    due = DuePulls()
    due.told = {AT_C0: 3, AT_C0._replace(client="c1"): 4}

    due.ended("c0")

    assert due.told == {AT_C0._replace(client="c1"): 4}


T0_ALONE = (("T0", "*", "TAG"),)


@pytest.mark.parametrize(
    ("told", "is_right"),
    [(T0_ALONE, True), (None, False), ((), False), ((("T0", "a", "TAG"),), False)],
)
def test_con_36_wants_what_is_subscribed_to_be_told(
    told: tuple[tuple[str, str, str], ...] | None, is_right: bool
) -> None:
    law = a_consumer_tells_what_it_subscribes

    assert (law.violations("c0", T0_ALONE, told) == []) is is_right


def test_con_37_allows_no_wait() -> None:
    assert a_stop_waits_for_nothing_else.violations("c0", 0) == []
    assert len(a_stop_waits_for_nothing_else.violations("c0", 10)) == 1


@pytest.mark.parametrize(
    ("work", "is_all", "is_right"),
    [
        *((2, True, True), (2, False, True), (3, False, True), (3, True, False)),
        *((1, True, False), (1, False, False)),
    ],
)
def test_con_38_compares_a_report_with_what_was_seen(
    work: int, is_all: bool, is_right: bool
) -> None:
    law = a_client_reports_its_rounds
    found = law.violations("c0", "lock", work, 2, is_all=is_all)

    assert (found == []) is is_right


def test_con_39_allows_no_work_after_a_stop() -> None:
    assert a_stopped_consumer_does_nothing.violations("c0", 0) == []
    assert len(a_stopped_consumer_does_nothing.violations("c0", -1)) == 1


def test_con_41_wants_a_rebalance_soon_while_something_is_lacking() -> None:
    law = a_rebalance_is_repeated_in_time

    assert law.violations("c0", 20_000, is_done=True) == []
    assert law.violations("c0", 1_000, is_done=False) == []
    assert len(law.violations("c0", 1_000, is_done=True)) == 1
    assert len(law.violations("c0", 20_000, is_done=False)) == 1


@pytest.mark.parametrize(
    ("threshold", "queues", "at_most", "limit"),
    [
        *((9, 2, 2, PullLimit(4, 4)), (9, 2, 4, PullLimit(2, 4))),
        *((9, 0, 2, PullLimit(4, 9)), (1, 5, 5, PullLimit(1, 1))),
        (0, 1, 1, PullLimit(1, 1)),
    ],
)
def test_a_topics_threshold_is_divided_by_the_queues(
    threshold: int, queues: int, at_most: int, limit: PullLimit
) -> None:
    assert PullLimit.divided(threshold, queues, at_most) == limit
    assert limit.may_become(PullLimit(3, 3)) == (
        min(3, limit.least),
        max(3, limit.most),
    )
