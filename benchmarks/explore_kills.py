"""Which planted bugs crash exploration and machines find by themselves, and how soon.

Run by hand: ``python benchmarks/explore_kills.py [--budget S] [--seed N] [ID...]``. By
default the bugs that need reordering, the order of names, a crash amid a recovery, two
crashes, or an interleaving. No seeded episode is run to its end and no trigger is
known: histories of every scenario in turn are explored as ``crashmq explore`` does,
the schedules of their last concurrent ops as ``--schedules`` does, and Hypothesis
drives the machines. What is found has to break the same law as a program of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.explore.campaign import jobs_of_scenario, run_job
from crashmq.harness.explore.limits import Limits
from crashmq.harness.explore.schedules import explore_schedules, together_in
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.harness.mutants.search_slices import run_slice
from crashmq.harness.mutants.search_turns import ROUND
from crashmq.harness.searches.supervised import Lost, supervised
from crashmq.models.program import Program
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

NEEDS_MORE_THAN_A_KILL = (
    *("X02", "X06", "X12", "X15", "X17", "X22", "R26"),
    *("R34", "R38", "R42", "R44", "R45", "R55"),
)
TURNS = ("explore", "machine", "schedules")
JOB_S = 4.0  # a history has many moments, and bugs lie in few of them
JOB_TIMEOUT_S = 60.0
PREEMPTIONS = 2
NUMBERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Kill:
    """What one turn found; ``law`` is "" for nothing."""

    law: str = ""
    scenario: str = ""
    ops: int = 0


def turn(seed: int, number: int) -> Kill:
    """One history, machine or program's schedules; those of each kind in turn."""
    kind, own = TURNS[number % len(TURNS)], number // len(TURNS)
    scenario = tuple(SCENARIOS)[own % len(SCENARIOS)]
    if kind == "machine":
        found = run_slice("machine", seed, own * ROUND, "").found
        if found is None or found.program is None:
            return Kill()
        return Kill(found.law, found.scenario, len(found.program.ops))
    if kind == "explore":
        return confirmed(scenario, explored(scenario, seed, own // len(SCENARIOS)))
    return confirmed(scenario, scheduled(scenario, seed, own // len(SCENARIOS)))


def explored(scenario: str, seed: int, number: int) -> Iterator[tuple[str, Program]]:
    jobs = jobs_of_scenario(scenario, seed, 1000, Limits())
    job = next(islice(jobs, number, None))
    found = run_job(job, time.monotonic() + JOB_S).found.values()
    yield from ((one.law, one.program) for one in found if not one.is_unknown)


def scheduled(scenario: str, seed: int, number: int) -> Iterator[tuple[str, Program]]:
    program = program_for(SCENARIOS[scenario], seed, number)
    at = together_in(program)
    if at < 0:
        return
    ends = time.monotonic() + JOB_S
    seen = explore_schedules(
        replace(program, ops=program.ops[: at + 1]),
        scenario,
        bound=PREEMPTIONS,
        is_over=lambda: time.monotonic() > ends,
    )
    yield from seen.found.items()


def confirmed(scenario: str, found: Iterator[tuple[str, Program]]) -> Kill:
    for law, program in found:
        result = run_program(program, scenario, keep_trace=False)
        if result.outcome is Outcome.VIOLATED and result.law == law:
            return Kill(law, scenario, len(program.ops))
    return Kill()


def first_kill(mutant: str, seed: int, budget_s: float) -> str:
    """What is to be said of one bug."""
    began = time.monotonic()
    work = partial(turn, seed)
    planted = partial(applied, MUTANTS[mutant])
    for number, row in enumerate(
        supervised(work, range(NUMBERS), JOB_TIMEOUT_S, planted)
    ):
        seconds = time.monotonic() - began
        how = TURNS[number % len(TURNS)]
        if isinstance(row, Lost):
            return f"{row.how} after {seconds:.1f} s, in {how}"
        if row.law:
            return (
                f"{row.law} after {seconds:.1f} s, by {how} of {row.scenario}, "
                f"{row.ops} ops"
            )
        if seconds > budget_s:
            return f"SURVIVED {seconds:.0f} s, {number + 1} turns"
    raise AssertionError("there are more numbers than seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ids", nargs="*", default=NEEDS_MORE_THAN_A_KILL, metavar="ID")
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    said = parser.parse_args()
    for mutant in said.ids:
        told = first_kill(mutant, said.seed, said.budget)
        print(f"{mutant:5} {told}", flush=True)


if __name__ == "__main__":
    main()
