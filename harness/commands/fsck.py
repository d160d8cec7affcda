"""``crashmq fsck``: the files of a store directory, judged; nothing is changed."""

from __future__ import annotations

import gc
import json
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.output import Progress, say, terminal_width
from crashmq.harness.commands.sparked import spark_session
from crashmq.harness.commands.store_options import places_given, store_options
from crashmq.harness.fsck.counts import QueueCount
from crashmq.harness.fsck.fsck import FsckReport, fsck
from crashmq.harness.fsck.recognise import NotAStore
from crashmq.harness.fsck.releases import RELEASES, Release
from crashmq.harness.fsck.survey import Manner, Runner, by_processes, here
from crashmq.models.printable import printable

_BREACHES_MAX = 8
_QUEUES_MAX = 12
_LINES_MAX = 6
_NAME_MAX = 24
_MODES = {
    "clean": "no abort file: every law must hold",
    "crashed": "abort file found: judged as after a crash, before recovery",
}


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="The whole report as JSON.")
@click.option("--all", "whole", is_flag=True, help="Every queue, breach and note.")
@store_options
@click.option(
    "--rocketmq",
    "release",
    type=click.Choice(list(RELEASES)),
    help=f"Predict the start of {'; '.join(RELEASES.values())}. By default of 5.4 if "
    "the files show it, else of 5.1.",
)
@click.option(
    "--fast", is_flag=True, help="Skip the index, so that memory use is bounded."
)
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes that read a large log."
)
@click.option("--master", metavar="URL", help="A Spark master whose tasks read it.")
def command(
    directory: Path,
    as_json: bool,
    whole: bool,
    release: Release | None,
    **where: Any,
) -> None:
    """Judge the files of the store in DIR without changing them.

    Takes a store of RocketMQ 4.9 or 5, or of crashmq, that no process is using. Prints
    first what it is, then how many messages each queue has and what the next start
    loses.

    Exit codes: 0 clean, 1 damaged, 2 no store, 6 clean but a start loses messages.
    """
    fast, readers = where.pop("fast"), (where.pop("workers"), where.pop("master"))
    if all(readers):
        raise click.UsageError("--workers is for this machine; leave it or --master.")
    try:
        places = places_given(directory, **where)
        gc.disable()  # many records that live to the end, and no cycles
        with _runner(*readers) as runner, Progress("reading log files") as progress:
            manner = Manner(runner, with_index=not fast)
            report = fsck(
                directory, progress.tell, places=places, release=release, manner=manner
            )
    except NotAStore as error:
        _say_what_it_is(error, directory, as_json=as_json)
        raise SystemExit(exits.BAD_INPUT) from None
    if as_json:
        say(json.dumps(report.to_json(), indent=2))
    else:
        for line in report_lines(report, whole=whole):
            say(printable(line))
    raise SystemExit(exit_code_of(report))


@contextmanager
def _runner(workers: int | None, master: str | None) -> Iterator[Runner]:
    """Who reads the splits of a large log."""
    if master is None:
        yield by_processes(workers) if workers and workers > 1 else here
        return
    from crashmq.harness.commands.reporting import reporting_what_is_missing

    with (
        reporting_what_is_missing(spark=True),
        TemporaryDirectory(prefix="crashmq-fsck-") as scratch,
    ):
        from crashmq.reports.spark import mapped

        with spark_session(master, Path(scratch)) as session:
            yield partial(mapped, session)


def exit_code_of(report: FsckReport) -> int:
    """0 clean, 1 damaged, 6 a start loses messages."""
    if not report.is_clean:
        return exits.FINDINGS
    return exits.LOSES if report.counts.lost else exits.CLEAN


def _say_what_it_is(error: NotAStore, directory: Path, *, as_json: bool) -> None:
    if as_json:
        said = {"format": 2, "verdict": error.word, "root": str(directory)}
        say(json.dumps({**said, "why": str(error)}, indent=2))
        return
    say(error.word)
    for line in _wrapped(str(error), "  "):
        say(printable(line))


def report_lines(report: FsckReport, *, whole: bool = False) -> Iterator[str]:
    """The report as lines; the first one is the answer.

    Args:
        report: of a store.
        whole: every queue, breach and note, and not a screen of them.
    """
    yield report.verdict
    yield from _wrapped(f"{report.root}: {_MODES[report.mode]}", "  ")
    yield from _starts(report)
    yield ""
    yield from _table(report, whole=whole)
    yield ""
    yield from _ranges(report)
    yield from _breaches(report, whole=whole)
    lines = [f"note: {note}" for note in report.notes]
    lines += [f"next start: {cut}" for cut in report.next_start]
    yield from _some(lines, whole=whole)
    if report.advice:
        yield ""
        for number, step in enumerate(report.advice, 1):
            yield from _wrapped(f"{number}. {step}", "  ")


