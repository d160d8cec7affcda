"""Which queues of a topic a rebalance assigns to each client of a group.

Written from RocketMQ's description of its allocation strategies, independently of the
code of the consumers under test.

Source: docs of AllocateMessageQueueStrategy and its implementations, RocketMQ 5.3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from hashlib import md5

from crashmq.models.brokers import (
    broker_of,
    has_room,
    room_of_broker,
    room_of_client,
)
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.knowledge.sharing import listed_queues
from crashmq.models.ops import StartConsumer
from crashmq.models.program import Setup

VIRTUAL_NODES = 10
"""Points of a client on the ring. Source: AllocateMessageQueueConsistentHash."""


def share_of(
    op: StartConsumer, queues: Sequence[QueueKey], members: Sequence[str], setup: Setup
) -> frozenset[QueueKey]:
    """The queues of one topic that a client's strategy assigns to it.

    Args:
        op: the client and its strategy.
        queues: all queues of the topic.
        members: the clients of the group, as the broker has listed them; not empty.
        setup: says which broker a queue belongs to.
    """
    if op.broadcasts:
        return frozenset(queues)
    topic = queues[0][0]
    if op.strategy == "CONFIG":
        return frozenset([queue for queue in listed_queues(op) if queue[0] == topic])
    if op.client not in members:
        return frozenset()
    clients = sorted(members)
    ordered = sorted(queues, key=lambda q: (broker_of(q[0], q[1], setup), q[1]))
    match op.strategy:
        case "AVG_BY_CIRCLE":
            return frozenset(ordered[clients.index(op.client) :: len(clients)])
        case "CONSISTENT_HASH":
            return _on_the_ring(op.client, ordered, clients, setup)
        case "MACHINE_ROOM":
            return _of_rooms(op.client, ordered, clients, setup)
        case "MACHINE_ROOM_NEARBY":
            return _nearby(op.client, ordered, clients, setup)
        case _:
            return _averagely(op.client, ordered, clients)


def _averagely(
    client: str, queues: Sequence[QueueKey], clients: Sequence[str]
) -> frozenset[QueueKey]:
    """Contiguous blocks of queues; the first clients may get one more."""
    least, left_over = divmod(len(queues), len(clients))
    place = clients.index(client)
    begin = place * least + min(place, left_over)
    return frozenset(queues[begin : begin + least + (place < left_over)])


def _of_rooms(
    client: str, queues: Sequence[QueueKey], clients: Sequence[str], setup: Setup
) -> frozenset[QueueKey]:
    """Blocks of equal length; the rest go one by one to the first clients."""
    in_rooms = [queue for queue in queues if has_room(broker_of(*queue, setup))]
    least = len(in_rooms) // len(clients)
    place = clients.index(client)
    share = in_rooms[place * least : (place + 1) * least]
    return frozenset([*share, *in_rooms[least * len(clients) :][place : place + 1]])


def _nearby(
    client: str, queues: Sequence[QueueKey], clients: Sequence[str], setup: Setup
) -> frozenset[QueueKey]:
    """Each room's queues go to the clients in it, or to all if it has none."""
    share: frozenset[QueueKey] = frozenset()
    rooms = {room_of_broker(broker_of(*queue, setup)) for queue in queues}
    for room in sorted(rooms):
        its = [q for q in queues if room_of_broker(broker_of(*q, setup)) == room]
        near = [one for one in clients if room_of_client(one) == room] or clients
        if client in near:
            share |= _averagely(client, its, near)
    return share


def _on_the_ring(
    client: str, queues: Sequence[QueueKey], clients: Sequence[str], setup: Setup
) -> frozenset[QueueKey]:
    """Assign each queue to the next client on the consistent-hash ring."""
    ring = sorted(
        (_point(f"{one}-{number}"), one)
        for one in clients
        for number in range(VIRTUAL_NODES)
    )
    points = [point for point, _ in ring]

    def owner(queue: QueueKey) -> str:
        topic, queue_id = queue
        broker = broker_of(topic, queue_id, setup)
        name = f"MessageQueue [topic={topic}, brokerName={broker}, queueId={queue_id}]"
        return ring[bisect_left(points, _point(name)) % len(ring)][1]

    return frozenset([queue for queue in queues if owner(queue) == client])


def _point(name: str) -> int:
    return int.from_bytes(md5(name.encode(), usedforsecurity=False).digest()[:4], "big")
