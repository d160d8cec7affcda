"""Moments: the points of a step at which laws are asked, and what is known there.

``models.knowledge.walk`` creates them in the order in which a step is judged: answers
of the run that ended, its shutdown, what a start found and left, answers of the new
run, service rounds, the medium, positions, reads, and what the run still has to sync. A
moment is created, judged and dropped; its fields are valid until the walk goes on.
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
from crashmq.models.laws.around import Floors
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
    TopicsCleaned,
)
from crashmq.models.ops import (
    AskBroker,
    CleanTopics,
    LookMessage,
    PullFiltered,
    PullMessage,
    QueryMessage,
    SearchOffset,
)


class LookedAt(Protocol):
    """What a judge reads from a subject by itself, apart from the history."""

    @property
    def epoch_ms(self) -> int:
        """When the subject's wall clock began, in ms since the epoch."""

    def files(self) -> Mapping[str, bytes]:
        """The store's files as a reader sees them now, by path."""

    def unsynced_from(self) -> Mapping[str, int]:
        """The files that a power loss could change, and where; see ``Subject``."""

    def half_made(self) -> HalfMade:
        """The files whose creation is not durable; see ``Subject``."""


class Look(LookedAt, Protocol):
    """What can be read of a store and its files at a moment.

    ``files`` are the store's own files, without foreign ones.
    """

    def image(self) -> StoreImage:
        """The store's files as they are now, decoded."""

    def image_of(self, files: Mapping[str, bytes]) -> StoreImage:
        """Files that a start found, decoded."""

    def all_files(self) -> Mapping[str, bytes]:
        """``files`` and the foreign files."""


class At(NamedTuple):
    """The fields that every moment has.

    Attributes:
        step: what was done in the step, and with what result.
        known: what is known so far.
        look: access to the store after the step.
        now: the positions that the store reports after the step; all -1 while it is
            down.
    """

    step: Step
    known: Knowledge
    look: Look
    now: Positions


@dataclass(slots=True)
class Moment:
    """A point within a step at which laws are asked; see ``At``."""

    step: Step
    known: Knowledge
    look: Look
    now: Positions


@dataclass(slots=True)
class OpOver(Moment):
    """An op that raised or contained a start has ended; nothing of it is judged yet."""


@dataclass(slots=True)
class CheckedReads(Moment):
    """A store that checks CRCs on reads has answered reads."""


@dataclass(slots=True)
class PutsOver(Moment):
    """All puts of a step have ended, batches included."""


@dataclass(slots=True)
class DeletionOver(Moment):
    """A deletion of a topic or queue has ended.

    Attributes:
        dead_below: the phy_offset it answered; -1: there was nothing to delete.
        lowest: the lowest log end while it ran.
        highest: the highest log end while it ran.
        had_messages: the topic or queue certainly had messages.
    """

    dead_below: int
    lowest: int
    highest: int
    had_messages: bool


@dataclass(slots=True)
class DeletionRefused(Moment):
    """A deletion of a topic or queue was refused.

    Attributes:
        why: what the store gave as its reason.
    """

    why: str


@dataclass(slots=True)
class PutOver(Moment):
    """A put was answered; the model does not contain it yet.

    Attributes:
        message: what was put.
        answer: the store's answer.
        place: the phy_offset where the record must lie; -1 if unknown.
        next_queue_offset: the lowest queue offset that it may get.
        unseen: how many unanswered puts may have got a queue_offset of its queue
            before.
        size: bytes that its record must take.
        may_refuse: the store may refuse it: the disk failed, puts may have been
            stopped, or there was no room.
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
    """Ops that began together have put; each answer comes with its events' numbers."""

    spans: Sequence[tuple[Put, tuple[int, int]]]


@dataclass(slots=True)
class StopOver(Moment):
    """A shutdown has ended."""

    stop: Stopped


@dataclass(slots=True)
class FilesAtRest(Moment):
    """The files of a store at rest, or of one that has just finished changing files.

    Attributes:
        image: the decoded files.
        reput_from_offset: the dispatch progress, a phy_offset.
        dispatched: a dispatch round has ended, so that what it writes is right even
            if the disk failed before.
    """

    image: StoreImage
    reput_from_offset: int
    dispatched: bool = False


