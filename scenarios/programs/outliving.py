"""Phrases in which consumers outlive their broker, or outlast other consumers."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from crashmq.models.ops import (
    AdvanceClock,
    Consume,
    Crash,
    DeleteTopic,
    During,
    EndConsumer,
    Op,
    ResetOffset,
    Restart,
    RunService,
    Shutdown,
    TurnConsumer,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.joining import (
    A_LONG_TIME,
    A_SECOND,
    FAILING,
    REPUT,
    SILENT_MS,
    SOON,
    TASKS,
    UNANSWERED,
    addresses_of,
    bring,
    consumed_by,
    join,
    one_who_joins,
)
from crashmq.scenarios.programs.space import Address, often

REMADE = 4
"""One of so many times the consumers outlive a topic or queue, and not their broker."""
SEEN_BY_NOBODY = 3
"""After one of so many crashes the broker dies again before any consumer asks it."""
CUT_SHORT = 4
"""One of so many brokers dies while it shuts down."""
ACTIONS_OF_A_STOP = 24
AMID_A_ROUND = 4
"""One of so many brokers dies amid what a client asks it."""
ACTIONS_OF_A_ROUND = 4
TROUBLED = 3
"""One of so many brokers cannot note at first that it has answered, and dies again."""
RESET_AT_ONCE = 3
"""After one of so many starts a group is reset before a consumer asks anything."""
ACTIONS_OF_A_NOTE = 12
ASLEEP = 3
"""In one of so many phrases a consumer hears nothing of a whole life."""
LIVES: Final = (1, 1, 2)
CONSUMED: Final = (8, 32, 32)
First: TypeAlias = Literal["persist", "rebalance", "consume", "end"]
FIRST: tuple[First, ...] = often(
    *(("persist", 4), ("rebalance", 1), ("consume", 2), ("end", 1)),
)
"""What a consumer that has outlived its broker does first."""
STAYING = 2
STAYS_MS: Final = often((21_000, 3), (29_000, 1))
"""Before a lease of half a minute is over."""
PATIENCE: Final = often(
    ((UNANSWERED, A_SECOND), 2), ((A_SECOND, AdvanceClock(29_500), A_SECOND), 1)
)
"""What passes between the pulls of consumers that outlived their broker; in the second,
the time-out of a pull of before ends amid one of after."""


def outlive(draft: Draft) -> None:
    """Add ops: the broker dies, while consumers keep what they have pulled.

    The log may lose it; new messages are there, or not yet, when they continue. Or the
    broker lives, and what they have pulled is deleted.
    """
    chance, add = draft.chance, draft.add
    if not draft.joined:
        join(draft)
    joined = tuple(draft.joined)
    if "crash" in draft.space.kinds and chance.one_in(ASLEEP):
        _sleep_through_a_life(draft, chance.pick(joined))
        return
    pulls = [TurnConsumer(client, "pull", 8) for client in joined]
    queues = tuple(dict.fromkeys(draft.space.addresses))
    chosen = [chance.pick(queues) for _ in range(chance.integer(1, 3))]
    for one in chosen:
        add(draft.drawn.stock(one))
        if chance.coin():  # so that a crash takes a part of the queue
            add(A_LONG_TIME, RunService("flush_commit_log"))
            add(*[draft.drawn.stock(one)] * chance.below(2))
    add(REPUT)
    for client in joined:
        add(TurnConsumer(client, "pull", 8))
        if chance.coin():
            add(consumed_by(draft, client), TurnConsumer(client, "pull"))
        if chance.one_in(3):
            add(TurnConsumer(client, "persist"))
    if chance.one_in(REMADE):
        _delete(draft, chosen)
    else:
        _die_and_come_back(draft, joined, chosen)
    if chance.coin():
        _tell_before_they_pull(draft, joined)
    for _ in range(chance.integer(1, 2)):
        if chance.coin():
            add(*[draft.drawn.stock(one) for one in chosen], REPUT)
        # One that was held has to be given up first; then the consumer waits a second.
        for pause in chance.pick(PATIENCE):
            add(pause, *[TurnConsumer(client, "heartbeat") for client in joined])
            add(*pulls)
        if chance.coin():
            add(*[consumed_by(draft, client) for client in joined])
        elif chance.coin():  # what it sends back may not be there any more
            add(*[Consume(one, 0, 8, chance.pick(FAILING)) for one in joined])
        if chance.one_in(3):
            add(*[TurnConsumer(client, "persist") for client in joined])


def _sleep_through_a_life(draft: Draft, client: str) -> None:
    """Add ops: a consumer hears nothing of a whole life of its broker.

    What it has consumed is lost, and that life, or the one after it, has given the same
    offsets to other messages. Then it tells how far it is.
    """
    chance, add = draft.chance, draft.add
    one = chance.pick(addresses_of(draft, draft.joined[client]))
    add(TurnConsumer(client, "rebalance"), SOON)
    if chance.coin():
        add(draft.drawn.stock(one), A_LONG_TIME, RunService("flush_commit_log"))
    add(draft.drawn.stock(one), REPUT, TurnConsumer(client, "pull", 8))
    add(Consume(client, times=chance.pick(CONSUMED)))
    if chance.coin():
        add(TurnConsumer(client, "pull", 2))
    for _ in range(chance.pick(LIVES)):
        _die(draft)
        add(Restart(), *[draft.drawn.stock(one)] * chance.integer(1, 2), REPUT)
        if not chance.one_in(3):
            add(A_LONG_TIME, RunService("flush_commit_log", 2))
    if chance.coin():
        _die(draft)
        add(Restart())
    _tell_before_they_pull(draft, (client,))
    if client in draft.joined:
        for pause in chance.pick(PATIENCE):
            add(pause, TurnConsumer(client, "heartbeat"))
            add(TurnConsumer(client, "pull", 8))
        add(Consume(client, times=32), TurnConsumer(client, "persist"))


def _tell_before_they_pull(draft: Draft, joined: tuple[str, ...]) -> None:
    """Add ops: what consumers have of before is told before any pull is answered.

    They persist, give queues up, end, or go on consuming.
    """
    chance, add = draft.chance, draft.add
    for client in joined:
        match chance.pick(FIRST):
            case "persist":
                add(TurnConsumer(client, "persist"))
            case "rebalance":
                add(TurnConsumer(client, "heartbeat"))
                add(TurnConsumer(client, "rebalance"), TurnConsumer(client, "persist"))
            case "consume":
                add(consumed_by(draft, client), TurnConsumer(client, "persist"))
            case "end":
                add(EndConsumer(client))
                draft.joined.pop(client, None)


def _die_and_come_back(
    draft: Draft, joined: tuple[str, ...], chosen: list[Address]
) -> None:
    """Add ops: the broker dies and starts, perhaps twice before anybody asks it."""
    chance, add = draft.chance, draft.add
    pulls = [TurnConsumer(client, "pull", 8) for client in joined]
    _die(draft)
    if chance.coin():  # nobody answers for a while
        add(UNANSWERED)
        for client in joined:
            add(TurnConsumer(client, chance.pick(TASKS), 8), consumed_by(draft, client))
        if chance.coin():  # what was given up is sent again, and nobody takes it
            add(*pulls, A_SECOND, *pulls)
    add(Restart())
    if chance.one_in(TROUBLED):
        _answer_in_trouble(draft, joined, chosen)
    elif chance.one_in(SEEN_BY_NOBODY):
        add(*[draft.drawn.stock(chance.pick(chosen)) for _ in joined], REPUT)
        if chance.coin():  # so that it loses less than the life before
            add(RunService("flush_commit_log"), draft.drawn.stock(chosen[0]), REPUT)
        _die(draft)
        add(Restart())
    if chance.one_in(RESET_AT_ONCE):
        _reset(draft, joined, chance.pick(chosen))


def _answer_in_trouble(
    draft: Draft, joined: tuple[str, ...], chosen: list[Address]
) -> None:
    """Add ops: calls fail as a broker first answers; then it works, and dies again."""
    chance, add = draft.chance, draft.add
    if chance.coin():
        _reset(draft, joined, chance.pick(chosen))
    pulls = [TurnConsumer(client, "pull", 8) for client in joined]
    for pause in chance.pick(PATIENCE):
        add(pause, *[TurnConsumer(client, "heartbeat") for client in joined])
        add(*[_amid_a_fault(draft, pull) for pull in pulls])
    add(A_SECOND, *pulls)
    if chance.coin():
        add(*[consumed_by(draft, client) for client in joined])
    add(*[draft.drawn.stock(one) for one in chosen], REPUT, *pulls)
    _die(draft)
    add(Restart())


def _amid_a_fault(draft: Draft, op: Op) -> Op:
    at_action = draft.chance.integer(1, ACTIONS_OF_A_NOTE)
    if draft.chance.coin():
        at_action = 1
    return During(op, at_action, draft.drawn.fault())


def _reset(draft: Draft, joined: tuple[str, ...], address: Address) -> None:
    """Add an op: the group of a consumer is reset, also to the queue's very begin."""
    chance = draft.chance
    group = draft.joined[chance.pick(joined)].group
    end = max(1, draft.drawn.whereabouts.counts[address])
    offset = 0 if chance.coin() else chance.integer(0, end)
    draft.add(ResetOffset(group, *address, offset))


