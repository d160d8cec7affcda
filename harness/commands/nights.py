"""``crashmq nights``: compares the runs of several nights."""

from __future__ import annotations

from pathlib import Path

import click

from crashmq.harness.commands.arguments import (
    PlaceType,
    baseline_at,
    baseline_option,
    writing,
)
from crashmq.harness.commands.output import say
from crashmq.harness.commands.reporting import reporting_what_is_missing
from crashmq.reports.places import Place


@click.command()
@click.argument("directory", metavar="DIR", type=PlaceType())
@baseline_option
def command(directory: Place, baseline: Path | None) -> None:
    """Compare the runs in DIR: which failures are new, known, back or resolved.

    DIR holds what nightly soaks wrote with --out, and perhaps what `mutants
    --operators` did. The exit code is the last night's.
    """
    known = baseline_at(baseline)
    with reporting_what_is_missing(spark=False):
        from crashmq.reports.campaigns import campaigns_in
        from crashmq.reports.nights import side_by_side
        from crashmq.reports.nights_render import read_nights, render_nights

        found, unreadable = read_nights(directory)
        nights = side_by_side(found, known.excuse)
        with writing():
            render_nights(nights, directory, unreadable, campaigns_in(directory))
    say(nights.verdict)
    for told in unreadable:
        say(f"  ! {told}")
    for entry in known.expired:
        say(f"  ! expired: {entry.sentence}")
    for one in nights.failures:
        say(f"  {one.signature}: {one.told}")
    say(f"  report  {directory / 'nights.html'}")
    say(f"          {directory / 'nights.md'}, {directory / 'nights.json'}")
    raise SystemExit(nights.exit_code)
