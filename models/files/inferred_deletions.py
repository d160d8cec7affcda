"""Infers deletions in a RocketMQ store: which records need no unit.

RocketMQ removes a deleted topic's queues and keeps its records until their log files
expire. Only traces show the deletion: a topic is missing from the broker's list of
topics and has no queue directory; or a queue counts from 0 again, and its first unit is
that of the record with which the count began again. Without a list of topics the
missing directory alone decides. A topic with units in ``batchconsumequeue`` has none
in ``consumequeue``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any

from crashmq.models.files.broker_json import read_table
from crashmq.models.files.delays import DELAYS_PATH
from crashmq.models.files.lazy import lazy
from crashmq.models.files.log import LogImage, QueueKey
from crashmq.models.files.record import Bytes, Record, as_listed
from crashmq.models.files.store_image import ROCKSDB_PATH, StoreImage

TOPICS_PATH = "config/topics.json"
_TOPICS_BACKUP = f"{TOPICS_PATH}.bak"
_BATCH_DIR = "batchconsumequeue"
_OTHER_DIRS = ("consumequeue_ext", _BATCH_DIR)
# A store without a broker keeps how far delays came, and its timer wheel, too.
_OF_STORE = (DELAYS_PATH, "config/timermetrics", "config/timercheck")
# TopicValidator#isSystemTopic
_KEPT_PREFIXES = ("rmq_sys_", "%LMQ%")
_SYSTEM_TOPICS = frozenset(
    {"TBW102", "BenchmarkTest", "SCHEDULE_TOPIC_XXXX", "SELF_TEST_TOPIC"}
    | {"RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"}
    | {"RMQ_SYS_TRACE_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "OFFSET_MOVED_EVENT"}
)


@dataclass(frozen=True)
class LogAfterDeletions(LogImage):
    """A log in which records of deleted topics and queues need no unit.

    Attributes:
        listed_from: for a queue, the phy_offset below which its records need no unit;
            for a queue without any units it is the log's end.
    """

    listed_from: Mapping[QueueKey, int] = field(default_factory=dict)

    @property
    def as_found(self) -> dict[QueueKey, list[Record]]:
        """Records by queue, including those that need no unit."""
        return _as_log(self).indexed_records

    @lazy
    def indexed_records(self) -> dict[QueueKey, list[Record]]:
        """As in ``LogImage``, without the records that need no unit."""
        alive: dict[QueueKey, list[Record]] = {}
        for key, records in _as_log(self).indexed_records.items():
            first = self.listed_from.get(key, 0)
            if kept := [r for r in records if r.phy_offset >= first]:
                alive[key] = kept
        return alive


@dataclass(frozen=True, slots=True)
class InferredDeletions:
    """The image with the inferred deletions, and one sentence for each of them."""

    image: StoreImage
    notes: tuple[str, ...]


def infer_deletions(image: StoreImage, folders: Collection[str]) -> InferredDeletions:
    """Infer deletions; their records need no unit in the returned image.

    Args:
        image: of a store without a durable mark; our store keeps ``deletedTopics``.
        folders: names in ``consumequeue``, also of directories without a file.
    """
    log = image.commit_log
    listed_from: dict[QueueKey, int] = {}
    notes: list[str] = []
    topics = topics_listed(image.files)
    batch = {p.split("/")[1] for p in image.files if p.startswith(f"{_BATCH_DIR}/")}
    if ROCKSDB_PATH in image.files and not image.consume_queues:
        listed_from = dict.fromkeys(log.indexed_records, log.max_phy_offset)
        notes.append("consumequeue: RocksDB keeps the queues, and they are not judged.")
    gone: list[str] = []
    moved = _listed_elsewhere(image)
    for key, records in log.indexed_records.items():
        # A topic's name that was damaged seldom stands where a queue begins.
        begins = log.min_phy_offset > 0 or records[0].queue_offset == 0
        if key[0] in batch:
            listed_from[key] = log.max_phy_offset
        elif (
            begins
            and key[0] not in folders
            and key[0] not in moved
            and may_be_deleted(key[0], folders, topics, image.files)
        ):
            listed_from[key] = log.max_phy_offset
            gone.append(key[0])
    notes.extend(
        f"consumequeue/{topic}: the topic has records and no folder; it is taken "
        f"for deleted."
        for topic in dict.fromkeys(gone)
    )
    notes.extend(_batches_of_none(image, batch))
    for key in log.misnumbered_queues:
        first = None if key in listed_from else _put_anew(image, key)
        if first is not None:
            listed_from[key] = first.phy_offset
            notes.append(
                f"{log.where(first.phy_offset)}: {key[0]}/{key[1]} counts from 0 "
                "again; its topic was deleted and created again."
            )
    for topic in {key[0]: None for key in image.unlisted_records}:
        if not image.abort and may_be_deleted(topic, folders, topics, image.files):
            first_base = _revived_from(image, topic, listed_from)
            if first_base:
                keys = [key for key in log.indexed_records if key[0] == topic]
                listed_from.update(dict.fromkeys(keys, first_base))
                notes.append(
                    f"consumequeue/{topic}: its queues begin with the log file at "
                    f"{first_base}; it is taken for deleted before a crash, and listed "
                    f"again by the start after it."
                )
    anew = {topic for topic, _ in listed_from}
    for key in log.indexed_records:
        if key[0] in anew and key not in image.queue_at:
            listed_from.setdefault(key, log.max_phy_offset)
    if listed_from:
        shared = {f.name: getattr(log, f.name) for f in fields(LogImage)}
        log = LogAfterDeletions(**shared, listed_from=listed_from)
        image = replace(image, commit_log=log)
    return InferredDeletions(image, tuple(notes))


def _batches_of_none(image: StoreImage, batch: Collection[str]) -> Iterator[str]:
    """One sentence for each topic that has inner batches and no queue for them."""
    if ROCKSDB_PATH in image.files:
        return
    found = Counter(
        record.topic
        for record in image.commit_log.records
        if record.is_inner_batch and record.topic not in batch
    )
    for topic, count in sorted(found.items()):
        yield (
            f"{_BATCH_DIR}/{topic}: the topic has {count:,} batches and no folder; no "
            "consumer gets them, whether it was deleted or lost."
        )


def topics_in(raw: Bytes) -> frozenset[str] | None:
    """The topics of a broker's ``config/topics.json``; None if it cannot be read."""
    try:
        found: Any = read_table(bytes(raw))
    except (ValueError, RecursionError):
        return None
    table = found.get("topicConfigTable") if isinstance(found, dict) else None
    return frozenset(table) if isinstance(table, dict) else None


