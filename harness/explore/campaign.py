"""Campaign: many histories explored by many processes, within a time budget.

A job is one history: a scenario's by its number, a small world's by its node; or a part
of the crash points of one given program. Free processes take the next job; results add
up in any order. A planted bug is planted in each process.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count

from crashmq.harness.explore.certificate import Certificate
from crashmq.harness.explore.closing import to_close
from crashmq.harness.explore.crash_point import CrashPoint, record
from crashmq.harness.explore.explorer import Explorer, Found
from crashmq.harness.explore.limits import Limits
from crashmq.harness.guards.pools import is_stopped, worked_off
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.models.program import Program
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.catalogue.small_worlds import nodes
from crashmq.scenarios.programs.workload import program_for

LENGTHS = (2, 4, 3, 6, 5, 9, 4, 14, 7, 3, 24, 10)  # ops of a history; short ones often


@dataclass(frozen=True, slots=True)
class Job:
    """One history, or a part of its crash points.

    Attributes:
        shared: crash points in the first so many ops belong to another job.
        part: which of ``parts`` parts: this crash point and every ``parts``-th after
            it.
    """

    scenario: str
    program: Program
    seed: int
    limits: Limits
    mutant: str = ""
    shared: int = 0
    part: int = 0
    parts: int = 1


@dataclass(slots=True)
class Result:
    """The sum of jobs: the certificate, and the violations found, by signature.

    ``on`` has a certificate for each disk profile.
    """

    counts: Certificate = field(default_factory=Certificate)
    on: dict[str, Certificate] = field(default_factory=dict)
    found: dict[str, Found] = field(default_factory=dict)
    first_found_s: float = -1.0

    def add(self, other: Result) -> None:
        """Add another job's result; keep the shorter finding of each signature."""
        self.counts.add(other.counts)
        for profile, counts in other.on.items():
            self.on.setdefault(profile, Certificate()).add(counts)
        for name, one in other.found.items():
            before = self.found.get(name)
            if before is None or len(one.program.ops) < len(before.program.ops):
                self.found[name] = one


def jobs_of_scenario(
    name: str, seed: int, ops: int, limits: Limits, profile: str = "", mutant: str = ""
) -> Iterator[Job]:
    """An endless stream of jobs; history n is the seed's n-th program, cut short.

    With ``limits.classes_max`` programs are changed by ``to_close``, so that all of
    their crash states can be tried.
    """
    for number in count():
        program = program_for(SCENARIOS[name], seed, number)
        length = min(ops, LENGTHS[number % len(LENGTHS)])
        program = Program(on_profile(program, profile).setup, program.ops[:length])
        if limits.classes_max:
            program = to_close(program)
        yield Job(name, program, seed + number, limits, mutant)


def jobs_of_world(
    length: int, seed: int, limits: Limits, profile: str = "", mutant: str = ""
) -> Iterator[Job]:
    """A job for each node of a small world."""
    for number, node in enumerate(nodes(length, profile)):
        yield Job("", node.program, seed + number, limits, mutant, node.shared)


def jobs_of_program(
    scenario: str, program: Program, limits: Limits, parts: int, mutant: str = ""
) -> Iterator[Job]:
    """The crash points of one program, split into jobs."""
    for part in range(parts):
        yield Job(scenario, program, 0, limits, mutant, part=part, parts=parts)


def round_robin(hands: Sequence[Iterator[Job]]) -> Iterator[Job]:
    """One job of each iterator in turn, until all are used up."""
    left = list(hands)
    while left:
        for hand in [*left]:
            job = next(hand, None)
            if job is None:
                left.remove(hand)
            else:
                yield job


def on_profile(program: Program, profile: str) -> Program:
    """The program on another disk profile; unchanged for ""."""
    if not profile:
        return program
    return replace(program, setup=replace(program.setup, disk_profile=profile))


def run_job(job: Job, deadline: float) -> Result:
    """Explore one job's history until it is done or time is over."""
    started = time.process_time()
    with _collector_paused():
        result = _run_job(job, deadline)
    result.counts.seconds = time.process_time() - started
    return result


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Collect garbage only among new objects, as ``Explorer`` needs it.

    An exploration keeps more and more objects, without cycles; collecting them again
    and again took a tenth of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _run_job(job: Job, deadline: float) -> Result:
    explorer = Explorer(
        job.scenario,
        job.limits,
        seed=job.seed,
        is_over=lambda: time.monotonic() >= deadline or is_stopped(),
    )
    with applied(MUTANTS[job.mutant]) if job.mutant else nullcontext():
        history = record(job.program, job.scenario)
        history.crash_points = [
            crash_point
            for number, crash_point in enumerate(history.crash_points)
            if _is_own(crash_point, job.shared) and number % job.parts == job.part
        ]
        if job.part:
            history.breach = None  # the first part tells it
        explorer.explore(history)
    profile = job.program.setup.disk_profile
    return Result(explorer.counts, {profile: explorer.counts}, explorer.found)


def _is_own(crash_point: CrashPoint, shared: int) -> bool:
    """Whether a crash point lies after the first ``shared`` ops."""
    done = len(crash_point.before)
    return (
        not shared or done > shared or (done == shared and not crash_point.is_between)
    )


def run_jobs(jobs: Iterator[Job], workers: int, budget_s: float) -> Iterator[Result]:
    """Yield each job's result as it ends; no job begins after the budget.

    At Ctrl-C the running jobs are stopped; the results that arrive soon are yielded,
    and then KeyboardInterrupt is raised.
    """
    yield from worked_off(workers, run_job, jobs, time.monotonic() + budget_s)
    if next(jobs, None) is not None:
        yield Result(Certificate(stopped_early=True))
