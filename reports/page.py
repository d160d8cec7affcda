"""Arranges the figures of a run as a page: tables, charts, and the order of their rows.

Pure functions from ``Figures`` to the values that templates print. Axes have all
declared names and whatever else was seen, so that a name never reached still has a row.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crashmq.reports.charts import Bars, Count, HeatMap, heat_map, stacked_bars
from crashmq.reports.figures import Figures, Finding
from crashmq.reports.records import CrashPoint
from crashmq.reports.summary import Summary

_ACTIONS = ("write", "sync", "create", "size", "make_dir", "sync_dir", "remove")
_FILE_KINDS = ("commitlog", "consumequeue", "checkpoint", "abort", "directory", "other")
# Of a crash in an op that had done no disk action yet, so that it has no place.
_NO_ACTION = "none"
_RECOVERIES = ("normal", "abnormal", "refused", "none")
# Ops of others; a crash in one of these is counted for that one.
_CARRIERS = ("During", "Session")
_TRACE_BEFORE = 40
_TRACE_AFTER = 3
_TRACES_MAX = 30  # findings that are shown with their traces


@dataclass(frozen=True, slots=True)
class LawCell:
    """One law in one scenario, or in all.

    ``state`` is violated, unknown, checked or vacuous.
    """

    checks: int
    violations: int
    unknown: int
    required: bool
    state: str

    @property
    def is_missing(self) -> bool:
        """Whether it is required and was never checked."""
        return self.required and not self.checks


@dataclass(frozen=True, slots=True)
class LawRow:
    """One law over all scenarios, with cells in the order of the scenarios.

    ``whole`` is the sum of the cells.
    """

    law: str
    sentence: str
    catalogue: str
    whole: LawCell
    cells: tuple[LawCell, ...]

    @property
    def state(self) -> str:
        """``violated``, ``unknown``, ``checked`` or ``vacuous``."""
        return self.whole.state

    @property
    def is_missing(self) -> bool:
        """Whether a scenario requires it in vain."""
        return any(cell.is_missing for cell in self.cells)

    @property
    def asked_in(self) -> int:
        """The number of scenarios in which it was asked."""
        return sum(cell.checks > 0 for cell in self.cells)


@dataclass(frozen=True, slots=True)
class ExcuseRow:
    """One law, and how often each of the table's facts excused it, in their order."""

    law: str
    sentence: str
    asked: int
    excused: int
    share: float
    is_mostly_excused: bool
    cells: dict[str, int]


