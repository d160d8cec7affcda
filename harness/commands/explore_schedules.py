"""``crashmq explore --schedules``: tries every schedule with few preemptions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from crashmq.harness.commands.explore_each import Effort, Target, end, try_each
from crashmq.harness.commands.output import say
from crashmq.harness.explore.schedules import (
    clients_in,
    explore_schedules,
    together_in,
)
from crashmq.models.program import Program

_MANY = 30  # programs that share the budget, at least: some have no end


def run_schedules(
    target: Target,
    *,
    bound: int,
    clients: int | None,
    effort: Effort,
    out: Path | None,
) -> int:
    """Explore schedules of a case or a scenario's programs; returns the exit code.

    Args:
        target: the case or scenario.
        bound: the most preemptions.
        clients: how many ops begin at the same time, each a client's; None: any number.
        effort: how long, and by how many processes.
        out: where to save; None: nowhere.
    """

    def cut(program: Program) -> Program | None:
        at = together_in(program)
        if at < 0 or clients not in (None, clients_in(program)):
            return None
        return (
            program if target.is_case else replace(program, ops=program.ops[: at + 1])
        )

    of_clients = "" if clients is None else f" as those of {clients} clients"
    nothing = (
        f"{target.text}: its ops never begin at the same time{of_clients}, so there is "
        f"one schedule. Name a case with a Together, or take `interleavings`, or "
        f"`contention`."
    )
    share = 1.0 if target.is_case else 1 / min(_MANY, target.histories or _MANY)
    try_all = partial(explore_schedules, bound=bound)
    seen = try_each(target, cut, try_all, effort, nothing, share)
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
        "clients": clients,
        "budget_seconds": effort.budget_s,
    }
    asked = f"--schedules {bound}" + (f" --clients {clients}" if clients else "")
    return end(target, seen, out, summary, asked)
