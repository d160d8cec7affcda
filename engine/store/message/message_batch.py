"""Batches: several messages of one queue in one body, decoded into single ones.

Layout of one message in the body, big-endian: totalSize i32 | magic i32 (0) | bodyCRC
i32 (0) | flag i32 | bodyLength i32, body | propertiesLength i16, properties. The log
gets a record of each; topic, queue, hosts and times are the batch's.

Source: MessageDecoder#encodeMessage, MessageExtEncoder#encode(MessageExtBatch),
RocketMQ 5.3. Differs: a body that is too large or empty, or whose lengths do not add
up, is answered with MESSAGE_ILLEGAL; RocketMQ raises an exception.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from crashmq.engine.store.message.message import (
    PROPERTY_DELAY,
    PROPERTY_SEPARATOR,
    TRANSACTION_MASK,
    Message,
    properties_from_text,
    properties_to_bytes,
)
from crashmq.engine.store.message.message_codec import ends_with_crc
from crashmq.engine.store.message.message_encoder import MessageRejected
from crashmq.engine.store.results import PutMessageStatus

_HEAD = struct.Struct(">iiiii")
_SHORT = struct.Struct(">h")
_PROPERTIES_SIZE_MAX = 32767
_ILLEGAL = PutMessageStatus.MESSAGE_ILLEGAL


class InnerMessage(NamedTuple):
    """The fields that each message of a batch has for itself.

    ``raw``: the bytes of its properties, if it was decoded from a batch.
    """

    body: bytes
    properties: dict[str, str]
    flag: int = 0
    raw: bytes = b""


def encode_batch(messages: Sequence[InnerMessage]) -> bytes:
    """Encode a batch's body as a producer does.

    Raises:
        MessageRejected: PROPERTIES_SIZE_EXCEEDED.
    """
    parts: list[bytes] = []
    for message in messages:
        properties = message.raw or properties_to_bytes(message.properties)
        if len(properties) > _PROPERTIES_SIZE_MAX:
            raise MessageRejected(
                PutMessageStatus.PROPERTIES_SIZE_EXCEEDED,
                f"the properties take {len(properties)} bytes, at most "
                f"{_PROPERTIES_SIZE_MAX} fit their length field.",
            )
        size = _HEAD.size + len(message.body) + _SHORT.size + len(properties)
        parts += [
            _HEAD.pack(size, 0, 0, message.flag, len(message.body)),
            message.body,
            _SHORT.pack(len(properties)),
            properties,
        ]
    return b"".join(parts)


def decode_batch(data: bytes) -> list[InnerMessage]:
    """Decode the messages in a batch's body.

    Raises:
        MessageRejected: MESSAGE_ILLEGAL: the lengths do not add up.
    """
    messages: list[InnerMessage] = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        part = data[at : at + size] if size > 0 else b""
        if len(part) != size or size < _HEAD.size + _SHORT.size:
            raise _not_a_batch(at, f"says it takes {size} bytes")
        _, _, _, flag, body_size = _HEAD.unpack_from(part)
        properties_at = _HEAD.size + body_size + _SHORT.size
        if body_size < 0 or properties_at > size:
            raise _not_a_batch(at, f"says its body takes {body_size} bytes")
        body = part[_HEAD.size : _HEAD.size + body_size]
        (properties_size,) = _SHORT.unpack_from(part, properties_at - _SHORT.size)
        if properties_at + properties_size != size:
            raise _not_a_batch(at, f"says its properties take {properties_size} bytes")
        raw = part[properties_at:]
        properties = properties_from_text(raw.decode(errors="replace"))
        messages.append(InnerMessage(body, properties, flag, raw))
        at += size
    return messages


def expand_batch(batch: Message, max_message_size: int) -> list[Message]:
    """The messages of a batch as single messages, with the batch's properties added.

    Raises:
        MessageRejected: MESSAGE_ILLEGAL.

    Source: CommitLog#asyncPutMessages, MessageExtEncoder#encode(MessageExtBatch).
    """
    if batch.sys_flag & TRANSACTION_MASK or PROPERTY_DELAY in batch.properties:
        raise MessageRejected(_ILLEGAL, "a batch has no transaction and no delay.")
    if len(batch.body) > max_message_size:
        raise MessageRejected(
            _ILLEGAL,
            f"the batch takes {len(batch.body)} bytes, max_message_size is "
            f"{max_message_size}.",
        )
    inner = decode_batch(batch.body)
    if not inner:
        raise MessageRejected(_ILLEGAL, "the batch holds no message.")
    return [
        replace(
            batch,
            body=message.body,
            flag=message.flag,
            properties={**message.properties, **batch.properties},
            raw_properties=_joined(message.raw, batch.properties),
        )
        for message in inner
    ]


def _joined(raw: bytes, of_batch: dict[str, str]) -> bytes:
    """A message's own properties, byte for byte, followed by the batch's.

    b"" if they would end like a record's CRC, which only the store may write.
    """
    if not raw or ends_with_crc(raw):
        return b""
    added = properties_to_bytes(of_batch)
    needs_separator = bool(added) and raw[-1:] != PROPERTY_SEPARATOR.encode()
    return raw + PROPERTY_SEPARATOR.encode() * needs_separator + added


def _not_a_batch(at: int, found: str) -> MessageRejected:
    return MessageRejected(_ILLEGAL, f"the message at byte {at} of the batch {found}.")
