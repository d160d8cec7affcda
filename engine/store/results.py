"""Statuses and results of put and get, under RocketMQ's names.

Source: org.apache.rocketmq.store.PutMessageStatus, GetMessageStatus, RocketMQ 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from crashmq.engine.store.message.message import LOCAL_STORE, Host, message_id


class PutMessageStatus(Enum):
    """The outcome of a put. Only PUT_OK acknowledges the message."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"


class PutMessageResult(NamedTuple):
    """The answer to a put; offsets are -1 unless the record is in the log.

    For a batch they are the first record's, and ``size`` is that of all its records.
    ``phy_offsets`` has one offset for each message that was put.
    """

    status: PutMessageStatus
    phy_offset: int = -1
    size: int = -1
    queue_offset: int = -1
    phy_offsets: tuple[int, ...] = ()
    store_host: Host = LOCAL_STORE

    @property
    def message_ids(self) -> tuple[str, ...]:
        """RocketMQ's id of each message; a client gets them joined by commas."""
        return tuple(message_id(self.store_host, at) for at in self.phy_offsets)

    @property
    def is_appended(self) -> bool:
        """Whether the record is in the log, acknowledged or not."""
        return self.phy_offset >= 0

    @property
    def end_offset(self) -> int:
        """First byte after the record."""
        return self.phy_offset + self.size


class GetMessageStatus(Enum):
    """The outcome of a read of a queue."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_RESET = "OFFSET_RESET"  # a broker's: no read of a queue comes to it


@dataclass(frozen=True, slots=True)
class QueryMessageResult:
    """Records that have a key, in log order."""

    messages: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class GetMessageResult:
    """Records of one queue by queue_offset, and where the next read goes on.

    ``min_offset`` and ``max_offset`` are the queue's bounds when the read began.
    """

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: tuple[bytes, ...] = ()
