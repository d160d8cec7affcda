"""ScheduleConsumeQueue: a queue of delayed messages, whose levels are configured.

Its units have the time of delivery for their tags code. Where the levels are not
RocketMQ's own, what the codec reads from a record is not that time yet. A start with
other levels finds units that do not agree with their records, and dispatch lists these
again: then all that waits is due by the new levels.

Source: CommitLog#checkMessageAndReturnSize, ScheduleMessageService
#computeDeliverTimestamp, RocketMQ 5.3. Differs: there, units keep the times of the
levels by which they were dispatched.
"""

from __future__ import annotations

from crashmq.engine.host.disk import Disk
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.message.delay_level import DelayLevels
from crashmq.engine.store.message.message import PROPERTY_DELAY, is_number
from crashmq.engine.store.message.message_codec import properties_from_bytes
from crashmq.engine.store.queue.consume_queue import ConsumeQueue
from crashmq.engine.store.queue.consume_queue_ext import ConsumeQueueExt


class ScheduleConsumeQueue(ConsumeQueue):
    """One queue of the schedule topic, in a store with levels of its own."""

    def __init__(
        self,
        disk: Disk,
        address: tuple[str, int],
        file_size: int,
        ext: ConsumeQueueExt | None,
        levels: DelayLevels,
    ) -> None:
        super().__init__(disk, *address, file_size, ext)
        self._levels = levels

    def put_message_position_info(self, request: DispatchRequest) -> None:
        """As of any queue, with the time of delivery for its code."""
        super().put_message_position_info(self._timed(request))

    def unit_of(self, request: DispatchRequest) -> bytes:
        """As of any queue, with the time of delivery for its code."""
        return super().unit_of(self._timed(request))

    def agrees_with(
        self,
        request: DispatchRequest,
        is_proven: bool = True,
        log_min_offset: int = 0,
        /,
    ) -> bool:
        """As of any queue, with the time of delivery for its code."""
        return super().agrees_with(self._timed(request), is_proven, log_min_offset)

    def _timed(self, request: DispatchRequest) -> DispatchRequest:
        level = properties_from_bytes(request.properties).get(PROPERTY_DELAY, "")
        if not is_number(level) or int(level) == 0:
            return request
        due = self._levels.delivery_time(int(level), request.store_timestamp)
        return request._replace(tags_code=due)
