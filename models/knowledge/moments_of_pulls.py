"""Moments of pulls through a broker; see ``moments``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crashmq.models.appended import Appended
from crashmq.models.files.offsets import OffsetKey
from crashmq.models.knowledge.moments import Moment
from crashmq.models.knowledge.pulls import OpenPull
from crashmq.models.knowledge.reference import VisibleQueue
from crashmq.models.observations import BrokerPulled
from crashmq.models.ops import PullThroughBroker


@dataclass(slots=True)
class OffsetBehindPull(Moment):
    """A pull was held or answered, and the offset of its group was ``kept`` then.

    Attributes:
        possible: the offsets that the group may have.
        told: what the pull had told when it came, -1: nothing; None: it came earlier,
            and is read again.
    """

    key: OffsetKey
    kept: int
    possible: frozenset[int]
    told: int | None


@dataclass(slots=True)
class PullAnswered(Moment):
    """A broker answered a pull.

    Attributes:
        pull: what was asked.
        open: what is known of the pull; None if nobody waits for an answer to it.
        is_woken: it was held since an earlier op.
        answered_ms: when, by the store's clock.
        reset_to: of a reset that it must have met; -1: it may have met one; None: there
            was none.
    """

    pull: PullThroughBroker
    answer: BrokerPulled
    open: OpenPull | None
    is_woken: bool
    answered_ms: int
    reset_to: int | None

    @property
    def queue(self) -> VisibleQueue:
        """The queue as a reader finds it after the step."""
        return self.known.model.visible((self.pull.topic, self.pull.queue_id))


@dataclass(slots=True)
class PullKept(Moment):
    """A broker has held a pull that came to it by itself, in front of ``queue``.

    ``reset_to`` is as of ``PullAnswered``.
    """

    pull: PullThroughBroker
    queue: VisibleQueue
    reset_to: int | None


@dataclass(slots=True)
class PullsLeft(Moment):
    """A broker has stopped, and has never answered the pulls in ``left``."""

    left: Sequence[OpenPull]


@dataclass(slots=True)
class PullAsleep(Moment):
    """A pull is still held after a step; ``behind`` can be read behind its offset."""

    pull: OpenPull
    behind: Sequence[Appended]


@dataclass(slots=True)
class PullsLookedAt(Moment):
    """Rounds that look at held pulls, the op itself, came to their end.

    Attributes:
        held: the pulls that are held still, each with its queue.
        now_ms: by the store's clock.
    """

    held: Sequence[tuple[OpenPull, VisibleQueue]]
    now_ms: int


@dataclass(slots=True)
class DispatchSeen(Moment):
    """Dispatch has run, perhaps not to its end, in a store that is up."""
