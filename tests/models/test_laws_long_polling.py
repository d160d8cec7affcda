from __future__ import annotations

from dataclasses import replace

import pytest

from crashmq.models.appended import Appended
from crashmq.models.knowledge.group_configs import DEFAULT, GroupConfig
from crashmq.models.knowledge.pulls import OpenPull
from crashmq.models.knowledge.reference import VisibleQueue
from crashmq.models.knowledge.topics import Topics
from crashmq.models.laws.long_polling import (
    a_look_answers_all_that_is_due,
    a_pull_commits_once,
    a_pull_makes_progress,
    a_stop_answers_all,
    answered_by_its_code,
    answered_once,
    may_ask_for,
    no_wakeup_is_lost,
    refused_for_its_topic,
    refused_for_permission,
    woken_for_a_reason,
)
from crashmq.models.limits import SUSPEND_MS
from crashmq.models.messages import message_for
from crashmq.models.observations import BrokerCode, BrokerPulled
from crashmq.models.ops import PullThroughBroker, PutMessage

PULL = PullThroughBroker("g", "T0", 0, 3)
NOT_FOUND = BrokerPulled("PULL_NOT_FOUND", 3, 0, 3)
KEY = ("g", "T0", 0)


def message(queue_offset: int, tags: str = "") -> Appended:
    put = message_for(PutMessage("T0", 0, 16, tags), 1, 0, 0)
    return Appended(put, 100 * queue_offset, 100, queue_offset)


def queue(low: int, high: int) -> VisibleQueue:
    return VisibleQueue([message(n) for n in range(low, high)], low, high)


def test_an_answer_to_nobody_is_one_too_many() -> None:
    assert not answered_once.violations(PULL, NOT_FOUND, is_open=True)
    assert answered_once.violations(PULL, NOT_FOUND, is_open=False)


def test_each_pull_that_a_stop_leaves_is_told() -> None:
    left = [OpenPull(PULL, 0, 0), OpenPull(PULL, 0, None)]

    assert not a_stop_answers_all.violations([])
    assert len(a_stop_answers_all.violations(left)) == 2


@pytest.mark.parametrize(
    ("tags", "behind", "is_lost"),
    [
        ("*", [], False),
        ("*", ["A"], True),
        ("B", ["A", ""], False),
        ("A || B", ["", "B"], True),
    ],
)
def test_a_pull_may_sleep_past_what_it_does_not_ask_for(
    tags: str, behind: list[str], is_lost: bool
) -> None:
    messages = [message(3 + n, tag) for n, tag in enumerate(behind)]

    law = no_wakeup_is_lost
    assert bool(law.violations(replace(PULL, tags=tags), messages)) is is_lost


@pytest.mark.parametrize(
    ("code", "held_ms", "is_stopping", "may_fail", "is_right"),
    [
        ("PULL_NOT_FOUND", SUSPEND_MS, False, False, True),
        ("PULL_NOT_FOUND", SUSPEND_MS - 1, False, False, False),
        ("PULL_NOT_FOUND", 0, True, False, True),
        ("PULL_NOT_FOUND", 0, False, True, False),
        ("SYSTEM_ERROR", 0, False, True, True),
        ("SYSTEM_ERROR", SUSPEND_MS, False, False, False),
        ("SUCCESS", 0, False, False, True),
        ("PULL_RETRY_IMMEDIATELY", 0, False, False, False),
        ("PULL_RETRY_IMMEDIATELY", 0, True, False, True),
        ("PULL_RETRY_IMMEDIATELY", SUSPEND_MS, False, False, True),
    ],
)
def test_nobody_is_woken_for_nothing(
    code: BrokerCode, held_ms: int, is_stopping: bool, may_fail: bool, is_right: bool
) -> None:
    found = woken_for_a_reason.violations(
        PULL,
        BrokerPulled(code),
        held_ms,
        0 if is_stopping else SUSPEND_MS,
        may_fail=may_fail or is_stopping,
        may_wake=False,
    )

    assert bool(found) is not is_right


@pytest.mark.parametrize(
    ("asked", "tags", "is_asked_for"),
    [
        *(("*", "", True), ("TagA", "TagA", True), ("TagA", "", False)),
        *(("Aa", "BB", True), ("TagA || TagB", "TagB", True), ("TagA", "Aa", False)),
    ],
)
def test_a_message_whose_tag_has_the_hash_of_one_asked_for_may_wake(
    asked: str, tags: str, is_asked_for: bool
) -> None:
    assert may_ask_for(replace(PULL, tags=asked), message(3, tags)) is is_asked_for


def test_a_pull_that_a_message_may_have_woken_may_find_nothing() -> None:
    told = BrokerPulled("PULL_RETRY_IMMEDIATELY")
    judge = woken_for_a_reason.violations

    assert not judge(PULL, told, 0, 9, may_fail=False, may_wake=True)


