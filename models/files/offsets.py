"""The consumer offsets of a broker, decoded independently of the engine.

RocketMQ's file is not strict JSON: integer keys have no quotes. Bytes that are torn,
zeroed or empty are no table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from crashmq.models.files.offset_table import read_offset_table, rows_to_load
from crashmq.models.files.record import Bytes
from crashmq.models.files.table_shapes import number_of

OFFSETS_PATH = "config/consumerOffset.json"
OFFSETS_BACKUP = f"{OFFSETS_PATH}.bak"
OffsetKey: TypeAlias = tuple[str, str, int]
"""A group, a topic and a queue_id."""
OffsetRows: TypeAlias = tuple[tuple[OffsetKey, int], ...]


@lru_cache(maxsize=4096)
def read_offsets(data: bytes) -> OffsetRows | None:
    """The rows of an offset table, sorted; None if the bytes are not a whole table."""
    table = read_offset_table(data)
    if table is None:
        return None
    rows: dict[OffsetKey, int] = {}
    for key, offsets in table.items():
        topic, _, group = key.partition("@")
        if not isinstance(offsets, dict):
            return None
        for queue_id, offset in offsets.items():
            number = number_of(queue_id)
            if type(offset) is not int or offset < 0 or number < 0:
                return None
            rows[group, topic, number] = offset
    return tuple(sorted(rows.items()))


@lru_cache(maxsize=64)
def empty_rows(data: bytes) -> frozenset[tuple[str, str]]:
    """Group and topic of each row without a queue, as only an edited table has."""
    table = read_offset_table(data) or {}
    keys = [key.partition("@") for key, offsets in table.items() if offsets == {}]
    return frozenset([(group, topic) for topic, _, group in keys])


def whole_offsets(files: Mapping[str, Bytes]) -> OffsetRows | None:
    """The rows that a start must load; see ``rows_to_load``."""
    return rows_to_load(files, OFFSETS_PATH, read_offsets)
