"""What is known of a store whose directory was written by RocketMQ.

The decoder of the files lists the messages in it. They count as put by this history and
as durable, so every law can be asked about them, and a start must take over the whole
log. Laws about what the store itself writes at an orderly end are not asked of the
first start.

Source: DefaultMessageStore#recover: RocketMQ itself serves all of an intact log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crashmq.models.appended import Appended
from crashmq.models.files.config_tables import tables_found
from crashmq.models.files.deleted import ALL_QUEUES
from crashmq.models.files.inferred_deletions import LogAfterDeletions, infer_deletions
from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.files.store_image import Record, StoreImage, read_store
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.knowledge.tampering import Origin
from crashmq.models.messages import (
    MULTI_DISPATCH,
    MULTI_QUEUE_OFFSET,
    MessageToPut,
    properties_size_of,
)
from crashmq.models.observations import Damaged
from crashmq.models.program import Setup

_QUEUES = "consumequeue/"


@dataclass(frozen=True, slots=True)
class FoundMessage(MessageToPut):
    """A message put by another program, with its properties as read from the record."""

    told: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Set the properties to those of the record."""
        told = dict(self.told)
        object.__setattr__(self, "properties", told)
        object.__setattr__(self, "properties_size", properties_size_of(told))


def find(known: Knowledge, files: Mapping[str, bytes]) -> None:
    """Record that a store is started for the first time on files of another program."""
    known.progress.tables.seen = tables_found(files)
    image = read_store(files, None, known.setup.delay_levels)
    if not _fits(known.setup, image):
        # It is as if damaged: nobody can start a store of other sizes on it.
        known.tampering.add([Damaged(path, 0, len(files[path])) for path in files])
        return
    log, model = image.commit_log, known.model
    known.tampering.origin = Origin.FOUND
    # A store whose records all have one goes on so.
    model.prop_crc |= all(record.has_property_crc for record in log.records)
    model.messages = [_appended(record) for record in log.records]
    model.log_min = model.may_expire = model.min_certain = log.min_phy_offset
    model.floor_power = model.floor_kill = model.floor = log.max_phy_offset
    model.deleted = _deletions(image)
    model.built = {queue.key: queue.end for queue in image.consume_queues}
    model.list_all()
    # Of some queues all messages have expired, and they go on where they ended.
    model.numbered = {k: e for k, e in model.built.items() if k not in model.queues}


def _fits(setup: Setup, image: StoreImage) -> bool:
    log, lengths = image.commit_log, {len(f.data) for f in image.commit_log.files}
    of_queues = {len(f.data) for queue in image.consume_queues for f in queue.files}
    is_log = log.file_size == setup.log_file_size and lengths == {log.file_size}
    return is_log and of_queues <= {setup.queue_file_units * UNIT_SIZE}


def _appended(record: Record) -> Appended:
    properties = record.properties
    offsets = properties.get(MULTI_QUEUE_OFFSET, "")
    if MULTI_DISPATCH in properties:
        properties.pop(MULTI_QUEUE_OFFSET, None)
    is_delayed = record.topic == SCHEDULE_TOPIC
    message = FoundMessage(
        record.topic,
        record.queue_id,
        bytes(record.body),
        properties.get("TAGS", ""),
        properties.get("KEYS", ""),
        properties.get("UNIQ_KEY", ""),
        True,
        record.flag,
        record.sys_flag,
        record.born_timestamp,
        record.born_host,
        record.store_host,
        record.reconsume_times,
        record.prepared_transaction_offset,
        properties.get(MULTI_DISPATCH, ""),
        delay_level=int(properties.get("DELAY", "0")) if is_delayed else 0,
        real_topic=properties.get("REAL_TOPIC", "") if is_delayed else "",
        real_queue_id=int(properties.get("REAL_QID", "0")) if is_delayed else 0,
        told=tuple(properties.items()),
    )
    return Appended(
        message,
        record.phy_offset,
        record.size,
        record.queue_offset,
        light_offsets=offsets if record.light_places else "",
        stored_ms=record.store_timestamp,
    )


def _deletions(image: StoreImage) -> dict[QueueKey, int]:
    """The phy_offsets of deletions: as crashmq's list has them, or RocketMQ's files."""
    if image.checkpoint.mark is not None:
        return dict(image.commit_log.deleted.places)
    paths = [path.split("/") for path in image.files if path.startswith(_QUEUES)]
    folders = {parts[1] for parts in paths}
    log = infer_deletions(image, folders).image.commit_log
    if not isinstance(log, LogAfterDeletions):
        return {}
    return {
        key if key[0] in folders else (key[0], ALL_QUEUES): at
        for key, at in log.listed_from.items()
    }
