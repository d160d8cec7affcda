"""The table of consumer offsets as its file has it, decoded apart from the engine.

RocketMQ's file is no strict JSON: integer keys are bare. They are put into quotes here,
and a parser of the standard library reads the rest. Whatever is torn, zeroed or empty
is no table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from crashmq.models.files.record import Bytes

OFFSETS_PATH = "config/consumerOffset.json"
OFFSETS_BACKUP = f"{OFFSETS_PATH}.bak"
OffsetKey: TypeAlias = tuple[str, str, int]
"""A group, a topic and a queue_id."""
OffsetRows: TypeAlias = tuple[tuple[OffsetKey, int], ...]

_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")'
    r"|(?P<number>-?(?:0|[1-9][0-9]{0,18})(?![0-9.eE]))"
    r"|(?P<word>true|false|null)"
    r"|(?P<mark>[][{}:,])"
    r"|(?P<space>[ \t\r\n]+)"
)
VERSION_FIELDS = ("counter", "stateVersion", "timestamp")


@lru_cache(maxsize=4096)
def read_offsets(data: bytes) -> OffsetRows | None:
    """The rows of a table, sorted; None if these bytes are no whole table."""
    try:
        found = json.loads(strict_json(data.decode()))
        return _rows_of(found)
    except (ValueError, RecursionError):
        return None


def whole_offsets(files: Mapping[str, Bytes]) -> OffsetRows | None:
    """What a start is to load of these files: the file, else its backup, else nothing.

    None where there are such files, and none of them is whole.
    """
    found = [files[path] for path in (OFFSETS_PATH, OFFSETS_BACKUP) if path in files]
    for data in found:
        rows = read_offsets(bytes(data))
        if rows is not None:
            return rows
    return None if found else ()


def strict_json(text: str) -> str:
    """The text with its integer keys in quotes.

    Raises:
        ValueError: there is something in it that no such text has.
    """
    parts: list[str] = []
    number_at = -1
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"no token at {at}")
        at, kind, part = token.end(), token.lastgroup, token[0]
        if part == ":" and number_at >= 0:
            parts[number_at] = f'"{parts[number_at]}"'
        if kind != "space":
            number_at = len(parts) if kind == "number" else -1
        parts.append(part)
    return "".join(parts)


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
