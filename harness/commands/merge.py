"""``crashmq merge``: makes one run of those that several machines have made."""

from __future__ import annotations

import click

from crashmq.harness.commands.arguments import PlaceType, writing
from crashmq.harness.commands.output import say
from crashmq.harness.commands.reporting import reporting_what_is_missing
from crashmq.reports.places import Place


@click.command()
@click.argument("out", metavar="OUT", type=PlaceType())
@click.argument("other", metavar="DIR...", type=PlaceType(), nargs=-1, required=True)
def command(out: Place, other: tuple[Place, ...]) -> None:
    """Copy to OUT what it lacks of the runs in DIR..., all of one definition."""
    with reporting_what_is_missing(spark=False), writing():
        from crashmq.reports.merge import merge

        copied = merge(out, other)
    say(f"{copied} shards were copied to {out}\n  next  crashmq report {out}")
