"""AllocateMessageQueueAveragely: each client gets one block of neighbouring queues.

Source: org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely,
RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.engine.client.consumer.rebalance.allocate_message_queue_strategy import (
    can_allocate,
)
from crashmq.engine.common.message_queue import MessageQueue


class AllocateMessageQueueAveragely:
    """The default: the blocks differ by one queue at most, the longer ones first."""

    name = "AVG"

    def allocate(
        self,
        group: str,  # noqa: ARG002 - of the port; this share is the same for all groups
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
    ) -> list[MessageQueue]:
        """The client's block. Source: AllocateMessageQueueAveragely#allocate."""
        if not can_allocate(current_cid, mq_all, cid_all):
            return []
        place = cid_all.index(current_cid)
        least, longer = divmod(len(mq_all), len(cid_all))
        start = place * least + min(place, longer)
        return list(mq_all[start : start + least + (place < longer)])
