"""``crashmq fsck``: the files of a store directory, judged; nothing is changed."""

from __future__ import annotations

import gc
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.fsck.fsck import FsckReport, NotAStore, fsck
from crashmq.models.printable import printable

_SHOWN_MAX = 50
_MODES = {
    "clean": "no abort file: every law must hold",
    "crashed": "abort file found: judged as after a crash, before recovery",
}


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="The whole report as JSON.")
def command(directory: Path, as_json: bool) -> None:
    """Judge the files of the store in DIR without changing them.

    Takes a store of RocketMQ 5 or of crashmq, in use by nobody.
    """
    gc.disable()  # millions of records that live to the end, and no cycles
    try:
        with Progress("reading log files") as progress:
            report = fsck(directory, progress.tell)
    except NotAStore as error:
        raise exits.BadInput(printable(str(error))) from None
    if as_json:
        say(json.dumps(report.to_json(), indent=2))
    else:
        for line in told(report):
            say(printable(line))
    raise SystemExit(exits.CLEAN if report.is_clean else exits.FINDINGS)


def told(report: FsckReport) -> Iterator[str]:
    """The report as lines: a summary, the violations, what the next start would do."""
    yield f"{report.root}: {_MODES[report.mode]}"
    yield from _ranges(report)
    for finding in report.violations[:_SHOWN_MAX]:
        yield f"  ✗ {finding}"
    if len(report.violations) > _SHOWN_MAX:
        left = len(report.violations) - _SHOWN_MAX
        yield f"    and {left:,} more; --json has them all"
    for note in report.notes:
        yield f"  note: {note}"
    for cut in report.next_start:
        yield f"  next start: {cut}"
    if report.is_clean:
        yield "CLEAN: no law is violated"
        return
    laws = ", ".join(dict.fromkeys(found.law for found in report.violations))
    number = len(report.violations)
    yield f"VIOLATED: {number:,} breach{'es' if number > 1 else ''} of {laws}"
    yield (
        f"next: keep a copy before anything starts on it; "
        f"`crashmq fsck {shlex.quote(report.root)} --json` has every field"
    )


def _ranges(report: FsckReport) -> Iterator[str]:
    found = report.summary
    yield (
        f"  commit log     {found.log_files} files of {found.log_file_size:,} B, "
        f"phy_offset {found.min_phy_offset:,} to {found.max_phy_offset:,}, "
        f"{found.records:,} records; ends at {found.log_ends_at}"
    )
    yield (
        f"  consume queue  {found.queue_files} files, {found.units:,} units in "
        f"{len(found.queues)} queues"
    )
    if found.durable_offset is not None:
        yield f"  durable to     {found.durable_offset:,}"
    for config in found.config:
        name = config.path.removeprefix("config/")
        yield (
            f"  config         {name} {config.state}, backup {config.backup}, "
            f"{config.rows:,} rows"
        )