def _starts(report: FsckReport) -> Iterator[str]:
    counts = report.counts
    ends = {
        "RocketMQ": (counts.rocketmq_refuses, counts.lost_by_rocketmq),
        "crashmq": (counts.crashmq_refuses, counts.lost_by_crashmq),
    }
    said = [
        f"of {who} " + ("is refused" if refuses else f"loses {lost:,} messages")
        for who, (refuses, lost) in ends.items()
    ]
    released = f" (by the rules of {RELEASES[counts.release]})"
    if not counts.is_ours:
        said[1] = "of crashmq none: it is refused where it would lose any"
    yield from _wrapped(f"The next start {said[0]}{released}, one {said[1]}.", "  ")
    if report.is_clean and counts.damaged:
        text = f"{counts.damaged:,} messages are unreadable, perhaps by the crash."
        yield from _wrapped(text, "  ")
    if counts.behind_damage:
        text = f"{counts.behind_damage:,} whole messages lie behind damage of the log."
        yield from _wrapped(text, "  ")


def _table(report: FsckReport, *, whole: bool) -> Iterator[str]:
    queues = report.counts.queues
    if not queues:
        yield "  There is no message."
        return
    shown = queues if whole or len(queues) <= _QUEUES_MAX else _worst(queues)
    names = [printable(f"{queue.topic}/{queue.queue_id}") for queue in shown]
    width = min(max(11, *map(len, names)), _NAME_MAX)
    head = "topic/queue"
    yield f"  {head:{width}}   whole damaged lost by a start of  offsets, times"
    yield f"  {'':{width}}                 RocketMQ  crashmq"
    for name, queue in zip(names, shown, strict=True):
        cut = name if len(name) <= width else f"{name[: width - 1]}…"
        row = (
            f"  {cut:{width}} {queue.whole:7,} {queue.damaged:7,} "
            f"{queue.lost_by_rocketmq:8,} {queue.lost_by_crashmq:8,}  "
        )
        span = _span(queue)
        if len(row) + len(span) > terminal_width():
            yield row.rstrip()
            row = f"  {'':{width}} "
        yield row + span
    if len(shown) < len(queues):
        counts = report.counts
        yield (
            f"  {len(queues) - len(shown):,} queues more (--all shows them); in all "
            f"{counts.whole:,} whole, {counts.damaged:,} damaged."
        )


def _worst(queues: tuple[QueueCount, ...]) -> tuple[QueueCount, ...]:
    """The queues to show: those that lost something, then those with most messages."""
    by_harm = sorted(
        queues,
        key=lambda queue: (-queue.damaged, -queue.lost_by_rocketmq, -queue.whole),
    )
    kept = {id(queue) for queue in by_harm[:_QUEUES_MAX]}
    return tuple([queue for queue in queues if id(queue) in kept])


def _span(queue: QueueCount) -> str:
    if not queue.whole:
        return "none"
    first, last = time_of(queue.first_time)[:-3], time_of(queue.last_time)[:-3]
    day = first.partition(" ")[0]
    until = last.removeprefix(f"{day} ")
    return f"{queue.first_offset:,}..{queue.last_offset:,}  {first}..{until}"


def time_of(time_ms: int) -> str:
    """A time in ms since 1970 as UTC, to the second; the number if it is no date."""
    try:
        at = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"
    return at.strftime("%Y-%m-%d %H:%M:%S")


def _ranges(report: FsckReport) -> Iterator[str]:
    found = report.summary
    yield from _wrapped(
        f"commit log     {found.log_files} files of {found.log_file_size:,} B, "
        f"phy_offset {found.min_phy_offset:,} to {found.max_phy_offset:,}, "
        f"{found.records:,} records; ends at {found.log_ends_at}",
        "  ",
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


def _breaches(report: FsckReport, *, whole: bool) -> Iterator[str]:
    """Causes first; then breaches, each where it is."""
    for cause in report.causes:
        yield from _wrapped(f"cause: {cause}", "  ")
    shown = report.violations if whole else report.violations[:_BREACHES_MAX]
    for finding in shown:
        yield from _wrapped(f"✗ {finding}", "  ")
    if left := len(report.violations) - len(shown):
        yield f"    and {left:,} more; --all and --json have them"


def _some(lines: list[str], *, whole: bool) -> Iterator[str]:
    shown = lines if whole else lines[:_LINES_MAX]
    for line in shown:
        yield from _wrapped(line, "  ")
    if left := len(lines) - len(shown):
        yield f"    and {left:,} lines more; --all and --json have them"


def _wrapped(text: str, margin: str) -> list[str]:
    """Lines of the terminal's width; words are never cut, so paths stay whole."""
    return textwrap.wrap(
        printable(text),
        terminal_width(),
        initial_indent=margin,
        subsequent_indent=f"{margin}    ",
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]
