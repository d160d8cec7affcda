"""Holding: phrases in which pulls wait at the broker, and what happens to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from crashmq.models.ops import (
    AdvanceClock,
    CommitOffset,
    During,
    Op,
    PullThroughBroker,
    PutMessage,
    QueryOffset,
    ResetOffset,
    Restart,
    RunService,
    Shutdown,
    TakeQueue,
    Together,
)
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.space import Address, often

LOOK = RunService("pull_request_hold")
REPUT = RunService("reput")
PULLS_MAX = 3
SUSPEND_MS = 15_000
ACTIONS_MAX = 12
"""So many disk actions a round of dispatch makes at most, in most programs."""

Way: TypeAlias = Literal[
    "arrival", "look", "time", "beside", "amid", "end", "crash", "progress", "fault"
]
WAYS: tuple[Way, ...] = often(
    ("arrival", 6),
    ("look", 3),
    ("time", 3),
    ("beside", 6),
    ("amid", 2),
    ("end", 2),
    ("crash", 2),
    ("progress", 4),
    ("fault", 3),
)
BEHIND_THE_END = often((0, 12), (1, 2), (-1, 1), (3, 1))
"""How far before the queue's end a pull begins, by what is known of it."""

WAITS = often((True, 9), (False, 1))
TIMES_MS = often((SUSPEND_MS, 3), (SUSPEND_MS - 1, 2), (5000, 2), (40_000, 1))
BESIDE: tuple[str, ...] = often(
    ("pull", 3), ("put", 2), ("reput", 5), ("look", 3), ("stop", 1), ("commit", 1)
)
BESIDE_MAX = 4


def hold(draft: Draft) -> None:
    """Some pulls at the end of a queue, most of which are held, and what comes."""
    chance, add = draft.chance, draft.add
    if chance.coin():
        _deliver(draft)
    address = chance.pick(draft.space.addresses)
    pulls = [_pull(draft, address) for _ in range(chance.integer(1, PULLS_MAX))]
    match chance.pick(WAYS):
        case "arrival":
            add(*pulls)
            for _ in range(chance.integer(1, 2)):
                _put(draft, address)
                _deliver(draft)
        case "look":
            add(*pulls)
            _put(draft, address)
            _deliver(draft)
            add(LOOK)
        case "time":
            add(*pulls, AdvanceClock(chance.pick(TIMES_MS)))
            if chance.coin():
                _put(draft, address)
                _deliver(draft)
            add(LOOK)
        case "beside":
            _beside(draft, address, pulls)
        case "amid":
            _put(draft, address)
            _flush(draft)
            add(*pulls[1:], During(REPUT, chance.integer(1, ACTIONS_MAX), pulls[0]))
        case "end":
            add(*pulls, Shutdown() if chance.coin() else Restart(), Restart())
        case "crash":
            add(*pulls)
            _put(draft, address)
            _flush(draft)
            at_action = chance.integer(1, ACTIONS_MAX)
            add(During(REPUT, at_action, draft.drawn.crash()), Restart())
            _deliver(draft)
        case "progress":
            add(*pulls)
            _progress(draft, address)
            _put(draft, address)
            _deliver(draft)
            add(QueryOffset(pulls[0].group, *address))
        case "fault":
            add(*pulls)
            _put(draft, address)
            _flush(draft)
            at_action = chance.integer(1, ACTIONS_MAX)
            add(During(REPUT, at_action, draft.drawn.fault()))
            add(LOOK if chance.coin() else REPUT, REPUT)


def _pull(draft: Draft, address: Address) -> PullThroughBroker:
    chance, space = draft.chance, draft.space
    end = draft.drawn.whereabouts.counts[address]
    offset = max(0, end - chance.pick(BEHIND_THE_END))
    commit = -1 if chance.coin() else chance.number(space.progress_offsets)
    return PullThroughBroker(
        chance.pick(space.groups),
        *address,
        offset,
        chance.pick(space.pull_counts),
        commit,
        suspends=chance.pick(WAITS),
        tags=chance.pick(space.pull_tags),
    )


def _put(draft: Draft, address: Address) -> None:
    """A put, mostly to the queue of the pulls."""
    put = draft.drawn.put()
    if isinstance(put, PutMessage) and not draft.chance.one_in(4):
        drawn = Address(put.topic, put.queue_id)
        draft.drawn.whereabouts.counts[drawn] -= 1
        draft.drawn.whereabouts.counts[address] += 1
        put = replace(put, topic=address.topic, queue_id=address.queue_id)
    draft.add(put)


def _flush(draft: Draft) -> None:
    """Let what was put be dispatched, where that waits for a flush or a commit."""
    setup = draft.setup
    if setup.transient_store_pool:
        draft.add(AdvanceClock(1000), RunService("commit"))
    if setup.flush_mode == "SYNC_FLUSH":
        draft.add(RunService("flush_commit_log"))


def _deliver(draft: Draft) -> None:
    _flush(draft)
    draft.add(REPUT)


def _beside(draft: Draft, address: Address, pulls: list[PullThroughBroker]) -> None:
    """Pulls among what may wake them, all at the same time."""
    chance = draft.chance
    if chance.coin():
        draft.add(pulls.pop())
    _put(draft, address)
    _flush(draft)
    others = range(chance.integer(1, BESIDE_MAX - 1))
    ops = [*pulls, *[_other(draft, address, chance) for _ in others], REPUT]
    draft.add(Together(tuple(ops), draft.drawn.schedule(len(ops))))
    if chance.coin():
        draft.add(REPUT)


def _other(draft: Draft, address: Address, chance: Chance) -> Op:
    match chance.pick(BESIDE):
        case "pull":
            return _pull(draft, address)
        case "put":
            return draft.drawn.put()
        case "look":
            return LOOK
        case "stop":
            return Shutdown()
        case "commit":
            group = chance.pick(draft.space.groups)
            offset = chance.number(draft.space.progress_offsets)
            return CommitOffset(group, *address, offset)
        case _:
            return REPUT


def _progress(draft: Draft, address: Address) -> None:
    """A group that waits is reset, commits, or is asked."""
    chance, space = draft.chance, draft.space
    group = chance.pick(space.groups)
    offset = chance.number(space.progress_offsets)
    ops: tuple[Op, ...] = (
        ResetOffset(group, *address, offset),
        CommitOffset(group, *address, offset),
        TakeQueue(group, *address),
    )
    draft.add(chance.pick(ops))
