"""The delay offsets of a broker, decoded independently of the engine.

The file has RocketMQ's JSON with integer keys, as that of the consumer offsets has.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from crashmq.models.files.offset_table import read_offset_table, rows_to_load
from crashmq.models.files.record import Bytes
from crashmq.models.files.table_shapes import number_of

DELAYS_PATH = "config/delayOffset.json"
DELAYS_BACKUP = f"{DELAYS_PATH}.bak"
DelayRows: TypeAlias = tuple[tuple[int, int], ...]
"""Of each level the offset of the next message to deliver, sorted."""


@lru_cache(maxsize=4096)
def read_delays(data: bytes) -> DelayRows | None:
    """The rows of a delay table; None if the bytes are not a whole table."""
    table = read_offset_table(data)
    if table is None:
        return None
    rows: dict[int, int] = {}
    for level, offset in table.items():
        number = number_of(level)
        if type(offset) is not int or offset < 0 or number < 1:
            return None
        rows[number] = offset
    return tuple(sorted(rows.items()))


def whole_delays(files: Mapping[str, Bytes]) -> DelayRows | None:
    """The rows that a start must load; see ``rows_to_load``."""
    return rows_to_load(files, DELAYS_PATH, read_delays)
