"""``crashmq salvage``: every whole message of a damaged log, in a new directory."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.arguments import writing
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.commands.store_options import (
    files_at,
    places_given,
    store_options,
)
from crashmq.harness.repair.copying import CannotRepair
from crashmq.harness.repair.salvage import Hole, Salvaged, salvage
from crashmq.models.printable import printable

_HOLES_MAX = 20
_LOST_MAX = 6


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="NEW",
    required=True,
    type=click.Path(path_type=Path),
    help="The new store's directory.",
)
@click.option(
    "--renumber", is_flag=True, help="Close gaps in queues instead of keeping offsets."
)
@click.option("--json", "as_json", is_flag=True, help="Holes and messages as JSON.")
@store_options
def command(
    directory: Path, out: Path, renumber: bool, as_json: bool, **where: Any
) -> None:
    """Copy every whole message of the damaged store in DIR to a new store, NEW.

    Messages keep their place in the log and their queue_offset: where one was lost, a
    placeholder with the property CRASHMQ_LOST takes its number. With --renumber there
    are none: later messages move up, and the offsets of groups with them. RocketMQ
    starts on NEW; DIR is not changed. NEW/salvage.json lists what was lost where.

    Exit codes: 0 nothing was lost, 1 some messages were, 2 no store, or NEW exists.
    """
    places = places_given(directory, **where)
    files = files_at(places)
    try:
        with writing(), Progress("reading log files") as progress:
            done = salvage(files, places, out, renumber=renumber, tell=progress.tell)
    except CannotRepair as error:
        raise exits.BadInput(str(error)) from None
    if as_json:
        say(json.dumps(done.to_json(), indent=1))
    else:
        _say(done, out)
    raise SystemExit(exits.FINDINGS if done.lost else exits.CLEAN)


def _say(done: Salvaged, out: Path) -> None:
    say(
        f"SALVAGED: {done.kept:,} messages kept, {done.lost:,} lost in "
        f"{len(done.holes):,} places of the log"
    )
    for hole in done.holes[:_HOLES_MAX]:
        say(printable(f"  {_told(hole)}"))
    if len(done.holes) > _HOLES_MAX:
        left = len(done.holes) - _HOLES_MAX
        say(f"  and {left:,} places more; salvage.json has them")
    if done.unplaced:
        say(
            f"  {len(done.unplaced):,} numbers had no room in the log: their queues "
            f"serve the next message under them, too"
        )
    if done.mended:
        say(
            f"  {done.mended:,} messages had a queue_offset with a flipped bit; the "
            f"units of their queues tell it"
        )
    if done.renumbered:
        say(f"  {done.renumbered:,} messages have a lower queue_offset than before")
    for warning in done.rebuilt.warnings:
        say(f"  {warning}")
    for topic in sorted(done.rebuilt.deleted):
        say(
            printable(
                f"  {topic}: taken for deleted, and not listed; "
                f"crashmq rebuild --all-topics lists it"
            )
        )
    say(f"next: crashmq fsck {shlex.quote(str(out))}")


def _told(hole: Hole) -> str:
    lost = [f"{topic}/{queue}[{number}]" for topic, queue, number in hole.lost]
    named = ", ".join(lost[:_LOST_MAX]) + (", ..." if len(lost) > _LOST_MAX else "")
    what = f"{len(lost):,} messages lost: {named}" if lost else "no message known lost"
    return f"{hole.path}, log bytes {hole.start:,} to {hole.end:,} ({hole.why}): {what}"
