"""Views of mapped files that know their holes, so that these are not read."""

from __future__ import annotations

import mmap
from bisect import bisect_right

from crashmq.models.files.record import Bytes

_CHUNK = 1 << 20


class SparseMap(mmap.mmap):
    """A mapped file; outside the ranges in ``extents`` it has only holes."""

    extents: tuple[tuple[int, int], ...] = ()


def is_mapped_file(data: Bytes) -> bool:
    """Whether ``data`` is a view of a whole mapped file, and so may be large."""
    return isinstance(data, memoryview) and isinstance(data.obj, SparseMap)


def let_go(data: Bytes) -> None:
    """Release the memory of a mapped file's pages; reading loads them again."""
    source = data.obj if isinstance(data, memoryview) else None
    if isinstance(source, SparseMap) and hasattr(mmap, "MADV_DONTNEED"):
        source.madvise(mmap.MADV_DONTNEED)


def next_data(data: Bytes, position: int) -> int:
    """The first byte from ``position`` on outside holes; the length if none is."""
    source = data.obj if isinstance(data, memoryview) else None
    if not isinstance(source, SparseMap) or len(source) != len(data):
        return position
    number = bisect_right(source.extents, (position, len(data))) - 1
    if number >= 0 and position < source.extents[number][1]:
        return position
    if number + 1 < len(source.extents):
        return source.extents[number + 1][0]
    return len(data)


def written_size(data: Bytes, start: int = 0, end: int | None = None) -> int:
    """The position after the last byte from ``start`` to ``end`` that is not zero.

    ``start`` if all are. A slice of a mapped file does not know its holes, so give the
    whole file.
    """
    end = len(data) if end is None else min(end, len(data))
    source = data.obj if isinstance(data, memoryview) else None
    extents: tuple[tuple[int, int], ...] = ((0, len(data)),)
    if isinstance(source, SparseMap) and len(source) == len(data):
        extents = source.extents
    for first, last in reversed(extents):
        lowest, highest = max(first, start), min(last, end)
        for at in reversed(range(lowest, highest, _CHUNK)):
            part = bytes(data[at : min(at + _CHUNK, highest)]).rstrip(b"\0")
            if part:
                return at + len(part)
    return start
