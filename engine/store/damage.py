"""Damage: the damaged ranges of the log, in a store that serves around them.

The store never returns or changes the bytes of a damaged range. ``scan_around`` finds
the ranges; ``Stop`` names what a scan met where it stopped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class Stop(StrEnum):
    """Why a scan of the log stopped; the value is the text for people.

    Code compares members: the texts are for messages alone.
    """

    NOWHERE = ""
    NO_FILES = "no files"
    END = "the end of the last file"
    MISSING_FILE = "a missing file"
    CUT_SHORT = "a file cut short"
    UNREADABLE = "bytes that cannot be read"
    HALF = "a record whose length is not its parts'"
    ZEROS = "bytes never written"
    ILLEGAL = "bytes that are no record"


class DamagedRange(NamedTuple):
    """Damaged bytes of the log: phy_offsets [start, end).

    They lie in the file ``path``; or ``path`` is the first of missing files. ``why``
    says what the scan met there.
    """

    start: int
    end: int
    path: str
    why: Stop


class Damage:
    """The damaged ranges of one log, ascending; empty unless on_damage is "serve".

    ``log_min_offset`` is where the log begins; what lay before has expired.

    Invariants:
        the ranges are not empty, ascend, and do not meet each other
    """

    def __init__(
        self, ranges: Iterable[DamagedRange] = (), log_min_offset: int = 0
    ) -> None:
        self.ranges = [*ranges]
        self.log_min_offset = log_min_offset

    def _check(self) -> None:
        end = 0
        for damaged in self.ranges:
            assert end <= damaged.start < damaged.end, damaged
            end = damaged.end

    def add(self, damaged: DamagedRange) -> None:
        """Add the next range."""
        assert not self.ranges or self.ranges[-1].end <= damaged.start, damaged
        self.ranges.append(damaged)

    def meets(self, start: int, end: int) -> bool:
        """Whether a byte of [start, end) is damaged."""
        return any(known.start < end and start < known.end for known in self.ranges)

    def hides(self, offset: int) -> bool:
        """Whether the byte cannot be read: it has expired or is damaged."""
        return offset < self.log_min_offset or self.end_of(offset) > offset

    def end_of(self, offset: int) -> int:
        """The first undamaged byte from ``offset`` on."""
        for known in self._from(offset):
            if known.start <= offset < known.end:
                offset = known.end
        return offset

    def next_start(self, offset: int, end: int) -> int:
        """The first damaged byte in [offset, end); ``end`` if there is none."""
        starts = [known.start for known in self._from(offset)]
        return min([start for start in starts if start >= offset] + [end])

    def _from(self, offset: int) -> list[DamagedRange]:
        first = bisect_right(self.ranges, offset, key=lambda known: known.end)
        return self.ranges[first:]
