"""One compiled walk over the records of a window; it needs numba (``crashmq[fast]``).

It proves what ``numpy_walk.py`` proves, record by record and without a copy. A record
is plain if every check here holds; all others, whatever they are, are left to the laws'
reader. The walk reads no byte outside the record that it is at, and that one lies
within the file: numba checks no bounds.

What numba compiles is kept beside Python's own byte code, which is as safe as that is.
Where nothing can be written there, it goes to the user's cache, or is compiled anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from crashmq.harness.fsck.columns import (
    ENDS_HALF,
    HEAD_SIZE,
    PLAIN,
    PLAIN_FLAGS,
    PLAIN_TOPIC_MAX,
    PROPERTIES_MAX,
    UNPROVEN,
    WINDOW_RECORDS,
    Ints,
    Raw,
    Records,
    Stop,
    Window,
)
from crashmq.models.files.checksum import crc32
from crashmq.models.files.record import MAGIC_V1, MULTI_QUEUE_OFFSET, RECORD_SIZE_MIN

# What was compiled is used as long as this file stays the same: so what it takes from
# others is written here too.
assert (MAGIC_V1, RECORD_SIZE_MIN, HEAD_SIZE) == (0xDAA320A7, 91, 88)
assert (PLAIN_FLAGS, ENDS_HALF, PLAIN_TOPIC_MAX, PROPERTIES_MAX) == (975, 8, 127, 32767)
assert (UNPROVEN, PLAIN) == (0, 1)

Function = TypeVar("Function", bound=Callable[..., Any])
_UNSUMMED: Final = 2
"""What a record is: plain if its body has the CRC that it says."""
_SUMMED_MAX: Final = 1 << 10
"""Of a larger body zlib takes the CRC: it is faster there."""
_PLACE, _SIZE, _NUMBER, _QUEUE, _STORED, _HOST, _FLAGS, _TOPIC, _CODE = range(9)
_BODY, _CRC, _COLUMNS = 9, 10, 11
_SLOTS: Final = 1 << 18
assert _SLOTS >= 2 * WINDOW_RECORDS
_PADDING: Final = 72
_HASH_PRIME: Final = 16777619
_ONE, _TWO = 1, 2
_NOT_PLAIN: Final = -(1 << 40)
_POLYNOMIAL: Final = 0xEDB88320
_THREES: Final = np.uint64(0x0303030303030303)
_TOPS: Final = np.uint64(0x8080808080808080)
_WORD: Final = ir.IntType(64)


def _tables() -> NDArray[np.uint32]:
    """Of a byte what it adds to the CRC when so many bytes follow it in a block."""
    tables = np.zeros((16, 256), np.uint32)
    tables[0] = np.arange(256)
    for _ in range(8):
        is_odd = tables[0] & 1
        tables[0] = tables[0] >> 1 ^ np.where(is_odd, _POLYNOMIAL, 0)
    for number in range(1, 16):
        before = tables[number - 1]
        tables[number] = before >> 8 ^ tables[0][before & 0xFF]
    return tables


_TABLES: Final = _tables()
_NAMES: Final = tuple(
    np.frombuffer(name, np.uint8).copy()
    for name in (b"__CRC32#", MULTI_QUEUE_OFFSET[:-1], b"TAGS")
)
"""Of two properties that make a record no plain one, and that of the tag."""


def _compiled(function: Function) -> Function:
    try:
        return cast("Function", njit(cache=True)(function))
    except RuntimeError:  # there is no place for a cache
        return cast("Function", njit(function))


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _word(_context: Any, raw: Any, _at: Any) -> Any:
    """Eight bytes of an array from a place on, the first one lowest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.gep(array.data, [args[1]])
        loaded = builder.load(builder.bitcast(place, _WORD.as_pointer()), align=1)
        return loaded if sys.byteorder == "little" else _turned(builder, loaded)

    return types.uint64(raw, types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _swapped(_context: Any, _given: Any) -> Any:
    """The bytes of a word in the other order."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _turned(builder, args[0])

    return types.uint64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _low_zeros(_context: Any, _given: Any) -> Any:
    """How many bits from the lowest on are zero, of a word that is not."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


def _turned(builder: Any, word: Any) -> Any:
    return builder.call(builder.module.declare_intrinsic("llvm.bswap", [_WORD]), [word])


# An index has no sign here: of one with it numba asks each time if it is negative.


@_compiled
def _i64(raw: Any, at: Any) -> Any:
    return np.int64(_swapped(_word(raw, np.uint64(at))))


@_compiled
def _u32(raw: Any, at: Any) -> Any:
    """Four bytes, of which four more follow in the same record."""
    return np.int64(_swapped(_word(raw, np.uint64(at))) >> np.uint64(32))


@_compiled
def _i32(raw: Any, at: Any) -> Any:
    """Four bytes with a sign, of which four more follow in the same record."""
    return np.int64(np.int32(_u32(raw, at)))


@_compiled
def _body_size(raw: Any, at: Any) -> Any:
    """The body size of a record, the last of the fixed fields."""
    return np.int64(np.int32(_swapped(_word(raw, np.uint64(at + HEAD_SIZE - 8)))))


@_compiled
def _u16(raw: Any, at: Any) -> Any:
    first = np.uint64(at)
    return np.int64(raw[first]) << 8 | np.int64(raw[first + np.uint64(1)])


@_compiled
def _crc(raw: Any, start: Any, size: Any, tables: Any) -> Any:
    """The CRC-32 of some bytes, sixteen at a time."""
    crc, at, byte = np.uint64(0xFFFFFFFF), np.uint64(start), np.uint64(0xFF)
    end = np.uint64(start + size)
    while at + np.uint64(16) <= end:
        one, two = _word(raw, at) ^ crc, _word(raw, at + np.uint64(8))
        found = np.uint32(0)
        for number in range(8):
            shift = np.uint64(8 * number)
            found ^= tables[np.uint64(15 - number), one >> shift & byte]
            found ^= tables[np.uint64(7 - number), two >> shift & byte]
        crc = np.uint64(found)
        at += np.uint64(16)
    if at + np.uint64(8) <= end:
        one, found = _word(raw, at) ^ crc, np.uint32(0)
        for number in range(8):
            shift = np.uint64(8 * number)
            found ^= tables[np.uint64(7 - number), one >> shift & byte]
        crc = np.uint64(found)
        at += np.uint64(8)
    while at < end:
        low = (crc ^ np.uint64(raw[at])) & byte
        crc = crc >> np.uint64(8) ^ np.uint64(tables[np.uint64(0), low])
        at += np.uint64(1)
    return np.int64(crc ^ np.uint64(0xFFFFFFFF))


@_compiled
def _ends_with(raw: Any, start: Any, end: Any, name: Any) -> bool:
    size = len(name)
    if end - start < size or raw[np.uint64(end - 1)] != name[size - 1]:
        return False
    for number in range(size):
        if raw[np.uint64(end - size + number)] != name[number]:
            return False
    return True


@_compiled
def _past_text(raw: Any, start: Any, end: Any) -> Any:
    """Where plain text ends: at a byte below 3, at one that is no ASCII, or at all."""
    at, until = np.uint64(start), np.uint64(end)
    while at + np.uint64(8) <= until:
        word = _word(raw, at)
        marks = (word - _THREES | word) & _TOPS
        if marks:  # the lowest is right; above it a borrow may have made another one
            return np.int64(at + (_low_zeros(marks) >> np.uint64(3)))
        at += np.uint64(8)
    while at < until and np.uint8(raw[at] - np.uint8(3)) < np.uint8(125):
        at += np.uint64(1)
    return np.int64(at)


@_compiled
def _code_of(raw: Any, start: Any, end: Any) -> Any:
    """The tags code of a value of TAGS."""
    code = np.int64(0)
    for at in range(start, end):
        code = (31 * code + np.int64(raw[np.uint64(at)])) & 0xFFFFFFFF
    return np.int64(np.int32(code))


@_compiled
def _code_of_properties(raw: Any, start: Any, end: Any, names: Any) -> Any:
    """The tags code that properties say, or that they are not plain.

    They are plain if they are ASCII, names and values take turns, and there is at most
    one tag.
    """
    crc_name, offset_name, tags = names
    code, seen, at = np.int64(0), 0, np.int64(start)
    while at < end:
        begin = at
        at = _past_text(raw, at, end)
        if at in (begin, end) or raw[np.uint64(at)] != _ONE:
            return np.int64(_NOT_PLAIN)
        if _ends_with(raw, begin, at, crc_name):
            return np.int64(_NOT_PLAIN)
        if _ends_with(raw, begin, at, offset_name):
            return np.int64(_NOT_PLAIN)
        value = at + 1
        at = _past_text(raw, value, end)
        if at < end and raw[np.uint64(at)] != _TWO:
            return np.int64(_NOT_PLAIN)
        if value - begin == len(tags) + 1 and _ends_with(raw, begin, value - 1, tags):
            seen += 1
            code = _code_of(raw, value, at)
        at += 1
    return np.int64(_NOT_PLAIN) if seen > 1 else code


@_compiled
def _topic_id(
    raw: Any, start: Any, size: Any, slots: Any, topics: Any, count: Any
) -> Any:
    """The number of a topic; ``count`` if it is new, -1 if it has a byte of zero."""
    mixed = np.int64(size)
    for at in range(start, start + size):
        if not raw[np.uint64(at)]:
            return np.int64(-1)
        mixed = ((mixed ^ np.int64(raw[np.uint64(at)])) * _HASH_PRIME) & 0xFFFFFFFF
    slot = (mixed ^ mixed >> 15) % _SLOTS
    while slots[slot] >= 0:
        known = np.int64(slots[slot])
        if topics[known, 1] == size:
            place, same = topics[known, 0], 0
            while same < size and raw[place + same] == raw[start + same]:
                same += 1
            if same == size:
                return known
        slot = (slot + 1) % _SLOTS
    slots[slot] = count
    topics[count, 0], topics[count, 1] = start, size
    return np.int64(count)


@_compiled
def _is_plain_head(raw: Any, at: Any, phy_offset: Any) -> bool:
    """Whether the fixed fields are those of a plain record of that place."""
    flags, half = _u32(raw, at + 36), _i64(raw, at + 76)
    if flags & ~PLAIN_FLAGS or _u32(raw, at + 4) != MAGIC_V1:
        return False
    if half and not (flags & ENDS_HALF and 0 <= half <= phy_offset):
        return False
    return bool(
        _i64(raw, at + 28) == phy_offset
        and _i64(raw, at + 56) > 0
        and _i64(raw, at + 20) >= 0
        and _i32(raw, at + 12) >= 0
        and _i32(raw, at + 72) >= 0
        and _u16(raw, at + 52) == 0
        and _u16(raw, at + 68) == 0
    )


@_compiled
def _topic_end(raw: Any, at: Any, end: Any, topic_at: Any) -> Any:
    """Where the topic of a record ends; 0 if its lengths are not those of a plain one.

    ``topic_at`` is the place of the topic's length.
    """
    if topic_at <= at + HEAD_SIZE or topic_at + 3 > end:
        return np.int64(0)
    size = np.int64(raw[np.uint64(topic_at)])
    behind = topic_at + 1 + size
    if size == 0 or size > PLAIN_TOPIC_MAX or behind + 2 > end:
        return np.int64(0)
    properties = _u16(raw, behind)
    if properties > PROPERTIES_MAX or behind + 2 + properties != end:
        return np.int64(0)
    return behind


@_compiled
def _walk(raw: Any, within: Any, rows: Any, plain: Any, topics: Any, known: Any) -> Any:
    """Read records, as many as there are rows for.

    Args:
        raw: the file's bytes, at least up to the limit.
        within: where the first record begins, where no more does, the first byte that
            is not read, and the phy_offset of the file's first byte.
        rows: what is said of each record, by column.
        plain: what each record is.
        topics: where each topic stands first, and its size; a table of them, of -1.
        known: tables of the CRC, and names of properties.

    Returns:
        (records, where the next one begins, whether there may be one, topics).
    """
    (at, end, limit, base), (places, slots), (tables, names) = within, topics, known
    count, of = 0, 0
    while at < end and count < len(plain):
        size = _i32(raw, at) if at <= limit - RECORD_SIZE_MIN else np.int64(0)
        if size < RECORD_SIZE_MIN or at + size > limit:
            return count, at, False, of
        until, body, crc = at + size, _body_size(raw, at), _u32(raw, at + 8)
        rows[_PLACE, count], rows[_SIZE, count] = at, size
        rows[_NUMBER, count] = _i64(raw, at + 20)
        rows[_QUEUE, count] = _i32(raw, at + 12)
        rows[_STORED, count] = _i64(raw, at + 56)
        rows[_HOST, count], rows[_FLAGS, count] = _i64(raw, at + 64), _u32(raw, at + 36)
        rows[_BODY, count], rows[_CRC, count] = body, crc
        rows[_TOPIC, count], rows[_CODE, count], plain[count] = 0, 0, UNPROVEN
        behind = _topic_end(raw, at, until, at + HEAD_SIZE + body)
        if behind and _is_plain_head(raw, at, base + at):
            is_summed, code = body <= _SUMMED_MAX, np.int64(_NOT_PLAIN)
            if not is_summed or (
                _crc(raw, at + HEAD_SIZE, body, tables) & 0x7FFFFFFF == crc
            ):
                code = _code_of_properties(raw, behind + 2, until, names)
            if code != _NOT_PLAIN:
                start = at + HEAD_SIZE + body + 1
                topic = _topic_id(raw, start, behind - start, slots, places, of)
                if topic >= 0:
                    of = max(of, topic + 1)
                    rows[_TOPIC, count], rows[_CODE, count] = topic, code
                    plain[count] = PLAIN if is_summed else _UNSUMMED
        at, count = until, count + 1
    return count, at, True, of


def walk(window: Window) -> Records:
    """Read the records that begin in a window; what each one is, and where they end."""
    raw: Raw = np.frombuffer(window.data, np.uint8)
    room = min(WINDOW_RECORDS, (window.end - window.start) // RECORD_SIZE_MIN + 1)
    # Columns whose distance is a power of two would drive each other out of the cache.
    rows = np.empty((_COLUMNS, room + _PADDING), np.int64)
    plain, places = np.empty(room, np.uint8), np.empty((room, 2), np.int64)
    within = window.start, window.end, window.limit, window.base
    topics = places, np.full(_SLOTS, -1, np.int32)
    count, end, goes_on, of = _walk(raw, within, rows, plain, topics, (_TABLES, _NAMES))
    rows, plain = rows[:, :count], plain[:count]
    _sum_bodies(window, rows, plain)
    return Records(
        *(rows[_PLACE], rows[_SIZE], rows[_NUMBER], rows[_QUEUE], rows[_STORED]),
        *(rows[_HOST], rows[_FLAGS], plain, rows[_TOPIC], rows[_CODE]),
        Stop(end, goes_on),
        {
            raw[at : at + size].tobytes(): number
            for number, (at, size) in enumerate(places[:of].tolist())
        },
    )


def _sum_bodies(window: Window, rows: Ints, plain: Raw) -> None:
    """Take the CRC of the bodies that the walk left out."""
    for number in np.flatnonzero(plain == _UNSUMMED).tolist():
        at = int(rows[_PLACE, number]) + HEAD_SIZE
        body = window.view[at : at + int(rows[_BODY, number])]
        plain[number] = crc32(body) & 0x7FFFFFFF == rows[_CRC, number]
