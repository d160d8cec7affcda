"""Phrases in which one activity begins during another, or together with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from crashmq.models.ops import (
    AdvanceClock,
    During,
    LookMessage,
    Op,
    PullMessage,
    PutMessage,
    QueryMessage,
    Restart,
    RunService,
    SearchOffset,
    ServiceName,
    Shutdown,
    Together,
    all_parts,
)
from crashmq.scenarios.programs.ageing import age, clean_now, wait
from crashmq.scenarios.programs.crashing import crash_during, crowded, interrupted
from crashmq.scenarios.programs.draft import THOROUGH_MS, Draft
from crashmq.scenarios.programs.space import often

MEETINGS: tuple[tuple[ServiceName, ServiceName | None], ...] = (
    ("flush_consume_queue", "reput"),
    ("flush_commit_log", None),
    ("checkpoint", "flush_consume_queue"),
    ("flush_index", "reput"),
    ("checkpoint", "flush_commit_log"),
)
"""Who makes durable, and who writes meanwhile; None: a put."""

OF_BUFFERS: tuple[tuple[ServiceName, ServiceName | None], ...] = (
    *(("commit", None),) * 2,
    ("commit", "flush_commit_log"),
)
"""The same where puts go to a write buffer first."""

ACTIONS_OF_A_FLUSH = 4  # the writer comes in at one of the first
MADE_TO_MEET = 4  # one interleaving of so many is a flush that meets a writer
LATER = 4  # before one of so many time passes, or all that meets has one time
CLEANED_FILES = 3  # at most
FINDING = 3  # of so many one has a read of what was dispatched right before
LONGER = 3  # of so many one has a caller who goes on after its first op
AMID_A_STOP = 8  # one of so many has a put, round or read amid a stop, or after it
CLEANED = 2  # of so many that have aged, one has lost the log's old files before

Trouble = Literal["crash", "fault", "none"]
TROUBLES: tuple[Trouble, ...] = often(("crash", 1), ("fault", 1), ("none", 6))
"""What steps in amid ops that begin at the same time, where the space has it."""


def interleave(draft: Draft) -> None:
    """Add an op during which a service runs, a caller comes, or time passes."""
    chance, drawn = draft.chance, draft.drawn
    if chance.one_in(MADE_TO_MEET):
        _meet(draft)
        return
    event = _interleaved(draft)
    if draft.space.query_keys and chance.coin():
        event = drawn.query()
    if chance.one_in(LATER):
        wait(draft)
    draft.add(During(*crowded(draft, *interrupted(draft)), event))
    if isinstance(event, Shutdown):
        draft.add(Restart())
    elif chance.coin():
        draft.add(RunService("checkpoint"))  # it says what came of both


def _interleaved(draft: Draft) -> Op:
    chance, drawn = draft.chance, draft.drawn
    match chance.pick(draft.space.interleaved):
        case "service":
            return drawn.service()
        case "put":
            return drawn.put_at_the_end() if chance.coin() else drawn.put()
        case "pull":
            return drawn.pull()
        case "shutdown":
            return Shutdown()
        case "stall":
            return AdvanceClock(chance.number(draft.space.stalls_ms))


def _meet(draft: Draft) -> None:
    """Add ops: data comes during a round that syncs; then a checkpoint."""
    drawn = draft.drawn
    is_buffered = draft.setup.transient_store_pool and draft.chance.coin()
    service, writer = draft.chance.pick(OF_BUFFERS if is_buffered else MEETINGS)
    draft.add(drawn.put(), RunService("reput"), drawn.put())
    draft.add(AdvanceClock(THOROUGH_MS), RunService("flush_commit_log"))
    event = RunService(writer) if writer else drawn.put_at_the_end()
    at_action = draft.chance.integer(1, ACTIONS_OF_A_FLUSH)
    draft.add(During(RunService(service), at_action, event))
    if service in ("flush_commit_log", "commit"):
        draft.add(RunService(service))
    draft.add(RunService("reput" if service == "commit" else "checkpoint"))


def together(draft: Draft) -> None:
    """Add ops that begin at once, perhaps with a crash and the start after it."""
    space, chance = draft.space, draft.chance
    count = chance.pick(space.together_counts)
    is_aged = "expire" in space.kinds and chance.coin()
    if is_aged:
        age(draft)
    parts = _parts(draft, count, is_aged=is_aged)
    if chance.one_in(AMID_A_STOP):
        parts[:2] = (_amid_a_stop(draft), Shutdown())
    elif chance.one_in(FINDING):
        parts[chance.below(len(parts))] = _finds_what_is_there(draft)
    if chance.one_in(LONGER):
        at = chance.below(len(parts))
        parts[at] = draft.drawn.longer(parts[at])
    _begun_at_once(draft, draft.drawn.together(parts))
    if any(isinstance(one, Shutdown) for part in parts for one in all_parts(part)):
        draft.add(Restart())
    elif is_aged:
        # What others kept from going has to go now.
        clean_now(draft)


def _finds_what_is_there(draft: Draft) -> Op:
    """Add a put and its dispatch; returns a read that finds it, if there is one."""
    chance, drawn, space = draft.chance, draft.drawn, draft.space
    put = drawn.put()
    assert isinstance(put, PutMessage), put
    reads: dict[str, Op] = {
        "pull": PullMessage(put.topic, put.queue_id, 0),
        "look": LookMessage(0),
        "search": SearchOffset(put.topic, put.queue_id, 0),
    }
    if space.query_keys and draft.setup.has_index:
        put = replace(put, keys=chance.pick(space.query_keys))
        reads["query"] = QueryMessage(put.topic, put.keys)
    draft.add(put, RunService("flush_commit_log"), RunService("reput"))
    kinds = [kind for kind in reads if kind in space.together]
    if "query" in kinds and chance.coin():
        return reads["query"]
    return reads[chance.pick(tuple(kinds))] if kinds else drawn.part()


def _parts(draft: Draft, count: int, *, is_aged: bool) -> list[Op]:
    """The ops that begin together; with a cleaner if files have aged."""
    chance, drawn = draft.chance, draft.drawn
    kinds = [chance.pick(draft.space.together) for _ in range(count)]
    parts = [drawn.part_of(kind) for kind in kinds]
    if not is_aged:
        return parts
    if chance.one_in(CLEANED):  # what led to them goes now
        draft.add(RunService("clean_commit_log", CLEANED_FILES))
        parts[chance.below(count)] = RunService("clean_consume_queue")
        return parts
    parts[chance.below(count)] = RunService("clean_commit_log")
    if chance.coin():  # the queues' files go with the log's
        parts.append(RunService("clean_consume_queue"))
    return parts


def _amid_a_stop(draft: Draft) -> Op:
    """What meets a stop: a put, a round, or a read that has something to find."""
    company = draft.chance.below(3)
    if company == 0:
        return _finds_what_is_there(draft)
    return draft.drawn.put() if company == 1 else draft.drawn.round()


def _begun_at_once(draft: Draft, ops: Together) -> None:
    space, chance = draft.space, draft.chance
    trouble = chance.pick(TROUBLES)
    if trouble == "crash" and space.crash_kinds:
        crash_during(draft, ops, chance.number(space.at_actions.service))
        draft.add(Restart())
    elif trouble == "fault" and space.faults:
        met = draft.drawn.fault()
        draft.add(During(ops, chance.number(space.at_actions.service), met))
    else:
        draft.add(ops)


def contend(draft: Draft) -> None:
    """Add ops: prepare work for all services, then run two ops at the same time."""
    chance, drawn = draft.chance, draft.drawn
    age(draft)
    one = drawn.part()
    one = drawn.round() if chance.coin() else one
    other = drawn.round() if chance.coin() else RunService("clean_commit_log")
    parts = (one, other) if chance.coin() else (other, one)
    draft.add(Together(parts, drawn.schedule(len(parts))))
    if isinstance(one, Shutdown):
        draft.add(Restart())
    elif chance.coin():
        # What one kept the other from doing has to be done now.
        clean_now(draft)


def beside(draft: Draft, op: Op) -> None:
    """Add the op, and another one that begins at the same time."""
    other = draft.drawn.part()
    draft.add(Together((other, op), draft.drawn.schedule(2)))
    if isinstance(other, Shutdown):
        draft.add(Restart())
