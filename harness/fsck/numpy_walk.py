"""Proves the records of a window with numpy and a CRC a body, without a compiler.

One loop follows the sizes, numpy checks all fields at once, and properties of one
length are looked at together (``shapes.py``).
"""

from __future__ import annotations

import mmap
import struct
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from crashmq.harness.fsck.columns import (
    ENDS_HALF,
    HEAD_SIZE,
    PLAIN,
    PLAIN_FLAGS,
    PLAIN_TOPIC_MAX,
    PROPERTIES_MAX,
    WINDOW_RECORDS,
    Bools,
    Ints,
    Raw,
    Records,
    Stop,
    Window,
)
from crashmq.harness.fsck.shapes import (
    GROUP_MIN,
    crcs_of,
    groups_of,
    numbered,
    read_each,
    read_tails,
)
from crashmq.models.files.record import MAGIC_V1, RECORD_SIZE_MIN

TAILS: Final = 1 << 14
_SIZE: Final = struct.Struct(">i")
_HEAD: Final = np.dtype(
    [
        *(("size", ">i4"), ("magic", ">u4"), ("crc", ">u4"), ("queue_id", ">i4")),
        *(("flag", ">i4"), ("queue_offset", ">i8"), ("phy_offset", ">i8")),
        *(("sys_flag", ">u4"), ("born", ">i8"), ("born_host", "V4")),
        *(("born_port", ">u4"), ("stored", ">i8"), ("store_host", ">i8")),
        *(("times", ">i4"), ("prepared", ">i8"), ("body_size", ">i4")),
    ]
)
assert _HEAD.itemsize == HEAD_SIZE
_ALIKE: Final = 16
_ALIKE_MAX: Final = 1 << 12


def walk(window: Window) -> Records:
    """Read the records that begin in a window; what each one is, and where they end."""
    places, end, goes_on = _chain(window)
    raw: Raw = np.frombuffer(window.data, np.uint8)
    rows = sliding_window_view(raw, HEAD_SIZE)[places] if len(places) else raw[:0]
    heads: NDArray[Any] = rows.view(_HEAD).reshape(-1)
    wide = {
        name: heads[name].astype(np.int64)
        for name in ("size", "queue_offset", "queue_id", "stored", "store_host")
    }
    flags = heads["sys_flag"].astype(np.int64)
    none = np.zeros(len(places), np.int64)
    found = Records(
        places=places,
        sizes=wide["size"],
        numbers=wide["queue_offset"],
        queue_ids=wide["queue_id"],
        stored=wide["stored"],
        hosts=wide["store_host"],
        flags=flags,
        kinds=np.zeros(len(places), np.uint8),
        topic_of=none,
        codes=none.copy(),
        stop=Stop(end, goes_on),
    )
    if len(places):
        _prove(window, raw, heads, found)
    return found


