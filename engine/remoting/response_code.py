"""ResponseCode: the outcome of a request to a broker.

Source: org.apache.rocketmq.remoting.protocol.ResponseCode, RocketMQ 5.3.
"""

from __future__ import annotations

from enum import Enum


class ResponseCode(Enum):
    """The outcome of a request; the values are RocketMQ's in its protocol."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    PULL_NOT_FOUND = 19
    PULL_RETRY_IMMEDIATELY = 20
    PULL_OFFSET_MOVED = 21
    QUERY_NOT_FOUND = 22
    SUBSCRIPTION_PARSE_FAILED = 23
    SUBSCRIPTION_NOT_EXIST = 24
    SUBSCRIPTION_NOT_LATEST = 25
    SUBSCRIPTION_GROUP_NOT_EXIST = 26
    FILTER_DATA_NOT_EXIST = 27
    FILTER_DATA_NOT_LATEST = 28
    INVALID_PARAMETER = 29
    FLOW_CONTROL = 215
