"""The small tables of a report as plain values, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reports.records import Declared


@dataclass(frozen=True, slots=True)
class ScenarioTotals:
    """One scenario, summed up."""

    scenario: str
    episodes: int
    passed: int
    violated: int
    unjudged: int
    steps: int
    crashes: int
    recoveries: int
    elapsed_us: int


@dataclass(frozen=True, slots=True)
class OpStatus:
    """How often one kind of op ended in one status; "" and 0 if it never ran."""

    op: str
    status: str
    times: int


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Crashes of one kind at one kind of place; ``violated`` preceded a breach."""

    action: str
    file_kind: str
    op: str
    kind: str
    survivors: str
    recovery: str
    crashes: int
    violated: int


@dataclass(frozen=True, slots=True)
class ProbeHits:
    """One probe in one scenario; scenario "" and zeros if it was never hit."""

    probe: str
    sentence: str
    scenario: str
    hits: int
    episodes: int


@dataclass(frozen=True, slots=True)
class LawChecks:
    """One law in one scenario; scenario "" and zeros if it was never checked."""

    invariant: str
    sentence: str
    law: str
    scenario: str
    checks: int
    violations: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One distinct failure: its smallest episode, and how many share its signature."""

    signature: str
    outcome: str
    invariant: str
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
class Figures:
    """A run in numbers; ``elapsed_s`` is None if it was cut short."""

    run: dict[str, Any]
    declared: Declared
    elapsed_s: float | None
    digest: str
    scenarios: list[ScenarioTotals]
    ops: list[OpStatus]
    crash_points: list[CrashPoint]
    probes: list[ProbeHits]
    laws: list[LawChecks]
    findings: list[Finding]

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
    def violated(self) -> list[Finding]:
        """Broken laws, most frequent first."""
        return [found for found in self.findings if found.outcome == "violated"]

    @property
    def unjudged(self) -> list[Finding]:
        """Failures in which no law was found broken: unknown, timeout, signal, exit."""
        return [found for found in self.findings if found.outcome != "violated"]
