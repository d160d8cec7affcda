"""What is known of how far each delay level is delivered, and what a crash may leave.

A delivery is in the log at once, and its level's offset in the file at the next persist
that finds the delivered record durable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from crashmq.models.files.delays import DelayRows
from crashmq.models.plain_state import Forked


class Passed(NamedTuple):
    """A level went on to ``offset``; the delivered record ends at ``end``."""

    offset: int
    end: int


@dataclass(slots=True)
class Delays(Forked):
    """Of all levels.

    Attributes:
        loaded: the offsets that this life began with.
        passed: of each level, what was delivered in this life, in order.
        written: the newest offsets that were seen in the file in this life.
        kept: the least that a start must find, once a crash or stop ends this life.
        is_persisted: a persist has ended, so there is a file.
        is_doubtful: something else may have changed or taken what was persisted.
        may_lack: a level may have passed over messages, since its offset was damaged.
    """

    loaded: dict[int, int] = field(default_factory=dict)
    passed: dict[int, tuple[Passed, ...]] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    is_persisted: bool = False
    is_doubtful: bool = False
    may_lack: bool = False

    def next_of(self, level: int) -> int:
        """The offset of the next message that a level has to deliver."""
        passed = self.passed.get(level)
        return passed[-1].offset if passed else self.loaded.get(level, 0)

    def durable_of(self, level: int, flushed: int) -> int:
        """How far a level is delivered durably, with the log flushed up to there."""
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
        """Record that a level continues at its queue's first message.

        The earlier ones have expired, so none of them can be lost.
        """
        if self.next_of(level) < least:
            self.passed[level] = (Passed(least, 0),)

    def persisted(self, rows: DelayRows) -> None:
        """Record what a persist has left in the file."""
        self.written = dict(rows)
        self.kept = dict(rows)
        self.is_persisted = True

    def stopped(self) -> None:
        """Record an orderly stop, which keeps all that was delivered."""
        self.kept = {level: self.next_of(level) for level in self.levels}
        self.is_persisted = True

    def load(self, offsets: Mapping[int, int], *, is_persisted: bool) -> None:
        """Record what a start has loaded, and written again."""
        self.loaded, self.passed, self.written = dict(offsets), {}, {}
        self.kept, self.is_doubtful = dict(offsets), False
        self.is_persisted = is_persisted
