"""Finds the delay levels of a broker that is configured with levels of its own.

The tags code of a unit of the schedule topic is the time at which its message is due:
the store time plus the delay of its level (``messageDelayLevel``). If the levels are
unknown, they are inferred: if most units of a level have the same delay of whole
seconds, it is the level's. A damaged unit has a delay that no other has.

Source: CommitLog#checkMessageAndReturnSize, ScheduleMessageService
#computeDeliverTimestamp.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from crashmq.models.files.message_delay_level import DEFAULT_LEVELS
from crashmq.models.files.queue import QueueImage
from crashmq.models.files.record import SCHEDULE_TOPIC, Record
from crashmq.models.files.store_image import StoreImage

_AGREED_MIN = 0.5


def with_delay_levels(image: StoreImage, told: Sequence[int] = ()) -> StoreImage:
    """The image with the records' tags codes computed by the broker's levels.

    Args:
        image: decoded with RocketMQ's default levels.
        told: the delay of each level in milliseconds, level 1 first; if empty, they are
            inferred from the units.
    """
    waits = _by_level(told) if told else _waits_of_units(image)
    if not waits:
        return image
    log = image.commit_log
    records = tuple([_due(record, waits, len(told)) for record in log.records])
    return replace(image, commit_log=replace(log, records=records))


def _by_level(told: Sequence[int]) -> dict[int, int]:
    return dict(enumerate(told, 1))


def _waits_of_units(image: StoreImage) -> dict[int, int]:
    """The delay in milliseconds of each level that differs from RocketMQ's default."""
    found: dict[int, int] = {}
    for queue in image.consume_queues:
        if queue.topic == SCHEDULE_TOPIC:
            level = queue.queue_id + 1
            wait = _wait_of(queue, image)
            if wait and wait != DEFAULT_LEVELS.delay_ms(level):
                found[level] = wait
    return found


def _wait_of(queue: QueueImage, image: StoreImage) -> int:
    """The delay in ms that most of a level's units have; 0 if they do not agree."""
    waits: Counter[int] = Counter()
    for unit in queue.units:
        record = image.commit_log.record_at.get(unit.phy_offset)
        if record is not None and record.topic == SCHEDULE_TOPIC:
            waits[unit.tags_code - record.store_timestamp] += 1
    if not waits:
        return 0
    wait, count = waits.most_common(1)[0]
    is_wait = wait > 0 and wait % 1000 == 0
    return wait if is_wait and count > _AGREED_MIN * waits.total() else 0


def _due(record: Record, waits: Mapping[int, int], highest: int) -> Record:
    if record.topic != SCHEDULE_TOPIC:
        return record
    text = record.properties.get("DELAY", "")
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 10):
        return record
    level = min(int(text), highest) if highest else record.queue_id + 1
    wait = waits.get(level)
    if wait is None:
        return record
    return record._replace(tags_code=record.store_timestamp + wait)
