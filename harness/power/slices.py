"""Slices: what a hunt is dealt, a part of a second each, by number.

A slice runs in the child that has the bug in place, and stops at the first broken law.
Everything it does follows from the hunt's seed and the slice's number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from harness.episode import EpisodeResult
from harness.machine import Recorder, machine_for
from harness.power.policies import OURS, POLICIES, run_under
from harness.search_settings import search_settings
from models.invariants.registry import InvariantUnknown, InvariantViolated
from models.program import Program
from models.verdict import Outcome
from scenarios.catalogue import SCENARIOS
from scenarios.workload import program_for

SliceKind = Literal["soak", "machine"]

EPISODES = 10
EXAMPLES = 10
_SEEDS_APART = 1_000_003


@dataclass(frozen=True, slots=True)
class Found:
    """A kill: the law, what it said, and the program that broke it.

    ``law`` is ``timeout`` or ``died`` where a process hung or ended before any law had
    spoken; ``scenario`` is "" if the program could not be told then.
    """

    law: str
    message: str
    how: SliceKind
    scenario: str
    program: Program | None


@dataclass(slots=True)
class SliceRow:
    """What one slice did, and the kill it ended with."""

    states: int = 0
    histories: int = 0
    unknown: int = 0
    probes: Counter[str] = field(default_factory=Counter)
    found: Found | None = None


def run_slice(kind: SliceKind, seed: int, number: int, policy: str) -> SliceRow:
    """Do one slice; it stops at the first law that is broken.

    Policies are compared on the same histories, so that under one every slice is
    seeded episodes; "" is the whole portfolio.
    """
    if kind == "machine" and not policy:
        return _machine(seed, number)
    return _soak(seed, number, policy)


def soak_episodes(number: int) -> range:
    """The episodes of a soak slice."""
    return range(number * EPISODES, (number + 1) * EPISODES)


def soak_program(seed: int, episode: int) -> tuple[str, Program]:
    """The scenario and the program of one episode of a hunt."""
    names = list(SCENARIOS)
    name = names[episode % len(names)]
    return name, program_for(SCENARIOS[name], seed, episode)


def run_episode(seed: int, episode: int, policy: str) -> tuple[EpisodeResult, Program]:
    """Run one episode under a policy; what was run, with the survivors it chose."""
    scenario, program = soak_program(seed, episode)
    return run_under(POLICIES[policy or OURS], program, scenario)


def _soak(seed: int, number: int, policy: str) -> SliceRow:
    row = SliceRow()
    for episode in soak_episodes(number):
        result, program = run_episode(seed, episode, policy)
        row.histories += 1
        row.states += result.record.recoveries
        row.probes.update({hit.probe: hit.hits for hit in result.record.probes})
        row.unknown += result.outcome is Outcome.UNKNOWN
        if result.outcome is Outcome.VIOLATED:
            scenario = result.record.scenario
            row.found = Found(
                result.invariant, result.message, "soak", scenario, program
            )
            return row
    return row


def _machine(seed: int, number: int) -> SliceRow:
    """Let Hypothesis drive the machine of one scenario for a few cases."""
    names = list(SCENARIOS)
    recorder = Recorder()
    machine = machine_for(names[number // 4 % len(names)], recorder)
    chosen = search_settings(
        "ci", max_examples=EXAMPLES, steps=machine.scenario.machine_steps, shrinks=False
    )
    chosen = settings(chosen, derandomize=False, database=None)
    row = SliceRow()
    try:
        run_state_machine_as_test(
            seeded(seed * _SEEDS_APART + number)(machine), settings=chosen
        )
    except InvariantViolated as breach:
        found = recorder.failures[breach.id]
        row.found = Found(
            breach.id, found.message, "machine", found.scenario, found.program
        )
    except InvariantUnknown:
        row.unknown = 1
    row.histories, row.states = recorder.episodes, recorder.starts
    row.probes.update(recorder.probes)
    return row
