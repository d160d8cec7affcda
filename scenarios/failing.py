"""Failing calls: the beginning of a program, an op that a fault meets, what follows.

Which call of the op fails is not said here: whoever asks lets each of them fail in its
turn. Drawn, a failure that has to fall between two certain reads is hardly ever met.

Source: the I/O error tests of "How SQLite Is Tested", section 3.2.
"""

from __future__ import annotations

from models.ops import DiskFault, During, FaultCall, FaultErrno, Op, Restart, Shutdown
from models.program import Program
from scenarios.chance import draws
from scenarios.scenario import Scenario
from scenarios.space import leaving
from scenarios.workload import phrase_for, program_for

LENGTHS = (4, 6, 8, 12, 16, 24)
_READING: tuple[FaultCall, FaultErrno] = ("read", "EIO")
_CHANGING: tuple[tuple[FaultCall, FaultErrno], ...] = (
    ("write", "EIO"),
    ("write", "ENOSPC"),
    ("sync", "EIO"),
    ("create", "ENOSPC"),
    ("remove", "EIO"),
)
OF_STARTS = (*_CHANGING, *(_READING,) * 5)  # a start reads more than all else
OF_OTHERS = (*_CHANGING, *_CHANGING, _READING)


def failing_for(scenario: Scenario, run: int, number: int) -> tuple[Program, int]:
    """The beginning of a program, an op whose first call fails, and what follows.

    Half of those ops are starts, after a stop or a kill; else it is what the program
    does there. The call fails once, or all of its kind do from then on. Then the op may
    be asked for again, and a crash come: what a failure left behind shows after one.

    Args:
        scenario: whose programs they are.
        run: the run's seed, >= 0.
        number: of the program in its run, >= 0.

    Returns:
        The program, and the number of that op.
    """
    draw = draws(run, number).__next__
    program = program_for(scenario, run, number)
    space, setup = scenario.space, program.setup
    ops = list(program.ops[: LENGTHS[draw() % len(LENGTHS)]])
    failing, calls = _plain(ops.pop()), OF_OTHERS
    if draw() & 1:
        failing, calls = Restart(), OF_STARTS
        ops += [Shutdown()] * (draw() & 1)
    leaves, number = divmod(draw(), len(calls))
    call, errno = calls[number]
    fault = leaving(DiskFault(call, errno, lasts=bool(draw() & 1)), leaves)
    again = [failing] * (draw() & 1)
    crash = phrase_for(space, setup, "crash", draw()) if space.crash_kinds else ()
    then = crash if draw() & 1 else ()
    failing_at = len(ops)
    ops += (During(failing, 1, fault), *again, *then)
    return Program(setup, tuple(ops)), failing_at


def _plain(op: Op) -> Op:
    """The op without what happens amid it."""
    while isinstance(op, During):
        op = op.op
    return op
