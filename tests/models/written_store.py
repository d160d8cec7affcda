"""Store files written by hand, for tests: the format's description and nothing else."""

from __future__ import annotations

import struct
import zlib

LOG_FILE_SIZE = 4096
QUEUE_FILE_SIZE = 200
FIRST_MS = 1_700_000_000_000
MAGIC_V1, MAGIC_V2, MAGIC_BLANK = 0xDAA320A7, 0xDAA320AB, 0xCBD43194
HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
# Java's String.hashCode, from the store reference, section 18.
TAGS_CODES = {"": 0, "TagA": 2598919, "payment": -786681338}


def record_bytes(
    phy_offset: int,
    *,
    topic: str = "T0",
    queue_id: int = 0,
    queue_offset: int = 0,
    body: bytes = b"body",
    properties: bytes = b"",
    store_ms: int = FIRST_MS,
    sys_flag: int = 0,
    magic: int = MAGIC_V1,
) -> bytes:
    name = topic.encode()
    born = bytes(12 if sys_flag & 0x10 else 0) + HOST
    store = bytes(12 if sys_flag & 0x20 else 0) + HOST
    topic_length = struct.pack(">B" if magic == MAGIC_V1 else ">H", len(name))
    tail = body + topic_length + name + struct.pack(">H", len(properties)) + properties
    size = 72 + len(born) + len(store) + len(tail)
    crc = zlib.crc32(body) & 0x7FFFFFFF
    head = struct.pack(">iIIii", size, magic, crc, queue_id, 0)
    offsets = struct.pack(">qqi", queue_offset, phy_offset, sys_flag)
    times = struct.pack(">q", FIRST_MS) + born + struct.pack(">q", store_ms) + store
    return head + offsets + times + struct.pack(">iqi", 0, 0, len(body)) + tail


def unit_bytes(phy_offset: int, size: int, tags_code: int = 0) -> bytes:
    return struct.pack(">qiq", phy_offset, size, tags_code)


def slot_bytes(sequence: int, minimum: int, durable: int) -> bytes:
    raw = struct.pack(">IIqqqii", 0x43524D51, 1, sequence, minimum, durable, 4096, 200)
    return raw + struct.pack(">I", zlib.crc32(raw))


def summed_slot_bytes(
    sequence: int, durable: int, dispatched: int, sums: tuple[int, ...]
) -> bytes:
    """A slot of version 2, of a log that begins at 0."""
    fields = (0x43524D51, 2, sequence, 0, durable, 4096, 200, dispatched, len(sums))
    raw = struct.pack(">IIqqqiiqI", *fields) + struct.pack(f">{len(sums)}I", *sums)
    return raw + struct.pack(">I", zlib.crc32(raw))


class WrittenStore:
    """A store of tiny files that grows by one message a ``put``."""

    def __init__(self) -> None:
        self.log = bytearray()
        self.units: dict[tuple[str, int], list[bytes]] = {}
        self.records: list[tuple[int, int]] = []

    def put(
        self,
        topic: str = "T0",
        queue_id: int = 0,
        *,
        body_size: int = 120,
        tags: str = "",
        store_ms: int | None = None,
        sys_flag: int = 0,
        properties: bytes = b"",
    ) -> WrittenStore:
        units = self.units.setdefault((topic, queue_id), [])
        number = len(self.records)
        data = record_bytes(
            0,
            topic=topic,
            queue_id=queue_id,
            queue_offset=len(units),
            body=bytes([number % 250 + 1]) * body_size,
            properties=(f"TAGS\x01{tags}\x02".encode() if tags else b"") + properties,
            store_ms=FIRST_MS + number if store_ms is None else store_ms,
            sys_flag=sys_flag,
        )
        left = LOG_FILE_SIZE - len(self.log) % LOG_FILE_SIZE
        if len(data) + 8 > left:
            filler = struct.pack(">iI", left, MAGIC_BLANK)
            self.log += filler + bytes(left - len(filler))
        phy_offset = len(self.log)
        self.records.append((phy_offset, len(data)))
        self.log += data[:28] + struct.pack(">q", phy_offset) + data[36:]
        units.append(unit_bytes(phy_offset, len(data), TAGS_CODES[tags]))
        return self

    def fill(self, count: int) -> WrittenStore:
        for number in range(count):
            self.put("T0", number % 2, tags=("", "TagA", "payment")[number % 3])
        return self

    def files(self) -> dict[str, bytes]:
        files = _cut("commitlog", bytes(self.log), LOG_FILE_SIZE)
        for (topic, queue_id), units in self.units.items():
            folder = f"consumequeue/{topic}/{queue_id}"
            files.update(_cut(folder, b"".join(units), QUEUE_FILE_SIZE))
        last_ms = FIRST_MS + len(self.records) - 1 if self.records else 0
        head = struct.pack(">5q", last_ms, last_ms, 0, 0, 0).ljust(512, b"\0")
        mark = slot_bytes(7, 0, len(self.log)).ljust(3584, b"\0")
        files["checkpoint"] = head + mark
        files["lock"] = b"lock"
        return files


def _cut(folder: str, data: bytes, size: int) -> dict[str, bytes]:
    count = max(1, -(-len(data) // size))
    padded = data.ljust(count * size, b"\0")
    return {
        f"{folder}/{number * size:020d}": padded[number * size : (number + 1) * size]
        for number in range(count)
    }


def log_path(base: int) -> str:
    return f"commitlog/{base:020d}"


def queue_path(topic: str = "T0", queue_id: int = 0, base: int = 0) -> str:
    return f"consumequeue/{topic}/{queue_id}/{base:020d}"


def patched(
    files: dict[str, bytes], path: str, position: int, data: bytes
) -> dict[str, bytes]:
    """The files with ``data`` at ``position`` of one of them."""
    old = files[path]
    new = old[:position] + data + old[position + len(data) :]
    return {**files, path: new}


def without(files: dict[str, bytes], *paths: str) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if path not in paths}