def test_a_look_leaves_nobody_who_is_due() -> None:
    def left(held_ms: int, end: int, now_ms: int) -> bool:
        held = [(OpenPull(PULL, 0, held_ms), queue(0, end))]
        ask = a_look_answers_all_that_is_due.violations
        return not ask(held, now_ms, SUSPEND_MS)

    assert left(0, 3, SUSPEND_MS - 1)
    assert not left(0, 3, SUSPEND_MS)
    assert not left(0, 4, 0)
    assert left(100, 3, SUSPEND_MS)


def test_a_pull_leaves_one_of_the_offsets_that_its_group_may_have() -> None:
    assert not a_pull_commits_once.violations(KEY, 5, {4, 5}, 5)
    assert a_pull_commits_once.violations(KEY, 4, {5}, 5)
    (breach,) = a_pull_commits_once.violations(KEY, 4, {6}, None)
    assert "woken" in str(breach)


@pytest.mark.parametrize(
    ("offset", "low", "high", "code", "goes_on"),
    [
        (0, 0, 0, "PULL_NOT_FOUND", 0),
        (3, 0, 0, "PULL_OFFSET_MOVED", 0),
        (3, 0, 3, "PULL_NOT_FOUND", 3),
        (1, 2, 3, "PULL_OFFSET_MOVED", 2),
        (9, 2, 3, "PULL_OFFSET_MOVED", 3),
        (2, 2, 3, "SUCCESS", 3),
        (2, 2, 3, "PULL_RETRY_IMMEDIATELY", 3),
    ],
)
def test_a_pull_has_the_code_of_its_place(
    offset: int, low: int, high: int, code: BrokerCode, goes_on: int
) -> None:
    pull = replace(PULL, queue_offset=offset, suspends=False)
    every: tuple[BrokerCode, ...] = (
        *("SUCCESS", "PULL_RETRY_IMMEDIATELY", "PULL_NOT_FOUND"),
        *("PULL_OFFSET_MOVED", "SYSTEM_ERROR"),
    )

    law, there = answered_by_its_code, queue(low, high)
    right = [
        one
        for one in every
        if not law.violations(pull, BrokerPulled(one, goes_on), there, None)
    ]
    assert code in right
    assert len(right) == (2 if low <= offset < high else 1)
    reset = BrokerPulled("PULL_OFFSET_MOVED", 1)
    assert not law.violations(pull, reset, there, 1)
    assert law.violations(pull, reset, there, 0)
    assert bool(law.violations(pull, BrokerPulled(code, goes_on), there, 1))


def test_a_pull_that_finds_nothing_is_held_if_it_asks_for_that() -> None:
    law, there = answered_by_its_code, queue(0, 3)
    impatient = replace(PULL, suspends=False)

    assert not law.violations(PULL, None, there, None)
    assert law.violations(PULL, NOT_FOUND, there, None)
    assert law.violations(impatient, None, there, None)
    assert not law.violations(impatient, NOT_FOUND, there, None)
    assert law.violations(replace(PULL, queue_offset=2), None, there, None)
    assert law.violations(PULL, None, there, 1)


@pytest.mark.parametrize(
    ("code", "goes_on", "count", "is_right"),
    [
        ("SUCCESS", 4, 1, True),
        ("SUCCESS", 3, 1, False),
        ("SUCCESS", 4, 0, False),
        ("SUCCESS", 2001, 1, False),
        ("PULL_RETRY_IMMEDIATELY", 4, 0, True),
        ("PULL_RETRY_IMMEDIATELY", 803, 0, True),
        ("PULL_RETRY_IMMEDIATELY", 804, 0, False),
        ("PULL_RETRY_IMMEDIATELY", 3, 0, False),
        ("PULL_RETRY_IMMEDIATELY", 4, 1, False),
        ("PULL_NOT_FOUND", 3, 0, True),
        ("PULL_NOT_FOUND", 0, 0, True),
        ("PULL_NOT_FOUND", 10, 0, False),
        ("PULL_OFFSET_MOVED", 7, 0, True),
        ("PULL_OFFSET_MOVED", 7, 1, False),
    ],
)
def test_a_pull_goes_on_behind_what_it_has_seen(
    code: BrokerCode, goes_on: int, count: int, is_right: bool
) -> None:
    answer = BrokerPulled(code, goes_on, 0, 2000, (b"",) * count)

    assert bool(a_pull_makes_progress.violations(PULL, answer, 2000)) is not is_right


def test_whoever_asks_for_no_message_need_not_go_on() -> None:
    answer = BrokerPulled("PULL_RETRY_IMMEDIATELY", 3, 0, 2000)

    pull = replace(PULL, max_msg_nums=0)
    assert not a_pull_makes_progress.violations(pull, answer, 2000)


