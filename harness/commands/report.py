"""``crashmq report``: renders the report of a soak again from its rows."""

from __future__ import annotations

from pathlib import Path

import click

from crashmq.harness.commands.arguments import (
    PlaceType,
    baseline_at,
    baseline_option,
    junit_option,
    make_room,
)
from crashmq.harness.commands.report_mutants import report_campaign, report_operators
from crashmq.harness.commands.reporting import (
    reporting_what_is_missing,
    write_report,
)
from crashmq.harness.commands.soak_result import tell
from crashmq.harness.commands.soak_runner import runner
from crashmq.reports.files import read_declared, read_run_file
from crashmq.reports.mutation_records import HUNTS_FILE
from crashmq.reports.operator_records import ASKED_FILE
from crashmq.reports.places import Place, is_there
from crashmq.reports.run_dir import elapsed_of


@click.command()
@click.argument("directory", metavar="DIR", type=PlaceType())
@click.option(
    "--since",
    type=click.Path(path_type=Path),
    metavar="OLDER",
    help="Of mutants: the directory of an older run, to say what has changed.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Of a soak: let Spark sum it up; without, this process does. Reports of "
    "planted bugs always use a Spark of this machine.",
)
@baseline_option
@junit_option
def command(
    directory: Place,
    since: Path | None,
    master: str | None,
    baseline: Path | None,
    junitxml: Path | None,
) -> None:
    """Render the report of the soak, or of the mutants, in DIR again."""
    make_room(junitxml)
    if isinstance(directory, Path):
        of_operators = is_there(directory / ASKED_FILE)
        of_campaign = is_there(directory / HUNTS_FILE)
        if junitxml and (of_operators or of_campaign):
            raise click.UsageError("--junitxml is for reports of `crashmq soak`.")
        if of_operators:
            report_operators(directory)
        if of_campaign:
            report_campaign(directory, since)
    if since:
        raise click.UsageError("--since is for reports of `crashmq mutants --out`.")
    with reporting_what_is_missing(spark=master is not None):
        # Before anything is summed up, which takes its time.
        read_run_file(directory)
        read_declared(directory)
        elapsed_of(directory)
        known = baseline_at(baseline)
        with runner(directory, master, None, local=master is None) as running:
            summed = running.summed(directory)
            summary, cases = write_report(summed, directory, known, junitxml)
    tell(summary, directory, cases)
    raise SystemExit(summary.exit_code)
