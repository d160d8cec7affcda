"""How to declare at which moments a law is asked, and under which conditions.

``@asked`` decorates a function that passes the law its arguments from a moment::

    @asked(no_unit_past_the_log, on=StoreUp, needs=(Fact.UNTOUCHED,))
    def _(at: StoreUp) -> Breaches:
        return no_unit_past_the_log.judge(at.found)

``where`` selects the moments to which the law applies; ``needs`` are the facts that
must hold. A moment at which a fact does not hold is excused, and counted; one to which
the law does not apply is not counted. At one moment laws are asked in the order of
their declaration. ``@asked_together`` declares a function that asks several laws, or
one law of several things.

Some facts follow from what a subject can do (``models.knowledge.facts``), so they are
checked once, when a judge begins: a law that can never be asked of its subject is left
out, and counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.store_image import StoreImage
from crashmq.models.knowledge.facts import HOLDS, Fact, decided_by
from crashmq.models.knowledge.knowledge import INDEX, LOG, QUEUES, Knowledge
from crashmq.models.knowledge.moments import (
    AfterFailedFlush,
    AllDelivered,
    CaughtUp,
    CleanerOver,
    CommitAnswered,
    DelaysFound,
    DelaysPersisted,
    DelaysRecovered,
    DelaysWritten,
    DeletionOver,
    DeletionRefused,
    DeliveryRoundOver,
    FilesAtRest,
    FilesFound,
    FilteredPullBounded,
    FilteredPullOver,
    FilterMissed,
    FiltersRecovered,
    LevelsUnread,
    LogRecovered,
    LogRecoveredAround,
    LogShortened,
    LookBeside,
    LookOver,
    LowestAnswered,
    MediumSeen,
    MessageDelivered,
    Moment,
    NamesAnswered,
    NumberAnswered,
    OffsetAnswered,
    OffsetCommitted,
    OffsetsFound,
    OffsetsPersisted,
    OffsetsRecovered,
    PositionsSeen,
    PullAround,
    PullBeside,
    PutAround,
    PutsOrdered,
    QueryAround,
    QueryBeside,
    QueryOver,
    QueueBegun,
    QueuesRecovered,
    ResetAnswered,
    RotRecovered,
    RoundDue,
    RoundOver,
    SearchAround,
    SearchBeside,
    SearchOver,
    StartLeft,
    StatisticsSeen,
    StepOver,
    StoreUp,
    TimeFound,
    TopicGone,
    TopicsGone,
)
from crashmq.models.knowledge.moments_of_consumers import (
    BackRefused,
    ChangeAnswered,
    ConsumerAnswered,
    ConsumerCommitted,
    ConsumerIdle,
    ConsumerStopped,
    ConsumerTold,
    ElsewhereNeeded,
    ExpiredLeft,
    FailureSentBack,
    GivenBackAgain,
    GroupCaughtUp,
    GroupConfigsSeen,
    GroupIdle,
    GroupIsAt,
    HeartbeatOver,
    LockAnswered,
    LockingConsumerStopped,
    LockNeeded,
    LocksRenewed,
    MembersChanged,
    MembersListed,
    MessageConsumed,
    MessageGivenUp,
    MessageSent,
    MessageSentBack,
    MessagesPulled,
    MoveTaken,
    NothingToDo,
    PullDue,
    PullGoesOn,
    PullMoved,
    PullsSuspended,
    PullTimed,
    QueueBegunAnew,
    QueueGivenBack,
    QueuePersisted,
    QueueRetaken,
    QueuesShared,
    QueuesTaken,
    RebalanceOver,
    ResetObeyed,
    TableTurned,
    TaskReported,
    TopicsChanged,
    TopicsNeeded,
)
from crashmq.models.knowledge.moments_of_pulls import (
    DispatchSeen,
    OffsetBehindPull,
    PullAnswered,
    PullAsleep,
    PullKept,
    PullsLeft,
    PullsLookedAt,
)
from crashmq.models.knowledge.moments_of_rounds import (
    FileTaken,
    IndexFilesMade,
    MarkWritten,
    PutsWaited,
    RoundCounted,
    RoundHindered,
    RoundTurned,
    ServiceAsked,
)
from crashmq.models.laws.file_laws import (
    CHECKPOINT_LAWS,
    DELETION_LAWS,
    FILE_LAWS,
    INDEX_LAWS,
    LOG_LAWS,
    QUEUE_LAWS,
)
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import Law, LawUnknown, LawViolated
from crashmq.models.ops import Capability
from crashmq.models.verdict import Violation

Breaches: TypeAlias = Iterator[Violation]
Checks: TypeAlias = dict[str, int]
M = TypeVar("M", bound=Moment)
_ALWAYS: tuple[Fact, ...] = ()
TELLS_ALL = (Fact.STORES_AS_ROCKETMQ, Fact.TELLS_POSITIONS)
_beside_the_image = attrgetter(
    *[field.name for field in fields(Judged) if field.name != "image"]
)


@dataclass(frozen=True, slots=True)
class Question:
    """One law, or one group of laws, at one kind of moment.

    Either one law with a function ``judge`` that the judge calls, or a function ``ask``
    that asks the laws itself.
    """

    laws: tuple[Law[Any], ...]
    needs: tuple[Fact, ...]
    where: Callable[[Any], bool] | None
    ask: Callable[[Any, Checks], None] | None
    judge: Callable[[Any], Breaches] | None = None

    def violated(self, found: list[Violation]) -> LawViolated:
        """The exception for a violation of its law; only for a question of one law."""
        return self.laws[0].error(found)

    def unknown(self, cause: Exception) -> LawUnknown:
        """The exception for an error in its law; only for a question of one law."""
        return LawUnknown(self.laws[0].id, cause)


OF_MOMENTS: Final[Mapping[type[Moment], tuple[Fact, ...]]] = {
    FilesFound: (Fact.STORES_AS_ROCKETMQ,),
    **dict.fromkeys(
        (
            *(FilesAtRest, StoreUp, LogRecovered, RotRecovered, LogRecoveredAround),
            *(QueuesRecovered, StartLeft, AfterFailedFlush, PullAround, PutAround),
        ),
        TELLS_ALL,
    ),
    RoundOver: (*TELLS_ALL, Fact.TURNS_SERVICES),
    RoundTurned: (*TELLS_ALL, Fact.TURNS_SERVICES, Fact.HAS_CLOCK),
    RoundCounted: (*TELLS_ALL, Fact.TURNS_SERVICES, Fact.HAS_CLOCK),
    ServiceAsked: (*TELLS_ALL, Fact.TURNS_SERVICES),
    RoundHindered: (*TELLS_ALL, Fact.TURNS_SERVICES, Fact.RUNS_SEVERAL),
    PutsWaited: (Fact.HAS_CLOCK, Fact.RUNS_SEVERAL),
    **dict.fromkeys((FileTaken, MarkWritten), (*TELLS_ALL, Fact.LOSES_POWER)),
    IndexFilesMade: (*TELLS_ALL, Fact.HAS_CLOCK, Fact.LOSES_POWER),
    RoundDue: (*TELLS_ALL, Fact.TURNS_SERVICES, Fact.HAS_CLOCK),
    CleanerOver: (*TELLS_ALL, Fact.TURNS_SERVICES, Fact.HAS_CLOCK, Fact.DELETES),
    LogShortened: (*TELLS_ALL, Fact.TURNS_SERVICES, Fact.HAS_CLOCK),
    CaughtUp: (*TELLS_ALL, Fact.TURNS_SERVICES, Fact.HAS_CLOCK),
    MediumSeen: (*TELLS_ALL, Fact.LOSES_POWER),
    **dict.fromkeys((DeletionOver, DeletionRefused), (*TELLS_ALL, Fact.DELETES)),
    TopicGone: (*TELLS_ALL, Fact.DELETES),
    TopicsGone: (*TELLS_ALL, Fact.DELETES),
    PositionsSeen: (Fact.TELLS_POSITIONS,),
    PutsOrdered: (Fact.RUNS_SEVERAL,),
    PullBeside: TELLS_ALL,
    LookBeside: (*TELLS_ALL, Fact.SEARCHES),
    **dict.fromkeys(
        (SearchBeside, QueryBeside), (*TELLS_ALL, Fact.SEARCHES, Fact.HAS_CLOCK)
    ),
    StatisticsSeen: (*TELLS_ALL, Fact.HAS_CLOCK, Fact.TELLS_COUNTS),
    LookOver: (*TELLS_ALL, Fact.SEARCHES),
    **dict.fromkeys(
        (SearchOver, QueryOver, SearchAround, QueryAround),
        (*TELLS_ALL, Fact.SEARCHES, Fact.HAS_CLOCK),
    ),
    **dict.fromkeys(
        (
            *(OffsetAnswered, OffsetCommitted, QueueBegun, OffsetsPersisted),
            *(CommitAnswered, ResetAnswered, LowestAnswered),
            *(NamesAnswered, NumberAnswered, TimeFound),
        ),
        (*TELLS_ALL, Fact.TRACKS_PROGRESS),
    ),
    **dict.fromkeys(
        (OffsetsFound, OffsetsRecovered), (*TELLS_ALL, Fact.TRACKS_PROGRESS)
    ),
    **dict.fromkeys(
        (
            *(PullGoesOn, MessagesPulled, GroupIsAt, MessageConsumed, MessageSentBack),
            *(LockAnswered, LockNeeded, LockingConsumerStopped),
            *(QueueGivenBack, QueueBegunAnew),
            *(ConsumerCommitted, PullMoved, MoveTaken, MembersListed, TopicsNeeded),
            *(MembersChanged, ElsewhereNeeded),
            *(HeartbeatOver, LocksRenewed, QueuePersisted, QueuesTaken),
            *(FailureSentBack, GivenBackAgain, PullsSuspended, MessageSent),
            *(ResetObeyed, TopicsChanged, BackRefused, ConsumerAnswered),
            *(ConsumerIdle, ConsumerTold, TaskReported, RebalanceOver),
        ),
        (*TELLS_ALL, Fact.RUNS_CONSUMERS, Fact.TRACKS_PROGRESS),
    ),
    **dict.fromkeys(
        (QueuesShared, GroupCaughtUp, GroupIdle),
        (
            *TELLS_ALL,
            *(Fact.RUNS_CONSUMERS, Fact.TRACKS_PROGRESS),
            *(Fact.TURNS_SERVICES, Fact.HAS_CLOCK),
        ),
    ),
    **dict.fromkeys(
        (PullAnswered, PullKept, PullAsleep, PullsLeft, PullsLookedAt),
        (*TELLS_ALL, Fact.HOLDS_PULLS),
    ),
    ChangeAnswered: (*TELLS_ALL, Fact.TRACKS_PROGRESS),
    GroupConfigsSeen: (*TELLS_ALL, Fact.TRACKS_PROGRESS),
    TableTurned: (*TELLS_ALL, Fact.TRACKS_PROGRESS, Fact.HAS_CLOCK),
    **dict.fromkeys(
        (
            *(NothingToDo, PullDue, PullTimed, QueueRetaken, ExpiredLeft),
            *(MessageGivenUp, ConsumerStopped),
        ),
        (*TELLS_ALL, Fact.RUNS_CONSUMERS, Fact.TRACKS_PROGRESS, Fact.HAS_CLOCK),
    ),
    OffsetBehindPull: (*TELLS_ALL, Fact.HOLDS_PULLS, Fact.TRACKS_PROGRESS),
    DispatchSeen: (*TELLS_ALL, Fact.TURNS_SERVICES),
    **dict.fromkeys(
        (FilteredPullOver, FilteredPullBounded, FilterMissed, FiltersRecovered),
        (*TELLS_ALL, Fact.FILTERS),
    ),
    **dict.fromkeys(
        (
            *(MessageDelivered, DelaysWritten, DelaysPersisted),
            *(DelaysFound, DelaysRecovered, AllDelivered, DeliveryRoundOver),
            LevelsUnread,
        ),
        (*TELLS_ALL, Fact.DELIVERS_DELAYED),
    ),
    StepOver: (Fact.TAKES_DAMAGE,),
}
"""What a subject must be able to do for a kind of moment to come at all."""

_QUESTIONS: dict[type[Moment], list[Question]] = {}


def asked(
    law: Law[Any],
    *,
    on: type[M],
    needs: tuple[Fact, ...] = _ALWAYS,
    where: Callable[[M], bool] | None = None,
) -> Callable[[Callable[[M], Breaches]], Callable[[M], Breaches]]:
    """Declare that a law is asked at a kind of moment.

    Args:
        law: the law.
        on: the kind of moment.
        needs: the facts that must hold, or the law is excused.
        where: to which of these moments it applies; None: to each.
    """

    def declare(judge: Callable[[M], Breaches]) -> Callable[[M], Breaches]:
        facts = (*OF_MOMENTS.get(on, ()), *needs)
        _declare(on, Question((law,), facts, where, None, judge))
        return judge

    return declare


def asked_together(
    laws: Sequence[Law[Any]],
    *,
    on: type[M],
    needs: tuple[Fact, ...] = _ALWAYS,
    where: Callable[[M], bool] | None = None,
) -> Callable[[Callable[[M, Checks], None]], Callable[[M, Checks], None]]:
    """Declare that laws are asked at a kind of moment; as ``asked`` otherwise."""

    def declare(ask: Callable[[M, Checks], None]) -> Callable[[M, Checks], None]:
        facts = (*OF_MOMENTS.get(on, ()), *needs)
        _declare(on, Question(tuple(laws), facts, where, ask))
        return ask

    return declare


def _declare(on: type[Moment], question: Question) -> None:
    _QUESTIONS.setdefault(on, []).append(question)


def questions() -> Mapping[type[Moment], Sequence[Question]]:
    """All declarations, by the kind of moment, in their order."""
    return _QUESTIONS


class Prepared(NamedTuple):
    """A question with everything looked up that is needed each time.

    ``law_id`` is that of its only law, if the judge counts it; else it is "".
    """

    where: Callable[[Any], bool] | None
    proofs: tuple[Callable[[Moment], bool], ...]
    law_id: str
    judge: Callable[[Any], Breaches] | None
    ask: Callable[[Any, Checks], None] | None
    question: Question


class Askable(NamedTuple):
    """The questions that can be asked of a subject; and, by fact, the laws that cannot.

    A law that can be asked at one moment does not count as one that cannot.
    """

    questions: Mapping[type[Moment], Sequence[Prepared]]
    never: Mapping[tuple[str, Fact], int]


@cache
def askable(capabilities: frozenset[Capability]) -> Askable:
    """The questions that a judge can ask of a subject with these capabilities.

    Call it once all laws are declared. Facts that are certain for such a subject are
    not checked again.
    """
    decided = decided_by(capabilities)
    kept: dict[type[Moment], list[Prepared]] = {}
    never: dict[tuple[str, Fact], int] = {}
    for on, asked_then in _QUESTIONS.items():
        for question in asked_then:
            lacking = [one for one in question.needs if not decided.get(one, True)]
            if lacking:
                never.update({(law.id, lacking[0]): 1 for law in question.laws})
                continue
            open_facts = tuple([one for one in question.needs if one not in decided])
            proofs = tuple([HOLDS[one] for one in open_facts])
            asked_so = replace(question, needs=open_facts)
            law_id = question.laws[0].id if question.judge is not None else ""
            how = (law_id, question.judge, question.ask)
            one = Prepared(question.where, proofs, *how, asked_so)
            kept.setdefault(on, []).append(one)
    can = {law.id for of in kept.values() for one in of for law in one.question.laws}
    return Askable(kept, {key: n for key, n in never.items() if key[0] not in can})


def hold_all(
    checks: Checks, name: str, laws: Sequence[Law[[Judged]]], judged: Judged
) -> None:
    """Judge files by a group of laws of that name, once for each image.

    Raises:
        LawViolated: the first law that was violated.
        LawUnknown: a law raised an error.
    """
    kept = judged.image.kept_laws
    key = (name, _beside_the_image(judged))
    if key in kept:
        for law in laws:
            checks[law.id] = checks.get(law.id, 0) + 1
        return
    for law in laws:
        checks[law.id] = checks.get(law.id, 0) + 1
        try:
            for _ in law.judge(judged):
                break
            else:
                continue
        except Exception as error:
            raise LawUnknown(law.id, error) from error
        raise law.error(law.violations(judged))
    kept.add(key)


_GROUPS = (
    ("log files", LOG_LAWS, LOG),
    ("queue files", QUEUE_LAWS, (*LOG, *QUEUES, DELETED_PATH)),
    ("checkpoint", CHECKPOINT_LAWS, None),
    ("index files", INDEX_LAWS, (*LOG, *INDEX, DELETED_PATH)),
    ("deletions", DELETION_LAWS, None),
)
"""The laws of the files, with the parts of the store that they hang on; None: all."""


def hold_files(
    checks: Checks, known: Knowledge, image: StoreImage, reput_from_offset: int
) -> None:
    """Judge the files of a store, running or at rest, by every law about files.

    If calls failed on a part of the store, the laws that depend on it demand less.
    """
    if not known.disk_failed:
        judged = known.judged(image, reput_from_offset, clean=True)
        hold_all(checks, "files", FILE_LAWS, judged)
        return
    for name, laws, parts in _GROUPS:
        clean = parts is not None and known.works(parts)
        judged = known.judged(image, reput_from_offset, clean=clean)
        hold_all(checks, name, laws, judged)
