"""Big stores in RocketMQ's layout, with planted damage and a list of what was planted.

    python benchmarks/big_store.py DIR [--record BYTES] [--gib N] [--damages N]

The records lie in log files of 1 GiB, their units in the files of 128 queues, in turns.
A seed chooses where damage lies; there are ten kinds, each planted equally often. Units
are damaged below the middle of the log and records behind it: where a log breaks off, a
reader goes no further, so what is wrong with later units is one finding a queue.
``planted.json`` beside the store names each damage: its kind, file and byte.
"""

from __future__ import annotations

import argparse
import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np

LOG_FILE_SIZE = 1 << 30
QUEUE_FILE_SIZE = 6_000_000
UNIT_SIZE = 20
QUEUES = 128
TOPIC = b"bench"
TAGS_CODE = 3433164  # of "paid"
STORED_FIRST = 1_700_000_000_000
RECORDS_A_MS = 50
PAGE = 4096
HOST = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))
PROPERTIES = b"KEYS\x01order-17\x02TAGS\x01paid\x02UNIQ_KEY\x017F0000010000AC10\x02"
OF_UNITS = (
    *("a bit of phy_offset", "a bit of size", "a bit of tags_code"),
    *("two units exchanged", "a unit of zeros"),
)
OF_RECORDS = (
    *("a bit of a body", "another magic", "another size"),
    *("a page of zeros", "512 bytes of garbage"),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a store is: bytes of a record, log files, and bytes of each."""

    record_size: int
    log_files: int
    log_file_size: int = LOG_FILE_SIZE

    @property
    def per_file(self) -> int:
        """Records of a log file; a BLANK needs 8 bytes behind them."""
        return (self.log_file_size - 8) // self.record_size

    @property
    def records(self) -> int:
        """All records."""
        return self.per_file * self.log_files

    def place(self, index: int) -> tuple[str, int]:
        """The file and byte of a record, by its number in the log."""
        number, row = divmod(index, self.per_file)
        path = f"commitlog/{number * self.log_file_size:020d}"
        return path, row * self.record_size

    def unit(self, index: int) -> tuple[str, int]:
        """The file and byte of its unit."""
        at = index // QUEUES * UNIT_SIZE
        base = at - at % QUEUE_FILE_SIZE
        path = f"consumequeue/{TOPIC.decode()}/{index % QUEUES}/{base:020d}"
        return path, at - base


@dataclass(frozen=True, slots=True)
class Planted:
    """One damage: what it is, and the file and byte where it has to be found."""

    kind: str
    path: str
    byte: int


def record(size: int) -> bytes:
    """One record of so many bytes, of topic ``bench``, at phy_offset 0."""
    body = bytes(range(256)) * (size // 256 + 1)
    body = body[: size - 91 - len(TOPIC) - len(PROPERTIES)]
    head = struct.pack(
        ">iIIiiqqiq8sq8siqi",
        *(size, 0xDAA320A7, crc32(body) & 0x7FFFFFFF, 0, 0, 0, 0, 0),
        *(STORED_FIRST, HOST, STORED_FIRST, HOST, 0, 0, len(body)),
    )
    tail = bytes([len(TOPIC)]) + TOPIC + struct.pack(">h", len(PROPERTIES))
    return head + body + tail + PROPERTIES


def write_store(root: Path, shape: Shape) -> None:
    """A whole store, shut down in order."""
    (root / "commitlog").mkdir(parents=True)
    folders = [root / f"consumequeue/bench/{queue}" for queue in range(QUEUES)]
    for folder in folders:
        folder.mkdir(parents=True)
    for number in range(shape.log_files):
        _write_log_file(root, shape, number)
    for queue, folder in enumerate(folders):
        phys = np.arange(queue, shape.records, QUEUES, dtype=np.int64)
        file, row = np.divmod(phys, shape.per_file)
        units = np.zeros(len(phys), [("p", ">i8"), ("s", ">i4"), ("c", ">i8")])
        units["p"] = file * shape.log_file_size + row * shape.record_size
        units["s"], units["c"] = shape.record_size, TAGS_CODE
        raw = units.tobytes()
        for at in range(0, len(raw), QUEUE_FILE_SIZE):
            part = raw[at : at + QUEUE_FILE_SIZE].ljust(QUEUE_FILE_SIZE, b"\0")
            (folder / f"{at:020d}").write_bytes(part)
    last = STORED_FIRST + (shape.records - 1) // RECORDS_A_MS
    (root / "checkpoint").write_bytes(struct.pack(">2q", last, last).ljust(PAGE, b"\0"))


def _write_log_file(root: Path, shape: Shape, number: int) -> None:
    template = np.frombuffer(record(shape.record_size), np.uint8)
    base, chunk = number * shape.log_file_size, max(1, (64 << 20) // shape.record_size)
    with (root / "commitlog" / f"{base:020d}").open("wb") as file:
        for first in range(0, shape.per_file, chunk):
            rows = np.arange(first, min(first + chunk, shape.per_file), dtype=np.int64)
            index = number * shape.per_file + rows
            data = np.tile(template, (len(rows), 1))
            for at, values, kind in (
                (12, index % QUEUES, ">i4"),
                (20, index // QUEUES, ">i8"),
                (28, base + rows * shape.record_size, ">i8"),
                (56, STORED_FIRST + index // RECORDS_A_MS, ">i8"),
            ):
                raw = np.ascontiguousarray(values.astype(kind)).view(np.uint8)
                width = np.dtype(kind).itemsize
                data[:, at : at + width] = raw.reshape(-1, width)
            file.write(data.tobytes())
        left = shape.log_file_size - shape.per_file * shape.record_size
        file.write(struct.pack(">iI", left, 0xCBD43194).ljust(left, b"\0"))


def plant(root: Path, shape: Shape, damages: int, seed: int) -> list[Planted]:
    """Damage a store; of each kind as many, none near another."""
    chance, each = Random(seed), damages // 10
    planted: list[Planted] = []
    half, strip = shape.records // 2, shape.records // 2 // (5 * each + 1)
    ends = chance.sample(range(QUEUES), min(each, QUEUES))
    for number in range(4 * each):
        # A queue's first hole ends it, so holes come behind all other damage.
        index = int(half * 0.9) // (4 * each) * number + chance.randrange(strip // 2)
        planted.append(_damage_unit(root, shape, OF_UNITS[number % 4], index))
    for queue in ends:
        index = int(half * 0.95) // QUEUES * QUEUES + queue
        planted.append(_damage_unit(root, shape, OF_UNITS[4], index))
    for number in range(5 * each):
        index = half + strip * number + chance.randrange(1 + strip // 4)
        planted.append(_damage_record(root, shape, OF_RECORDS[number % 5], index))
    return planted


def _damage_unit(root: Path, shape: Shape, kind: str, index: int) -> Planted:
    path, at = shape.unit(index)
    if kind == "two units exchanged" and at + UNIT_SIZE >= QUEUE_FILE_SIZE:
        index -= QUEUES
        path, at = shape.unit(index)
    with (root / path).open("r+b") as file:
        file.seek(at)
        unit = bytearray(file.read(2 * UNIT_SIZE))
        if kind == "two units exchanged":
            unit[:20], unit[20:] = unit[20:], unit[:20]
        elif kind == "a unit of zeros":
            unit[:20] = bytes(20)
        else:
            unit[{"phy_offset": 7, "size": 11, "tags_code": 19}[kind.split()[-1]]] ^= 4
        file.seek(at)
        file.write(unit)
    return Planted(kind, path, at)


def _damage_record(root: Path, shape: Shape, kind: str, index: int) -> Planted:
    path, at = shape.place(index)
    with (root / path).open("r+b") as file:
        if kind == "a page of zeros":
            page = at + PAGE - at % PAGE
            file.seek(page)
            file.write(bytes(PAGE))
            return Planted(kind, path, page - page % shape.record_size)
        file.seek(at)
        raw = bytearray(file.read(shape.record_size))
        if kind == "a bit of a body":
            raw[100] ^= 1
        elif kind == "another magic":
            raw[4:8] = b"\xff\xff\xff\xff"
        elif kind == "another size":
            raw[:4] = (shape.record_size + 1).to_bytes(4, "big")
        else:
            garbage = Random(index).randbytes(512)[: shape.record_size - 90]
            raw[90 : 90 + len(garbage)] = garbage
        file.seek(at)
        file.write(raw)
    return Planted(kind, path, at)


def unexpected(
    planted: list[Planted], findings: list[tuple[str, str, int | None]]
) -> tuple[list[Planted], list[tuple[str, str, int | None]]]:
    """What was planted and not found, and what was found and not planted.

    A finding is (law, path, byte). Three consequences are expected: a hole's queue
    lacks units from there on (CQ-4); and where a log broke off, one finding a queue
    says that its last units are past its end (CQ-3), and one that the checkpoint's
    time is (CP-2).
    """
    places = {(one.path, one.byte) for one in planted}
    for one in planted:
        if one.kind == "two units exchanged":
            places.add((one.path, one.byte + UNIT_SIZE))
    found = {(path, byte) for _, path, byte in findings}
    missed = [one for one in planted if (one.path, one.byte) not in found]
    more = [
        one
        for one in findings
        if (one[1], one[2]) not in places and one[0] not in ("CQ-3", "CQ-4", "CP-2")
    ]
    return missed, more


def made(
    root: Path, shape: Shape, damages: int = 0, seed: int = 1
) -> Iterator[Planted]:
    """Write a store, damage it, write down what was planted, and yield that."""
    write_store(root, shape)
    planted = plant(root, shape, damages, seed) if damages else []
    rows = [asdict(one) for one in planted]
    root.with_suffix(".json").write_text(json.dumps(rows, indent=1))
    yield from planted


def main() -> None:
    """Write one store and its list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--record", type=int, default=300, help="bytes of a record")
    parser.add_argument("--gib", type=int, default=1, help="log files of 1 GiB")
    parser.add_argument("--damages", type=int, default=0, help="a multiple of ten")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    shape = Shape(asked.record, asked.gib)
    planted = [*made(asked.directory, shape, asked.damages, asked.seed)]
    print(f"{asked.directory}: {shape.records:,} records, {len(planted):,} damages")


if __name__ == "__main__":
    main()
