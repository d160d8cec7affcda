"""Machine search: a machine of a scenario, run until it breaks a law.

What it finds is shrunk by ours, which knows that any op can be cut; the gate finds
first, and shrinks of all that was found what it tells.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

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
    """An interrupt during a search: what it had found, and how many programs it ran."""

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
    """Let Hypothesis search a scenario until a law is broken, then shrink.

    Our own shrinker cuts what was found, for it knows that any op can go: it needs
    tens of runs where Hypothesis's needs thousands, and ends with fewer ops.

    Args:
        scenario_name: of the catalogue.
        profile: of ``search_settings``; ``ci`` finds the same each time.
        max_examples: cases to try instead of the profile's number.
        seed: the chance to use, so that a search can be repeated; without one the
            profile decides.
        mutant: id of a planted bug to search with; "" for the clean engine.

    Returns:
        The shrunk program, or None if no case broke a law.

    Raises:
        LawUnknown: a law could not be judged, which is a defect of ours.
        SearchInterrupted: by Ctrl-C; it holds what was found.
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
    """What a search of the profile ``ci`` finds first, not shrunk.

    The caller plants the bug, if there is one.

    Args:
        scenario_name: of the catalogue.
        max_examples: cases to try.
        subject: the store to drive; None for our engine.
        progress: told how many cases were run, after each.

    Raises:
        LawUnknown: a law could not be judged, which is a defect of ours.
        SearchInterrupted: by Ctrl-C; it holds what was found.
    """
    recorder = Recorder(progress=progress)
    machine = machine_for(scenario_name, recorder, subject=subject)
    return _first_of(machine, _chosen(machine, "ci", max_examples))


def warm_up() -> None:
    """Let Hypothesis learn what it learns once a process, before others are forked."""
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
    """The failure that a machine's search ends with."""
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
    """The same failure with the smallest program found; a mutant must be applied.

    Raises:
        NothingToShrink: run on its own, the program does not break the law.
    """
    smaller = shrink(
        found.program, found.scenario, found.violated, budget_runs=budget_runs
    )
    return replace(
        found,
        program=smaller.program,
        message=smaller.result.message,
        step=smaller.result.step,
    )
