"""Where a consumer begins to pull a queue that it has just been given.

Wherever the group has an offset, there. Where it has none, the consumer's own choice
decides, and retry topics have rules of their own. Where nobody knows whether it has
one, nothing may be pulled: the rebalance comes back later. Nothing is noted, so a crash
before the first commit asks the same question again.

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
    """What can be asked of a queue's broker."""

    def max_offset(self, queue: MessageQueue) -> int:
        """The queue_offset that dispatch gives next.

        Raises:
            BrokerFailed: it could not be asked.
        """

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The queue_offset of the first message stored at or after ``timestamp``.

        Raises:
            BrokerFailed: it could not be asked.
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
        store: of the consumer; asked for what is kept, not for what it remembers.
        admin: the broker of the queue.
        where: where a group without an offset begins.
        timestamp: of ``CONSUME_FROM_TIMESTAMP``, milliseconds since the epoch.

    Raises:
        PullFromNowhere: the offset, or the queue's end, could not be asked for.

    Source: RebalancePushImpl#computePullFromWhereWithException.
    """
    offset = offset_of_group(queue, store)
    if offset >= 0:
        return offset
    return where_a_group_begins(queue, admin, where, timestamp)


def offset_of_group(queue: MessageQueue, store: OffsetStore) -> int:
    """The offset stored for a group; ``NOT_FOUND``: it has none.

    Raises:
        PullFromNowhere: it could not be asked for.
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
        PullFromNowhere: the queue's end could not be asked for.
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