@dataclass(frozen=True, slots=True)
class Excuses:
    """The table of excuses: the facts that excused any law, and the laws."""

    facts: dict[str, str]  # name: why a law asks for it
    rows: list[ExcuseRow]
    never: list[str]  # facts that excused nothing in this run


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One probe over all scenarios."""

    probe: str
    sentence: str
    hits: int
    episodes: int
    required_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FindingCard:
    """One distinct failure as it is shown: its law, its trace, its command."""

    found: Finding
    sentence: str
    detail: str
    setup: str
    case: str
    history: str
    excused: str
    events: list[dict[str, Any]]
    events_before: int
    events_after: int


@dataclass(frozen=True, slots=True)
class Page:
    """All values printed by a template."""

    summary: Summary
    figures: Figures
    violated: list[FindingCard]
    unjudged: list[FindingCard]
    crashes_by_file: HeatMap
    crashes_elsewhere: Count
    crashes_by_op: HeatMap
    ops_never_crashed: list[str]
    recoveries: HeatMap
    laws: list[LawRow]
    excuses: Excuses
    ops: Bars
    probes_hit: list[ProbeRow]
    probes_never_hit: list[ProbeRow]


def page_of(figures: Figures, summary: Summary) -> Page:
    """Arrange a run as a page."""
    cases = {
        failure.signature: failure.case
        for failure in (*summary.distinct_failures, *summary.unjudged_failures)
    }
    points = figures.crash_points
    placed = [point for point in points if point.action != _NO_ACTION]
    elsewhere = [point for point in points if point.action == _NO_ACTION]
    crashed_in = {point.op for point in points}
    ops = [op for op in figures.declared.ops if op in crashed_in]
    probes = probe_rows(figures)
    cards = [
        _card(figures, found, cases, has_trace=number < _TRACES_MAX)
        for number, found in enumerate(figures.violated + figures.unjudged)
    ]
    return Page(
        summary=summary,
        figures=figures,
        violated=cards[: len(figures.violated)],
        unjudged=cards[len(figures.violated) :],
        crashes_by_file=crash_map(
            placed, lambda p: (p.action, p.file_kind), _ACTIONS, _FILE_KINDS
        ),
        crashes_elsewhere=Count(
            sum(point.crashes for point in elsewhere),
            sum(point.violated for point in elsewhere),
        ),
        ops_never_crashed=[
            op for op in figures.declared.ops if op not in {*crashed_in, *_CARRIERS}
        ],
        crashes_by_op=crash_map(points, lambda p: (p.op, p.action), ops, _ACTIONS),
        recoveries=crash_map(
            points, lambda p: (crash_name(p), p.recovery), (), _RECOVERIES
        ),
        laws=law_rows(figures),
        excuses=excuses_of(figures, summary.mostly_excused),
        ops=op_bars(figures),
        probes_hit=[row for row in probes if row.hits],
        probes_never_hit=[row for row in probes if not row.hits],
    )


def crash_map(
    points: Iterable[CrashPoint],
    place: Callable[[CrashPoint], tuple[str, str]],
    rows: Sequence[str],
    columns: Sequence[str],
) -> HeatMap:
    """Crashes counted by ``place`` (row, column); known names first, then the rest."""
    counts: dict[tuple[str, str], Count] = {}
    for point in points:
        cell, before = place(point), counts.get(place(point), Count())
        counts[cell] = Count(
            before.tried + point.crashes, before.violated + point.violated
        )
    seen = sorted(counts)
    all_rows = dict.fromkeys([*rows, *(row for row, _ in seen)])
    all_columns = dict.fromkeys([*columns, *sorted(column for _, column in seen)])
    return heat_map(list(all_rows), list(all_columns), counts)


def crash_name(point: CrashPoint) -> str:
    """A crash's kind; for a power loss with its survivors."""
    if point.kind == "process_kill" or not point.survivors:
        return point.kind
    return f"{point.kind}, {point.survivors}"


def law_rows(figures: Figures) -> list[LawRow]:
    """Every declared or seen law by its number, with one cell per scenario."""
    seen = {(row.law, row.scenario): row for row in figures.laws}
    declared = figures.declared
    rows = []
    for law in sorted({row.law for row in figures.laws}, key=by_number):
        cells = []
        for scenario in figures.scenario_names:
            row = seen.get((law, scenario))
            numbers = (row.checks, row.violations, row.unknown) if row else (0, 0, 0)
            is_required = law in declared.required_laws.get(scenario, [])
            cells.append(LawCell(*numbers, is_required, _state(*numbers)))
        sentence = declared.laws.get(law, "")
        catalogue = declared.catalogue.get(law, "")
        rows.append(LawRow(law, sentence, catalogue, _sum_of(cells), tuple(cells)))
    return rows


def by_number(law: str) -> tuple[str, int]:
    """The two parts of a law's id, by which laws are sorted; of another id itself."""
    prefix, _, number = law.rpartition("-")
    return (prefix, int(number)) if number.isdecimal() else (law, 0)


def _sum_of(cells: Sequence[LawCell]) -> LawCell:
    numbers = (
        sum(cell.checks for cell in cells),
        sum(cell.violations for cell in cells),
        sum(cell.unknown for cell in cells),
    )
    is_required = any(cell.required for cell in cells)
    return LawCell(*numbers, is_required, _state(*numbers))


