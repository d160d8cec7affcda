"""The part of ``crashmq report`` that renders campaigns of planted bugs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from crashmq.harness.commands.exits import CLEAN, FINDINGS
from crashmq.harness.commands.output import say
from crashmq.harness.commands.reporting import reporting_what_is_missing
from crashmq.harness.commands.sparked import spark_session
from crashmq.harness.mutants.operators.equivalent import equivalent_mutants
from crashmq.reports.files import write_json, write_text
from crashmq.reports.mutation_records import read_rows
from crashmq.reports.operator_figures import (
    report_of,
    sentence_of,
    summary_of_operators,
)
from crashmq.reports.operator_records import (
    OperatorRecord,
    in_sample_order,
    read_asked,
    read_lines,
    read_operator_rows,
    with_reach,
)

PARQUET_FILE = "operators.parquet"


def report_operators(directory: Path) -> NoReturn:
    """Write the report of ``crashmq mutants --operators`` again, without Spark."""
    asked, rows = read_asked(directory), read_operator_rows(directory)
    equivalent = equivalent_mutants(directory)
    rows = in_sample_order(rows, [each["id"] for each in asked["sample"]])
    lines = read_lines(directory)
    if lines is not None:
        rows = with_reach(rows, lines)
    summary = write_operator_report(directory, rows, asked, equivalent)
    say(sentence_of(rows, equivalent))
    say(f"  report  {directory / 'report.md'}, {directory / 'summary.json'}")
    raise SystemExit(FINDINGS if summary["survivors"] else CLEAN)


def write_operator_report(
    directory: Path,
    rows: Sequence[OperatorRecord],
    asked: Mapping[str, Any],
    equivalent: Mapping[str, str],
) -> dict[str, Any]:
    """Write the report, its summary, and with pyarrow the rows as Parquet.

    Returns the summary.
    """
    summary = summary_of_operators(rows, asked, equivalent)
    write_text(directory / "report.md", report_of(rows, asked, equivalent))
    write_json(directory / "summary.json", summary)
    if find_spec("pyarrow"):
        from crashmq.reports.arrow import table_of
        from crashmq.reports.shards import write_groups

        write_groups(directory / PARQUET_FILE, [table_of(rows, OperatorRecord)])
    return summary


def report_campaign(directory: Path, since: Path | None) -> NoReturn:
    """Write the report of ``crashmq mutants --out`` again; returns the exit code."""
    with reporting_what_is_missing(spark=True):
        read_rows(directory)
        if since:
            read_rows(since)
        from crashmq.reports.mutation_render import render_campaign

        with spark_session(None, directory) as session:
            summary = render_campaign(session, directory, since)
    say(summary["verdict"])
    say(f"  report  {directory / 'report.html'}")
    say(f"          {directory / 'report.md'}, {directory / 'summary.json'}")
    raise SystemExit(int(summary["exit_code"]))
