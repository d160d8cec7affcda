"""Moments: the points of a step at which laws may be asked, and what is known there.

``models.knowledge.walk`` makes them, in the order in which a step is judged: answers of
the life that ended, its stop, what a start found and left, answers of the new life,
rounds of services, the medium, positions, reads, and what the life owes. A moment is
made, judged and forgotten; what it says holds until the walk goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from crashmq.models.appended import Appended
from crashmq.models.files.filters import FilterRows
from crashmq.models.files.offsets import OffsetKey
from crashmq.models.files.store_image import Bytes, Record, StoreImage
from crashmq.models.history import Step
from crashmq.models.knowledge.debts import Waiting
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.progress import Ends, Recovered
from crashmq.models.knowledge.reads_beside import LogBetween, QueueBetween
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel
from crashmq.models.laws.judged import Judged
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    Damaged,
    FilteredPull,
    HalfMade,
    Looked,
    Positions,
    Pulled,
    Put,
    Queried,
    Refused,
    Searched,
    Started,
    Statistics,
    Stopped,
)
from crashmq.models.ops import (
    LookMessage,
    PullFiltered,
    PullMessage,
    QueryMessage,
    SearchOffset,
)


class LookedAt(Protocol):
    """All of a subject that a judge looks at by itself."""

    @property
    def epoch_ms(self) -> int:
        """Where the subject's wall clock began."""

    def files(self) -> Mapping[str, bytes]:
        """The store's files as a reader sees them now, by path."""

    def unsynced_from(self) -> Mapping[str, int]:
        """The files that a power loss could change, and where; see ``Subject``."""

    def half_made(self) -> HalfMade:
        """The files whose creation is not durable; see ``Subject``."""


class Look(LookedAt, Protocol):
    """What can be looked at of a store and its files at a moment.

    ``files`` are those that are the store's own.
    """

    def image(self) -> StoreImage:
        """The store's files as they are now, decoded."""

    def image_of(self, files: Mapping[str, bytes]) -> StoreImage:
        """Files that a start found, decoded."""

    def all_files(self) -> Mapping[str, bytes]:
        """As ``files``, and the foreign files."""


class At(NamedTuple):
    """What every moment has.

    Attributes:
        step: what was done, and what came of it.
        known: what is known so far.
        look: at the store after the step.
        now: what the store reports after the step; all -1 while it is down.
    """

    step: Step
    known: Knowledge
    look: Look
    now: Positions


@dataclass(slots=True)
class Moment:
    """A point within a step, at which laws are asked; see ``At``."""

    step: Step
    known: Knowledge
    look: Look
    now: Positions


@dataclass(slots=True)
class OpOver(Moment):
    """An op that raised, or came to a start, is over; nothing of it was judged yet."""


@dataclass(slots=True)
class CheckedReads(Moment):
    """A store that checks the CRCs of what it serves has answered reads."""


@dataclass(slots=True)
class PutsOver(Moment):
    """The puts of a step are over, the answers to batches too."""


@dataclass(slots=True)
class DeletionOver(Moment):
    """A deletion of a topic or queue came to its end.

    Attributes:
        dead_below: its answer; -1: there was nothing to delete.
        lowest: where the log ended at least while it ran.
        highest: where it ended at most.
        had_messages: the topic certainly had some.
    """

    dead_below: int
    lowest: int
    highest: int
    had_messages: bool


@dataclass(slots=True)
class PutOver(Moment):
    """A put was answered; the model does not count it yet.

    Attributes:
        message: what was put.
        answer: the store's.
        place: the phy_offset where the record must lie; -1 if unknown.
        next_queue_offset: the queue offset that it must get, or a later one.
        unseen: so many puts without an answer may have come before it in its queue.
        size: bytes that its record must take.
        may_refuse: the disk failed, puts may have been stopped, or there was no room.
    """

    message: MessageToPut
    answer: Put
    place: int
    next_queue_offset: int
    unseen: int
    size: int
    may_refuse: bool

    @property
    def waits_for_sync(self) -> bool:
        """Whether the put is answered only once it is on the medium."""
        return self.known.model.flush_mode == "SYNC_FLUSH" and (
            self.message.waits_for_sync
        )


