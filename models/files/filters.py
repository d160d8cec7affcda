"""The consumer filters of a broker, decoded independently of the engine.

RocketMQ writes them as strict JSON. The bytes are no table if they are torn, zeroed or
empty, if a filter has no expression of type SQL92, or if a number is not a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from crashmq.models.files.broker_json import read_table
from crashmq.models.files.record import Bytes
from crashmq.models.limits import BIT_MAP_BITS, FILTER_BITS

FILTERS_PATH = "config/consumerFilter.json"
FILTERS_BACKUP = f"{FILTERS_PATH}.bak"
FilterKey: TypeAlias = tuple[str, str]
"""A group and a topic."""
FilterRows: TypeAlias = tuple[tuple[FilterKey, tuple[str, int]], ...]
"""The expression and the version of each group on each topic."""


@dataclass(frozen=True, slots=True)
class FilterEntry:
    """One filter of a group on a topic.

    Attributes:
        group: the key under which the file has it; so is ``topic``.
        names: what the entry itself has as its group and topic, and the topic that the
            object around all filters of the topic has; None where one is missing.
        expression: of type SQL92, the only one that is registered.
        version: of the subscription.
        bit_pos: its positions in bit maps of ``bit_num`` bits.
    """

    group: str
    topic: str
    names: tuple[object, object, object]
    expression: str
    version: int
    bit_pos: tuple[int, ...]
    bit_num: int


@dataclass(frozen=True, slots=True)
class BitMapFilters:
    """The filters by which a broker may have computed bit maps.

    Attributes:
        expressions: of SQL92, each with its group and topic.
        open_groups: groups that may have had other expressions, on any topic.
    """

    expressions: frozenset[tuple[FilterKey, str]] = frozenset()
    open_groups: frozenset[str] = frozenset()


def read_filters(data: bytes) -> FilterRows | None:
    """The rows of a filter table, sorted; None if the bytes are not a whole table."""
    entries = filter_entries(data)
    if entries is None:
        return None
    rows = [((one.group, one.topic), (one.expression, one.version)) for one in entries]
    return tuple(sorted(rows))


@lru_cache(maxsize=4096)
def filter_entries(data: bytes) -> tuple[FilterEntry, ...] | None:
    """The filters of a table, in its order; None if the bytes are not a whole table."""
    try:
        return tuple(_entries_of(read_table(data)))
    except (ValueError, RecursionError):
        return None


def whole_filters(files: Mapping[str, Bytes]) -> FilterRows | None:
    """The rows that a start must load: the file's, else its backup's.

    Empty if neither file exists, or if the text has a filter whose bits are not those
    of a broker's bit maps; None if there are such files and none is whole.

    Source: ConsumerFilterManager#decode, BloomFilter#isValid.
    """
    found = [files[path] for path in (FILTERS_PATH, FILTERS_BACKUP) if path in files]
    for data in found:
        entries, rows = filter_entries(bytes(data)), read_filters(bytes(data))
        if entries is not None and rows is not None:
            return rows if all(map(_fits, entries)) else ()
    return None if found else ()


def _fits(entry: FilterEntry) -> bool:
    shape = len(entry.bit_pos), entry.bit_num
    is_within = all(0 <= one < entry.bit_num for one in entry.bit_pos)
    return is_within and shape == (FILTER_BITS, BIT_MAP_BITS)


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
