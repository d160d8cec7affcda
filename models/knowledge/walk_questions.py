"""The walk through what an administrator asks a broker, and is answered.

Offsets are judged beside other ops too, unless consumers work meanwhile, whose requests
are told only once they are answered. All else is judged of questions that ran alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.config_files import (
    GROUPS_PATH,
    TOPICS_PATH,
    config_pair,
    fields_told,
)
from crashmq.models.files.offsets import (
    OFFSETS_BACKUP,
    OFFSETS_PATH,
    OffsetKey,
    empty_rows,
)
from crashmq.models.history import OffsetSent, PullReceived, PullSent
from crashmq.models.knowledge.knowledge import CONFIG
from crashmq.models.knowledge.locks import LOCK_MS, NOBODY, UNSURE
from crashmq.models.knowledge.moments import (
    At,
    Moment,
    NamesAnswered,
    NumberAnswered,
    TimeFound,
)
from crashmq.models.knowledge.progress import NO_OFFSET
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.knowledge.topics import LIGHT, OF_ITS_OWN
from crashmq.models.limits import CLIENT_SILENT_MS
from crashmq.models.observations import NamesTold, NumberTold
from crashmq.models.ops import AskBroker

SEPARATOR = "@"
"""What stands between topic and group in the broker's tables of offsets."""
_OF_WORKING_CONSUMERS = frozenset({OffsetSent, PullSent, PullReceived})


def saw_answer(
    at: At, ask: AskBroker, seen: NamesTold | NumberTold, at_ms: int
) -> Iterator[Moment]:
    """Yield the moment of an answer, if it is known what is right."""
    is_alone = at.step.is_alone
    is_settled = is_alone or at.step.kinds.isdisjoint(_OF_WORKING_CONSUMERS)
    match ask.question, seen:
        case (("topics_of_group" | "groups_of_topic"), NamesTold(names)):
            if is_settled and SEPARATOR not in ask.group + ask.topic:
                yield _names_of_offsets(at, ask, names)
        case "subscribers", NamesTold(names):
            if is_alone:
                must, may = _subscribers(at, ask.topic, at_ms)
                yield NamesAnswered(*at, ask, names, must, may)
        case "pull_offset", NumberTold(number):
            if is_alone:  # a pull notes it some time before its answer
                key = ask.group, ask.topic, ask.queue_id
                possible = at.known.progress.where_it_pulls(key)
                yield NumberAnswered(*at, ask, number, possible)
        case "time", NumberTold(number):
            if is_alone:
                place = ask.topic, ask.queue_id
                first = first_since(at, *place, ask.at_ms)
                yield TimeFound(*at, place, number, first)
        case "group", NumberTold(number):
            if is_alone and _are_tables_written(at):
                rows = config_pair(at.look.files(), GROUPS_PATH).file.rows
                possible = frozenset({int(ask.group in rows)})
                yield NumberAnswered(*at, ask, number, possible)
        case (("group_config" | "topic_config"), NamesTold(names)):
            if is_alone and _is_config_known(at, ask):
                fields = frozenset(_config_of(at, ask))
                yield NamesAnswered(*at, ask, names, fields, fields)
        case "lock", NumberTold(number):
            if is_alone:
                possible = _whether_locked(at, ask, at_ms)
                yield NumberAnswered(*at, ask, number, possible)
        case _:
            pass


def _names_of_offsets(at: At, ask: AskBroker, names: tuple[str, ...]) -> NamesAnswered:
    """The moment of an answer that names the topics of a group, or the other way.

    RocketMQ names a row that has no queue as well.
    """
    progress = at.known.progress
    files = at.look.files()
    tables = [files[one] for one in (OFFSETS_PATH, OFFSETS_BACKUP) if one in files]
    empty = {row for table in tables for row in empty_rows(bytes(table))}
    if ask.question == "topics_of_group":
        keys, of_name = progress.keys_of(group=ask.group), _topic_of
        may = {topic for group, topic in empty if group == ask.group}
    else:
        keys, of_name = progress.keys_of(topic=ask.topic), _group_of
        may = {group for group, topic in empty if topic == ask.topic}
    keys = [key for key in keys if SEPARATOR not in key[0] + key[1]]
    must = {of_name(key) for key in keys if NO_OFFSET not in progress.of(key)}
    may |= {of_name(key) for key in keys if progress.of(key) != {NO_OFFSET}}
    return NamesAnswered(*at, ask, names, frozenset(must), frozenset(may))


