"""Operator hunt: the search for one machine-made mutant, from its start to its row.

It is the search for any planted bug, in processor time, and continues at the slice at
which an earlier one ended. A kill counts if it is confirmed: its program passes on the
clean engine and is red with the mutant. For survivors two figures can be computed: how
many programs behave differently from the clean engine although no law is violated, and
how many slices run the changed line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.confirming import REPLAY_TIMEOUT_S, why_unconfirmed
from crashmq.harness.mutants.hunt import Hunt, HuntResult, hunt
from crashmq.harness.mutants.mutation import Mutant, applied
from crashmq.harness.mutants.operators.subjects_of_laws import about
from crashmq.harness.mutants.search_slices import FoundBug
from crashmq.harness.mutants.search_turns import SliceKind, program_of
from crashmq.harness.searches.aiming import perhaps_aimed
from crashmq.harness.searches.supervised import supervised
from crashmq.models.program import Program
from crashmq.models.program_json import to_json
from crashmq.reports.operator_records import OperatorRecord

COMPARED = 120  # programs, half of them neighbours of the corpus


@dataclass(frozen=True, slots=True)
class OperatorHunt:
    """One search for one mutant.

    Attributes:
        mutant: made by machine, with one edit.
        operator: the one that made it.
        line: of its change, in its module.
        seed: of the search.
        budget_s: processor time, including that of earlier searches for it.
        slices: how many slices earlier searches for it ran.
        used_s: the processor time that these took.
    """

    mutant: Mutant
    operator: str
    line: int
    seed: int
    budget_s: float
    slices: int = 0
    used_s: float = 0.0


def search(task: OperatorHunt) -> OperatorRecord:
    """Hunt for one mutant and return the row of the result.

    A kill counts once its program was run again, on the mutant and on the clean engine.
    """
    result = hunt(
        Hunt(
            task.mutant,
            task.seed,
            task.budget_s - task.used_s,
            in_cpu_time=True,
            first_slice=task.slices,
        )
    )
    row = _row(task, result)
    if result.own_defect:
        row.message = result.own_defect
    elif result.found is None:
        row.outcome = "survived"
    else:
        _take_kill(row, task, result.found)
    return row


def _row(task: OperatorHunt, result: HuntResult) -> OperatorRecord:
    (edit,) = task.mutant.edits
    return OperatorRecord(
        id=task.mutant.id,
        module=edit.module,
        function=edit.function,
        operator=task.operator,
        line=task.line,
        before=edit.before,
        after=edit.after,
        outcome="defect",
        cpu_us=round((task.used_s + result.cpu_seconds) * 1e6),
        slices=task.slices + result.slices,
        states=result.states,
        histories=result.histories,
    )


def _take_kill(row: OperatorRecord, task: OperatorHunt, found: FoundBug) -> None:
    row.law, row.message = found.law, found.message
    row.how, row.scenario = found.how, found.scenario
    row.about = about(found.law, row.module)
    row.outcome = "killed"
    if found.program is not None:
        row.program = json.dumps(to_json(found.program))
    if doubt := why_unconfirmed(task.mutant, found):
        row.outcome = "unconfirmed"
        row.message = f"{doubt}; {found.message}"


def differing(mutant: Mutant, seed: int) -> int:
    """How many of ``COMPARED`` programs have another digest with the mutant."""
    programs = _programs(seed)
    clean = _clean_digests(seed)

    def run(number: int) -> str:
        return _digest(*programs[number])

    rows = supervised(
        run, range(len(programs)), REPLAY_TIMEOUT_S, lambda: applied(mutant)
    )
    return sum(mine != theirs for mine, theirs in zip(rows, clean, strict=True))


@cache
def _programs(seed: int) -> Sequence[tuple[str, Program]]:
    """Scenarios and programs, aimed on the clean engine: the same for both."""

    def each() -> Iterator[tuple[str, Program]]:
        kinds: tuple[SliceKind, ...] = ("soak", "neighbours")
        for kind in kinds:
            for number in range(COMPARED // len(kinds)):
                scenario, program = program_of(kind, seed, number)
                yield scenario, perhaps_aimed(program, seed, number)

    return tuple(each())


@cache
def _clean_digests(seed: int) -> tuple[object, ...]:
    programs = _programs(seed)

    def run(number: int) -> str:
        return _digest(*programs[number])

    return tuple(supervised(run, range(len(programs)), REPLAY_TIMEOUT_S))


def _digest(scenario: str, program: Program) -> str:
    return run_program(program, scenario, keep_trace=False).digest
