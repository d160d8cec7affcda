"""Stores of every kind of record, ours or RocketMQ's, and what each must serve."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import our_stores
from our_stores import dispatched

from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.message.message import Host, Message
from crashmq.engine.store.message.message_batch import InnerMessage, encode_batch
from crashmq.engine.store.message_store import MessageStore
from crashmq.models.files.store_image import decode_record

NOW_MS = 1_800_000_000_000
LOCAL = Host(b"\x7f\x00\x00\x01", 10911)
V6 = Host(b"\x20\x01\x0d\xb8" + bytes(11) + b"\x01", 10911)
LIGHT = (None, "%LMQ%a", "%LMQ%b", "%LMQ%a,%LMQ%b", "%LMQ%c")
BATCH_MAX = 5

Row = dict[str, Any]


def settings_of(root: Path) -> Row:
    """How a golden store was made; the line of ``make.py`` beside it."""
    found: Row = json.loads((root.parent / "settings.json").read_text("utf-8"))
    return found


def config_for(settings: Row) -> StoreConfig:
    """Our configuration for a store made so."""
    return StoreConfig(
        mapped_file_size_commit_log=settings["log_file_size"],
        mapped_file_size_consume_queue=settings["queue_file_size"],
        message_index_enable=True,
        max_hash_slot_num=256,
        max_index_num=1_024,
        enable_multi_dispatch=settings["kind"] == "lmq",
        enabled_append_prop_crc=settings["kind"] == "crc",
    )


def started(root: Path, config: StoreConfig) -> MessageStore:
    """Our store, started on a directory when its messages are old."""
    return our_stores.started(root, config, NOW_MS)


def put_more(store: MessageStore, kind: str, first: int, count: int) -> list[Row]:
    """Put messages [first, first + count) of one kind; a row each, in append order."""
    rows: list[Row] = []
    number = first
    while number < first + count:
        if kind == "batch":
            size = min(1 + number % BATCH_MAX, first + count - number)
            rows += put_batch(store, number, size)
            number += size
        else:
            rows.append(put_one(store, kind, number))
            number += 1
    dispatched(store)
    return rows


def put_one(store: MessageStore, kind: str, number: int) -> Row:
    message = message_of(kind, number)
    result = store.put_message(message)
    assert result.is_appended, (number, result)
    light = message.properties.get("INNER_MULTI_DISPATCH")
    return row_of(message, result.phy_offset, result.size, result.queue_offset, light)


def put_batch(store: MessageStore, first: int, count: int) -> list[Row]:
    inner = [message_of("batch", number) for number in range(first, first + count)]
    place = inner[0]
    body = encode_batch([InnerMessage(one.body, one.properties) for one in inner])
    batch = Message(place.topic, place.queue_id, body, {}, NOW_MS)
    result = store.put_messages(batch)
    assert result.is_appended, (first, result)
    ends = [*result.phy_offsets[1:], result.end_offset]
    return [
        row_of(
            Message(place.topic, place.queue_id, one.body),
            at,
            end - at,
            result.queue_offset + n,
            None,
        )
        for n, (one, at, end) in enumerate(
            zip(inner, result.phy_offsets, ends, strict=True)
        )
    ]


def message_of(kind: str, number: int) -> Message:
    properties = {"TAGS": "已付款💰", "KEYS": f"K{number}"} if number % 5 else {}
    if kind == "lmq" and (light := LIGHT[number % 5]):
        properties["INNER_MULTI_DISPATCH"] = light
    return Message(
        topic=("orders", "payments", "audit-log")[number % 3],
        queue_id=number % 2,
        body=b"%07d" % number * (number % 40),
        properties=properties,
        born_timestamp=NOW_MS,
        born_host=V6 if kind == "ipv6" and number % 2 == 0 else LOCAL,
        store_host=V6 if kind == "ipv6" and number % 3 else LOCAL,
    )


def row_of(
    message: Message, phy_offset: int, size: int, queue_offset: int, light: str | None
) -> Row:
    return {
        "topic": message.topic,
        "queue_id": message.queue_id,
        "queue_offset": queue_offset,
        "phy_offset": phy_offset,
        "size": size,
        "body_sha1": hashlib.sha1(message.body, usedforsecurity=False).hexdigest(),
        "lmq": light,
    }


def by_place(rows: Sequence[Row]) -> list[Row]:
    """What a reader must be served, by topic, queue and offset.

    A message stands once in its own queue and once in each light queue it names.
    """
    names = ("topic", "queue_id", "queue_offset", "phy_offset", "size", "body_sha1")
    told = [{name: row[name] for name in names} for row in rows]
    counts: dict[str, int] = {}
    for row, own in zip(list(rows), list(told), strict=True):
        for light in row["lmq"].split(",") if row.get("lmq") else ():
            offset = counts.get(light, 0)
            place = {"topic": light, "queue_id": 0, "queue_offset": offset}
            told.append(own | place)
            counts[light] = offset + 1
    return sorted(told, key=lambda row: tuple(row.values()))


def all_served(store: MessageStore, rows: Sequence[Row]) -> list[Row]:
    """All that our store serves of the queues that the rows name."""
    queues = sorted({(row["topic"], row["queue_id"]) for row in by_place(rows)})
    return [row for queue in queues for row in served(store, *queue)]


def served(store: MessageStore, topic: str, queue_id: int) -> Iterator[Row]:
    """Every message of one queue, decoded by a reader that is not the store's."""
    first = store.get_message(topic, queue_id, 0, 1)
    at, end = first.min_offset, first.max_offset
    while at < end:
        result = store.get_message(topic, queue_id, at, 32)
        for number, message in enumerate(result.messages):
            record = decode_record(message)
            yield {
                "topic": topic,
                "queue_id": queue_id,
                "queue_offset": at + number,
                "phy_offset": record.phy_offset,
                "size": record.size,
                "body_sha1": hashlib.sha1(
                    record.body, usedforsecurity=False
                ).hexdigest(),
            }
        assert result.next_begin_offset > at, result
        at, end = result.next_begin_offset, result.max_offset


Reader = Callable[..., list[Row]]
RunClient = Callable[..., str]
