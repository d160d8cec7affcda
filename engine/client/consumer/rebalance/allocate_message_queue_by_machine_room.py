"""AllocateMessageQueueByMachineRoom: only the queues of some machine rooms.

A broker's room is the part of its name before the ``@``. The queues of other rooms are
assigned to no client.

Source: org.apache.rocketmq.client.consumer.rebalance
.AllocateMessageQueueByMachineRoom, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crashmq.engine.client.consumer.rebalance.allocate_message_queue_strategy import (
    can_allocate,
)
from crashmq.engine.common.message_queue import MessageQueue

ROOM_SEPARATOR = "@"


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueByMachineRoom:
    """The queues of rooms ``consumer_idcs`` in equal blocks; the rest go one by one."""

    consumer_idcs: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """RocketMQ's name of the strategy."""
        return "MACHINE_ROOM"

    def allocate(
        self,
        group: str,  # noqa: ARG002 - of the port; this share is the same for all groups
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
    ) -> list[MessageQueue]:
        """The client's block, and perhaps one more queue. Source: #allocate."""
        if not can_allocate(current_cid, mq_all, cid_all):
            return []
        in_rooms = [queue for queue in mq_all if self._is_in_a_room(queue)]
        place = cid_all.index(current_cid)
        least, left_over = divmod(len(in_rooms), len(cid_all))
        share = in_rooms[place * least : (place + 1) * least]
        if place < left_over:
            share.append(in_rooms[least * len(cid_all) + place])
        return share

    def _is_in_a_room(self, queue: MessageQueue) -> bool:
        parts = queue.broker_name.split(ROOM_SEPARATOR)
        while parts and not parts[-1]:
            parts.pop()  # as Java's split does
        return len(parts) == 2 and parts[0] in self.consumer_idcs
