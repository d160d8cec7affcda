"""The request to pull messages of one queue, and its answer.

Source: PullMessageRequestHeader, PullMessageResponseHeader, PullSysFlag, RocketMQ 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.remoting.subscription_data import SUB_ALL, ExpressionType


class PullSysFlag(IntFlag):
    """The bits of a pull's sysFlag. Source: PullSysFlag."""

    NONE = 0
    COMMIT_OFFSET = 0x1
    SUSPEND = 0x2
    SUBSCRIPTION = 0x4
    CLASS_FILTER = 0x8
    LITE_PULL_MESSAGE = 0x10


@dataclass(frozen=True, slots=True)
class PullMessageRequest:
    """One pull, as a client sends it.

    Attributes:
        commit_offset: only valid with the flag ``COMMIT_OFFSET``.
        suspend_timeout_millis: how long the broker may hold it, with the flag
            ``SUSPEND``.
        subscription: the expression; only valid with the flag ``SUBSCRIPTION``, else
            the broker uses that of the consumer's heartbeat.
        broker_life: the run of the broker from which the client got its present offset
            in the queue; 0: unknown.
    """

    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int = 32
    sys_flag: PullSysFlag = PullSysFlag.NONE
    commit_offset: int = 0
    suspend_timeout_millis: int = 15_000
    subscription: str = SUB_ALL
    sub_version: int = 0
    expression_type: ExpressionType = "TAG"
    client_id: str = ""
    broker_life: int = 0


@dataclass(frozen=True, slots=True)
class PullMessageResponse:
    """The answer to a pull; ``messages`` are records as they are in the log.

    ``broker_life`` is the run of the broker that answers, or 0.
    """

    code: ResponseCode
    next_begin_offset: int = 0
    min_offset: int = 0
    max_offset: int = 0
    messages: tuple[bytes, ...] = ()
    remark: str = ""
    broker_life: int = 0
