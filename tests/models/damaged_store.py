"""A written store, ways to damage it, and the laws it then breaks."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import strategies as st
from written_store import WrittenStore, log_path, patched, queue_path

from crashmq.models.files.store_image import read_store
from crashmq.models.laws.file_laws import FILE_LAWS
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import declared_laws
from crashmq.models.verdict import Violation

STORE = WrittenStore().fill(60)
FILES = STORE.files()
END = len(STORE.log)
Q0 = queue_path()


def judged(files: dict[str, bytes], **known: Any) -> Judged:
    image = read_store(files)
    known.setdefault("reput_from_offset", image.commit_log.max_phy_offset)
    return Judged(image, **known)


def broken(files: dict[str, bytes], **known: Any) -> set[str]:
    asked = judged(files, **known)
    return {law.id for law in FILE_LAWS if law.violations(asked)}


def first(law: str, files: dict[str, bytes], **known: Any) -> Violation:
    violation: Violation = declared_laws()[law].violations(judged(files, **known))[0]
    return violation


def in_record(number: int, at: int, data: bytes) -> dict[str, bytes]:
    """The files with one field of one record written over."""
    phy_offset = STORE.records[number][0]
    base = phy_offset // 4096 * 4096
    return patched(FILES, log_path(base), phy_offset - base + at, data)


def in_unit(number: int, data: bytes, at: int = 0) -> dict[str, bytes]:
    """The files with a part of one unit of T0/0 written over."""
    base = number // 10 * 200
    return patched(FILES, queue_path(base=base), number * 20 - base + at, data)


def i64(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


_NAMES = st.sampled_from([*sorted(FILES), "abort", "commitlog/1", log_path(1 << 62)])


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, int, bytes, int]:
    """(path, byte, what to write there, length of the file or -1)."""
    length = draw(st.sampled_from([-1, -1, -1, 0, 7, 127, 4000]))
    return (
        draw(_NAMES),
        draw(st.integers(0, 4095)),
        draw(st.binary(max_size=24)),
        length,
    )


def damaged(done: list[tuple[str, int, bytes, int]]) -> dict[str, bytes]:
    files = dict(FILES)
    for path, at, data, length in done:
        files = patched({path: b"", **files}, path, at, data)
        if length >= 0:
            files[path] = files[path][:length]
    return files
