"""MessageArrivingListener: is told of each message once it can be read.

Source: org.apache.rocketmq.store.MessageArrivingListener, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class ArrivedMessage(NamedTuple):
    """A message that was dispatched.

    Attributes:
        logic_offset: the queue_offset after it.
        tags_code: that of its unit; None if unknown.
        msg_store_time: milliseconds since the epoch; 0 if unknown.
        filter_bit_map: as dispatch computed it; None if it computed none.
        properties: those of the message; None if unknown.
    """

    topic: str
    queue_id: int
    logic_offset: int
    tags_code: int | None = None
    msg_store_time: int = 0
    filter_bit_map: bytes | None = None
    properties: Mapping[str, str] | None = None


class MessageArrivingListener(Protocol):
    """Interface: the store calls it for each message once it can be read."""

    def arriving(self, message: ArrivedMessage) -> None:
        """React to a message that can be read from now on."""
