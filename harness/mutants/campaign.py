"""Campaign: hunts for each requested mutant, seed and policy, by several processes.

A worker is a new interpreter, so what is planted in one cannot affect another; the
hunts themselves run in children of it. Each row is yielded as its hunt ends.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crashmq.harness.guards.pools import mapped
from crashmq.harness.mutants.examine import examine
from crashmq.harness.mutants.hunt import Hunt
from crashmq.harness.mutants.mutation import Edit, Mutant
from crashmq.harness.mutants.policies import OURS
from crashmq.reports.mutation_records import HuntRecord

CANARY = Mutant(
    id="CANARY",
    title="acknowledges-what-it-lost",
    killed_by=("CL-1", "CQ-4", "FL-1", "PUT-1", "RD-1", "REC-1", "REC-2", "REC-4"),
    edits=(
        Edit(
            module="crashmq.engine.store.log_scan",
            function="records_in",
            before="if request.success and request.msg_size > 0:",
            after="if request.success and request.msg_size > 1_000_000:",
        ),
    ),
    source="made up: recovery takes every message for damage",
)
"""A bug so plain that a harness that misses it is not looking."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """What was requested; ``hunts`` lists all hunts in the order of their begin.

    ``budget_s`` is the processor time of each hunt.
    """

    mutants: tuple[Mutant | None, ...]
    seeds: int = 1
    first_seed: int = 0
    policies: tuple[str, ...] = ("",)
    budget_s: float = 600.0

    def hunts(self) -> list[Hunt]:
        """The hunts, seed by seed: an interrupted campaign has tried every mutant."""
        return [
            Hunt(
                mutant,
                self.first_seed + seed,
                self.budget_s,
                policy,
                in_cpu_time=True,
            )
            for seed in range(self.seeds)
            for mutant in self.mutants
            for policy in self.policies
        ]


def run_campaign(hunts: Sequence[Hunt], workers: int) -> Iterator[HuntRecord]:
    """Yield a row for each hunt, as they end."""
    return mapped(workers, examine, hunts)


@dataclass(frozen=True, slots=True)
class MutantOutcome:
    """One mutant over all of its seeds; figures are medians over the kills.

    ``law`` is that of the first kill; ``kills`` of ``hunts`` ended with one.
    """

    id: str
    title: str
    component: str
    difficulty: int
    killed: bool
    law: str
    named: bool
    how: str
    seconds: float
    states: int
    histories: int
    ops: int
    trigger_ops: int
    crashes: int
    lost_units: int
    profile: str
    kills: int
    hunts: int
    message: str
    probes: dict[str, int]


def outcomes(rows: Sequence[HuntRecord]) -> list[MutantOutcome]:
    """One outcome per mutant, in the order of their ids.

    The clean engine and the canary are not mutants, and have none. Where policies are
    compared, only our own counts: a mutant that only rivals' policies kill has
    survived.
    """
    if any(row.policy == OURS for row in rows):
        rows = [row for row in rows if row.policy == OURS]
    names = sorted({row.mutant for row in rows} - {"", CANARY.id})
    return [_outcome([row for row in rows if row.mutant == name]) for name in names]


def _outcome(rows: list[HuntRecord]) -> MutantOutcome:
    rows = sorted(rows, key=lambda row: row.seed)
    kills = [row for row in rows if row.outcome == "killed"]
    told = kills or rows
    first = told[0]

    def median(values: Iterator[float]) -> float:
        return statistics.median_low(list(values))

    probes: dict[str, int] = {}
    for hit in () if kills else (hit for row in rows for hit in row.probes):
        probes[hit.probe] = probes.get(hit.probe, 0) + hit.hits
    return MutantOutcome(
        id=first.mutant,
        title=first.title,
        component=first.component,
        difficulty=first.difficulty,
        killed=bool(kills),
        law=first.law,
        named=bool(first.is_named),
        how=first.how,
        seconds=round(median(row.elapsed_us / 1e6 for row in told), 3),
        states=int(median(row.states for row in told)),
        histories=int(median(row.histories for row in told)),
        ops=int(median(row.ops for row in told)),
        trigger_ops=first.trigger_ops,
        crashes=int(median(row.crashes for row in told)),
        lost_units=int(median(row.lost_units for row in told)),
        profile=first.profile,
        kills=len(kills),
        hunts=len(rows),
        message=first.message,
        probes=probes,
    )
