"""Overlaps: one activity is stopped while another runs; then the store shows itself.

Every service is given work first, and time passes between any two messages; so whatever
an activity reads before its sync differs from what is there after it. Afterwards the
store is made to show what it counts as durable: by a sync of all, a checkpoint, an
orderly shutdown, or a power loss right away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from crashmq.models.ops import (
    AdvanceClock,
    Crash,
    DeleteManually,
    DeleteTopic,
    During,
    Op,
    Restart,
    RunService,
    Schedule,
    ServiceName,
    Shutdown,
    Survivors,
    Together,
)
from crashmq.models.program import Setup
from crashmq.scenarios.programs.draft import THOROUGH_MS, Draft
from crashmq.scenarios.programs.space import Numbers, Size, often, put_message
from crashmq.scenarios.programs.spaces import AFTER

STEPS_MS = (1, 7, 300)  # between two messages
OTHERS_MAX = 4
FAILING = 8  # one overlap of so many meets a fault
FAILING_STOP = 4  # one of so many, where nobody but a stop meets the first activity
FAILING_ACTIONS = 8  # at one of so many disk actions
KEEPER_FIRST = 3  # of so many overlaps all but one stop who makes durable
AGED = 3  # of so many, where files may go, all but one begin with some that may
UNDISPATCHED = 4  # of so many stores one has dispatched nothing before
LAST_PUT = 4  # of so many all but one put once more after that
HURRIED = 4  # of so many one has waited for a moment alone
POINTS = Numbers(tuple(range(1, 9)), 40, 1)
"""The switch point at which the first activity is stopped: most syncs are early."""

Company = Literal["served, then a stop", "stop", "activities"]
COMPANY: tuple[Company, ...] = often(
    ("served, then a stop", 2), ("stop", 1), ("activities", 5)
)
"""Who comes while the first one stands still; a stop of a store that has served all
waits for nobody, so that it ends meanwhile."""

Telling = Literal["orderly end", "power loss", "pull"]
TELLINGS: tuple[Telling, ...] = often(
    ("orderly end", 2), ("power loss", 1), ("pull", 1)
)
_POWER_LOSS = Crash("power_loss", Survivors("none"))


def makers_of(setup: Setup) -> tuple[ServiceName, ...]:
    """The services that produce data which is not durable yet."""
    names: list[ServiceName] = ["reput", "reput"]
    if setup.preallocate:
        names += ("allocate", "allocate")
    if setup.transient_store_pool:
        names.append("commit")
    return tuple(names)


def keepers_of(setup: Setup) -> tuple[ServiceName, ...]:
    """The services that make data durable, record it, or delete by it."""
    names: list[ServiceName] = [
        "flush_commit_log",
        "flush_consume_queue",
        "checkpoint",
    ]
    if setup.has_index:
        names.append("flush_index")
    if setup.cleans:
        names += ("clean_commit_log", "clean_consume_queue")
    return tuple(names)


def overlap(draft: Draft) -> None:
    """Add ops: prepare work, stop one op amid others, then show what is durable."""
    chance = draft.chance
    work_for_all(draft)
    is_keeper = not chance.one_in(KEEPER_FIRST)
    stopped = _keeper(draft) if is_keeper else _maker(draft)
    if isinstance(stopped, Shutdown) and chance.coin():
        draft.add(*_serving())
    others = _others(draft)
    ends = any(isinstance(op, Shutdown) for op in (stopped, *others))
    told = (Restart(),) if ends else telling(draft)
    draft.add(_stopped_once(draft, (stopped, *others)), *told)


def work_for_all(draft: Draft) -> None:
    """Messages that are flushed, dispatched, or only put, each of a later time."""
    chance, drawn = draft.chance, draft.drawn
    if draft.setup.cleans and not chance.one_in(AGED):
        _grow_old(draft)
    elif chance.coin():
        draft.add(*[_half_a_file(draft)] * 3)  # so that the log has rolled
    for _ in range(chance.integer(1, 2)):
        draft.add(drawn.put(), AdvanceClock(chance.pick(STEPS_MS)))
    if chance.coin():
        draft.add(_all_of("flush_commit_log"))
    if not chance.one_in(UNDISPATCHED):
        draft.add(_all_of("reput"))
    if not chance.one_in(LAST_PUT):
        draft.add(drawn.put())
    draft.add(AdvanceClock(STEPS_MS[0] if chance.one_in(HURRIED) else THOROUGH_MS))


def _grow_old(draft: Draft) -> None:
    """Files that may go, of the log or, where that has gone, of the queues."""
    waiting = AdvanceClock(draft.chance.number(draft.space.expiry_steps_ms))
    draft.add(*[_half_a_file(draft)] * 5, *_serving(), waiting, DeleteManually())
    if draft.chance.coin():
        draft.add(_all_of("clean_commit_log"))


def _half_a_file(draft: Draft) -> Op:
    address, label = draft.space.addresses[0], draft.space.labels[0]
    return put_message(draft.setup.log_file_size, address, Size(parts=2), label)


def _serving() -> tuple[Op, Op]:
    return _all_of("flush_commit_log"), _all_of("reput")


def _all_of(service: ServiceName) -> Op:
    return RunService(service, 9)


def _others(draft: Draft) -> tuple[Op, ...]:
    """One to four activities; or a stop, mostly of a store that has served all."""
    chance = draft.chance
    match chance.pick(COMPANY):
        case "served, then a stop":
            return (*_serving(), Shutdown())
        case "stop":
            return (Shutdown(),)
        case "activities":
            count = chance.integer(1, OTHERS_MAX)
            return tuple([chance.pick(OTHERS)(draft) for _ in range(count)])


def _maker(draft: Draft) -> Op:
    """A caller or a service that makes something; what is deleted is, as well."""
    drawn = draft.drawn
    callers: tuple[Callable[[], Op], ...] = often(
        (drawn.put, 3), (drawn.put_at_the_end, 2), (lambda: _deletion(draft), 2)
    )
    services = makers_of(draft.setup)
    which = draft.chance.below(len(callers) + len(services))
    if which < len(callers):
        return callers[which]()
    return RunService(services[which - len(callers)])


def _remover(draft: Draft) -> Op:
    """A cleaner of files that may go; without one a deletion."""
    if not draft.setup.cleans:
        return _deletion(draft)
    cleaners: tuple[ServiceName, ...] = ("clean_commit_log", "clean_consume_queue")
    return RunService(draft.chance.pick(cleaners))


def _keeper(draft: Draft) -> Op:
    services = keepers_of(draft.setup)
    which = draft.chance.below(len(services) + 1)
    return Shutdown() if which == len(services) else RunService(services[which])


def _deletion(draft: Draft) -> Op:
    return DeleteTopic(*draft.chance.pick(draft.space.deletions))


OTHERS: tuple[Callable[[Draft], Op], ...] = often(
    (_maker, 4), (_keeper, 2), (_remover, 2)
)
"""What runs while the first activity stands still."""


def _stopped_once(draft: Draft, ops: tuple[Op, ...]) -> Op:
    """The first one is stopped; the others run to their ends, in their order.

    A deletion of topics meets no fault here: what it leaves half done the next start
    decides, and the store goes on.
    """
    chance = draft.chance
    together = Together(ops, Schedule(preemptions=((chance.number(POINTS), 1),)))
    is_alone = isinstance(ops[1], Shutdown)  # then the stop itself may fail
    if any(isinstance(op, DeleteTopic) for op in ops):
        return together
    if not chance.one_in(FAILING_STOP if is_alone else FAILING):
        return together
    fault = draft.drawn.fault()
    return During(together, chance.integer(1, FAILING_ACTIONS), fault)


def telling(draft: Draft) -> tuple[Op, ...]:
    """Something that says what is durable now, or shows what is not."""
    said = (
        *(RunService("checkpoint"), _all_of("flush_commit_log")),
        *(AdvanceClock(THOROUGH_MS), RunService("flush_consume_queue")),
        RunService("checkpoint"),
    )
    match draft.chance.pick(TELLINGS):
        case "orderly end":
            return (*said, Shutdown(), Restart())
        case "power loss":
            lost = During(RunService("checkpoint"), AFTER, _POWER_LOSS)
            return (*said, lost, Restart())
        case "pull":
            return (*said, RunService("reput"), draft.drawn.pull())
