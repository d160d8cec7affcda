"""AllocateMessageQueueConsistentHash: queues and clients on a consistent-hash ring.

Each client has ten points on the ring; a queue belongs to the client of the first point
at or after the queue's own. So a client that joins or leaves moves few queues.

Source: org.apache.rocketmq.client.consumer.rebalance
.AllocateMessageQueueConsistentHash, ConsistentHashRouter, RocketMQ 5.3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import md5

from crashmq.engine.client.consumer.rebalance.allocate_message_queue_strategy import (
    can_allocate,
)
from crashmq.engine.common.message_queue import MessageQueue

VIRTUAL_NODES = 10


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueConsistentHash:
    """The queues whose next point on the ring is one of the client's."""

    virtual_node_cnt: int = VIRTUAL_NODES

    @property
    def name(self) -> str:
        """RocketMQ's name of the strategy."""
        return "CONSISTENT_HASH"

    def allocate(
        self,
        group: str,  # noqa: ARG002 - of the port; this share is the same for all groups
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
    ) -> list[MessageQueue]:
        """The client's part of the ring. Source: #allocate."""
        if not can_allocate(current_cid, mq_all, cid_all):
            return []
        points, owners = _ring_of(tuple(cid_all), self.virtual_node_cnt)
        share = []
        for queue in mq_all:
            at = bisect_left(points, _point_of(_text_of(queue)))
            if owners[at % len(owners)] == current_cid:
                share.append(queue)
        return share


@lru_cache(maxsize=64)
def _ring_of(
    cid_all: tuple[str, ...], nodes: int
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The points of all clients in ascending order, and the client of each."""
    owners = {
        _point_of(f"{cid}-{node}"): cid for cid in cid_all for node in range(nodes)
    }
    points = tuple(sorted(owners))
    return points, tuple(owners[point] for point in points)


def _text_of(queue: MessageQueue) -> str:
    """The text of a queue that is hashed. Source: MessageQueue#toString."""
    return (
        f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, "
        f"queueId={queue.queue_id}]"
    )


def _point_of(name: str) -> int:
    """The 32-bit point of a name on the ring. Source: ConsistentHashRouter.MD5Hash."""
    digest = md5(name.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")
