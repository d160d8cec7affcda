"""``crashmq report``: the report of a soak, rendered again from its rows."""

from __future__ import annotations

from pathlib import Path

import click

from harness.commands.reporting import no_spark_is_told, tell, write_report


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def command(directory: Path) -> None:
    """Render the report of the soak in DIR again."""
    with no_spark_is_told():
        from reports.files import read_run_file

        read_run_file(directory)
        from reports.spark import open_session

        session = open_session(None, directory)
        try:
            summary, cases = write_report(session, directory)
        finally:
            session.stop()
    tell(summary, directory, cases)
    raise SystemExit(summary.exit_code)
