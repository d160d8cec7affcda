"""Moments of pulls through a broker, which may hold them; see ``moments``."""

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
    """A pull was held or answered, and its group's offset was ``kept`` after that.

    Attributes:
        possible: the offsets that the group may have.
        told: the offset that the pull carried when it arrived, -1: none; None: it
            arrived earlier and is woken now.
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
        open: the pull as the broker held it; None if it is answered already or its
            broker has crashed.
        is_woken: it was held since an earlier op.
        answered_ms: when, at the latest, by the store's clock.
        reset_to: target of a reset that the pull must have met; -1: it may have met
            one; None: there was none.
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
    """A broker holds a pull that ran alone; ``queue`` is the queue as it was then.

    ``reset_to`` is as in ``PullAnswered``.
    """

    pull: PullThroughBroker
    queue: VisibleQueue
    reset_to: int | None


@dataclass(slots=True)
class PullsLeft(Moment):
    """A broker has shut down without answering the pulls in ``left``."""

    left: Sequence[OpenPull]


@dataclass(slots=True)
class PullAsleep(Moment):
    """A pull is still held after a step; ``behind``: the messages it could return."""

    pull: OpenPull
    behind: Sequence[Appended]


@dataclass(slots=True)
class PullsLookedAt(Moment):
    """The hold service has checked the held pulls in rounds run by the op itself.

    Attributes:
        held: the pulls that are still held, each with its queue.
        now_ms: the store's clock.
    """

    held: Sequence[tuple[OpenPull, VisibleQueue]]
    now_ms: int


@dataclass(slots=True)
class DispatchSeen(Moment):
    """Dispatch has run, perhaps not to its end, in a store that is up."""
