"""Simpler variants of ops and setups: what ``shrink`` tries, simplest first.

Every variant is simpler than its original in one fixed order (fewer parts, smaller
numbers, first names), so simplifying again and again comes to an end. No variant is
ever run here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, replace
from typing import Any, TypeGuard, TypeVar

from crashmq.models.ops import (
    ALL_TIME_MS,
    OP_CLASSES,
    AdvanceClock,
    Consume,
    Crash,
    Damage,
    DiskFault,
    During,
    Event,
    FillDisk,
    ForeignContent,
    LookMessage,
    Op,
    PlantFile,
    PullMessage,
    PutBatch,
    PutMessage,
    QueryMessage,
    RunService,
    Schedule,
    SearchOffset,
    SendMessage,
    Session,
    StartConsumer,
    Survivors,
    Together,
    TurnConsumer,
)
from crashmq.models.program import Program, Setup

FIRST_TOPIC = "T0"
_PLAIN: dict[str, Any] = {
    field.name: field.default
    for field in fields(PutMessage)
    if field.default is not MISSING
}

OneMessage = TypeVar("OneMessage", PutMessage, SendMessage)
OneCall = TypeVar("OneCall", PutMessage, SendMessage, PutBatch)
OnQueue = TypeVar("OnQueue", PutMessage, PutBatch, PullMessage, SearchOffset)


def unwrapped(op: Op) -> Iterator[Op]:
    """For a ``During``: its op alone, its event alone, then those of its parts."""
    if isinstance(op, Together):
        yield from op.ops
        yield from _without_one(op)
        yield from _shorter_sessions(op)
        return
    if isinstance(op, Session):
        yield from op.ops
        return
    if not isinstance(op, During):
        return
    yield op.op
    if is_op(op.event):
        yield op.event
    for inner in unwrapped(op.op):
        yield replace(op, op=inner)
    if is_op(op.event):
        for event in unwrapped(op.event):
            yield replace(op, event=event)


def _without_one(op: Together) -> Iterator[Together]:
    """Variants with one op fewer; the schedule uses the new numbers."""
    for gone in reversed(range(len(op.ops))):
        told = tuple(
            (point, who - (who > gone))
            for point, who in op.schedule.preemptions
            if who != gone
        )
        schedule = replace(op.schedule, preemptions=told)
        yield Together((*op.ops[:gone], *op.ops[gone + 1 :]), schedule)


def _shorter_sessions(op: Together) -> Iterator[Together]:
    """Variants with one op of one session fewer; a single op has no session."""
    for number, part in enumerate(op.ops):
        if not isinstance(part, Session):
            continue
        ops = part.ops
        shorter = [Session((*ops[:n], *ops[n + 1 :])) for n in range(len(ops))]
        for less in (*ops, *reversed(shorter)):
            yield replace(op, ops=(*op.ops[:number], less, *op.ops[number + 1 :]))


def with_turns_listed(op: Event, turns: tuple[tuple[int, int], ...]) -> Event:
    """The op with its schedule listed point by point, as it was run."""
    match op:
        case Together(ops, schedule):
            told = Schedule(preemptions=turns, grain=schedule.grain)
            return Together(ops, told)
        case During(inner, at_action, event):
            changed = with_turns_listed(inner, turns)
            assert is_op(changed), changed
            return During(changed, at_action, with_turns_listed(event, turns))
        case _:
            return op


def is_op(event: Event) -> TypeGuard[Op]:
    """Whether an event is an op of its own, so that it can stand alone."""
    return isinstance(event, OP_CLASSES)


def simpler_ops(op: Op) -> Iterator[Op]:
    """The same op with one argument simpler."""
    for event in _simpler(op):
        assert is_op(event), event
        yield event


_OF_WHAT_IS_FOUND = (
    "log_file_size",
    "queue_file_units",
    "index_slots",
    "index_entries",
)


def simpler_setups(setup: Setup) -> Iterator[Setup]:
    """Setups with more of the defaults: all at once, then one field at a time."""
    default = Setup()
    if setup != default:
        yield default
    for field in fields(Setup):
        value = getattr(default, field.name)
        is_kept = bool(setup.begins_with) and field.name in _OF_WHAT_IS_FOUND
        if getattr(setup, field.name) != value and not is_kept:
            yield replace(setup, **{field.name: value})


def simpler_everywhere(program: Program) -> Iterator[Program]:
    """Programs in which one kind of argument is simplest in every op at once."""
    for change in (_first_topic, _first_queue, _plain, _smallest_body, _once):
        ops = tuple(in_every_part(op, change) for op in program.ops)
        if ops != program.ops:
            yield replace(program, ops=ops)


def smaller_numbers(value: int, least: int) -> Iterator[int]:
    """``least``, then numbers ever closer to ``value``, which halve the distance."""
    step = value - least
    sign = 1 if step > 0 else -1
    step = abs(step)
    while step > 0:
        yield value - sign * step
        step //= 2


def _simpler(event: Event) -> Iterator[Event]:
    match event:
        case PutMessage():
            yield from _simpler_put(event)
        case PutBatch():
            yield from _simpler_batch(event)
        case SendMessage():
            yield from _simpler_send(event)
        case PullMessage(_, _, queue_offset, max_msg_nums):
            yield from _simpler_queue(event)
            if event.tags != "*":
                yield replace(event, tags="*")
            for offset in smaller_numbers(queue_offset, 0):
                yield replace(event, queue_offset=offset)
            for count in smaller_numbers(max_msg_nums, 1):
                yield replace(event, max_msg_nums=count)
        case LookMessage(phy_offset):
            for less in smaller_numbers(phy_offset, 0):
                yield replace(event, phy_offset=less)
        case SearchOffset(_, _, at_ms, boundary):
            yield from _simpler_queue(event)
            if boundary != "LOWER":
                yield replace(event, boundary="LOWER")
            for less in smaller_numbers(at_ms, 0):
                yield replace(event, at_ms=less)
        case QueryMessage():
            yield from _simpler_query(event)
        case RunService(_, times) | TurnConsumer(_, _, times):
            if isinstance(event, TurnConsumer) and event.lost:
                yield replace(event, lost=0)
            for fewer in smaller_numbers(times, 1):
                yield replace(event, times=fewer)
        case Consume():
            yield from _simpler_consume(event)
        case StartConsumer(batch=batch):
            for fewer in smaller_numbers(batch, 1):
                yield replace(event, batch=fewer)
        case AdvanceClock(ms):
            for less in smaller_numbers(ms, 1 if ms >= 0 else -1):
                yield replace(event, ms=less)
        case FillDisk(percent):
            for less in smaller_numbers(percent, 0):
                yield replace(event, percent=less)
        case During():
            yield from _simpler_during(event)
        case Together():
            yield from _simpler_together(event)
        case Session(ops):
            yield from _simpler_session(ops)
        case Crash():
            yield from _simpler_crash(event)
        case DiskFault():
            yield from _simpler_fault(event)
        case Damage():
            yield from _simpler_damage(event)
        case PlantFile():
            yield from _simpler_plant(event)


def _simpler_consume(event: Consume) -> Iterator[Consume]:
    if event.again:
        yield replace(event, again=0)
    if event.takes_ms:
        yield replace(event, takes_ms=0)
    for less in smaller_numbers(event.nth, 0):
        yield replace(event, nth=less)
    for fewer in smaller_numbers(event.times, 1):
        yield replace(event, times=fewer)


def _simpler_fault(event: DiskFault) -> Iterator[DiskFault]:
    if event.errno != "EIO":
        yield replace(event, errno="EIO")
    if event.lasts:
        yield replace(event, lasts=False)
    for survivors in _simpler_survivors(event.survivors):
        yield replace(event, survivors=survivors)
    for written in smaller_numbers(event.written, 0):
        yield replace(event, written=written)
    for after in smaller_numbers(event.after, 0):
        yield replace(event, after=after)
    for fewer in smaller_numbers(event.times, 1):
        yield replace(event, times=fewer)


def _simpler_put(op: PutMessage) -> Iterator[PutMessage]:
    yield from _simpler_queue(op)
    yield from _plainer(op)
    yield from _smaller(op)


def _simpler_send(op: SendMessage) -> Iterator[Op]:
    yield op.put
    yield from _plainer(op)
    for times in smaller_numbers(op.reconsume_times, 0):
        yield replace(op, reconsume_times=times)
    yield from _smaller(op)


def _plainer(op: OneCall) -> Iterator[OneCall]:
    """The op with one of its fields at its default."""
    for field in fields(op):
        plain = field.default
        if plain is not MISSING and getattr(op, field.name) != plain:
            yield replace(op, **{field.name: plain})


def _smaller(op: OneMessage) -> Iterator[OneMessage]:
    """The op with a smaller body."""
    for size in smaller_numbers(op.body_size, 1 if op.body_size else 0):
        yield replace(op, body_size=size)


def _simpler_batch(op: PutBatch) -> Iterator[Op]:
    """A single message is simpler than a batch of one, and that than one of two."""
    yield from _simpler_queue(op)
    if len(op.body_sizes) == 1:
        yield PutMessage(op.topic, op.queue_id, op.body_sizes[0])
    yield from _plainer(op)
    sizes = op.body_sizes
    for number, size in enumerate(sizes):
        yield replace(op, body_sizes=sizes[:number] + sizes[number + 1 :])
        for smaller in smaller_numbers(size, 1 if size else 0):
            changed = (*sizes[:number], smaller, *sizes[number + 1 :])
            yield replace(op, body_sizes=changed)


def _simpler_queue(op: OnQueue) -> Iterator[OnQueue]:
    if op.topic != FIRST_TOPIC:
        yield replace(op, topic=FIRST_TOPIC)
    for smaller in smaller_numbers(op.queue_id, 0):
        yield replace(op, queue_id=smaller)


def _simpler_query(op: QueryMessage) -> Iterator[QueryMessage]:
    if op.topic != FIRST_TOPIC:
        yield replace(op, topic=FIRST_TOPIC)
    if (op.begin_ms, op.end_ms) != (-ALL_TIME_MS, ALL_TIME_MS):
        yield replace(op, begin_ms=-ALL_TIME_MS, end_ms=ALL_TIME_MS)
    for count in smaller_numbers(op.max_num, 1):
        yield replace(op, max_num=count)


def _simpler_during(op: During) -> Iterator[During]:
    for inner in _simpler(op.op):
        assert is_op(inner), inner
        yield replace(op, op=inner)
    for event in _simpler(op.event):
        yield replace(op, event=event)
    for at_action in smaller_numbers(op.at_action, 1):
        yield replace(op, at_action=at_action)


def _simpler_together(op: Together) -> Iterator[Together]:
    """Fewer preemptions, then earlier ones; then simpler ops, one at a time."""
    for schedule in _simpler_schedules(op.schedule):
        yield replace(op, schedule=schedule)
    told = op.schedule.preemptions
    if told and told[0][0] == 1 and 0 < told[0][1] < len(op.ops):
        yield _begun_by(op, told[0][1])
    for number, part in enumerate(op.ops):
        for simpler in _simpler(part):
            assert is_op(simpler), simpler
            yield replace(op, ops=(*op.ops[:number], simpler, *op.ops[number + 1 :]))


def _simpler_session(ops: tuple[Op, ...]) -> Iterator[Op]:
    """The same caller with one op simpler."""
    for number, part in enumerate(ops):
        for simpler in _simpler(part):
            assert is_op(simpler), simpler
            yield Session((*ops[:number], simpler, *ops[number + 1 :]))


def _begun_by(op: Together, first: int) -> Together:
    """The same turns, with op ``first`` moved to the front, so that it runs first."""
    rest = [number for number in range(len(op.ops)) if number != first]
    new = {old: number for number, old in enumerate([first, *rest])}
    told = tuple((at, new.get(who, who)) for at, who in op.schedule.preemptions[1:])
    schedule = replace(op.schedule, preemptions=told)
    return Together(tuple([op.ops[old] for old in new]), schedule)


def _simpler_schedules(schedule: Schedule) -> Iterator[Schedule]:
    told = schedule.preemptions
    if schedule != Schedule():
        yield Schedule()
    if schedule.grain == "lines":
        yield replace(schedule, grain="calls")
    for number in reversed(range(len(told))):
        yield replace(schedule, preemptions=told[:number])
        fewer = (*told[:number], *told[number + 1 :])
        yield replace(schedule, preemptions=fewer)
    for depth in smaller_numbers(schedule.depth, 1):
        yield replace(schedule, depth=depth)
    for number, (point, who) in enumerate(told):
        least = told[number - 1][0] + 1 if number else 1
        for earlier in smaller_numbers(point, least):
            moved = (*told[:number], (earlier, who), *told[number + 1 :])
            yield replace(schedule, preemptions=moved)


def _simpler_crash(event: Crash) -> Iterator[Crash]:
    """A kill is simpler than a power loss; survivors none or all than a choice."""
    if event.kind == "power_loss":
        yield Crash("process_kill", cut=event.cut)
        for survivors in _simpler_survivors(event.survivors):
            yield replace(event, survivors=survivors)
    elif event.survivors != Survivors():
        yield replace(event, survivors=Survivors())
    for cut in smaller_numbers(event.cut, 0):
        yield replace(event, cut=cut)


def _simpler_survivors(survivors: Survivors) -> Iterator[Survivors]:
    ranks = ("none", "all", "prefix", "hashed", "units")
    rank = ranks.index(survivors.kind)
    if rank > 0 or survivors.number:
        yield Survivors("none")
    if rank > 1 or (rank == 1 and survivors.number):
        yield Survivors("all")
    if rank > 2:
        yield from (Survivors("prefix", number) for number in (1, 2, 3, 4, 6, 8, 12))
    for n, unit in enumerate(survivors.units):
        fewer = (*survivors.units[:n], *survivors.units[n + 1 :])
        yield replace(survivors, units=fewer)
        for version in smaller_numbers(unit.version, 1):
            lower = (*survivors.units[:n], unit._replace(version=version))
            yield replace(survivors, units=(*lower, *survivors.units[n + 1 :]))
    if rank >= 2:
        for number in smaller_numbers(survivors.number, 0):
            yield replace(survivors, number=number)


def _simpler_damage(op: Damage) -> Iterator[Damage]:
    if op.kind == "delete" and (op.at or op.size):
        yield replace(op, at=0, size=0)
    name, _, index = op.file.partition("[")
    if index and index not in ("0]", "-1]"):
        yield replace(op, file=f"{name}[0]")
        yield replace(op, file=f"{name}[-1]")
    for at in smaller_numbers(op.at, 0):
        yield replace(op, at=at)
    for size in smaller_numbers(op.size, 1 if op.size else 0):
        yield replace(op, size=size)


def _simpler_plant(op: PlantFile) -> Iterator[PlantFile]:
    """An empty file is simpler than zeros, those than garbage, that than a copy."""
    ranks: tuple[ForeignContent, ...] = ("empty", "directory", "zeros", "garbage")
    rank = (*ranks, "copy").index(op.content)
    for content in ranks[:rank]:
        yield replace(op, content=content, source="")
    if op.content in ("empty", "directory") and (op.size or op.source):
        yield replace(op, size=0, source="")
    for size in smaller_numbers(op.size, 0):
        yield replace(op, size=size)


def in_every_part(op: Op, change: Callable[[Event], Event]) -> Op:
    """The op with ``change``, which keeps an event's class, applied to each part."""
    changed = _changed(op, change)
    assert is_op(changed), changed
    return changed


