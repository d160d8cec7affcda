"""Laws of reads: a pull returns the queue's messages, and says where to go on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from crashmq.models.appended import Appended, differs
from crashmq.models.files.store_image import (
    BadRecord,
    Record,
    decode_answer,
    decode_record,
)
from crashmq.models.knowledge.reference import VisibleQueue
from crashmq.models.laws.registry import law
from crashmq.models.observations import Looked, Pulled, PullStatus, Searched
from crashmq.models.ops import Boundary
from crashmq.models.verdict import Violation

SCAN_UNITS_MAX = 800
SEPARATOR = "||"
"""Between the tags of an expression."""
TRANSFER_COUNT_MAX = 32
TRANSFER_BYTES_MAX = 262_144
FAR_TRANSFER_COUNT_MAX = 8
FAR_TRANSFER_BYTES_MAX = 65_536


@law(
    "RD-1",
    "a pull returns the queue's matching messages in order, each byte for byte as "
    "appended",
    catalogue="I3 I15",
)
def pulled_messages_are_right(
    pulled: Pulled,
    queue_offset: int,
    queue: Sequence[Appended],
    tags: str = "*",
    gone_below: int = 0,
    *,
    as_bodies: bool = False,
) -> Iterator[Violation]:
    """Compares each message with the next one of ``queue`` that matches the tags.

    Args:
        pulled: the answer.
        queue_offset: where the pull began.
        queue: every message appended to the queue, the expired ones too.
        tags: the tag expression of the pull.
        gone_below: messages below this phy_offset may have been deleted meanwhile.
        as_bodies: the store returns the bodies of messages, not their records.

    Source: DefaultMessageStore#getMessage.
    """
    first = queue[0].queue_offset if queue else 0
    wanted = wanted_tags(tags)
    number = queue_offset - 1
    for data in pulled.messages:
        number += 1
        record, flaw = (None, "") if as_bodies else _read(data)
        gone = min(gone_below, record.phy_offset) if record else 0
        while 0 <= number - first < len(queue):
            passed = queue[number - first]
            is_wanted = not wanted or passed.message.tags in wanted
            if is_wanted and passed.phy_offset >= gone:
                break
            number += 1
        where = f"message {number} of the queue"
        if not 0 <= number - first < len(queue):
            yield Violation(where, f"{len(data)} bytes", "none: it was never appended")
            return
        if as_bodies:
            body = queue[number - first].message.body
            if data != body:
                yield Violation(where, f"body {data[:32]!r}", f"{body[:32]!r}")
        elif record is None:
            yield Violation(where, flaw, "a whole record")
        elif difference := differs(record, queue[number - first]):
            yield Violation(where, difference, "what was appended")


@law(
    "RD-9",
    "with CRC checks on reads enabled, every message that a pull returns decodes and "
    "matches its stored CRCs",
    catalogue="I15",
)
def pulled_messages_prove_themselves(pulled: Pulled) -> Iterator[Violation]:
    """Decodes each message, whatever happened to the disk.

    Consumers then never get rotten bytes. Differs from RocketMQ, where only the
    consumer checks the body's CRC.
    """
    for number, data in enumerate(pulled.messages):
        record, flaw = _read(data, decode_record)
        if record is None:
            yield Violation(f"message {number} of the answer", flaw, "a whole record")


def _read(
    data: bytes, decode: Callable[[bytes], Record] = decode_answer
) -> tuple[Record | None, str]:
    """The pulled record, or why it cannot be decoded."""
    try:
        return decode(data), ""
    except BadRecord as flaw:
        return None, str(flaw)


@law(
    "RD-2",
    "a pull's status, message count, next_begin_offset, min_offset and max_offset "
    "match the queue's dispatched, unexpired messages",
    catalogue="I6 I16",
)
def pull_is_answered_right(
    pulled: Pulled,
    queue_offset: int,
    max_msg_nums: int,
    queue: VisibleQueue,
    queue_file_units: int,
    tags: str = "*",
    memory_from: int = 0,
) -> Iterator[Violation]:
    """Compares the answer with what a pull of ``queue`` must return.

    Args:
        pulled: the answer.
        queue_offset: where the pull began.
        max_msg_nums: the most messages it asked for.
        queue: the messages that are dispatched and not expired.
        queue_file_units: units of a queue file, at whose end a pull stops.
        tags: the tag expression of the pull.
        memory_from: messages below this phy_offset are read from disk, fewer at a
            time.

    Source: DefaultMessageStore#getMessage, GetMessageStatus.
    """
    where = f"pull from {queue_offset}, {pulled.status}"
    low, high = queue.min_offset, queue.max_offset
    statuses, next_begin = _expected(queue_offset, max_msg_nums, low, high)
    taken = passed = 0
    if statuses == ("FOUND",):
        taken, passed = _fitting(
            queue.messages[queue_offset - low :],
            queue_offset,
            max_msg_nums,
            queue_file_units,
            wanted_tags(tags),
            memory_from,
        )
        next_begin = queue_offset + taken + passed
        if not taken:
            statuses = ("NO_MATCHED_MESSAGE",)
    if pulled.status not in statuses:
        yield Violation(where, pulled.status, " or ".join(statuses))
        return
    if len(pulled.messages) != taken:
        yield Violation(where, f"{len(pulled.messages)} messages", f"{taken}")
    if pulled.next_begin_offset != next_begin:
        seen = f"next_begin_offset {pulled.next_begin_offset}"
        yield Violation(where, seen, f"{next_begin}")
    if (pulled.min_offset, pulled.max_offset) != (low, high):
        seen = f"bounds {pulled.min_offset} and {pulled.max_offset}"
        yield Violation(where, seen, f"{low} and {high}")


def _expected(
    queue_offset: int, max_msg_nums: int, low: int, high: int
) -> tuple[tuple[PullStatus, ...], int]:
    if high == 0:
        return ("NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE"), 0
    if queue_offset < low:
        return ("OFFSET_TOO_SMALL",), low
    if queue_offset == high:
        return ("OFFSET_OVERFLOW_ONE",), queue_offset
    if queue_offset > high:
        return ("OFFSET_OVERFLOW_BADLY",), high
    if max_msg_nums <= 0:
        return ("NO_MATCHED_MESSAGE",), queue_offset
    return ("FOUND",), queue_offset


def _fitting(
    messages: Sequence[Appended],
    start: int,
    max_msg_nums: int,
    file_units: int,
    wanted: frozenset[str],
    memory_from: int = 0,
) -> tuple[int, int]:
    """How many of ``messages`` one pull returns, and how many it looks at.

    A pull stays within one queue file and looks at 800 units, or as many as were asked
    for. It returns the first message whatever its size, and stops at 32 messages or
    before exceeding 256 KiB; at a message below ``memory_from``, at 8 messages or 64
    KiB. Messages after the last match that do not match are counted as looked at.
    """
    looked_at = min(max(SCAN_UNITS_MAX, max_msg_nums), file_units - start % file_units)
    taken = passed = sent = 0
    for appended in messages[:looked_at]:
        is_near = appended.phy_offset >= memory_from
        most = TRANSFER_COUNT_MAX if is_near else FAR_TRANSFER_COUNT_MAX
        size_max = TRANSFER_BYTES_MAX if is_near else FAR_TRANSFER_BYTES_MAX
        is_enough = taken >= min(max_msg_nums, most)
        if taken and (is_enough or sent + appended.size > size_max):
            break
        if wanted and appended.message.tags not in wanted:
            passed += 1
            continue
        sent += appended.size
        taken += 1
    return taken, passed


@lru_cache(maxsize=1024)
def wanted_tags(expression: str) -> frozenset[str]:
    """The tags that an expression asks for; empty if it asks for every message.

    Source: FilterAPI#buildSubscriptionData.
    """
    if expression in ("", "*"):
        return frozenset()
    tags = frozenset([part.strip() for part in expression.split(SEPARATOR)]) - {""}
    return tags or frozenset({SEPARATOR})  # which no message has


def names_no_tag(expression: str) -> bool:
    """Whether an expression of tags is invalid: nothing but separators.

    Source: FilterAPI#buildSubscriptionData, of the array that String#split returns.
    """
    return bool(expression) and not expression.replace(SEPARATOR, "")


@law(
    "RD-3",
    "a lookup by phy_offset returns exactly the record that begins there, or nothing "
    "if none does",
    catalogue="I15",
)
def looked_up_message_is_right(
    looked: Looked, phy_offset: int, messages: Sequence[Appended]
) -> Iterator[Violation]:
    """Compares the answer with the message at that phy_offset, dispatched or not.

    ``messages`` is the log as far as it is in files.

    Source: DefaultMessageStore#lookMessageByOffset.
    """
    where = f"look at phy_offset {phy_offset}"
    place = bisect_left(messages, phy_offset, key=_begin_of)
    is_begin = place < len(messages) and messages[place].phy_offset == phy_offset
    if looked.message is None:
        if is_begin:
            yield Violation(where, "none", f"{messages[place].size} bytes")
        return
    if not is_begin:
        yield Violation(where, f"{len(looked.message)} bytes", "none begins there")
        return
    try:
        record = decode_answer(looked.message)
    except BadRecord as flaw:
        yield Violation(where, str(flaw), "a whole record")
        return
    if difference := differs(record, messages[place]):
        yield Violation(where, difference, "what was appended")


def _begin_of(appended: Appended) -> int:
    return appended.phy_offset


@law(
    "RD-4",
    "a search by store time returns what a linear scan of the queue finds: LOWER the "
    "first message stored at that time or later, UPPER the last one stored at that "
    "time or earlier",
    catalogue="I17",
)
def searched_time_is_found(
    searched: Searched,
    timestamp: int,
    boundary: Boundary,
    first: int,
    stored_at: Sequence[int],
) -> Iterator[Violation]:
    """LOWER: the first message stored at or after ``timestamp``; else the queue's end.

    UPPER: the last one stored at or before it; without one, the queue's first message.
    ``stored_at`` is the store_timestamp of each readable message, in queue order; the
    first of them has queue_offset ``first``.

    Source: ConsumeQueue#getOffsetInQueueByTime, BoundaryType.
    """
    if boundary == "LOWER":
        after = (n for n, time in enumerate(stored_at, first) if time >= timestamp)
        expected = next(after, first + len(stored_at))
    else:
        before = [n for n, time in enumerate(stored_at, first) if time <= timestamp]
        expected = before[-1] if before else first
    if searched.queue_offset != expected:
        where = f"search for {boundary} of {timestamp}"
        yield Violation(where, f"queue_offset {searched.queue_offset}", f"{expected}")


@law(
    "RD-8",
    "a search by time reports the store_timestamp of the message found and of the "
    "CommitLog's earliest message",
    catalogue="I17",
)
def told_times_are_right(
    searched: Searched, first: int, stored_at: Sequence[int], earliest: int
) -> Iterator[Violation]:
    """Compares both times; ``searched`` has the offset that the search found.

    -2 is a time that was not asked for, -1 that of no message. ``stored_at`` is the
    store_timestamp of each readable message, from queue_offset ``first`` on;
    ``earliest`` is that of the log's first record.

    Source: DefaultMessageStore#getMessageStoreTimeStamp, #getEarliestMessageTime.
    """
    number = searched.queue_offset - first
    expected = stored_at[number] if 0 <= number < len(stored_at) else -1
    if searched.stored_at not in (expected, -2):
        where = f"time of queue_offset {searched.queue_offset}"
        yield Violation(where, f"{searched.stored_at}", f"{expected}")
    if searched.earliest not in (earliest, -2):
        yield Violation("earliest time", f"{searched.earliest}", f"{earliest}")
