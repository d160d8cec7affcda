"""The keys by which the index finds a message, and their hashes.

A key's text is ``topic#key``: first the message's UNIQ_KEY, then each word of its KEYS,
in order. The index stores only a hash of the text, so a query must check that the
record it finds has the key.

Source: org.apache.rocketmq.store.index.IndexService#buildIndex, #buildKey,
IndexFile#indexKeyHashMethod, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.message.message import (
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_KEY,
    TRANSACTION_MASK,
    TRANSACTION_ROLLBACK,
    java_string_hash,
    properties_from_text,
)

KEY_SEPARATOR = " "


@lru_cache(maxsize=4096)
def index_key_hash(topic: str, key: str) -> int:
    """The hash that the index stores: the absolute value of the hash of ``topic#key``.

    0 where the absolute value does not fit an i32.

    Source: IndexFile#indexKeyHashMethod.
    """
    value = abs(java_string_hash(f"{topic}#{key}"))
    return value if value < 0x80000000 else 0


def keys_of(properties: bytes) -> list[str]:
    """The keys in a message's properties: UNIQ_KEY, then KEYS, with duplicates."""
    if b"KEY" not in properties:
        return []
    parsed = properties_from_text(properties.decode(errors="replace"))
    unique = parsed.get(PROPERTY_UNIQ_KEY, "")
    words = parsed.get(PROPERTY_KEYS, "").split(KEY_SEPARATOR)
    return [key for key in (unique, *words) if key]


def tag_hash(request: DispatchRequest) -> int | None:
    """The hash by which RocketMQ 5.4.0 and later index a record's tags; None if none.

    Source: IndexService#buildIndex, MessageConst#INDEX_TAG_TYPE.
    """
    is_rolled_back = request.sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK
    if is_rolled_back or b"TAGS" not in request.properties:
        return None
    properties = properties_from_text(request.properties.decode(errors="replace"))
    tags = properties.get(PROPERTY_TAGS, "")
    return index_key_hash(request.topic, f"T#{tags}") if tags else None


def key_hashes(request: DispatchRequest) -> Iterator[int]:
    """The hash of each key that a record is indexed by; none if it was rolled back.

    Source: IndexService#buildIndex.
    """
    if request.sys_flag & TRANSACTION_MASK != TRANSACTION_ROLLBACK:
        for key in keys_of(request.properties):
            yield index_key_hash(request.topic, key)
