"""Phrases in which consumers join; and what all phrases of consumers are made of.

A consumer is brought messages, consumes them, and rebalances with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from crashmq.models.ops import (
    AdvanceClock,
    ConfigureGroup,
    Consume,
    ConsumerEnd,
    ConsumerTask,
    ConsumeStatus,
    During,
    ExpressionType,
    Op,
    PutMessage,
    RunService,
    StartConsumer,
    TurnConsumer,
)
from crashmq.models.program import Setup
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.space import Address, often

ENDS: tuple[ConsumerEnd, ...] = often(("stop", 2), ("kill", 2), ("vanish", 1))
TASKS: tuple[ConsumerTask, ...] = often(
    *(("pull", 8), ("rebalance", 6), ("persist", 4), ("heartbeat", 2), ("lock", 4)),
    *(("reconnect", 1), ("disconnect", 1)),
)
MOST_AT_ONCE = 4
TIMES: Final = often((1, 3), (2, 2), (8, 2))
PLACES: Final = often((0, 4), (1, 2), (2, 1), (5, 1))
PAUSES_MS: Final = often((500, 4), (1000, 2), (5000, 2), (21_000, 2), (31_000, 1))
"""After a rebalance, an error, a persist, a balance, a pull that nobody answers."""
AT_ONCE = 4
"""One of so many times consumers that have the same to do do it at once."""
SILENT_MS: Final = (60_000, 91_000, 119_999, 120_000, 120_001, 150_000, 220_000)
"""Around the two minutes after which a client counts as silent."""
BROKEN = 8
"""Before one of so many rebalances a client's connection has broken."""
UNHEARD = 5
"""Before one of so many rebalances a question of a client gets no answer in another."""
LOST_MAX = 8
"""So many questions, or more, a rebalance of two topics asks."""
STRANGERS = 4
"""One of so many that join may be of any group; the others are of one that is there."""
DELIVER: Final = RunService("deliver_delayed")
REPUT: Final = RunService("reput")
LOOK: Final = RunService("pull_request_hold")
SOON: Final = AdvanceClock(500)
"""After so long a new queue is pulled for the first time."""
A_SECOND: Final = AdvanceClock(1000)
A_LONG_TIME: Final = AdvanceClock(10_000)
"""After so long a flush takes all there is."""
UNANSWERED: Final = AdvanceClock(31_000)
"""After so long a pull has no answer any more."""
COMING_AT_ONCE: Final[tuple[ConsumeStatus, ...]] = ("success", "uncommitted", "commit")
"""Results that leave nothing to come again."""
AGAIN: Final = often(
    *((0, 8), (1, 2), (2, 1), (5, 1), (99, 1), (-1, 2), (3000, 1), (5000, 1)),
)
"""Delay levels, and pauses in ms, that a listener names for what has failed."""
BATCHES: Final = often((1, 9), (2, 1), (3, 1), (8, 1))
FAILING: Final[tuple[ConsumeStatus, ...]] = ("later", "raises", "partly")
TAKES_MS: Final = often((0, 1), (1, 1), (50, 2), (2000, 2), (7000, 1))
"""So long a listener has a batch while others act; its consumer waits for less than
half a minute as it stops."""
AGO_MS: Final = often(
    *((1, 1), (60_000, 1), (1_739_999, 1), (1_740_000, 1), (1_799_999, 1)),
    *((1_800_000, 1), (1_860_000, 3)),
)
"""Around half an hour, alone or a minute later."""
BEGINS_LATE = 4
"""One of so many new groups does not begin with the first message."""
COMMITS = 3
"""One of so many results of a listener in order says whether to commit."""
COMMITTING: Final[tuple[ConsumeStatus, ...]] = (
    *("uncommitted", "uncommitted", "uncommitted"),
    *("commit", "rollback", "suspends"),
)
NO_TOPIC: Final = "T9"
"""A topic without messages, of which no other consumer knows."""
FIRST_LEVEL = 3
FAULTS = 12
"""Amid one of so many ops, for which a topic may be made, a call fails."""
FAULT_ACTIONS_MAX = 12
"""A change of a config file makes so many: the old text, the new one, the folder."""
RETRIES: Final = (16, 0, 1, 3)
"""Of a group that is configured, or as a request says: the default and others."""
A_LOCK_MS: Final = 60_000
"""So long a broker keeps a lock that is not renewed."""


