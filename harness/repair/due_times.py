"""When delayed messages are due, for the units of a queue that is made again.

A unit of the schedule topic says when its message is due: its store time and the delay
of its level as the broker had it then (``messageDelayLevel``). So a unit that is still
there is kept; a record without one waits as the broker's configuration says, or as long
as the message before it on its level.

Source: CommitLog#checkMessageAndReturnSize, ScheduleMessageService
#computeDeliverTimestamp.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.harness.reading.looking import QueueFiles, code_of_unit
from crashmq.models.files.delay_levels import is_wait
from crashmq.models.files.record import SCHEDULE_TOPIC, Record


class DueTimes:
    """The due times of delayed messages, asked for in log order."""

    def __init__(self, queues: QueueFiles, told: Sequence[int] = ()) -> None:
        """``told`` has the delay of each level in ms, level 1 first; empty: unknown."""
        self._queues = queues
        self._told = tuple(told)
        self._waits: dict[int, int] = {}

    def due(self, record: Record) -> Record:
        """The record with the tags code that its unit has to have."""
        if record.topic != SCHEDULE_TOPIC or "DELAY" not in record.properties:
            return record
        level = record.queue_id
        code = code_of_unit(self._queues, record)
        if code is not None and is_wait(code - record.store_timestamp):
            self._waits[level] = code - record.store_timestamp
            return record._replace(tags_code=code)
        wait = self._waits.get(level)
        if self._told:
            wait = self._told[min(level, len(self._told) - 1)]
        if wait is None:
            return record
        return record._replace(tags_code=record.store_timestamp + wait)
