"""MessageExt: a message as a consumer gets it, decoded from its record.

Source: org.apache.rocketmq.common.message.MessageExt, MessageDecoder#decode, RocketMQ
5.3. Differs: the record itself is kept, since a message that could not be consumed is
sent back to the broker as it was pulled.
"""

from __future__ import annotations

from dataclasses import dataclass

from crashmq.engine.store.message.message import (
    BORN_HOST_V6_FLAG,
    STORE_HOST_V6_FLAG,
)
from crashmq.engine.store.message.message_codec import (
    HEADERS,
    MESSAGE_MAGIC_CODE_V2,
    properties_of,
)

PROPERTY_RETRY_TOPIC = "RETRY_TOPIC"
_SYS_FLAG_AT = slice(36, 40)
NOT_BEGUN = -1


@dataclass(slots=True)
class MessageExt:
    """One pulled message.

    Attributes:
        topic: the topic that the listener sees; for a retry the original one.
        queue_offset: its offset in the queue from which it was pulled.
        reconsume_times: how often its consumption failed.
        consume_start_timestamp: when the listener last got it, ``NOT_BEGUN`` before.
    """

    record: bytes
    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    store_timestamp: int
    reconsume_times: int
    body: bytes
    properties: dict[str, str]
    consume_start_timestamp: int = NOT_BEGUN


def decode_message(record: bytes) -> MessageExt:
    """The message of an intact record. Source: MessageDecoder#decode."""
    sys_flag = int.from_bytes(record[_SYS_FLAG_AT], "big")
    header = HEADERS[
        16 if sys_flag & BORN_HOST_V6_FLAG else 4,
        16 if sys_flag & STORE_HOST_V6_FLAG else 4,
    ]
    fields = header.unpack_from(record)
    topic_at = header.size + fields[16]
    width = 2 if fields[1] == MESSAGE_MAGIC_CODE_V2 else 1
    name_at = topic_at + width
    topic_size = int.from_bytes(record[topic_at:name_at], "big")
    return MessageExt(
        record=record,
        topic=record[name_at : name_at + topic_size].decode(errors="replace"),
        queue_id=fields[3],
        queue_offset=fields[5],
        phy_offset=fields[6],
        store_timestamp=fields[11],
        reconsume_times=fields[14],
        body=record[header.size : topic_at],
        properties=properties_of(record),
    )