def _delete(draft: Draft, chosen: list[Address]) -> None:
    """Add ops: a topic or queue of consumers is deleted, and mostly there again."""
    chance, address = draft.chance, draft.chance.pick(chosen)
    queue_id = address.queue_id if chance.coin() else -1
    draft.add(DeleteTopic(address.topic, queue_id))
    if not chance.one_in(3):
        draft.add(draft.drawn.stock(address), REPUT)


def _die(draft: Draft) -> None:
    """Add ops: the broker dies during a round of dispatch, or while it shuts down.

    Or amid a round of a client, which goes on with the next broker.
    """
    chance, drawn = draft.chance, draft.drawn
    crash = Crash("power_loss") if chance.coin() else drawn.crash()
    if draft.joined and chance.one_in(AMID_A_ROUND):
        turn = TurnConsumer(chance.pick(tuple(draft.joined)), chance.pick(TASKS), 8)
        both = drawn.together((turn, REPUT, RunService("flush_commit_log")))
        draft.add(During(both, chance.integer(1, ACTIONS_OF_A_ROUND), crash))
    elif chance.one_in(CUT_SHORT):
        draft.add(During(Shutdown(), chance.integer(1, ACTIONS_OF_A_STOP), crash))
    else:
        draft.add(During(REPUT, 1, crash))


