"""What of a message the index finds it by: its keys, and their hashes.

A key's text is ``topic#key``: first the message's UNIQ_KEY, then each word of its KEYS,
in order. The index keeps a hash of the text, so whoever finds a record by it must look
whether the record has the key.

Source: org.apache.rocketmq.store.index.IndexService#buildIndex, #buildKey,
IndexFile#indexKeyHashMethod, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from engine.store.dispatch import DispatchRequest
from engine.store.message import (
    PROPERTY_KEYS,
    PROPERTY_UNIQ_KEY,
    TRANSACTION_MASK,
    TRANSACTION_ROLLBACK,
    java_string_hash,
    properties_from_text,
)

KEY_SEPARATOR = " "


@lru_cache(maxsize=4096)
def index_key_hash(topic: str, key: str) -> int:
    """The hash an index keeps of a key: the absolute value of ``topic#key``'s.

    0 for the one hash whose absolute value is no i32.

    Source: IndexFile#indexKeyHashMethod.
    """
    value = abs(java_string_hash(f"{topic}#{key}"))
    return value if value < 0x80000000 else 0


def keys_of(properties: bytes) -> list[str]:
    """The keys that a message's properties name, in order; two alike stand twice."""
    if b"KEY" not in properties:
        return []
    parsed = properties_from_text(properties.decode(errors="replace"))
    unique = parsed.get(PROPERTY_UNIQ_KEY, "")
    words = parsed.get(PROPERTY_KEYS, "").split(KEY_SEPARATOR)
    return [key for key in (unique, *words) if key]


def key_hashes(request: DispatchRequest) -> Iterator[int]:
    """The hash of each key a record is indexed by; a rolled back one has none.

    Source: IndexService#buildIndex.
    """
    if request.sys_flag & TRANSACTION_MASK != TRANSACTION_ROLLBACK:
        for key in keys_of(request.properties):
            yield index_key_hash(request.topic, key)
