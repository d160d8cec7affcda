"""Phrases about consumer offsets, without running consumers.

Groups commit, query and are reset, and the broker persists their offsets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, TypeAlias

from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    ChangeTopic,
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
    SendMessage,
    Shutdown,
    TakeQueue,
    Together,
)
from crashmq.scenarios.programs.asking import SINCE_EVER, question
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.drawn_ops import STOCK
from crashmq.scenarios.programs.joining import RETRIES
from crashmq.scenarios.programs.outages import outage
from crashmq.scenarios.programs.persisting import PERSIST, write_at_once
from crashmq.scenarios.programs.space import Address, often

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
    "told",
    "first use",
    "at once",
    "outage",
]
WAYS: tuple[Way, ...] = often(
    *(("by itself", 6), ("beside", 2), ("amid", 2), ("crash", 6), ("fault", 2)),
    *(("first", 2), ("begin", 1), ("deletion", 3), ("lost tail", 3), ("told", 3)),
    *(("first use", 2), ("at once", 6), ("outage", 4)),
)
ASKED: tuple[type[ProgressOp], ...] = often(
    *((CommitOffset, 14), (QueryOffset, 4), (ResetOffset, 5), (TakeQueue, 5)),
    *((DeleteGroup, 1), (ConfigureGroup, 2), (CloneOffset, 3)),
    *((QueryLowestOffsets, 1), (CleanOffsets, 1), (AskBroker, 5)),
)
NOBODY: Final = "c0"
"""A client that has not joined."""
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
    Literal["alone", "beside", "amid", "crash", "fault", "meanwhile", "in vain"], ...
] = (
    *("alone", "beside", "amid", "crash", "fault"),
    *("meanwhile", "meanwhile", "meanwhile", "in vain", "in vain"),
)
RESET_POINTS = (1, 6)
"""Between these points a reset has chosen its offset, and is not set yet."""
COMMITTED_AT = (1, 16)
"""As COMMIT_POINTS, or earlier where the offset store knows the offset."""
AMID_A_REMOVAL = 30
FIRST_POINTS = 16
"""So many points a first use of a topic or group has until it is configured."""
NEW_TOPIC: Final = "N"
"""So begin topics that nobody consumes, and that are used once."""


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
        case "first use":
            _use_first(draft)
        case "at once":
            write_at_once(draft)
        case "outage" if draft.space.faults:
            outage(draft)
        case "told":
            _tell_of_a_reset(draft)
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
        case "meanwhile":
            _remove_beside(draft, op, address)
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


def _remove_beside(draft: Draft, deletion: DeleteTopic, address: Address) -> None:
    """Add ops: a queue is deleted while another request about its offsets stands still.

    That goes on once the deletion has ended, or amid it.
    """
    chance, add, group = draft.chance, draft.add, draft.chance.pick(draft.space.groups)
    add(draft.drawn.stock(address), RunService("reput"))
    end = max(1, draft.drawn.whereabouts.counts[address])
    add(CommitOffset(group, *address, chance.integer(1, end)))
    offset = chance.integer(1, end)
    others: tuple[tuple[Op, tuple[int, int]], ...] = (
        (ResetOffset(group, *address, offset), RESET_POINTS),
        (ResetOffset(group, *address, 0, "end"), RESET_POINTS),
        (CommitOffset(group, *address, end), COMMITTED_AT),
        (PullThroughBroker(group, *address, end, 32, end), COMMITTED_AT),
        (PERSIST, RESET_POINTS),
    )
    other, points = chance.pick(others)
    again = (draft.drawn.stock(address),) if chance.one_in(3) else ()
    point = chance.integer(*points)
    preemptions = [(point, 1)]
    if chance.coin():
        preemptions.append((point + chance.integer(1, AMID_A_REMOVAL), 0))
    ops: tuple[Op, ...] = (other, deletion, *again)
    add(Together(ops, Schedule(preemptions=(*preemptions,))))
    if chance.coin():
        add(QueryOffset(group, *address))
    else:  # from what the file has of it
        add(During(QueryOffset(group, *address), 1, draft.drawn.crash()), Restart())


def _use_first(draft: Draft) -> None:
    """Add ops: a topic or group is used for the first time as it is configured."""
    chance, add, address = draft.chance, draft.add, _address(draft)
    if chance.coin():
        topic = f"{NEW_TOPIC}{len(draft.ops)}"
        asks = chance.pick((8, 8, 4, -1))
        sent = SendMessage(topic, chance.integer(0, 7), 1, asks_queues=asks)
        uses: Op = sent
        configures: Op = ChangeTopic(topic, *chance.pick(((9, 8), (8, 1), (12, 9))))
        if chance.one_in(3):
            configures = replace(sent, asks_queues=chance.pick((8, 4)))
    else:
        group = chance.pick(draft.space.groups)
        uses = PullThroughBroker(group, *address, 0, suspends=False)
        configures = ConfigureGroup(group, chance.pick(RETRIES), chance.pick(MINUTES))
        add(DeleteGroup(group))
    point = chance.integer(1, FIRST_POINTS)
    add(Together((uses, configures), Schedule(preemptions=((point, 1),))))
    if chance.coin():
        add(Restart())


def _tell_of_a_reset(draft: Draft) -> None:
    """Add ops: a pull is told of a reset, and requests come that do not follow it."""
    chance, add, group = draft.chance, draft.add, draft.chance.pick(draft.space.groups)
    address = _address(draft)
    add(draft.drawn.stock(address), RunService("reput"))
    end = max(1, draft.drawn.whereabouts.counts[address])
    add(CommitOffset(group, *address, chance.integer(0, end)))
    reset = ResetOffset(group, *address, chance.pick((0, end, chance.integer(0, end))))
    add(reset, PullThroughBroker(group, *address, end, suspends=chance.coin()))
    for _ in range(chance.integer(1, 2)):
        offset = chance.integer(0, end)
        others: tuple[Op, ...] = (
            *(CommitOffset(group, *address, offset), QueryOffset(group, *address)),
            PullThroughBroker(group, *address, end, 32, offset, suspends=False),
            CloneOffset(chance.pick(draft.space.groups), group, address.topic),
            *(replace(reset, offset=offset), PERSIST, INTERVAL),
        )
        add(chance.pick((others[0], *others)))
    add(QueryOffset(group, *address))


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
