"""What the values in a broker's tables must be, so that a start takes the table.

A member that is missing is its default, and so is a row's field that is null. A member
around the rows that is null is none: what it held is lost, and the backup may have it.
Members that nobody knows are passed over.

Source: TopicConfig, SubscriptionGroupConfig and DataVersion, the types of their fields,
RocketMQ 5.3. Differs: fastjson casts a text to a number, and a number to a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final, TypeAlias

VERSION_FIELDS: Final = ("counter", "stateVersion", "timestamp")
INT_END: Final = 1 << 31
_LIVES_END: Final = 1 << 62

Kind: TypeAlias = Callable[[Any], bool]


def number_of(key: str) -> int:
    """A key that is a queue_id or a level; -1 if it is none."""
    return int(key) if key.isascii() and key.isdecimal() else -1


def is_version(found: Any) -> bool:
    """Whether a table's dataVersion is one."""
    if not isinstance(found, dict):
        return False
    return all(type(found.get(name, 0)) is int for name in VERSION_FIELDS)


def is_topic(row: Any) -> bool:
    """Whether the row of a topic is one."""
    return _has_kinds(row, _TOPIC)


def is_group(row: Any) -> bool:
    """Whether the row of a group is one."""
    return _has_kinds(row, _GROUP)


def has_ends(found: Mapping[str, Any]) -> bool:
    """Whether a text is our table of the ends of queues.

    The lives of each queue rise, up to the present one, and so do the ends.
    """
    life, ends = found.get("life"), found.get("ends")
    crashed = found.get("crashed", life)
    if type(life) is not int or type(crashed) is not int or not isinstance(ends, dict):
        return False
    if type(found.get("hasTold")) is not bool or not 1 <= crashed <= life < _LIVES_END:
        return False
    return all(_is_queue(key) and _are_ends(one, life) for key, one in ends.items())


def _is_queue(key: str) -> bool:
    """Whether a key is a topic and a number; a deletion may name one below 0."""
    return number_of(key.rpartition("@")[2].removeprefix("-")) >= 0


def _are_ends(found: Any, life: int) -> bool:
    if not isinstance(found, list) or not found or len(found) % 2:
        return False
    if any(type(one) is not int for one in found):
        return False
    lives, ends = found[::2], found[1::2]
    is_rising = all(one < two for each in (lives, ends) for one, two in pairwise(each))
    return is_rising and lives[0] >= 1 and lives[-1] <= life and ends[0] >= 0


def _has_kinds(row: Any, kinds: Mapping[str, Kind]) -> bool:
    if not isinstance(row, dict):
        return False
    return all(
        row.get(name) is None or is_one(row[name]) for name, is_one in kinds.items()
    )


def _is_text(found: Any) -> bool:
    return isinstance(found, str)


def _is_bool(found: Any) -> bool:
    return isinstance(found, bool)


def _is_long(found: Any) -> bool:
    return type(found) is int


def _is_int(found: Any) -> bool:
    return type(found) is int and -INT_END <= found < INT_END


def _is_count(found: Any) -> bool:
    return _is_int(found) and found >= 0


def _are_texts(found: Any) -> bool:
    return isinstance(found, dict) and all(map(_is_text, found.values()))


_TOPIC: Final[Mapping[str, Kind]] = {
    "attributes": _are_texts,
    "order": _is_bool,
    "perm": _is_int,
    "readQueueNums": _is_count,
    "topicFilterType": _is_text,
    "topicName": _is_text,
    "topicSysFlag": _is_int,
    "writeQueueNums": _is_count,
}
_GROUP: Final[Mapping[str, Kind]] = {
    "attributes": _are_texts,
    "brokerId": _is_long,
    "consumeBroadcastEnable": _is_bool,
    "consumeEnable": _is_bool,
    "consumeFromMinEnable": _is_bool,
    "consumeMessageOrderly": _is_bool,
    "consumeTimeoutMinute": _is_int,
    "groupName": _is_text,
    "groupSysFlag": _is_int,
    "notifyConsumerIdsChangedEnable": _is_bool,
    "retryMaxTimes": _is_int,
    "retryQueueNums": _is_int,
    "whichBrokerWhenConsumeSlowly": _is_long,
}
