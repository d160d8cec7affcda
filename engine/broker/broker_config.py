"""BrokerConfig, the part this broker honours, with RocketMQ's defaults.

Source: org.apache.rocketmq.common.BrokerConfig, RocketMQ 5.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass

_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The configuration of one broker; times in milliseconds.

    Attributes:
        is_readable: the broker's permission to read, from ``brokerPermission``.
        long_polling_enable: whether arriving messages wake held pulls; otherwise
            each is held for ``short_polling_time_mills`` and then checked.
        enable_property_filter: groups may subscribe by SQL92 expressions.
        enable_calc_filter_bit_map: dispatch evaluates the groups' expressions on
            each message and stores the result as a bit map in consumequeue_ext, if
            that is on.
        max_error_rate_of_bloom_filter: in percent.
        expect_consumer_num_use_filter: how many groups are expected to filter one
            topic.
        filter_support_retry: a message that a group sent back is filtered again, by
            the group's expression for the original topic.
        filter_data_clean_time_span: how long the filter of a group without members is
            kept, in ms.
    """

    is_readable: bool = True
    lite_pull_message_enable: bool = True
    long_polling_enable: bool = True
    short_polling_time_mills: int = 1000
    enable_property_filter: bool = False
    enable_calc_filter_bit_map: bool = False
    max_error_rate_of_bloom_filter: int = 20
    expect_consumer_num_use_filter: int = 32
    filter_support_retry: bool = False
    filter_data_clean_time_span: int = _DAY_MS
