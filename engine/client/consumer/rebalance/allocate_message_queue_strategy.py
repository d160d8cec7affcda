"""AllocateMessageQueueStrategy: which queues of a topic are assigned to a client.

Every client of a group computes its own share from the same sorted lists, so that each
queue is in exactly one share.

Source: org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy,
AbstractAllocateMessageQueueStrategy, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.probe import probe

UNKNOWN_CLIENT = probe(
    "allocate.unknown_client", "a client was not among the clients of its group"
)


class AllocationRefused(ValueError):
    """The share cannot be computed; the assignment stays as it is."""


class AllocateMessageQueueStrategy(Protocol):
    """The interface of a strategy."""

    @property
    def name(self) -> str:
        """RocketMQ's name of the strategy."""

    def allocate(
        self,
        group: str,
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
    ) -> list[MessageQueue]:
        """The queues assigned to ``current_cid``, in the order of ``mq_all``.

        Args:
            group: the consumers' group.
            current_cid: the client whose share is computed.
            mq_all: the queues of one topic, sorted.
            cid_all: the clients of the group, sorted.

        Raises:
            AllocationRefused: there are no clients or no queues.
        """


def can_allocate(
    current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]
) -> bool:
    """Whether the client may have a share; False: its share is empty.

    A live client that the broker does not list gets nothing.

    Raises:
        AllocationRefused: an argument is empty.

    Source: AbstractAllocateMessageQueueStrategy#check.
    """
    if not (current_cid and mq_all and cid_all):
        raise AllocationRefused(
            f"cannot divide {len(mq_all)} queues among {len(cid_all)} clients for "
            f"{current_cid!r}: none of the three may be empty. Ask again later."
        )
    if current_cid in cid_all:
        return True
    UNKNOWN_CLIENT.hit()
    return False
