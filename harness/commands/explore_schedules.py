"""``crashmq explore --schedules``: tries every schedule with few preemptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crashmq.harness.commands.explore_each import Target, end, try_each
from crashmq.harness.commands.output import say
from crashmq.harness.explore.schedules import Schedules, explore_schedules, together_in
from crashmq.models.program import Program

_SHARE = 1 / 30  # of the budget for one program of a scenario: some have no end


def run_schedules(
    target: Target, *, bound: int, budget: float, out: Path | None
) -> int:
    """Explore schedules of a case or a scenario's programs; returns the exit code."""

    def try_all(
        program: Program, scenario: str, is_over: Callable[[], bool]
    ) -> Schedules:
        return explore_schedules(program, scenario, bound=bound, is_over=is_over)

    nothing = (
        f"{target.text}: its ops never begin at the same time, so there is one "
        f"schedule. Name a case with a Together, or take `interleavings`, or "
        f"`contention`."
    )
    cut = _whole if target.is_case else _to_the_last_together
    share = 1.0 if target.is_case else _SHARE
    seen = try_each(target, cut, try_all, budget, nothing, share)
    closed, left = sum(one.is_closed for one in seen), sum(one.open for one in seen)
    visited = sum(one.visited for one in seen)
    outcomes = sum(len(one.outcomes) for one in seen)
    say(f"  histories  {len(seen):,}, of which {closed:,} CLOSED")
    say(f"  schedules  {visited:,} run, of at most {bound} preemptions")
    if left:
        say(f"  open       {left:,} known and not run: time was over")
    say(f"  outcomes   {outcomes:,} different ones")
    summary = {
        "histories": len(seen),
        "closed": closed,
        "schedules": visited,
        "open": left,
        "outcomes": outcomes,
        "points_max": max(one.points for one in seen),
        "bound": bound,
        "budget_seconds": budget,
    }
    return end(target, seen, out, summary, f"--schedules {bound}")


def _whole(program: Program) -> Program | None:
    return program if together_in(program) >= 0 else None


def _to_the_last_together(program: Program) -> Program | None:
    at = together_in(program)
    return Program(program.setup, program.ops[: at + 1]) if at >= 0 else None
