"""BrokerConfig, the part this broker honours, with RocketMQ's defaults.

Source: org.apache.rocketmq.common.BrokerConfig, RocketMQ 5.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The configuration of one broker; times in milliseconds.

    Attributes:
        is_readable: the broker's permission to read, of ``brokerPermission``.
        long_polling_enable: whether held pulls are woken by messages that arrive; else
            each is held for ``short_polling_time_mills``, and looked at as often.
    """

    is_readable: bool = True
    lite_pull_message_enable: bool = True
    long_polling_enable: bool = True
    short_polling_time_mills: int = 1000
