"""Converts messages of the models for our engine, and its answers back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.message.message import (
    PROPERTY_CRC32,
    PROPERTY_MULTI_QUEUE_OFFSET,
    Host,
    Message,
)
from crashmq.engine.store.results import GetMessageResult, PutMessageResult
from crashmq.models.messages import MessageToPut, bit_map_at
from crashmq.models.observations import PULL_STATUSES, PUT_STATUSES, Pulled, Put


def message_of(
    message: MessageToPut, body: bytes, properties: dict[str, str]
) -> Message:
    """The engine's message with the same body and properties."""
    return Message(
        message.topic,
        message.queue_id,
        body,
        properties,
        message.born_timestamp,
        message.flag,
        message.sys_flag,
        message.reconsume_times,
        message.prepared_transaction_offset,
        _host(message.born_host),
        _host(message.store_host),
    )


def flawed(body: bytes, messages: Sequence[MessageToPut]) -> bytes:
    """The body of a batch, cut or with a wrong length if its messages say so."""
    last = messages[-1]
    if last.batch is None:
        return body
    told = last.framed(last.batch)
    told = body[: len(body) - len(told)] + told
    return told[: len(told) - last.batch.cut]


@lru_cache(maxsize=1024)
def _host(raw: bytes) -> Host:
    return Host(raw[:-4], int.from_bytes(raw[-4:], "big"))


def bit_map_of(request: DispatchRequest) -> bytes:
    """The bit map of a record, as the models' filter gives it."""
    return bit_map_at(request.commit_log_offset, request.msg_size)


def pulled_of(result: GetMessageResult) -> Pulled:
    """The observation of the engine's answer to a pull."""
    return Pulled(
        PULL_STATUSES[result.status.value],
        result.next_begin_offset,
        result.min_offset,
        result.max_offset,
        result.messages,
    )


_TOLD_BY_FIELDS = frozenset(
    {
        *("TAGS", "KEYS", "UNIQ_KEY", "WAIT", "INNER_MULTI_DISPATCH", "DELAY"),
        *("REAL_TOPIC", "REAL_QID"),
        *(PROPERTY_CRC32, PROPERTY_MULTI_QUEUE_OFFSET),  # each record gets its own
    }
)


def put_of_broker(message: Message) -> MessageToPut:
    """A message that the broker itself puts: a delivery, or one that was sent back."""
    others = {
        name: value
        for name, value in message.properties.items()
        if name not in _TOLD_BY_FIELDS
    }
    said = message.properties
    return MessageToPut(
        message.topic,
        message.queue_id,
        message.body,
        said.get("TAGS", ""),
        said.get("KEYS", ""),
        said.get("UNIQ_KEY", ""),
        said.get("WAIT", "true") != "false",
        message.flag,
        message.sys_flag,
        message.born_timestamp,
        _raw(message.born_host),
        _raw(message.store_host),
        message.reconsume_times,
        message.prepared_transaction_offset,
        said.get("INNER_MULTI_DISPATCH", ""),
        _number(said.get("DELAY", "")),
        user_properties=";".join([f"{name}={others[name]}" for name in others]),
        real_topic=said.get("REAL_TOPIC", ""),
        real_queue_id=_number(said.get("REAL_QID", "")),
        is_delivered=message.is_delivered,
    )


def _number(text: str) -> int:
    return int(text) if text.removeprefix("-").isdecimal() else 0


def _raw(host: Host) -> bytes:
    return host.ip + host.port.to_bytes(4, "big")


def answer_of(result: PutMessageResult) -> Put:
    """The observation of the engine's answer to a put."""
    place = (result.phy_offset, result.size, result.queue_offset)
    return Put(PUT_STATUSES[result.status.value], *place, result.message_ids)