@dataclass(slots=True)
class PutsOrdered(Moment):
    """Ops that began together have put; each answer with its events' numbers."""

    spans: Sequence[tuple[Put, tuple[int, int]]]


@dataclass(slots=True)
class StopOver(Moment):
    """A stop came to its end."""

    stop: Stopped


@dataclass(slots=True)
class FilesAtRest(Moment):
    """The files of a store that rests, or that has just done what changes them.

    Attributes:
        image: the files.
        reput_from_offset: where dispatch stands.
        dispatched: a round of dispatch came to its end, so that what it writes is
            right, even if the disk failed before.
    """

    image: StoreImage
    reput_from_offset: int
    dispatched: bool = False


@dataclass(slots=True)
class FilesFound(Moment):
    """A start found these files. No start has mended them yet."""

    image: StoreImage
    _judged: Judged | None = None

    @property
    def judged(self) -> Judged:
        """What the laws that no crash may break are asked about these files."""
        if self._judged is None:
            self._judged = self.known.judged(self.image, None, clean=False)
        return self._judged


@dataclass(slots=True)
class StartOver(Moment):
    """A start came to an answer on the files ``found``.

    Attributes:
        start: the answer.
        at_full_size: the files, short log files of a damaged log made up to their size.
        log_is_damaged: somebody changed the log, or the store skips damaged records.
        misfit: which file of those changed is none of such a store; "" if none.
        lost: what the start needed and cannot be read; "" if nothing.
        is_foreign: damage took the mark, and the start may not adopt such a store.
        lost_its_mark: only an older mark is left, and files that it names expired.
        is_short: an old file that the start leaves unread is cut.
        is_windowed: a start may leave old files unread, and what is wrong with them.
        unreadable: places of files that cannot be read.
    """

    found: StoreImage
    start: Started | Refused
    at_full_size: StoreImage
    log_is_damaged: bool
    misfit: str
    lost: str
    is_foreign: bool
    lost_its_mark: bool
    is_short: bool
    is_windowed: bool
    unreadable: Sequence[Damaged]

    @property
    def damaged(self) -> Sequence[Damaged]:
        """What was changed of the files since the start before."""
        return self.known.tampering.damaged

    @property
    def reads_failed(self) -> bool:
        """Whether reads were made to fail, so that it may have met anything."""
        return self.step.fails_reads

    @property
    def is_plain(self) -> bool:
        """Whether damage is all that the start can have met."""
        return not (self.misfit or self.lost or self.reads_failed)

    @property
    def listed(self) -> Sequence[tuple[int, int]]:
        """The ranges that the start lists as damaged."""
        return self.start.damaged if isinstance(self.start, Started) else ()


@dataclass(slots=True)
class StoreUp(Moment):
    """A start succeeded on the files ``found``."""

    found: StoreImage
    start: Started


@dataclass(slots=True)
class LogRecovered(Moment):
    """A start has recovered a log; the model has not adopted it yet.

    Attributes:
        records: what it recovered.
        messages: what was appended, from the recovered log's beginning on.
        floor: what the crash must spare ends here.
        log_min: where the log begins.
        deletions: the places of deleted topics that the start goes by.
        log_end: where the log ended then.
    """

    records: Sequence[Record]
    messages: Sequence[Appended]
    floor: int
    log_min: int
    deletions: Mapping[QueueKey, int]
    log_end: int


@dataclass(slots=True)
class RotRecovered(Moment):
    """A start adopted rotten records that no CRC shows; the others are judged."""

    records: Sequence[Record]
    messages: Sequence[Appended]


@dataclass(slots=True)
class LogRecoveredAround(Moment):
    """A start skips damaged records; the model has not adopted the rest yet.

    Attributes:
        whole: the whole records by place.
        floors: what the crash spares, and what the mark says was durable.
        start: its answer.
    """

    whole: Mapping[int, Record]
    floors: tuple[int, int]
    start: Started


@dataclass(slots=True)
class QueuesRecovered(Moment):
    """The model has adopted a recovered log; its empty queues count on.

    Attributes:
        found_ends: where the queues' files end, as queue offsets.
        ends: where those without a record in the log must.
    """

    found_ends: Mapping[QueueKey, int]
    ends: Mapping[QueueKey, int]


