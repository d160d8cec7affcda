"""Phrases in which files are damaged, messages expire, or topics are deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from crashmq.models.files.config_files import BACKUP
from crashmq.models.ops import (
    AdvanceClock,
    CleanTopics,
    Damage,
    DeleteTopic,
    DiskFault,
    During,
    LookMessage,
    Op,
    PullMessage,
    Restart,
    RunService,
    Shutdown,
    Together,
)
from crashmq.scenarios.programs.ageing import (
    AGED_FLUSHES,
    clean_now,
    flush_and_dispatch,
    pass_expiry,
    perhaps_dispatch,
    roll,
    tell,
)
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.crashing import crash_during, interrupted
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.drawn_ops import fault_by
from crashmq.scenarios.programs.meeting import beside
from crashmq.scenarios.programs.space import WISHES, often
from crashmq.scenarios.programs.spaces import AFTER

End = Literal["orderly", "cut short", "amid a put"]
ENDS: tuple[End, ...] = often(("orderly", 2), ("cut short", 1), ("amid a put", 1))
"""How a store ends whose files are damaged then; the put was never answered."""

SPARED = 4  # of so many damages of a store that cleans, all but one are aged too
UNBACKED = 3  # of so many edits of a config file one is made to its backup too
ADJOINING = 4  # where damage is served around, one of so many has more next to it
A_FIELD = 4  # bytes of a record's first field
UNROLLED = 4  # of so many expiries one rolls no file before
CLEANING_FAILS = 4  # one cleaning of so many meets a fault, where there are any

AfterwardsKind = Literal["queues", "queues beside", "none"]
AFTERWARDS: tuple[AfterwardsKind, ...] = often(
    ("queues", 1), ("queues beside", 1), ("none", 2)
)
"""Whether the queues' cleaner comes next, and alone or beside another."""

BeforeKind = Literal["tell", "expire", "none"]
BEFORE_A_DELETION: tuple[BeforeKind, ...] = often(
    ("tell", 1), ("expire", 1), ("none", 2)
)
"""Whether what is about to go is said to be durable, or partly gone already."""

DeletionKind = Literal[
    "alone", "crash", "amid dispatch", "in company", "beside a stop", "fault"
]
CLEANS = 2
"""One of so many deletions is of all topics but some, or such a one follows it."""
DELETIONS_BY: tuple[DeletionKind, ...] = often(
    ("alone", 4),
    ("crash", 2),
    ("amid dispatch", 2),
    ("in company", 2),
    ("fault", 2),
    ("beside a stop", 1),
)

OUTLIVED = 4
"""In a store that cleans, of so many deletions one is of what has all expired then."""


def damage(draft: Draft) -> None:
    """Add ops: a stop or a crash, damage while the store is down, and a restart."""
    chance, drawn = draft.chance, draft.drawn
    perhaps_dispatch(draft)
    damages = range(chance.pick(draft.space.damages_a_stop))
    changed = [drawn.damage() for _ in damages]
    if draft.setup.on_damage == "serve" and chance.one_in(ADJOINING):
        changed += [_next_to(one) for one in changed if isinstance(one, Damage)]
    touched = any(getattr(damage, "kind", "") == "touch" for damage in changed)
    if touched:
        _prepare_for_touch(draft)
    unbacked = [
        _of_its_backup(one)
        for one in changed
        if isinstance(one, Damage) and _has_no_copy(one, chance)
    ]
    end_of_life(draft)
    draft.add(*changed, *unbacked, Restart())
    if unbacked:
        draft.add(Damage("", "restore"), Restart())
    if touched and chance.coin():
        # Nothing but the files' own word is old.
        clean_now(draft)
    elif draft.setup.cleans and not chance.one_in(SPARED):
        expire(draft)  # what was damaged, too


def _has_no_copy(damage: Damage, chance: Chance) -> bool:
    """Whether a config file is edited that cannot count on its backup."""
    is_edit = damage.kind == "reword" and not damage.file.endswith(BACKUP)
    return is_edit and chance.one_in(UNBACKED)


def _of_its_backup(damage: Damage) -> Damage:
    """The same edit of the backup, so that what a start makes of it is seen."""
    return replace(damage, file=damage.file + BACKUP)


def _next_to(damage: Damage) -> Damage:
    """Damage that begins where another one ends: the next bytes, or the next file."""
    if damage.kind == "delete":
        return Damage(damage.file, "flip", 0, A_FIELD)  # its number is the next one's
    return replace(damage, at=damage.at + damage.size)


def _prepare_for_touch(draft: Draft) -> None:
    """Add ops: create a file that may be deleted once its mtime is old."""
    if draft.chance.coin():
        grows_old = AdvanceClock(draft.chance.number(draft.space.expiry_steps_ms))
        draft.add(draft.drawn.put(), grows_old)
    roll(draft)
    draft.add(RunService("reput"))


