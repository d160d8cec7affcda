"""A message as a producer hands it over, and the hashes RocketMQ takes of text.

Source: org.apache.rocketmq.common.message.MessageExtBrokerInner, MessageSysFlag,
MessageDecoder, RocketMQ 5.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

PROPERTY_KEYS = "KEYS"
PROPERTY_TAGS = "TAGS"
PROPERTY_UNIQ_KEY = "UNIQ_KEY"
PROPERTY_WAIT_STORE_OK = "WAIT"

NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"

BORN_HOST_V6_FLAG = 0x10
STORE_HOST_V6_FLAG = 0x20
TRANSACTION_MASK = 0xC
TRANSACTION_NOT_TYPE = 0x0
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC


@dataclass(frozen=True, slots=True)
class Host:
    """An address as RocketMQ stores it: 4 or 16 raw bytes of IP, and a port."""

    ip: bytes
    port: int

    def __post_init__(self) -> None:
        if len(self.ip) not in (4, 16):
            raise ValueError(
                f"a host has an IP of 4 or 16 bytes, this one has {len(self.ip)}."
            )


LOCAL_BORN = Host(b"\x7f\x00\x00\x01", 10911)
LOCAL_STORE = Host(b"\x7f\x00\x00\x01", 10912)


@dataclass(frozen=True, slots=True)
class Message:
    """One message; ``born_timestamp`` is the producer's clock in milliseconds."""

    topic: str
    queue_id: int
    body: bytes
    properties: dict[str, str] = field(default_factory=dict)
    born_timestamp: int = 0
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    born_host: Host = LOCAL_BORN
    store_host: Host = LOCAL_STORE

    @property
    def waits_for_store(self) -> bool:
        """Whether the producer waits for the flush under SYNC_FLUSH."""
        return self.properties.get(PROPERTY_WAIT_STORE_OK, "true") != "false"


_TOPIC = re.compile(r"[%|a-zA-Z0-9_-]+")


@lru_cache(maxsize=4096)
def is_topic(text: str) -> bool:
    """Whether RocketMQ lets a topic have this name; it is a directory's name too.

    Source: org.apache.rocketmq.common.topic.TopicValidator.
    """
    return _TOPIC.fullmatch(text) is not None


def java_string_hash(text: str) -> int:
    """Java's ``String.hashCode``: over UTF-16 code units, wrapped to signed 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - 0x100000000 if value & 0x80000000 else value


@lru_cache(maxsize=4096)
def tags_code(tags: str) -> int:
    """What a queue's unit says of a message's TAGS: their Java hash, 0 if untagged.

    Source: MessageExtBrokerInner#tagsString2tagsCode.
    """
    return java_string_hash(tags) if tags else 0


def properties_to_bytes(properties: dict[str, str]) -> bytes:
    """Properties as they lie in a record: ``name 0x01 value 0x02`` each.

    Source: MessageDecoder#messageProperties2String.
    """
    return "".join(
        [
            f"{name}{NAME_VALUE_SEPARATOR}{value}{PROPERTY_SEPARATOR}"
            for name, value in properties.items()
        ]
    ).encode()


def properties_from_text(text: str) -> dict[str, str]:
    """Properties as a reader takes them: the last of two alike wins, empty ones drop.

    Source: MessageDecoder#string2messageProperties.
    """
    out: dict[str, str] = {}
    for piece in text.split(PROPERTY_SEPARATOR):
        name, separator, value = piece.partition(NAME_VALUE_SEPARATOR)
        if separator and name and value:
            out[name] = value
    return out
