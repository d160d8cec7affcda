"""One message with every field decoded, for people and for programs."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any, Final

from crashmq.models.files.record import Record, parse_properties, written_part

_COMPRESSED: Final = 0x1
_FLAGS: Final = (
    (0x1, "compressed"),
    (0x2, "multi-tags"),
    (0x10, "born host IPv6"),
    (0x20, "store host IPv6"),
    (0x40, "need unwrap"),
    (0x80, "inner batch"),
)
_COMPRESSION: Final = {0: "zlib", 1: "LZ4", 2: "ZSTD", 3: "zlib"}
BODY_SHOWN_MAX: Final = 2048
_INFLATED_MAX: Final = 64 << 20


def host_of(raw: bytes) -> str:
    """``address:port`` of a host field of 8 or 20 bytes."""
    address, port = raw[:-4], int.from_bytes(raw[-4:], "big", signed=True)
    text = str(ip_address(address))
    return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"


def message_id_of(record: Record) -> str:
    """The offset message id: the store host and the phy_offset, in hex.

    Source: MessageDecoder#createMessageId.
    """
    return (record.store_host + record.phy_offset.to_bytes(8, "big")).hex().upper()


def flags_of(sys_flag: int) -> list[str]:
    """The names of the bits of a sys_flag."""
    found = [name for bit, name in _FLAGS if sys_flag & bit]
    kind = {0x4: "prepared", 0x8: "commit", 0xC: "rollback"}.get(sys_flag & 0xC)
    return [*found, *([kind] if kind else [])]


def body_of(record: Record) -> bytes:
    """The body, decompressed if it is zlib's; as stored if that fails."""
    raw = bytes(record.body)
    way = _COMPRESSION.get(record.sys_flag >> 8 & 7, "")
    if record.sys_flag & _COMPRESSED and way == "zlib":
        try:
            return zlib.decompressobj().decompress(raw, _INFLATED_MAX)
        except zlib.error:
            return raw
    return raw


def fields_of(record: Record, *, listed_as: tuple[str, int, int] | None = None) -> Any:
    """A message as a JSON object; ``body`` is text, or ``body_hex`` if it is none."""
    topic, queue_id, queue_offset = listed_as or (
        record.topic,
        record.queue_id,
        record.queue_offset,
    )
    said = {
        "topic": topic,
        "queue_id": queue_id,
        "queue_offset": queue_offset,
        "phy_offset": record.phy_offset,
        "size": record.size,
        "message_id": message_id_of(record),
        "store_timestamp": record.store_timestamp,
        "store_host": host_of(record.store_host),
        "born_timestamp": record.born_timestamp,
        "born_host": host_of(record.born_host),
        "flag": record.flag,
        "sys_flag": record.sys_flag,
        "sys_flags": flags_of(record.sys_flag),
        "reconsume_times": record.reconsume_times,
        "prepared_transaction_offset": record.prepared_transaction_offset,
        "body_crc": record.body_crc,
        "properties": parse_properties(written_part(record.properties_raw)),
    }
    body = body_of(record)
    text = _as_text(body)
    said["body_size"] = len(record.body)
    said["body" if text is not None else "body_hex"] = (
        body.hex() if text is None else text
    )
    return said


def lines_of(record: Record) -> Iterator[str]:
    """A message for people, a field a line; a long body is cut."""
    said = fields_of(record)
    body = said.pop("body", None)
    hexed = said.pop("body_hex", None)
    properties = said.pop("properties")
    place = f"{said.pop('topic')}/{said.pop('queue_id')}[{said.pop('queue_offset')}]"
    yield place
    for name, value in said.items():
        shown = ", ".join(value) if isinstance(value, list) else value
        yield f"  {name:28} {shown}"
    for name, value in properties.items():
        yield f"  property {name:19} {value}"
    text = body if body is not None else f"0x{hexed}"
    more = f" ... ({len(text):,} characters)" if len(text) > BODY_SHOWN_MAX else ""
    yield f"  {'body':28} {text[:BODY_SHOWN_MAX]}{more}"


def _as_text(body: bytes) -> str | None:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    is_text = all(sign.isprintable() or sign in "\r\n\t" for sign in text)
    return text if is_text else None
