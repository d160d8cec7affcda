"""Records of one shape, looked at together.

Where lengths are equal, columns of bytes mean the same: a topic, a name, a value. So
one comparison of numpy takes the place of thousands of slices. What has no company, or
is not plain, is told, and looked at by itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import chain, starmap
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from crashmq.models.files.checksum import crc32
from crashmq.models.files.record import MULTI_QUEUE_OFFSET, tags_code

Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Raw: TypeAlias = NDArray[np.uint8]
GROUP_MIN: Final = 32
"""Of fewer records of a shape each is looked at by itself."""
_COPIED_MAX: Final = 2048
_CHUNK: Final = 1 << 19
_LOOKS_MAX: Final = 4
_TAGS: Final = b"TAGS"
_NOT_PLAIN: Final = (b"__CRC32#", MULTI_QUEUE_OFFSET[:-1])


def groups_of(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Each key with the rows that have it, in their order."""
    if not len(keys):
        return
    if int(keys.min()) == int(keys.max()):
        yield int(keys[0]), np.arange(len(keys))
        return
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order])) + 1
    for rows in np.split(order, bounds):
        yield int(keys[rows[0]]), rows


def crcs_of(
    raw: Raw, view: memoryview, starts: Ints, sizes: Ints
) -> NDArray[np.uint32]:
    """The CRC-32 of each range of bytes."""
    found = np.empty(len(starts), np.uint32)
    alone: list[Ints] = []
    for size, rows in groups_of(sizes):
        if len(rows) < GROUP_MIN or not 0 < size <= _COPIED_MAX:
            alone.append(rows)
            continue
        every, unpack = sliding_window_view(raw, size), struct.Struct(f"{size}s")
        step = max(1, _CHUNK // size)
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            # A row is a tuple of its bytes: no slice is made for it.
            each = unpack.iter_unpack(every[starts[some]].data)
            found[some] = np.fromiter(starmap(crc32, each), np.uint32, len(some))
    if alone:
        rows = np.concatenate(alone)
        places = map(slice, starts[rows].tolist(), (starts + sizes)[rows].tolist())
        bodies = map(view.__getitem__, places)
        found[rows] = np.fromiter(map(crc32, bodies), np.uint32, len(rows))
    return found


def numbered(block: Raw) -> tuple[Ints, list[bytes]]:
    """Of each row the number of its value, and the values."""
    count, width = block.shape
    if count and (block == block[0]).all():  # as nearly all are
        return np.zeros(count, np.int64), [block[0].tobytes()]
    ids, values = np.zeros(count, np.int64), list[bytes]()
    left = np.arange(count)
    while len(left) and len(values) < _LOOKS_MAX:
        rows = block if len(left) == count else block[left]
        is_same = (rows == rows[0]).all(axis=1)
        ids[left[is_same]] = len(values)
        values.append(rows[0].tobytes())
        left = left[~is_same]
    if len(left):
        rest = np.ascontiguousarray(block[left])
        known = {value: number for number, value in enumerate(values)}
        texts = chain.from_iterable(struct.iter_unpack(f"{width}s", rest.data))
        ids[left] = [known.setdefault(text, len(known)) for text in texts]
        values = list(known)
    return ids, values


class Tails(NamedTuple):
    """Properties of records of one shape: the plain rows, and their tags codes."""

    plain: Bools
    codes: Ints


def read_tails(block: Raw) -> Tails:
    """Look at properties of one length, a row each.

    A row is plain if it is ASCII, has its names and values where the first one has
    them, and at most one tag; others may be plain by themselves.
    """
    count, size = block.shape
    codes = np.zeros(count, np.int64)
    if not size:
        return Tails(np.ones(count, bool), codes)
    first = block[0].tobytes()
    pieces = pieces_of(first if first[-1:] == b"\2" else first + b"\2")
    if pieces is None:
        return Tails(np.zeros(count, bool), codes)
    _, ones, twos = pieces
    is_mark = np.zeros(size, bool)
    is_mark[ones] = is_mark[twos[twos < size]] = True
    # Marks are the bytes of the first row there; nothing else is below 3, or no ASCII.
    varies = ~(block == block[0]).all(axis=0)
    others = block[:, varies]
    wrong = np.where(is_mark[varies], others != others[:1], (others - 3) > 124)
    plain = ~wrong.any(axis=1) if wrong.any() else np.ones(count, bool)
    tags = np.zeros(count, np.int64)
    for start, one, two in np.stack(pieces, axis=1).tolist():
        # A name that all rows share is looked at once.
        rows = block if varies[start:one].any() else block[:1]
        for name in _NOT_PLAIN:
            if one - start >= len(name):
                plain &= ~_is_text(rows[:, one - len(name) : one], name)
        if one - start == len(_TAGS):
            is_tag = _is_text(rows[:, start:one], _TAGS)
            if not is_tag.any():
                continue
            is_tag = np.broadcast_to(is_tag, count)
            tags += is_tag
            ids, values = numbered(block[:, one + 1 : two])
            known = np.array([code_of(value) for value in values], np.int64)
            codes[is_tag] = known[ids[is_tag]]
    return Tails(plain & (tags <= 1), codes)


def read_each(tails: list[bytes]) -> Tails:
    """Look at properties of any lengths, as at one text.

    Its bytes below 3 have to be 1 and 2 in turns.
    """
    ended = [t if not t or t[-1:] == b"\2" else t + b"\2" for t in tails]
    pieces, plain = pieces_of(b"".join(ended)), np.ones(len(tails), bool)
    if pieces is None:
        plain = np.array([pieces_of(tail) is not None for tail in ended], bool)
        ended = [t * bool(ok) for t, ok in zip(ended, plain, strict=True)]
        pieces = pieces_of(b"".join(ended))
    assert pieces is not None
    starts, ones, twos = pieces
    text = b"".join(ended)
    raw: Raw = np.frombuffer(text, np.uint8)
    named = np.flatnonzero(ones - starts == len(_TAGS))
    at = starts[named]
    is_tags = np.ones(len(named), bool)
    for number, letter in enumerate(_TAGS):
        is_tags &= raw[at + number] == letter
    named = named[is_tags]
    values = map(slice, (ones[named] + 1).tolist(), twos[named].tolist())
    known: dict[bytes, int] = {}
    found: list[int] = []
    for value in map(text.__getitem__, values):
        if value not in known:
            known[value] = code_of(value)
        found.append(known[value])
    sizes = np.cumsum(np.fromiter(map(len, ended), np.int64, len(ended)))
    rows = np.searchsorted(sizes, starts[named], side="right")
    codes = np.zeros(len(tails), np.int64)
    codes[rows] = found
    return Tails(plain & (np.bincount(rows, minlength=len(tails)) <= 1), codes)


def code_of(tags: bytes) -> int:
    """The tags code of a value of TAGS."""
    return tags_code(tags.decode("utf-8", "replace")) if tags else 0


def pieces_of(text: bytes) -> tuple[Ints, Ints, Ints] | None:
    """Where names begin, where they end, and where values end; None if not plain."""
    raw: NDArray[Any] = np.frombuffer(text, np.uint8)
    marks = np.flatnonzero(raw < 3)
    ones, twos = marks[::2], marks[1::2]
    if len(ones) != len(twos):
        return None
    starts = np.append(0, twos + 1)[: len(ones)]
    is_plain = (
        bool((raw[ones] == 1).all() and (raw[twos] == 2).all())
        and bool((ones > starts).all())
        and text.isascii()
        and not (b"__CRC32#\x01" in text or MULTI_QUEUE_OFFSET in text)
    )
    return (starts, ones, twos) if is_plain else None


def _is_text(block: Raw, text: bytes) -> Bools:
    found: Bools = (block == np.frombuffer(text, np.uint8)).all(axis=1)
    return found
