"""The tables of a broker's config files with all of their fields, as texts have them.

``config_files`` tells whether a text is whole, and its rows; this module what else is
in it.

Source: DataVersion, ConfigManager#encode, RocketMQ 5.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from crashmq.models.files.broker_json import read_table
from crashmq.models.files.config_files import (
    BACKUP,
    DELAYS_PATH,
    GROUPS_PATH,
    TABLES,
    TOPICS_PATH,
)
from crashmq.models.files.filters import FILTERS_PATH
from crashmq.models.files.offsets import OFFSETS_PATH
from crashmq.models.files.record import Bytes

VERSIONED: Final = (TOPICS_PATH, GROUPS_PATH, OFFSETS_PATH, DELAYS_PATH)
"""The files that say how often their table has changed."""

TOLD_PATHS: Final = (*VERSIONED, FILTERS_PATH)
"""The files whose format RocketMQ gave."""


class TableSeen(NamedTuple):
    """One table as its file had it.

    Attributes:
        data: the bytes of the file.
        counter: how often it has changed, as it says.
        timestamp: when it did last.
        rows: by name, each as text.
    """

    data: bytes = b""
    counter: int = 0
    timestamp: int = 0
    rows: frozenset[tuple[str, str]] = frozenset()

    @property
    def is_there(self) -> bool:
        """Whether there was such a file."""
        return bool(self.data)

    def differing(self, other: TableSeen) -> frozenset[str]:
        """The names of the rows that one has, and the other not, or differently."""
        return frozenset(name for name, _ in self.rows ^ other.rows)


class TableTurn(NamedTuple):
    """What came of one table in a step.

    Attributes:
        path: of its file.
        before: as it was.
        now: as it is.
        told: so many requests that always make a version were answered.
        may_tell: so many requests may have made one, though no row shows it.
        events: at least as many as there were ever changes of how far anything is.
        first_ms: a change of this step, or a table that began in this life, is of this
            time or later; None: the clock was set back.
        last_ms: and of this time or earlier.
    """

    path: str
    before: TableSeen
    now: TableSeen
    told: int
    may_tell: int
    events: int
    first_ms: int | None
    last_ms: int


@lru_cache(maxsize=512)
def table_text(data: bytes) -> Mapping[str, Any] | None:
    """All fields of a text; None if it is none of a table."""
    try:
        found = read_table(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


@lru_cache(maxsize=512)
def table_seen(path: str, data: bytes) -> TableSeen | None:
    """What a text says of its table and its version; None if it is none of a table."""
    found = table_text(data)
    if found is None:
        return None
    rows, version = found.get(TABLES[path], {}), found.get("dataVersion", {})
    if not isinstance(rows, dict) or not isinstance(version, dict):
        return None
    numbers = [version.get(name, 0) for name in ("counter", "timestamp")]
    if any(type(one) is not int for one in numbers):
        return None
    texts = [(name, json.dumps(row, sort_keys=True)) for name, row in rows.items()]
    counter, timestamp = numbers
    return TableSeen(data, counter, timestamp, frozenset(texts))


def tables_found(files: Mapping[str, Bytes]) -> dict[str, TableSeen]:
    """The versioned tables that a start takes: of the file, or of its backup."""
    found: dict[str, TableSeen] = {}
    for path in VERSIONED:
        for name in (path, path + BACKUP):
            table = table_seen(path, bytes(files[name])) if name in files else None
            if table is not None:
                found[path] = table
                break
    return found
