"""Laws of the contents of a broker's config files: the fields of each row, the version.

The values that somebody has configured have laws of their own: GRP-1 for groups, OFS-7
for offsets, DLY-7 for delay offsets, FLT-4 and CFG-4 for filters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from crashmq.models.files.config_files import (
    BACKUP,
    ENDS_PATH,
    GROUPS_PATH,
    TABLES,
    TOPICS_PATH,
    config_pair,
    rows_of,
)
from crashmq.models.files.config_tables import TOLD_PATHS, TableTurn, table_text
from crashmq.models.files.config_text import flaws_of_text
from crashmq.models.files.delays import DELAYS_PATH
from crashmq.models.files.filters import FILTERS_PATH
from crashmq.models.files.message_delay_level import DEFAULT_LEVELS
from crashmq.models.files.offsets import OFFSETS_PATH
from crashmq.models.files.record import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    Bytes,
)
from crashmq.models.files.table_shapes import VERSION_FIELDS
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import law
from crashmq.models.limits import BIT_MAP_BITS, FILTER_BITS, QUEUES_OF_A_TOPIC
from crashmq.models.verdict import Violation

_READ_WRITE: Final = 6
_INHERITED: Final = 7
_MODEL_TOPIC: Final = "TBW102"
_OF_A_GROUP: Final = (RETRY_PREFIX, DLQ_PREFIX)
_ALWAYS_THERE: Final = (_MODEL_TOPIC, SCHEDULE_TOPIC)
_CHANGES_OF_A_VERSION: Final[Mapping[str, int]] = {OFFSETS_PATH: 500, DELAYS_PATH: 200}
"""BrokerConfig#consumerOffsetUpdateVersionStep, #delayOffsetUpdateVersionStep."""

_TOPIC: Final[Mapping[str, Any]] = {
    "attributes": {},
    "order": False,
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": 0,
}
"""TopicConfig, what nobody asks for otherwise."""

_GROUP: Final[Mapping[str, Any]] = {
    "attributes": {},
    "brokerId": 0,
    "consumeFromMinEnable": True,
    "consumeMessageOrderly": False,
    "groupRetryPolicy": {"type": "CUSTOMIZED"},
    "groupSysFlag": 0,
    "notifyConsumerIdsChangedEnable": True,
    "whichBrokerWhenConsumeSlowly": 1,
}
"""SubscriptionGroupConfig, what nobody asks for otherwise."""

_ASKED_OF_A_TOPIC: Final = ("perm", "readQueueNums", "writeQueueNums")
_ASKED_OF_A_GROUP: Final[Mapping[str, type]] = {
    "consumeBroadcastEnable": bool,
    "consumeEnable": bool,
    "consumeTimeoutMinute": int,
    "retryMaxTimes": int,
    "retryQueueNums": int,
}
_OF_A_FILTER: Final = frozenset(
    {
        *("bloomFilterData", "bornTime", "clientVersion", "consumerGroup", "dead"),
        *("deadTime", "expression", "expressionType", "topic"),
    }
)
_BESIDE_THE_ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    TOPICS_PATH: ("dataVersion",),
    GROUPS_PATH: ("dataVersion", "forbiddenTable"),
    OFFSETS_PATH: ("dataVersion", "groupTopicMap"),
    DELAYS_PATH: ("dataVersion",),
    FILTERS_PATH: (),
}


