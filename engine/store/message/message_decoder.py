"""Decodes a record into the message that it was put as, to put the message again.

Source: org.apache.rocketmq.common.message.MessageDecoder#decode, MessageExt, RocketMQ
5.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from crashmq.engine.store.message.message import (
    BORN_HOST_V6_FLAG,
    STORE_HOST_V6_FLAG,
    Host,
    Message,
    message_id,
)
from crashmq.engine.store.message.message_codec import (
    HEADERS,
    MESSAGE_MAGIC_CODE_V2,
    properties_of,
)


@dataclass(frozen=True, slots=True)
class MessageExt:
    """A stored message: what was put, and what the store added."""

    message: Message
    queue_offset: int
    phy_offset: int
    store_timestamp: int
    store_size: int

    @property
    def message_id(self) -> str:
        """RocketMQ's offsetMsgId: the store host and the record's phy_offset."""
        return message_id(self.message.store_host, self.phy_offset)


def decode_message_ext(record: bytes) -> MessageExt:
    """Decode a record that is known to be intact; broken bytes give nonsense."""
    sys_flag = int.from_bytes(record[36:40], "big")
    header = HEADERS[
        16 if sys_flag & BORN_HOST_V6_FLAG else 4,
        16 if sys_flag & STORE_HOST_V6_FLAG else 4,
    ]
    fields = header.unpack_from(record, 0)
    (size, magic, _, queue_id, flag, queue_offset, phy_offset, _, born_at) = fields[:9]
    born_ip, born_port, stored_at, store_ip, store_port, times, prepared = fields[9:16]
    topic_at = header.size + fields[16]
    name_at = topic_at + (2 if magic == MESSAGE_MAGIC_CODE_V2 else 1)
    topic_size = int.from_bytes(record[topic_at:name_at], "big")
    message = Message(
        record[name_at : name_at + topic_size].decode(),
        queue_id,
        bytes(record[header.size : topic_at]),
        properties_of(record),
        born_at,
        flag,
        sys_flag,
        times,
        prepared,
        Host(born_ip, born_port),
        Host(store_ip, store_port),
    )
    return MessageExt(message, queue_offset, phy_offset, stored_at, size)
