"""The consumer offsets of a broker, decoded independently of the engine.

RocketMQ's file is not strict JSON: integer keys have no quotes. Bytes that are torn,
zeroed or empty are no table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from crashmq.models.files.broker_json import read_table
from crashmq.models.files.record import Bytes

OFFSETS_PATH = "config/consumerOffset.json"
OFFSETS_BACKUP = f"{OFFSETS_PATH}.bak"
OffsetKey: TypeAlias = tuple[str, str, int]
"""A group, a topic and a queue_id."""
OffsetRows: TypeAlias = tuple[tuple[OffsetKey, int], ...]

VERSION_FIELDS = ("counter", "stateVersion", "timestamp")


@lru_cache(maxsize=4096)
def read_offsets(data: bytes) -> OffsetRows | None:
    """The rows of an offset table, sorted; None if the bytes are not a whole table."""
    try:
        found = read_table(data)
        return _rows_of(found)
    except (ValueError, RecursionError):
        return None


def whole_offsets(files: Mapping[str, Bytes]) -> OffsetRows | None:
    """The rows that a start must load: the file's, else its backup's.

    Empty if neither file exists; None if there are such files and none is whole.
    """
    found = [files[path] for path in (OFFSETS_PATH, OFFSETS_BACKUP) if path in files]
    for data in found:
        rows = read_offsets(bytes(data))
        if rows is not None:
            return rows
    return None if found else ()


def _rows_of(found: Any) -> OffsetRows:
    if not isinstance(found, dict):
        raise ValueError("no object")
    version = found.get("dataVersion", {})
    if not isinstance(version, dict) or any(
        type(version.get(name, 0)) is not int for name in VERSION_FIELDS
    ):
        raise ValueError("no version")
    table = found.get("offsetTable", {})
    if not isinstance(table, dict):
        raise ValueError("no table")
    rows: dict[OffsetKey, int] = {}
    for key, offsets in table.items():
        topic, _, group = key.partition("@")
        if not isinstance(offsets, dict):
            raise ValueError("no offsets")
        for queue_id, offset in offsets.items():
            if type(offset) is not int or offset < 0 or not queue_id.isdecimal():
                raise ValueError("no offset")
            rows[group, topic, int(queue_id)] = offset
    return tuple(sorted(rows.items()))