def joined_of(draft: Draft, group: str) -> list[StartConsumer]:
    """The consumers of a group that have joined."""
    return [one for one in draft.joined.values() if one.group == group]


def askable(draft: Draft) -> list[tuple[str, str, ExpressionType]]:
    """What consumers may subscribe instead, as far as the broker lets them."""
    return [one for one in draft.space.resubscriptions if can_ask(one[2], draft.setup)]


def can_ask(kind: ExpressionType, setup: Setup) -> bool:
    """Whether a broker of the setup accepts that kind of expression."""
    return kind == "TAG" or setup.filters


def join(draft: Draft) -> None:
    """Add ops: consumers join, and all rebalance."""
    chance = draft.chance
    who = [one_who_joins(draft) for _ in range(chance.integer(1, 2))]
    if len(who) > 1 and chance.one_in(AT_ONCE):
        at_once(draft, who)
    else:
        draft.add(*who)
    for one in who:
        draft.joined[one.client] = one
    rebalance_all(draft)
    if chance.coin():
        work(draft, who[0].client)


def one_who_joins(draft: Draft) -> StartConsumer:
    """A consumer, mostly of an existing group, so that groups have several members."""
    chance = draft.chance
    can_join = [one for one in draft.space.consumers if has_a_share(one, draft.setup)]
    if draft.joined and not chance.one_in(STRANGERS):
        groups = {one.group for one in draft.joined.values()}
        can_join = [one for one in can_join if one.group in groups] or can_join
    return as_the_others(draft, chance.pick(can_join or draft.space.consumers))


def let_join(draft: Draft, who: StartConsumer) -> None:
    """Add ops: a consumer joins, and subscribes what its group does now.

    What a new group begins behind is there before.
    """
    chance, joins = draft.chance, as_the_others(draft, who)
    groups = {one.group for one in draft.joined.values()}
    if who.group not in groups and chance.one_in(BEGINS_LATE):
        joins = replace(joins, where=chance.pick(("last", "timestamp")))
        draft.add(draft.drawn.stock(), REPUT)
        if not groups:  # nobody's time is over
            draft.add(AdvanceClock(chance.pick(AGO_MS)))
    draft.joined[joins.client] = joins
    draft.add(joins)


def as_the_others(draft: Draft, who: StartConsumer) -> StartConsumer:
    """The consumer, with the present subscription of its group, and perhaps batches."""
    if who.batch == 1:
        who = replace(who, batch=draft.chance.pick(BATCHES))
    others = joined_of(draft, who.group)
    if not others:
        return who
    newest = others[-1]
    return replace(
        who,
        where=newest.where,
        topics=newest.topics,
        expression=newest.expression,
        expression_type=newest.expression_type,
    )


def has_a_share(one: StartConsumer, setup: Setup) -> bool:
    """Whether the setup has any queue and message for the consumer."""
    has_room = one.strategy != "MACHINE_ROOM" or setup.brokers > 1
    return has_room and can_ask(one.expression_type, setup)


def work(draft: Draft, client: str) -> None:
    """Add ops: a consumer pulls and consumes some of it."""
    chance, add = draft.chance, draft.add
    if chance.coin():
        add(RunService("reput"))
    if chance.coin():
        add(AdvanceClock(chance.pick(PAUSES_MS)))
    add(TurnConsumer(client, "pull", chance.pick(TIMES)))
    add(consumed_by(draft, client))
    if chance.coin():
        add(TurnConsumer(client, "pull"))


def bring(draft: Draft, client: str) -> Address:
    """Add ops: a consumer gets messages; returns from which queue."""
    address = draft.chance.pick(addresses_of(draft, draft.joined[client]))
    draft.add(draft.drawn.stock(address), REPUT)
    draft.add(A_SECOND, TurnConsumer(client, "pull", 8))
    return address


