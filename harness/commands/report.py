"""``crashmq report``: the report of a soak, rendered again from its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import click

from crashmq.harness.commands.arguments import baseline_at, baseline_option
from crashmq.harness.commands.exits import CLEAN, FINDINGS, BadInput
from crashmq.harness.commands.output import say
from crashmq.harness.commands.reporting import lacking_is_told, tell, write_report
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.reports.errors import NotARun
from crashmq.reports.files import read_declared, read_run_file, write_json, write_text
from crashmq.reports.mutation_records import HUNTS_FILE, read_rows
from crashmq.reports.operator_figures import (
    report_of,
    sentence_of,
    summary_of_operators,
)
from crashmq.reports.operator_records import (
    ASKED_FILE,
    LINES_FILE,
    lines_from,
    read_asked,
    read_operator_rows,
    with_reach,
)
from crashmq.reports.run_dir import elapsed_of

if TYPE_CHECKING:
    from crashmq.reports.summary import Summary

    Reported: TypeAlias = tuple[Summary, dict[str, str]]


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--since",
    type=click.Path(path_type=Path),
    metavar="OLDER",
    help="Of mutants: the directory of an older run, to say what has changed.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Of a soak: let Spark sum it up; without, this process does.",
)
@baseline_option
def command(
    directory: Path, since: Path | None, master: str | None, baseline: Path | None
) -> None:
    """Render the report of the soak, or of the mutants, in DIR again."""
    if (directory / ASKED_FILE).exists():
        _report_operators(directory)
    if (directory / HUNTS_FILE).exists():
        _report_campaign(directory, since)
    if since:
        raise click.UsageError("--since is for reports of `crashmq mutants --out`.")
    with lacking_is_told(spark=master is not None):
        # Before anything is summed up, which takes its time.
        read_run_file(directory)
        read_declared(directory)
        elapsed_of(directory)
        write = partial(write_report, baseline=baseline_at(baseline))
        summary, cases = _report_run(directory, master, write)
    tell(summary, directory, cases)
    raise SystemExit(summary.exit_code)


def _report_run(
    directory: Path, master: str | None, write: Callable[..., Reported]
) -> Reported:
    """Sum a soak up, here or by Spark, and write its report."""
    if master is None:
        from crashmq.reports.aggregates import LocalAggregates

        return write(LocalAggregates(directory), directory)
    from crashmq.reports.spark import open_session
    from crashmq.reports.spark_aggregates import SparkAggregates

    session = open_session(master, directory)
    INTERRUPTS.rearm()
    try:
        return write(SparkAggregates(session, directory), directory)
    finally:
        session.stop()


def _report_operators(directory: Path) -> NoReturn:
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


def _report_campaign(directory: Path, since: Path | None) -> NoReturn:
    """Draw what ``crashmq mutants --out`` kept; the exit code is the campaign's."""
    with lacking_is_told(spark=True):
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