@dataclass(slots=True)
class FilesFound(Moment):
    """A start found these files and has not repaired them yet."""

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
    """A start on the files ``found`` has succeeded or refused.

    Attributes:
        start: its answer.
        at_full_size: the files, with short log files of a damaged log filled up to
            their size.
        log_is_damaged: the log was changed from outside, or the store skips damaged
            records.
        misfit: which of the changed files cannot belong to such a store, or which
            option has a value that none can work with; "" if none.
        lost: what the start needed and cannot be read; "" if nothing.
        is_foreign: damage took the mark, and the start may not adopt such a store.
        lost_its_mark: only an older mark is left, and files that it names have
            expired.
        is_short: an old file that the start leaves unread is cut.
        is_windowed: the start may leave old files unread, and with them any damage
            in them.
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
        """What was changed in the files since the previous start."""
        return self.known.tampering.damaged

    @property
    def reads_failed(self) -> bool:
        """Whether reads were made to fail, so that the start may have met anything."""
        return self.step.fails_reads

    @property
    def is_plain(self) -> bool:
        """Whether damage is the only thing that the start can have met."""
        return not (self.misfit or self.lost or self.reads_failed)

    @property
    def listed(self) -> Sequence[tuple[int, int]]:
        """The ranges that the start lists as damaged."""
        return self.start.damaged if isinstance(self.start, Started) else ()


@dataclass(slots=True)
class StoreUp(Moment):
    """A start on the files ``found`` has succeeded."""

    found: StoreImage
    start: Started
    left: StoreImage


@dataclass(slots=True)
class LogRecovered(Moment):
    """A start has recovered a log; the model has not adopted it yet.

    Attributes:
        records: the recovered records.
        messages: the messages appended since the recovered log's beginning.
        floor: the phy_offset up to which the crash must have spared the log.
        log_min: where the log begins.
        deletions: the deleted topics, with their phy_offsets, as the start read
            them.
        log_end: where the log ended before the crash.
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
        whole: the intact records by phy_offset.
        floors: what of the log must be there, and what must be listed.
        start: its answer.
    """

    whole: Mapping[int, Record]
    floors: Floors
    start: Started


@dataclass(slots=True)
class QueuesRecovered(Moment):
    """The model has adopted a recovered log; queues without records keep their ends.

    Attributes:
        found_ends: where the queues' files end, as queue offsets.
        ends: where those without a record in the log must end.
    """

    found_ends: Mapping[QueueKey, int]
    ends: Mapping[QueueKey, int]


@dataclass(slots=True)
class StartLeft(Moment):
    """A start that ran alone has ended, and these are the files.

    Attributes:
        before: the files that the previous start had left; None if something
            happened since.
        found: what this start found.
        at_full_size: the same, each short log file filled with zeros if the log was
            damaged.
        left: what this start left.
        after_orderly_end: the previous run ended with an orderly shutdown.
        takes_over: another program left what this start found.
    """

    before: Mapping[str, Bytes] | None
    found: StoreImage
    at_full_size: StoreImage
    left: Mapping[str, Bytes]
    after_orderly_end: bool
    takes_over: bool

    @property
    def expired_index_files(self) -> Collection[str]:
        """Index files whose records have all expired: the start may remove them."""
        setup = self.known.setup
        log_min = self.found.commit_log.min_phy_offset
        index = self.found.index(setup.index_slots).files if setup.has_index else ()
        return [p for p, file in index if file.header.end_phy_offset < log_min]


@dataclass(slots=True)
class RoundOver(Moment):
    """Rounds of a service, run by the op itself, have ended.

    Attributes:
        work: the work that they report.
    """

    service: str
    work: int


@dataclass(slots=True)
class MediumSeen(Moment):
    """A step that may have made data durable has ended."""

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
    """The op itself was a deletion of a topic or queue, and deleted something."""

    topic: str
    queue_id: int


@dataclass(slots=True)
class TopicsGone(Moment):
    """The op itself was a deletion of all topics that are not retained."""

    op: CleanTopics
    cleaned: TopicsCleaned


@dataclass(slots=True)
class LogShortened(Moment):
    """The log begins later than before; the model does not know that yet."""


@dataclass(slots=True)
class CleanerOver(Moment):
    """Rounds of a cleaner, run by the op itself, have ended, and nothing else ran.

    Attributes:
        service: the cleaner of the log, or of the queues.
        work: the work that they report.
    """

    service: str
    work: int


@dataclass(slots=True)
class PositionsSeen(Moment):
    """A running store has reported its positions; the model has not noted them yet."""


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
    """A lookup was answered; ``messages`` are those that it could have found."""

    look_up: LookMessage
    looked: Looked
    messages: Sequence[Appended]


@dataclass(slots=True)
class SearchOver(Moment):
    """A store that skips no damaged records has answered a search by time.

    Attributes:
        first: the first queue offset that a reader finds.
        times: the store_timestamp of each message from there on.
    """

    search: SearchOffset
    searched: Searched
    first: int
    times: Sequence[int]


@dataclass(slots=True)
class PullBeside(Moment):
    """A pull that overlapped other ops was answered; it met one of ``queues``."""

    pull: PullMessage
    pulled: Pulled
    queues: Sequence[QueueBetween]


@dataclass(slots=True)
class FilteredPullBounded(Moment):
    """A filtered pull was answered; it met one of ``queues``, its queue's states."""

    pull: PullFiltered
    pulled: Pulled
    queues: Sequence[QueueBetween]