def _chain(window: Window) -> tuple[Ints, int, bool]:
    """Where the records of a window begin, by their sizes alone.

    Returns:
        (their positions, where the next one begins, whether there may be one).
    """
    data, end, limit = window.data, window.end, window.limit
    unpack, places, parts = _SIZE.unpack_from, list[int](), list[Ints]()
    at, last, before, alike = window.start, limit - RECORD_SIZE_MIN, 0, 0
    room = WINDOW_RECORDS
    while at < end and room > len(places):
        (length,) = unpack(data, at) if at <= last else (0,)
        if length < RECORD_SIZE_MIN or at + length > limit:
            break
        places.append(at)
        at += length
        alike, before = alike + 1 if length == before else 0, length
        if alike == _ALIKE:
            alike = 0
            count = min(-(-(end - at) // length), (limit - at) // length)
            count = _of_size(data, at, length, min(count, room - len(places)))
            parts += [np.array(places, np.int64), at + length * np.arange(count)]
            room -= len(places) + count
            places = []
            at += count * length
    else:
        return _together(parts, places), at, True
    return _together(parts, places), at, False


def _of_size(data: mmap.mmap, at: int, size: int, count: int) -> int:
    """How many records of one size follow each other; of the next ``count`` places."""
    if count <= 0:
        return 0
    sizes = np.ndarray((count,), ">i4", data, at, (size,))
    for first in range(0, count, _ALIKE_MAX):
        others = np.flatnonzero(sizes[first : first + _ALIKE_MAX] != size)
        if len(others):
            return first + int(others[0])
    return count


def _together(parts: list[Ints], places: list[int]) -> Ints:
    return np.concatenate([*parts, np.array(places, np.int64)])


def _prove(window: Window, raw: Raw, heads: NDArray[Any], found: Records) -> None:
    """Note which records are plain, and the topics and tags codes of those."""
    places = found.places
    bodies = heads["body_size"].astype(np.int64)
    topic_at = places + HEAD_SIZE + bodies
    ends = places + found.sizes
    plain = (heads["magic"] == MAGIC_V1) & (found.flags & ~PLAIN_FLAGS == 0)
    plain &= (bodies > 0) & (topic_at + 3 <= ends)
    topic_at = np.where(plain, topic_at, places)
    lengths = raw[topic_at].astype(np.int64)
    behind = topic_at + 1 + lengths
    plain &= (lengths > 0) & (lengths <= PLAIN_TOPIC_MAX) & (behind + 2 <= ends)
    behind = np.where(plain, behind, places)
    properties = raw[behind].astype(np.int64) << 8
    properties |= raw[behind + 1]
    plain &= (behind + 2 + properties == ends) & (properties <= PROPERTIES_MAX)
    plain &= heads["phy_offset"] == places + window.base
    plain &= (found.stored > 0) & _ends_a_half(heads)
    plain &= (found.numbers >= 0) & (found.queue_ids >= 0)
    plain &= (heads["times"] >= 0) & (heads["born_port"] >> 16 == 0)
    plain &= found.hosts & 0xFFFF0000 == 0
    ends = np.where(plain, ends, places)
    topic_at = np.where(plain, topic_at, places)
    behind = np.where(plain, behind, places)
    starts = np.where(plain, places + HEAD_SIZE, places)
    crcs = crcs_of(raw, window.view, starts, topic_at - starts)
    plain &= crcs & 0x7FFFFFFF == heads["crc"]
    tails = _Tails(window, raw, topic_at, behind, ends)
    plain &= tails.read(np.flatnonzero(plain), found)
    found.kinds[plain] = PLAIN


def _ends_a_half(heads: NDArray[Any]) -> Bools:
    """Whether a commit or rollback names an earlier record, and no other does."""
    half = heads["prepared"]
    is_end = heads["sys_flag"] & ENDS_HALF != 0
    is_earlier = (half >= 0) & (half <= heads["phy_offset"])
    found: Bools = (half == 0) | (is_end & is_earlier)
    return found


class _Tails:
    """Topics and properties: where those of each record begin and end."""

    def __init__(
        self, window: Window, raw: Raw, topic_at: Ints, behind: Ints, ends: Ints
    ) -> None:
        self._data, self._raw = window.data, raw
        self._topic_at, self._behind, self._ends = topic_at, behind, ends

    def read(self, rows: Ints, found: Records) -> Bools:
        """Which records have a plain topic and plain properties; both are noted."""
        topic_at, behind, ends = self._topic_at, self._behind, self._ends
        plain = np.zeros(len(ends), bool)
        shapes = (behind - topic_at - 1)[rows] << 16 | (ends - behind - 2)[rows]
        alone: list[Ints] = []
        for shape, members in groups_of(shapes):
            some, topic, size = rows[members], shape >> 16, shape & 0xFFFF
            if len(some) < GROUP_MIN:
                alone.append(some)
                continue
            every = sliding_window_view(self._raw, topic + 2 + size)
            for first in range(0, len(some), TAILS):
                of = some[first : first + TAILS]
                block = every[topic_at[of] + 1]
                ids, names = numbered(block[:, :topic])
                known = np.array([_topic_id(name, found) for name in names], np.int64)
                tails = read_tails(block[:, topic + 2 :])
                plain[of] = tails.plain & (known[ids] >= 0)
                found.topic_of[of], found.codes[of] = known[ids], tails.codes
                alone.append(of[~tails.plain])
        if len(of := np.concatenate([*alone, rows[:0]])):
            texts = self._slices(topic_at[of] + 1, behind[of])
            known = np.array([_topic_id(text, found) for text in texts], np.int64)
            tails = read_each(self._slices(behind[of] + 2, ends[of]))
            plain[of] = tails.plain & (known >= 0)
            found.topic_of[of], found.codes[of] = known, tails.codes
        return plain

    def _slices(self, starts: Ints, ends: Ints) -> list[bytes]:
        places = map(slice, starts.tolist(), ends.tolist())
        return list(map(self._data.__getitem__, places))


def _topic_id(raw: bytes, found: Records) -> int:
    """The number of a topic in this window; -1 of none that is plain."""
    return -1 if 0 in raw else found.topics.setdefault(raw, len(found.topics))
