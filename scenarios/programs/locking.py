"""Phrases in which consumers in order lose queue locks, and let go of them.

A lock is over a minute after its client last asked for it. Whoever was away for so long
may still believe in it, and gives up a queue that another one has locked since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from crashmq.models.limits import QUEUES_OF_A_TOPIC
from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    EndConsumer,
    Op,
    Resubscribe,
    StartConsumer,
    TurnConsumer,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.joining import (
    A_LOCK_MS,
    A_SECOND,
    AT_ONCE,
    ENDS,
    NO_TOPIC,
    at_once,
    bring,
    consumed_by,
    has_a_share,
    join,
    joined_of,
    let_join,
    others_of,
    rebalance_all,
)
from crashmq.scenarios.programs.space import often

BackBy: TypeAlias = Literal["end", "lock", "rebalance", "choice"]
BACK_BY: tuple[BackBy, ...] = often(
    ("end", 2), ("lock", 1), ("rebalance", 2), ("choice", 1)
)
AWAY_MS: Final = often((A_LOCK_MS + 1, 4), (A_LOCK_MS, 1), (A_LOCK_MS // 2, 1))
"""After the first a lock is over; others just have it still."""


def lock(draft: Draft) -> None:
    """Add ops: a consumer takes queues whose locks are over; then the other lets go.

    Whoever was away comes back before, at once with whoever takes over, or after. The
    broker is asked who has which lock, and a third one of the group asks for them.
    """
    chance, add, who = draft.chance, draft.add, _one_in_order(draft)
    if who is None:
        join(draft)
        return
    client, group = who.client, who.group
    other = chance.pick(others_of(draft, client))
    add(TurnConsumer(client, "rebalance"), TurnConsumer(client, "lock"))
    if other.client not in draft.joined:
        let_join(draft, other)
    add(AdvanceClock(chance.pick(AWAY_MS)), TurnConsumer(client, "heartbeat"))
    takes = TurnConsumer(other.client, "rebalance")
    back = _comes_back(draft, client)
    if chance.one_in(AT_ONCE):
        at_once(draft, [takes, back[0]])
        add(*back[1:])
    else:
        add(takes, *back)
    _ask_for_locks(draft, group, (client, other.client))
    if chance.coin():
        bring(draft, other.client)
        add(consumed_by(draft, other.client))
    if chance.coin():
        let_join(draft, chance.pick(others_of(draft, other.client)))
        rebalance_all(draft)
        its = [one.client for one in joined_of(draft, group)]
        add(*[TurnConsumer(name, "lock") for name in its])
        _ask_for_locks(draft, group, its)


def _one_in_order(draft: Draft) -> StartConsumer | None:
    """A consumer in order whose group has others, which has joined or does so now."""
    its = draft.space.consumers
    able = [one for one in its if one.is_orderly and has_a_share(one, draft.setup)]
    groups = [one.group for one in able]
    able = [one for one in able if groups.count(one.group) > 1 and not one.broadcasts]
    joined = [one.client for one in able if one.client in draft.joined]
    if not joined and not able:
        return None
    if not joined:
        one = draft.chance.pick(able)
        let_join(draft, one)
        joined = [one.client]
    return draft.joined[draft.chance.pick(joined)]


def _comes_back(draft: Draft, client: str) -> tuple[Op, ...]:
    """Ops in which a consumer that was away ends, rebalances, or wants its locks."""
    looks = TurnConsumer(client, "rebalance")
    by = draft.chance.pick(BACK_BY)
    if by == "choice" and not draft.space.resubscriptions:
        by = "rebalance"
    match by:
        case "end":
            del draft.joined[client]
            return (EndConsumer(client, draft.chance.pick(ENDS)),)
        case "lock":  # in vain, and then it may not pull
            pulls = TurnConsumer(client, "pull", 2)
            return (TurnConsumer(client, "lock"), A_SECOND, pulls)
        case "rebalance":
            return (looks,)
        case "choice":  # it gives up all that it has
            who = draft.joined[client]
            asked = who.topics, who.expression, who.expression_type
            back = Resubscribe(client, *asked)
            return (Resubscribe(client, NO_TOPIC), looks, back)


def _ask_for_locks(draft: Draft, group: str, clients: Sequence[str]) -> None:
    """Add ops: the broker is asked which of the clients has which lock."""
    queues = {(one.topic, one.queue_id) for one in draft.space.addresses}
    topics = sorted({topic for topic, _ in queues})
    asked = sorted({(topic, draft.chance.below(3)) for topic in topics})
    asked.append((draft.chance.pick(topics), draft.chance.below(QUEUES_OF_A_TOPIC)))
    for client in clients:
        for topic, queue_id in asked:
            draft.add(AskBroker("lock", group, topic, queue_id, client=client))
