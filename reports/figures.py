"""The tables of a report as plain values, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    StateCount,
)


def unseen_share(times: Iterable[int]) -> float:
    """The estimated probability that the next one is of a kind that was never met.

    It is the share of those whose kind occurred once (Good and Turing, 1953).

    Args:
        times: how often each kind occurred.
    """
    counts = [*times]
    return counts.count(1) / sum(counts) if counts else 1.0


@dataclass(frozen=True, slots=True)
class LawExcuses:
    """How often one law was asked, and how often each fact excused it."""

    law: str
    asked: int
    by_fact: dict[str, int]

    @property
    def excused(self) -> int:
        """How often it was excused, by any fact."""
        return sum(self.by_fact.values())

    @property
    def share(self) -> float:
        """The share of its moments in which the law was excused, from 0 to 1."""
        return self.excused / (self.asked + self.excused)


@dataclass(frozen=True, slots=True)
class Finding:
    """One distinct failure: its smallest episode, and how many share its signature.

    ``scenarios`` has the number of its episodes in each scenario that met it, by name.
    """

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
    scenarios: dict[str, int]

    @property
    def episodes(self) -> int:
        """The number of its episodes, in all scenarios."""
        return sum(self.scenarios.values())


@dataclass(frozen=True, slots=True)
class Background:
    """What was known of failures before a run, by signature.

    Attributes:
        history: for each failure of this run, what earlier nights say about it.
        excused: the failures that the baseline accepts, with its text.
        expired: the entries of the baseline that have expired, a line each.
        resolved: the failures of earlier nights that this one did not find, a line
            each.
    """

    history: Mapping[str, str] = field(default_factory=dict)
    excused: Mapping[str, str] = field(default_factory=dict)
    expired: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of a run; ``elapsed_s`` is None if it was interrupted."""

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
    states: list[StateCount] = field(default_factory=list)

    @property
    def definition(self) -> dict[str, Any]:
        """The run's parameters, from its task."""
        definition: dict[str, Any] = self.run["definition"]
        return definition

    @property
    def scenario_names(self) -> list[str]:
        """Every scenario requested or seen, in the order of the request."""
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
    def found_states(self) -> dict[str, int]:
        """How often starts found each kind of state, whatever came of them."""
        times: dict[str, int] = {}
        for row in self.states:
            times[row.state] = times.get(row.state, 0) + row.times
        return times

    @property
    def violated(self) -> list[Finding]:
        """Failures that violate a law, most frequent first."""
        return [found for found in self.findings if found.outcome == "violated"]

    @property
    def unexcused(self) -> list[Finding]:
        """Violations that no entry of the baseline accepts."""
        excused = self.background.excused
        return [found for found in self.violated if found.signature not in excused]

    @property
    def ended(self) -> list[Finding]:
        """Episodes that hung, or whose process died or exited, by the store's fault."""
        return [found for found in self.unjudged if found.outcome != "unknown"]

    @property
    def unjudged(self) -> list[Finding]:
        """Failures without a violated law: unknown, timeout, signal, exit."""
        return [found for found in self.findings if found.outcome != "violated"]