@pytest.mark.parametrize(
    ("code", "queue_id", "must_know", "may_know", "is_right"),
    [
        ("TOPIC_NOT_EXIST", 0, False, False, True),
        ("TOPIC_NOT_EXIST", 9, False, True, True),
        ("TOPIC_NOT_EXIST", 0, True, True, False),
        ("SUCCESS", 3, True, True, True),
        ("SUCCESS", 3, False, False, False),
        ("SUCCESS", 4, True, True, False),
        (None, 0, False, True, True),
        (None, 0, False, False, False),
        (None, -1, True, True, False),
        ("INVALID_PARAMETER", 4, True, True, True),
        ("INVALID_PARAMETER", 0, True, True, False),
    ],
)
def test_a_pull_is_refused_where_there_is_no_such_topic_or_queue(
    code: BrokerCode | None,
    queue_id: int,
    must_know: bool,
    may_know: bool,
    is_right: bool,
) -> None:
    found = refused_for_its_topic.violations(
        replace(PULL, queue_id=queue_id),
        code,
        4,
        must_know=must_know,
        may_know=may_know,
    )

    assert bool(found) is not is_right


def test_how_many_queues_a_groups_topic_has_only_its_broker_knows() -> None:
    ask = refused_for_its_topic.violations

    assert not ask(PULL, "INVALID_PARAMETER", None, must_know=False, may_know=True)
    assert not ask(PULL, "SUCCESS", None, must_know=False, may_know=True)


@pytest.mark.parametrize(
    ("topic", "queues"), [("SCHEDULE_TOPIC_XXXX", 18), ("TBW102", 8)]
)
def test_a_broker_has_topics_of_its_own_from_the_start(topic: str, queues: int) -> None:
    topics = Topics()

    assert topics.must_know(topic)
    assert topics.may_know(topic)
    assert topics.queue_nums(topic) == queues
    assert not topics.may_know("T0")


BARRED = GroupConfig(16, 15, consume_enable=False)
NO_BROADCAST = GroupConfig(16, 15, consume_broadcast_enable=False)


@pytest.mark.parametrize(
    ("code", "possible", "broadcasts", "is_right"),
    [
        ("SUCCESS", {DEFAULT}, False, True),
        ("NO_PERMISSION", {DEFAULT}, False, False),
        ("NO_PERMISSION", {BARRED}, False, True),
        ("SUCCESS", {BARRED}, False, False),
        ("PULL_OFFSET_MOVED", {BARRED}, None, False),
        (None, {BARRED}, False, False),
        ("SYSTEM_ERROR", {BARRED}, False, True),  # its disk failed
        ("NO_PERMISSION", {DEFAULT, BARRED}, False, True),
        ("SUCCESS", {DEFAULT, BARRED}, False, True),
        ("SUCCESS", {NO_BROADCAST}, False, True),
        ("NO_PERMISSION", {NO_BROADCAST}, False, False),
        ("SUCCESS", {NO_BROADCAST}, True, False),
        ("NO_PERMISSION", {NO_BROADCAST}, True, True),
        ("SUCCESS", {NO_BROADCAST}, None, True),  # some of its consumers cluster
        ("NO_PERMISSION", {NO_BROADCAST}, None, True),
        ("SUCCESS", set(), True, True),
        ("NO_PERMISSION", set(), False, True),
    ],
)
def test_only_a_group_that_must_not_consume_is_refused(
    code: str | None,
    possible: set[GroupConfig],
    broadcasts: bool | None,
    is_right: bool,
) -> None:
    found = refused_for_permission.violations(
        "a pull", code, possible, broadcasts=broadcasts, is_barred=False, is_open=True
    )

    assert bool(found) is not is_right


@pytest.mark.parametrize(
    ("code", "possible", "is_right"),
    [
        ("NO_PERMISSION", {DEFAULT}, True),
        ("SUCCESS", {DEFAULT}, True),
        ("SUCCESS", {BARRED}, False),
    ],
)
def test_a_topic_that_somebody_may_have_closed_may_be_refused(
    code: str, possible: set[GroupConfig], is_right: bool
) -> None:
    found = refused_for_permission.violations(
        "a pull", code, possible, broadcasts=False, is_barred=False, is_open=False
    )

    assert bool(found) is not is_right


@pytest.mark.parametrize(
    ("code", "is_right"),
    [
        ("NO_PERMISSION", True),
        ("SUCCESS", False),
        (
            "TOPIC_NOT_EXIST",
            False,
        ),  # that is looked at later
        (None, False),
        ("SYSTEM_ERROR", True),
    ],
)
def test_a_broker_that_must_not_be_read_refuses_every_pull(
    code: str | None, is_right: bool
) -> None:
    found = refused_for_permission.violations(
        "a pull", code, {DEFAULT}, broadcasts=False, is_barred=True, is_open=True
    )

    assert bool(found) is not is_right
