"""Phrases about consumer offsets, without running consumers.

Groups commit, query and are reset, and the broker persists their offsets.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    CleanOffsets,
    CloneOffset,
    CommitOffset,
    ConfigureGroup,
    DeleteGroup,
    DeleteTopic,
    During,
    FromWhere,
    Op,
    ProgressOp,
    PullThroughBroker,
    QueryLowestOffsets,
    QueryOffset,
    ResetOffset,
    ResetTarget,
    Restart,
    RunService,
    Schedule,
    Shutdown,
    TakeQueue,
    Together,
)
from crashmq.scenarios.programs.asking import SINCE_EVER, question
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.drawn_ops import STOCK
from crashmq.scenarios.programs.space import Address, often

PERSIST: Final = RunService("persist_consumer_offset")
INTERVAL: Final = AdvanceClock(5000)
THOROUGH: Final = AdvanceClock(10_000)
RESTOCKED = 6
"""One phrase of so many begins with more messages to consume."""
REFUSED = 12
"""One deletion of a topic in so many asks for the broker's own, which it keeps."""
ACTIONS_MAX = 14
"""So many disk actions a persist makes at most, and a stop or start at first."""

Way: TypeAlias = Literal[
    "by itself",
    "beside",
    "amid",
    "crash",
    "fault",
    "first",
    "begin",
    "deletion",
    "lost tail",
]
WAYS: tuple[Way, ...] = often(
    *(("by itself", 6), ("beside", 2), ("amid", 2), ("crash", 6), ("fault", 2)),
    *(("first", 2), ("begin", 1), ("deletion", 3), ("lost tail", 3)),
)
ASKED: tuple[type[ProgressOp], ...] = often(
    *((CommitOffset, 14), (QueryOffset, 4), (ResetOffset, 5), (TakeQueue, 5)),
    *((DeleteGroup, 1), (ConfigureGroup, 2), (CloneOffset, 3)),
    *((QueryLowestOffsets, 1), (CleanOffsets, 1), (AskBroker, 5)),
)
NOBODY: Final = "c0"
"""A client that has not joined."""
RETRIES: tuple[int, ...] = (16, 0, 1, 3)
MINUTES: tuple[int, ...] = (15, 1)
"""Of a group that is configured: the defaults and others."""
BARRED: Final = 4
"""One of so many configurations bars the group from consuming."""
RESET_TO: tuple[ResetTarget, ...] = often(("offset", 3), ("end", 1), ("time", 2))
CUT: tuple[Op, ...] = often((PERSIST, 5), (Shutdown(), 2), (Restart(), 2))
BEGINNINGS: tuple[FromWhere, ...] = ("last", "first", "timestamp")
TIMES_MS: tuple[int, ...] = (
    *(0, 1, 5_000, 10_000, 10_001, 30_000, -1, 1_000_000, SINCE_EVER),
)
COMMITS_MAX = 4
COMMIT_POINTS = (6, 16)
"""Between these points a commit reaches the table, once it has asked the broker."""

FIRST_TIMES = 3
"""So often in a row a group commits for the first time."""
DELETED_BY: tuple[
    Literal["alone", "beside", "amid", "crash", "fault", "reset", "in vain"], ...
] = ("alone", "beside", "amid", "crash", "fault", "reset", "in vain", "in vain")
RESET_POINTS = (1, 6)
"""Between these points a reset has chosen its offset, and is not set yet."""


def progress(draft: Draft) -> None:
    """Add ops: some requests about offsets, and perhaps a persist."""
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
            add(draft.drawn.together(ops))
        case "amid":
            add(During(PERSIST, chance.integer(1, ACTIONS_MAX), _request(draft)))
        case "crash":
            if chance.coin():
                add(PERSIST, _request(draft))
            _cut_short(draft)
            if chance.coin():
                _cut_short(draft)
            add(Restart(), _request(draft))
        case "first":
            _commit_first(draft)
        case "begin":
            _begin_anew(draft)
        case "deletion":
            _delete(draft)
        case "lost tail":
            _lose_the_tail(draft)
        case "fault":
            fault = draft.drawn.fault()
            add(During(PERSIST, chance.integer(1, ACTIONS_MAX), fault))
            if chance.coin():
                add(PERSIST)


def _stock(draft: Draft) -> None:
    """Add ops: messages to consume, durable or not."""
    draft.add(draft.drawn.stock())
    if draft.chance.coin():
        draft.add(THOROUGH, RunService("flush_commit_log"))


def _cut_short(draft: Draft) -> None:
    """Add ops: a crash during a persist, also of a stop, or during a start."""
    at_action = draft.chance.integer(1, ACTIONS_MAX)
    draft.add(During(draft.chance.pick(CUT), at_action, draft.drawn.crash()))


def _commit_first(draft: Draft) -> None:
    """Add ops: the first commits of a group on a topic, on two queues at once."""
    group, address = draft.chance.pick(draft.space.groups), _address(draft)
    for _ in range(FIRST_TIMES):
        ops = [
            CommitOffset(group, address.topic, queue_id, draft.chance.integer(0, 1))
            for queue_id in (0, 1)
        ]
        point = draft.chance.integer(*COMMIT_POINTS)
        together = Together((*ops,), Schedule(preemptions=((point, 1),)))
        draft.add(DeleteGroup(group), together)
        draft.add(QueryOffset(group, address.topic, 0))
        draft.add(QueryOffset(group, address.topic, 1))


def _begin_anew(draft: Draft) -> None:
    """Add ops: a group without an offset is assigned a queue with messages."""
    group, address = draft.chance.pick(draft.space.groups), _address(draft)
    draft.add(DeleteGroup(group), INTERVAL, draft.drawn.stock(address))
    draft.add(RunService("reput"), _taken(draft, group, address))


