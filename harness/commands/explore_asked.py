"""The options of ``crashmq explore``, and the kinds that take one history at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crashmq.harness.commands.arguments import process_count
from crashmq.harness.commands.explore_each import Effort, Target
from crashmq.harness.commands.explore_failures import run_failures
from crashmq.harness.commands.explore_kills import run_kills
from crashmq.harness.commands.explore_schedules import run_schedules
from crashmq.harness.subjects.named import OURS


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments and options, by their names."""

    target: str | None
    world: int | None
    ops: int | None
    histories: int | None
    depth: int
    choices: int | None
    close: bool
    schedules: int | None
    clients: int | None
    failures: bool
    profile: str | None
    budget: float
    seed: int
    workers: int | None
    mutant: str | None
    subject: str | None
    out: Path | None

    @property
    def is_of_theirs(self) -> bool:
        """Whether the store is the user's own, not crashmq's engine."""
        return self.subject not in (None, "", OURS)


def explored_each(asked: Asked) -> int | None:
    """Run a kind that takes one history at a time; None: crash them all instead."""
    is_each = asked.schedules is not None or asked.failures or asked.is_of_theirs
    if asked.target is None or not is_each:
        return None
    theirs = asked.subject if asked.is_of_theirs else None
    target = Target(asked.target, asked.mutant, asked.seed, asked.histories, theirs)
    effort, out = Effort(asked.budget, process_count(asked.workers)), asked.out
    if asked.is_of_theirs:
        return run_kills(target, ops=asked.ops, effort=effort, out=out)
    if asked.schedules is None:
        return run_failures(target, ops=asked.ops, effort=effort, out=out)
    bound, clients = asked.schedules, asked.clients
    return run_schedules(target, bound=bound, clients=clients, effort=effort, out=out)
