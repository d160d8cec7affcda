"""Stores that Apache RocketMQ wrote, unpacked where a test may damage them."""

from __future__ import annotations

import json
import struct
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_GOLDEN = Path(__file__).parents[1] / "golden"
LOG_FILE_SIZE = 65536
QUEUE = "consumequeue/audit-log/0/00000000000000000000"


@dataclass(frozen=True)
class Golden:
    """One archive: its files by path, and what was acknowledged, in append order."""

    files: dict[str, bytes]
    manifest: list[dict[str, Any]]

    def unpack(self, root: Path) -> Path:
        for path, data in self.files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        return root


@cache
def golden(name: str) -> Golden:
    files: dict[str, bytes] = {}
    with tarfile.open(_GOLDEN / f"rocketmq-5.3.0-{name}.tar.xz") as archive:
        for member in archive:
            opened = archive.extractfile(member)
            if opened is not None:
                files[member.name.removeprefix("./")] = opened.read()
    manifest = [json.loads(line) for line in files.pop("manifest.jsonl").splitlines()]
    inside = {path.removeprefix("store/"): data for path, data in files.items()}
    return Golden(inside, manifest)


class Damaged:
    """A copy of the clean store, and the pen to damage it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.message = golden("clean").manifest[500]

    def place(self, number: int = 500) -> tuple[str, int]:
        """The file and byte of a message's record."""
        phy_offset = golden("clean").manifest[number]["phy_offset"]
        base = phy_offset // LOG_FILE_SIZE * LOG_FILE_SIZE
        return f"commitlog/{base:020d}", phy_offset - base

    def write(self, path: str, at: int, data: bytes) -> None:
        file = self.root / path
        old = file.read_bytes()
        file.write_bytes(old[:at] + data + old[at + len(data) :])

    def flip(self, path: str, at: int) -> None:
        self.write(path, at, bytes([(self.root / path).read_bytes()[at] ^ 0xFF]))

    def in_record(self, at: int, data: bytes | None = None, number: int = 500) -> None:
        """Write over a record from its byte ``at`` on, or flip that byte."""
        path, start = self.place(number)
        if data is None:
            self.flip(path, start + at)
        else:
            self.write(path, start + at, data)

    def cut(self, path: str, size: int) -> None:
        file = self.root / path
        file.write_bytes(file.read_bytes()[:size])

    def swap(self, path: str, at: int, other: int, size: int) -> None:
        data = (self.root / path).read_bytes()
        self.write(path, at, data[other : other + size])
        self.write(path, other, data[at : at + size])

    def write_new(self, path: str) -> None:
        (self.root / path).write_bytes(b"x")

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def copy_record_over(self, number: int, other: int) -> None:
        path, start = self.place(number)
        size = golden("clean").manifest[number]["size"]
        data = (self.root / path).read_bytes()[start : start + size]
        self.write(*self.place(other), data)


Damage = Callable[[Damaged], None]


def i32(number: int) -> bytes:
    return struct.pack(">i", number)


def i64(number: int) -> bytes:
    return struct.pack(">q", number)
