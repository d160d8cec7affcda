"""Phrases in which consumers change what they subscribe.

They do so between two pulls, or while a broker holds one; then the answer may have been
filtered by either subscription.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    ExpressionType,
    Resubscribe,
    RunService,
    Session,
    StartConsumer,
    TurnConsumer,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.joining import (
    A_SECOND,
    LOOK,
    REPUT,
    SOON,
    STRANGERS,
    TIMES,
    askable,
    at_once,
    bring,
    consumed_by,
    join,
    joined_of,
    put_for,
    rebalance_all,
    work,
)

THERE_AND_BACK = 3
"""One of so many that subscribe something else go back to what they had."""
BETWEEN_PULLS = 3
"""One of so many changes of a subscription comes between two pulls, as it happens."""
LOOK_MS: Final = 5000
"""After so long a broker looks whether a queue has grown, whatever a pull asks for."""
COMES_MAX = 4
BESIDE_A_PULL = 3
"""One of so many changes amid a pull comes before its broker has held it."""


def subscribe(draft: Draft) -> None:
    """Add ops: a group's consumers change what they subscribe, mostly amid a pull."""
    chance = draft.chance
    if not draft.joined:
        join(draft)
    client = chance.pick(tuple(draft.joined))
    if chance.one_in(BETWEEN_PULLS):
        resubscribe(draft, client)
    else:
        _change_amid_a_pull(draft, client)


def _change_amid_a_pull(draft: Draft, client: str) -> None:
    """Add ops: a consumer has read its queues to their ends, and pulls of it are held.

    Then it subscribes something else, and messages come. Whichever of the two
    subscriptions filters the answer, it has to consume what the later one asks for.
    """
    chance, add, who = draft.chance, draft.add, draft.joined[client]
    told = askable(draft)
    others = [one for one in told if one[1] != who.expression] or told
    if not others:
        work(draft, client)
        return
    its = joined_of(draft, who.group)
    alike = [who] if chance.one_in(STRANGERS) else its
    pulls = [TurnConsumer(one.client, "pull", 8) for one in its]
    add(*[TurnConsumer(one.client, "rebalance") for one in its])
    add(SOON, *pulls, *[consumed_by(draft, one.client) for one in its], A_SECOND)
    comes = [put_for(draft, who) for _ in range(chance.integer(1, COMES_MAX))]
    if chance.one_in(BESIDE_A_PULL):
        changes = subscribed_by(draft, alike, chance.pick(others))
        at_once(draft, [*pulls, Session((*changes, *comes, REPUT))])
    else:
        add(*pulls, *subscribed_by(draft, alike, chance.pick(others)), *comes, REPUT)
    if chance.coin():
        add(AdvanceClock(LOOK_MS), LOOK)
    if chance.one_in(THERE_AND_BACK):
        asked = who.topics, who.expression, who.expression_type
        add(*subscribed_by(draft, alike, asked))
    add(*pulls, *[consumed_by(draft, one.client) for one in its], A_SECOND, *pulls)
    add(*[TurnConsumer(one.client, "persist") for one in its])


def resubscribe(draft: Draft, client: str) -> None:
    """Add ops: a consumer, mostly with all of its group, changes its subscription."""
    chance, who = draft.chance, draft.joined[client]
    told = askable(draft)
    if not told:
        work(draft, client)
        return
    group = joined_of(draft, who.group)
    alike = [who] if chance.one_in(STRANGERS) else group
    if chance.coin():
        if chance.coin():
            draft.add(put_for(draft, who), REPUT, A_SECOND)
        draft.add(TurnConsumer(client, "pull", chance.pick(TIMES)))
    subscribe_all(draft, alike, chance.pick(told))
    if chance.coin():
        draft.add(*[draft.drawn.put() for _ in range(chance.integer(1, 3))])
        draft.add(RunService("reput"))
    if chance.one_in(THERE_AND_BACK):
        subscribe_all(draft, alike, (who.topics, who.expression, who.expression_type))
    else:
        rebalance_all(draft)
    if "ask" in draft.space.kinds and chance.one_in(3):
        _ask_who_subscribes(draft, who.group)
    work(draft, chance.pick(group).client)


def drop_a_topic(draft: Draft, client: str) -> None:
    """Add ops: a group drops one of its topics, and works on.

    It pulls before its rebalance gives up the queues of that topic, and after it.
    """
    chance, add, who = draft.chance, draft.add, draft.joined[client]
    topics = who.topics.split(",")
    if len(topics) == 1 or not draft.space.resubscriptions:
        resubscribe(draft, client)
        return
    if chance.coin():
        bring(draft, client)
    topics.remove(chance.pick(tuple(topics)))
    its = joined_of(draft, who.group)
    subscribe_all(draft, its, (",".join(topics), who.expression, who.expression_type))
    for _ in range(chance.integer(1, 3)):
        if chance.coin():
            add(put_for(draft, who), REPUT)
        add(A_SECOND, TurnConsumer(client, "pull"))
    _ask_who_subscribes(draft, who.group)
    rebalance_all(draft)
    add(TurnConsumer(client, "pull"))


def _ask_who_subscribes(draft: Draft, group: str) -> None:
    """Add ops: a broker is asked about each topic that the group may subscribe."""
    topics = {one.topic for one in draft.space.addresses}
    for topic in sorted(topics):
        draft.add(AskBroker("subscribers", group, topic, 0))


def subscribe_all(
    draft: Draft, who: list[StartConsumer], told: tuple[str, str, ExpressionType]
) -> None:
    """Add ops: consumers subscribe topics by an expression."""
    draft.add(*subscribed_by(draft, who, told))


def subscribed_by(
    draft: Draft, who: list[StartConsumer], told: tuple[str, str, ExpressionType]
) -> list[Resubscribe]:
    """The ops in which consumers subscribe topics by an expression."""
    topics, expression, kind = told
    for one in who:
        draft.joined[one.client] = replace(
            one, topics=topics, expression=expression, expression_type=kind
        )
    return [Resubscribe(one.client, topics, expression, kind) for one in who]