def excuses_of(figures: Figures, mostly: Sequence[str]) -> Excuses:
    """Laws by the facts that excused them; those in ``mostly`` are marked."""
    reasons, sentences = figures.declared.facts, figures.declared.laws
    met = {row.fact for row in figures.excuses}
    facts = {name: reasons[name] for name in reasons if name in met}
    facts |= dict.fromkeys(sorted(met - reasons.keys()), "")
    rows = [
        ExcuseRow(
            row.law,
            sentences.get(row.law, ""),
            row.asked,
            row.excused,
            row.share,
            row.law in mostly,
            {fact: row.by_fact.get(fact, 0) for fact in facts},
        )
        for row in figures.excused_laws
    ]
    return Excuses(facts, rows, [name for name in reasons if name not in met])


def probe_rows(figures: Figures) -> list[ProbeRow]:
    """Every declared or seen probe by name, with its hits over all scenarios."""
    required = figures.declared.required_probes
    rows: dict[str, ProbeRow] = {}
    for row in figures.probes:
        before = rows.get(row.probe)
        needed = tuple(
            name
            for name in figures.scenario_names
            if row.probe in required.get(name, [])
        )
        hits = row.hits + (before.hits if before else 0)
        episodes = row.episodes + (before.episodes if before else 0)
        sentence = figures.declared.probes.get(row.probe, "")
        if reason := figures.declared.unreachable.get(row.probe):
            sentence = f"{sentence} (unreachable: {reason})"
        rows[row.probe] = ProbeRow(row.probe, sentence, hits, episodes, needed)
    return [rows[name] for name in sorted(rows)]


def op_bars(figures: Figures) -> Bars:
    """One bar per op, in declared order, with its statuses by frequency."""
    counts: dict[str, dict[str, int]] = {op: {} for op in figures.declared.ops}
    for row in sorted(figures.ops, key=lambda row: (-row.times, row.status)):
        parts = counts.setdefault(row.op, {})
        if row.times:
            parts[row.status] = row.times
    statuses = {status for parts in counts.values() for status in parts}
    return stacked_bars(counts, {status: tone(status) for status in sorted(statuses)})


def tone(status: str) -> str:
    """The colour of a status: ordinary, ended by a crash, ``Skipped``, or a defect."""
    if "Failed" in status:
        return "bad"
    if "Crashed" in status:
        return "crash"
    if "Skipped" in status:
        return "idle"
    if "Refused" in status or "Armed" in status:
        return "odd"
    return "good"


def detail_of(found: Finding) -> str:
    """The message, without a first line that only repeats the law."""
    head, _, rest = found.message.partition("\n")
    says_the_law = found.law and head.startswith(f"{found.law} (")
    return textwrap.dedent(rest) if rest and says_the_law else found.message


def _state(checks: int, violations: int, unknown: int) -> str:
    if violations:
        return "violated"
    if unknown:
        return "unknown"
    return "checked" if checks else "vacuous"


def _unusual(setup: dict[str, Any], usual: dict[str, Any]) -> str:
    """The fields of a setup that differ from the usual setup."""
    told = [f"{k} {v}" for k, v in setup.items() if k not in usual or usual[k] != v]
    return ", ".join(told) or ("all settings as usual" if setup else "")


def _card(
    figures: Figures, found: Finding, cases: dict[str, str], *, has_trace: bool
) -> FindingCard:
    breach = found.step if found.step >= 0 else len(found.events)
    first, end = breach - _TRACE_BEFORE, breach + 1 + _TRACE_AFTER
    events = found.events if has_trace else []
    shown = [event for event in events if first <= event["step"] < end]
    before = sum(event["step"] < first for event in events)
    return FindingCard(
        found=found,
        sentence=figures.declared.laws.get(found.law, ""),
        detail=detail_of(found),
        setup=_unusual(json.loads(found.setup), figures.declared.setup),
        case=cases[found.signature],
        history=figures.background.history.get(found.signature, ""),
        excused=figures.background.excused.get(found.signature, ""),
        events=shown,
        events_before=before,
        events_after=len(events) - before - len(shown),
    )
