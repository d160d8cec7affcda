"""Machine search: runs a scenario's machine until it violates a law.

Failures are shrunk by our own shrinker, which knows that any op can be left out. The
gate calls ``first_failure``, and shrinks only what it reports.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from crashmq.harness.episodes.running import runner_of
from crashmq.harness.failures.shrink import shrink
from crashmq.harness.searches.machine import (
    FoundFailure,
    Recorder,
    StoreMachine,
    machine_for,
)
from crashmq.harness.searches.search_settings import search_settings
from crashmq.harness.subjects.named import NamedSubject
from crashmq.models.laws.registry import LawViolated


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
    """
    recorder = Recorder(progress=progress)
    machine = machine_for(scenario_name, recorder, subject=subject)
    return _first_of(machine, max_examples)


def warm_up() -> None:
    """Let Hypothesis set up what it needs once per process; call before forking."""
    machine = machine_for("clean_restart")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _first_of(machine, 1)


def _first_of(machine: type[StoreMachine], max_examples: int) -> FoundFailure | None:
    """Run a machine's search; return the failure that ended it."""
    steps = machine.scenario.machine_steps
    chosen = search_settings(
        "ci", max_examples=max_examples, steps=steps, shrinks=False
    )
    chosen = settings(chosen, database=None)
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except LawViolated as breach:
        return machine.recorder.failures[breach.id]
    return None


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