@dataclass(slots=True)
class PullSeenBefore(Moment):
    """A pull was answered; ``seen``: the highest offsets of its queue until then.

    The queue's min and max offset, from answers of this run of the store that were
    given before the pull began.
    """

    pull: PullMessage
    pulled: Pulled
    seen: tuple[int, int]


@dataclass(slots=True)
class LookBeside(Moment):
    """A lookup that overlapped other ops was answered.

    ``model`` holds what was put, except for ``rivals``, puts without an answer.
    """

    look_up: LookMessage
    looked: Looked
    log: LogBetween
    model: ReferenceModel
    rivals: Sequence[MessageToPut]


@dataclass(slots=True)
class SearchBeside(Moment):
    """A search by time that overlapped other ops was answered.

    Attributes:
        met: the possible states of the queue, each with the store_timestamps of its
            messages by queue_offset; -1: unknown.
        firsts: store_timestamps of the messages with which the log may have begun.
    """

    search: SearchOffset
    searched: Searched
    met: Sequence[tuple[QueueBetween, Mapping[int, int]]]
    firsts: Sequence[int]


@dataclass(slots=True)
class QueryBeside(Moment):
    """A query by key that overlapped other ops was answered.

    Attributes:
        sure: phy_offsets of the matches that it must have found.
        times: the range of their store_timestamps.
        model: what was put, except for ``rivals``, puts without an answer.
        log: the bounds of the log while it ran.
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
        times: the store_timestamp of each intact message of the queue, by queue
            offset.
        ready: the queue offsets of those that must be found.
        earliest: the store_timestamp of the log's first intact message; -1 if there
            is none.
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
    """A step went on in a run of the store whose flushes ``failed`` had failed."""

    failed: frozenset[str]


@dataclass(slots=True)
class RoundDue(Moment):
    """A round had to sync or commit what had waited for its thorough interval."""

    service: str
    waits: Waiting


@dataclass(slots=True)
class StepOver(Moment):
    """Everything of a step is judged, except for foreign files."""


@dataclass(slots=True)
class CaughtUp(Moment):
    """A store without faults has run all services; those in ``busy`` still had work."""

    busy: Sequence[str]


@dataclass(slots=True)
class OffsetAnswered(Moment):
    """A broker answered a group's offset; ``pending`` is that of a pending reset.

    Attributes:
        possible: the offsets that the group may have; -1: none.
    """

    key: OffsetKey
    offset: int
    possible: frozenset[int]
    pending: bool


@dataclass(slots=True)
class OffsetCommitted(Moment):
    """A consumer committed an offset in an op that ran alone, with no reset pending.

    Attributes:
        told: the offset that was sent to the broker.
        asked: the offset that the consumer wanted to commit.
        before: the offsets that its group may have had.
    """

    key: OffsetKey
    told: int
    asked: int
    before: frozenset[int]


@dataclass(slots=True)
class QueueBegun(Moment):
    """A consumer that was assigned a queue begins with it.

    Attributes:
        possible: the offsets that its group may have; -1: none.
        begins: where a group without an offset begins; None: unknown.
    """

    key: OffsetKey
    begun: int
    possible: frozenset[int]
    begins: frozenset[int] | None


@dataclass(slots=True)
class CommitAnswered(Moment):
    """A broker accepted or refused a commit that ran alone, with no reset pending.

    ``end`` is the queue's next offset, dispatched or not.
    """

    key: OffsetKey
    told: int
    accepted: bool
    end: int


@dataclass(slots=True)
class ResetAnswered(Moment):
    """A group's offset was reset by an op that ran alone, or refused (``offset`` -1).

    ``targets`` are the offsets it may have been set to.
    """

    key: OffsetKey
    offset: int
    targets: frozenset[int]


@dataclass(slots=True)
class LowestAnswered(Moment):
    """A broker answered a query of the lowest offsets that ran alone.

    ``possible`` are the right answers for each queue; -1: no group has an offset.
    """

    topic: str
    rows: Sequence[tuple[int, int]]
    possible: Mapping[int, frozenset[int]]


@dataclass(slots=True)
class NamesAnswered(Moment):
    """A broker has answered a question by names.

    Attributes:
        ask: the question.
        names: the answer.
        must: the names that it must contain.
        may: the names that it may contain.
    """

    ask: AskBroker
    names: Sequence[str]
    must: frozenset[str]
    may: frozenset[str]


@dataclass(slots=True)
class NumberAnswered(Moment):
    """A broker has answered a question by a number; ``possible`` are right answers."""

    ask: AskBroker
    number: int
    possible: frozenset[int]


@dataclass(slots=True)
class TimeFound(Moment):
    """A broker has answered a search by time that ran alone.

    ``first`` is the right answer.
    """

    key: QueueKey
    number: int
    first: int


@dataclass(slots=True)
class OffsetsPersisted(Moment):
    """A persist of the consumer offsets that ran alone has left these files."""

    files: Mapping[str, bytes]


@dataclass(slots=True)
class OffsetsFound(Moment):
    """A start of a store that keeps consumer offsets found these files."""

    files: Mapping[str, bytes]


@dataclass(slots=True)
class OffsetsRecovered(Moment):
    """A start has loaded consumer offsets, and the ends of the queues are known."""

    recovered: Recovered
    ends: Ends


@dataclass(slots=True)
class FilteredPullOver(Moment):
    """A store that skips no damaged records has answered a filtered pull.

    Attributes:
        queue: every message appended to the queue.
        possible: the expressions that may have been used; None if unknown.
    """

    pull: PullFiltered
    answer: FilteredPull
    queue: Sequence[Appended]
    possible: frozenset[tuple[str, str]] | None


@dataclass(slots=True)
class FilterMissed(Moment):
    """A store had no filter for a group's pull; ``possible``: see FilteredPullOver."""

    pull: PullFiltered
    possible: frozenset[tuple[str, str]] | None


