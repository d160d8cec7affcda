"""Laws of what a broker answers to an administrator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.laws.registry import law
from crashmq.models.ops import AskBroker
from crashmq.models.verdict import Violation


@law(
    "ADM-1",
    "a broker that is asked which groups have offsets on a topic, or which topics a "
    "group has offsets on, names each of them once and no other, sorted",
    catalogue="I12",
)
def names_those_with_offsets(
    ask: AskBroker, names: Sequence[str], must: Set[str], may: Set[str]
) -> Iterator[Violation]:
    """``must`` are those that have offsets, ``may`` those that may have some.

    Source: ConsumerOffsetManager#whichGroupByTopic, #whichTopicByConsumer, which
    return a set.
    """
    yield from _wrong_names(ask.group or ask.topic, names, must, may)


@law(
    "ADM-2",
    "a broker that is asked who subscribes a topic names the groups with a living "
    "member whose newest heartbeat says so, and no other",
    catalogue="I12",
)
def names_those_who_subscribe(
    ask: AskBroker, names: Sequence[str], must: Set[str], may: Set[str]
) -> Iterator[Violation]:
    """``must`` are the groups with a member that was heard lately.

    Source: ConsumerManager#queryTopicConsumeByWho.
    """
    yield from _wrong_names(f"subscribers of {ask.topic}", names, must, may)


@law(
    "ADM-3",
    "a broker answers where a group pulls next with what its last pull was told, and "
    "without one with the group's offset",
    catalogue="I12",
)
def answers_where_a_group_pulls(
    ask: AskBroker, number: int, possible: Set[int]
) -> Iterator[Violation]:
    """``possible`` are the right answers; -1: it has neither.

    Source: ConsumerOffsetManager#queryPullOffset, #commitPullOffset.
    """
    if number not in possible:
        where = f"{ask.group} on {ask.topic}/{ask.queue_id}"
        yield Violation(where, f"it pulls at {number}", f"one of {sorted(possible)}")


@law(
    "ADM-4",
    "a broker answers a search by time with the first message of the queue that was "
    "stored at that time or later, and without one with the queue's end",
    catalogue="I17",
)
def finds_the_first_since(
    key: QueueKey, number: int, first: int
) -> Iterator[Violation]:
    """``first`` is the right queue_offset.

    Source: AdminBrokerProcessor#searchOffsetByTimestamp.
    """
    if number != first:
        yield Violation(f"{key[0]}/{key[1]}", f"queue_offset {number}", f"{first}")


@law(
    "ADM-5",
    "a broker says that a group is configured if and only if its file has the group",
    catalogue="I12 I8",
)
def knows_its_groups(
    ask: AskBroker, number: int, possible: Set[int]
) -> Iterator[Violation]:
    """``possible`` is 1 alone if the file has it, else 0.

    Source: SubscriptionGroupManager#containsSubscriptionGroup.
    """
    if number not in possible:
        yield Violation(f"group {ask.group}", _yes_or_no(number), "as its file has it")


@law(
    "ADM-6",
    "a broker says that a client has the lock of a queue if and only if it was granted "
    "the lock last, and did so at most 60 s ago",
    catalogue="I12 I13",
)
def knows_who_has_a_lock(
    ask: AskBroker, number: int, possible: Set[int]
) -> Iterator[Violation]:
    """``possible`` are the right answers; both where the lock may have expired.

    Source: RebalanceLockManager#isLocked.
    """
    if number not in possible:
        where = f"{ask.client} of {ask.group} on {ask.topic}/{ask.queue_id}"
        yield Violation(where, f"locked: {_yes_or_no(number)}", "the other answer")


@law(
    "ADM-7",
    "a broker that is asked how a topic or a group is configured answers what its file "
    "says, in the same life and after a start",
    catalogue="I12 I8",
)
def tells_what_is_configured(
    ask: AskBroker, fields: Sequence[str], expected: Set[str]
) -> Iterator[Violation]:
    """Otherwise it works with another configuration than it will have after a start.

    ``fields`` are the names and values that it answered, ``expected`` those in the
    file.

    Source: AdminBrokerProcessor#getTopicConfig, #getSubscriptionGroup.
    """
    name = f"topic {ask.topic}" if ask.question == "topic_config" else ask.group
    yield from _wrong_names(name, fields, expected, expected)


def _wrong_names(
    where: str, names: Sequence[str], must: Set[str], may: Set[str]
) -> Iterator[Violation]:
    if list(names) != sorted(set(names)):
        yield Violation(where, f"{', '.join(names)}", "each name once, sorted")
    for name in sorted(must - {*names}):
        yield Violation(where, f"{name} is not named", "it is there")
    for name in sorted({*names} - may):
        yield Violation(where, f"{name} is named", "it is not there")


def _yes_or_no(number: int) -> str:
    return {0: "no", 1: "yes"}.get(number, f"{number}")
