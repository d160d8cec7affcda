"""Moments of single service rounds, and of the files they remove; see ``moments``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crashmq.models.history import CheckpointWritten, RoundDone, TakenAway
from crashmq.models.knowledge.moments import Moment
from crashmq.models.observations import Positions
from crashmq.models.ops import ServiceName


@dataclass(slots=True)
class RoundTurned(Moment):
    """One round of a service has ended, in a store that is up.

    Attributes:
        done: what it did.
        number: the number of the event at its end.
        takes_all: whether its thorough interval was over, so that it had to take
            everything; None: unknown.
        is_set_back: by the clock it began before the last thorough one.
        begun_at: where the log's files ended when this run began; -1: unknown.
        durable_until: all units of records that end at or below this are durable by
            a flush of the queues.
        index_until: full index files of records below this are on the medium.
    """

    done: RoundDone
    number: int
    takes_all: bool | None
    is_set_back: bool
    begun_at: int
    durable_until: int
    index_until: int


@dataclass(slots=True)
class RoundCounted(Moment):
    """A round of a service whose work can be counted from outside.

    Attributes:
        done: the round.
        least: of the work that it has to report.
        most: of the same.
    """

    done: RoundDone
    least: int
    most: int


@dataclass(slots=True)
class RoundHindered(Moment):
    """Calls to the disk failed amid rounds of a service that nothing else ran beside.

    Attributes:
        service: the service.
        calls: the calls that failed, with their paths, of those that nobody but the
            service itself is told of.
        stood: the positions before, if it was one round and they are known.
    """

    service: ServiceName
    calls: Sequence[tuple[str, str]]
    stood: Positions | None


@dataclass(slots=True)
class ServiceAsked(Moment):
    """A service of a store that is up was to run by itself.

    Attributes:
        service: its name.
        is_there: whether the store has it.
    """

    service: ServiceName
    is_there: bool


@dataclass(slots=True)
class PutsWaited(Moment):
    """Puts that wait for their sync were answered.

    Attributes:
        waits: for each, how long it waited, and how long it was held up itself, or
            may have been, in milliseconds.
        gave_up: how long those waited that got FLUSH_DISK_TIMEOUT.
        left: phy_offsets of records that a group commit round covered and did not
            answer, each with the number of the round's event.
    """

    waits: Sequence[tuple[int, int]]
    gave_up: Sequence[int]
    left: Sequence[tuple[int, int]]


@dataclass(slots=True)
class FileTaken(Moment):
    """A step has removed or renamed a file.

    Attributes:
        taken: what was known right before that.
        amid_start: a start was part of the step, for which other rules hold.
    """

    taken: TakenAway
    amid_start: bool


@dataclass(slots=True)
class MarkWritten(Moment):
    """A step has written to the checkpoint.

    Attributes:
        written: what was known right before that.
        had_failed: a call to the disk failed in the run of the store, or may have.
        lacked_abort: the store had started without the abort file that a kill left, so
            it took the newest mark for durable.
    """

    written: CheckpointWritten
    had_failed: bool
    lacked_abort: bool


@dataclass(slots=True)
class IndexFilesMade(Moment):
    """A store that was up before the step and after it has made index files.

    Attributes:
        names: their names, as numbers, in the order in which they were made.
        newest: the newest name that any index file had before.
        between: the first and the last time of the step by the store's clock, in ms.
    """

    names: Sequence[int]
    newest: int
    between: tuple[int, int]
