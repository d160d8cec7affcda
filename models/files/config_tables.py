"""The tables of a broker's config files with their data versions and all fields.

``config_files`` decides whether a text is whole and returns its rows; this module
decodes the rest of it.

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
    GROUPS_PATH,
    TOPICS_PATH,
    rows_of,
)
from crashmq.models.files.delays import DELAYS_PATH
from crashmq.models.files.filters import FILTERS_PATH
from crashmq.models.files.offsets import OFFSETS_PATH
from crashmq.models.files.record import Bytes

VERSIONED: Final = (TOPICS_PATH, GROUPS_PATH, OFFSETS_PATH, DELAYS_PATH)
"""The files that say how often their table has changed."""

TOLD_PATHS: Final = (*VERSIONED, FILTERS_PATH)
"""The files whose format RocketMQ gave."""


class TableSeen(NamedTuple):
    """One table as read from its file.

    Attributes:
        data: the bytes of the file.
        counter: of the data version: how many changes the table had.
        timestamp: of the data version: the time of the last change in milliseconds.
        rows: (name, row as JSON).
        has_version: whether it has a data version.
    """

    data: bytes = b""
    counter: int = 0
    timestamp: int = 0
    rows: frozenset[tuple[str, str]] = frozenset()
    has_version: bool = False

    @property
    def is_there(self) -> bool:
        """Whether the file existed."""
        return bool(self.data)

    def differing(self, other: TableSeen) -> frozenset[str]:
        """The names of the rows that only one of the tables has, or that differ."""
        return frozenset(name for name, _ in self.rows ^ other.rows)


class TableTurn(NamedTuple):
    """How one table changed during a step, and how often its version may have risen.

    Attributes:
        path: the table's file.
        before: the table before the step.
        now: the table after it.
        certain_rises: how many answered requests raise the version in any case.
        possible_rises: how often requests may have raised the version without changing
            a row.
        events: an upper bound for the changes that the offsets in the table have had.
        first_ms: the earliest time that the data version of a change in this step, or
            of a table new in this life, may have; None if the clock was set back.
        last_ms: the latest.
        backup: the bytes of the backup after the step; None unless it is certain that
            the file was written just once in it.
    """

    path: str
    before: TableSeen
    now: TableSeen
    certain_rises: int
    possible_rises: int
    events: int
    first_ms: int | None
    last_ms: int
    backup: bytes | None = None


@lru_cache(maxsize=512)
def table_text(data: bytes) -> Mapping[str, Any] | None:
    """All fields of a text; None if it is not an object."""
    try:
        found = read_table(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


@lru_cache(maxsize=512)
def table_seen(path: str, data: bytes) -> TableSeen | None:
    """Decode a table and its data version; None if the text is not such a table."""
    found, rows = table_text(data), rows_of(path, data)
    if found is None or rows is None:
        return None
    version = found.get("dataVersion", {})
    counter, timestamp = (version.get(name, 0) for name in ("counter", "timestamp"))
    texts = [(name, json.dumps(row, sort_keys=True)) for name, row in rows.items()]
    return TableSeen(
        data, counter, timestamp, frozenset(texts), has_version="dataVersion" in found
    )


def tables_found(files: Mapping[str, Bytes]) -> dict[str, TableSeen]:
    """The tables with a data version that a start loads: the file's or its backup's."""
    found: dict[str, TableSeen] = {}
    for path in VERSIONED:
        for name in (path, path + BACKUP):
            table = table_seen(path, bytes(files[name])) if name in files else None
            if table is not None:
                found[path] = table
                break
    return found
