"""``crashmq compact``: few large files of a run instead of many small ones."""

from __future__ import annotations

import click

from crashmq.harness.commands.arguments import PlaceType
from crashmq.harness.commands.output import say
from crashmq.harness.commands.reporting import reporting_what_is_missing
from crashmq.reports.places import Place


@click.command()
@click.argument("directory", metavar="DIR", type=PlaceType())
@click.option(
    "--mib",
    type=click.IntRange(min=1),
    default=128,
    show_default=True,
    help="About how large a file of rows becomes.",
)
def command(directory: Place, mib: int) -> None:
    """Join the shards of the soak in DIR into a few large files."""
    with reporting_what_is_missing(spark=False):
        from crashmq.reports.compact import compact

        done = compact(directory, mib * 1024 * 1024)
    say(f"{done.before} shards became {done.after} in {directory}")
