"""``crashmq inspect``: lists what a store contains, without changing it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.fsck import time_of
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.commands.store_options import (
    files_at,
    places_given,
    store_options,
)
from crashmq.harness.guards.interrupts import INTERRUPTS
from crashmq.harness.reading.looking import (
    Files,
    QueueOverview,
    by_key,
    by_message_id,
    listings_of,
    message_at,
    queues_of,
)
from crashmq.harness.reading.message_text import fields_of, lines_of
from crashmq.harness.reading.stream import Gap, Tell, record_at, records_in
from crashmq.models.files.record import Record
from crashmq.models.printable import printable

_FROM_0 = click.IntRange(min=0)
_LIMIT = 20
_ASKED = ("offset", "phy_offset", "message_id", "key", "since", "until")


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--topic", default="", help="Only this topic.")
@click.option("--queue", "queue_id", type=_FROM_0, help="Only this queue of the topic.")
@click.option("--offset", type=_FROM_0, help="The message of this queue_offset.")
@click.option("--phy-offset", type=_FROM_0, help="The message at this byte of the log.")
@click.option("--id", "message_id", help="An offset message id, or a unique key.")
@click.option("--key", help="Messages with this key; with --topic by the index.")
@click.option("--no-index", is_flag=True, help="Find a key by reading the log.")
@click.option("--from", "since", metavar="TIME", help="Stored then or later.")
@click.option("--to", "until", metavar="TIME", help="Stored before then.")
@click.option(
    "--limit", type=click.IntRange(min=1), help=f"At most N; by default {_LIMIT}."
)
@click.option("--jsonl", is_flag=True, help="A JSON object a line; all of them.")
@store_options
def command(directory: Path, jsonl: bool, limit: int | None, **asked: Any) -> None:
    """Show topics and queues of the store in DIR, or its messages.

    Without a question: each queue with its offsets, messages, bytes and times. TIME is
    2026-01-31, 2026-01-31T12:00:00 (UTC) or milliseconds since 1970.

    Exit codes: 0 found, 1 nothing found, 2 no store or a wrong question.
    """
    where = {name: asked.pop(name) for name in ("conf", "logs", "follow_links")}
    places = places_given(directory, **where)
    files = files_at(places).files
    with Progress("reading log files") as progress:
        if not jsonl and all(asked[name] is None for name in _ASKED):
            topic = str(asked["topic"])
            lines = [*_overview(files, topic, places.words, progress.tell)]
            for line in lines:
                say(printable(line))
            return
        most = limit if limit is not None or jsonl else _LIMIT
        count = _show(islice(_found(files, asked, progress.tell), most), jsonl=jsonl)
    if not jsonl:
        ended = " (--limit shows more, --jsonl all)" if count == most else ""
        say(f"{count:,} {'message' if count == 1 else 'messages'}{ended}")
    raise SystemExit(exits.CLEAN if count else exits.FINDINGS)


def _show(found: Iterable[Record], *, jsonl: bool) -> int:
    count = 0
    for record in found:
        count += 1
        INTERRUPTS.heed()
        if jsonl:
            say(json.dumps(fields_of(record)))
            continue
        for line in lines_of(record):
            say(printable(line))
    return count


def _found(files: Files, asked: dict[str, Any], tell: Tell) -> Iterator[Record]:
    """The messages that were asked for, in log order."""
    topic, queue_id = str(asked["topic"]), asked["queue_id"]
    if asked["offset"] is not None:
        if not topic or queue_id is None:
            raise exits.BadInput("--offset is of a queue: add --topic and --queue.")
        yield from _one(message_at(files, topic, queue_id, asked["offset"]))
    elif asked["phy_offset"] is not None:
        yield from _one(record_at(files, asked["phy_offset"]))
    elif asked["message_id"] is not None:
        found = by_message_id(files, asked["message_id"])
        if found is not None:
            yield found
        else:
            yield from _by_key(files, asked["message_id"], asked, tell)
    elif asked["key"] is not None:
        yield from _by_key(files, asked["key"], asked, tell)
    else:
        since, until = _time(asked["since"], 0), _time(asked["until"], 1 << 62)
        for part in records_in(files, tell):
            if isinstance(part, Gap) or not since <= part.store_timestamp < until:
                continue
            for listed in listings_of(part) if topic else (part,):
                if topic in ("", listed.topic) and queue_id in (None, listed.queue_id):
                    yield listed


def _one(record: Record | None) -> Iterator[Record]:
    if record is not None:
        yield record


def _by_key(
    files: Files, key: str, asked: dict[str, Any], tell: Tell
) -> Iterator[Record]:
    """Messages by key: from the index if it has the key, else from the log."""
    topic = str(asked["topic"])
    if topic and not asked["no_index"]:
        found = [*by_key(files, key, topic, by_index=True)]
        if found:
            yield from found
            return
    yield from by_key(files, key, topic, by_index=False, tell=tell)


def _time(text: str | None, default: int) -> int:
    if text is None:
        return default
    if text.isascii() and text.isdecimal() and len(text) > 8:
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise exits.BadInput(
            f"{text!r} is no time: give 2026-01-31T12:00:00 or milliseconds."
        ) from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _overview(files: Files, topic: str, again: str, tell: Tell) -> Iterator[str]:
    queues, gaps = queues_of(files, tell)
    shown = [queue for queue in queues if topic in ("", queue.topic)]
    names = [printable(f"{queue.topic}/{queue.queue_id}") for queue in shown]
    width = max([11, *map(len, names)])
    head = "topic/queue"
    yield f"{head:{width}}  messages           bytes  offsets  units  times"
    for name, queue in zip(names, shown, strict=True):
        yield f"{name:{width}}  {queue.messages:8,} {queue.size:15,}  {_ranges(queue)}"
    messages, size = sum(q.messages for q in shown), sum(q.size for q in shown)
    yield f"{len(shown):,} queues, {messages:,} messages, {size:,} bytes of the log"
    if gaps:
        yield f"{gaps:,} places of the log hold no whole message: see `crashmq fsck`"
    if shown:
        last = next((queue for queue in shown if queue.messages), shown[0])
        yield (
            f"next: crashmq inspect {again} "
            f"--topic {shlex.quote(last.topic)} --queue {last.queue_id} "
            f"--offset {max(last.max_offset, 0)}"
        )


def _ranges(queue: QueueOverview) -> str:
    offsets = (
        f"{queue.min_offset:,}..{queue.max_offset:,}" if queue.messages else "none"
    )
    units = f"[{queue.listed_min:,}, {queue.listed_max:,})"
    if queue.listed_min < 0:
        units = "no file"
    times = f"{time_of(queue.first_time)} .. {time_of(queue.last_time)}"
    return f"{offsets}  {units}  {times if queue.messages else ''}".rstrip()