def addresses_of(draft: Draft, who: StartConsumer) -> tuple[Address, ...]:
    """The queues of a consumer's topics, or all if it has none of them."""
    topics = who.topics.split(",")
    addresses = tuple(dict.fromkeys(draft.space.addresses))
    return tuple([one for one in addresses if one.topic in topics]) or addresses


def consumed_by(draft: Draft, client: str) -> Consume:
    """An op in which a consumer's listener works, with a result of the space."""
    chance = draft.chance
    status = chance.pick(draft.space.consumed)
    who = draft.joined.get(client)
    if who is not None and who.is_orderly and chance.one_in(COMMITS):
        status = chance.pick(COMMITTING)
    again = 0 if status in COMING_AT_ONCE else chance.pick(AGAIN)
    return Consume(client, chance.pick(PLACES), chance.pick(TIMES), status, again)


def at_length(draft: Draft, client: str) -> Consume:
    """The same, mostly by a listener that takes a while."""
    takes_ms = draft.chance.pick(TAKES_MS)
    return replace(consumed_by(draft, client), takes_ms=takes_ms)


def others_of(draft: Draft, client: str) -> list[StartConsumer]:
    """The other consumers of a client's group, joined or not."""
    group = draft.joined[client].group
    its = [one for one in draft.space.consumers if one.group == group]
    return [one for one in its if one.client != client]


def _reconnect(draft: Draft, client: str) -> None:
    """Add ops: a client comes on a new connection, before its broker misses the old.

    The broker sees that close, or hears nothing on it for so long that it is over.
    """
    chance, add = draft.chance, draft.add
    add(TurnConsumer(client, "reconnect"))
    if chance.coin():
        add(TurnConsumer(client, "disconnect"))
        return
    for _ in range(2):
        beats = [TurnConsumer(name, "heartbeat") for name in draft.joined]
        add(AdvanceClock(chance.pick(SILENT_MS)), *beats)
    add(RunService("client_housekeeping"))


def rebalance_all(draft: Draft) -> None:
    """Add ops: every consumer that may run rebalances."""
    chance = draft.chance
    if chance.coin():
        draft.add(AdvanceClock(chance.pick(PAUSES_MS)))
    if draft.joined and chance.one_in(BROKEN):
        _reconnect(draft, chance.pick(tuple(draft.joined)))
    if draft.joined and chance.one_in(UNHEARD):
        client, lost = chance.pick(tuple(draft.joined)), chance.integer(1, LOST_MAX)
        draft.add(TurnConsumer(client, "rebalance", lost=lost))
    turns = [TurnConsumer(client, "rebalance") for client in draft.joined]
    if 2 <= len(turns) <= MOST_AT_ONCE and chance.one_in(AT_ONCE):
        at_once(draft, turns)
    draft.add(*turns)


def at_once(draft: Draft, ops: Sequence[Op]) -> None:
    """Add an op: several ops begin at the same time."""
    draft.add(draft.drawn.together(ops))


def put_for(draft: Draft, consumer: StartConsumer) -> Op:
    """A put to a topic that a consumer subscribes."""
    put, topics = draft.drawn.put(), consumer.topics.split(",")
    if not isinstance(put, PutMessage) or put.topic in topics:
        return put
    return replace(put, topic=draft.chance.pick(topics))


def join_one_of(draft: Draft, members: list[StartConsumer]) -> None:
    """Add ops: a consumer joins, and all of its group rebalance."""
    one = draft.chance.pick(members)
    draft.add(amid_a_fault(draft, one))
    draft.joined[one.client] = one
    rebalances = [TurnConsumer(one.client, "rebalance") for one in members]
    draft.add(*rebalances, *rebalances, SOON)


def amid_a_fault(draft: Draft, op: Op) -> Op:
    """The op, where disks fail sometimes with a fault, for a topic may be created."""
    chance = draft.chance
    if "retry" not in draft.space.kinds or not chance.one_in(FAULTS):
        return op
    return During(op, chance.integer(1, FAULT_ACTIONS_MAX), draft.drawn.fault())


def retries_of(draft: Draft, group: str) -> int:
    """How often a message of a group may be tried, by its newest configuration."""
    for op in reversed(draft.ops):
        if isinstance(op, ConfigureGroup) and op.group == group:
            return op.retry_max_times
    return RETRIES[0]
