"""SubscriptionData: a consumer's subscription to one topic.

Source: org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData, FilterAPI,
RocketMQ 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ExpressionType = Literal["TAG", "SQL92"]
SUB_ALL = "*"


@dataclass(frozen=True, slots=True)
class SubscriptionData:
    """One subscription.

    Attributes:
        sub_string: the expression as it was given.
        tags: the tags of a TAG expression, sorted; empty: every message.
        codes: the signed 32-bit hashes of the tags, sorted.
        sub_version: milliseconds since the epoch; the newest one is in effect.
    """

    topic: str
    sub_string: str = SUB_ALL
    tags: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    sub_version: int = 0
    expression_type: ExpressionType = "TAG"
