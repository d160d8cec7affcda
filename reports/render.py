"""A run as a page: collect its figures, judge it, write three files beside it.

``report.html`` is one file that opens offline: no script, no font, no reference.
``report.md`` says the same in short, ``summary.json`` to programs. This is the only
module that collects; every text of a store is escaped by the templates.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pyspark.sql import DataFrame, SparkSession

from crashmq.reports import coverage, findings
from crashmq.reports.figures import (
    CrashPoint,
    Excuse,
    Figures,
    Finding,
    LawChecks,
    OpStatus,
    ProbeHits,
    ScenarioTotals,
)
from crashmq.reports.files import (
    read_declared,
    read_elapsed_s,
    read_run_file,
    write_json,
    write_text,
)
from crashmq.reports.page import page_of
from crashmq.reports.records import Declared
from crashmq.reports.run_store import read_run
from crashmq.reports.summary import Summary, summarise

HTML_FILE = "report.html"
MARKDOWN_FILE = "report.md"
SUMMARY_FILE = "summary.json"

_TEMPLATES = Path(__file__).parent / "templates"
_Row = TypeVar("_Row")


class _Code(str):
    """Text that is already a code span of Markdown."""

    __slots__ = ()


def render(
    session: SparkSession, out: Path, cases: Mapping[str, str] | None = None
) -> Summary:
    """Write the report of the run in ``out``; an older one is replaced.

    Args:
        session: reads and aggregates the rows.
        out: the directory that ``write_run`` filled.
        cases: paths of saved case files by signature, for the replay commands; None
            takes those that lie in ``out/cases`` under their signature.

    Raises:
        NotARun: no run was written to ``out``.
    """
    figures = collect_figures(session, out)
    saved = cases_in(out, figures.findings) if cases is None else cases
    summary = summarise(figures, saved)
    page = page_of(figures, summary)
    write_text(out / HTML_FILE, _html().get_template("report.html").render(page=page))
    markdown = _markdown().get_template("report.md").render(page=page)
    write_text(out / MARKDOWN_FILE, markdown)
    write_json(out / SUMMARY_FILE, asdict(summary))
    return summary


def smallest_failures(session: SparkSession, out: Path) -> list[Finding]:
    """One row per distinct failure, broken laws first, most frequent first.

    Raises:
        NotARun: no run was written to ``out``.
    """
    return _findings(read_run(session, out))


def cases_in(out: Path, found: list[Finding]) -> dict[str, str]:
    """The case files of ``out/cases`` that are named after a signature."""
    names = {failure.signature: f"{failure.signature}.case.json" for failure in found}
    there = {path.name: path for path in (out / "cases").glob("*.case.json")}
    return {key: str(there[name]) for key, name in names.items() if name in there}


def collect_figures(session: SparkSession, out: Path) -> Figures:
    """Every table of the report.

    Raises:
        NotARun: no run was written to ``out``.
    """
    run, declared = read_run_file(out), read_declared(out)
    episodes = read_run(session, out)
    return Figures(
        run=run,
        declared=declared,
        elapsed_s=read_elapsed_s(out),
        digest=str(coverage.run_digest(episodes).collect()[0]["digest"] or ""),
        scenarios=_rows(coverage.scenario_totals(episodes), ScenarioTotals),
        ops=_rows(coverage.op_statuses(episodes, _ops(session, declared)), OpStatus),
        crash_points=_rows(coverage.crash_points(episodes), CrashPoint),
        probes=_rows(
            coverage.probe_hits(episodes, _probes(session, declared)), ProbeHits
        ),
        laws=_rows(findings.law_checks(episodes, _laws(session, declared)), LawChecks),
        excuses=_rows(findings.excuse_counts(episodes), Excuse),
        findings=_findings(episodes),
    )


def _findings(episodes: DataFrame) -> list[Finding]:
    found = _rows(findings.findings(episodes), Finding)
    return sorted(
        found, key=lambda f: (f.outcome != "violated", -f.episodes, f.signature)
    )


def _rows(frame: DataFrame, row: type[_Row]) -> list[_Row]:
    names = [field.name for field in fields(row)]  # type: ignore[arg-type]
    assert frame.columns == names, (frame.columns, names)
    collected = [row(**found.asDict(recursive=True)) for found in frame.collect()]
    return sorted(collected, key=lambda each: [str(getattr(each, n)) for n in names])


def _ops(session: SparkSession, declared: Declared) -> DataFrame:
    return _frame(session, {"op": declared.ops})


def _probes(session: SparkSession, declared: Declared) -> DataFrame:
    names = list(declared.probes)
    sentences = [declared.probes[name] for name in names]
    return _frame(session, {"probe": names, "sentence": sentences})


def _laws(session: SparkSession, declared: Declared) -> DataFrame:
    names = list(declared.laws)
    sentences = [declared.laws[name] for name in names]
    catalogue = [declared.catalogue.get(name, "") for name in names]
    columns = {"law": names, "sentence": sentences, "catalogue": catalogue}
    return _frame(session, columns)


def _frame(session: SparkSession, columns: Mapping[str, list[str]]) -> DataFrame:
    arrays = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    return session.createDataFrame(pa.table(arrays))


def environments() -> tuple[Environment, Environment]:
    """The templates' environments for HTML and for Markdown."""
    return _html(), _markdown()


def _html() -> Environment:
    return _with_filters(
        Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            finalize=_without_controls,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
    )


def _markdown() -> Environment:
    return _with_filters(
        Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=False,  # for HTML; `finalize` escapes for Markdown instead
            finalize=_plain_in_markdown,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
    )


def _with_filters(environment: Environment) -> Environment:
    environment.filters |= {
        "thousands": lambda number: f"{number:,}",
        "short": short,
        "percent": lambda share: f"{share:.1%}" if share < 0.995 else "100%",
        "part": part,
        "command": lambda words: " ".join(map(shlex.quote, words)),
        "json": lambda value: json.dumps(value, ensure_ascii=False),
        "code": _code,
    }
    return environment


def short(number: int) -> str:
    """A count in at most five characters: 987, 1.2k, 45k, 3.4M."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            scaled = number / size
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return str(number)


def part(share: float) -> str:
    """A share that says neither none of what is there, nor all of what is not."""
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return ">99.9%"
    return f"{share:.1%}" if share < 1 else "100%"


def _code(text: Any) -> _Code:
    plain = " ".join(str(text).replace("`", "'").replace("|", "\\|").split())
    return _Code(f"`{plain}`" if plain else "")


def _without_controls(value: Any) -> Any:
    """Write what no page shows, or what turns its direction, as Python writes it.

    ``models.printable`` does the same of one line; a report knows no other package.
    """
    if not isinstance(value, str) or value.isprintable():
        return value
    shown = "".join(
        sign
        if sign.isprintable() or sign == "\n"
        else sign.encode("unicode_escape").decode("ascii")
        for sign in value
    )
    return type(value)(shown)  # ``Markup`` of a template stays what it is


def _plain_in_markdown(value: Any) -> Any:
    """Escape what Markdown or HTML would take for markup, in every printed value."""
    value = _without_controls(value)
    if isinstance(value, _Code) or not isinstance(value, str):
        return value
    escaped = value.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", " ".join(escaped.split()))
