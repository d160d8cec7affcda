"""Allocation: the strategy by which a program's consumer divides queues."""

from __future__ import annotations

from typing import assert_never

from crashmq.engine.client.consumer.rebalance import (
    allocate_machine_room_nearby as nearby,
)
from crashmq.engine.client.consumer.rebalance import (
    allocate_message_queue_averagely as averagely,
)
from crashmq.engine.client.consumer.rebalance import (
    allocate_message_queue_averagely_by_circle as by_circle,
)
from crashmq.engine.client.consumer.rebalance import (
    allocate_message_queue_by_config as by_config,
)
from crashmq.engine.client.consumer.rebalance import (
    allocate_message_queue_by_machine_room as by_machine_room,
)
from crashmq.engine.client.consumer.rebalance import (
    allocate_message_queue_consistent_hash as consistent_hash,
)
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_strategy import (
    AllocateMessageQueueStrategy,
)
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.models.brokers import (
    SEVERAL,
    broker_of,
    has_room,
    room_of_broker,
    room_of_client,
)
from crashmq.models.knowledge.sharing import listed_queues
from crashmq.models.ops import StartConsumer
from crashmq.models.program import Setup

ROOMS = frozenset([room_of_broker(name) for name in SEVERAL if has_room(name)])
_RESOLVER = nearby.MachineRoomResolver(
    lambda queue: room_of_broker(queue.broker_name), room_of_client
)


def strategy_of(op: StartConsumer, setup: Setup) -> AllocateMessageQueueStrategy:
    """The strategy that a consumer is started with."""
    match op.strategy:
        case "AVG":
            return averagely.AllocateMessageQueueAveragely()
        case "AVG_BY_CIRCLE":
            return by_circle.AllocateMessageQueueAveragelyByCircle()
        case "CONSISTENT_HASH":
            return consistent_hash.AllocateMessageQueueConsistentHash()
        case "MACHINE_ROOM":
            return by_machine_room.AllocateMessageQueueByMachineRoom(ROOMS)
        case "MACHINE_ROOM_NEARBY":
            inner = averagely.AllocateMessageQueueAveragely()
            return nearby.AllocateMachineRoomNearby(inner, _RESOLVER)
        case "CONFIG":
            queues = [
                MessageQueue(topic, broker_of(topic, queue_id, setup), queue_id)
                for topic, queue_id in listed_queues(op)
            ]
            return by_config.AllocateMessageQueueByConfig(tuple(queues))
        case _:
            assert_never(op.strategy)
