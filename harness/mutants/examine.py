"""Examine: one hunt from its start to its row: search, shrink, mildest disk, signature.

A failure is shrunk in a child process with the bug planted and a time limit, since
programs can hang while shrinking. Then the engine without the bug runs the program too:
failures with the same first divergence from it have the same signature. A failure
without a divergence, such as a false alarm, has its cause as signature.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from crashmq.harness.failures.shrink import NothingToShrink, shrink
from crashmq.harness.mutants.confirming import why_unconfirmed
from crashmq.harness.mutants.failure_signature import failure_signature, mildest_profile
from crashmq.harness.mutants.first_divergence import first_divergence, moves_of
from crashmq.harness.mutants.hunt import DIED, HANG, Hunt, HuntResult, hunt
from crashmq.harness.mutants.search_slices import FoundBug
from crashmq.harness.searches.supervised import Lost, supervised
from crashmq.models.ops import Crash, Event, parts
from crashmq.models.program import Program
from crashmq.models.program_json import to_json
from crashmq.reports.mutation_records import HuntRecord
from crashmq.reports.records import ProbeHit

SHRINK_RUNS = 2000
SHRINK_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Smaller:
    """A failure after shrinking."""

    program: Program
    runs: int
    profile: str
    lost_units: int
    signature: str
    message: str
    step: int
    digest: str


def examine(task: Hunt) -> HuntRecord:
    """Search for one bug, and describe the kill."""
    result = hunt(task)
    record = _record(task, result)
    found = result.found
    if found is None:
        return record
    record.outcome = "killed"
    record.law, record.message, record.how = found.law, found.message, found.how
    record.is_named = int(
        task.mutant is not None and found.law in task.mutant.killed_by
    )
    record.scenario = found.scenario
    record.signature = f"{found.law} | {found.how}"
    if found.program is not None:
        record.ops = record.ops_found = len(found.program.ops)
        started = time.monotonic()
        _cut_down(record, task, found, found.program)
        record.shrink_us = round((time.monotonic() - started) * 1e6)
    if task.mutant is not None and (doubt := why_unconfirmed(task.mutant, found)):
        record.outcome, record.message = "unconfirmed", f"{doubt}; {record.message}"
    return record


def crashes_of(program: Program) -> int:
    """How many crashes a program has."""

    def count(op: Event) -> int:
        return sum(map(count, parts(op))) + isinstance(op, Crash)

    return sum(map(count, program.ops))


def _record(task: Hunt, result: HuntResult) -> HuntRecord:
    mutant = task.mutant
    return HuntRecord(
        mutant=mutant.id if mutant else "",
        title=mutant.title if mutant else "the clean engine",
        component=mutant.component if mutant else "",
        difficulty=mutant.difficulty if mutant else 0,
        policy=task.policy,
        seed=task.seed,
        outcome="defect" if result.own_defect else "survived",
        message=result.own_defect,
        elapsed_us=round(result.seconds * 1e6),
        budget_us=round(task.budget_s * 1e6),
        states=result.states,
        histories=result.histories,
        unknown=result.unknown,
        trigger_ops=len(mutant.trigger.ops) if mutant else 0,
        probes=[ProbeHit(name, n) for name, n in sorted(result.probes.items())],
    )


def _cut_down(
    record: HuntRecord, task: Hunt, found: FoundBug, program: Program
) -> None:
    record.program = json.dumps(to_json(program))
    record.crashes = crashes_of(program)
    record.profile = program.setup.disk_profile
    if found.law in (HANG, DIED):
        return  # each try would hang or die again

    def work(number: int) -> Smaller:  # noqa: ARG001  # there is one
        return _smaller(found, program)

    for row in supervised(work, (0,), SHRINK_TIMEOUT_S, task.planted):
        if isinstance(row, Lost):
            record.message += f"\nnot shrunk: {row.said or row.how}"
            return
        record.program = json.dumps(to_json(row.program))
        record.ops = len(row.program.ops)
        record.crashes = crashes_of(row.program)
        record.lost_units, record.profile = row.lost_units, row.profile
        record.signature = _parting(task, found, row.program) or row.signature
        record.shrink_runs = row.runs
        record.message, record.step, record.digest = row.message, row.step, row.digest


def _parting(task: Hunt, found: FoundBug, program: Program) -> str:
    """The first divergence from the engine without the bug; "" if there is none."""
    ours = moves_of(program, found.scenario)

    def work(number: int) -> str:  # noqa: ARG001  # there is one
        return first_divergence(ours, moves_of(program, found.scenario))

    for row in supervised(work, (0,), SHRINK_TIMEOUT_S, task.planted):
        if not isinstance(row, Lost):
            return row
    return ""


def _smaller(found: FoundBug, program: Program) -> Smaller:
    try:
        cut = shrink(program, found.scenario, found.law, budget_runs=SHRINK_RUNS)
    except NothingToShrink as error:
        raise AssertionError(f"the kill does not replay: {error}") from None
    cause = failure_signature(cut.program, found.scenario, found.law)
    return Smaller(
        program=cut.program,
        runs=cut.runs,
        profile=mildest_profile(cut.program, found.scenario, found.law),
        lost_units=cause.lost_units,
        signature=cause.signature,
        message=cut.result.message,
        step=cut.result.step,
        digest=cut.result.digest,
    )