def stay(draft: Draft) -> None:
    """Add ops: few consumers keep their queues for long; then another one joins."""
    chance, add = draft.chance, draft.add
    if not draft.joined:
        join(draft)
    few = tuple(draft.joined)[-STAYING:]
    is_slow = chance.one_in(3)  # it has pulled more than it takes, and goes on so
    if is_slow:
        bring(draft, few[0])
    for _ in range(chance.integer(2, 5)):
        add(AdvanceClock(chance.pick(STAYS_MS)))
        for client in few:
            add(TurnConsumer(client, "heartbeat"), TurnConsumer(client, "lock"))
        add(TurnConsumer(few[0], "pull") if is_slow else consumed_by(draft, few[0]))
    if len(few) > 1 and chance.coin():
        _fall_silent(draft, *few)
    elif chance.coin():
        add(RunService("client_housekeeping"))
    one = one_who_joins(draft)
    draft.joined[one.client] = one
    add(one, TurnConsumer(one.client, "rebalance"))
    for client in few:
        add(consumed_by(draft, client), TurnConsumer(client, "rebalance"))
    add(TurnConsumer(one.client, "rebalance"))


def _fall_silent(draft: Draft, stays: str, silent: str) -> None:
    """Add ops: a client sends no heartbeat for a while, and the broker scans."""
    chance, add = draft.chance, draft.add
    if chance.coin():
        add(EndConsumer(silent, "vanish"))
        draft.joined.pop(silent)
    add(AdvanceClock(chance.pick(SILENT_MS)), TurnConsumer(stays, "heartbeat"))
    add(RunService("client_housekeeping"), TurnConsumer(stays, "rebalance"))
