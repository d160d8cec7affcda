"""Machine search: runs a scenario's machine until it violates a law.

Failures are shrunk by our own shrinker, which knows that any op can be left out. The
gate calls ``first_failure``, and shrinks only what it reports.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from crashmq.harness.episodes.running import runner_of
from crashmq.harness.failures.shrink import ShrinkInterrupted, shrink
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.harness.searches.machine import (
    FoundFailure,
    Recorder,
    StoreMachine,
    machine_for,
)
from crashmq.harness.searches.search_settings import search_settings
from crashmq.harness.subjects.named import NamedSubject
from crashmq.models.laws.registry import LawViolated


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search; it has the failure so far and the number of programs."""

    def __init__(self, found: FoundFailure | None, runs: int) -> None:
        super().__init__()
        self.found = found
        self.runs = runs


def find_failure(
    scenario_name: str,
    *,
    profile: str = "ci",
    max_examples: int | None = None,
    seed: int | None = None,
    mutant: str = "",
) -> FoundFailure | None:
    """Let Hypothesis search a scenario until a law is violated, then shrink.

    Shrinking is ours: it needs tens of runs where Hypothesis needs thousands, and ends
    with fewer ops.

    Args:
        scenario_name: of the catalogue.
        profile: of ``search_settings``; ``ci`` finds the same each time.
        max_examples: how many programs to try; None: the profile's number.
        seed: of the search, so that it can be repeated; None: the profile decides.
        mutant: id of a planted bug to search with; "" for the clean engine.

    Returns:
        The shrunk program, or None if no program violated a law.

    Raises:
        LawUnknown: a law could not be judged, which is a defect of ours.
        SearchInterrupted: by Ctrl-C; it has the failure so far.
    """
    recorder = Recorder(mutant)
    machine = machine_for(scenario_name, recorder)
    chosen = _chosen(machine, profile, max_examples)
    if seed is not None:
        machine = seeded(seed)(machine)
        chosen = settings(chosen, derandomize=False)
    with applied(MUTANTS[mutant]) if mutant else nullcontext():
        found = _first_of(machine, chosen)
        return _shrunk_or_cut(found, recorder.episodes) if found else None


def first_failure(
    scenario_name: str,
    max_examples: int,
    subject: NamedSubject | None,
    progress: Callable[[int], None],
) -> FoundFailure | None:
    """Search with the profile ``ci``, and return the first failure, not shrunk.

    The caller plants the bug, if there is one.

    Args:
        scenario_name: of the catalogue.
        max_examples: how many programs to try.
        subject: the store to drive; None for our engine.
        progress: called after each program with how many were run.

    Raises:
        LawUnknown: a law could not be judged, which is a defect of ours.
        SearchInterrupted: by Ctrl-C; it has the failure so far.
    """
    recorder = Recorder(progress=progress)
    machine = machine_for(scenario_name, recorder, subject=subject)
    return _first_of(machine, _chosen(machine, "ci", max_examples))


def warm_up() -> None:
    """Let Hypothesis set up what it needs once per process; call before forking."""
    machine = machine_for("clean_restart")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _first_of(machine, _chosen(machine, "ci", 1))


def _chosen(
    machine: type[StoreMachine], profile: str, max_examples: int | None
) -> settings:
    steps = machine.scenario.machine_steps
    chosen = search_settings(
        profile, max_examples=max_examples, steps=steps, shrinks=False
    )
    return settings(chosen, database=None)


def _first_of(machine: type[StoreMachine], chosen: settings) -> FoundFailure | None:
    """Run a machine's search; return the failure that ended it."""
    failures = machine.recorder.failures
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except LawViolated as breach:
        return failures[breach.id]
    except KeyboardInterrupt:
        found = next(iter(failures.values()), None)
        raise SearchInterrupted(found, machine.recorder.episodes) from None
    return None


def _shrunk_or_cut(found: FoundFailure, runs: int) -> FoundFailure:
    try:
        return shrunk(found)
    except KeyboardInterrupt as cut:
        smaller = found
        if isinstance(cut, ShrinkInterrupted):
            smaller = replace(found, program=cut.so_far.program)
        raise SearchInterrupted(smaller, runs) from None


def shrunk(found: FoundFailure, *, budget_runs: int = 2000) -> FoundFailure:
    """The same failure with the smallest program found; a bug must be planted already.

    Raises:
        NothingToShrink: run alone, the program does not violate the law.
    """
    smaller = shrink(
        found.program,
        found.scenario,
        found.violated,
        budget_runs=budget_runs,
        run=runner_of(found.subject),
    )
    return replace(
        found,
        program=smaller.program,
        message=smaller.result.message,
        step=smaller.result.step,
    )
