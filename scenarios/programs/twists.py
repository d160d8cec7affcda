"""Twists: what happens to any store, and that most scenarios do not think of.

A scenario asks its own question, so its programs lack what others ask for: the clock is
set back in one of forty alone, though every store carries times over its starts. A
search that tries each scenario a few times hardly meets such a thing together with
another one. So one program of ``TWISTED`` gets it, wherever it comes from.

Whatever is added is legal in every state, and takes nothing away.
"""

from __future__ import annotations

from collections.abc import Callable

from crashmq.models.ops import (
    EVERYTHING,
    AdvanceClock,
    Capability,
    Crash,
    DeleteManually,
    During,
    Event,
    Op,
    PutBatch,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    needs,
    parts,
)
from crashmq.models.program import HOUR_MS, Program
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.chance import Chance, SeededChance
from crashmq.scenarios.programs.draft import THOROUGH_MS
from crashmq.scenarios.programs.workload import program_for

TWISTED = 4
"""Of so many programs one is twisted."""

SET_BACK_MS = (1, 999, 5_000, 20_000, 61_000, 600_000, 3_600_000, 86_400_000)
"""How far the clock stands behind what the life before has seen."""

MOMENTS_MS = (1, 250, 499, 500, 501, 999, 1001)
"""Between two messages of one second, or of two."""

_APART = 2 << 32  # from the seeds that programs are drawn by, and aimed by

Twist = Callable[[Program, Chance], list[Op]]


def searched_program(
    scenario: Scenario,
    run: int,
    number: int,
    can: frozenset[Capability] = EVERYTHING,
) -> Program:
    """The program of a scenario as searches run it: one of so many has a twist.

    The arguments are those of ``program_for``.
    """
    return twisted(program_for(scenario, run, number, can), run, number, can)


def twisted(
    program: Program,
    run: int,
    number: int,
    can: frozenset[Capability] = EVERYTHING,
) -> Program:
    """The program, or one of so many with a twist; a function of the arguments.

    What a store that ``can`` do less does not know is left out.
    """
    chance = SeededChance(run + _APART, number)
    if program.setup.begins_with or not chance.one_in(TWISTED):
        return program
    ops = chance.pick(TWISTS)(program, chance)
    return Program(program.setup, tuple([op for op in ops if needs(op) <= can]))


def _set_back(program: Program, chance: Chance) -> list[Op]:
    """The clock is set back while the store is down, at one of its starts."""
    ops = [*program.ops]
    starts = [at for at, op in enumerate(ops) if _begins_with_a_start(op)]
    if not starts:
        return [*ops, Shutdown(), *_back(chance), Restart(), *_last_put(ops)]
    at = chance.pick(tuple(starts))
    down = () if at and _takes_down(ops[at - 1]) else (Shutdown(),)
    return [*ops[:at], *down, *_back(chance), *ops[at:], *_last_put(ops)]


def _back(chance: Chance) -> tuple[Op, ...]:
    return (AdvanceClock(-chance.pick(SET_BACK_MS)),)


def _part_of_a_second(program: Program, chance: Chance) -> list[Op]:
    """Between its messages time passes, so that no two have the same."""
    found: list[Op] = []
    for op in program.ops:
        found.append(op)
        if isinstance(op, PutMessage | PutBatch):
            found.append(AdvanceClock(chance.pick(MOMENTS_MS)))
    return found


def _told(program: Program, chance: Chance) -> list[Op]:
    """Before one of its ops all that is durable is told, and after the next again."""
    ops = [*program.ops]
    at = chance.below(len(ops) + 1)
    return [*ops[:at], *_telling(), *ops[at : at + 1], *_telling(), *ops[at + 1 :]]


def _telling() -> tuple[Op, ...]:
    return (
        *(RunService("reput"), AdvanceClock(THOROUGH_MS)),
        *(RunService("flush_commit_log", 3), RunService("flush_consume_queue")),
        RunService("checkpoint"),
    )


def _grown_old(program: Program, chance: Chance) -> list[Op]:
    """In its second half its files expire, whatever has become of them, and go."""
    ops, setup = [*program.ops], program.setup
    if not setup.cleans:
        return _told(program, chance)
    at = len(ops) - chance.below(len(ops) // 2 + 1)
    aged = (
        *(RunService("reput"), RunService("flush_commit_log", 3)),
        *(AdvanceClock((setup.reserved_hours + 1) * HOUR_MS), DeleteManually()),
        *(RunService("clean_commit_log", 3), RunService("clean_consume_queue", 3)),
    )
    return [*ops[:at], *aged, *ops[at:]]


TWISTS: tuple[Twist, ...] = (
    *(_set_back, _set_back),
    *(_part_of_a_second, _told, _grown_old),
)


def _last_put(ops: list[Op]) -> list[Op]:
    """One more message, of the time by then."""
    puts: list[Op] = [op for op in ops if isinstance(op, PutMessage)]
    return puts[-1:]


def _begins_with_a_start(op: Event) -> bool:
    while isinstance(op, During):
        op = op.op
    return isinstance(op, Restart)


def _takes_down(op: Event) -> bool:
    """Whether the store is down after the op, as far as one can tell."""
    return isinstance(op, Shutdown | Crash) or any(map(_takes_down, parts(op)))
