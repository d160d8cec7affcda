"""Consuming: phrases in which groups commit, ask, are reset, and offsets are kept."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from crashmq.models.ops import (
    AdvanceClock,
    CommitOffset,
    During,
    FromWhere,
    Op,
    ProgressOp,
    QueryOffset,
    ResetOffset,
    Restart,
    RunService,
    Shutdown,
    TakeQueue,
    Together,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.space import often

PERSIST: Final = RunService("persist_consumer_offset")
INTERVAL: Final = AdvanceClock(5000)
THOROUGH: Final = AdvanceClock(10_000)
RESTOCKED = 6
"""One phrase of so many begins with more messages to consume."""
ACTIONS_MAX = 14
"""So many disk actions a persist makes at most, and a stop or start at first."""

Way: TypeAlias = Literal["by itself", "beside", "amid", "crash", "fault"]
WAYS: tuple[Way, ...] = often(
    ("by itself", 6), ("beside", 2), ("amid", 2), ("crash", 6), ("fault", 2)
)
ASKED: tuple[type[ProgressOp], ...] = often(
    (CommitOffset, 6), (QueryOffset, 2), (ResetOffset, 2), (TakeQueue, 2)
)
CUT: tuple[Op, ...] = often((PERSIST, 5), (Shutdown(), 2), (Restart(), 2))
BEGINNINGS: tuple[FromWhere, ...] = ("last", "first")
COMMITS_MAX = 4


def progress(draft: Draft) -> None:
    """Some requests, and a persist that is let be or not."""
    chance, add = draft.chance, draft.add
    if not draft.drawn.whereabouts.counts or chance.one_in(RESTOCKED):
        _stock(draft)
    for _ in range(chance.integer(1, COMMITS_MAX)):
        add(_request(draft))
    match chance.pick(WAYS):
        case "by itself":
            if chance.coin():
                add(INTERVAL, PERSIST)
        case "beside":
            other = PERSIST if chance.coin() else _request(draft)
            ops = (_request(draft), _request(draft), other)
            add(Together(ops, draft.drawn.schedule(len(ops))))
        case "amid":
            add(During(PERSIST, chance.integer(1, ACTIONS_MAX), _request(draft)))
        case "crash":
            if chance.coin():
                add(PERSIST, _request(draft))
            _cut_short(draft)
            if chance.coin():
                _cut_short(draft)
            add(Restart(), _request(draft))
        case "fault":
            fault = draft.drawn.fault()
            add(During(PERSIST, chance.integer(1, ACTIONS_MAX), fault))
            if chance.coin():
                add(PERSIST)


def _stock(draft: Draft) -> None:
    """Messages to consume, which are durable then or not."""
    draft.add(draft.drawn.stock())
    if draft.chance.coin():
        draft.add(THOROUGH, RunService("flush_commit_log"))


def _cut_short(draft: Draft) -> None:
    """A crash amid a persist, by itself or in a stop, or amid a start."""
    at_action = draft.chance.integer(1, ACTIONS_MAX)
    draft.add(During(draft.chance.pick(CUT), at_action, draft.drawn.crash()))


def _request(draft: Draft) -> ProgressOp:
    chance, space = draft.chance, draft.space
    kind = chance.pick(ASKED)
    group, address = chance.pick(space.groups), chance.pick(space.addresses)
    offset = chance.number(space.progress_offsets)
    if chance.coin():  # counted from the queue's end
        offset = max(0, draft.drawn.whereabouts.counts[address] - offset)
    if kind is CommitOffset:
        return CommitOffset(group, *address, offset)
    if kind is ResetOffset:
        return ResetOffset(group, *address, offset)
    if kind is QueryOffset:
        return QueryOffset(group, *address)
    return TakeQueue(group, *address, chance.pick(BEGINNINGS))