@dataclass(slots=True)
class StartLeft(Moment):
    """A start that ran alone has left files.

    Attributes:
        before: the files that the start before had left; None if something came since.
        found: what this one found.
        left: what this one left.
        after_orderly_end: the life before came to an orderly end.
        takes_over: another program left what this one found.
    """

    before: Mapping[str, Bytes] | None
    found: StoreImage
    left: Mapping[str, Bytes]
    after_orderly_end: bool
    takes_over: bool

    @property
    def expired_index_files(self) -> Collection[str]:
        """Index files all of whose records have expired: the start may remove them."""
        setup = self.known.setup
        log_min = self.found.commit_log.min_phy_offset
        index = self.found.index(setup.index_slots).files if setup.has_index else ()
        return [p for p, file in index if file.header.end_phy_offset < log_min]


@dataclass(slots=True)
class RoundOver(Moment):
    """Rounds of a service, the op itself, came to their end.

    Attributes:
        work: what they say they have done.
    """

    service: str
    work: int


@dataclass(slots=True)
class MediumSeen(Moment):
    """A step that may have made data durable is over."""

    _unsynced: Mapping[str, int] | None = None
    _half_made: HalfMade | None = None

    @property
    def unsynced(self) -> Mapping[str, int]:
        """The files that a power loss could change, and where."""
        if self._unsynced is None:
            self._unsynced = self.look.unsynced_from()
        return self._unsynced

    @property
    def half_made(self) -> HalfMade:
        """The files whose creation is not durable."""
        if self._half_made is None:
            self._half_made = self.look.half_made()
        return self._half_made


@dataclass(slots=True)
class TopicGone(Moment):
    """A deletion of a topic or queue, the op itself, has deleted something."""

    topic: str
    queue_id: int


@dataclass(slots=True)
class LogShortened(Moment):
    """The log begins later than before; the model does not know yet."""


@dataclass(slots=True)
class CleanerOver(Moment):
    """Rounds of a cleaner, the op itself, came to their end; nothing else ran.

    Attributes:
        service: of the log, or of the queues.
        work: what they say they have done.
    """

    service: str
    work: int


@dataclass(slots=True)
class PositionsSeen(Moment):
    """A running store has reported its offsets; the model has not noted them yet."""


@dataclass(slots=True)
class PullOver(Moment):
    """A store that skips no damaged records has answered a pull."""

    pull: PullMessage
    pulled: Pulled
    queue: Sequence[Appended]


@dataclass(slots=True)
class QueryOver(Moment):
    """A store that skips no damaged records has answered a query by key."""

    query: QueryMessage
    queried: Queried


@dataclass(slots=True)
class LookOver(Moment):
    """A look was answered; ``messages`` are those that it could have found."""

    look_up: LookMessage
    looked: Looked
    messages: Sequence[Appended]


@dataclass(slots=True)
class SearchOver(Moment):
    """A store that skips no damaged records has answered a search by time.

    Attributes:
        first: the first queue offset that a reader finds.
        times: when each message from there on was stored.
    """

    search: SearchOffset
    searched: Searched
    first: int
    times: Sequence[int]


@dataclass(slots=True)
class PullBeside(Moment):
    """A pull was answered that others acted beside; it met one of ``queues``."""

    pull: PullMessage
    pulled: Pulled
    queues: Sequence[QueueBetween]


@dataclass(slots=True)
class FilteredPullBounded(Moment):
    """A pull of a group was answered; it met one of ``queues``."""

    pull: PullFiltered
    pulled: Pulled
    queues: Sequence[QueueBetween]


@dataclass(slots=True)
class PullSeenBefore(Moment):
    """A pull was answered; ``seen`` are the bounds of its queue that were shown before.

    By answers that came before it began, in this life.
    """

    pull: PullMessage
    pulled: Pulled
    seen: tuple[int, int]


@dataclass(slots=True)
class LookBeside(Moment):
    """A look was answered that others acted beside.

    ``model`` has what was put, but for ``rivals``, which got no answer.
    """

    look_up: LookMessage
    looked: Looked
    log: LogBetween
    model: ReferenceModel
    rivals: Sequence[MessageToPut]


