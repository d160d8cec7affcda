"""The part of ``crashmq report`` that renders campaigns of planted bugs."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from crashmq.harness.commands.exits import CLEAN, FINDINGS, BadInput
from crashmq.harness.commands.output import say
from crashmq.harness.commands.reporting import reporting_what_is_missing
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.reports.errors import NotARun
from crashmq.reports.files import write_json, write_text
from crashmq.reports.mutation_records import read_rows
from crashmq.reports.operator_figures import (
    report_of,
    sentence_of,
    summary_of_operators,
)
from crashmq.reports.operator_records import (
    LINES_FILE,
    lines_from,
    read_asked,
    read_operator_rows,
    with_reach,
)


def report_operators(directory: Path) -> NoReturn:
    """Write again what ``crashmq mutants --operators`` says; no Spark is needed."""
    try:
        asked, rows = read_asked(directory), read_operator_rows(directory)
    except NotARun as error:
        raise BadInput(str(error)) from None
    lines = directory / LINES_FILE
    if lines.exists():
        rows = with_reach(rows, lines_from(lines.read_text("utf-8")))
    write_text(directory / "report.md", report_of(rows, asked))
    write_json(directory / "summary.json", summary_of_operators(rows, asked))
    say(sentence_of(rows))
    say(f"  report  {directory / 'report.md'}, {directory / 'summary.json'}")
    raise SystemExit(FINDINGS if any(not row.is_killed for row in rows) else CLEAN)


def report_campaign(directory: Path, since: Path | None) -> NoReturn:
    """Draw what ``crashmq mutants --out`` kept; the exit code is the campaign's."""
    with reporting_what_is_missing(spark=True):
        read_rows(directory)
        if since:
            read_rows(since)
        from crashmq.reports.mutation_render import render_campaign
        from crashmq.reports.spark import open_session

        session = open_session(None, directory)
        INTERRUPTS.rearm()
        try:
            summary = render_campaign(session, directory, since)
        finally:
            session.stop()
    say(summary["verdict"])
    say(f"  report  {directory / 'report.html'}")
    say(f"          {directory / 'report.md'}, {directory / 'summary.json'}")
    raise SystemExit(int(summary["exit_code"]))
