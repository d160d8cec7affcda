"""Failing calls: work for a store, an op with a failing disk call, and what follows.

The caller chooses which call of the op fails, and lets each fail in turn; at random, a
failure between two particular reads would almost never be drawn.

Two kinds of programs lead to the op. One is the beginning of a program of the scenario.
In the other, every service has work, and the op is one that does some of it. Most bugs
of this kind are in the state that an error path leaves in memory, and do not show at
the failure itself. So afterwards the op is repeated, the checkpoint records what counts
as durable, and power is lost.

Source: the I/O error tests of "How SQLite Is Tested", section 3.2.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import (
    DiskFault,
    During,
    Op,
    Restart,
    RunService,
    ServiceName,
    Shutdown,
    innermost,
)
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.chance import SeededChance
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.drawn_ops import fault_by
from crashmq.scenarios.programs.overlapping import (
    keepers_of,
    makers_of,
    telling,
    work_for_all,
)
from crashmq.scenarios.programs.space import Space, often
from crashmq.scenarios.programs.workload import phrase_for, program_for

LENGTHS = (4, 6, 8, 12, 16, 24)
SERVED = 4
"""Of so many stores with work all but one have served it up to the op in question."""

CUT_SHORT = 4
"""Of so many ops that failed one is cut short by a crash when it is done again."""

CUT_SHORT_ACTIONS = 6

OTHER_DISKS: tuple[str, ...] = ("", "", "", "posix_min", "posix_min", "btrfs")
"""The disk below, "" for that of the scenario: which calls make a name durable, and
what a failed one leaves, depends on it."""

IN_ORDER: tuple[ServiceName, ...] = (
    *("commit", "flush_commit_log", "reput", "flush_consume_queue", "flush_index"),
    "checkpoint",
)
"""Each makes durable, or tells, what those before it have done; others come last."""

_USUAL_DISKS = ("ext4_ordered", "kill9", "xfs")

_READING = DiskFault("read", "EIO")
_CHANGING = (
    DiskFault("write", "EIO"),
    DiskFault("write", "ENOSPC"),
    DiskFault("sync", "EIO"),
    DiskFault("create", "ENOSPC"),
    DiskFault("remove", "EIO"),
)
# A start reads more than all else.
OF_STARTS: tuple[DiskFault, ...] = (*_CHANGING, *(_READING,) * 5)
OF_OTHERS: tuple[DiskFault, ...] = (*_CHANGING, *_CHANGING, _READING)
OF_WORK: tuple[DiskFault, ...] = often(
    (DiskFault("write", "EIO"), 3),
    (DiskFault("sync", "EIO"), 4),
    (DiskFault("create", "ENOSPC"), 1),
    (DiskFault("remove", "EIO"), 1),
)
"""What a service meets: it writes and syncs, and seldom anything else."""


def failing_for(scenario: Scenario, run: int, number: int) -> tuple[Program, int]:
    """A program with an op whose first disk call fails, and ops before and after it.

    Either that one call fails, or all of its kind do from then on.

    Args:
        scenario: the scenario of the program.
        run: the run's seed, >= 0.
        number: the number of the program in its run, >= 0.

    Returns:
        The program, and the index of that op.
    """
    chance = SeededChance(run, number)
    other = chance.pick(OTHER_DISKS)

    def change(space: Space, setup: Setup) -> tuple[Space, Setup]:
        disk = other if other and setup.disk_profile in _USUAL_DISKS else ""
        return space, replace(setup, disk_profile=disk or setup.disk_profile)

    program = program_for(scenario, run, number, change=change)
    draft = Draft(scenario.space, program.setup, chance)
    if chance.coin():
        failing, faults = _of_a_beginning(draft, program)
    else:
        failing, faults = _of_work(draft)
    met = fault_by(chance, faults)
    failing_at = len(draft.ops)
    draft.add(During(failing, 1, replace(met, lasts=chance.coin())))
    _follow(draft, failing)
    return Program(program.setup, tuple(draft.ops)), failing_at


def _of_a_beginning(draft: Draft, program: Program) -> tuple[Op, tuple[DiskFault, ...]]:
    """Add the first ops of a program; returns a start or its next op to fail."""
    chance = draft.chance
    ops = list(program.ops[: chance.pick(LENGTHS)])
    failing = innermost(ops.pop())
    draft.ops += ops
    if not chance.coin():
        return failing, OF_OTHERS
    draft.ops += [Shutdown()] * chance.coin()
    return Restart(), OF_STARTS


def _of_work(draft: Draft) -> tuple[Op, tuple[DiskFault, ...]]:
    """Add work for all services; returns an op that does some of it, or a stop."""
    chance = draft.chance
    work_for_all(draft)
    kinds = (*draft.space.services, *keepers_of(draft.setup), *makers_of(draft.setup))
    services = (*dict.fromkeys(kinds),)
    which = chance.below(len(services) + 2)
    if which >= len(services):
        return (Shutdown() if which > len(services) else draft.drawn.put()), OF_WORK
    if not chance.one_in(SERVED):
        _serve_up_to(draft, services[which])
    return RunService(services[which]), OF_WORK


def _serve_up_to(draft: Draft, service: ServiceName) -> None:
    """Add rounds of the services whose results a service needs."""
    before = IN_ORDER[: IN_ORDER.index(service)] if service in IN_ORDER else IN_ORDER
    draft.add(*[RunService(one, 9) for one in before if one in draft.space.services])


def _follow(draft: Draft, failing: Op) -> None:
    """Add, each or not: the op again, a record of what is durable, a crash.

    The crash may cut the op short that is done again.
    """
    chance, space = draft.chance, draft.space
    if space.crash_kinds and chance.one_in(CUT_SHORT):
        at_action = chance.integer(1, CUT_SHORT_ACTIONS)
        draft.add(During(failing, at_action, draft.drawn.crash()), Restart())
        return
    draft.add(*[failing] * chance.coin())
    if chance.coin() and not isinstance(failing, Shutdown):
        draft.add(*telling(draft))
    elif space.crash_kinds and chance.coin():
        draft.add(*phrase_for(space, draft.setup, "crash", chance.word()))