@dataclass(slots=True)
class SearchBeside(Moment):
    """A search by time was answered that others acted beside.

    Attributes:
        met: the queues of which it has met one, each with the store_timestamps of its
            messages by queue_offset; -1: nobody knows.
        firsts: the same of the messages with which the log may have begun.
    """

    search: SearchOffset
    searched: Searched
    met: Sequence[tuple[QueueBetween, Mapping[int, int]]]
    firsts: Sequence[int]


@dataclass(slots=True)
class QueryBeside(Moment):
    """A query by key was answered that others acted beside.

    Attributes:
        sure: the phy_offsets of the matches that it must have met.
        times: between which they were stored.
        model: what was put, but for ``rivals``, which got no answer.
        log: where the log was from its begin to its end.
    """

    query: QueryMessage
    queried: Queried
    sure: Sequence[int]
    times: tuple[int, int]
    model: ReferenceModel
    log: LogBetween
    rivals: Sequence[MessageToPut]


@dataclass(slots=True)
class PullAround(Moment):
    """A store with on_damage=serve has answered a pull."""

    pull: PullMessage
    pulled: Pulled


@dataclass(slots=True)
class PutAround(Moment):
    """A store with on_damage=serve has answered a put."""

    answer: Put


@dataclass(slots=True)
class SearchAround(Moment):
    """A store with on_damage=serve has answered a search by time.

    Attributes:
        times: when each intact message of the queue was stored, by queue offset.
        ready: the queue offsets of those that must be found.
        earliest: when the log's first intact message was stored; -1 if there is none.
    """

    search: SearchOffset
    searched: Searched
    times: Mapping[int, int]
    ready: Sequence[int]
    earliest: int


@dataclass(slots=True)
class QueryAround(Moment):
    """A store with on_damage=serve has answered a query by key."""

    query: QueryMessage
    queried: Queried
    indexed: Sequence[Record]


@dataclass(slots=True)
class AfterFailedFlush(Moment):
    """The step went on in a life in which flushes had ``failed`` before."""

    failed: frozenset[str]


@dataclass(slots=True)
class RoundDue(Moment):
    """A round had to sync or commit what had waited for the thorough interval."""

    service: str
    waits: Waiting


@dataclass(slots=True)
class StepOver(Moment):
    """All of a step was judged, except for foreign files."""


@dataclass(slots=True)
class CaughtUp(Moment):
    """A healed store had its rounds; the services in ``busy`` still found work."""

    busy: Sequence[str]


@dataclass(slots=True)
class OffsetAnswered(Moment):
    """A broker answered the offset of a group; ``pending``: of a reset that is.

    Attributes:
        possible: the offsets that the group may have; -1: none.
    """

    key: OffsetKey
    offset: int
    possible: frozenset[int]
    pending: bool


@dataclass(slots=True)
class OffsetCommitted(Moment):
    """A consumer committed an offset, with nothing beside it and no reset pending.

    Attributes:
        told: what the broker was told.
        asked: what the consumer was done with.
        before: what its group may have had.
    """

    key: OffsetKey
    told: int
    asked: int
    before: frozenset[int]


@dataclass(slots=True)
class QueueBegun(Moment):
    """A consumer that was given a queue begins with it.

    Attributes:
        possible: the offsets that its group may have; -1: none.
        begins: where one without an offset begins; None: unknown.
    """

    key: OffsetKey
    begun: int
    possible: frozenset[int]
    begins: frozenset[int] | None


@dataclass(slots=True)
class CommitAnswered(Moment):
    """A broker took a commit or refused it, with nothing beside it; no reset pending.

    ``end`` is the next offset of the queue, dispatched or not.
    """

    key: OffsetKey
    told: int
    accepted: bool
    end: int


@dataclass(slots=True)
class ResetAnswered(Moment):
    """A group was reset with nothing beside it, or that was refused: ``offset`` -1.

    ``targets`` are where it was to go, of which one is enough.
    """

    key: OffsetKey
    offset: int
    targets: frozenset[int]


