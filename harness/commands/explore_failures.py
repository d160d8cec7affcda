"""``crashmq explore --failures``: lets each disk call of each op fail in turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crashmq.harness.commands.explore_each import Effort, Target, end, try_each
from crashmq.harness.commands.output import say
from crashmq.harness.explore.failures import explore_failures
from crashmq.models.program import Program


def run_failures(
    target: Target, *, ops: int | None, effort: Effort, out: Path | None
) -> int:
    """Fail each disk call of the ops of a case, or of a scenario's programs."""

    def cut(program: Program) -> Program | None:
        return replace(program, ops=program.ops[:ops]) if program.ops else None

    nothing = f"{target.text}: there is no op in it. Name a case that has one."
    seen = try_each(target, cut, explore_failures, effort, nothing)
    closed, left = sum(one.is_closed for one in seen), sum(one.open for one in seen)
    visited, calls = sum(one.visited for one in seen), sum(one.calls for one in seen)
    say(f"  histories  {len(seen):,}, of which {closed:,} CLOSED")
    say(f"  failures   {calls:,} calls of {visited:,} runs met one")
    if left:
        say(f"  open       {left:,} ops and kinds of failure: time was over")
    summary = {
        "histories": len(seen),
        "closed": closed,
        "runs": visited,
        "calls": calls,
        "open": left,
        "budget_seconds": effort.budget_s,
    }
    return end(target, seen, out, summary, "--failures")
