"""The report of a campaign of hunts for planted bugs.

``report.html`` is a single file that opens offline, ``report.md`` a short version.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from crashmq.reports import mutation
from crashmq.reports.curve import Curves, survival_curves
from crashmq.reports.files import read_declared, read_json, write_text
from crashmq.reports.render import HTML_FILE, MARKDOWN_FILE, SUMMARY_FILE, environments

PORTFOLIO = "portfolio"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One mutant and how often each law killed it, in the order of the laws."""

    mutant: str
    kills: tuple[int, ...]
    named: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class MutationPage:
    """All values printed by the templates of the report."""

    summary: dict[str, Any]
    mutants: list[dict[str, Any]]
    curves: Curves
    laws: tuple[str, ...]
    matrix: tuple[MatrixRow, ...]
    idle_laws: list[dict[str, Any]]
    precision: float | None
    recall: float | None
    buckets: dict[str, Any]
    policies: list[dict[str, Any]]
    changes: list[dict[str, Any]] | None
    ratio: float | None


def render_campaign(
    session: SparkSession, out: Path, before: Path | None = None
) -> dict[str, Any]:
    """Write the report of the campaign in ``out``; returns its summary.

    Args:
        session: reads and aggregates the rows.
        out: the directory given to ``crashmq mutants --out``.
        before: the directory of an older campaign to compare with.

    Raises:
        NotARun: one of them has no campaign.
    """
    page = campaign_page(session, out, before)
    html, markdown = environments()
    text = html.get_template("mutation.html").render(page=page)
    write_text(out / HTML_FILE, text)
    text = markdown.get_template("mutation.md").render(page=page)
    write_text(out / MARKDOWN_FILE, text)
    return page.summary


def campaign_page(
    session: SparkSession, out: Path, before: Path | None = None
) -> MutationPage:
    """Collect every table of the report."""
    summary = read_json(out, SUMMARY_FILE)
    declared = read_declared(out).laws
    hunts = mutation.read_hunts(session, out).cache()
    older = mutation.read_hunts(session, before) if before else None
    mutants = _rows(mutation.mutant_totals(hunts), "mutant")
    laws, matrix = _matrix(_rows(mutation.kill_matrix(hunts), "mutant", "law"))
    known = pa.table(
        {
            "law": pa.array(list(declared), pa.string()),
            "sentence": pa.array(list(declared.values()), pa.string()),
        }
    )
    by_law = mutation.law_kills(hunts, session.createDataFrame(known))
    (buckets,) = _rows(mutation.bucket_pairs(hunts))
    return MutationPage(
        summary=summary,
        mutants=mutants,
        curves=_curves(
            _rows(mutation.survival(hunts), "policy", "elapsed_us"), summary
        ),
        laws=laws,
        matrix=matrix,
        idle_laws=[row for row in _rows(by_law, "law") if not row["kills"]],
        precision=_part(buckets["both"], buckets["alike"]),
        recall=_part(buckets["both"], buckets["related"]),
        buckets=buckets,
        policies=_rows(mutation.policy_totals(hunts), "policy"),
        changes=(
            [
                row
                for row in _rows(mutation.changes(hunts, older), "mutant")
                if _moved(row)
            ]
            if older is not None
            else None
        ),
        ratio=_ratio(mutants),
    )


def _rows(frame: DataFrame, *order: str) -> list[dict[str, Any]]:
    rows = [row.asDict() for row in frame.collect()]
    return sorted(rows, key=lambda row: [row[name] for name in order])


def _matrix(
    cells: Sequence[dict[str, Any]],
) -> tuple[tuple[str, ...], tuple[MatrixRow, ...]]:
    laws = tuple(sorted({cell["law"] for cell in cells}))
    known = {(cell["mutant"], cell["law"]): cell for cell in cells}
    nothing = {"kills": 0, "is_named": 0}
    rows = []
    for mutant in sorted({cell["mutant"] for cell in cells}):
        mine = [known.get((mutant, law), nothing) for law in laws]
        rows.append(
            MatrixRow(
                mutant,
                tuple(cell["kills"] for cell in mine),
                tuple(bool(cell["is_named"]) for cell in mine),
            )
        )
    return laws, tuple(rows)


def _curves(steps: Sequence[dict[str, Any]], summary: dict[str, Any]) -> Curves:
    moments: dict[str, list[tuple[float, float]]] = {}
    for step in steps:
        name = step["policy"] or PORTFOLIO
        share = step["alive"] / step["hunts"]
        moments.setdefault(name, []).append((step["elapsed_us"] / 1e6, share))
    return survival_curves(moments, float(summary["budget_seconds"]))


def _part(some: int, every: int) -> float | None:
    return some / every if every else None


def _ratio(mutants: Sequence[dict[str, Any]]) -> float | None:
    """The 90th percentile of shrunk ops divided by the ops of the hand-made trigger."""
    ratios = sorted(
        row["ops"] / row["trigger_ops"]
        for row in mutants
        if row["trigger_ops"] and row["kills"]
    )
    return ratios[math.ceil(0.9 * len(ratios)) - 1] if ratios else None


def _moved(row: dict[str, Any]) -> bool:
    """Whether the number of kills changed, or the time by half."""
    if row["hunts"] < 0 or row["was_hunts"] < 0:
        return True
    was, now = row["was_kills"] / row["was_hunts"], row["kills"] / row["hunts"]
    low, high = sorted((int(row["median_us"]), int(row["was_us"])))
    return bool(was != now) or (high > 1.5 * low and high - low > 1_000_000)
