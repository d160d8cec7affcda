"""``crashmq diff``: compares what two store directories serve."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click

from crashmq.harness.commands import exits
from crashmq.harness.commands.output import Progress, say
from crashmq.harness.commands.store_options import files_at, places_given
from crashmq.harness.reading.differing import differences, offsets_differing
from crashmq.models.printable import printable

_SHOWN_MAX = 40


@click.command()
@click.argument("left", metavar="A", type=click.Path(path_type=Path))
@click.argument("right", metavar="B", type=click.Path(path_type=Path))
@click.option("--jsonl", is_flag=True, help="A JSON object a line; all of them.")
@click.option("--follow-links", is_flag=True, help="Read what links lead to, too.")
def command(left: Path, right: Path, jsonl: bool, follow_links: bool) -> None:
    """Compare what the stores in A and B serve.

    Compares the message that each queue serves at each offset, wherever in the log it
    lies, and the offsets that consumer groups have committed.

    Exit codes: 0 no difference, 1 some, 2 no store.
    """
    where: dict[str, Any] = {"conf": None, "logs": (), "follow_links": follow_links}
    one, other = (files_at(places_given(root, **where)).files for root in (left, right))
    count = messages = 0
    with Progress("comparing queues") as progress:
        for difference in differences(one, other, progress.tell):
            count += 1
            messages += difference.last - difference.first + 1
            if jsonl:
                say(json.dumps(asdict(difference)))
            elif count <= _SHOWN_MAX:
                say(printable(str(difference)))
    rows = [*offsets_differing(one, other)]
    for row in islice(rows, None if jsonl else _SHOWN_MAX):
        say(json.dumps({"how": row}) if jsonl else printable(row))
    if not jsonl:
        hidden = max(0, count - _SHOWN_MAX) + max(0, len(rows) - _SHOWN_MAX)
        if hidden:
            say(f"and {hidden:,} more; --jsonl has them all")
        say(f"{messages:,} messages differ, and {len(rows):,} offsets of groups")
    raise SystemExit(exits.FINDINGS if count or rows else exits.CLEAN)
