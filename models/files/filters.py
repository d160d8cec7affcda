"""The table of consumer filters as its file has it, decoded apart from the engine.

RocketMQ writes it as strict JSON. Whatever is torn, zeroed or empty is no table, nor is
one in which a filter has no expression of kind SQL92, or a word for a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from crashmq.models.files.broker_json import read_table
from crashmq.models.files.record import Bytes

FILTERS_PATH = "config/consumerFilter.json"
FILTERS_BACKUP = f"{FILTERS_PATH}.bak"
FilterKey: TypeAlias = tuple[str, str]
"""A group and a topic."""
FilterRows: TypeAlias = tuple[tuple[FilterKey, tuple[str, int]], ...]
"""The expression and the version of each group on each topic."""


@dataclass(frozen=True, slots=True)
class FilterEntry:
    """One filter, as its file has it.

    Attributes:
        group, topic: those that it is filed under.
        names: the group and the topic that it says of itself; each None where it says
            none, and the topic twice: once more by what holds all filters of the topic.
        expression: of kind SQL92, the only one that is registered.
        version: of the subscription.
        bit_pos, bit_num: its bits in bit maps, and how many bits these have.
    """

    group: str
    topic: str
    names: tuple[object, object, object]
    expression: str
    version: int
    bit_pos: tuple[int, ...]
    bit_num: int


def read_filters(data: bytes) -> FilterRows | None:
    """The rows of a table, sorted; None if these bytes are no whole table."""
    entries = filter_entries(data)
    if entries is None:
        return None
    rows = [((one.group, one.topic), (one.expression, one.version)) for one in entries]
    return tuple(sorted(rows))


@lru_cache(maxsize=4096)
def filter_entries(data: bytes) -> tuple[FilterEntry, ...] | None:
    """The filters of a table, in its order; None if these bytes are no whole table."""
    try:
        return tuple(_entries_of(read_table(data)))
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


def _entries_of(found: Any) -> Iterator[FilterEntry]:
    for topic, of_topic in _object(_object(found).get("filterDataByTopic", {})).items():
        own_topic = _object(of_topic).get("topic")
        for group, fields in _object(of_topic.get("groupFilterData", {})).items():
            bloom = _object(_object(fields).get("bloomFilterData", {}))
            expression, bit_pos = fields.get("expression"), bloom.get("bitPos", [])
            if type(expression) is not str or fields.get("expressionType") != "SQL92":
                raise ValueError("no expression")
            if not isinstance(bit_pos, list):
                raise ValueError("no positions")
            for time in ("bornTime", "deadTime"):
                _number(fields.get(time, 0))
            yield FilterEntry(
                group,
                topic,
                (fields.get("consumerGroup"), fields.get("topic"), own_topic),
                expression,
                _number(fields.get("clientVersion", 0)),
                tuple([_number(one) for one in bit_pos]),
                _number(bloom.get("bitNum", 0)),
            )


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _number(found: Any) -> int:
    if type(found) is not int:
        raise ValueError("no number")
    return found
