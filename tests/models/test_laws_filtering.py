"""Laws of filtered pulls, each fired by an answer that breaks it and by no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.models.appended import Appended
from crashmq.models.files.filters import FILTERS_BACKUP, FILTERS_PATH, read_filters
from crashmq.models.knowledge.filters import NOTHING, Filters
from crashmq.models.knowledge.reference import VisibleQueue
from crashmq.models.laws.filtering import (
    filters_by_the_newest,
    goes_on_behind_what_it_saw,
    passes_over_nothing_asked_for,
    refused_for_its_expression,
    retries_are_asked_for_their_topic,
    returns_what_was_asked_for,
    start_loads_the_filters,
)
from crashmq.models.messages import message_for
from crashmq.models.observations import BrokerCode, FilteredPull, Pulled, Put
from crashmq.models.ops import (
    Op,
    PullFiltered,
    PullMessage,
    PullThroughBroker,
    PutMessage,
    RunService,
)
from crashmq.models.program import Program, Setup

PULL = PullFiltered("g", "T0", 0, 0)
PUTS = tuple(
    PutMessage("T0", 0, 16, properties=text) for text in ("a=6", "a=3", "a=many")
)


@pytest.fixture(scope="module")
def queue() -> list[Appended]:
    """What a store appended: a match, no match, and one on which `a > 5` fails."""
    ops: tuple[Op, ...] = (*PUTS, RunService("reput"), PullMessage("T0", 0, 0))
    appended: list[Appended] = []
    for step in run_program(Program(Setup(), ops)).trace:
        seen = step.observation
        if isinstance(seen, Put) and len(appended) < len(PUTS):
            assert isinstance(step.op, PutMessage)
            message = message_for(step.op, 1, step.number, 0)
            place = seen.phy_offset, seen.size, seen.queue_offset
            appended.append(Appended(message, *place))
        elif isinstance(seen, Pulled) and not RECORDS:
            RECORDS[:] = seen.messages
    return appended


RECORDS: list[bytes] = []
NONE = "NO_MATCHED_MESSAGE"


def answered(*numbers: int, next_begin: int = 3, status: str = "FOUND") -> FilteredPull:
    records = tuple(RECORDS[number] for number in numbers)
    pulled = Pulled(status, next_begin, 0, 3, records)  # type: ignore[arg-type]
    return FilteredPull(pulled, "a > 5", "SQL92")


def test_what_matches_or_fails_is_right(queue: list[Appended]) -> None:
    answer = answered(0, 2)

    assert [*returns_what_was_asked_for.judge(PULL, answer, queue)] == []
    assert [*passes_over_nothing_asked_for.judge(PULL, answer, queue)] == []
    visible = VisibleQueue(queue, 0, 3)
    assert [*goes_on_behind_what_it_saw.judge(PULL, answer, visible, 10)] == []


def test_a_pull_of_messages_on_disk_stops_earlier(queue: list[Appended]) -> None:
    far = [replace(queue[0], queue_offset=number, size=30_000) for number in range(3)]
    pull, visible = PullFiltered("g", "T0", 0, 0), VisibleQueue(far, 0, 3)
    judge = goes_on_behind_what_it_saw.violations
    two, three = answered(0, 0, next_begin=2), answered(0, 0, 0)

    assert judge(pull, two, visible, 10)
    assert not judge(pull, three, visible, 10)
    assert not judge(pull, two, visible, 10, 1 << 40)
    assert judge(pull, three, visible, 10, 1 << 40)


def test_a_message_nobody_asked_for_is_wrong(queue: list[Appended]) -> None:
    answer = answered(0, 1, 2)

    assert [*returns_what_was_asked_for.judge(PULL, answer, queue)]
    assert [*passes_over_nothing_asked_for.judge(PULL, answer, queue)] == []


@pytest.mark.parametrize("kept", [(0,), (2,), ()])
def test_a_message_passed_over_is_lost(
    queue: list[Appended], kept: tuple[int, ...]
) -> None:
    answer = answered(*kept)

    assert [*passes_over_nothing_asked_for.judge(PULL, answer, queue)]
    assert [*returns_what_was_asked_for.judge(PULL, answer, queue)] == []


BY_A = {"T0": frozenset({("a > 5", "SQL92")})}
EITHER = {"T0": frozenset({("a > 5", "SQL92"), ("*", "TAG")})}


@pytest.mark.parametrize(
    ("origin", "asked", "kept", "is_right"),
    [
        ("T0", BY_A, (0, 2), True),
        ("T0", BY_A, (0, 1, 2), False),
        ("T0", BY_A, (0,), False),
        ("T0", EITHER, (0, 2), True),
        ("T0", EITHER, (0, 1, 2), True),
        ("T0", EITHER, (0, 1), False),
        ("T1", BY_A, (), True),
        (None, BY_A, (0, 1, 2), True),
        (None, BY_A, (0, 2), False),
    ],
)
def test_retries_are_judged_by_the_topic_that_they_came_from(
    queue: list[Appended],
    origin: str | None,
    asked: dict[str, frozenset[tuple[str, str]]],
    kept: tuple[int, ...],
    is_right: bool,
) -> None:
    origins = "" if origin is None else f";RETRY_TOPIC={origin}"
    messages = [one.message for one in queue]
    there = [
        replace(
            one, message=replace(put, user_properties=put.user_properties + origins)
        )
        for one, put in zip(queue, messages, strict=True)
    ]

    answer = answered(*kept)
    found = [*retries_are_asked_for_their_topic.judge(PULL, answer, there, asked)]

    assert (not found) is is_right


def test_a_pull_that_stands_still_is_wrong(queue: list[Appended]) -> None:
    visible = VisibleQueue(queue, 0, 3)
    answer = answered(0, next_begin=1)

    assert [*passes_over_nothing_asked_for.judge(PULL, answer, queue)] == []
    assert [*goes_on_behind_what_it_saw.judge(PULL, answer, visible, 10)]


def test_a_pull_of_no_message_passes_over_none(queue: list[Appended]) -> None:
    visible = VisibleQueue(queue, 0, 3)
    of_none = replace(PULL, max_msg_nums=0)
    judge = goes_on_behind_what_it_saw.violations

    assert not judge(of_none, answered(next_begin=0, status=NONE), visible, 10)
    assert judge(of_none, answered(next_begin=1, status=NONE), visible, 10)


@pytest.mark.parametrize(
    ("expression", "code", "filters", "may_fail", "is_right"),
    [
        ("a > 5", "SUCCESS", True, False, True),
        ("a > 5", None, True, False, True),
        ("a > 5", "SUBSCRIPTION_PARSE_FAILED", True, False, False),
        ("a > 5", "SYSTEM_ERROR", True, False, False),
        ("a > 5", "SYSTEM_ERROR", True, True, True),
        ("a > 5", "SYSTEM_ERROR", False, False, True),
        ("a > 5", "SUCCESS", False, False, False),
        ("a >", "SUBSCRIPTION_PARSE_FAILED", True, False, True),
        ("a >", "SUBSCRIPTION_PARSE_FAILED", False, False, True),
        ("a >", "SUCCESS", True, False, False),
        ("a >", None, True, False, False),
    ],
)
def test_only_a_wrong_expression_or_broker_refuses_one(
    expression: str,
    code: BrokerCode | None,
    filters: bool,
    may_fail: bool,
    is_right: bool,
) -> None:
    pull = PullThroughBroker("g", "T0", 0, 0, tags=expression, expression_type="SQL92")
    ask = refused_for_its_expression.violations

    assert bool(ask(pull, code, filters=filters, may_fail=may_fail)) is not is_right


def test_only_what_was_subscribed_filters() -> None:
    possible = {("a > 5", "SQL92")}

    assert [*filters_by_the_newest.judge(PULL, ("a > 5", "SQL92"), possible)] == []
    assert [*filters_by_the_newest.judge(PULL, ("a > 6", "SQL92"), possible)]
    assert [*filters_by_the_newest.judge(PULL, None, possible)]


TABLE = (
    b'{"filterDataByTopic":{"T0":{"groupFilterData":{"g":{"expression":"a > 5",'
    b'"expressionType":"SQL92","clientVersion":7,"bloomFilterData":'
    b'{"bitNum":112,"bitPos":[1,2,111]}}}}}}'
)
ROWS = ((("g", "T0"), ("a > 5", 7)),)


def test_a_start_loads_the_file_or_else_its_backup() -> None:
    judge = start_loads_the_filters.judge

    assert read_filters(TABLE) == ROWS
    assert [*judge({FILTERS_PATH: TABLE}, ROWS)] == []
    assert [*judge({FILTERS_PATH: b"", FILTERS_BACKUP: TABLE}, ROWS)] == []
    assert [*judge({FILTERS_PATH: TABLE}, ())]
    assert [*judge({FILTERS_PATH: TABLE[:-1]}, ())]
    assert [*judge({}, ())] == []


def test_flt_4_knows_the_newer_tags_behind_an_older_subscription() -> None:
    filters = Filters()
    key = ("g", "T0")
    filters.subscribed(key, ("TagA", "TAG"), is_certain=True)

    filters.asked_of_old(key)

    assert filters.now == {key: frozenset({("TagA", "TAG")})}
    assert not filters.registered
    filters.subscribed(key, NOTHING, is_certain=True)
    filters.asked_of_old(key)
    assert not filters.now


@pytest.mark.parametrize(
    "other", [b"[1,2]", b"[1,2,112]", b"[1,2,-1]", b'[1,2,3],"bitNum":120']
)
def test_a_start_passes_over_a_table_with_other_bits(other: bytes) -> None:
    judge = start_loads_the_filters.judge
    files = {FILTERS_PATH: TABLE.replace(b"[1,2,111]", other), FILTERS_BACKUP: TABLE}

    assert [*judge(files, ())] == []
    assert [*judge(files, ROWS)]
