"""Failures: each call of one op fails in its turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.episode import EpisodeResult, run_program
from models.observations import Armed, Interrupted
from models.ops import DiskFault, During
from models.program import Program


def each_failure(
    program: Program, scenario: str, points_max: int
) -> Iterator[tuple[Program, EpisodeResult]]:
    """Let the first call that an op's fault is for fail, then the second, and on.

    Of each run the program that does it again, and what came of it, its end judged as
    well; the last run is that of a call which the op did not make.

    Args:
        program: the last fault of the disk in it is the one.
        scenario: its name.
        points_max: runs at most.
    """
    at = _last_fault(program)
    failing = program.ops[at]
    assert isinstance(failing, During)
    assert isinstance(failing.event, DiskFault)
    for point in range(points_max):
        fault = replace(failing.event, after=point)
        ops = (*program.ops[:at], replace(failing, event=fault), *program.ops[at + 1 :])
        tried = replace(program, ops=ops)
        result = run_program(tried, scenario)
        yield tried, result
        if not _met(result, at):
            return


def _last_fault(program: Program) -> int:
    faults = [
        number
        for number, op in enumerate(program.ops)
        if isinstance(op, During) and isinstance(op.event, DiskFault)
    ]
    assert faults, "no op of the program meets a fault of the disk"
    return faults[-1]


def _met(result: EpisodeResult, number: int) -> bool:
    """Whether a call of the op of that number met its fault."""
    seen = next((step.observation for step in result.trace if step.number == number), 0)
    event = seen.event if isinstance(seen, Interrupted) else None
    return isinstance(event, Armed) and event.failed > 0
