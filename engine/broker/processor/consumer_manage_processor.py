"""ConsumerManageProcessor: a client commits an offset, or queries one.

Source: org.apache.rocketmq.broker.processor.ConsumerManageProcessor, RocketMQ 5.3.
Differs: groups and topics need not be configured, so no request is refused as unknown.
"""

from __future__ import annotations

from typing import NamedTuple

from crashmq.engine.broker.offset.consumer_offset_manager import (
    NO_OFFSET,
    ConsumerOffsetManager,
)
from crashmq.engine.broker.offset.recovered_ends import RecoveredEnds
from crashmq.engine.host.probe import probe
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.message_store import MessageStore

SWALLOWED = probe(
    "consumer_manage.update.swallowed", "a commit came while a reset was pending"
)
FROM_ZERO = probe(
    "consumer_manage.query.from_zero", "a new group of a young queue begins at 0"
)


class OffsetResponse(NamedTuple):
    """The answer to a query; ``offset`` is -1 if it failed.

    ``broker_life`` is the life of the broker that answers (``RecoveredEnds``).
    """

    code: ResponseCode
    offset: int = NO_OFFSET
    broker_life: int = 0


class ConsumerManageProcessor:
    """Answers commits and queries of offsets."""

    def __init__(
        self, manager: ConsumerOffsetManager, store: MessageStore, ends: RecoveredEnds
    ) -> None:
        self._manager = manager
        self._store = store
        self._ends = ends

    def update_consumer_offset(
        self,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
        client_id: str = "",
        broker_life: int = 0,
    ) -> ResponseCode:
        """Commit an offset; before its client follows a reset it is dropped.

        A commit from an earlier life of the log (``RecoveredEnds``) is dropped as well.
        A negative offset, or one past the queue's end, is refused as an invalid
        parameter. ``broker_life`` is the life number the client last received; 0: it
        sends none.

        Source: ConsumerManageProcessor#handleSetOffset.
        """
        if queue_id < 0 or offset < 0:
            return ResponseCode.INVALID_PARAMETER
        if self._manager.is_behind_a_reset(topic, group, queue_id, offset):
            SWALLOWED.hit()
            return ResponseCode.SUCCESS
        if self._ends.is_stale(client_id, topic, queue_id, offset, broker_life):
            return ResponseCode.SUCCESS
        if self._manager.commit_offset(group, topic, queue_id, offset):
            return ResponseCode.SUCCESS
        return ResponseCode.INVALID_PARAMETER

    def query_consumer_offset(
        self, group: str, topic: str, queue_id: int, client_id: str = ""
    ) -> OffsetResponse:
        """The offset of a group; 0 for a new group if the queue is young.

        A queue is young while its first message exists and is in memory: then a new
        group begins with it, wherever its consumers want to begin. If a client asks,
        that offset is stored: the client may be killed before it commits, and the next
        one would begin at the end of a queue that is no longer young.

        Raises:
            StoreStopped: the store is not started.
            OSError: the medium could not be read, or a new life not be noted.

        Source: ConsumerManageProcessor#queryConsumerOffset, which stores nothing.
        """
        self._ends.knows(client_id, topic, queue_id)
        # First, or an offset of a topic that is deleted meanwhile would be believed.
        life = self._ends.tell(client_id)
        offset = self._manager.query_offset(group, topic, queue_id)
        if offset >= 0:
            return OffsetResponse(ResponseCode.SUCCESS, offset, life)
        begins_at_0 = self._store.get_min_offset_in_queue(topic, queue_id) <= 0
        if begins_at_0 and self._store.check_in_mem_by_consume_offset(
            topic, queue_id, 0
        ):
            FROM_ZERO.hit()
            if client_id:
                self._manager.commit_offset(group, topic, queue_id, 0)
            return OffsetResponse(ResponseCode.SUCCESS, 0, life)
        return OffsetResponse(ResponseCode.QUERY_NOT_FOUND, broker_life=life)