@law(
    "CFG-5",
    "each config file of a broker has exactly the fields that RocketMQ gives it, and "
    "each value that nobody configured is RocketMQ's default",
    catalogue="I12",
)
def tables_say_what_they_should(
    judged: Judged, changed: Collection[str] = (), retry_queues: int = 1
) -> Iterator[Violation]:
    """Checks whole files that no other program wrote, backups included.

    ``changed`` are the topics whose queues and permission an administrator has set.

    A topic has as many queues as its producers ask for, a group's dead-letter topic has
    one, its retry topic one or, where a group is configured so, ``retry_queues``; and
    the topic of delayed messages has eighteen, however many delay levels there are.

    Source: TopicConfig, SubscriptionGroupConfig, DataVersion, ConsumerFilterData;
    ConsumerOffsetSerializeWrapper, DelayOffsetSerializeWrapper.
    """
    files = judged.image.files
    for path in TOLD_PATHS:
        for name in (path, path + BACKUP):
            data = bytes(files[name]) if name in files else b""
            text = table_text(data)
            if text is not None and rows_of(path, data) is not None:
                wrong = _wrong_parts(path, text, judged, changed, retry_queues)
                for what, seen, expected in wrong:
                    where = f"{what} of {name}" if what else name
                    yield Violation(where, seen, expected)


@law(
    "CFG-6",
    "the data version of a broker's table rises by one with each change of the table, "
    "and only then, and holds the time of the last change",
    catalogue="I12",
)
def versions_count_changes(turn: TableTurn) -> Iterator[Violation]:
    """Compares a table before and after a step.

    Consumer and delay offsets raise the version only once in hundreds of changes. A
    table of before RocketMQ 5.0 has none, so its first one is of this life.

    Source: DataVersion#nextVersion, its callers in TopicConfigManager,
    SubscriptionGroupManager, ConsumerOffsetManager and ScheduleMessageService.
    """
    before, now = turn.before, turn.now
    changed = now.differing(before)
    if not before.is_there:
        changed -= {*_ALWAYS_THERE}
    step = _CHANGES_OF_A_VERSION.get(turn.path, 0)
    rises = now.counter - before.counter
    least = 0 if step else max(len(changed), turn.certain_rises)
    most = len(changed) + turn.possible_rises
    if step:
        most = turn.events // step
    if not least <= rises <= most:
        seen = f"version {now.counter}, and {before.counter} before"
        expected = f"{before.counter + least}: {len(changed)} rows have changed"
        yield Violation(turn.path, seen, expected)
    if turn.first_ms is None:
        return
    stays = before.has_version and not rises
    first = before.timestamp if stays else turn.first_ms
    last = before.timestamp if stays else turn.last_ms
    if not first <= now.timestamp <= last:
        expected = f"{first}" if first == last else f"in [{first}, {last}]"
        yield Violation(turn.path, f"a version of {now.timestamp} ms", expected)


@law(
    "CFG-7",
    "the backup of a broker's config file is the text that the file had before it was "
    "written last",
    catalogue="I12 I9",
)
def backup_is_one_write_behind(turn: TableTurn) -> Iterator[Violation]:
    """Compares the backup with the file before a step that wrote it once.

    A start that finds the file damaged goes back by one write then, and not by more.

    Source: MixAll#string2File.
    """
    if turn.backup is not None and turn.backup != turn.before.data:
        seen = f"{len(turn.backup)} bytes of another text" if turn.backup else "nothing"
        expected = f"the {len(turn.before.data)} bytes that {turn.path} had before"
        yield Violation(turn.path + BACKUP, seen, expected)


@law(
    "CFG-8",
    "each config file of a broker is written as RocketMQ writes it: fields by name, "
    "rows in the order of a hash table, each value with the same marks and spaces",
    catalogue="I12",
)
def tables_are_written_as_rocketmq_does(judged: Judged) -> Iterator[Violation]:
    """Checks files that no other program wrote, backups included.

    Tools that compare files, or read them line by line, rely on it.

    Source: RemotingSerializable#toJson with fastjson in pretty mode;
    ConcurrentHashMap, HashMap and HashSet, whose order an iteration has.
    """
    files = judged.image.files
    for path in TOLD_PATHS:
        for name in (path, path + BACKUP):
            data = bytes(files[name]) if name in files else b""
            for where, seen, expected in flaws_of_text(path, data):
                told = f"{where} of {name}" if where else name
                yield Violation(told, seen, expected)


