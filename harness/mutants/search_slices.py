"""Search slices: the numbered parts of a hunt, each a part of a second long.

A slice runs in the child process in which the bug is planted, and stops at the first
violated law. What it does depends only on the hunt's seed and the slice's number.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from crashmq.harness.disk.hashing import mixed
from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.explore.crash_point import record
from crashmq.harness.explore.explorer import Explorer
from crashmq.harness.explore.failures import each_failure
from crashmq.harness.explore.limits import Limits
from crashmq.harness.explore.schedules import each_stop
from crashmq.harness.mutants.aim import NO_AIM, Aim
from crashmq.harness.mutants.policies import OURS, POLICIES, run_under
from crashmq.harness.mutants.search_turns import (
    SEEDS_APART,
    STOPPED,
    SliceKind,
    episodes_of,
    explored_program,
    failing_program,
    overlapping_program,
    program_of,
    scenario_of_slice,
)
from crashmq.harness.searches.aiming import perhaps_aimed
from crashmq.harness.searches.machine import Recorder, StoreMachine, machine_for
from crashmq.harness.searches.search_settings import search_settings
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.program import Program
from crashmq.models.verdict import Outcome

EXAMPLES = 10
EXPLORED_OPS = (4, 6, 8, 12, 16, 24)
EXPLORED_CRASH_POINTS = 12
EXPLORED_STARTS = 400
SWEEP_POINTS = 60
STOPS = 4  # sweeps of a slice
FAILURES = 6
LIMITS = Limits(exact_max=64, promising=32, draws=16, nested_max=4, nested_draws=1)
"""A slice tries a little of many histories, where the explorer's command tries all of
one: bugs lie in few moments, and nobody knows in which."""


@dataclass(frozen=True, slots=True)
class FoundBug:
    """A kill: the law, its message, and the program that violated it.

    ``law`` is ``timeout`` or ``died`` where a process hung or ended before a law was
    violated; ``scenario`` is "" if the program is then unknown.
    """

    law: str
    message: str
    how: SliceKind
    scenario: str
    program: Program | None


@dataclass(slots=True)
class SliceRow:
    """What one slice did; ``found`` is the kill that ended it, None if there was none.

    ``cpu_s`` is its processor time; no other column depends on it.
    """

    states: int = 0
    histories: int = 0
    unknown: int = 0
    probes: Counter[str] = field(default_factory=Counter)
    found: FoundBug | None = None
    cpu_s: float = field(default=0.0, compare=False)


def run_slice(
    kind: SliceKind, seed: int, number: int, policy: str, aim: Aim = NO_AIM
) -> SliceRow:
    """Run one slice; it stops at the first violated law.

    With a policy every slice is seeded programs, since policies are compared on the
    same histories; with "" it is of its kind.
    """
    if policy or kind in ("soak", "neighbours"):
        return _programs(kind, seed, number, policy, aim)
    return _SEARCHES[kind](seed, number, aim)


def run_episode(
    kind: SliceKind, seed: int, episode: int, policy: str, aim: Aim = NO_AIM
) -> tuple[Program, EpisodeResult]:
    """Run one episode under a policy; returns the program with its survivors."""
    scenario, program = program_of(kind, seed, episode, aim)
    program = perhaps_aimed(program, seed, episode)
    result, program = run_under(POLICIES[policy or OURS], program, scenario)
    return program, result


def _programs(
    kind: SliceKind, seed: int, number: int, policy: str, aim: Aim
) -> SliceRow:
    row = SliceRow()
    runs = (
        run_episode(kind, seed, episode, policy, aim) for episode in episodes_of(number)
    )
    _take(row, kind, runs)
    return row


def _machine(seed: int, number: int, aim: Aim) -> SliceRow:
    """Let Hypothesis drive the machine of one scenario for a few cases."""
    machine = _machine_of(scenario_of_slice(number, aim))
    recorder = machine.recorder = Recorder()
    chosen = search_settings(
        "ci", max_examples=EXAMPLES, steps=machine.scenario.machine_steps, shrinks=False
    )
    chosen = settings(chosen, derandomize=False, database=None)
    row = SliceRow()
    test = seeded(seed * SEEDS_APART + number)(machine)
    try:
        with warnings.catch_warnings():
            # Of strategies over many setups; nobody reads their text here.
            warnings.filterwarnings("ignore", "Generating overly large repr")
            run_state_machine_as_test(test, settings=chosen)
    except LawViolated as breach:
        found = recorder.failures[breach.id]
        row.found = FoundBug(
            breach.id, found.message, "machine", found.scenario, found.program
        )
    except LawUnknown:
        row.unknown = 1
    row.histories, row.states = recorder.episodes, recorder.starts
    row.probes.update(recorder.probes)
    return row


@cache
def _machine_of(scenario: str) -> type[StoreMachine]:
    """The machine of a scenario, cached: making it takes longer than running it."""
    return machine_for(scenario)


def _explore(seed: int, number: int, aim: Aim) -> SliceRow:
    """Explore crashes at a few crash points of the beginning of one program."""
    scenario, program = explored_program(seed, number, aim)
    draw = mixed(seed * SEEDS_APART + number)
    length = EXPLORED_OPS[draw % len(EXPLORED_OPS)]
    history = record(replace(program, ops=program.ops[:length]), scenario)
    apart = max(1, len(history.crash_points) // EXPLORED_CRASH_POINTS)
    history.crash_points = history.crash_points[(draw >> 8) % apart :: apart]
    explorer = Explorer(
        scenario,
        LIMITS,
        seed=draw,
        is_over=lambda: explorer.counts.starts >= EXPLORED_STARTS,
    )
    explorer.explore(history)
    counts = explorer.counts
    row = SliceRow(states=counts.starts, histories=1, unknown=counts.unknown)
    for one in explorer.found.values():
        # Nobody can replay what only the explorer says.
        result = run_program(one.program, scenario, keep_trace=False)
        if not one.is_unknown and result.law == one.law:
            row.found = FoundBug(one.law, one.message, "explore", scenario, one.program)
            break
    return row


def _stops(seed: int, number: int, aim: Aim) -> SliceRow:
    """Stop one activity at each of its switch points; then check what is durable.

    Most bugs between two activities need one stop at one point, which is not known.
    """
    row = SliceRow()
    for one in range(number * STOPS, (number + 1) * STOPS):
        program = overlapping_program(seed, one, aim)
        if _take(row, "stops", each_stop(program, STOPPED, SWEEP_POINTS)):
            break
    return row


def _failures(seed: int, number: int, aim: Aim) -> SliceRow:
    """Fail each call of one kind that one op makes, after a program's beginning."""
    row = SliceRow()
    for one in range(number * FAILURES, (number + 1) * FAILURES):
        scenario, program, failing = failing_program(seed, one, aim)
        runs = each_failure(program, scenario, failing, SWEEP_POINTS)
        if _take(row, "failures", runs):
            break
    return row


def _take(
    row: SliceRow, how: SliceKind, runs: Iterable[tuple[Program, EpisodeResult]]
) -> bool:
    """Count runs up to the first that violated a law; return whether there was one."""
    for program, result in runs:
        _count(row, result)
        if result.outcome is Outcome.VIOLATED:
            law, message = result.law, result.message
            row.found = FoundBug(law, message, how, result.record.scenario, program)
            return True
    return False


def _count(row: SliceRow, result: EpisodeResult) -> None:
    row.histories += 1
    row.states += result.record.recoveries
    row.probes.update({hit.probe: hit.hits for hit in result.record.probes})
    row.unknown += result.outcome is Outcome.UNKNOWN


_SEARCHES: Mapping[SliceKind, Callable[[int, int, Aim], SliceRow]] = {
    "stops": _stops,
    "failures": _failures,
    "explore": _explore,
    "machine": _machine,
}
