"""Phrases in which something happens to a consumer while its listener works.

An application needs its time for a message. Meanwhile its consumer may be reset, lose
the queue and get it back, renew its locks, pull on or end; then the listener returns,
and what it returns is about a queue that is not what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from crashmq.models.ops import (
    AdvanceClock,
    DeleteTopic,
    EndConsumer,
    Op,
    ResetOffset,
    Resubscribe,
    Schedule,
    Session,
    StartConsumer,
    TellReset,
    Together,
    TurnConsumer,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.joining import (
    ENDS,
    PAUSES_MS,
    REPUT,
    SOON,
    addresses_of,
    as_the_others,
    bring,
    consumed_by,
    let_join,
    others_of,
)
from crashmq.scenarios.programs.space import Address, often

Meanwhile: TypeAlias = Literal[
    "told", "reset", "lost", "lapsed", "pulled", "unsubscribed", "deleted", "ends"
]
MEANWHILE: Final[tuple[Meanwhile, ...]] = often(
    *(("told", 6), ("reset", 3), ("lost", 4), ("lapsed", 2), ("pulled", 2)),
    *(("unsubscribed", 1), ("deleted", 1), ("ends", 1)),
)
IN_ORDER_AT: Final = (7, 12)
OUT_OF_ORDER_AT: Final = (3, 8)
"""Between these points a listener has got its messages, and has not returned yet."""
ELSEWHERE = 4
"""Of so many times it happens once to another queue than the one with new messages."""
LOCKED_MS: Final = (21_000, 30_001, 60_001)
"""A lock is renewed after the first, doubtful after the second, and over after all."""


def listen(draft: Draft) -> None:
    """Add ops: while a listener works, its consumer is reset, rebalanced, or ends."""
    chance, add = draft.chance, draft.add
    in_order = chance.coin()
    able = [one for one in draft.joined.values() if one.is_orderly is in_order]
    if not able:
        can_join = [one for one in draft.space.consumers if one.is_orderly is in_order]
        one = chance.pick(can_join or draft.space.consumers)
        let_join(draft, one)
        able = [draft.joined[one.client]]
    who = chance.pick(able)
    client = who.client
    add(TurnConsumer(client, "rebalance"))
    address = bring(draft, client)
    if chance.one_in(ELSEWHERE):
        address = chance.pick(addresses_of(draft, who))
    first, last = IN_ORDER_AT if who.is_orderly else OUT_OF_ORDER_AT
    returns = chance.integer(first, last)
    meanwhile = Session((*_meanwhile(draft, who, address),))
    when = Schedule(preemptions=((returns, 1),))
    add(Together((consumed_by(draft, client), meanwhile), when))
    if chance.coin():
        add(TurnConsumer(client, "persist"))
    add(SOON, TurnConsumer(client, "rebalance"), TurnConsumer(client, "pull", 2))
    add(consumed_by(draft, client))


def _meanwhile(draft: Draft, who: StartConsumer, address: Address) -> Sequence[Op]:
    """What happens to the consumer, or to the queue at ``address``."""
    chance, client = draft.chance, who.client
    looks, pulls = TurnConsumer(client, "rebalance"), TurnConsumer(client, "pull", 2)
    offset = chance.integer(0, 3)
    match chance.pick(MEANWHILE):
        case "told":
            looked = (AdvanceClock(chance.pick(PAUSES_MS)), looks)
            then = looked if chance.coin() else ()
            return (TellReset(client, *address, offset), *then, SOON, pulls)
        case "reset" if not who.broadcasts:
            return (ResetOffset(who.group, *address, offset), SOON, pulls, looks)
        case "lost":
            return _lost_and_found(draft, who)
        case "lapsed":
            passes = AdvanceClock(chance.pick(LOCKED_MS))
            renews = TurnConsumer(client, "lock")
            return (passes, TurnConsumer(client, "heartbeat"), renews, looks)
        case "unsubscribed":
            back = Resubscribe(client, who.topics, who.expression, who.expression_type)
            topic = chance.pick(tuple(who.topics.split(",")))
            kind = who.expression, who.expression_type
            return (Resubscribe(client, topic, *kind), looks, back, looks, SOON, pulls)
        case "deleted":
            again = (draft.drawn.put(), REPUT, SOON, pulls)
            return (DeleteTopic(address.topic), *again)
        case "ends":
            del draft.joined[client]
            return (EndConsumer(client, chance.pick(ENDS)),)
        case _:
            persists = TurnConsumer(client, "persist")
            return (draft.drawn.put(), REPUT, SOON, pulls, persists)


def _lost_and_found(draft: Draft, who: StartConsumer) -> Sequence[Op]:
    """Another consumer joins and takes its share; mostly it leaves at once."""
    others = others_of(draft, who.client)
    looks = TurnConsumer(who.client, "rebalance")
    if not others:
        return (looks, SOON, TurnConsumer(who.client, "pull", 2))
    other = as_the_others(draft, draft.chance.pick(tuple(others)))
    theirs = TurnConsumer(other.client, "rebalance")
    if other.client in draft.joined or draft.chance.one_in(3):
        draft.joined.setdefault(other.client, other)
        return (other, theirs, looks, theirs)
    leaves = EndConsumer(other.client, draft.chance.pick(ENDS))
    back = (leaves, looks, SOON, TurnConsumer(who.client, "pull", 2))
    return (other, theirs, looks, *back)
