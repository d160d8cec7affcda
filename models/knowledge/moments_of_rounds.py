"""Moments of single rounds of services, and of what they take away; see ``moments``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crashmq.models.history import RoundDone, TakenAway
from crashmq.models.knowledge.moments import Moment


@dataclass(slots=True)
class RoundTurned(Moment):
    """One round of a service came to its end, in a store that is up.

    Attributes:
        done: what it did.
        number: of the event of its end.
        takes_all: whether it was due to take whatever waits; None: nobody knows.
        begun_at: where the log's files ended when the life began; -1: nobody knows.
        durable_until: records of which a flush of queues has made all units durable
            end at or before it.
        index_until: index files that are full of records below are on the medium.
    """

    done: RoundDone
    number: int
    takes_all: bool | None
    begun_at: int
    durable_until: int
    index_until: int


@dataclass(slots=True)
class PutsWaited(Moment):
    """Puts that wait for their sync were answered.

    Attributes:
        waits: of each, how long it waited, and how long it stood still itself, or may
            have; milliseconds.
        gave_up: how long those waited that were told FLUSH_DISK_TIMEOUT.
        left: records that a round of group commit covered and did not answer, by their
            phy_offset, each with the number of the round's event.
    """

    waits: Sequence[tuple[int, int]]
    gave_up: Sequence[int]
    left: Sequence[tuple[int, int]]


@dataclass(slots=True)
class FileTaken(Moment):
    """The store was about to remove or rename a file; the step went on.

    Attributes:
        taken: what was known then.
        amid_start: a start was part of the step, which has rules of its own.
    """

    taken: TakenAway
    amid_start: bool
