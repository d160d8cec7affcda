"""What a read that overlaps other ops may have met: bounds at its begin and its end.

A read is right if some moment between its begin and its end explains it. Other ops move
a log and its queues in one direction only, except for deletions of topics: messages are
added and dispatched, and the first files are deleted. So the bounds at begin and end
bound every moment in between.
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
    """A log from the begin of a read to its end; each a least and a most.

    Attributes:
        begins: the phy_offset of what a queue or the log shows first.
        ends: where the records end that lie in files.
        dispatched: where dispatch stood.
        confirmed: where the records end that may be dispatched by the end.
    """

    begins: Range
    ends: Range
    dispatched: Range
    confirmed: int

    def was_dispatched(self, message: Appended) -> bool:
        """Whether each listing has it since the begin."""
        return message.end <= self.dispatched[0]

    def may_be_dispatched(self, message: Appended) -> bool:
        """Whether a listing may have it at the end, which others may lack then."""
        is_begun = message.phy_offset <= self.dispatched[1]
        return is_begun and message.end <= self.confirmed


@dataclass(frozen=True, slots=True)
class QueueBetween:
    """A queue from the begin of a read to its end, if no deletion comes between.

    Where one may have come, a read has met the queue as it was before, or none, or the
    one that counts again; each of them is such a queue.

    Attributes:
        messages: all that it may show, in its order, the expired ones too.
        lows: its least and its greatest min_offset.
        highs: its least and its greatest max_offset.
        gone_below: messages before this phy_offset may have expired by the end.
        memory_from: from which phy_offset on messages count as in memory, at least
            and at most.
        rivals: puts without an answer, each of which may be in the queue or not.
        vanishes: it may be deleted while it is read, so that its bounds, its units and
            its times need not be of one moment.
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
        built: where its units ended at the last start, or must end at least.
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
