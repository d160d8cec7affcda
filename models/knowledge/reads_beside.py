"""What a read that overlaps other ops may have seen, from bounds at its begin and end.

A read is right if the state at some moment between its begin and end explains it. Apart
from deletions of topics, other ops move a log and its queues in one direction only:
messages are added and dispatched, and the first files are deleted. So the bounds at
begin and end hold for every moment in between.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crashmq.models.appended import Appended
from crashmq.models.messages import MessageToPut

Range = tuple[int, int]


class LogBetween(NamedTuple):
    """Bounds of a log during a read; each is a pair of lowest and highest phy_offset.

    Attributes:
        begins: the phy_offset of the first message that a queue or the log shows.
        ends: where the records in files end.
        dispatched: up to where records are dispatched.
        confirmed: where the records end that may be dispatched by the end of the read.
    """

    begins: Range
    ends: Range
    dispatched: Range
    confirmed: int

    def was_dispatched(self, message: Appended) -> bool:
        """Whether queue and index had the message from the begin of the read on."""
        return message.end <= self.dispatched[0]

    def may_be_dispatched(self, message: Appended) -> bool:
        """Whether a queue or the index may have the message at the read's end."""
        is_begun = message.phy_offset <= self.dispatched[1]
        return is_begun and message.end <= self.confirmed


@dataclass(frozen=True, slots=True)
class QueueBetween:
    """Bounds of a queue during a read, if it is not deleted meanwhile.

    Where it may be deleted, a read has seen the queue as it was before, or no queue, or
    the one whose offsets begin again; each of these is one ``QueueBetween``.

    Attributes:
        messages: all that it may show, in order, the expired ones too.
        lows: its lowest and its highest possible min_offset.
        highs: its lowest and its highest possible max_offset.
        gone_below: messages before this phy_offset may have expired by the end.
        memory_from: the lowest and the highest phy_offset from which on messages count
            as in memory.
        rivals: puts without an answer, each of which may be in the queue or not.
        vanishes: it may be deleted during the read, so the bounds, units and times that
            the read sees may be of different moments.
    """

    messages: Sequence[Appended]
    lows: Range
    highs: Range
    gone_below: int
    memory_from: Range
    rivals: Sequence[MessageToPut] = ()
    vanishes: bool = False

    def at(self, queue_offset: int) -> Appended | None:
        """The message at a queue_offset."""
        n = bisect_left(self.messages, queue_offset, key=_queue_offset)
        if n == len(self.messages) or self.messages[n].queue_offset != queue_offset:
            return None
        return self.messages[n]


def bounds(
    queue: Sequence[Appended], built: int, begins: int, visible: int
) -> tuple[int, int]:
    """The min_offset and max_offset of a queue with ``visible`` listed messages.

    Args:
        queue: its messages, in order, the expired ones too.
        built: the queue_offset where its units ended at the last start, or must end at
            least.
        begins: the phy_offset at which the log begins.
        visible: how many of ``queue`` have a unit.
    """
    first = bisect_left(queue, begins, hi=visible, key=_phy_offset)
    if first < visible:
        return queue[first].queue_offset, queue[visible - 1].queue_offset + 1
    end = queue[visible - 1].queue_offset + 1 if visible else 0
    return max(built, end), max(built, end)


def _phy_offset(appended: Appended) -> int:
    return appended.phy_offset


def _queue_offset(appended: Appended) -> int:
    return appended.queue_offset
