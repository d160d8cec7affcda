"""The config files of a broker, decoded independently of the engine.

Each has one table of rows by name, and a backup beside it. RocketMQ's text is not
strict JSON where a table has integer keys; ``broker_json`` reads it. A text is *whole*
if it is an object whose table is an object, or is missing, and if the rows have values
of the kinds that ``table_shapes`` names.

Source: ConsumerOffsetManager, ScheduleMessageService, TopicConfigManager,
SubscriptionGroupManager, ConsumerFilterManager, their encode, RocketMQ 5.3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from crashmq.models.files.broker_json import read_table
from crashmq.models.files.delays import DELAYS_PATH, read_delays
from crashmq.models.files.filters import (
    FILTERS_PATH,
    FilterEntry,
    filter_entries,
    read_filters,
)
from crashmq.models.files.offsets import OFFSETS_PATH, read_offsets
from crashmq.models.files.record import Bytes
from crashmq.models.files.table_shapes import has_ends, is_group, is_topic, is_version
from crashmq.models.quickly_made import quickly_made

ENDS_PATH: Final = "config/recoveredEnds.json"
"""Ours: where queues ended as lives of the log began."""
TOPICS_PATH: Final = "config/topics.json"
GROUPS_PATH: Final = "config/subscriptionGroup.json"
BACKUP: Final = ".bak"
_FORBIDDEN: Final = "forbiddenTable"
TABLES: Final[Mapping[str, str]] = {
    TOPICS_PATH: "topicConfigTable",
    OFFSETS_PATH: "offsetTable",
    GROUPS_PATH: "subscriptionGroupTable",
    FILTERS_PATH: "filterDataByTopic",
    DELAYS_PATH: "offsetTable",
    ENDS_PATH: "ends",
}
"""The name of the table in each file, in the order in which a broker reads them."""

_READ: Final[Mapping[str, Callable[[bytes], object]]] = {
    OFFSETS_PATH: read_offsets,
    FILTERS_PATH: read_filters,
    DELAYS_PATH: read_delays,
}
_IS_ROW: Final = {TOPICS_PATH: is_topic, GROUPS_PATH: is_group}

CONFIG_PATHS: Final = tuple(path + ending for path in TABLES for ending in ("", BACKUP))
State: TypeAlias = Literal["missing", "empty", "torn", "whole"]


@quickly_made
@dataclass(frozen=True, slots=True)
class ConfigText:
    """One file or backup; ``rows`` is its table, empty unless the text is whole."""

    path: str
    state: State
    rows: Mapping[str, Any]


@quickly_made
@dataclass(frozen=True, slots=True)
class ConfigPair:
    """A config file and its backup."""

    file: ConfigText
    backup: ConfigText

    @property
    def is_there(self) -> bool:
        """Whether the file or its backup exists."""
        return (self.file.state, self.backup.state) != ("missing", "missing")

    @property
    def loaded(self) -> ConfigText | None:
        """What our broker loads: the file if whole, else the backup, else None."""
        for text in (self.file, self.backup):
            if text.state == "whole":
                return text
        return None

    @property
    def rows(self) -> Mapping[str, Any]:
        """The table that our broker loads; empty if neither text is whole."""
        text = self.loaded
        return {} if text is None else text.rows


def config_pairs(files: Mapping[str, Bytes]) -> dict[str, ConfigPair]:
    """The config files of which the file or the backup exists, by path."""
    pairs = {
        path: ConfigPair(_text(files, path), _text(files, path + BACKUP))
        for path in TABLES
    }
    return {path: pair for path, pair in pairs.items() if pair.is_there}


def config_pair(files: Mapping[str, Bytes], path: str) -> ConfigPair:
    """One config file and its backup, whether or not they exist."""
    return ConfigPair(_text(files, path), _text(files, path + BACKUP))


def _text(files: Mapping[str, Bytes], path: str) -> ConfigText:
    if path not in files:
        return ConfigText(path, "missing", {})
    data = bytes(files[path])
    rows = rows_of(path.removesuffix(BACKUP), data)
    if rows is not None:
        return ConfigText(path, "whole", rows)
    return ConfigText(path, "torn" if data else "empty", {})


@lru_cache(maxsize=512)
def rows_of(path: str, data: bytes) -> Mapping[str, Any] | None:
    """The table of a whole text; None if it is not whole."""
    read = _READ.get(path)
    if read is not None and read(data) is None:
        return None
    try:
        found = read_table(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    table = found.get(TABLES[path], {})
    is_one = _IS_ROW.get(path)
    if not isinstance(table, dict) or (path == ENDS_PATH and not has_ends(found)):
        return None
    if is_one is None:
        return table
    is_whole = is_version(found.get("dataVersion", {}))
    is_whole &= isinstance(found.get(_FORBIDDEN, {}), dict) or path != GROUPS_PATH
    return table if is_whole and all(map(is_one, table.values())) else None


def version_of(files: Mapping[str, Bytes], path: str) -> int:
    """The counter of a config file's data version; -1 if it has none.

    Source: DataVersion, its counter.
    """
    try:
        found = read_table(bytes(files.get(path, b"")))
    except (ValueError, RecursionError):
        return -1
    version = found.get("dataVersion", {}) if isinstance(found, dict) else {}
    return int(version.get("counter", -1)) if isinstance(version, dict) else -1


def committed(files: Mapping[str, Bytes]) -> Iterator[tuple[str, str, int, int]]:
    """(group, topic, queue_id, offset) of each consumer offset our broker loads."""
    for key, offsets in config_pair(files, OFFSETS_PATH).rows.items():
        topic, _, group = key.partition("@")
        for queue_id, offset in offsets.items():
            yield group, topic, int(queue_id), offset


def filters_in(files: Mapping[str, Bytes]) -> Iterator[tuple[str, FilterEntry]]:
    """The filters in each whole text, with the path of the file or backup."""
    for path in (FILTERS_PATH, FILTERS_PATH + BACKUP):
        for entry in filter_entries(bytes(files.get(path, b""))) or ():
            yield path, entry


def fields_told(row: object) -> tuple[str, ...]:
    """The fields of a row and their values as texts, sorted; none if it is no row."""
    fields = row.items() if isinstance(row, dict) else ()
    told = [f"{name}: {json.dumps(value, sort_keys=True)}" for name, value in fields]
    return tuple(sorted(told))
