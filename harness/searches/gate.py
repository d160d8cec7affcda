"""The gate: everything a change must pass, without Spark or Java.

For each scenario: the recorded cases are replayed, Hypothesis searches with the
scenario's machine, and a small seeded soak adds volume. What fails is shrunk and
kept as a case file. How the result is told belongs to the command line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.failures.case_file import SUFFIX, CaseFile
from crashmq.harness.failures.shrink import (
    NothingToShrink,
    ShrinkInterrupted,
    ShrinkResult,
    shrink,
)
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.harness.guards.invariants import invariants_checked
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.harness.searches.machine import SearchInterrupted, find_failure
from crashmq.harness.searches.soak import SoakTask, Tally, run_local
from crashmq.models.laws.registry import LawUnknown
from crashmq.models.program import Program, from_json
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS, Scenario

ARTEFACTS = Path(".crashmq")
CASES = Path(__file__).resolve().parents[2] / "scenarios" / "cases"
SEED = 0
_EPISODES_THAT_REACH_ALL = 1000


@dataclass(frozen=True, slots=True)
class GateProfile:
    """How hard the gate tries; numbers are for each scenario."""

    machine_cases: int
    soak_episodes: int
    shrink_runs: int


PROFILES = {
    "dev": GateProfile(machine_cases=60, soak_episodes=300, shrink_runs=1000),
    "ci": GateProfile(machine_cases=500, soak_episodes=1500, shrink_runs=2000),
}


@dataclass(frozen=True, slots=True)
class GateRow:
    """One phase of one scenario: ``cases``, ``machine`` or ``soak``."""

    scenario: str
    phase: str
    runs: int
    failures: int


@dataclass(frozen=True, slots=True)
class GateFailure:
    """A law that was broken: where it was found, shrunk, and kept."""

    phase: str
    scenario: str
    law: str
    shrunk: ShrinkResult
    case: Path


@dataclass(slots=True)
class GateResult:
    """What the gate found; ``unjudged`` says why a green one would mean less.

    After an interrupt it is what was found until then, shrunk as far as it came.
    """

    rows: list[GateRow] = field(default_factory=list)
    failures: list[GateFailure] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    interrupted: bool = False


Progress = Callable[[str, int, int], None]  # what, done, of how many


def check(
    scenarios: Sequence[str],
    profile: str,
    progress: Progress,
    *,
    mutant: str = "",
    artefacts: Path = ARTEFACTS,
    cases: Path = CASES,
) -> GateResult:
    """Run the gate over these scenarios; each law broken is reported once."""
    gate = _Gate(PROFILES[profile], progress, mutant, artefacts)
    try:
        # A canary is to die of a law, so that its case is replayed as any other.
        with invariants_checked(enabled=not mutant):
            for scenario in scenarios:
                gate.replay_cases(scenario, cases)
                gate.search(scenario)
                gate.soak(scenario)
    except KeyboardInterrupt:
        INTERRUPTS.take()
    gate.result.interrupted = INTERRUPTS.seen
    return gate.result


@dataclass(frozen=True, slots=True)
class _Found:
    phase: str
    scenario: str
    law: str
    program: Program


class _Gate:
    """One run of the gate and what it has found so far."""

    def __init__(
        self, profile: GateProfile, progress: Progress, mutant: str, artefacts: Path
    ) -> None:
        self.profile = profile
        self.progress = progress
        self.mutant = mutant
        self.artefacts = artefacts
        self.result = GateResult()

    def replay_cases(self, scenario: str, directory: Path) -> None:
        """Replay what was once found with this scenario; nothing may be broken now."""
        recorded = [
            CaseFile.load(path) for path in sorted(directory.glob(f"*{SUFFIX}"))
        ]
        mine = [case for case in recorded if case.scenario == scenario]
        found = []
        for number, case in enumerate(mine, start=1):
            with self._planted():
                result = run_program(case.program, scenario, keep_trace=False)
            if result.outcome is Outcome.VIOLATED:
                law = result.law
                found.append(_Found("cases", scenario, law, case.program))
            elif result.outcome is Outcome.UNKNOWN:
                self._unjudged(f"a case of {scenario}: {result.message}")
            self.progress(f"{scenario}: cases", number, len(mine))
        self._tell("cases", scenario, len(mine), found)

    def search(self, scenario: str) -> None:
        """Let Hypothesis look for a program that breaks a law."""
        count = self.profile.machine_cases
        self.progress(f"{scenario}: machine", 0, count)
        found, runs = [], count
        try:
            failure = find_failure(scenario, max_examples=count, mutant=self.mutant)
            self.progress(f"{scenario}: machine", count, count)
        except LawUnknown as unknown:
            failure = None
            self._unjudged(f"the machine of {scenario}: {unknown}")
        except SearchInterrupted as cut:
            self._interrupted()
            failure, runs = cut.found, cut.runs
        if failure:
            law = failure.violated
            found.append(_Found("machine", scenario, law, failure.program))
        self._tell("machine", scenario, runs, found)

    def soak(self, scenario: str) -> None:
        """Run seeded episodes, and see that they reached what they should."""
        count = self.profile.soak_episodes
        tally = Tally()
        task = SoakTask.define(
            (scenario,), SEED, count, self.mutant, invariants=not self.mutant
        )
        try:
            for tally in run_local(task):
                self.progress(f"{scenario}: soak", tally.episodes, count)
        except KeyboardInterrupt:
            self._interrupted()
        found = []
        for signature, record in tally.failures.items():
            if record.outcome == Outcome.VIOLATED.value:
                (law, *_) = [v.law for v in record.verdicts if v.violations]
                program = from_json(json.loads(record.program))
                found.append(_Found("soak", scenario, law, program))
            else:
                number = record.episode_id
                self._unjudged(f"the soak of {scenario}: {signature}, episode {number}")
        for missing in missing_from(tally, SCENARIOS[scenario]):
            self._unjudged(f"the soak of {scenario} never reached {missing}")
        self._tell("soak", scenario, tally.episodes, found)

    def _planted(self) -> AbstractContextManager[None]:
        return applied(MUTANTS[self.mutant]) if self.mutant else nullcontext()

    def _interrupted(self) -> None:
        """Stop; what this phase has found is told first."""
        INTERRUPTS.take()
        self.result.interrupted = True

    def _unjudged(self, why: str) -> None:
        self.result.unjudged.append(why)

    def _tell(self, phase: str, scenario: str, runs: int, found: list[_Found]) -> None:
        self.result.rows.append(GateRow(scenario, phase, runs, len(found)))
        for one in found:
            known = {failure.law for failure in self.result.failures}
            if one.law not in known:
                self._shrink(one)
        if self.result.interrupted:
            raise KeyboardInterrupt

    def _shrink(self, found: _Found) -> None:
        what = f"{found.scenario}: shrinking {found.law}"
        budget = 1 if self.result.interrupted else self.profile.shrink_runs
        try:
            with self._planted():
                shrunk = shrink(
                    found.program,
                    found.scenario,
                    found.law,
                    budget_runs=budget,
                    progress=lambda runs, _: self.progress(what, runs, budget),
                )
        except NothingToShrink as error:
            self._unjudged(f"{found.phase} of {found.scenario}: {error}")
            return
        except ShrinkInterrupted as cut:
            self._interrupted()
            shrunk = cut.so_far
        shrunk.result.record.mutant = self.mutant
        case = case_of(shrunk, found.scenario, self.mutant)
        stem = f"{found.scenario}-{found.law}"
        path = case.save_beside(self.artefacts, stem)
        self.result.failures.append(
            GateFailure(found.phase, found.scenario, found.law, shrunk, path)
        )


def case_of(shrunk: ShrinkResult, scenario: str, mutant: str) -> CaseFile:
    """The case file of what was shrunk."""
    result = shrunk.result
    return CaseFile(
        scenario=scenario,
        program=shrunk.program,
        violated=result.law,
        step=result.step,
        digest=result.digest,
        message=result.message,
        mutant=mutant,
        subject=result.record.subject,
    )


def missing_from(tally: Tally, scenario: Scenario) -> Iterator[str]:
    """Required laws and probes that no episode reached.

    Yields none after too few episodes to tell, or after a failure.
    """
    if tally.episodes < _EPISODES_THAT_REACH_ALL or tally.failures:
        return
    for law in scenario.required_laws:
        if not tally.checks.get(law):
            yield f"law {law}"
    for probe in scenario.required_probes:
        if not tally.probes.get(probe):
            yield f"probe {probe}"
