"""Phrases in which producers send messages through the broker, also to retry topics.

A message for a group's retry topic is a dead letter if it was tried too often, or if a
client of the group holds a queue lock.
"""

from __future__ import annotations

from typing import Final

from crashmq.models.ops import (
    AdvanceClock,
    ConfigureGroup,
    RunService,
    SendMessage,
    StartConsumer,
    TurnConsumer,
)
from crashmq.scenarios.programs.consumers import as_the_others
from crashmq.scenarios.programs.draft import Draft

RETRIES: Final = (16, 0, 1, 3)
"""Of a group that is configured, or as a request says: the default and others."""
AROUND: Final = (-1, 0, 1)
"""Of the most tries that are allowed."""
LOCK_MS: Final = 60_000
"""So long a broker keeps a lock that is not renewed."""
ABOUT_ITS_END_MS: Final = (LOCK_MS, LOCK_MS + 1, LOCK_MS - 1)
NEW_TOPICS: Final = ("N0", "N1")
"""Topics to which nothing is put."""
LEVELS: Final = (0, 0, 0, 1, 3)
SENT_MAX = 3
STRANGERS = 4
"""One of so many phrases is of any group; the others are of one that is there."""
ELSEWHERE = 4
"""One of so many messages is for a topic that is not one of retries."""


def send(draft: Draft) -> None:
    """Add ops: a producer sends messages, mostly to a group's retry topic."""
    chance, add = draft.chance, draft.add
    joined = tuple(draft.joined.values())
    orderly = tuple([one for one in draft.space.consumers if one.is_orderly])
    if orderly and chance.coin():
        joined = orderly
    elif not joined or chance.one_in(STRANGERS):
        joined = draft.space.consumers
    one = chance.pick(joined)
    most = _most_of(draft, one.group)
    if chance.one_in(3):
        most = chance.pick(RETRIES)
        add(ConfigureGroup(one.group, most))
    if one.is_orderly:
        _lock_queues(draft, one)
    for _ in range(chance.integer(1, SENT_MAX)):
        add(_sent(draft, one, most))
    if chance.coin():
        add(RunService("reput"))


def _most_of(draft: Draft, group: str) -> int:
    """How often a message of a group may be tried, by its newest configuration."""
    for op in reversed(draft.ops):
        if isinstance(op, ConfigureGroup) and op.group == group:
            return op.retry_max_times
    return RETRIES[0]


def _lock_queues(draft: Draft, one: StartConsumer) -> None:
    """Add ops: an orderly consumer and perhaps another of its group lock queues.

    Then their locks expire or nearly do; perhaps one client has renewed its own.
    """
    chance, add = draft.chance, draft.add
    its = [other for other in draft.space.consumers if other.group == one.group]
    clients = tuple(dict.fromkeys([one.client, chance.pick(its).client]))
    for other in its:
        if other.client in clients and other.client not in draft.joined:
            joins = as_the_others(draft, other)
            draft.joined[joins.client] = joins
            add(joins)
    for _ in clients:  # who has come first gives up some of its queues first
        add(*[TurnConsumer(client, "rebalance") for client in clients])
    add(*[TurnConsumer(client, "lock") for client in clients])
    ms = chance.pick(ABOUT_ITS_END_MS)
    if chance.coin():
        add(AdvanceClock(ms))
        return
    half = LOCK_MS // 2
    add(AdvanceClock(ms - half), TurnConsumer(chance.pick(clients), "lock"))
    add(AdvanceClock(half))


def _sent(draft: Draft, one: StartConsumer, most: int) -> SendMessage:
    chance, space = draft.chance, draft.space
    size, level = chance.pick(space.sizes).extra, chance.pick(LEVELS)
    address = chance.pick(space.addresses)
    if chance.one_in(ELSEWHERE):
        topics = (address.topic, *NEW_TOPICS)
        return SendMessage(chance.pick(topics), address.queue_id, size)
    bound = chance.pick(RETRIES) if chance.one_in(3) else -1
    # In a group that consumes in order, mostly its locks are to decide.
    around = AROUND[:2] if one.is_orderly and chance.coin() else AROUND
    tries = max(0, (bound if bound >= 0 else most) + chance.pick(around))
    origin = f"RETRY_TOPIC={address.topic}"
    return SendMessage(
        f"%RETRY%{one.group}", 0, max(size, 1), tries, bound, level, origin
    )
