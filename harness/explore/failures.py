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
    """Let the first call that the last op's fault is for fail, then the second, and on.

    Of each run the program that does it again, and what came of it, its end judged as
    well; the last run is that of a call which the op did not make.

    Args:
        program: ends with a ``During`` whose event is a ``DiskFault``.
        scenario: its name.
        points_max: runs at most.
    """
    *before, last = program.ops
    assert isinstance(last, During), "the last op meets no event"
    assert isinstance(last.event, DiskFault), "the event is no fault of the disk"
    for point in range(points_max):
        fault = replace(last.event, after=point)
        tried = replace(program, ops=(*before, replace(last, event=fault)))
        result = run_program(tried, scenario)
        yield tried, result
        if not _met(result, len(before)):
            return


def _met(result: EpisodeResult, number: int) -> bool:
    """Whether a call of the op of that number met its fault."""
    seen = next((step.observation for step in result.trace if step.number == number), 0)
    event = seen.event if isinstance(seen, Interrupted) else None
    return isinstance(event, Armed) and event.failed > 0
