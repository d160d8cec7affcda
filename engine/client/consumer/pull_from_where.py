"""Where a consumer begins to pull a queue that was assigned to it.

It begins at the group's offset, if the group has one. If not, the consumer's
``ConsumeFromWhere`` decides; for retry topics other rules hold. If it is unknown
whether there is an offset, nothing is pulled, and the next rebalance asks again. The
answer is not stored, so after a crash before the first commit the question is asked
again.

Source: RebalancePushImpl#computePullFromWhereWithException, RocketMQ 5.3.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from crashmq.engine.client.consumer.store.offset_store import (
    NOT_FOUND,
    OffsetStore,
    ReadOffsetType,
)
from crashmq.engine.client.consumer.store.remote_broker_offset_store import BrokerFailed
from crashmq.engine.common.message_queue import MessageQueue


class ConsumeFromWhere(Enum):
    """Where a group without an offset begins. Source: ConsumeFromWhere."""

    CONSUME_FROM_LAST_OFFSET = "last offset"
    CONSUME_FROM_FIRST_OFFSET = "first offset"
    CONSUME_FROM_TIMESTAMP = "timestamp"


class PullFromNowhere(Exception):
    """It is unknown where to begin; ask again at the next rebalance."""


class OffsetAdmin(Protocol):
    """The requests to a queue's broker that are needed for that."""

    def max_offset(self, queue: MessageQueue) -> int:
        """The queue_offset of the next message that is dispatched.

        Raises:
            BrokerFailed: the broker did not answer.
        """

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The queue_offset of the first message stored at or after ``timestamp``.

        Raises:
            BrokerFailed: the broker did not answer.
        """


def compute_pull_from_where(
    queue: MessageQueue,
    store: OffsetStore,
    admin: OffsetAdmin,
    where: ConsumeFromWhere,
    timestamp: int = 0,
) -> int:
    """The queue_offset at which to begin; at least 0.

    Args:
        queue: the queue.
        store: the consumer's offset store; its persisted offset counts, not that in
            memory.
        admin: the broker of the queue.
        where: where a group without an offset begins.
        timestamp: for ``CONSUME_FROM_TIMESTAMP``, milliseconds since the epoch.

    Raises:
        PullFromNowhere: the offset, or the queue's end, is unknown: no answer.

    Source: RebalancePushImpl#computePullFromWhereWithException.
    """
    offset = offset_of_group(queue, store)
    if offset >= 0:
        return offset
    return where_a_group_begins(queue, admin, where, timestamp)


def offset_of_group(queue: MessageQueue, store: OffsetStore) -> int:
    """The offset stored for a group; ``NOT_FOUND``: it has none.

    Raises:
        PullFromNowhere: the broker did not answer.
    """
    offset = store.read_offset(queue, ReadOffsetType.READ_FROM_STORE)
    if offset < 0 and offset != NOT_FOUND:
        raise PullFromNowhere(
            f"{queue}: the group's offset could not be asked for ({offset})."
        )
    return offset


def where_a_group_begins(
    queue: MessageQueue, admin: OffsetAdmin, where: ConsumeFromWhere, timestamp: int
) -> int:
    """The offset at which a group without a stored offset begins, by ``where``.

    Raises:
        PullFromNowhere: the broker did not answer.
    """
    try:
        begin = _begin_anew(queue, admin, where, timestamp)
    except BrokerFailed as failure:
        raise PullFromNowhere(f"{queue}: {failure}") from None
    if begin < 0:
        raise PullFromNowhere(f"{queue}: the broker says that it begins at {begin}.")
    return begin


def _begin_anew(
    queue: MessageQueue, admin: OffsetAdmin, where: ConsumeFromWhere, timestamp: int
) -> int:
    """As ``where_a_group_begins``, but raises the broker's own errors."""
    match where:
        case ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET:
            return 0 if queue.is_retry else admin.max_offset(queue)
        case ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
            return 0
        case ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            if queue.is_retry:
                return admin.max_offset(queue)
            return admin.search_offset(queue, timestamp)
