"""Damage: the parts of the log that a store serves around, if it was asked to.

No byte of them is ever returned, and none is changed. How they are found is told in
``scan_around``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from engine.store.stop import Stop


class DamagedRange(NamedTuple):
    """Bytes [start, end) of the log, in one file or in missing ones from ``path`` on.

    ``why`` is what reading met there.
    """

    start: int
    end: int
    path: str
    why: Stop


class Damage:
    """The damaged ranges of one log, in order; none but in a log served around them.

    ``log_min_offset`` is where the log begins; what lay before has expired.

    Invariants:
        no range meets another
    """

    def __init__(
        self, ranges: Iterable[DamagedRange] = (), log_min_offset: int = 0
    ) -> None:
        self.ranges = [*ranges]
        self.log_min_offset = log_min_offset

    def add(self, damaged: DamagedRange) -> None:
        """Take note of the next range."""
        assert not self.ranges or self.ranges[-1].end <= damaged.start, damaged
        self.ranges.append(damaged)

    def meets(self, start: int, end: int) -> bool:
        """Whether a byte of [start, end) is damaged."""
        return any(known.start < end and start < known.end for known in self.ranges)

    def hides(self, offset: int) -> bool:
        """Whether a reader gets nothing there: it has expired, or is damaged."""
        return offset < self.log_min_offset or self.end_of(offset) > offset

    def end_of(self, offset: int) -> int:
        """The first byte from ``offset`` on that is not damaged."""
        for known in self._from(offset):
            if known.start <= offset < known.end:
                offset = known.end
        return offset

    def next_start(self, offset: int, end: int) -> int:
        """Where damage begins in [offset, end); ``end`` if it does not."""
        starts = [known.start for known in self._from(offset)]
        return min([start for start in starts if start >= offset] + [end])

    def _from(self, offset: int) -> list[DamagedRange]:
        first = bisect_right(self.ranges, offset, key=lambda known: known.end)
        return self.ranges[first:]