@law(
    "CFG-9",
    "a start leaves each config file with a whole text that it found: the file's own "
    "or, if that is damaged, its backup's",
    catalogue="I12 I9",
)
def start_leaves_the_text_it_took(
    found: Mapping[str, Bytes], left: Mapping[str, Bytes], paths: Collection[str]
) -> Iterator[Violation]:
    """Compares the files that a broker reads before and after a start that came up.

    A start may begin a new life of the log, and then the backup has what it took.

    Source: ConfigManager#load, #loadBak. Differs: RocketMQ leaves a damaged file as it
    is until the first change.
    """
    for path in paths:
        pair = config_pair(found, path)
        if pair.loaded is None:
            continue
        taken = bytes(found[pair.loaded.path])
        now = bytes(left.get(path, b""))
        is_written = path == ENDS_PATH and now != bytes(found.get(path, b""))
        is_behind = is_written and bytes(left.get(path + BACKUP, b"")) == taken
        if now != taken and not is_behind:
            seen = f"{len(now)} bytes of another text"
            told = f"the {len(taken)} bytes that {pair.loaded.path} had"
            yield Violation(path, seen, told)


def _wrong_parts(
    path: str,
    text: Mapping[str, Any],
    judged: Judged,
    changed: Collection[str],
    retry_queues: int,
) -> Iterator[tuple[str, str, str]]:
    """What is wrong: the place, what is there, and what should be."""
    yield from _wrong_fields("", text, {TABLES[path], *_BESIDE_THE_ROWS[path]})
    if "dataVersion" in text:
        yield from _wrong_version(text["dataVersion"])
    rows = text.get(TABLES[path], {})
    match path:
        case _ if path == TOPICS_PATH:
            for name, row in rows.items():
                expected = dict(_topic(name))
                if name.startswith(RETRY_PREFIX):
                    expected |= _retries_of(row, retry_queues)
                if name in changed and isinstance(row, dict):
                    expected |= {field: row.get(field) for field in _ASKED_OF_A_TOPIC}
                yield from _wrong_values(f"topic {name}", row, expected)
            for name in _ALWAYS_THERE:
                if name not in rows:
                    yield "", f"no topic {name}", "it is always there"
        case _ if path == GROUPS_PATH:
            for name, row in rows.items():
                yield from _wrong_group(name, row, retry_queues)
            if text.get("forbiddenTable") != {}:
                yield "forbiddenTable", f"{text.get('forbiddenTable')}", "empty"
        case _ if path == OFFSETS_PATH:
            yield from _wrong_map(text.get("groupTopicMap"), rows)
        case _ if path == DELAYS_PATH:
            for level in rows:
                if not 1 <= int(level) <= judged.level_max:
                    yield "", f"level {level}", f"1 to {judged.level_max}"
        case _:
            for topic, of_topic in rows.items():
                yield from _wrong_filters(topic, of_topic)


def _wrong_fields(
    where: str, found: Any, expected: set[str] | frozenset[str]
) -> Iterator[tuple[str, str, str]]:
    fields = {*found} if isinstance(found, dict) else set()
    if fields != expected:
        lacks, more = sorted(expected - fields), sorted(fields - expected)
        seen = f"lacks {', '.join(lacks)}" if lacks else f"has {', '.join(more)}"
        yield where, seen, f"the fields {', '.join(sorted(expected))}"


def _wrong_version(found: Any) -> Iterator[tuple[str, str, str]]:
    yield from _wrong_fields("dataVersion", found, {*VERSION_FIELDS})
    state = found.get("stateVersion") if isinstance(found, dict) else None
    if state != 0 or found.get("counter", -1) < 0:
        told = f"stateVersion {state}, counter {found.get('counter')}"
        yield "dataVersion", told, "0 without a controller, and 0 or more"