def topics_listed(files: Mapping[str, Bytes]) -> frozenset[str] | None:
    """The topics in the broker's list or its backup; None if neither can be read."""
    told = (topics_in(files.get(path, b"")) for path in (TOPICS_PATH, _TOPICS_BACKUP))
    return next((topics for topics in told if topics is not None), None)


def is_kept_topic(topic: str) -> bool:
    """Whether a topic is never deleted: a system topic or a light queue."""
    return topic in _SYSTEM_TOPICS or topic.startswith(_KEPT_PREFIXES)


def may_be_deleted(
    topic: str,
    folders: Collection[str],
    topics: frozenset[str] | None,
    files: Mapping[str, Bytes],
) -> bool:
    """Whether a topic without a queue directory may have been deleted.

    The broker's list of topics decides, if there is one. Without one, and without a
    broker, nothing of the topic may be left in other directories, since RocketMQ
    removes all of it; system topics and light queues are never deleted.
    """
    if topics is not None:
        return topic not in topics
    of_topic = tuple(f"{folder}/{topic}/" for folder in _OTHER_DIRS)
    is_kept = is_kept_topic(topic)
    is_of_broker = any(
        path.startswith("config/") and not path.startswith(_OF_STORE) for path in files
    )
    is_left = any(path.startswith(of_topic) for path in files)
    is_left = is_left or _is_kept_as_file(topic, files)
    return bool(folders) and not (is_kept or is_of_broker or is_left)


def _is_kept_as_file(topic: str, files: Mapping[str, Bytes]) -> bool:
    """Whether a file in ``consumequeue`` has the topic's name, as an archive has."""
    start = f"consumequeue/{topic}"
    return any(
        path == start or (path.startswith(f"{start}.") and path.count("/") == 1)
        for path in files
    )


def _listed_elsewhere(image: StoreImage) -> frozenset[str]:
    """Topics whose records the first units of another topic's directory point at.

    Such a directory was renamed, not deleted.
    """
    found = set[str]()
    for queue, live in image.suspect_queues:
        record = image.commit_log.record_at.get(live[0].phy_offset)
        if record is not None and record.size == live[0].size:
            found.add(as_listed(record, queue.topic).topic)
    return frozenset(found)


def _revived_from(
    image: StoreImage, topic: str, known: Collection[QueueKey]
) -> int | None:
    """The base of the log file from which on a deleted topic is listed again, or None.

    A start after a crash dispatches whole log files, records of deleted topics
    included. Then all of the topic's queues begin with that file, after pre-blank
    units, and other topics' queues do not.
    """
    log, unlisted = image.commit_log, image.unlisted_records
    asked = {key: r for key, r in log.indexed_records.items() if key[0] == topic}
    if any(key in known for key in asked):
        return None
    last = max(r.phy_offset for key in asked for r in unlisted.get(key, ()))
    base = min((f.base for f in log.files if f.base > last), default=0)
    blanked = False
    for key, records in asked.items():
        if any(r.phy_offset > last for r in records) and not _begins_late(image, key):
            return None
        blanked = blanked or _is_blanked(image, key)
        if len(unlisted.get(key, ())) != sum(r.phy_offset < base for r in records):
            return None
    others = [
        key
        for key, records in log.indexed_records.items()
        if key not in asked and key not in unlisted and records[0].phy_offset < base
    ]
    return base if others and blanked else None


def _begins_late(image: StoreImage, key: QueueKey) -> bool:
    """Whether a queue begins with pre-blank units, or after queue_offset 0."""
    queue = image.queue_at.get(key)
    if queue is None or not queue.units:
        return False
    return queue.files[0].base > 0 or queue.units[0].is_pre_blank


def _is_blanked(image: StoreImage, key: QueueKey) -> bool:
    """Whether the queue begins with pre-blank units."""
    queue = image.queue_at.get(key)
    return queue is not None and bool(queue.units) and queue.units[0].is_pre_blank


def _put_anew(image: StoreImage, key: QueueKey) -> Record | None:
    """The record with which a queue's count begins at 0 again; None if there is none.

    From there on queue_offsets ascend by one, and the queue's first unit is this
    record's.
    """
    records = image.commit_log.indexed_records[key]
    restarts = [n for n, r in enumerate(records) if n and r.queue_offset == 0]
    if not restarts:
        return None
    rest = records[restarts[-1] :]
    if not all(image.commit_log.follow(*two) for two in pairwise(rest)):
        return None
    queue = image.queue_at.get(key)
    units = queue.units if queue is not None else ()
    if units and units[0][:2] != (0, rest[0].phy_offset):
        return None
    return rest[0]


def _as_log(log: LogImage) -> LogImage:
    return LogImage(**{f.name: getattr(log, f.name) for f in fields(LogImage)})
