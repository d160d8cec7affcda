"""Messages as a client has them, for the tests of clients."""

from __future__ import annotations

from crashmq.engine.common.message_ext import MessageExt, decode_message
from crashmq.engine.store.message.message import PROPERTY_TAGS, Message
from crashmq.engine.store.message.message_encoder import encode_message


def record_of(
    queue_offset: int, body: bytes = b"x", topic: str = "T", tags: str = ""
) -> bytes:
    """The record of a message, as a broker sends it."""
    properties = {PROPERTY_TAGS: tags} if tags else {}
    message = Message(topic, 0, body, properties)
    return encode_message(message, 1 << 24).placed(queue_offset, 0, 1)


def message_of(queue_offset: int, body: bytes = b"x", tags: str = "") -> MessageExt:
    """One pulled message."""
    return decode_message(record_of(queue_offset, body, tags=tags))
