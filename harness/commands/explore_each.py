"""Shared by the kinds of ``crashmq explore`` that take one history at a time."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from crashmq.harness.commands.arguments import (
    bug_or_store,
    can_it,
    case_at,
    mutant_named,
    mutant_option,
    planted,
    scenarios_named,
    subject_at,
    subject_of,
    writing,
)
from crashmq.harness.commands.exits import INTERRUPTED, BadInput
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.episodes.running import runner_of
from crashmq.harness.failures.case_file import SUFFIX, CaseFile
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.harness.guards.pools import is_stopped, worked_off
from crashmq.harness.subjects.named import OURS
from crashmq.models.ops import EVERYTHING
from crashmq.models.program import Program
from crashmq.reports.files import write_json
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

_EPISODES_MAX = 100_000
_BARREN_MAX = 1000  # programs without anything to try, from the first on


class Tried(Protocol):
    """The result of exploring one history."""

    visited: int
    found: dict[str, Program]

    @property
    def is_closed(self) -> bool:
        """Whether everything of the history was tried."""


T = TypeVar("T", bound=Tried)
TryAll = Callable[[Program, str, Callable[[], bool]], T]


class Target:
    """What to explore: a case file or a scenario, and the bug to plant, if any."""

    def __init__(
        self,
        target: str,
        mutant: str | None,
        seed: int,
        histories: int | None,
        subject: str | None = None,
    ) -> None:
        """Raises ``BadInput`` if there is no such case, scenario, mutant or store."""
        self.text = target
        self.subject = subject_at(subject) if subject else None
        self.bug = mutant_named(mutant)
        self.is_case = target.endswith(SUFFIX)
        self._seed, self.histories = seed, histories
        if self.is_case:
            case = case_at(Path(target))
            self.subject = subject_of(case, Path(target), subject)
            self.scenario, self._program = case.scenario, case.program
            self.bug = self.bug if mutant else mutant_named(case.mutant)
        else:
            (self.scenario,) = scenarios_named((target,))
        bug_or_store(self.bug, self.subject)
        can_it(self.subject, (self.scenario,))

    def programs(self, cut: Callable[[Program], Program | None]) -> Iterator[Program]:
        """The programs as cut by ``cut``; where it leaves nothing, they are skipped."""
        found = 0
        for number, program in enumerate(self._drawn()):
            left = cut(program)
            if left is not None:
                found += 1
                yield left
            if found == self.histories or (not found and number == _BARREN_MAX):
                return

    def _drawn(self) -> Iterator[Program]:
        if self.is_case:
            yield self._program
            return
        for episode in range(_EPISODES_MAX):
            can = self.subject.can if self.subject else EVERYTHING
            yield program_for(SCENARIOS[self.scenario], self._seed, episode, can)


@dataclass(frozen=True, slots=True)
class Effort:
    """How long an exploration may take, in seconds, and by how many processes."""

    budget_s: float
    workers: int


@dataclass(frozen=True, slots=True)
class History:
    """One history to try: the ``number``-th of its target, for ``share_s`` at most."""

    number: int
    program: Program
    scenario: str
    bug: str
    share_s: float


def try_each(
    target: Target,
    cut: Callable[[Program], Program | None],
    try_all: TryAll[T],
    effort: Effort,
    nothing: str,
    share: float = 1.0,
) -> list[T]:
    """Try all histories until time is over; returns the result of each, in order.

    An interrupt ends the time.

    Args:
        target: the case or scenario.
        cut: the part of a program to try; None: none of it.
        try_all: tries a history until time is over; it is sent to the workers.
        effort: a case has one history, so it is tried by one process.
        nothing: what to say if there is nothing to try.
        share: of the budget, for each history at most.

    Raises:
        BadInput: there is nothing to try.
    """
    budget, count = effort.budget_s, 1 if target.is_case else effort.workers
    share_s = budget * min(1.0, share * count)
    histories = (
        History(number, program, target.scenario, target.bug, share_s)
        for number, program in enumerate(target.programs(cut))
    )
    seen: dict[int, T] = {}
    visited, began = 0, time.monotonic()
    work = partial(_try_one, try_all)
    with Progress("explore") as progress:
        try:
            for number, one in worked_off(count, work, histories, began + budget):
                seen[number] = one
                visited += one.visited
                spent = int(min(budget, time.monotonic() - began))
                detail = f"s; {visited:,} runs of {len(seen):,} histories"
                progress.update(spent, int(budget), detail)
        except KeyboardInterrupt:
            INTERRUPTS.take()
            say("crashmq: interrupted.", err=True)
    if not seen and INTERRUPTS.seen:
        raise SystemExit(INTERRUPTED)
    if not seen:
        raise BadInput(nothing)
    return [seen[number] for number in sorted(seen)]


def _try_one(try_all: TryAll[T], history: History, deadline: float) -> tuple[int, T]:
    """Try one history; returns its number and the result."""
    stops = min(deadline, time.monotonic() + history.share_s)

    def is_over() -> bool:
        return time.monotonic() > stops or is_stopped()

    with planted(history.bug):
        return history.number, try_all(history.program, history.scenario, is_over)


def end(
    target: Target,
    seen: Sequence[Tried],
    out: Path | None,
    summary: dict[str, Any],
    asked: str,
) -> int:
    """Save cases and summary, print findings; returns the exit code.

    Args:
        target: what was explored.
        seen: the result of each of its histories.
        out: where to save; None: nowhere.
        summary: what is saved beside the cases.
        asked: the options to repeat the search.
    """
    first: dict[str, Program] = {}
    for one in seen:
        for law, program in one.found.items():
            first.setdefault(law, program)
    for law in sorted(first):
        say(f"  BROKEN     {law}")
    cases = []
    if out is not None:
        cases = _save(target, first, {**summary, "violations": len(first)}, out)
    command = f"explore {shlex.quote(target.text)} {asked}{mutant_option(target.bug)}"
    if cases:
        theirs = f" --subject {target.subject.name}" if target.subject else ""
        command = f"replay {shlex.quote(str(cases[0]))}{theirs}"
    elif first:
        command += " --out runs/explore"
    else:
        command += " --budget 600"
    say(f"  next       crashmq {command}")
    if INTERRUPTS.seen:
        return INTERRUPTED
    return 1 if first else 0


def _save(
    target: Target, first: dict[str, Program], summary: dict[str, Any], out: Path
) -> list[Path]:
    """Write the first case of each law, and the counts."""
    cases: list[Path] = []
    with writing(), planted(target.bug):
        out.mkdir(parents=True, exist_ok=True)
        for law, program in first.items():
            result = runner_of(target.subject)(program, target.scenario)
            case = CaseFile(
                scenario=target.scenario,
                program=program,
                violated=law,
                step=result.step,
                digest=result.digest,
                message=result.message,
                mutant=target.bug,
                subject=target.subject.name if target.subject else OURS,
            )
            cases.append(case.save_beside(out / "cases", law))
        write_json(out / "summary.json", summary)
    return cases
