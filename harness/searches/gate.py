"""The gate: everything that a change must pass, without Spark or Java.

Each scenario has three phases: its recorded cases are replayed, Hypothesis searches
with the scenario's machine, and a small seeded soak adds volume. A phase of a scenario
is a *part* (``gate_parts``); parts run side by side. Of each violated law the first
failure is shrunk and saved as a case file; failures that the baseline lists are only
counted. A time limit holds for shrinking too: if there is something to shrink, the last
quarter of the time is for that. The number of workers does not change what is found.
Printing the result is left to the command line.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from crashmq.harness.failures.baseline import Known
from crashmq.harness.failures.case_file import SUFFIX, CaseFile
from crashmq.harness.failures.shrink import ShrinkResult
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.harness.guards.invariants import invariants_checked
from crashmq.harness.mutants.mutation import Mutant
from crashmq.harness.searches.gate_parts import (
    PHASES,
    Found,
    GateProfile,
    Part,
    Phase,
    Planned,
    Ran,
    Unjudged,
    runs_of,
    work_of,
)
from crashmq.harness.searches.machine_search import warm_up
from crashmq.harness.searches.side_by_side import Lost, Over, SideBySide
from crashmq.harness.subjects.named import NamedSubject
from crashmq.models.ops import EVERYTHING, Capability, needs
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

ARTEFACTS = Path(".crashmq")
CASES = Path(__file__).resolve().parents[2] / "scenarios" / "cases"

PROFILES = {
    "dev": GateProfile(
        machine_cases=9, soak_episodes=40, shrink_runs=1000, programs_max=600
    ),
    "ci": GateProfile(
        machine_cases=100, soak_episodes=1000, shrink_runs=2000, part_timeout_s=3600.0
    ),
}
_COSTS: dict[Phase, float] = {"cases": 1.0, "machine": 2.3, "soak": 1.0}
"""Of one program of a phase, beside one episode of a soak; for the time left alone."""
_IN_HASTE: tuple[Phase, ...] = ("cases", "soak", "machine")
_FOR_SHRINKING = 0.25  # of the time there is


@dataclass(frozen=True, slots=True)
class GateRow:
    """One phase of one scenario: ``cases``, ``machine`` or ``soak``."""

    scenario: str
    phase: str
    runs: int
    failures: int
    known: int = 0


@dataclass(frozen=True, slots=True)
class GateFailure:
    """A violated law: where it was found, the shrunk program, and its case file."""

    phase: str
    scenario: str
    law: str
    shrunk: ShrinkResult
    case: Path


@dataclass(slots=True)
class GateResult:
    """What the gate found; ``unjudged`` has reasons why a green result means less.

    Attributes:
        known: how often each failure in the baseline was found.
        not_run: parts that did not finish, since time was over.
        cannot: scenarios that need something that the subject cannot do.
        interrupted: whether Ctrl-C ended it early.
    """

    rows: list[GateRow] = field(default_factory=list)
    failures: list[GateFailure] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    known: Counter[Known] = field(default_factory=Counter)
    not_run: list[tuple[str, str]] = field(default_factory=list)
    cannot: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def unfinished_scenarios(self) -> list[str]:
        """Scenarios of which neither the machine nor the soak finished."""
        left = set(self.not_run)
        return sorted({s for s, _ in left if {(s, "machine"), (s, "soak")} <= left})


@dataclass(frozen=True, slots=True)
class GateProgress:
    """The progress of the gate; ``left_s`` is -1 while the rest cannot be estimated."""

    done: int
    scenarios: int
    failures: int
    left_s: float


Progress = Callable[[GateProgress], None]


@dataclass(frozen=True, slots=True)
class GateOptions:
    """How the gate runs; none of this decides what a program does.

    Attributes:
        workers: how many parts run at a time.
        max_time_s: seconds after which every part is stopped, those that shrink too;
            None: no limit.
        first_only: whether the first failure ends the gate.
        baseline: known failures, which do not make the gate red.
        artefacts: the directory for case files.
        cases: the directory of the recorded cases.
        mutant_file: the file that defines the planted bug; "" if it is one of ours.
    """

    workers: int = 1
    max_time_s: float | None = None
    first_only: bool = False
    baseline: tuple[Known, ...] = ()
    artefacts: Path = ARTEFACTS
    cases: Path = CASES
    mutant_file: str = ""


_DEFAULT = GateOptions()


def check(
    scenarios: Sequence[str],
    profile: str,
    progress: Progress,
    *,
    mutant: Mutant | None = None,
    subject: NamedSubject | None = None,
    options: GateOptions = _DEFAULT,
) -> GateResult:
    """Run the gate over these scenarios; each violated law is reported once.

    Raises:
        BadCaseFile: a recorded case cannot be read.
    """
    can = subject.can if subject else EVERYTHING
    asked = [name for name in scenarios if SCENARIOS[name].needs <= can]
    cases = _cases_of(asked, can, options.cases)
    shared = PROFILES[profile].shared_by(len(asked))
    planned = Planned(shared, mutant, subject, cases)
    gate = _Gate(asked, planned, progress, options)
    gate.result.cannot = [name for name in scenarios if name not in asked]
    # A canary is to die of a law, so that its case is replayed as any other.
    with invariants_checked(enabled=not mutant):
        for step in (gate.run, gate.confirm):
            try:
                step()
            except KeyboardInterrupt:
                INTERRUPTS.take()
        gate.end()
    gate.result.interrupted = INTERRUPTS.seen
    return gate.result


def _cases_of(
    scenarios: Sequence[str], can: frozenset[Capability], directory: Path
) -> dict[str, tuple[CaseFile, ...]]:
    """The recorded cases by scenario, without those that need what the store cannot."""
    recorded = [CaseFile.load(path) for path in sorted(directory.glob(f"*{SUFFIX}"))]
    return {
        scenario: tuple(
            [
                case
                for case in recorded
                if case.scenario == scenario
                and all(needs(op) <= can for op in case.program.ops)
            ]
        )
        for scenario in scenarios
    }


class _Gate:
    """One run of the gate and what it has found so far."""

    def __init__(
        self,
        asked: Sequence[str],
        planned: Planned,
        progress: Progress,
        options: GateOptions,
    ) -> None:
        self.asked = asked
        self.planned = planned
        self.progress = progress
        self.options = options
        self.result = GateResult()
        self.runs: dict[Part, int] = {}
        self.over: set[Part] = set()
        self.found: list[Found] = []
        self.shrunk: dict[tuple[str, str, str], ShrinkResult] = {}
        self.began = time.monotonic()

    @property
    def parts(self) -> list[Part]:
        """All parts, in the order in which they begin and are reported."""
        return [Part(name, phase) for name in self.asked for phase in PHASES]

    def run(self) -> None:
        """Run all parts, then shrink the first failure of each law."""
        options = self.options
        until = None
        if options.max_time_s is not None:
            until = self.began + options.max_time_s
        self.progress(self._progress())
        if len(self.asked) > 1:
            warm_up()
        self._do(self._in_order(until), self.planned, until)
        self._do(self._to_shrink(), self.planned, until)

    def confirm(self) -> None:
        """Run the failures once that neither time nor an interrupt left to shrink."""
        once = replace(self.planned.profile, shrink_runs=1)
        planned = replace(self.planned, profile=once)
        self._do(self._to_shrink(), planned, None, is_told=False)

    def _do(
        self,
        parts: list[Part],
        planned: Planned,
        until: float | None,
        *,
        is_told: bool = True,
    ) -> None:
        """Run these parts side by side, and take what they tell."""
        timeout_s = planned.profile.part_timeout_s
        with SideBySide(
            work_of(planned), self.options.workers, timeout_s
        ) as side_by_side:
            try:
                side_by_side.add(parts)
                for part, row in side_by_side.messages(until):
                    self._take(part, row)
                    if is_told:
                        self.progress(self._progress())
                    if part.found is None and self._is_enough():
                        break
            finally:
                for part, row in side_by_side.left():
                    self._take(part, row)

    def _is_enough(self) -> bool:
        """Whether the search is to end, for the sake of what it has found."""
        if not self.options.first_only:
            if self.options.max_time_s is None:
                return False
            searching_s = self.options.max_time_s * (1 - _FOR_SHRINKING)
            if time.monotonic() < self.began + searching_s:
                return False
        return bool(self._wanted())

    def _to_shrink(self) -> list[Part]:
        """A part for each failure that is wanted, and of which nothing is known yet."""
        parts = [Part(one.scenario, one.phase, one) for one in self._wanted()]
        return [part for part in parts if self._is_open(part)]

    def _is_open(self, part: Part) -> bool:
        assert part.found is not None
        return part not in self.over and _key(part.found) not in self.shrunk

    def _in_order(self, until: float | None) -> list[Part]:
        """The parts in order; with a time limit, one of each scenario first."""
        if until is None:
            return self.parts
        if time.monotonic() >= until:
            return []
        return sorted(self.parts, key=lambda part: _IN_HASTE.index(part.phase))

    def end(self) -> None:
        """Add up what was run, and save a case file for each failure."""
        result = self.result
        for part in self.parts:
            mine = [one for one in self.found if _part_of(one) == part]
            known = sum(self._known(one) is not None for one in mine)
            runs = self.runs.get(part, 0)
            row = GateRow(part.scenario, part.phase, runs, len(mine) - known, known)
            result.rows.append(row)
            if part not in self.over and runs < runs_of(part, self.planned):
                result.not_run.append((part.scenario, part.phase))
        result.known.update(filter(None, map(self._known, self.found)))
        for one in self._wanted():
            shrunk = self.shrunk.get(_key(one))
            if shrunk is not None:
                result.failures.append(self._kept(one, shrunk))

    def _take(self, part: Part, row: object) -> None:
        match row:
            case Ran(runs):
                self.runs[part] = runs
            case Found():
                self.found.append(row)
            case Unjudged(why):
                self.result.unjudged.append(why)
            case ShrinkResult() if part.found:
                self.shrunk[_key(part.found)] = row
            case Lost(said=said):
                self._unjudged(part, said)
            case Over(how):
                self.over.add(part)
                if how not in ("", "raised"):  # the latter has told why
                    self._unjudged(part, f"its process ended by {how}")

    def _unjudged(self, part: Part, why: str) -> None:
        what = "shrinking of the " if part.found else ""
        said = f"the {what}{part.phase} of {part.scenario}: {why}"
        self.result.unjudged.append(said)

    def _known(self, found: Found) -> Known | None:
        """The entry of the baseline that lists a failure; None if none does."""
        for known in self.options.baseline:
            if known.is_of(found.law, found.scenario):
                return known
        return None

    def _wanted(self) -> list[Found]:
        """The first failure of each law that is not in the baseline."""
        order = {part: number for number, part in enumerate(self.parts)}
        first: dict[str, Found] = {}
        for one in sorted(self.found, key=lambda each: order[_part_of(each)]):
            if self._known(one) is None:
                first.setdefault(one.law, one)
        return list(first.values())

    def _kept(self, found: Found, shrunk: ShrinkResult) -> GateFailure:
        planned = self.planned
        mutant = planned.mutant.id if planned.mutant else ""
        subject = planned.subject.name if planned.subject else ""
        shrunk.result.record.mutant = mutant
        written_in = self.options.mutant_file if mutant else ""
        case = case_of(shrunk, found.scenario, mutant, subject, written_in)
        stem = f"{found.scenario}-{found.law}"
        path = case.save_beside(self.options.artefacts, stem)
        return GateFailure(found.phase, found.scenario, found.law, shrunk, path)

    def _progress(self) -> GateProgress:
        """The progress so far, and the time left at the present speed."""
        done = sum(
            all(Part(name, phase) in self.over for phase in PHASES)
            for name in self.asked
        )
        all_of_it = sum(self._cost(part, whole=True) for part in self.parts)
        so_far = sum(self._cost(part, whole=False) for part in self.parts)
        spent = time.monotonic() - self.began
        left = -1.0
        if so_far > all_of_it / 50:
            left = spent * (all_of_it - so_far) / so_far
            if self.options.max_time_s is not None:
                left = min(left, max(0.0, self.options.max_time_s - spent))
        laws = len(self._wanted()) if self.found else 0
        return GateProgress(done, len(self.asked), laws, left)

    def _cost(self, part: Part, *, whole: bool) -> float:
        is_whole = whole or part in self.over
        runs = runs_of(part, self.planned) if is_whole else self.runs.get(part, 0)
        return runs * _COSTS[part.phase]


def _part_of(found: Found) -> Part:
    return Part(found.scenario, found.phase)


def _key(found: Found) -> tuple[str, str, str]:
    return found.scenario, found.phase, found.law


def case_of(
    shrunk: ShrinkResult,
    scenario: str,
    mutant: str,
    subject: str = "",
    mutant_file: str = "",
) -> CaseFile:
    """The case file of a shrunk failure."""
    result = shrunk.result
    return CaseFile(
        scenario=scenario,
        program=shrunk.program,
        violated=result.law,
        step=result.step,
        digest=result.digest,
        message=result.message,
        mutant=mutant,
        subject=subject or "python",
        mutant_file=mutant_file,
    )
