"""NotifyMessageArrivingListener: notifies held pulls of each dispatched message.

Source: org.apache.rocketmq.broker.longpolling.NotifyMessageArrivingListener, RocketMQ
5.3.
"""

from __future__ import annotations

from crashmq.engine.broker.longpolling.pull_request_hold_service import (
    PullRequestHoldService,
)
from crashmq.engine.store.message_arriving_listener import ArrivedMessage


class NotifyMessageArrivingListener:
    """The listener of a broker."""

    def __init__(self, hold: PullRequestHoldService) -> None:
        self._hold = hold

    def arriving(self, message: ArrivedMessage) -> None:
        """Wake the pulls for which the message may be the answer."""
        self._hold.notify_message_arriving(message)
