"""AllocateMessageQueueStrategy: which queues of a topic are a client's.

Every client of a group computes its own share, of the same sorted lists: only so is
each queue in exactly one share.

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
    """Nothing can be divided; the assignment stays as it is."""


class AllocateMessageQueueStrategy(Protocol):
    """One way to divide."""

    @property
    def name(self) -> str:
        """Its name, as RocketMQ has it."""

    def allocate(
        self,
        group: str,
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
    ) -> list[MessageQueue]:
        """The queues of ``current_cid``, in the order of ``mq_all``.

        Args:
            group: the consumers' group.
            current_cid: the client that asks.
            mq_all: the queues of one topic, sorted.
            cid_all: the clients of the group, sorted.

        Raises:
            AllocationRefused: there is nobody, or nothing, to divide among.
        """


def can_allocate(
    current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]
) -> bool:
    """Whether there is a share to compute; False: it is empty.

    A client that the broker does not know gets nothing, though it lives.

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
