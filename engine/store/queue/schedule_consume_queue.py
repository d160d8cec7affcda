"""ScheduleConsumeQueue: a queue of delayed messages, for configured delay levels.

The tags code of its units is the time of delivery. The codec computes that time by
RocketMQ's default levels; this class computes it by the configured ones. A start with
changed levels therefore finds units that disagree with their records, and dispatch
builds them again: then every waiting message is due by the new levels.

Source: CommitLog#checkMessageAndReturnSize, ScheduleMessageService
#computeDeliverTimestamp, RocketMQ 5.3. Differs: in RocketMQ units keep the times by the
levels with which they were dispatched.
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
    """One queue of the schedule topic, in a store whose levels are not the default."""

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
        """As ``ConsumeQueue``, with the time of delivery as tags code."""
        super().put_message_position_info(self._timed(request))

    def unit_of(self, request: DispatchRequest) -> bytes:
        """As ``ConsumeQueue``, with the time of delivery as tags code."""
        return super().unit_of(self._timed(request))

    def agrees_with(
        self,
        request: DispatchRequest,
        is_proven: bool = True,
        log_min_offset: int = 0,
        /,
    ) -> bool:
        """As ``ConsumeQueue``, with the time of delivery as tags code."""
        return super().agrees_with(self._timed(request), is_proven, log_min_offset)

    def _timed(self, request: DispatchRequest) -> DispatchRequest:
        level = properties_from_bytes(request.properties).get(PROPERTY_DELAY, "")
        if not is_number(level) or int(level) == 0:
            return request
        due = self._levels.delivery_time(int(level), request.store_timestamp)
        return request._replace(tags_code=due)
