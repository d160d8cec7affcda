"""MessageArrivingListener: learns of each message that can be read from now on.

Source: org.apache.rocketmq.store.MessageArrivingListener, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class ArrivedMessage(NamedTuple):
    """A message that was dispatched.

    Attributes:
        logic_offset: the queue_offset after it.
        tags_code: of its unit; None where nobody knows.
        msg_store_time: milliseconds since the epoch; 0 where nobody knows.
        filter_bit_map: as dispatch computed it; None: it computed none.
        properties: of the message; None where nobody knows.
    """

    topic: str
    queue_id: int
    logic_offset: int
    tags_code: int | None = None
    msg_store_time: int = 0
    filter_bit_map: bytes | None = None
    properties: Mapping[str, str] | None = None


class MessageArrivingListener(Protocol):
    """What a store calls for each message that can be read from now on."""

    def arriving(self, message: ArrivedMessage) -> None:
        """React to a message of a queue that can be read from now on."""
