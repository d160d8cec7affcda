"""Edited runs: whether an op runs a function in which a bug is planted.

A sweep fails each call of an op, or stops it at each point, which takes dozens of runs.
So one run before it finds out whether the op runs the planted text at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from crashmq.harness.episodes.episode import Episode
from crashmq.harness.mutants.swaps import MARK
from crashmq.harness.scheduling.line_switches import tracing
from crashmq.models.laws.registry import LawUnknown, LawViolated
from crashmq.models.ops import innermost
from crashmq.models.program import Program

T = TypeVar("T")
TRIES = 5


def first_that_runs_it(
    drawn: Callable[[int], T], runs_it: Callable[[T], bool], turn: int
) -> T:
    """The first of ``TRIES`` candidates that runs the planted text; else the first.

    Args:
        drawn: makes a candidate from its number; each turn has numbers of its own.
        runs_it: whether a candidate runs the planted text.
        turn: >= 0.
    """
    numbers = range(turn * TRIES, (turn + 1) * TRIES)
    first = drawn(numbers[0])
    if runs_it(first):
        return first
    others = map(drawn, numbers[1:])
    return next((one for one in others if runs_it(one)), first)


def runs_edited(program: Program, scenario: str, number: int) -> bool:
    """Whether the op of that number, run after those before it, runs edited functions.

    An event during the op is left out. True if a law is violated on the way: the sweep
    will find that.
    """
    op = innermost(program.ops[number])
    episode = Episode(scenario, program.setup, keep_trace=False)
    try:
        for before in program.ops[:number]:
            episode.step(before)
        with _edited_calls() as were_seen:
            episode.step(op)
        return bool(were_seen)
    except (LawViolated, LawUnknown):
        return True
    finally:
        episode.close()


@contextmanager
def _edited_calls() -> Iterator[set[str]]:
    """Note which code of planted bugs is called while the context lasts."""
    seen: set[str] = set()

    def called(frame: FrameType, _: str, __: Any) -> None:
        if frame.f_code.co_filename.startswith(MARK):
            seen.add(frame.f_code.co_filename)

    with tracing(called):
        yield seen