def _taken(draft: Draft, group: str, address: Address) -> TakeQueue:
    where = draft.chance.pick(BEGINNINGS)
    at_ms = draft.chance.pick(TIMES_MS) if where == "timestamp" else 0
    return TakeQueue(group, *address, where, at_ms)


def _lose_the_tail(draft: Draft) -> None:
    """Add ops: a group commits past messages that a crash may take."""
    group, address = draft.chance.pick(draft.space.groups), _address(draft)
    draft.add(draft.drawn.stock(address))
    end = draft.drawn.whereabouts.counts[address]
    if draft.chance.coin():  # less may be there than was put
        end = draft.chance.integer(1, STOCK[0])
    draft.add(CommitOffset(group, *address, end), PERSIST)
    asked = QueryOffset(group, *address)
    draft.add(During(asked, 1, draft.drawn.crash()), Restart())
    if draft.chance.coin():
        draft.add(draft.drawn.stock(address), asked)


def _delete(draft: Draft) -> None:
    """Add ops: a topic or queue is deleted, perhaps interrupted or beside a commit.

    It is created again afterwards.
    """
    chance, address = draft.chance, _address(draft)
    topic, queue_id = address.topic, address.queue_id if chance.coin() else -1
    if queue_id < 0 and chance.one_in(REFUSED):
        topic = SCHEDULE_TOPIC
    op = DeleteTopic(topic, queue_id)
    match chance.pick(DELETED_BY):
        case "alone":
            draft.add(op)
        case "beside":
            ops: tuple[Op, ...] = (op, _request(draft))
            if chance.coin():
                ops = ops[::-1]
            draft.add(draft.drawn.together(ops))
        case "amid":
            at_action = chance.integer(1, ACTIONS_MAX)
            draft.add(During(op, at_action, _request(draft)))
        case "crash":
            at_action = chance.integer(1, 2 * ACTIONS_MAX)
            draft.add(During(op, at_action, draft.drawn.crash()), Restart())
        case "fault":
            at_action = chance.integer(1, ACTIONS_MAX)
            draft.add(During(op, at_action, draft.drawn.fault()))
        case "reset":
            _reset_beside(draft, op, address)
        case "in vain":
            _remove_in_vain(draft, op, address)
    if chance.coin():
        _stock(draft)


def _remove_in_vain(draft: Draft, deletion: DeleteTopic, address: Address) -> None:
    """Add ops: a group is reset, its offset cannot be removed, and it pulls then."""
    chance, add, group = draft.chance, draft.add, draft.chance.pick(draft.space.groups)
    add(draft.drawn.stock(address), RunService("reput"))
    end = max(1, draft.drawn.whereabouts.counts[address])
    add(CommitOffset(group, *address, chance.integer(0, end)))
    if chance.coin():
        add(PERSIST)
    add(ResetOffset(group, *address, chance.integer(0, end)))
    removal: Op = deletion if chance.coin() else CleanOffsets(address.topic)
    add(During(removal, chance.integer(1, ACTIONS_MAX), draft.drawn.fault()))
    add(PullThroughBroker(group, *address, end, suspends=chance.coin()))
    add(QueryOffset(group, *address))


def _reset_beside(draft: Draft, deletion: DeleteTopic, address: Address) -> None:
    """Add ops: a group is reset while its queue is deleted, and perhaps refilled."""
    chance, group = draft.chance, draft.chance.pick(draft.space.groups)
    draft.add(draft.drawn.stock(address), RunService("reput"))
    end = max(1, draft.drawn.whereabouts.counts[address])
    reset = ResetOffset(group, *address, chance.integer(1, end))
    if chance.coin():
        reset = ResetOffset(group, *address, 0, "end")
    again = (draft.drawn.stock(address),) if chance.one_in(3) else ()
    ops: tuple[Op, ...] = (reset, deletion, *again)
    point = chance.integer(*RESET_POINTS)
    draft.add(Together(ops, Schedule(preemptions=((point, 1),))))
    draft.add(QueryOffset(group, *address))


def _address(draft: Draft) -> Address:
    return draft.chance.pick(draft.space.addresses)


def _request(draft: Draft) -> ProgressOp:
    chance, space = draft.chance, draft.space
    kind = chance.pick(ASKED)
    group, address = chance.pick(space.groups), chance.pick(space.addresses)
    offset = chance.number(space.progress_offsets)
    if chance.coin():  # counted from the queue's end
        offset = max(0, draft.drawn.whereabouts.counts[address] - offset)
    if kind is CommitOffset:
        return CommitOffset(group, *address, offset)
    if kind is DeleteGroup:
        return DeleteGroup(group)
    if kind is ConfigureGroup:
        numbers = chance.pick(RETRIES), chance.pick(MINUTES)
        may = not chance.one_in(BARRED), chance.coin(), not chance.one_in(BARRED)
        return ConfigureGroup(group, *numbers, *may)
    if kind is CloneOffset:
        return CloneOffset(group, chance.pick(space.groups), address.topic)
    if kind is CleanOffsets:
        return CleanOffsets(address.topic)
    if kind is AskBroker:
        return question(draft, group, NOBODY, address)
    if kind is QueryLowestOffsets:
        return QueryLowestOffsets(group, address.topic)
    if kind is ResetOffset:
        to = chance.pick(RESET_TO)
        at = chance.pick(TIMES_MS) if to == "time" else max(0, offset)
        return ResetOffset(group, *address, at, to)
    if kind is QueryOffset:
        return QueryOffset(group, *address)
    return _taken(draft, group, address)
