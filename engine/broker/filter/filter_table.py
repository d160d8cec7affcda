"""The text of consumerFilter.json: the filter of each group, topic by topic.

Source: ConsumerFilterManager and its FilterDataMapByTopic, as fastjson 1.2.83 writes
them in pretty mode: the fields of a bean by name, ``dead`` among them, which no load
reads; maps in the order of their hashes.
"""

from __future__ import annotations

from collections.abc import Iterable

from crashmq.engine.broker.filter.consumer_filter_data import (
    ConsumerFilterData,
    condition_of,
)
from crashmq.engine.common.fastjson import (
    Json,
    JsonKey,
    in_hash_order,
    pretty,
    read_json,
)
from crashmq.engine.filter.bloom_filter import BloomFilterData
from crashmq.engine.store.message.message import java_string_hash

# What RocketMQ gives its maps room for, in bins.
_TOPICS_BINS, _GROUPS_BINS = 512, 16


def encode_table(filters: Iterable[ConsumerFilterData]) -> str:
    """The text of a table."""
    table: dict[str, dict[str, ConsumerFilterData]] = {}
    for data in filters:
        table.setdefault(data.topic, {})[data.consumer_group] = data
    topics = in_hash_order(table, java_string_hash, _TOPICS_BINS)
    by_topic: dict[JsonKey, Json] = {
        topic: {"groupFilterData": _groups(table[topic]), "topic": topic}
        for topic in topics
    }
    return pretty({"filterDataByTopic": by_topic})


def _groups(filters: dict[str, ConsumerFilterData]) -> Json:
    order = in_hash_order(filters, java_string_hash, _GROUPS_BINS)
    return {group: _fields(filters[group]) for group in order}


def _fields(data: ConsumerFilterData) -> Json:
    positions: list[Json] = [*data.bloom_filter_data.bit_pos]
    return {
        "bloomFilterData": {
            "bitNum": data.bloom_filter_data.bit_num,
            "bitPos": positions,
        },
        "bornTime": data.born_time,
        "clientVersion": data.client_version,
        "consumerGroup": data.consumer_group,
        "dead": data.is_dead,
        "deadTime": data.dead_time,
        "expression": data.expression,
        "expressionType": data.expression_type,
        "topic": data.topic,
    }


def decode_table(text: str) -> list[ConsumerFilterData]:
    """The filters of a table; one with an invalid expression is kept without condition.

    Raises:
        ValueError: the text is not a complete table.
    """
    found = read_json(text)
    if not isinstance(found, dict):
        raise ValueError("a table of filters is an object")
    by_topic = _object(found.get("filterDataByTopic", {}))
    filters: list[ConsumerFilterData] = []
    for topic, groups in by_topic.items():
        of_groups = _object(_object(groups).get("groupFilterData", {}))
        for group, fields in of_groups.items():
            filters.append(_filter(f"{topic}", f"{group}", _object(fields)))
    return filters


def _filter(topic: str, group: str, found: dict[JsonKey, Json]) -> ConsumerFilterData:
    expression = found.get("expression")
    if not isinstance(expression, str) or found.get("expressionType") != "SQL92":
        raise ValueError(f"the filter of {group} on {topic} is {found!r}")
    bloom = _object(found.get("bloomFilterData", {}))
    positions = bloom.get("bitPos", [])
    if not isinstance(positions, list):
        raise ValueError(f"the positions of {group} on {topic} are {positions!r}")
    return ConsumerFilterData(
        group,
        topic,
        expression,
        "SQL92",
        condition_of(expression),
        _number(found.get("bornTime", 0)),
        _number(found.get("deadTime", 0)),
        BloomFilterData(
            tuple([_number(one) for one in positions]), _number(bloom.get("bitNum", 0))
        ),
        _number(found.get("clientVersion", 0)),
    )


def _object(found: Json) -> dict[JsonKey, Json]:
    if not isinstance(found, dict):
        raise ValueError(f"{found!r} is not an object")
    return found


def _number(found: Json) -> int:
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValueError(f"{found!r} is not a number")
    return found
