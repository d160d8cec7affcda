"""Search by time: the queue_offset to which a consumer is reset.

``LOWER`` is the first message stored at or after the time, ``UPPER`` the last one
stored at or before it. Store timestamps never decrease along the log, so a binary
search over the units finds what a scan of them all would.

Source: ConsumeQueue#getOffsetInQueueByTime, #binarySearchInQueueByTime, RocketMQ 5.3.
Differs: an unreadable record does not end the search: it counts as stored at the time
of the next readable one, or after all others if there is none. If no message was stored
at or before the time, ``UPPER`` is the queue's first.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from crashmq.engine.host.probe import probe

BEFORE_ALL = probe("time_search.before_all", "a time before a queue's first message")
AFTER_ALL = probe("time_search.after_all", "a time after a queue's last message")
AMID = probe("time_search.amid", "a time within a queue's messages")


class BoundaryType(Enum):
    """Which message is meant: the first from a time on, or the last up to it."""

    LOWER = "LOWER"
    UPPER = "UPPER"


def offset_by_time(
    low: int,
    high: int,
    timestamp: int,
    boundary: BoundaryType,
    time_at: Callable[[int], int],
) -> int:
    """The queue_offset in [low, high] for ``timestamp``.

    Args:
        low: the queue's first queue_offset.
        high: the queue_offset after its last message.
        timestamp: milliseconds since the Unix epoch.
        boundary: LOWER: the first at or after it, ``high`` if there is none; UPPER:
            the last at or before it, ``low`` if there is none.
        time_at: when the message at a queue_offset was stored; -1 if unreadable.
    """
    wanted = timestamp if boundary is BoundaryType.LOWER else timestamp + 1
    found = _first_at_or_after(low, high, wanted, time_at)
    (BEFORE_ALL if found == low else AFTER_ALL if found == high else AMID).hit()
    if boundary is BoundaryType.LOWER:
        return found
    return max(low, found - 1)


def _first_at_or_after(
    low: int, high: int, timestamp: int, time_at: Callable[[int], int]
) -> int:
    last = high - 1
    while low < high:
        middle = (low + high) // 2
        readable = middle
        while (time := time_at(readable)) < 0 and readable < last:
            readable += 1
        if 0 <= time < timestamp:
            low = readable + 1
        else:
            high = middle
    return low