@dataclass(slots=True)
class FiltersRecovered(Moment):
    """A start on these files has loaded the filters ``rows``."""

    files: Mapping[str, bytes]
    rows: FilterRows


@dataclass(slots=True)
class DeliveryRoundOver(Moment):
    """A delivery round that ran alone has ended.

    ``first`` is, by level, the first dispatched message that it left waiting; a level
    in which a delivery was refused is absent.
    """

    first: Mapping[int, Appended]


@dataclass(slots=True)
class LevelsUnread(Moment):
    """A delivery round has failed only at reading the queues of some levels.

    ``first`` is, by other level, the first dispatched message that it left waiting.
    """

    first: Mapping[int, Appended]


def stored_by_level(
    image: StoreImage, first: Mapping[int, Appended]
) -> Mapping[int, int]:
    """The store_timestamp of each of these messages whose record has one, by level."""
    times = {level: _stored_ms(image, one) for level, one in first.items()}
    return {level: time for level, time in times.items() if time > 0}


def _stored_ms(image: StoreImage, waiting: Appended) -> int:
    """The store_timestamp of a waiting message, from its record; 0: it has none."""
    key = (waiting.message.topic, waiting.message.queue_id)
    for record in reversed(image.commit_log.indexed_records.get(key, [])):
        if record.phy_offset == waiting.phy_offset:
            return record.store_timestamp
    return 0


@dataclass(slots=True)
class MessageDelivered(Moment):
    """A broker put a delayed message to its topic; the model does not contain it yet.

    Attributes:
        message: as the broker put it.
        answer: the store's answer.
        waited: the delayed message, as it lies in its level's queue; None: there is
            none.
        expected: the offset of the message that its level had to deliver next.
        latest: the same if a cleaner deletes all that it may in the step.
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
        """The delayed message's store_timestamp, from its record; 0: it has none."""
        assert self.waited is not None
        return _stored_ms(self.look.image(), self.waited)


@dataclass(slots=True)
class DelaysWritten(Moment):
    """A store has persisted its delay offsets to these files."""

    files: Mapping[str, bytes]


@dataclass(slots=True)
class DelaysPersisted(Moment):
    """A persist of the delay offsets that ran alone has left these files.

    ``flushed`` is the phy_offset up to which the log was durable then.
    """

    files: Mapping[str, bytes]
    flushed: int


@dataclass(slots=True)
class DelaysFound(Moment):
    """A start of a store that delivers delayed messages found these files."""

    files: Mapping[str, bytes]


@dataclass(slots=True)
class DelaysRecovered(Moment):
    """A start on these files has loaded these delay offsets, and its log is adopted."""

    files: Mapping[str, bytes]
    offsets: Mapping[int, int]


@dataclass(slots=True)
class AllDelivered(Moment):
    """A fault-free store has run delivery until no message could be due any more."""


@dataclass(slots=True)
class StatisticsSeen(Moment):
    """A store has reported its statistics."""

    seen: Statistics