def _changed(event: Event, change: Callable[[Event], Event]) -> Event:
    if isinstance(event, During):
        inner = in_every_part(event.op, change)
        return During(inner, event.at_action, _changed(event.event, change))
    if isinstance(event, Together | Session):
        ops = tuple([in_every_part(part, change) for part in event.ops])
        return replace(event, ops=ops)
    return change(event)


def _first_topic(event: Event) -> Event:
    if isinstance(
        event, PutMessage | PutBatch | PullMessage | SearchOffset | QueryMessage
    ):
        return replace(event, topic=FIRST_TOPIC)
    return event


def _first_queue(event: Event) -> Event:
    if isinstance(event, PutMessage | PutBatch | PullMessage | SearchOffset):
        return replace(event, queue_id=0)
    return event


def _plain(event: Event) -> Event:
    if isinstance(event, PutMessage):
        return replace(event, **_PLAIN)
    if isinstance(event, PutBatch):
        return PutBatch(event.topic, event.queue_id, event.body_sizes)
    return event


def _smallest_body(event: Event) -> Event:
    if isinstance(event, PutMessage):
        return replace(event, body_size=min(event.body_size, 1))
    if isinstance(event, PutBatch):
        return replace(event, body_sizes=tuple([min(n, 1) for n in event.body_sizes]))
    return event


def _once(event: Event) -> Event:
    match event:
        case RunService() | DiskFault():
            return replace(event, times=1)
        case AdvanceClock(ms):
            return AdvanceClock(1 if ms >= 0 else -1)
        case _:
            return event
