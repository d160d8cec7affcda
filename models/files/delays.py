"""The delay offsets of a broker, decoded independently of the engine.

The file has RocketMQ's JSON with integer keys, as that of the consumer offsets has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from crashmq.models.files.broker_json import read_table
from crashmq.models.files.offsets import VERSION_FIELDS
from crashmq.models.files.record import Bytes

DELAYS_PATH = "config/delayOffset.json"
DELAYS_BACKUP = f"{DELAYS_PATH}.bak"
DelayRows: TypeAlias = tuple[tuple[int, int], ...]
"""Of each level the offset of the next message to deliver, sorted."""


@lru_cache(maxsize=4096)
def read_delays(data: bytes) -> DelayRows | None:
    """The rows of a delay table; None if the bytes are not a whole table."""
    try:
        return _rows_of(read_table(data))
    except (ValueError, RecursionError):
        return None


def whole_delays(files: Mapping[str, Bytes]) -> DelayRows | None:
    """The rows that a start must load: the file's, else its backup's.

    Empty if neither file exists; None if there are such files and none is whole.
    """
    found = [files[path] for path in (DELAYS_PATH, DELAYS_BACKUP) if path in files]
    for data in found:
        rows = read_delays(bytes(data))
        if rows is not None:
            return rows
    return None if found else ()


def _rows_of(found: Any) -> DelayRows:
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
    rows: dict[int, int] = {}
    for level, offset in table.items():
        is_level = level.isascii() and level.isdecimal() and int(level) > 0
        if type(offset) is not int or offset < 0 or not is_level:
            raise ValueError("no offset")
        rows[int(level)] = offset
    return tuple(sorted(rows.items()))
