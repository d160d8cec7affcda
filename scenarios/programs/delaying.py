"""Phrases in which messages wait, become due, and are delivered or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, TypeAlias

from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.limits import QUEUES_OF_A_TOPIC
from crashmq.models.messages import FILLER_SIZE_MIN, PROP_CRC_SIZE, message_for
from crashmq.models.ops import (
    AdvanceClock,
    ChangeTopic,
    DeleteTopic,
    DiskFault,
    During,
    Op,
    PullMessage,
    PullThroughBroker,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.drawn_ops import fault_by
from crashmq.scenarios.programs.space import Address, Space, often

DELIVER: Final = RunService("deliver_delayed")
PERSIST: Final = RunService("persist_delay_offset")
REPUT: Final = RunService("reput")
FLUSH: Final = RunService("flush_commit_log")
ACTIONS_MAX = 14
"""So many disk actions a persist makes at most, and a few deliveries."""
MESSAGES_MAX = 4
QUEUES: Final = (8, 9, 12)
"""Of a topic that is changed."""
LEVELS = 3
"""So many levels have messages that are due where one of them cannot be read."""
LARGE = 8
"""Of so many delayed messages one is as large as its log file lets it be."""
BEYOND = (0, 1, PROP_CRC_SIZE, PROP_CRC_SIZE + 1, PROP_CRC_SIZE + 40)

Way: TypeAlias = Literal[
    "by itself", "beside", "amid", "crash", "fault", "unread", "set back", "gone"
]
WAYS: tuple[Way, ...] = often(
    ("by itself", 6),
    ("beside", 2),
    ("amid", 2),
    ("crash", 6),
    ("fault", 3),
    ("unread", 2),
    ("set back", 1),
    ("gone", 3),
)
BEFORE_OR_AFTER_MS = (0, 0, 0, -1, 1, 100, -500)
CUT: tuple[Op, ...] = often(
    (DELIVER, 4), (PERSIST, 4), (Shutdown(), 2), (Restart(), 2), (FLUSH, 1)
)
AMID: tuple[Op, ...] = often((PERSIST, 3), (REPUT, 1), (FLUSH, 2), (AdvanceClock(1), 1))


def delay(draft: Draft) -> None:
    """Add ops: some delayed messages, and a round that delivers those due."""
    chance, add = draft.chance, draft.add
    level = chance.pick(draft.space.delay_levels)
    way = chance.pick(WAYS)
    if way == "unread":
        _one_level_unread(draft)
        return
    if way == "gone":
        _topic_goes(draft, level)
        return
    for _ in range(chance.integer(1, MESSAGES_MAX)):
        add(_delayed(draft, level))
    if chance.coin():
        add(FLUSH)
    add(REPUT)
    add(AdvanceClock(draft.delay_ms(level) + chance.pick(BEFORE_OR_AFTER_MS)))
    match way:
        case "by itself":
            add(DELIVER)
            _settle(draft)
        case "beside":
            others = (_delayed(draft, level), PERSIST, REPUT, Shutdown())
            ops = (DELIVER, chance.pick(others), chance.pick(others))
            add(draft.drawn.together(ops))
            if Shutdown() in ops:
                add(Restart(), DELIVER)
        case "amid":
            event = chance.pick((*AMID, _delayed(draft, level)))
            add(During(DELIVER, chance.integer(1, ACTIONS_MAX), event))
        case "crash":
            if chance.coin():
                add(DELIVER)
                _settle(draft)
            _cut_short(draft)
            if chance.coin():
                _cut_short(draft)
            add(Restart(), REPUT, DELIVER)
        case "fault":
            if chance.coin():
                fault = fault_by(chance, _faults_on(draft.space, "commitlog"))
                add(During(DELIVER, chance.integer(1, 2), fault), DELIVER)
            else:
                fault = fault_by(chance, _faults_on(draft.space, "config"))
                at_action = chance.integer(1, ACTIONS_MAX)
                add(DELIVER, During(PERSIST, at_action, fault))
            if chance.coin():
                add(PERSIST)
        case "set back":
            most_ms = max(1, 3 * draft.delay_ms(level))
            add(AdvanceClock(-chance.integer(1, most_ms)), DELIVER)


def _one_level_unread(draft: Draft) -> None:
    """Add ops: messages of several levels are due, and one level cannot be read."""
    chance, add = draft.chance, draft.add
    levels = sorted({*draft.space.delay_levels})[:LEVELS]
    for level in levels:
        for _ in range(chance.integer(1, 2)):
            put = draft.drawn.put()
            if isinstance(put, PutMessage):
                add(replace(put, delay_level=level))
    add(REPUT, AdvanceClock(max([draft.delay_ms(level) for level in levels])))
    queue = f"consumequeue/{SCHEDULE_TOPIC}/{chance.pick(tuple(levels)) - 1}/"
    add(During(DELIVER, 1, DiskFault("read", "EIO", path=queue, lasts=True)))
    if chance.coin():
        add(DELIVER)


def _topic_goes(draft: Draft, level: int) -> None:
    """Add ops: messages fall due whose topic is gone, or has changed, meanwhile.

    They lie in any of its queues; then these are pulled.
    """
    chance, add, setup = draft.chance, draft.add, draft.setup
    its_own = (SCHEDULE_TOPIC, "%")
    can_go = [one for one in draft.space.addresses if not one[0].startswith(its_own)]
    topic = chance.pick(can_go or [Address("T0", 0)]).topic
    queues = [chance.below(QUEUES_OF_A_TOPIC) for _ in range(chance.integer(1, 3))]
    for queue_id in queues:
        put = draft.drawn.put_into(Address(topic, queue_id))
        if isinstance(put, PutMessage):
            add(replace(put, delay_level=level))
    if chance.coin():
        add(FLUSH)
    add(REPUT)
    changes = ChangeTopic(topic, chance.pick(QUEUES), chance.pick(QUEUES))
    goes: tuple[Op, ...] = often(
        (DeleteTopic(topic), 5), (DeleteTopic(topic, queues[0]), 1)
    )
    # Where nobody keeps offsets, no topic can be changed by an administrator.
    add(chance.pick((*goes, changes) if setup.keeps_progress else goes))
    if chance.one_in(3):  # somebody is the first to use it again
        add(draft.drawn.put_into(Address(topic, queues[-1])))
    add(AdvanceClock(draft.delay_ms(level)))
    add(draft.drawn.together((DELIVER, PERSIST)) if chance.one_in(4) else DELIVER)
    if chance.one_in(4):
        add(Restart())
    add(REPUT)
    for queue_id in queues:
        if setup.keeps_progress and draft.space.groups:
            group = chance.pick(draft.space.groups)
            add(PullThroughBroker(group, topic, queue_id, 0, suspends=chance.coin()))
        else:
            add(PullMessage(topic, queue_id, 0))


def _faults_on(space: Space, part: str) -> tuple[DiskFault, ...]:
    """The faults of calls on one part of the store; if it has none, all faults."""
    of_part = tuple([fault for fault in space.faults if fault.path == part])
    return of_part or space.faults


def _settle(draft: Draft) -> None:
    """Add ops: make deliveries durable, and persist the offsets, in either order."""
    chance, add = draft.chance, draft.add
    if chance.coin():
        if chance.coin():
            add(FLUSH)
        add(PERSIST)
        if chance.coin():
            add(FLUSH)


def _cut_short(draft: Draft) -> None:
    """Add ops: a crash during a delivery, a persist, a stop or a start."""
    at_action = draft.chance.integer(1, ACTIONS_MAX)
    draft.add(During(draft.chance.pick(CUT), at_action, draft.drawn.crash()))


def _delayed(draft: Draft, level: int) -> Op:
    """A put with that delay level, or one near it."""
    put = draft.drawn.put()
    if not isinstance(put, PutMessage):
        return put
    other = draft.chance.pick(draft.space.delay_levels)
    chosen = level if draft.chance.integer(0, 3) else other
    delayed = replace(put, delay_level=chosen)
    return (
        _as_large_as_can_be(draft, delayed) if draft.chance.one_in(LARGE) else delayed
    )


def _as_large_as_can_be(draft: Draft, put: PutMessage) -> Op:
    """A put whose delivered record just fits a log file, or just does not."""
    # The longest name tells best a record from what it becomes when it is delivered.
    address = max(draft.space.addresses, key=lambda one: len(one.topic))
    put = replace(put, topic=address.topic, queue_id=address.queue_id)
    empty = message_for(replace(put, body_size=0), 0, 0, 0)
    empty = empty.scheduled(draft.setup.delay_levels)
    if not empty.real_topic:
        return put
    room = draft.setup.log_file_size - FILLER_SIZE_MIN - PROP_CRC_SIZE
    body_size = room - empty.delivered().record_size + draft.chance.pick(BEYOND)
    return replace(put, body_size=max(0, body_size))
