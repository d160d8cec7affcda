"""Phrases in which listeners hang with their messages, and consumers are suspended.

A message that a listener has had for longer than consumeTimeout is sent back by the
next round that cleans expired messages; what the listener returns later is ignored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crashmq.models.ops import (
    AdvanceClock,
    ChangeConfig,
    ConfigureGroup,
    Consume,
    ConsumeStatus,
    During,
    Op,
    Restart,
    Shutdown,
    StartConsumer,
    TurnConsumer,
)
from crashmq.scenarios.programs.consumers import consume
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.joining import (
    A_SECOND,
    DELIVER,
    FIRST_LEVEL,
    PAUSES_MS,
    REPUT,
    bring,
    consumed_by,
    let_join,
    retries_of,
)
from crashmq.scenarios.programs.outages import OUTAGES, amid
from crashmq.scenarios.programs.space import often

HAD_MS: Final = often(
    (899_999, 2), (900_000, 2), (900_001, 3), (960_000, 3), (30_000, 1)
)
"""Around the fifteen minutes for which a listener may have a message."""
EARLIER_MS: Final = often((5_001, 1), (600_000, 2))
"""How long before a listener has got the same message, and failed."""
MANY: Final = often((1, 3), (2, 2), (8, 1), (20, 1))
RETURNED: Final[tuple[ConsumeStatus, ...]] = often(
    *(("later", 3), ("success", 3), ("raises", 1), ("hangs", 1), ("partly", 1)),
)
SELDOM = 4
CLOSED: Final = 8
"""So often it is the broker that is closed, for a life."""
BARRED: Final = 3
"""So often it is the group that is barred, and not the consumer suspended."""
ACTIONS_MAX = 6
LONG: Final = 3
"""So often a consumer stays suspended until its queues seem to be forgotten."""
WAIT_MS: Final = 61_000
WAITS: Final = (2, 3)
"""A queue that was not pulled for two minutes is dropped."""


def hang(draft: Draft) -> None:
    """Add ops: a listener hangs with messages, and its consumer gives them up."""
    chance, add = draft.chance, draft.add
    able = [one for one in draft.joined.values() if not one.is_orderly]
    can_join = [one for one in draft.space.consumers if not one.is_orderly]
    if not able and not can_join:
        consume(draft)
        return
    who = chance.pick(able or can_join)
    if not able:
        let_join(draft, who)
    client = who.client
    add(TurnConsumer(client, "rebalance"))
    bring(draft, client)
    if chance.one_in(SELDOM):
        _fail_with_nobody_to_take_it(draft, client)
    for _ in range(chance.integer(1, 2)):
        add(Consume(client, 0, chance.pick(MANY), "hangs"))
    if chance.coin():
        add(consumed_by(draft, client))
    add(AdvanceClock(chance.pick(HAD_MS)))
    if chance.coin():
        add(*[TurnConsumer(name, "heartbeat") for name in draft.joined])
    _clean(draft, client)
    if chance.coin():
        add(Consume(client, times=8, status=chance.pick(RETURNED)))
    if chance.coin():
        add(TurnConsumer(client, "pull", 2), TurnConsumer(client, "persist"))
    if draft.setup.delivers_delayed and chance.coin():
        add(REPUT, AdvanceClock(draft.delay_ms(FIRST_LEVEL)), DELIVER, REPUT)
        add(TurnConsumer(client, "pull", 2), consumed_by(draft, client))


def _fail_with_nobody_to_take_it(draft: Draft, client: str) -> None:
    """Add ops: a message fails while the broker is down, so its client has it again."""
    fails = Consume(client, 0, draft.chance.pick(MANY), "later")
    draft.add(Shutdown(), fails, Restart())
    draft.add(AdvanceClock(draft.chance.pick(EARLIER_MS)))
    if draft.chance.coin():
        draft.add(TurnConsumer(client, "heartbeat"))


def _clean(draft: Draft, client: str) -> None:
    """Add ops: a consumer cleans expired messages, perhaps beside its listener."""
    chance, add = draft.chance, draft.add
    cleans: Op = TurnConsumer(client, "clean", chance.pick((1, 1, 2)))
    if chance.one_in(SELDOM):
        add(Shutdown(), cleans, Restart())  # nobody takes what it sends back
    if chance.one_in(SELDOM) and "crash" in draft.space.kinds:
        amid = chance.integer(1, ACTIONS_MAX)
        add(During(cleans, amid, draft.drawn.crash()), Restart())
    if chance.one_in(SELDOM):
        ends = Consume(client, times=8, status=chance.pick(RETURNED))
        add(draft.drawn.together((cleans, ends)))
    add(cleans)


def suspend(draft: Draft) -> None:
    """Add ops: a consumer is suspended, or its group barred; mostly only for a while.

    An administrator bars a group from consuming, or closes the broker.
    """
    chance, add = draft.chance, draft.add
    if not draft.joined:
        consume(draft)
        return
    client = chance.pick(tuple(draft.joined))
    if chance.coin():
        bring(draft, client)
    if chance.one_in(CLOSED):
        _close(draft, client)
        return
    suspends: Op = TurnConsumer(client, "suspend")
    resumes: Op = TurnConsumer(client, "resume")
    is_barred = chance.one_in(BARRED)
    if is_barred:
        suspends, resumes = _barred(draft, draft.joined[client])
    if chance.one_in(SELDOM):
        pulls = TurnConsumer(client, "pull", 2)
        add(draft.drawn.together((suspends, pulls)))
    else:
        add(suspends)
    if is_barred and "crash" in draft.space.kinds and chance.coin():
        _fail_meanwhile(draft, client)
    _stand_still(draft, client, (resumes,), (TurnConsumer(client, "rebalance"),))


def _fail_meanwhile(draft: Draft, client: str) -> None:
    """Add ops: a change of a group fails, and the disk still does as clients pull."""
    chance, fault = draft.chance, draft.chance.pick(OUTAGES)
    group = chance.pick(draft.space.consumers).group
    draft.add(During(ConfigureGroup(f"{group}2"), 1, fault))
    pulls: list[Op] = [TurnConsumer(client, "pull", 2)] * 2
    draft.add(A_SECOND, *amid(pulls, fault), A_SECOND, *amid(pulls[:1], fault))


def _close(draft: Draft, client: str) -> None:
    """Add ops: for a life of the broker nobody may read it."""
    chance, add = draft.chance, draft.add
    heard = TurnConsumer(client, "heartbeat")
    add(Shutdown(), ChangeConfig("lets_read", False), Restart())
    if chance.coin():
        add(heard)
    opens = (Shutdown(), ChangeConfig("lets_read", True), Restart())
    _stand_still(draft, client, opens, (heard, TurnConsumer(client, "rebalance")))


def _stand_still(
    draft: Draft, client: str, ends: tuple[Op, ...], looks: tuple[Op, ...]
) -> None:
    """Add ops: a consumer gets nothing; mostly that ``ends``, and it goes on.

    Perhaps it ``looks`` after its queues before that.
    """
    chance, add = draft.chance, draft.add
    if chance.one_in(LONG):
        _wait_for_long(draft, client)
    else:
        _work_suspended(draft, client)
    if chance.one_in(SELDOM):
        return
    add(*ends)
    if chance.coin():
        add(*looks)
    add(A_SECOND, TurnConsumer(client, "pull", 2), consumed_by(draft, client))


def _wait_for_long(draft: Draft, client: str) -> None:
    """Add ops: a suspended consumer is turned, until an idle pull would be given up."""
    add = draft.add
    for _ in range(draft.chance.integer(*WAITS)):
        add(AdvanceClock(WAIT_MS), TurnConsumer(client, "heartbeat"))
        add(TurnConsumer(client, "pull"))


def _work_suspended(draft: Draft, client: str) -> None:
    """Add ops: a suspended consumer pulls, consumes and rebalances for a while."""
    chance, add = draft.chance, draft.add
    for _ in range(chance.integer(1, 3)):
        if chance.coin():
            bring(draft, client)
        if chance.coin():
            add(AdvanceClock(chance.pick(PAUSES_MS)), TurnConsumer(client, "pull", 2))
        if chance.coin():
            add(consumed_by(draft, client), TurnConsumer(client, "rebalance"))


def _barred(draft: Draft, one: StartConsumer) -> tuple[Op, Op]:
    """The ops that bar a group from consuming or broadcasting, and that allow it."""
    allows = ConfigureGroup(one.group, retries_of(draft, one.group))
    if draft.chance.one_in(4) is one.broadcasts:
        return replace(allows, consume_enable=False), allows
    return replace(allows, consume_broadcast_enable=False), allows
