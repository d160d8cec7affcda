"""The golden stores as a damager sees them: where each field of each file lies.

Nothing here asks a reader of ours. Places come from the manifests that were written
while RocketMQ acknowledged, and from the layouts in RocketMQ's own sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from golden_store import golden

ARCHIVES = tuple(
    sorted(
        path.name.removeprefix("rocketmq-5.3.0-").removesuffix(".tar.xz")
        for path in (Path(__file__).parents[1] / "golden").glob("*.tar.xz")
        if not path.name.endswith("-config.tar.xz")
    )
)
INDEX_SLOTS = 256
INDEX_ENTRIES = 1024
FIRST_THREE = {"kind": "plain", "log_file_size": 65_536, "queue_file_size": 6_000}

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record: its first byte from the record's own, and its width."""

    at: int
    size: int


@dataclass(frozen=True)
class Archive:
    """One golden store; ``rows`` are its messages in the order of the log."""

    name: str
    files: Mapping[str, bytes]
    rows: tuple[Row, ...]
    kind: str
    log_file_size: int
    queue_file_size: int

    @property
    def is_crashed(self) -> bool:
        """Whether its process was halted, so that its abort file is there."""
        return "abort" in self.files

    @cached_property
    def log(self) -> tuple[str, ...]:
        """The log files' paths; of those that hold a record."""
        return tuple(sorted({self.place(row)[0] for row in self.rows}))

    @cached_property
    def queues(self) -> tuple[str, ...]:
        """The paths of all queue files."""
        return tuple(sorted(p for p in self.files if p.startswith("consumequeue/")))

    @cached_property
    def index(self) -> tuple[str, ...]:
        """The paths of all index files."""
        return tuple(sorted(p for p in self.files if p.startswith("index/")))

    def place(self, row: Row) -> tuple[str, int]:
        """The file and byte of a record."""
        base = row["phy_offset"] // self.log_file_size * self.log_file_size
        return f"commitlog/{base:020d}", row["phy_offset"] - base

    def unit(self, row: Row) -> tuple[str, int]:
        """The file and byte of a record's unit in its own queue."""
        at = row["queue_offset"] * 20
        base = at // self.queue_file_size * self.queue_file_size
        folder = f"consumequeue/{row['topic']}/{row['queue_id']}"
        return f"{folder}/{base:020d}", at - base

    def fields(self, row: Row) -> dict[str, Field]:
        """The fields of a record, by MessageDecoder's order of them."""
        path, start = self.place(row)
        data = self.files[path]
        sys_flag = int.from_bytes(data[start + 36 : start + 40], "big")
        body_size = row["body_size"]
        sizes = (
            *(("size", 4), ("magic", 4), ("body_crc", 4), ("queue_id", 4)),
            *(("flag", 4), ("queue_offset", 8), ("phy_offset", 8), ("sys_flag", 4)),
            *(("born_timestamp", 8), ("born_host", 20 if sys_flag & 16 else 8)),
            *(("store_timestamp", 8), ("store_host", 20 if sys_flag & 32 else 8)),
            *(("reconsume_times", 4), ("prepared_transaction_offset", 8)),
            *(("body_length", 4), ("body", body_size), ("topic_length", 1)),
            *(("topic", len(row["topic"])), ("properties_length", 2)),
        )
        fields: dict[str, Field] = {}
        at = 0
        for name, size in sizes:
            fields[name] = Field(at, size)
            at += size
        fields["properties"] = Field(at, row["size"] - at)
        return fields

    def properties(self, row: Row) -> bytes:
        """The raw properties of a record."""
        path, start = self.place(row)
        field = self.fields(row)["properties"]
        return self.files[path][start + field.at : start + row["size"]]

    def filler(self, path: str) -> int:
        """Where the filler of a closed log file begins."""
        inside = [row for row in self.rows if self.place(row)[0] == path]
        return self.place(inside[-1])[1] + int(inside[-1]["size"])

    def entries(self, path: str) -> int:
        """How many entries an index file holds."""
        return int.from_bytes(self.files[path][36:40], "big") - 1

    def entry(self, number: int) -> int:
        """The byte of an index entry, the first of them being number 1."""
        return 40 + 4 * INDEX_SLOTS + 20 * number


@cache
def archive(name: str) -> Archive:
    found = golden(name)
    files = dict(found.files)
    settings = FIRST_THREE | json.loads(files.pop("settings.json", b"{}"))
    return Archive(
        name=name,
        files=files,
        rows=tuple(found.manifest),
        kind=settings["kind"],
        log_file_size=settings["log_file_size"],
        queue_file_size=settings["queue_file_size"],
    )
