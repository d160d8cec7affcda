"""AllocateMachineRoomNearby: queues go to clients in their own room, if there are any.

Source: org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby,
RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crashmq.engine.client.consumer.rebalance.allocate_message_queue_strategy import (
    AllocateMessageQueueStrategy,
    AllocationRefused,
    can_allocate,
)
from crashmq.engine.common.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class MachineRoomResolver:
    """Returns the machine room of a broker and of a client; "": unknown."""

    broker_deploy_in: Callable[[MessageQueue], str]
    consumer_deploy_in: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class AllocateMachineRoomNearby:
    """A strategy applied within each room, then to rooms without a live client."""

    inner: AllocateMessageQueueStrategy
    resolver: MachineRoomResolver

    @property
    def name(self) -> str:
        """RocketMQ's name of the strategy."""
        return f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def allocate(
        self,
        group: str,
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
    ) -> list[MessageQueue]:
        """The client's share of its own room, then that of rooms without clients.

        Raises:
            AllocationRefused: an argument is empty, or a room is unknown.

        Source: AllocateMachineRoomNearby#allocate, which takes the rooms sorted.
        """
        if not can_allocate(current_cid, mq_all, cid_all):
            return []
        queues: dict[str, list[MessageQueue]] = {}
        for queue in mq_all:
            room = _known(self.resolver.broker_deploy_in(queue), queue.broker_name)
            queues.setdefault(room, []).append(queue)
        clients: dict[str, list[str]] = {}
        for cid in cid_all:
            room = _known(self.resolver.consumer_deploy_in(cid), cid)
            clients.setdefault(room, []).append(cid)
        share: list[MessageQueue] = []
        own = self.resolver.consumer_deploy_in(current_cid)
        if queues.get(own):
            share += self._inner(group, current_cid, queues[own], clients[own])
        for room in sorted(queues.keys() - clients.keys()):
            share += self._inner(group, current_cid, queues[room], cid_all)
        return share

    def _inner(
        self,
        group: str,
        current_cid: str,
        queues: Sequence[MessageQueue],
        cids: Sequence[str],
    ) -> list[MessageQueue]:
        return self.inner.allocate(group, current_cid, queues, cids)


def _known(room: str, name: str) -> str:
    if not room:
        raise AllocationRefused(
            f"nobody knows in which machine room {name} is: let the resolver know it."
        )
    return room
