"""The table of consumer filters as its file has it, decoded apart from the engine.

RocketMQ writes it as strict JSON. Whatever is torn, zeroed or empty is no table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from crashmq.models.files.record import Bytes

FILTERS_PATH = "config/consumerFilter.json"
FILTERS_BACKUP = f"{FILTERS_PATH}.bak"
FilterKey: TypeAlias = tuple[str, str]
"""A group and a topic."""
FilterRows: TypeAlias = tuple[tuple[FilterKey, tuple[str, int]], ...]
"""The expression and the version of each group on each topic."""


@lru_cache(maxsize=4096)
def read_filters(data: bytes) -> FilterRows | None:
    """The rows of a table, sorted; None if these bytes are no whole table."""
    try:
        return _rows_of(json.loads(data.decode()))
    except (ValueError, RecursionError):
        return None


def whole_filters(files: Mapping[str, Bytes]) -> FilterRows | None:
    """What a start is to load of these files: the file, else its backup, else nothing.

    None where there are such files, and none of them is whole.
    """
    found = [files[path] for path in (FILTERS_PATH, FILTERS_BACKUP) if path in files]
    for data in found:
        rows = read_filters(bytes(data))
        if rows is not None:
            return rows
    return None if found else ()


def _rows_of(found: Any) -> FilterRows:
    if not isinstance(found, dict) or type(found.get("filterDataByTopic")) is not dict:
        raise ValueError("no table")
    rows: dict[FilterKey, tuple[str, int]] = {}
    for topic, groups in found["filterDataByTopic"].items():
        if not isinstance(groups, dict):
            raise ValueError("no groups")
        for group, fields in groups.get("groupFilterData", {}).items():
            if not isinstance(fields, dict):
                raise ValueError("no filter")
            told = fields.get("expression"), fields.get("clientVersion")
            if type(told[0]) is not str or type(told[1]) is not int:
                raise ValueError("no expression")
            rows[group, topic] = told[0], told[1]
    return tuple(sorted(rows.items()))