def _wrong_values(
    where: str, row: Any, expected: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    yield from _wrong_fields(where, row, {*expected})
    for name, value in expected.items():
        seen = row.get(name) if isinstance(row, dict) else None
        if (type(seen), seen) != (type(value), value):
            yield f"{name} of {where}", f"{seen}", f"{value}"


def _topic(name: str) -> Mapping[str, Any]:
    """The configuration of a topic that nobody configured, by its name."""
    queues = QUEUES_OF_A_TOPIC
    if name == SCHEDULE_TOPIC:
        queues = DEFAULT_LEVELS.level_max  # however many levels the broker has
    elif name.startswith(_OF_A_GROUP):
        queues = 1
    return {
        **_TOPIC,
        "perm": _INHERITED if name == _MODEL_TOPIC else _READ_WRITE,
        "readQueueNums": queues,
        "writeQueueNums": queues,
        "topicName": name,
    }


def _retries_of(row: Any, retry_queues: int) -> Mapping[str, int]:
    """The queues of a retry topic; its group may be configured to have more."""
    found = row.get("readQueueNums") if isinstance(row, dict) else None
    queues = retry_queues if found == retry_queues else 1
    return {"readQueueNums": queues, "writeQueueNums": queues}


def _wrong_group(
    name: str, row: Any, retry_queues: int
) -> Iterator[tuple[str, str, str]]:
    asked = {field: row.get(field) for field in _ASKED_OF_A_GROUP}
    expected = {**_GROUP, **asked, "groupName": name}
    yield from _wrong_values(f"group {name}", row, expected)
    for field, value in asked.items():
        if type(value) is not _ASKED_OF_A_GROUP[field]:
            wanted = "a number" if _ASKED_OF_A_GROUP[field] is int else "true or false"
            yield f"{field} of group {name}", f"{value}", wanted
    queues = asked["retryQueueNums"]
    if queues not in (0, 1, retry_queues):
        yield f"retryQueueNums of group {name}", f"{queues}", f"0, 1 or {retry_queues}"


def _wrong_map(found: Any, rows: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Differences between the offsets' topics per group and the repeated topic map."""
    topics: dict[str, set[str]] = {}
    for key in rows:
        topic, *group = key.split("@")
        if len(group) == 1:  # RocketMQ lists no other
            topics.setdefault(group[0], set()).add(topic)
    told = found if isinstance(found, dict) else {}
    for group in sorted({*told, *topics}):
        seen, expected = told.get(group, []), topics.get(group, set())
        listed = [f"{one}" for one in seen] if isinstance(seen, list) else []
        if sorted(listed) != sorted(expected) or not expected:
            yield f"groupTopicMap of {group}", f"{seen}", f"{sorted(expected)}"


def _wrong_filters(topic: str, found: Any) -> Iterator[tuple[str, str, str]]:
    yield from _wrong_fields(topic, found, {"groupFilterData", "topic"})
    filters = found.get("groupFilterData", {}) if isinstance(found, dict) else {}
    if not filters:
        yield topic, "no filter", "one at least, or no such topic"
    for group, fields in filters.items():
        where = f"filter of {group} on {topic}"
        yield from _wrong_fields(where, fields, _OF_A_FILTER)
        bits = {"bitNum", "bitPos"}
        bloom = fields.get("bloomFilterData", {})
        yield from _wrong_fields(where, bloom, bits)
        shape = (len(bloom["bitPos"]), bloom["bitNum"]) if {*bloom} >= bits else ()
        if shape and shape != (FILTER_BITS, BIT_MAP_BITS):
            expected = f"{FILTER_BITS} of {BIT_MAP_BITS}"
            yield where, f"{shape[0]} bits of {shape[1]}", expected
        born, died = fields.get("bornTime", 0), fields.get("deadTime", 0)
        if fields.get("dead") is not (died >= born):
            seen = f"born {born}, dead {died}: {fields.get('dead')}"
            yield where, seen, "dead from its death on"
        if born <= 0 or (died and died < born):
            yield where, f"born {born}, dead {died}", "born, and dead no earlier"
