"""AllocateMessageQueueAveragelyByCircle: the queues go round robin to the clients.

Source: org.apache.rocketmq.client.consumer.rebalance
.AllocateMessageQueueAveragelyByCircle, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.engine.client.consumer.rebalance.allocate_message_queue_strategy import (
    can_allocate,
)
from crashmq.engine.common.message_queue import MessageQueue


class AllocateMessageQueueAveragelyByCircle:
    """Every k-th queue for each of k clients."""

    name = "AVG_BY_CIRCLE"

    def allocate(
        self,
        group: str,  # noqa: ARG002 - of the port; this share is the same for all groups
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
    ) -> list[MessageQueue]:
        """The client's queues; see the class."""
        if not can_allocate(current_cid, mq_all, cid_all):
            return []
        return list(mq_all[cid_all.index(current_cid) :: len(cid_all)])
