"""MessageListenerOrderly: consumes the messages of a queue one after the other.

Source: org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly,
ConsumeOrderlyStatus, ConsumeOrderlyContext, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from crashmq.engine.common.message_ext import MessageExt
from crashmq.engine.common.message_queue import MessageQueue

BY_CONFIG = -1


class ConsumeOrderlyStatus(Enum):
    """The result of a batch; ``ROLLBACK`` and ``COMMIT`` only without ``auto_commit``.

    Source: ConsumeOrderlyStatus.
    """

    SUCCESS = "consumed"
    ROLLBACK = "all since the last commit again"
    COMMIT = "consumed, and all before it"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "again in a moment"


@dataclass(slots=True)
class ConsumeOrderlyContext:
    """What a listener may say about a batch besides its status.

    Attributes:
        auto_commit: a success commits at once, and not only a ``COMMIT``.
        suspend_current_queue_time_millis: how long the queue pauses after a failure, in
            ms.
    """

    queue: MessageQueue
    auto_commit: bool = True
    suspend_current_queue_time_millis: int = BY_CONFIG


class MessageListenerOrderly(Protocol):
    """The user's callback of an orderly consumer."""

    def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus | None:
        """Consume a batch; None, or an ``Exception``: it is tried again soon."""