def end_of_life(draft: Draft) -> None:
    """Add ops: an orderly stop, or a crash amid an op or right after a put."""
    end: End = draft.chance.pick(ENDS) if draft.space.crash_kinds else "orderly"
    match end:
        case "orderly":
            draft.add(Shutdown())
        case "cut short":
            crash_during(draft, *interrupted(draft))
        case "amid a put":
            crash_during(draft, draft.drawn.put(), AFTER)


def expire(draft: Draft) -> None:
    """Add ops: let messages expire, and run the cleaners."""
    chance, space = draft.chance, draft.space
    wish = chance.pick(WISHES)
    if not chance.one_in(UNROLLED):
        roll(draft)  # or there is seldom a file that may go
    draft.add(*wish.first)
    pass_expiry(draft)
    if chance.pick(space.served_first):
        flush_and_dispatch(draft, chance.pick(AGED_FLUSHES))
    draft.add(*wish.then)
    _clean(draft)
    if chance.coin():
        draft.add(draft.drawn.pull())  # before the queues' cleaner has looked
    queues = RunService("clean_consume_queue")
    afterwards = chance.pick(AFTERWARDS)
    if afterwards == "queues":
        draft.add(queues)
    elif afterwards == "queues beside" and space.together_counts:
        beside(draft, queues)


def _clean(draft: Draft) -> None:
    """Add a round of the log's cleaner: alone, beside another op, or with a fault."""
    chance, space = draft.chance, draft.space
    cleaning = RunService("clean_commit_log", chance.pick(space.service_times))
    if "fault" in space.kinds and chance.one_in(CLEANING_FAILS):
        _fail_to_clean(draft, cleaning)
    elif space.together and chance.coin():
        beside(draft, cleaning)
        if chance.coin():
            # What others kept from going has to go now.
            clean_now(draft)
    else:
        draft.add(cleaning)


def _fail_to_clean(draft: Draft, cleaning: RunService) -> None:
    chance, faults = draft.chance, draft.space.faults
    if chance.coin():  # of files that are to go
        faults = tuple(filter(_fails_removals, faults)) or faults
    met = fault_by(chance, faults)
    at_action = chance.number(draft.space.at_actions.service)
    draft.add(During(cleaning, at_action, met))
    if chance.coin():  # what was to go is there still, or all of it is gone
        draft.add(LookMessage(0), PullMessage(*chance.pick(draft.space.addresses), 0))
    if chance.coin():
        # What the fault kept from going has to go now, and for good.
        clean_now(draft)
    elif chance.coin():
        draft.add(Shutdown(), Restart())  # or with the end, if it is orderly


def _fails_removals(fault: DiskFault) -> bool:
    """Whether a fault may keep log files from being removed, durably."""
    is_met = fault.path in ("", "commitlog")
    return is_met and fault.call in ("sync", "remove")


def _cleaning(draft: Draft) -> CleanTopics:
    """A deletion of all topics but some of those that are put to."""
    topics = {one.topic for one in draft.space.addresses if draft.chance.coin()}
    return CleanTopics(",".join(sorted(topics)))


def delete(draft: Draft) -> None:
    """Add a deletion of a topic: alone, interrupted, beside others, during dispatch."""
    chance, space = draft.chance, draft.space
    op: Op = DeleteTopic(*chance.pick(space.deletions))
    if chance.one_in(CLEANS):
        op = _cleaning(draft)
        if chance.coin():  # which no queue has yet
            draft.add(draft.drawn.put())
    before = chance.pick(BEFORE_A_DELETION)
    if before == "tell":
        tell(draft, "flush_consume_queue")
    elif before == "expire" and draft.setup.cleans:
        expire(draft)
    at_action = chance.number(space.at_actions.service)
    match chance.pick(DELETIONS_BY):
        case "crash":
            crash_during(draft, op, at_action)
            draft.add(Restart())
        case "amid dispatch":
            draft.add(During(RunService("reput"), at_action, op))
        case "in company":
            event = draft.drawn.put() if chance.coin() else draft.drawn.service()
            draft.add(During(op, at_action, event))
        case "beside a stop":
            both = (op, Shutdown()) if chance.coin() else (Shutdown(), op)
            draft.add(Together(both, draft.drawn.schedule(2)), Restart())
        case "fault":
            draft.add(During(op, at_action, draft.drawn.fault()))
            if chance.coin():
                draft.add(draft.drawn.put())
            draft.add(Restart())
        case "alone":
            draft.add(op)
            if chance.one_in(CLEANS):
                draft.add(_cleaning(draft))
    if draft.setup.cleans and chance.one_in(OUTLIVED):
        expire(draft)
        draft.add(Shutdown(), Restart())
