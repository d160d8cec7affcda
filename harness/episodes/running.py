"""Runs a program on a user's store, or on crashmq's engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.subjects.named import MakesSubjects
from crashmq.models.program import Program

Run: TypeAlias = Callable[[Program, str], EpisodeResult]


def runner_of(subject: MakesSubjects | None) -> Run:
    """What runs a program of a scenario on a store, and judges it.

    It raises ``SubjectLacks`` for a program that the store cannot do.
    """

    def run(program: Program, scenario: str) -> EpisodeResult:
        if subject is None:
            return run_program(program, scenario)
        return run_program(program, scenario, subject=subject.made(program.setup))

    return run
