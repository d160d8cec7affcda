"""Phrases in which an administrator asks a broker questions while consumers work."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.observations import EPOCH_MS
from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    DeleteGroup,
    Op,
    PullThroughBroker,
    Question,
    RunService,
    StartConsumer,
    TurnConsumer,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.space import Address, often

QUESTIONS: tuple[Question, ...] = often(
    *(("topics_of_group", 2), ("groups_of_topic", 2), ("subscribers", 3)),
    *(("pull_offset", 3), ("time", 3), ("group", 1), ("lock", 3)),
    *(("group_config", 1), ("topic_config", 1)),
)
SINCE_EVER: Final = -EPOCH_MS
"""As a time since the run began: the store's time 0."""
TIMES_MS: Final = (
    *(0, 1, 500, 5_000, 10_000, 30_000, 60_000, -1, 1_000_000, SINCE_EVER),
)
ASKED_MAX = 4
STRANGERS = 4
"""One of so many questions is about a group of which perhaps nobody has joined."""
OF_RETRIES = 5
"""One of so many questions is about a group's retry topic."""
ABOUT_ITS_END_MS: Final = (60_000, 60_001)
HALF_A_LOCK_MS: Final = 30_000
APART_MS: Final = (1, 1, 1000, 30_000)
NOBODY: Final = ""
"""A question about no group in particular."""
PULLING: Final = "e"
"""A group that has no consumer, and pulls by itself."""
PAUSES_MS: Final = (0, 500, 20_000, 60_000, 60_001, 119_999, 120_001)
"""Locks expire after a minute, and a silent client after two."""


def question(draft: Draft, group: str, client: str, address: Address) -> AskBroker:
    """A question about a group, and a queue that it may consume."""
    chance = draft.chance
    topic, queue_id = address
    if chance.one_in(OF_RETRIES):
        topic, queue_id = RETRY_PREFIX + group, 0
    asked, at_ms = chance.pick(QUESTIONS), 0
    if asked == "time":
        at_ms = chance.pick(TIMES_MS)
        if chance.coin():  # about the time of the newest messages
            at_ms = max(0, _now_ms(draft) + chance.pick((-1, 0, 1)))
    return AskBroker(asked, group, topic, queue_id, at_ms, client)


def _now_ms(draft: Draft) -> int:
    """How far the clock has been moved, not counting moves amid other ops."""
    return sum(op.ms for op in draft.ops if isinstance(op, AdvanceClock))


def ask(draft: Draft) -> None:
    """Add ops: questions about a group, after its consumers have worked a little."""
    chance, add = draft.chance, draft.add
    joined = tuple(draft.joined.values())
    if not joined or chance.one_in(STRANGERS):
        joined = draft.space.consumers
    one = chance.pick(joined)
    if chance.coin():
        add(*_work(one))
        if one.is_orderly:
            _ask_of_lock(draft, one)
    if chance.coin():
        add(AdvanceClock(chance.pick(PAUSES_MS)))
    if chance.one_in(STRANGERS):
        add(RunService("client_housekeeping"))
    if chance.one_in(3):
        _pull_back(draft)
    if chance.one_in(3):
        _ask_of_time(draft)
    for _ in range(chance.integer(1, ASKED_MAX)):
        add(question(draft, one.group, one.client, chance.pick(draft.space.addresses)))


def _ask_of_time(draft: Draft) -> None:
    """Add ops: messages come at several times, and one asks from which on they do."""
    chance, add = draft.chance, draft.add
    address = chance.pick(draft.space.addresses)
    times = []
    for _ in range(chance.integer(1, 3)):
        add(draft.drawn.stock(address), AdvanceClock(chance.pick(APART_MS)))
        times.append(_now_ms(draft))
    add(RunService("reput"))
    at_ms = max(0, chance.pick(times) + chance.pick((-1, 0, 1)))
    add(AskBroker("time", NOBODY, *address, at_ms))


def _ask_of_lock(draft: Draft, one: StartConsumer) -> None:
    """Add ops: a lock that a client may have is about to expire, or has expired.

    It may have been renewed.
    """
    address = draft.chance.pick(draft.space.addresses)
    if draft.chance.coin():
        draft.add(AdvanceClock(HALF_A_LOCK_MS), TurnConsumer(one.client, "lock"))
    draft.add(AdvanceClock(draft.chance.pick(ABOUT_ITS_END_MS)))
    draft.add(AskBroker("lock", one.group, *address, client=one.client))


def _pull_back(draft: Draft) -> None:
    """Add ops: a group of nobody else pulls, perhaps lower again, or is deleted."""
    chance, add = draft.chance, draft.add
    address = chance.pick(draft.space.addresses)
    add(draft.drawn.stock(address), RunService("reput"))
    pull = PullThroughBroker(PULLING, *address, 0, chance.integer(2, 8))
    add(pull, replace(pull, max_msg_nums=1) if chance.coin() else DeleteGroup(PULLING))
    add(AskBroker("pull_offset", PULLING, *address))


def _work(one: StartConsumer) -> tuple[Op, ...]:
    tasks = (TurnConsumer(one.client, "lock"), TurnConsumer(one.client, "pull", 2))
    return (TurnConsumer(one.client, "rebalance"), *tasks)
