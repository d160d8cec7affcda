"""PullRequest: a pull that the broker holds.

Source: org.apache.rocketmq.broker.longpolling.PullRequest, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crashmq.engine.remoting.pull_message import PullMessageRequest, PullMessageResponse
from crashmq.engine.store.message_filter import MessageFilter


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull that found nothing, with the callback for its answer.

    Attributes:
        timeout_millis: how long it may be held.
        suspend_timestamp: when it was held, in milliseconds since the epoch.
        pull_from_this_offset: it waits for messages at or past this queue_offset.
    """

    request: PullMessageRequest
    answer: Callable[[PullMessageResponse], None]
    timeout_millis: int
    suspend_timestamp: int
    pull_from_this_offset: int
    message_filter: MessageFilter
