"""Parts of the gate: one phase of one scenario, run in a child process.

A part sends messages to the gate: how many programs have run, each program that
violated a law, and what could not be judged. ``gate`` decides when a part runs and what
becomes of its failures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias, assert_never

from crashmq.harness.episodes.running import runner_of
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.failures.shrink import NothingToShrink, ShrinkResult, shrink
from crashmq.harness.mutants.mutation import Mutant, applied
from crashmq.harness.searches.machine_search import first_failure
from crashmq.harness.searches.side_by_side import Tell
from crashmq.harness.searches.soak import SoakTask
from crashmq.harness.searches.tally import Tally, tallied
from crashmq.harness.subjects.named import NamedSubject
from crashmq.models.laws.registry import LawUnknown
from crashmq.models.program import Program
from crashmq.models.program_json import from_json
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS, Scenario

Phase: TypeAlias = Literal["cases", "machine", "soak"]
PHASES: tuple[Phase, ...] = ("cases", "machine", "soak")

SEED = 0
_EPISODES_THAT_REACH_ALL = 1000


@dataclass(frozen=True, slots=True)
class GateProfile:
    """How much the gate tries for each scenario.

    Attributes:
        machine_cases: programs by Hypothesis.
        soak_episodes: seeded programs.
        shrink_runs: programs that are tried to make a failure smaller.
        programs_max: of all scenarios together, recorded cases not counted.
        part_timeout_s: processor time; a part that takes longer is ended as hung.
    """

    machine_cases: int
    soak_episodes: int
    shrink_runs: int
    programs_max: int = 1_000_000
    part_timeout_s: float = 600.0

    def shared_by(self, scenarios: int) -> GateProfile:
        """The profile with fewer programs of each kind, for many scenarios.

        There is at least one program of each kind.
        """
        each = self.machine_cases + self.soak_episodes
        share = min(each, self.programs_max // max(1, scenarios))
        machine = max(1, self.machine_cases * share // each)
        return replace(
            self, machine_cases=machine, soak_episodes=max(1, share - machine)
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """What all parts of one gate share.

    Attributes:
        mutant: the bug that is planted; None for none.
        subject: the store that is judged; None for our engine.
        cases: the recorded cases, by scenario.
    """

    profile: GateProfile
    mutant: Mutant | None
    subject: NamedSubject | None
    cases: dict[str, tuple[CaseFile, ...]]


@dataclass(frozen=True, slots=True)
class Found:
    """A program that violated a law, and the part that found it."""

    phase: Phase
    scenario: str
    law: str
    program: Program


@dataclass(frozen=True, slots=True)
class Part:
    """One phase of one scenario; with ``found``, the shrinking of that failure."""

    scenario: str
    phase: Phase
    found: Found | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """How many programs a part has run so far."""

    runs: int


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Why something was not judged, or a required law or probe not reached."""

    why: str


def runs_of(part: Part, planned: Planned) -> int:
    """How many programs a part is to run."""
    match part.phase:
        case "cases":
            return len(planned.cases.get(part.scenario, ()))
        case "machine":
            return planned.profile.machine_cases
        case "soak":
            return planned.profile.soak_episodes
        case _:
            assert_never(part.phase)


def run_part(part: Part, tell: Tell, planned: Planned) -> None:
    """Run one part in this process; tell ``Ran``, ``Found`` and ``Unjudged``.

    A part that shrinks a failure tells a ``ShrinkResult`` for each smaller program, and
    one at its end: the last one counts, however its process ends.
    """
    with _with_bug(planned):
        if part.found is not None:
            _shrink(part.found, tell, planned)
        elif part.phase == "cases":
            _replay_cases(part, tell, planned)
        elif part.phase == "machine":
            _search(part, tell, planned)
        else:
            _soak(part, tell, planned)


def _with_bug(planned: Planned) -> AbstractContextManager[object]:
    return applied(planned.mutant) if planned.mutant else nullcontext()


def _shrink(found: Found, tell: Tell, planned: Planned) -> None:
    told: Program | None = None

    def tell_smaller(so_far: ShrinkResult) -> None:
        nonlocal told
        if so_far.program != told:
            told = so_far.program
            tell(so_far)

    try:
        shrunk = shrink(
            found.program,
            found.scenario,
            found.law,
            budget_runs=planned.profile.shrink_runs,
            progress=tell_smaller,
            run=runner_of(planned.subject),
        )
        tell(shrunk)
    except NothingToShrink as error:
        tell(Unjudged(f"{found.phase} of {found.scenario}: {error}"))


def _replay_cases(part: Part, tell: Tell, planned: Planned) -> None:
    """Replay the recorded cases of the scenario; none may violate a law."""
    run, scenario = runner_of(planned.subject), part.scenario
    for number, case in enumerate(planned.cases.get(scenario, ()), start=1):
        result = run(case.program, scenario)
        if result.outcome is Outcome.VIOLATED:
            tell(Found("cases", scenario, result.law, case.program))
        elif result.outcome is Outcome.UNKNOWN:
            tell(Unjudged(f"a case of {scenario}: {result.message}"))
        tell(Ran(number))


def _search(part: Part, tell: Tell, planned: Planned) -> None:
    """Let Hypothesis search for a program that violates a law."""
    scenario, count = part.scenario, planned.profile.machine_cases
    try:
        failure = first_failure(
            scenario,
            count,
            planned.subject,
            lambda runs: tell(Ran(min(runs, count))),
        )
    except LawUnknown as unknown:
        tell(Unjudged(f"the machine of {scenario}: {unknown}"))
        return
    if failure:
        tell(Found("machine", scenario, failure.violated, failure.program))
    tell(Ran(count))


def _soak(part: Part, tell: Tell, planned: Planned) -> None:
    """Run seeded episodes, and check that they reached the required laws and probes."""
    scenario, told, tally = part.scenario, 0, Tally()
    named = planned.subject.name if planned.subject else ""
    count = planned.profile.soak_episodes
    checks = planned.mutant is None
    task = SoakTask.define((scenario,), SEED, invariants=checks).judging(named)
    for tally in tallied(task, count):
        if len(tally.failures) > told:
            told = len(tally.failures)
            _report_failure(tally, scenario, tell)
        tell(Ran(tally.episodes))
    if planned.subject is None:
        for missing in missing_from(tally, SCENARIOS[scenario]):
            tell(Unjudged(f"the soak of {scenario} never reached {missing}"))


def _report_failure(tally: Tally, scenario: str, tell: Tell) -> None:
    """Tell the newest distinct failure."""
    signature, record = next(reversed(tally.failures.items()))
    if record.outcome == Outcome.VIOLATED.value:
        (law, *_) = [v.law for v in record.verdicts if v.violations]
        program = from_json(json.loads(record.program))
        tell(Found("soak", scenario, law, program))
    else:
        number = record.episode_id
        tell(Unjudged(f"the soak of {scenario}: {signature}, episode {number}"))


def missing_from(tally: Tally, scenario: Scenario) -> Iterator[str]:
    """The required laws and probes that no episode has reached.

    Empty after fewer than a thousand episodes, or after a failure.
    """
    if tally.episodes < _EPISODES_THAT_REACH_ALL or tally.failures:
        return
    for law in scenario.required_laws:
        if not tally.checks.get(law):
            yield f"law {law}"
    for probe in scenario.required_probes:
        if not tally.probes.get(probe):
            yield f"probe {probe}"


def work_of(planned: Planned) -> Callable[[Part, Tell], None]:
    """``run_part`` with the plan of one gate."""
    return partial(run_part, planned=planned)
