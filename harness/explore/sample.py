"""A sample: tries a few crashes of a history that was run for another purpose.

A soak or a machine that has run a history can try some of its crash states at little
cost. A finding is a complete program that violates a law.
"""

from __future__ import annotations

from crashmq.harness.explore.crash_point import CrashPoint, record
from crashmq.harness.explore.explorer import Explorer, Found
from crashmq.harness.explore.limits import Limits
from crashmq.models.program import Program

_STATES_A_CRASH_POINT = 16


def sample(program: Program, scenario: str, states: int, seed: int = 0) -> Found | None:
    """Try about ``states`` crash states, spread out; return the first violation.

    Args:
        program: one that violated no law by itself.
        scenario: under which it is judged.
        states: how many to decide; all of one crash point may be more.
        seed: which of a crash point's states are drawn.
    """
    limits = Limits(
        depth=1,
        exact_max=_STATES_A_CRASH_POINT,
        promising=_STATES_A_CRASH_POINT // 2,
        draws=_STATES_A_CRASH_POINT // 4,
        states_max=states,
        cuts=False,
    )
    explorer = Explorer(scenario, limits, seed=seed)
    history = record(program, scenario)
    history.crash_points = _spread_out(
        history.crash_points, max(1, states // _STATES_A_CRASH_POINT)
    )
    explorer.explore(history)
    return next(iter(explorer.found.values()), None)


def _spread_out(crash_points: list[CrashPoint], wanted: int) -> list[CrashPoint]:
    """That many crash points, evenly from the first to the last."""
    count = len(crash_points)
    if count <= wanted:
        return crash_points
    return [crash_points[count * number // wanted] for number in range(wanted)]
