"""``crashmq bisect``: a case at several revisions, as a table."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.arguments import (
    PlaceType,
    case_at,
    case_subject_option,
    subject_of,
)
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.commands.reporting import reporting_what_is_missing
from crashmq.harness.searches.revisions import (
    DIRTY,
    NOT_RUN,
    NoRevision,
    Revision,
    Tried,
    halved,
    revisions_named,
    tried_at,
)
from crashmq.reports.places import Place


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("revision", nargs=-1)
@click.option(
    "--nights",
    type=PlaceType(),
    metavar="DIR",
    help="Try the revisions that ran the nights in DIR.",
)
@click.option(
    "--repository",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    metavar="DIR",
    help="A checkout of crashmq, or of the store of --subject; by default where you "
    "are.",
)
@case_subject_option
def command(
    file: Path,
    revision: tuple[str, ...],
    nights: Place | None,
    repository: Path,
    subject: str | None,
) -> None:
    """Run the case in FILE at each REVISION, and print what it came to.

    A range A..B is halved until the outcome changes between two neighbours. The
    repository is only read. The exit code is 0 if the table was made.
    """
    case = case_at(file)
    if subject is None:
        subject_of(case, file, None)  # refuses a store that is to be named
    # It is imported where it runs, from its files at that revision.
    more = ("--subject", subject) if subject else ()
    names = [*revision, *(_of_nights(nights) if nights else ())]
    if not names:
        raise click.UsageError("name revisions, a range A..B, or --nights DIR.")
    try:
        revisions = revisions_named(repository, names)
        tried = _tried(file, repository, revisions, names, more)
    except NoRevision as error:
        raise exits.BadInput(str(error)) from None
    for one in tried:
        say(f"{one.revision.name}  {one.revision.date}  {one.outcome:8}  {one.said}")
    say(_change(revisions, tried))


def _tried(
    file: Path,
    repository: Path,
    revisions: list[Revision],
    names: list[str],
    more: tuple[str, ...],
) -> list[Tried]:
    """The revisions that were tried, in their order."""
    with Progress("bisect") as progress:
        done = count()

        def run(one: Revision) -> Tried:
            progress.update(next(done), None, one.name)
            return tried_at(repository, one, file, more)

        is_range = len(names) == 1 and ".." in names[0]
        found = list(halved(revisions, run) if is_range else map(run, revisions))
    return sorted(found, key=lambda one: revisions.index(one.revision))


def _change(revisions: list[Revision], tried: list[Tried]) -> str:
    """Where the outcome changed last, in a sentence."""
    ran = [one for one in tried if one.outcome != NOT_RUN]
    for before, after in zip(ran[-2::-1], ran[::-1], strict=False):
        if before.outcome == after.outcome:
            continue
        at = revisions.index(before.revision), revisions.index(after.revision)
        between = at[1] - at[0] - 1
        more = f", or one of {between} before it" if between else ""
        name, title = after.revision.name, after.revision.title
        return f"{after.outcome} since {name}{more}: {title}"
    return f"{ran[-1].outcome} at all of them" if ran else "it ran at none of them"


def _of_nights(nights: Place) -> list[str]:
    """The revisions that ran the nights of a directory, the oldest first."""
    with reporting_what_is_missing(spark=False):
        from crashmq.reports.nights_render import revisions_of_nights

        found = [name.removesuffix(DIRTY) for name in revisions_of_nights(nights)]
    if not found:
        raise exits.BadInput(
            f"no night in {nights} says the revision that ran it; name some."
        )
    return list(dict.fromkeys(found))
