"""Hunt: the search for one planted bug until the first kill, as if it were unknown.

A hunt is a sequence of numbered slices of several kinds, in a fixed order: seeded
episodes of all scenarios, neighbours of the corpus's programs, sweeps that stop an
activity or fail a call at each point in turn, crash exploration of the beginnings of
some episodes, and Hypothesis machines.

Each slice is a function of the hunt's seed and its number, so hunts on two machines
differ only in how far they come. A child process runs the slices with the bug planted.
A slice that hangs or kills its process has found the bug too, if it does so again when
it is run alone, and if the store without the bug does not.

A hunt uses only where the mutant's edits are, so that it tries first what runs that
place (``aim``), and not which law kills it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.aim import NO_AIM, Aim, aim_of
from crashmq.harness.mutants.mutation import Mutant, applied
from crashmq.harness.mutants.search_slices import (
    FoundBug,
    SliceRow,
    run_episode,
    run_slice,
)
from crashmq.harness.mutants.search_turns import (
    ROUND,
    SHARES,
    STOPPED,
    SliceKind,
    episodes_of,
    program_of,
)
from crashmq.harness.searches.aiming import aimed_until_lost
from crashmq.harness.searches.supervised import Lost, supervised
from crashmq.models.program import Program

SLICE_TIMEOUT_S = 30.0  # of processor time
EPISODE_TIMEOUT_S = 15.0  # thousands of times what an episode takes
WALL_MAX = 10  # times its budget: an overloaded machine, or a bug that makes it wait
GROWTH_MAX = 256 * 1024 * 1024  # of a hunt's child; a new one costs milliseconds
SLICES_MAX = 1_000_000
_TURNS: tuple[SliceKind, ...] = (
    *("soak", "failures", "stops", "explore", "soak"),
    *("machine", "soak", "neighbours", "stops", "soak"),
    *("neighbours", "soak", "failures", "machine", "neighbours"),
    *("soak", "failures", "stops", "soak", "neighbours"),
)
assert len(_TURNS) == ROUND

HANG = "timeout"  # stand where a law's id would: no law had spoken by then
DIED = "died"


@dataclass(frozen=True, slots=True)
class Hunt:
    """One search from one seed, for one bug; with ``mutant`` None on the clean engine.

    Attributes:
        policy: the policy of ``policies`` to search with, on seeded episodes only; ""
            for all kinds of slices.
        budget_s: seconds after which the hunt ends without a kill.
        in_cpu_time: count the slices' processor time, so that a busy machine searches
            as much as an idle one; else the wall clock.
        first_slice: where an earlier hunt from this seed ended, to continue it.
        is_aimed: whether what runs the changed lines is tried first.
    """

    mutant: Mutant | None
    seed: int
    budget_s: float
    policy: str = ""
    in_cpu_time: bool = False
    first_slice: int = 0
    is_aimed: bool = True

    @property
    def aim(self) -> Aim:
        """What to try first to reach the changed lines.

        Nothing if a policy is measured: policies are compared on the same histories.
        """
        if self.mutant is None or self.policy or not self.is_aimed:
            return NO_AIM
        return aim_of(self.mutant, SHARES)

    def planted(self) -> AbstractContextManager[object]:
        """The engine with the bug planted."""
        return applied(self.mutant) if self.mutant else nullcontext()


@dataclass(slots=True)
class HuntResult:
    """The result of a hunt; ``found`` is None if the bug survived.

    ``states`` counts starts that were judged, ``histories`` programs that were run,
    ``slices`` all slices, lost ones included, ``cpu_seconds`` their processor time.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    slices: int = 0
    states: int = 0
    histories: int = 0
    unknown: int = 0
    found: FoundBug | None = None
    probes: Counter[str] = field(default_factory=Counter)
    own_defect: str = ""


def hunt(task: Hunt) -> HuntResult:
    """Search until the first kill, or until the budget is used up."""
    result = HuntResult()
    started = time.monotonic()
    aim = task.aim
    for row in _slices(task, aim):
        if isinstance(row, Lost):
            _take_lost(result, task, aim, row)
        else:
            _take(result, row)
        result.slices += 1
        result.seconds = time.monotonic() - started
        used = result.cpu_seconds if task.in_cpu_time else result.seconds
        over = used >= task.budget_s or result.seconds >= WALL_MAX * task.budget_s
        if result.found or result.own_defect or over:
            return result
    return result


