"""Finds the delay levels of a broker that is configured with levels of its own.

The tags code of a unit of the schedule topic is the time at which its message is due:
the store time plus the delay of its level (``messageDelayLevel``). If the levels are
unknown, they are inferred: if most units of a level have the same delay of whole
seconds, it is the level's. A damaged unit has a delay that no other has.

A broker may be given other levels between two lives: units keep the times that they
got. So units in a row that have another delay in common, of whole seconds, were put
under other levels, and so may be the first or the last unit of a queue alone.

Source: CommitLog#checkMessageAndReturnSize, ScheduleMessageService
#computeDeliverTimestamp.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

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
    others = _waits_of_other_lives(image, waits, is_told=bool(told))
    if not waits and not others:
        return image
    log = image.commit_log
    records = [_due(record, waits, len(told)) for record in log.records]
    if others:
        records = [
            record._replace(tags_code=record.store_timestamp + wait)
            if (wait := others.get(record.phy_offset)) is not None
            else record
            for record in records
        ]
    return replace(image, commit_log=replace(log, records=tuple(records)))


def is_wait(wait: int) -> bool:
    """Whether a level can have this delay, in ms: whole seconds."""
    return wait > 0 and wait % 1000 == 0


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
    waits = Counter([wait for _, wait in _waits_in(queue, image)])
    if not waits:
        return 0
    wait, count = waits.most_common(1)[0]
    return wait if is_wait(wait) and count > _AGREED_MIN * waits.total() else 0


def _waits_in(queue: QueueImage, image: StoreImage) -> list[tuple[int, int]]:
    """The phy_offset and the delay in ms of each delayed message that has a unit."""
    found = []
    for unit in queue.units:
        record = image.commit_log.record_at.get(unit.phy_offset)
        if record is not None and record.topic == SCHEDULE_TOPIC:
            wait = unit.tags_code - record.store_timestamp
            found.append((unit.phy_offset, wait))
    return found


def _waits_of_other_lives(
    image: StoreImage, waits: Mapping[int, int], *, is_told: bool
) -> dict[int, int]:
    """By phy_offset the delay in ms of messages that were put under other levels.

    Levels that somebody told are those of the last life, so a level's last unit has
    them, or they are not this store's.
    """
    found: dict[int, int] = {}
    for queue in image.consume_queues:
        if queue.topic != SCHEDULE_TOPIC:
            continue
        level = queue.queue_id + 1
        usual = waits.get(level, DEFAULT_LEVELS.delay_ms(level))
        of_units = _waits_in(queue, image)
        if is_told and of_units and of_units[-1][1] != usual:
            continue
        at_ends = (of_units[:1], of_units[-1:])
        for wait, group in groupby(of_units, itemgetter(1)):
            run = list(group)
            is_run = len(run) > 1 or run in at_ends
            if wait != usual and is_wait(wait) and is_run:
                found |= dict(run)
    return found


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
