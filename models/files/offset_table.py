"""What the files of consumer offsets and delay offsets have in common.

Both are RocketMQ's JSON: an ``offsetTable``, and a ``dataVersion`` since 5.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from crashmq.models.files.broker_json import read_table
from crashmq.models.files.record import Bytes
from crashmq.models.files.table_shapes import is_version

Rows = TypeVar("Rows")


def read_offset_table(data: bytes) -> dict[str, Any] | None:
    """The ``offsetTable`` of a file; None if the bytes are not a whole file."""
    try:
        found = read_table(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not is_version(found.get("dataVersion", {})):
        return None
    table = found.get("offsetTable", {})
    return table if isinstance(table, dict) else None


def rows_to_load(
    files: Mapping[str, Bytes], path: str, read: Callable[[bytes], Rows | None]
) -> Rows | tuple[()] | None:
    """The rows that a start must load: the file's, else its backup's.

    Empty if neither file exists; None if there are such files and none is whole.
    """
    found = [files[one] for one in (path, f"{path}.bak") if one in files]
    for data in found:
        rows = read(bytes(data))
        if rows is not None:
            return rows
    return None if found else ()
