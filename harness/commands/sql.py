"""``crashmq sql``: answers a user's SQL query on a run."""

from __future__ import annotations

import click

from crashmq.harness.commands.arguments import PlaceType
from crashmq.harness.commands.output import say
from crashmq.harness.commands.reporting import reporting_what_is_missing
from crashmq.reports.places import Place


@click.command()
@click.argument("directory", metavar="DIR", type=PlaceType())
@click.argument("question", metavar="SELECT")
def command(directory: Place, question: str) -> None:
    """Answer a SELECT on the soak in DIR.

    Views: episodes, manifests, scenarios, ops, crash_points, probes, laws, excuses,
    states.
    """
    with reporting_what_is_missing(spark=False):
        from crashmq.reports.sql import answer

        say(answer(directory, question))
