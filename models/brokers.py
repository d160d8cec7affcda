"""Brokers: the broker names under which consumers know the queues of one store.

One store plays one broker or several, each with some of the queues of every topic. The
names of two of them contain a machine room; the third one's does not.
"""

from __future__ import annotations

from typing import Final

from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.ops import StartConsumer
from crashmq.models.program import Setup

ONE: Final = ("broker-a",)
SEVERAL: Final = ("room1@broker-a", "room2@broker-b", "broker-c")
NO_ROOM: Final = "room0"


def broker_of(topic: str, queue_id: int, setup: Setup) -> str:
    """The name of the broker that has a queue; retry topics are on the first one."""
    if setup.brokers == 1:
        return ONE[0]
    if topic.startswith(RETRY_PREFIX):
        return SEVERAL[0]
    number = min(queue_id, setup.topic_queues - 1)
    return SEVERAL[number * setup.brokers // setup.topic_queues]


def brokers_of(topic: str, setup: Setup) -> list[str]:
    """The broker of each queue of a topic."""
    count = queues_for_consumers(topic, setup)
    return [broker_of(topic, queue_id, setup) for queue_id in range(count)]


def queues_for_consumers(topic: str, setup: Setup) -> int:
    """How many queues of a topic consumers know: of all topics, and of all retries."""
    is_retry = topic.startswith(RETRY_PREFIX)
    return setup.retry_queues if is_retry else setup.topic_queues


def queues_of(op: StartConsumer, setup: Setup) -> list[tuple[str, int]]:
    """All queues that a group's rebalance assigns, those of its retry topic included.

    Source: RebalanceImpl#rebalanceByTopic; every consumer also subscribes its group's
    %RETRY% topic.
    """
    topics = op.topics.split(",")
    if not op.broadcasts:
        topics.append(f"{RETRY_PREFIX}{op.group}")
    return [
        (topic, queue)
        for topic in dict.fromkeys(topics)
        for queue in range(queues_for_consumers(topic, setup))
    ]


def has_room(broker: str) -> bool:
    """Whether a broker's name contains a machine room."""
    return "@" in broker


def room_of_broker(broker: str) -> str:
    """The machine room in a broker's name; ``NO_ROOM`` if there is none."""
    room, at, _ = broker.partition("@")
    return room if at else NO_ROOM


def room_of_client(client: str) -> str:
    """The machine room of a client, one of two; no client is in ``NO_ROOM``."""
    return f"room{1 + sum(client.encode()) % 2}"
