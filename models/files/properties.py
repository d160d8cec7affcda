"""Odd properties in a RocketMQ log: were they damaged, or put like that?

A broker stores what it receives: a NUL in a value, a piece without a name, ``0x02``
twice. Damage can turn a client's properties into the same. A piece counts as damaged if
it would begin with a known name after one byte, or its zeros, were corrected. Known
are RocketMQ's own names, and those in flawless properties of the same log.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from crashmq.models.files.record import Record, written_part

# MessageConst, without the names that no store is given.
_KNOWN_NAMES = frozenset(
    b"""
    KEYS TAGS WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP MIN_OFFSET
    MAX_OFFSET BUYER_ID ORIGIN_MESSAGE_ID TRANSFER_FLAG CORRECTION_FLAG MQ2_FLAG
    RECONSUME_TIME MSG_REGION TRACE_ON UNIQ_KEY EXTEND_UNIQ_INFO MAX_RECONSUME_TIMES
    CONSUME_START_TIME INNER_NUM INNER_BASE DUP_INFO CHECK_IMMUNITY_TIME_IN_SECONDS
    TRAN_PREPARED_QUEUE_OFFSET __transactionId__ TRANSACTION_CHECK_TIMES INSTANCE_ID
    CORRELATION_ID REPLY_TO_CLIENT ARRIVE_TIME PUSH_REPLY_TIME CLUSTER MSG_TYPE POP_CK
    POP_CK_OFFSET 1ST_POP_TIME __SHARDINGKEY PROPERTY_FORWARD_QUEUE_ID REDIRECT
    INNER_MULTI_DISPATCH INNER_MULTI_QUEUE_OFFSET TRACE_CONTEXT TIMER_DELAY_SEC
    TIMER_DELIVER_MS __BORNHOST BORN_TIMESTAMP TIMER_ENQUEUE_MS TIMER_DEQUEUE_MS
    TIMER_ROLL_TIMES TIMER_OUT_MS TIMER_DEL_UNIQKEY TIMER_DELAY_LEVEL TIMER_DELAY_MS
    DLQ_ORIGIN_TOPIC DLQ_ORIGIN_MESSAGE_ID
    """.split()
)
# What a client or a broker makes up itself has no NUL.
_GENERATED = frozenset(
    b"""
    WAIT DELAY REAL_QID TRAN_MSG MSG_REGION TRACE_ON UNIQ_KEY MAX_RECONSUME_TIMES
    INNER_NUM INNER_BASE CLUSTER MSG_TYPE TIMER_OUT_MS TIMER_DELAY_MS TIMER_DELIVER_MS
    """.split()
)
_NAME = re.compile(rb"(?:\A|\x02)([^\x00\x01\x02]{3,})\x01")
_WHOLE = re.compile(rb"(?:[^\x01\x02]+\x01[^\x02]*(?:\x02|\Z))*")


def are_named(raw: bytes) -> bool:
    """Whether properties are as an encoder writes them: pieces with names, in UTF-8."""
    return bool(_WHOLE.fullmatch(raw)) and _is_text(raw)


def property_names(records: Iterable[Record]) -> frozenset[bytes]:
    """RocketMQ's property names, and those in flawless properties of these records."""
    found = set(_KNOWN_NAMES)
    for record in records:
        raw = written_part(record.properties_raw)
        if 0 not in raw and are_named(raw):
            found.update(_NAME.findall(raw))
    return frozenset(found)


def are_damaged(raw: bytes, names: Collection[bytes]) -> bool:
    """Whether the properties look damaged, given the known ``names``."""
    pieces = raw.split(b"\x02")
    return any(
        _is_no_text(piece, names)
        or _lacks_what_was_put(piece)
        or any(_fits(*guess, name) for guess in guesses for name in names)
        for piece, following in zip(pieces, [*pieces[1:], b""], strict=True)
        if (guesses := [*_guesses(piece, following)])
        or 0 in piece
        or not piece.isascii()
    )


def _is_no_text(piece: bytes, names: Collection[bytes]) -> bool:
    """Whether a known name's value is not UTF-8, or a name one byte off a known one.

    The properties of a batch's messages are copied as their client wrote them, so a
    user's names and values may have any bytes.
    """
    name, _, value = piece.partition(b"\x01")
    if name in _KNOWN_NAMES:
        return not _is_text(value)
    return not _is_text(name) and any(
        len(known) == len(name)
        and sum(one != other for one, other in zip(known, name, strict=True)) == 1
        for known in names
    )


def _lacks_what_was_put(piece: bytes) -> bool:
    """Whether zeros replace a separator, or lie in a value that clients generate."""
    name, _, value = piece.partition(b"\x01")
    return 0 in value and (b"\x01" in value or name in _GENERATED)


def _guesses(piece: bytes, following: bytes) -> Iterator[tuple[bytes, bool]]:
    """Names that a piece may have had, 0 standing for any byte.

    Each with whether more bytes may follow it in the piece.
    """
    name, separator, value = piece.partition(b"\x01")
    if not separator:
        if piece:
            yield piece, True
        rest, is_named, _ = following.partition(b"\x01")
        if is_named:
            yield piece + b"\0" + rest, False
    elif not name:
        yield b"\0" + value.partition(b"\x01")[0], False
    elif 0 in name:
        yield name, False


def _fits(guess: bytes, has_more: bool, name: bytes) -> bool:
    """Whether ``guess`` can be ``name``; with ``has_more``, begin with it."""
    if len(guess) != len(name) and (not has_more or len(guess) < len(name)):
        return False
    begin = guess[: len(name)]
    return all(was in (0, is_) for was, is_ in zip(begin, name, strict=True))


def _is_text(raw: bytes) -> bool:
    return raw.isascii() or raw.decode("utf-8", "ignore").encode() == raw