def kind_of(number: int, aim: Aim = NO_AIM) -> SliceKind:
    """The kind of the slice with this number.

    Sweeps of stops are of one scenario; an aim without that scenario has seeded
    episodes instead.
    """
    kind = _TURNS[number % len(_TURNS)]
    is_idle = kind == "stops" and aim.scenarios and STOPPED not in aim.scenarios
    return "soak" if is_idle else kind


def _slices(task: Hunt, aim: Aim) -> Iterator[SliceRow | Lost]:
    work = partial(_slice_of, task, aim)
    every = range(task.first_slice, SLICES_MAX)
    return supervised(work, every, SLICE_TIMEOUT_S, task.planted, GROWTH_MAX)


def _take(result: HuntResult, row: SliceRow) -> None:
    result.states += row.states
    result.histories += row.histories
    result.unknown += row.unknown
    result.probes.update(row.probes)
    result.cpu_seconds += row.cpu_s
    result.found = row.found


def _take_lost(result: HuntResult, task: Hunt, aim: Aim, lost: Lost) -> None:
    """Record a slice without a row: a defect of the harness, or a bug that kills."""
    if lost.how == "raised":
        result.own_defect = lost.detail
        return
    result.cpu_seconds += SLICE_TIMEOUT_S if lost.how == "timeout" else 0.0
    result.found = _culprit(task, aim, lost)
    result.unknown += result.found is None


def _culprit(task: Hunt, aim: Aim, lost: Lost) -> FoundBug | None:
    """The program of a lost slice that hangs or dies again when run alone; or None."""
    kind = kind_of(lost.number, aim)
    if kind in ("soak", "neighbours"):
        return _lost_episode(task, aim, kind, lost)
    slices = [lost.number]
    work = partial(_slice_of, task, aim)
    for row in supervised(work, slices, 2 * SLICE_TIMEOUT_S, task.planted):
        if isinstance(row, SliceRow):
            return row.found
        if row.how != "raised" and _is_the_bugs(task, work, row, 2 * SLICE_TIMEOUT_S):
            return FoundBug(
                _law(row), f"{_how_it_ended(row)}, in a {kind} slice", kind, "", None
            )
    return None


def _lost_episode(task: Hunt, aim: Aim, kind: SliceKind, lost: Lost) -> FoundBug | None:
    def work(number: int) -> int:
        run_episode(kind, task.seed, number, task.policy, aim)
        return number

    episodes = episodes_of(lost.number)
    for row in supervised(work, episodes, EPISODE_TIMEOUT_S, task.planted):
        if isinstance(row, Lost) and row.how != "raised":
            scenario, program = program_of(kind, task.seed, row.number, aim)
            program = aimed_until_lost(
                program, task.seed, row.number, task.planted, EPISODE_TIMEOUT_S
            )
            clean = partial(_run_once, program, scenario)
            if _is_the_bugs(task, clean, row, EPISODE_TIMEOUT_S):
                return FoundBug(_law(row), _how_it_ended(row), kind, scenario, program)
    return None


def _is_the_bugs(
    task: Hunt, work: Callable[[int], object], lost: Lost, timeout_s: float
) -> bool:
    """Whether the store without the bug ends normally where the one with it did not.

    True if no bug is planted, since there is nothing to compare with.
    """
    if task.mutant is None:
        return True
    (clean,) = supervised(work, [lost.number], timeout_s)
    return not isinstance(clean, Lost) or clean.how == "raised"


def _run_once(program: Program, scenario: str, number: int) -> int:
    run_program(program, scenario, keep_trace=False)
    return number


def _slice_of(task: Hunt, aim: Aim, number: int) -> SliceRow:
    started = time.process_time()
    kind = kind_of(number, aim)
    row = run_slice(kind, task.seed, number, task.policy, aim)
    row.cpu_s = time.process_time() - started
    return row


def _law(lost: Lost) -> str:
    return HANG if lost.how == "timeout" else DIED


def _how_it_ended(lost: Lost) -> str:
    return "no end in sight" if _law(lost) == HANG else f"ended by {lost.how}"
