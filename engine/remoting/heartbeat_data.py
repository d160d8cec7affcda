"""HeartbeatData: what a client's heartbeat says about its consumers.

Source: org.apache.rocketmq.remoting.protocol.heartbeat.HeartbeatData, ConsumerData,
RocketMQ 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crashmq.engine.remoting.subscription_data import SubscriptionData

MessageModel = Literal["CLUSTERING", "BROADCASTING"]


@dataclass(frozen=True, slots=True)
class ConsumerData:
    """One consumer of a client: its group, and its subscriptions."""

    group: str
    message_model: MessageModel = "CLUSTERING"
    subscriptions: tuple[SubscriptionData, ...] = ()
