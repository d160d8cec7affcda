"""``crashmq explore --subject``: kills a user's store during each op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from crashmq.harness.commands.arguments import subject_at
from crashmq.harness.commands.explore_each import Effort, Target, end, try_each
from crashmq.harness.commands.output import say
from crashmq.harness.episodes.running import runner_of
from crashmq.harness.explore.kills import Kills, explore_kills
from crashmq.models.program import Program


def run_kills(
    target: Target, *, ops: int | None, effort: Effort, out: Path | None
) -> int:
    """Kill the store during each op of a case, or of a scenario's programs."""

    def cut(program: Program) -> Program | None:
        return replace(program, ops=program.ops[:ops]) if program.ops else None

    assert target.subject is not None, "it is for a store that is not ours"
    nothing = f"{target.text}: there is no op in it. Name a case that has one."
    try_all = partial(_kills_of, store=target.subject.name)
    seen = try_each(target, cut, try_all, effort, nothing)
    closed, left = sum(one.is_closed for one in seen), sum(one.open for one in seen)
    visited = sum(one.visited for one in seen)
    say(f"  histories  {len(seen):,}, of which {closed:,} CLOSED")
    say(f"  kills      in {visited - len(seen):,} runs, on {target.subject.name}")
    if left:
        say(f"  open       {left:,} ops: time was over")
    summary = {
        "histories": len(seen),
        "closed": closed,
        "runs": visited,
        "open": left,
        "subject": target.subject.name,
        "budget_seconds": effort.budget_s,
    }
    return end(target, seen, out, summary, f"--subject {target.subject.name}")


def _kills_of(
    program: Program, scenario: str, is_over: Callable[[], bool], store: str
) -> Kills:
    run = runner_of(subject_at(store))
    return explore_kills(program, scenario, is_over, run=run)
