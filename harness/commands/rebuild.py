"""``crashmq rebuild``: queues, index and checkpoint made again from the log."""

from __future__ import annotations

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
from crashmq.harness.repair.rebuild import Rebuilt, rebuild, rebuild_in_place, undo
from crashmq.models.printable import printable


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="NEW",
    type=click.Path(path_type=Path),
    help="Write the rebuilt store to this new directory.",
)
@click.option("--in-place", is_flag=True, help="Replace them in DIR; keeps a backup.")
@click.option("--undo", "undone", is_flag=True, help="Put that backup back.")
@click.option("--link", is_flag=True, help="Link full log files instead of copying.")
@click.option("--all-topics", is_flag=True, help="List deleted topics again, too.")
@store_options
def command(
    directory: Path,
    out: Path | None,
    in_place: bool,
    undone: bool,
    **given: Any,
) -> None:
    """Rebuild queues, index and checkpoint of the store in DIR from its log.

    Writes a complete store to NEW and changes nothing in DIR; or replaces them in
    place. An interrupt at any point does no harm.

    Exit codes: 0 rebuilt, 1 the log is damaged or some messages are in no queue, 2 no
    store, or NEW exists.
    """
    if (out is None) == (not in_place):
        raise exits.BadInput("Give --out NEW, or --in-place to change DIR itself.")
    options = {name: given.pop(name) for name in ("link", "all_topics")}
    try:
        if undone:
            _say_undone(directory, in_place=in_place)
            return
        places = places_given(directory, **given)
        files = files_at(places)
        with writing(), Progress("reading log files") as progress:
            if out is None:
                topics = options["all_topics"]
                made = rebuild_in_place(
                    files, places, all_topics=topics, tell=progress.tell
                )
            else:
                made = rebuild(files, places, out, tell=progress.tell, **options)
    except CannotRepair as error:
        say(f"NOT REBUILT: {printable(str(error))}")
        raise SystemExit(exits.FINDINGS) from None
    _say_made(made, places.words if out is None else shlex.quote(str(out)))
    if out is None:
        say(f"undo: crashmq rebuild {places.words} --in-place --undo")
    if made.unlisted:
        raise SystemExit(exits.FINDINGS)


def _say_undone(directory: Path, *, in_place: bool) -> None:
    if not in_place:
        raise exits.BadInput("--undo takes back what --in-place did: give both.")
    with writing():
        names = undo(directory)
    say(f"put back: {', '.join(names) or 'nothing was changed'}")


def _say_made(made: Rebuilt, words: str) -> None:
    say(
        f"REBUILT: {made.messages:,} messages, {made.units:,} units in "
        f"{made.queues:,} queues, {made.index_files:,} index files, log to "
        f"{made.end:,}"
    )
    for topic in sorted(made.deleted):
        say(
            printable(
                f"  {topic}: taken for deleted, and not listed; --all-topics lists it"
            )
        )
    for queue in sorted(made.anew):
        say(
            printable(f"  {queue}: counts from 0 again; only what came since is listed")
        )
    for warning in made.warnings:
        say(f"  {warning}")
    if made.unlisted:
        say(f"  {made.unlisted:,} records whose number does not follow have no unit")
    say(f"next: crashmq fsck {words}")
