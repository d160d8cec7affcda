"""MessageListenerConcurrently: consumes messages of a queue in any order.

Source: org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently,
ConsumeConcurrentlyStatus, ConsumeConcurrentlyContext, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from crashmq.engine.common.message_ext import MessageExt
from crashmq.engine.common.message_queue import MessageQueue

ACK_ALL = (1 << 31) - 1


class ConsumeConcurrentlyStatus(Enum):
    """The result of a batch. Source: ConsumeConcurrentlyStatus."""

    CONSUME_SUCCESS = "consumed"
    RECONSUME_LATER = "again later"


@dataclass(slots=True)
class ConsumeConcurrentlyContext:
    """What a listener may say about a batch besides its status.

    Attributes:
        delay_level_when_next_consume: for messages to be consumed again; 0: the
            broker chooses, negative: they go to the dead-letter topic at once.
        ack_index: the last message of the batch that was consumed, if it succeeded.
    """

    queue: MessageQueue
    delay_level_when_next_consume: int = 0
    ack_index: int = ACK_ALL


class MessageListenerConcurrently(Protocol):
    """The user's callback of a concurrent consumer."""

    def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus | None:
        """Consume a batch; None, or an ``Exception``: it is tried again later."""
