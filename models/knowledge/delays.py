"""How far each delay level is delivered, and what a crash may leave in its file.

A delivery is in the log at once. Its level's offset gets into the file with the first
persist that finds the delivered record durable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from crashmq.models.files.delays import DelayRows
from crashmq.models.plain_state import Forked


class Passed(NamedTuple):
    """A delivery: its level is at ``offset`` now, and its record ends at ``end``."""

    offset: int
    end: int


@dataclass(slots=True)
class Delays(Forked):
    """How far the broker has delivered each delay level.

    Attributes:
        loaded: by level, the offset loaded by the start of this run.
        passed: by level, the deliveries of this run, in order.
        written: by level, the newest offset seen in the file in this run.
        kept: by level, the lowest offset that the next start may find.
        is_persisted: a persist has ended, so the file exists.
        is_doubtful: something other than a crash may have changed the file.
        may_lack: the offset of a level was damaged, so it may have skipped messages.
    """

    loaded: dict[int, int] = field(default_factory=dict)
    passed: dict[int, tuple[Passed, ...]] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    is_persisted: bool = False
    is_doubtful: bool = False
    may_lack: bool = False

    def next_of(self, level: int) -> int:
        """The queue_offset of the next message that a level has to deliver."""
        passed = self.passed.get(level)
        return passed[-1].offset if passed else self.loaded.get(level, 0)

    def durable_of(self, level: int, flushed: int) -> int:
        """The offset of a level, by deliveries whose records end by ``flushed``."""
        offset = self.loaded.get(level, 0)
        for one in self.passed.get(level, ()):
            if one.end > flushed:
                break
            offset = one.offset
        return offset

    @property
    def levels(self) -> list[int]:
        """The delay levels of which something is known, sorted."""
        return sorted({*self.loaded, *self.passed, *self.kept, *self.written})

    def deliver(self, level: int, offset: int, end: int) -> None:
        """Record a delivery of the message at ``offset``."""
        before = self.passed.get(level, ())
        self.passed[level] = (*before, Passed(offset + 1, end))

    def skip(self, level: int, least: int) -> None:
        """Record that a level goes on at ``least``, its queue's first message.

        The messages before have expired, so skipping them loses none.
        """
        if self.next_of(level) < least:
            self.passed[level] = (Passed(least, 0),)

    def persisted(self, rows: DelayRows) -> None:
        """Record what a persist has left in the file."""
        self.written = dict(rows)
        self.kept = dict(rows)
        self.is_persisted = True

    def stopped(self) -> None:
        """Record an orderly stop, which persists all that was delivered."""
        self.kept = {level: self.next_of(level) for level in self.levels}
        self.is_persisted = True

    def load(self, offsets: Mapping[int, int], *, is_persisted: bool) -> None:
        """Record the offsets that a start has loaded and written again."""
        self.loaded, self.passed, self.written = dict(offsets), {}, {}
        self.kept, self.is_doubtful = dict(offsets), False
        self.is_persisted = is_persisted
