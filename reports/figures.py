"""The small tables of a report as plain values, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crashmq.reports.records import (
    CrashPoint,
    Declared,
    ExcuseCount,
    LawChecks,
    OpCount,
    ProbeHits,
    ScenarioTotals,
)


@dataclass(frozen=True, slots=True)
class LawExcuses:
    """How often one law was asked, and excused, by each fact."""

    law: str
    asked: int
    by_fact: dict[str, int]

    @property
    def excused(self) -> int:
        """How often it was excused, by any fact."""
        return sum(self.by_fact.values())

    @property
    def share(self) -> float:
        """The share of its moments in which the law was excused, 0 to 1."""
        return self.excused / (self.asked + self.excused)


@dataclass(frozen=True, slots=True)
class Finding:
    """One distinct failure: its smallest episode, and how many share its signature."""

    signature: str
    outcome: str
    law: str
    scenario: str
    subject: str
    mutant: str
    seed: str
    setup: str
    program: str
    digest: str
    episode_id: int
    steps: int
    step: int
    op: str
    message: str
    events: list[dict[str, Any]]
    episodes: int


@dataclass(frozen=True, slots=True)
class Background:
    """What was known of failures before a run, each by its signature.

    Attributes:
        history: what the nights before tell of each failure of this run.
        excused: what the baseline says of those that are no reason for red.
        expired: entries of the baseline that are an excuse no more, in a line each.
        resolved: what nights before met and this one not, in a line each.
    """

    history: Mapping[str, str] = field(default_factory=dict)
    excused: Mapping[str, str] = field(default_factory=dict)
    expired: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """A run in numbers; ``elapsed_s`` is None if it was cut short."""

    run: dict[str, Any]
    declared: Declared
    elapsed_s: float | None
    digest: str
    scenarios: list[ScenarioTotals]
    ops: list[OpCount]
    crash_points: list[CrashPoint]
    probes: list[ProbeHits]
    laws: list[LawChecks]
    excuses: list[ExcuseCount]
    findings: list[Finding]
    background: Background = Background()

    @property
    def definition(self) -> dict[str, Any]:
        """The run's parameters, as the task gave them."""
        definition: dict[str, Any] = self.run["definition"]
        return definition

    @property
    def scenario_names(self) -> list[str]:
        """Every scenario asked for or seen, in the order asked for."""
        asked = [str(name) for name in self.definition.get("scenarios", [])]
        seen = [totals.scenario for totals in self.scenarios]
        return list(dict.fromkeys(asked + seen))

    @property
    def excused_laws(self) -> list[LawExcuses]:
        """Every law that was excused at least once, the most excused first."""
        by_law: dict[str, dict[str, int]] = {}
        for row in self.excuses:
            by_law.setdefault(row.law, {})[row.fact] = row.times
        asked = dict.fromkeys(by_law, 0)
        for law in self.laws:
            if law.law in asked:
                asked[law.law] += law.checks
        rows = [LawExcuses(law, asked[law], facts) for law, facts in by_law.items()]
        return sorted(rows, key=lambda row: (-row.share, row.law))

    @property
    def violated(self) -> list[Finding]:
        """Broken laws, most frequent first."""
        return [found for found in self.findings if found.outcome == "violated"]

    @property
    def unexcused(self) -> list[Finding]:
        """Broken laws that no baseline knows of."""
        excused = self.background.excused
        return [found for found in self.violated if found.signature not in excused]

    @property
    def ended(self) -> list[Finding]:
        """Episodes that hung, died or left; the store's doing, so far as one knows."""
        return [found for found in self.unjudged if found.outcome != "unknown"]

    @property
    def unjudged(self) -> list[Finding]:
        """Failures in which no law was found broken: unknown, timeout, signal, exit."""
        return [found for found in self.findings if found.outcome != "violated"]
