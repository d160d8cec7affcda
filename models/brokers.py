"""Brokers: the names under which consumers know the queues of one store.

A store stands for one broker, or for several, each with some of the queues of every
topic. Two of these say in which machine room they are, the third one does not.
"""

from __future__ import annotations

from typing import Final

from crashmq.models.program import Setup

ONE: Final = ("broker-a",)
SEVERAL: Final = ("room1@broker-a", "room2@broker-b", "broker-c")
NO_ROOM: Final = "room0"
RETRY_PREFIX: Final = "%RETRY%"


def broker_of(topic: str, queue_id: int, setup: Setup) -> str:
    """The name of the broker that a queue is of; the first one has retry topics."""
    if setup.brokers == 1:
        return ONE[0]
    if topic.startswith(RETRY_PREFIX):
        return SEVERAL[0]
    number = min(queue_id, setup.topic_queues - 1)
    return SEVERAL[number * setup.brokers // setup.topic_queues]


def has_room(broker: str) -> bool:
    """Whether a broker's name says in which machine room it is."""
    return "@" in broker


def room_of_broker(broker: str) -> str:
    """The machine room of a broker; ``NO_ROOM`` if its name says none."""
    room, at, _ = broker.partition("@")
    return room if at else NO_ROOM


def room_of_client(client: str) -> str:
    """The machine room of a client, one of two; no client is in ``NO_ROOM``."""
    return f"room{1 + sum(client.encode()) % 2}"
