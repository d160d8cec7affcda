"""Failing calls: the beginning of a program, an op that meets a fault, what follows.

Which call of the op fails is the caller's choice: it makes each of them fail in turn.
Drawn at random, a failure between two particular reads is hardly ever met.

Source: the I/O error tests of "How SQLite Is Tested", section 3.2.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.ops import DiskFault, During, Op, Restart, Shutdown
from crashmq.models.program import Program
from crashmq.scenarios.catalogue.scenario import Scenario
from crashmq.scenarios.programs.chance import SeededChance
from crashmq.scenarios.programs.drawn_ops import fault_by
from crashmq.scenarios.programs.workload import phrase_for, program_for

LENGTHS = (4, 6, 8, 12, 16, 24)
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


def failing_for(scenario: Scenario, run: int, number: int) -> tuple[Program, int]:
    """The beginning of a program, an op whose first call fails, and what follows.

    Half of those ops are starts, after a stop or a kill; else it is what the program
    does there. The call fails once, or all of its kind do from then on. Then the op may
    be repeated, and a crash may come: what a failure left behind shows after one.

    Args:
        scenario: whose programs they are.
        run: the run's seed, >= 0.
        number: of the program in its run, >= 0.

    Returns:
        The program, and the number of that op.
    """
    chance = SeededChance(run, number)
    program = program_for(scenario, run, number)
    space, setup = scenario.space, program.setup
    ops = list(program.ops[: chance.pick(LENGTHS)])
    failing = _plain(ops.pop())
    fails_a_start = chance.coin()
    if fails_a_start:
        failing = Restart()
        ops += [Shutdown()] * chance.coin()
    met = fault_by(chance, OF_STARTS if fails_a_start else OF_OTHERS)
    fault = replace(met, lasts=chance.coin())
    again = [failing] * chance.coin()
    crash = (
        phrase_for(space, setup, "crash", chance.word()) if space.crash_kinds else ()
    )
    then = crash if chance.coin() else ()
    failing_at = len(ops)
    ops += (During(failing, 1, fault), *again, *then)
    return Program(setup, tuple(ops)), failing_at


def _plain(op: Op) -> Op:
    """The op without its events."""
    while isinstance(op, During):
        op = op.op
    return op
