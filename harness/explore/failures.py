"""Failures: makes each disk call of an op fail, one after the other.

A failure between two particular calls is hardly ever drawn at random. But an op makes
few calls of a kind, so each of them can fail: alone, or with all that follow.

Source: the I/O error tests of "How SQLite Is Tested", section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.models.observations import Armed, Interrupted
from crashmq.models.ops import (
    Crash,
    DiskFault,
    During,
    Event,
    FaultCall,
    FaultErrno,
    Survivors,
    innermost,
    parts,
)
from crashmq.models.program import Program
from crashmq.models.verdict import Outcome

CALLS: tuple[tuple[FaultCall, FaultErrno], ...] = (
    ("read", "EIO"),
    ("write", "EIO"),
    ("write", "ENOSPC"),
    ("sync", "EIO"),
    ("create", "ENOSPC"),
    ("remove", "EIO"),
)
POINTS_MAX = 100_000
LEFT_BY_SYNCS = (
    Survivors(),
    Survivors("all"),
    *(Survivors("hashed", seed) for seed in (10, 4)),
)
"""What a failed sync leaves of its pages, where anything may ask the medium for it."""


@dataclass(slots=True)
class Failures:
    """The result of failing the disk calls of one program, one at a time.

    Attributes:
        visited: number of runs.
        calls: how many of them had a failing call.
        open: pairs of op and kind of failure that were not tried completely in
            time.
        found: by law, the first run that violated it.
    """

    visited: int = 0
    calls: int = 0
    open: int = 0
    found: dict[str, Program] = field(default_factory=dict)

    @property
    def is_closed(self) -> bool:
        """Whether each call of each op was tried, failing once and failing for good."""
        return not self.open


def explore_failures(
    program: Program, scenario: str, is_over: Callable[[], bool] = lambda: False
) -> Failures:
    """Fail each call of each op of a program, in every way of ``CALLS``.

    Args:
        program: an op loses its own event when a failure is added to it.
        scenario: the program's.
        is_over: whether time is over.
    """
    seen = Failures()
    for tried, number in _sweeps(program):
        if is_over():
            seen.open += 1
            continue
        for run, result in each_failure(tried, scenario, number, POINTS_MAX):
            seen.visited += 1
            seen.calls += _hit_its_fault(result, number)
            if result.outcome is not Outcome.PASSED:
                seen.found.setdefault(result.law, run)
            if is_over():
                seen.open += 1
                break
    return seen


def _sweeps(program: Program) -> Iterator[tuple[Program, int]]:
    reverts = PROFILES[program.setup.disk_profile].sync_failure == "revert"
    for number, met in enumerate(program.ops):
        op = innermost(met)
        shows = reverts or any(map(_asks_the_medium, program.ops[number + 1 :]))
        for call, errno in CALLS:
            for lasts in (False, True):
                ops = list(program.ops)
                fault = DiskFault(call, errno, lasts=lasts)
                ways = LEFT_BY_SYNCS if call == "sync" and shows else LEFT_BY_SYNCS[:1]
                for left in ways:
                    ops[number] = During(op, 1, replace(fault, survivors=left))
                    yield replace(program, ops=tuple(ops)), number


def _asks_the_medium(op: Event) -> bool:
    """Whether ``op`` loses memory or power, so that only the medium remains."""
    if isinstance(op, Crash):
        return op.kind == "power_loss"
    if isinstance(op, DiskFault):
        return op.call == "evict"
    return any(map(_asks_the_medium, parts(op)))


def each_failure(
    program: Program, scenario: str, number: int, points_max: int
) -> Iterator[tuple[Program, EpisodeResult]]:
    """Fail the first call that the op's fault applies to, then the second, and so on.

    Yields for each run its program and its result, including the end; in the last run
    the op made fewer calls than that.

    Args:
        program: its op of that number meets a disk fault.
        scenario: the program's.
        number: the op's.
        points_max: the most runs.
    """
    failing = program.ops[number]
    assert isinstance(failing, During), "the op meets no event"
    assert isinstance(failing.event, DiskFault), "the event is no fault of the disk"
    before, behind = program.ops[:number], program.ops[number + 1 :]
    for point in range(points_max):
        fault = replace(failing.event, after=point)
        ops = (*before, replace(failing, event=fault), *behind)
        tried = replace(program, ops=ops)
        result = run_program(tried, scenario)
        yield tried, result
        if not _hit_its_fault(result, number):
            return


def _hit_its_fault(result: EpisodeResult, number: int) -> bool:
    """Whether a call of that op met its fault."""
    seen = next((step.observation for step in result.trace if step.number == number), 0)
    event = seen.event if isinstance(seen, Interrupted) else None
    return isinstance(event, Armed) and event.failed > 0
