"""What is known of the pulls that a broker holds until it answers them."""

from __future__ import annotations

from dataclasses import dataclass, field

from crashmq.models.files.offsets import OffsetKey
from crashmq.models.knowledge.lives import Lives
from crashmq.models.ops import PullThroughBroker
from crashmq.models.plain_state import Forked


@dataclass(frozen=True, slots=True)
class OpenPull:
    """A pull that the broker has not answered.

    Attributes:
        asked_ms: when it arrived, at the earliest, by the store's clock.
        held_ms: when the broker certainly held it, at the latest; None: perhaps it
            does not.
    """

    op: PullThroughBroker
    asked_ms: int
    held_ms: int | None = None


@dataclass(slots=True)
class Pulls(Forked):
    """The unanswered pulls of one run of a broker, and where groups pull next.

    Attributes:
        open: the pulls, by number.
        resets: for the step in progress, by number of a pull, the offset of the reset
            that it must have got; -1: it may have got one.
        behind: queues with a reset that consumers were told and have perhaps not
            followed yet; true once a pull has been sent since.
        told: queues whose group certainly has the offset of a reset, of which a pull
            was told and which nobody has followed.
        next_offsets: by group, topic and queue, where the group may pull next by its
            last pull; -1: by its committed offset.
        lives: which offsets of earlier runs the broker takes in a pull.
    """

    open: dict[int, OpenPull] = field(default_factory=dict)
    resets: dict[int, int] = field(default_factory=dict)
    behind: dict[OffsetKey, bool] = field(default_factory=dict)
    told: dict[OffsetKey, int] = field(default_factory=dict)
    next_offsets: dict[OffsetKey, frozenset[int]] = field(default_factory=dict)
    lives: Lives = field(default_factory=Lives)

    def ended(self) -> None:
        """Record the end of the broker's run, which knew where groups pull next."""
        self.behind, self.next_offsets = {}, {}
        self.told = {}

    def was_told(self, key: OffsetKey) -> None:
        """Record that a consumer was told of a reset."""
        self.behind[key] = False

    def pulls_on(self, key: OffsetKey) -> None:
        """Record that a pull was sent, which follows what was told before."""
        self.told.pop(key, None)
        if key in self.behind:
            self.behind[key] = True

    def was_read(self, key: OffsetKey) -> None:
        """Record an answer with what a queue has: if that pull followed, it has now."""
        if self.behind.get(key):
            del self.behind[key]

    @property
    def held(self) -> list[OpenPull]:
        """The pulls that are certainly held, oldest first."""
        return [pull for pull in self.open.values() if pull.held_ms is not None]
