"""Verdict: the result of a campaign: a sentence, an exit code, the numbers.

Exit codes: 1 if the clean engine violated a law, a mutant survived, or a kill was not
confirmed; else 5 if a hunt could not be carried out or the canary was missed; else 0.
The canary is a bug that every search finds; it is checked and not counted.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.mutants.campaign import (
    CANARY,
    Campaign,
    MutantOutcome,
    outcomes,
)
from crashmq.harness.mutants.policies import POLICIES
from crashmq.harness.searches.soak import code_version
from crashmq.models.laws.registry import declared_laws
from crashmq.models.program_json import from_json
from crashmq.reports.mutation_records import HuntRecord
from crashmq.reports.summary import CLEAN, TOO_LITTLE, VIOLATED


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy in the table of all: how many mutants it killed, and how fast."""

    policy: str
    mutants: int
    killed: int
    median_seconds: float | None
    states: int
    only_here: tuple[str, ...]
    false_alarms: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence, the exit code, and the ids of survivors and of hunts not done."""

    sentence: str
    exit_code: int
    survivors: tuple[str, ...]
    defects: tuple[str, ...]
    false_alarms: tuple[str, ...]


def verdict_of(rows: Sequence[HuntRecord]) -> Verdict:
    """The verdict on the rows."""
    found = outcomes(rows)
    survivors = tuple(one.id for one in found if not one.killed)
    alarms = tuple(
        f"{row.law} (seed {row.seed})"
        for row in rows
        if not row.mutant and row.outcome == "killed"
    )
    defects = tuple(
        f"{row.mutant or 'clean engine'} (seed {row.seed})"
        for row in rows
        if row.outcome == "defect"
    )
    doubts = [
        f"{row.mutant} (seed {row.seed}): {row.doubt}"
        for row in rows
        if row.outcome == "unconfirmed"
    ]
    if any(row.mutant == CANARY.id and row.outcome == "survived" for row in rows):
        defects = (f"{CANARY.id} was not found, so nothing here is known", *defects)
    killed = len(found) - len(survivors)
    sentence = f"Killed: {killed} of {len(found)} mutants."
    if survivors:
        sentence = f"Survived: {len(survivors)} of {len(found)} mutants."
    if defects:
        sentence += f" Not judged: {defects[0]}."
    if doubts:
        sentence += f" Not confirmed: {doubts[0]}."
    if alarms:
        sentence = f"False alarm: the clean engine was flagged by {alarms[0]}. " + (
            sentence
        )
    code = CLEAN
    if alarms or survivors or doubts:
        code = VIOLATED
    elif defects:
        code = TOO_LITTLE
    return Verdict(sentence, code, survivors, defects, alarms)


def summary_of(
    rows: Sequence[HuntRecord], campaign: Campaign, seconds: float
) -> dict[str, Any]:
    """The content of ``summary.json``."""
    found, verdict = outcomes(rows), verdict_of(rows)
    kills = [row for row in rows if _is_kill(row)]
    times = hunting_times(rows)
    laws = sorted({row.law for row in kills})
    return {
        "mutants": len(found),
        "mutants_killed": sum(one.killed for one in found),
        "mutants_killed_by_named_law": sum(one.killed and one.named for one in found),
        "seconds": round(seconds, 3),
        "verdict": verdict.sentence,
        "exit_code": verdict.exit_code,
        "survivors": list(verdict.survivors),
        "false_alarms": list(verdict.false_alarms),
        "not_carried_out": list(verdict.defects),
        "median_seconds": share(times, 0.5),
        "p95_seconds": share(times, 0.95),
        "states": sum(row.states for row in rows),
        "histories": sum(row.histories for row in rows),
        "shrinking": shrinking(kills),
        "bucketing": bucketing(kills),
        "laws_that_killed": laws,
        "laws_that_killed_nothing": sorted(set(declared_laws()) - set(laws)),
        "policies": [asdict(row) for row in policy_table(rows)],
        "budget_seconds": campaign.budget_s,
        "seeds": campaign.seeds,
        "first_seed": campaign.first_seed,
        "code_version": code_version(),
        "per_mutant": [asdict(one) for one in found],
    }


def case_of(row: HuntRecord) -> CaseFile:
    """The case file of a kill."""
    program = from_json(json.loads(row.program))
    law = row.law if row.law in declared_laws() else ""
    return CaseFile(
        scenario=row.scenario,
        program=program,
        violated=law,
        step=min(row.step, len(program.ops)),
        digest=row.digest,
        message=row.message,
        mutant=row.mutant,
    )


def hunting_times(rows: Sequence[HuntRecord]) -> list[float]:
    """Seconds of each hunt for a mutant that counts, ascending.

    A hunt without a kill counts with its whole budget: figures must not improve when
    bugs are missed.
    """
    return sorted(
        row.elapsed_us / 1e6
        for row in rows
        if _counts(row) and row.outcome in ("killed", "survived")
    )


def share(values: Sequence[float], part: float) -> float | None:
    """The smallest of the sorted values that this part of them does not exceed."""
    if not values:
        return None
    return round(values[max(0, math.ceil(part * len(values)) - 1)], 3)


def shrinking(kills: Sequence[HuntRecord]) -> dict[str, float | None]:
    """Sizes of shrunk failures, compared with those of the hand-made triggers."""
    small = [row for row in kills if row.shrink_runs]
    ratios = sorted(row.ops / row.trigger_ops for row in small if row.trigger_ops)
    return {
        "median_ops": share(sorted(row.ops for row in small), 0.5),
        "median_crashes": share(sorted(row.crashes for row in small), 0.5),
        "median_lost_units": share(sorted(row.lost_units for row in small), 0.5),
        "p90_ratio_to_trigger": share(ratios, 0.9),
        "median_seconds": share(sorted(row.shrink_us / 1e6 for row in small), 0.5),
        "max_seconds": share(sorted(row.shrink_us / 1e6 for row in small), 1.0),
    }


def bucketing(kills: Sequence[HuntRecord]) -> dict[str, float | int | None]:
    """How well signatures tell bugs apart, over all pairs of failures.

    Precision: of two failures with one signature, the share that are of one mutant.
    Recall: of two failures of one mutant, the share with one signature.
    """
    labels = [(row.signature, row.mutant) for row in kills]
    both = _pairs(labels)
    alike = _pairs([signature for signature, _ in labels])
    related = _pairs([mutant for _, mutant in labels])
    return {
        "failures": len(labels),
        "signatures": len({signature for signature, _ in labels}),
        "precision": round(both / alike, 4) if alike else None,
        "recall": round(both / related, 4) if related else None,
    }


def policy_table(rows: Sequence[HuntRecord]) -> list[PolicyRow]:
    """One row for each policy, ours first; empty without policies."""
    searched = {row.policy for row in rows}
    names = [name for name in POLICIES if name in searched]
    killed = {
        name: {r.mutant for r in rows if r.policy == name and _is_kill(r)}
        for name in names
    }
    return [_policy_row(name, rows, killed) for name in names]


def _policy_row(
    name: str, rows: Sequence[HuntRecord], killed: Mapping[str, set[str]]
) -> PolicyRow:
    mine = [row for row in rows if row.policy == name]
    others: set[str] = set().union(
        *(ids for other, ids in killed.items() if other != name)
    )
    times = hunting_times(mine)
    return PolicyRow(
        policy=name,
        mutants=len({row.mutant for row in mine} - {"", CANARY.id}),
        killed=len(killed[name]),
        median_seconds=round(statistics.median(times), 3) if times else None,
        states=sum(row.states for row in mine),
        only_here=tuple(sorted(killed[name] - others)),
        false_alarms=sum(not r.mutant and r.outcome == "killed" for r in mine),
    )


def _is_kill(row: HuntRecord) -> bool:
    return _counts(row) and row.outcome == "killed"


def _counts(row: HuntRecord) -> bool:
    return row.mutant not in ("", CANARY.id)


def _pairs(labels: Sequence[object]) -> int:
    counts: dict[object, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    return sum(count * (count - 1) // 2 for count in counts.values())


def outcome_line(one: MutantOutcome) -> str:
    """One line about one mutant, for a terminal."""
    if not one.killed:
        return f"{one.id}  SURVIVED {one.seconds:.1f} s, {one.histories:,} histories"
    argued = "" if one.named else " (argued: not a law it names)"
    against = f" (trigger {one.trigger_ops})" if one.trigger_ops else ""
    return (
        f"{one.id}  {one.law}{argued} after {one.seconds:.1f} s, {one.states:,} "
        f"states, {one.histories:,} histories; {one.ops} ops{against} on {one.profile}"
    )