def _are_tables_written(at: At) -> bool:
    """Whether the broker's files have what it knows.

    A change that failed is not in effect, but may be in the file until the next one.
    """
    is_written = at.known.works(CONFIG) and not at.step.fails_calls
    return is_written and not at.known.promises.reverts


def _is_config_known(at: At, ask: AskBroker) -> bool:
    """Whether the broker's file has what the broker knows of a topic or a group.

    A light queue has a configuration, but none in the file. The topics that a broker
    has from its first start on may have none there yet.
    """
    progress = at.known.progress
    is_ours = not (progress.topics.is_doubtful or at.known.setup.begins_with)
    is_told = progress.groups.others_are_default and _are_tables_written(at)
    is_apart = ask.topic in OF_ITS_OWN or ask.topic.startswith(LIGHT)
    is_apart = is_apart and ask.question == "topic_config"
    return is_ours and is_told and not is_apart


def _config_of(at: At, ask: AskBroker) -> tuple[str, ...]:
    """The fields that the broker's file has of a topic or a group."""
    files = at.look.files()
    if ask.question == "topic_config":
        return fields_told(config_pair(files, TOPICS_PATH).file.rows.get(ask.topic))
    return fields_told(config_pair(files, GROUPS_PATH).file.rows.get(ask.group))


def _group_of(key: OffsetKey) -> str:
    return key[0]


def _topic_of(key: OffsetKey) -> str:
    return key[1]


def _subscribers(
    at: At, topic: str, at_ms: int
) -> tuple[frozenset[str], frozenset[str]]:
    """The groups that must be, and those that may be, told as subscribing a topic.

    A group subscribes what the newest heartbeat of a member said, while it has one.

    Source: ConsumerGroupInfo#updateSubscription, ConsumerManager.
    """
    members = at.known.progress.members
    must, may = set[str](), set[str]()
    for group, topics in members.subscribed.items():
        silent = members.silent_for(group, at_ms).values()
        is_there = any(0 <= ms < CLIENT_SILENT_MS for ms in silent)
        wants = topics is None or topic in topics
        if wants:
            may.add(group)
        if wants and is_there and topics is not None:
            must.add(group)
    # What is known of these is in ``filters``.
    by_hand = at.known.progress.filters.groups
    return frozenset(must - by_hand), frozenset(may | by_hand)


def _whether_locked(at: At, ask: AskBroker, at_ms: int) -> frozenset[int]:
    lock = at.known.consumption.locks.of((ask.group, ask.topic, ask.queue_id))
    if lock.client == UNSURE:
        return frozenset({0, 1})
    if lock.client != ask.client or ask.client == NOBODY:
        return frozenset({0})
    least = int(at_ms - lock.least_ms <= LOCK_MS)
    most = int(at_ms - lock.most_ms <= LOCK_MS)
    return frozenset({least, most})


def first_since(at: At, topic: str, queue_id: int, at_ms: int) -> int:
    """The queue_offset of the first message stored since ``at_ms``; or the end."""
    timestamp = max(0, at.look.epoch_ms + at_ms)
    first, times = stored_times(at, (topic, queue_id))
    later = (n for n, time in enumerate(times, first) if time >= timestamp)
    return next(later, first + len(times))


def stored_times(at: At, key: QueueKey) -> tuple[int, list[int]]:
    """A queue's first queue_offset, and when each message from there on was stored."""
    queue = at.known.model.visible(key)
    records = at.look.image().commit_log.indexed_records.get(key, [])
    times = [one.store_timestamp for one in records[: len(queue.messages)]]
    return queue.min_offset, times
