"""Which queues must be assigned among the consumers of a group together.

With most strategies that is every queue of each topic. Where queues are listed by hand
or belong to machine rooms, some may be assigned to no one, or to two: a matter of
configuration. So it is where the members have several strategies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from crashmq.models.brokers import broker_of, has_room, queues_of
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.ops import StartConsumer
from crashmq.models.program import Setup


def covered(
    op: StartConsumer, members: Iterable[StartConsumer], setup: Setup
) -> list[QueueKey]:
    """The queues each of which must be assigned to exactly one of ``members``.

    Source: AllocateMessageQueueByConfig, AllocateMessageQueueByMachineRoom.
    """
    queues, members = queues_of(op, setup), [*members]
    if op.broadcasts:
        return queues
    if len({member.strategy for member in members}) > 1:
        return []
    if op.strategy == "MACHINE_ROOM":
        return [queue for queue in queues if has_room(broker_of(*queue, setup))]
    if op.strategy == "CONFIG":
        told = Counter([q for one in members for q in {*listed_queues(one)}])
        return [queue for queue in queues if told[queue] == 1]
    return queues


def listed_queues(op: StartConsumer) -> list[QueueKey]:
    """The queues in a consumer's list; entries that name no queue are left out."""
    found = []
    for one in op.listed.split(","):
        topic, _, number = one.rpartition("/")
        if topic and number.isdecimal():
            found.append((topic, int(number)))
    return found


def listing(queues: Iterable[QueueKey]) -> str:
    """The text of a list of these queues."""
    return ",".join([f"{topic}/{queue_id}" for topic, queue_id in queues])
