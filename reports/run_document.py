"""Generates the documentation of a run's rows from their classes.

``python -m crashmq.reports.run_document`` prints it; ``docs/runs.md`` contains it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from inspect import cleandoc, getsource
from typing import get_args, get_type_hints

from crashmq.reports.arrow import arrow_schema
from crashmq.reports.records import (
    CrashRecord,
    EpisodeRecord,
    EventRecord,
    ExcuseCount,
    OpCount,
    ProbeHit,
    ShardRecord,
    VerdictRecord,
)
from crashmq.reports.sums import SUMS

_HEAD = """# What is in a run

Written by `python -m crashmq.reports.run_document` from `reports/records.py`. Parquet,
zstd; integers have 64 bits, all else is text. `crashmq sql DIR 'select ...'` asks
DuckDB: `episodes` and `manifests` are views, and so is each list of a manifest, with
the `first_episode` of its shard beside it:

```console
$ crashmq soak power_loss --local --episodes 100 --out runs/tonight
Clean: 100 episodes, ... ops and ... crashes; no law was broken.
...
$ crashmq sql runs/tonight 'select outcome, count(*) n from episodes group by all'
┌─────────┬───────┐
│ outcome │   n   │
│ varchar │ int64 │
├─────────┼───────┤
│ passed  │   100 │
└─────────┴───────┘

$ crashmq sql runs/tonight 'from laws select law, sum(checks) group by all order by 2'
...
│ FL-1 ...
...
```
"""
_OF_EPISODES = (OpCount, CrashRecord, VerdictRecord, ProbeHit, EventRecord, ExcuseCount)


def document() -> str:
    """The whole document."""
    parts = [_HEAD]
    parts += _about("episodes/: one row an episode", EpisodeRecord)
    for of_episodes in _OF_EPISODES:
        parts += _about(f"In lists: {of_episodes.__name__}", of_episodes)
    parts += _about("manifests/: one row a shard", ShardRecord)
    for name, nested in SUMS.items():
        if nested not in _OF_EPISODES:
            parts += _about(f"In lists: {nested.__name__}, the view {name}", nested)
    return "\n".join(parts)


def _about(title: str, record: type) -> Iterator[str]:
    yield f"## {title}\n\n{cleandoc(record.__doc__ or '')}\n"
    yield "| column | type | meaning |\n|---|---|---|"
    meanings = _meanings(record)
    for member in arrow_schema(record):
        kind = str(member.type)
        if kind.startswith("list"):
            kind = f"list of {_item(record, member.name)}"
        yield f"| `{member.name}` | {kind} | {meanings.get(member.name, '')} |"
    yield ""


def _meanings(record: type) -> dict[str, str]:
    """What the comments beside the fields say, by the fields' names."""
    found = re.findall(r"^ +(\w+): [^#\n]*  # (.+)$", getsource(record), re.MULTILINE)
    return dict(found)


def _item(record: type, name: str) -> str:
    (item,) = get_args(get_type_hints(record)[name])
    return str(item.__name__)


if __name__ == "__main__":
    sys.stdout.write(document())