@dataclass(slots=True)
class LowestAnswered(Moment):
    """A broker answered the lowest offsets of groups, with nothing beside it.

    ``possible`` are those of each queue; -1: no group has any.
    """

    topic: str
    rows: Sequence[tuple[int, int]]
    possible: Mapping[int, frozenset[int]]


@dataclass(slots=True)
class OffsetsPersisted(Moment):
    """A round of the persist, with nothing beside it, has left these files."""

    files: Mapping[str, bytes]


@dataclass(slots=True)
class OffsetsFound(Moment):
    """A start of a store that keeps progress found these files."""

    files: Mapping[str, bytes]


@dataclass(slots=True)
class OffsetsRecovered(Moment):
    """A start came up with offsets, on queues whose ends are known by now."""

    recovered: Recovered
    ends: Ends


@dataclass(slots=True)
class FilteredPullOver(Moment):
    """A store that skips no damaged records has answered a pull of a group.

    Attributes:
        queue: every message appended to the queue.
        possible: by what it may have been filtered; None if nobody knows.
    """

    pull: PullFiltered
    answer: FilteredPull
    queue: Sequence[Appended]
    possible: frozenset[tuple[str, str]] | None


@dataclass(slots=True)
class FilterMissed(Moment):
    """A store had no filter for a pull of a group; ``possible`` as above."""

    pull: PullFiltered
    possible: frozenset[tuple[str, str]] | None


@dataclass(slots=True)
class FiltersRecovered(Moment):
    """A start on these files came up with the filters ``rows``."""

    files: Mapping[str, bytes]
    rows: FilterRows


@dataclass(slots=True)
class DeliveryRoundOver(Moment):
    """A round of delivery, with nothing beside it, came to its end.

    ``first`` is, by level, the first dispatched message that it has left waiting; of
    a level of which a delivery was refused there is none.
    """

    first: Mapping[int, Appended]

    @property
    def stored_ms(self) -> Mapping[int, int]:
        """By level, when that message was stored, where a record says so."""
        image = self.look.image()
        times = {level: _stored_ms(image, one) for level, one in self.first.items()}
        return {level: time for level, time in times.items() if time > 0}


def _stored_ms(image: StoreImage, waiting: Appended) -> int:
    """When a waiting message was stored, as its record says; 0: it has none."""
    key = (waiting.message.topic, waiting.message.queue_id)
    for record in reversed(image.commit_log.indexed_records.get(key, [])):
        if record.phy_offset == waiting.phy_offset:
            return record.store_timestamp
    return 0


@dataclass(slots=True)
class MessageDelivered(Moment):
    """A broker put a delayed message; the model does not have it yet.

    Attributes:
        message: as the broker put it.
        answer: of the store.
        waited: the delayed message, as it lies in its level's queue; None: none does.
        expected: the offset of the message that its level had to deliver next.
        latest: the same, if all has gone by then that a cleaner deletes in the step.
        asked_ms: the store's clock when it was put.
    """

    message: MessageToPut
    answer: Put
    waited: Appended | None
    expected: int
    latest: int
    asked_ms: int

    @property
    def stored_ms(self) -> int:
        """When the delayed message was stored, as its record says; 0: it has none."""
        assert self.waited is not None
        return _stored_ms(self.look.image(), self.waited)


@dataclass(slots=True)
class DelaysWritten(Moment):
    """A store whose rounds have persisted how far delays are delivered has files."""

    files: Mapping[str, bytes]


@dataclass(slots=True)
class DelaysPersisted(Moment):
    """A persist of the delays' offsets, with nothing beside it, has left these files.

    ``flushed`` is up to where the log was durable then.
    """

    files: Mapping[str, bytes]
    flushed: int


@dataclass(slots=True)
class DelaysFound(Moment):
    """A start of a store that delivers delayed messages found these files."""

    files: Mapping[str, bytes]


@dataclass(slots=True)
class DelaysRecovered(Moment):
    """A start on these files came up with these offsets; the model has its log."""

    files: Mapping[str, bytes]
    offsets: Mapping[int, int]


@dataclass(slots=True)
class AllDelivered(Moment):
    """A healed store has delivered for as long as anything could be due."""


@dataclass(slots=True)
class StatisticsSeen(Moment):
    """A store has reported its statistics."""

    seen: Statistics
