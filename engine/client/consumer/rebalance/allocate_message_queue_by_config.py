"""AllocateMessageQueueByConfig: a configured list of queues.

It is up to the configuration whether each queue is in exactly one list.

Source: org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig,
RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crashmq.engine.common.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class AllocateMessageQueueByConfig:
    """A fixed list of queues, whatever queues and clients there are."""

    message_queue_list: tuple[MessageQueue, ...] = ()

    @property
    def name(self) -> str:
        """RocketMQ's name of the strategy."""
        return "CONFIG"

    def allocate(
        self,
        group: str,  # noqa: ARG002 - of the port, as the next three
        current_cid: str,  # noqa: ARG002
        mq_all: Sequence[MessageQueue],  # noqa: ARG002
        cid_all: Sequence[str],  # noqa: ARG002
    ) -> list[MessageQueue]:
        """The list; nothing is refused. Source: #allocate."""
        return list(self.message_queue_list)
