"""Which records of a RocketMQ store no queue has to list: a topic or a queue deleted.

RocketMQ forgets a deleted topic's queues and keeps its records until their log files
expire. Nothing in the store says so but what is left: the folder of a topic that the
broker's list of topics does not name is gone, or a queue counts from 0 again and its
first unit is that of the record put anew. A topic whose units lie in
``batchconsumequeue`` has none in ``consumequeue`` either.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from models.image.lazy import lazy
from models.image.log import LogImage, QueueKey
from models.image.record import Bytes, Record
from models.store_image import ROCKSDB_PATH, StoreImage

TOPICS_PATH = "config/topics.json"
_BATCH_DIR = "batchconsumequeue"


@dataclass(frozen=True)
class PresumedLog(LogImage):
    """A log of which some records are nobody's.

    Attributes:
        listed_from: the phy_offset by queue below which its records have no unit; a
            queue that has none at all begins at the log's end.
    """

    listed_from: Mapping[QueueKey, int] = field(default_factory=dict)

    @lazy
    def indexed_records(self) -> dict[QueueKey, list[Record]]:
        """As ever, without the records that no queue has to list."""
        alive: dict[QueueKey, list[Record]] = {}
        for key, records in _as_log(self).indexed_records.items():
            first = self.listed_from.get(key, 0)
            if kept := [r for r in records if r.phy_offset >= first]:
                alive[key] = kept
        return alive


@dataclass(frozen=True, slots=True)
class Presumption:
    """What is taken for deleted, and why, a sentence each."""

    image: StoreImage
    notes: tuple[str, ...]


def presumed(image: StoreImage, folders: Collection[str]) -> Presumption:
    """The image without what was deleted, as far as its files tell.

    Args:
        image: of a store without a durable mark; ours keeps an account of deletions.
        folders: names in ``consumequeue``, also of those without a file.
    """
    log = image.commit_log
    listed_from: dict[QueueKey, int] = {}
    notes: list[str] = []
    topics = topics_in(image.files.get(TOPICS_PATH, b""))
    batch = {p.split("/")[1] for p in image.files if p.startswith(f"{_BATCH_DIR}/")}
    if ROCKSDB_PATH in image.files and not image.consume_queues:
        listed_from = dict.fromkeys(log.indexed_records, log.max_phy_offset)
        notes.append("consumequeue: RocksDB keeps the queues, and they are not judged.")
    gone: list[str] = []
    for key, records in log.indexed_records.items():
        # A topic's name that was damaged seldom stands where a queue begins.
        begins = log.min_phy_offset > 0 or records[0].queue_offset == 0
        if key[0] in batch:
            listed_from[key] = log.max_phy_offset
        elif begins and _is_gone(key[0], folders, topics):
            listed_from[key] = log.max_phy_offset
            gone.append(key[0])
    notes.extend(
        f"consumequeue/{topic}: the topic has records and no folder; it is taken "
        f"for deleted."
        for topic in dict.fromkeys(gone)
    )
    for key in log.misnumbered_queues:
        first = None if key in listed_from else _put_anew(image, key)
        if first is not None:
            listed_from[key] = first.phy_offset
            notes.append(
                f"{log.where(first.phy_offset)}: {key[0]}/{key[1]} counts from 0 "
                f"again; its topic was deleted and made anew."
            )
    anew = {topic for topic, _ in listed_from}
    for key in log.indexed_records:
        if key[0] in anew and key not in image.queue_at:
            listed_from.setdefault(key, log.max_phy_offset)
    if listed_from:
        shared = {f.name: getattr(log, f.name) for f in fields(LogImage)}
        log = PresumedLog(**shared, listed_from=listed_from)
        image = replace(image, commit_log=log)
    return Presumption(image, tuple(notes))


def topics_in(raw: Bytes) -> frozenset[str] | None:
    """The topics of a broker's ``config/topics.json``; None if it does not tell."""
    try:
        # The broker writes names of classes and numbers for keys: not quite JSON.
        found: Any = json.loads(bytes(raw))
    except ValueError:
        return None
    table = found.get("topicConfigTable") if isinstance(found, dict) else None
    return frozenset(table) if isinstance(table, dict) else None


def _is_gone(
    topic: str, folders: Collection[str], topics: frozenset[str] | None
) -> bool:
    """Whether a topic was deleted: the broker's own list, where there is one, tells.

    A folder that is gone without that evidence was lost, and its messages with it.
    """
    return topics is not None and topic not in topics and topic not in folders


def _put_anew(image: StoreImage, key: QueueKey) -> Record | None:
    """The record from which on a queue counts from 0 again; None if none is shown.

    From it on the numbers rise by one, and the queue's own first unit is its unit.
    """
    records = image.commit_log.indexed_records[key]
    restarts = [n for n, r in enumerate(records) if n and r.queue_offset == 0]
    if not restarts:
        return None
    rest = records[restarts[-1] :]
    if [record.queue_offset for record in rest] != [*range(len(rest))]:
        return None
    queue = image.queue_at.get(key)
    units = queue.units if queue is not None else ()
    if units and units[0][:2] != (0, rest[0].phy_offset):
        return None
    return rest[0]


def _as_log(log: LogImage) -> LogImage:
    return LogImage(**{f.name: getattr(log, f.name) for f in fields(LogImage)})
