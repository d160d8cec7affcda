"""The history of a run: the events of a store, in order.

Whoever runs ops appends events, each with the time of the store's clock and the number
of its activity; none is changed or removed. The judge, the timeline, the rows of a soak
and a program's digest all read these events. A ``Step`` is the history of one op as a
whole: what was put, read, stopped and started, and in which run of the store.

A subject in another language can report the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    DOWN,
    BrokerPulled,
    Damaged,
    EndAwaited,
    Failed,
    FilteredPull,
    Looked,
    NotFiltered,
    Observation,
    Planted,
    Positions,
    Pulled,
    Put,
    Queried,
    Ran,
    Searched,
    Started,
    Stopped,
    World,
)
from crashmq.models.ops import (
    SILENT,
    AdvanceClock,
    ChangeConfig,
    ConsumerEnd,
    ConsumeStatus,
    Crash,
    Damage,
    DeleteTopic,
    DiskFault,
    During,
    Event,
    FaultCall,
    FilterOp,
    LookMessage,
    PlantFile,
    ProgressOp,
    PullFiltered,
    PullMessage,
    PullThroughBroker,
    QueryMessage,
    Resubscribe,
    RunService,
    SearchOffset,
    SendMessage,
    ServiceName,
    Session,
    StartConsumer,
    all_parts,
)
from crashmq.models.quickly_made import quickly_made

MAIN = 0
"""The activity of an op itself; what happens beside it has numbers from 1 on."""


@quickly_made
@dataclass(frozen=True, slots=True)
class OpBegan:
    """An op begins; ``world`` is the clock and the room on the disk before it."""

    op: Event
    world: World


@quickly_made
@dataclass(frozen=True, slots=True)
class OthersMayAct:
    """Other ops or services may run while the op runs.

    ``together``: they are ops that begin at the same time.
    """

    together: bool


@quickly_made
@dataclass(frozen=True, slots=True)
class PutAsked:
    """A message, or the messages of one batch, were passed to the store.

    A delayed message has the topic and queue it is stored in first; ``is_delivered``
    marks a message put by the broker itself.
    """

    messages: tuple[MessageToPut, ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class PutAnswered:
    """The store has answered a put.

    Attributes:
        asked: the number of the ``PutAsked`` event.
        answers: one for each message.
        of_batch: the answer to a batch as a whole; None for a single message.
        waited_ms: from the call to the answer by the store's clock, in ms, including
            time by which others moved the clock.
    """

    asked: int
    answers: tuple[Put, ...]
    of_batch: Put | None
    waited_ms: int


Read: TypeAlias = PullMessage | LookMessage | SearchOffset | QueryMessage | PullFiltered
Answer: TypeAlias = Pulled | Looked | Searched | Queried | FilteredPull | NotFiltered


@quickly_made
@dataclass(frozen=True, slots=True)
class ReadAsked:
    """A caller begins a read others may overlap; ``stands``: the log's positions."""

    read: Read
    stands: Positions


@quickly_made
@dataclass(frozen=True, slots=True)
class ReadAnswered:
    """The store has answered a pull, a lookup, a search or a query.

    Attributes:
        asked: the number of the ``ReadAsked`` event; -1 if nothing else could act.
        stands: the log's positions at the answer; all -1 if nothing else could act.
    """

    read: Read
    answer: Answer
    asked: int = -1
    stands: Positions = DOWN


@quickly_made
@dataclass(frozen=True, slots=True)
class DeletionAsked:
    """The deletion of a topic, or of one queue of it, begins."""

    op: DeleteTopic


@quickly_made
@dataclass(frozen=True, slots=True)
class DeletionEnded:
    """A deletion has ended; ``asked`` is the number of its ``DeletionAsked`` event."""

    asked: int
    seen: Observation


@quickly_made
@dataclass(frozen=True, slots=True)
class ProgressAsked:
    """The broker gets a request about offsets or groups."""

    op: ProgressOp


@quickly_made
@dataclass(frozen=True, slots=True)
class ProgressAnswered:
    """The answer to such a request; ``asked`` is the number of ``ProgressAsked``."""

    asked: int
    seen: Observation


@quickly_made
@dataclass(frozen=True, slots=True)
class BrokerPullAsked:
    """A pull arrives at the broker.

    Attributes:
        number: the pull's number in the whole run.
        told: the group's offset that it carries; -1: none.
    """

    number: int
    op: PullThroughBroker
    told: int


@quickly_made
@dataclass(frozen=True, slots=True)
class BrokerPullHeld:
    """The broker holds a pull; ``kept`` is the group's offset then, -1: none."""

    number: int
    op: PullThroughBroker
    kept: int


@quickly_made
@dataclass(frozen=True, slots=True)
class BrokerPullAnswered:
    """A broker has answered a pull, perhaps one that an earlier op sent.

    ``kept`` is the group's offset then, -1: none.
    """

    number: int
    op: PullThroughBroker
    answer: BrokerPulled
    kept: int


@quickly_made
@dataclass(frozen=True, slots=True)
class ReplicasConfirmed:
    """Replicas have confirmed the log up to ``phy_offset``."""

    phy_offset: int


@quickly_made
@dataclass(frozen=True, slots=True)
class OffsetsLoaded:
    """A start has loaded these consumer offsets of all groups."""

    offsets: tuple[tuple[tuple[str, str, int], int], ...]


class OneQueue(NamedTuple):
    """A queue together with the client and the group that consume it."""

    client: str
    group: str
    topic: str
    queue_id: int

    @property
    def name(self) -> str:
        """The client, the group and the queue, for a violation."""
        return f"{self.client} of {self.group} on {self.topic}/{self.queue_id}"


@quickly_made
@dataclass(frozen=True, slots=True)
class ConsumerBegan:
    """A consumer has started."""

    op: StartConsumer


@quickly_made
@dataclass(frozen=True, slots=True)
class ConsumerMade:
    """A consumer is there that has not started yet.

    ``work`` is what a round of each of its services has done.
    """

    client: str
    work: int


@quickly_made
@dataclass(frozen=True, slots=True)
class ConsumerEnded:
    """A consumer no longer exists.

    ``work`` is what one more round of each of its services did after it had stopped.
    """

    client: str
    how: ConsumerEnd
    work: int = 0


@quickly_made
@dataclass(frozen=True, slots=True)
class Resubscribed:
    """A consumer begins to change its subscription, or has ended it (``is_done``)."""

    op: Resubscribe
    is_done: bool


@quickly_made
@dataclass(frozen=True, slots=True)
class QueuesHeld:
    """The queues assigned to a consumer after an op of its own, sorted."""

    client: str
    queues: tuple[tuple[str, int], ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class OffsetRead:
    """A consumer with a new queue has read the group's offset; -1: none.

    ``kept`` is the offset that the broker has from then on; -2: unknown.
    """

    queue: OneQueue
    offset: int
    kept: int = -2


@quickly_made
@dataclass(frozen=True, slots=True)
class OffsetSent:
    """A consumer has committed an offset; ``kept`` is what the broker has afterwards.

    ``kept`` is -2 if that is unknown.
    """

    queue: OneQueue
    offset: int
    kept: int


@quickly_made
@dataclass(frozen=True, slots=True)
class PullSent:
    """A consumer has sent a pull from ``queue_offset`` on.

    ``commit_offset`` is the group's offset that the pull carries; -1: none.
    """

    queue: OneQueue
    queue_offset: int
    commit_offset: int


@quickly_made
@dataclass(frozen=True, slots=True)
class PullReceived:
    """A consumer got the answer to a pull; ``queue_offset`` is the pull's.

    ``kept`` is the broker's offset of the group after it if the pull carried a commit,
    else -2.
    """

    queue: OneQueue
    queue_offset: int
    code: str
    next_begin_offset: int
    messages: tuple[bytes, ...]
    kept: int


class Shown(NamedTuple):
    """A message as its listener sees it; of a retry, the topic is the original one."""

    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    store_timestamp: int
    body: bytes
    properties: Mapping[str, str]


@quickly_made
@dataclass(frozen=True, slots=True)
class Consumed:
    """A listener was given a message and returned ``status``.

    ``tries`` is the number of earlier attempts, as the listener was told. ``shown`` is
    the message as the listener saw it; None: that was not recorded. ``besides`` is how
    many other batches of the queue the listener has at that time.
    """

    queue: OneQueue
    queue_offset: int
    record: bytes
    status: ConsumeStatus
    tries: int = 0
    shown: Shown | None = None
    besides: int = 0


@quickly_made
@dataclass(frozen=True, slots=True)
class ListenerReturned:
    """A listener that hung with a message has returned ``status`` for it after all.

    ``tries`` is the number of earlier attempts, as the listener was told.
    """

    queue: OneQueue
    queue_offset: int
    record: bytes
    status: ConsumeStatus
    tries: int = 0


@quickly_made
@dataclass(frozen=True, slots=True)
class ExpiredCleaned:
    """Rounds in which a consumer cleans expired messages have ended.

    Attributes:
        client: the consumer.
        first: the first message that it still holds of each of its queues: topic,
            queue_id, queue_offset.
        refused: the broker has not taken a message that it sent back.
    """

    client: str
    first: tuple[tuple[str, int, int], ...]
    refused: bool


@quickly_made
@dataclass(frozen=True, slots=True)
class ConsumerSuspended:
    """A consumer was told to pull nothing, or, unless ``is_suspended``, to go on."""

    client: str
    is_suspended: bool


@quickly_made
@dataclass(frozen=True, slots=True)
class ResetTold:
    """A broker tells a consumer to begin a queue that it has at ``offset``."""

    queue: OneQueue
    offset: int


@quickly_made
@dataclass(frozen=True, slots=True)
class SentBack:
    """A consumer sent back a message it could not consume, and the broker stored it."""

    queue: OneQueue
    record: bytes


@quickly_made
@dataclass(frozen=True, slots=True)
class SendBackRefused:
    """A broker has refused a message that a consumer sent back.

    ``code`` is its answer; ``is_put``: it had passed the message to its store.
    ``record`` is the message as its consumer had it.
    """

    queue: OneQueue
    code: str
    is_put: bool
    record: bytes


@quickly_made
@dataclass(frozen=True, slots=True)
class SendAnswered:
    """A broker has answered a producer; ``message`` is what the producer sent.

    What the broker has passed to the store for it is told by ``PutAsked``.
    """

    op: SendMessage
    message: MessageToPut
    seen: Observation


@quickly_made
@dataclass(frozen=True, slots=True)
class LocksAnswered:
    """The broker answered a consumer's lock request: queues granted and refused."""

    client: str
    group: str
    granted: tuple[tuple[str, int], ...]
    refused: tuple[tuple[str, int], ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class LocksReturned:
    """A consumer unlocks queues."""

    client: str
    group: str
    queues: tuple[tuple[str, int], ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class HeartbeatTaken:
    """The broker received a heartbeat of a client, as a member of a group.

    ``subscribed`` are the topics that it names, each with its expression and the type
    of that, sorted; None: that was not recorded.
    """

    client: str
    group: str
    subscribed: tuple[tuple[str, str, str], ...] | None = None


@quickly_made
@dataclass(frozen=True, slots=True)
class NextRebalance:
    """After rounds of a consumer's rebalance the next one is due in ``after_ms``."""

    client: str
    after_ms: int


@quickly_made
@dataclass(frozen=True, slots=True)
class MembersTold:
    """The broker notified the members of a group that these are its members now."""

    group: str
    members: tuple[str, ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class MembersAnswered:
    """The broker listed the members of a group to one of its clients."""

    client: str
    group: str
    members: tuple[str, ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class SubscriptionAsked:
    """A client sends the broker its group's subscription."""

    op: FilterOp


@quickly_made
@dataclass(frozen=True, slots=True)
class SubscriptionAnswered:
    """The answer to it; ``asked`` is the number of the ``SubscriptionAsked`` event."""

    asked: int
    seen: Observation


@quickly_made
@dataclass(frozen=True, slots=True)
class FiltersLoaded:
    """A start has loaded these filters: by group and topic, expression and version."""

    filters: tuple[tuple[tuple[str, str], tuple[str, int]], ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class DelaysLoaded:
    """A start has loaded these offsets: by delay level, the next message to deliver."""

    offsets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class StopBegan:
    """The store begins to stop."""


@quickly_made
@dataclass(frozen=True, slots=True)
class StopEnded:
    """A stop has ended.

    Attributes:
        seen: ``Stopped``, ``EndAwaited``, or another observation if it failed.
        took_ms: its duration by the store's clock.
        late_actions: how many disk actions came after it had unlocked the directory.
    """

    seen: Observation
    took_ms: int
    late_actions: int


@quickly_made
@dataclass(frozen=True, slots=True)
class StartBegan:
    """A start begins on the files ``found``; reads fail at ``unreadable`` places."""

    found: Mapping[str, bytes]
    unreadable: tuple[Damaged, ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class StartEnded:
    """A start has ended.

    Attributes:
        seen: ``Started``, ``Refused`` or ``Failed``.
        log_end: the log's end then; -1 unless the store is up.
        still_held: the files of its directory that a failed start still holds.
        left: the files that it left; None if nothing came after it in the op.
    """

    seen: Observation
    log_end: int
    still_held: tuple[str, ...]
    left: Mapping[str, bytes] | None


@quickly_made
@dataclass(frozen=True, slots=True)
class RoundsEnded:
    """All rounds of an op of a service have ended.

    ``first_mtime_ms`` is the mtime of the log's first file after rounds of a cleaner.
    """

    service: ServiceName
    seen: Observation
    first_mtime_ms: int = 0


@quickly_made
@dataclass(frozen=True, slots=True)
class RoundDone:
    """One round of a service has ended.

    Attributes:
        service: the service.
        work: the work that it reports.
        began: the number of the next event at its begin.
        began_ms: its begin by the store's clock.
        before: the store's positions at its begin.
        after: the store's positions at its end.
        actions: how many disk actions there were meanwhile, by anybody.
        by_host: the host ran it since every activity waited.
        unsynced: for a flush of queues or of the index, what a power loss could have
            changed at its begin: by path, the first such byte; None: not observed.
    """

    service: str
    work: int
    began: int
    began_ms: int
    before: Positions
    after: Positions
    actions: int = 0
    by_host: bool = False
    unsynced: tuple[tuple[str, int], ...] | None = None


@quickly_made
@dataclass(frozen=True, slots=True)
class TakenAway:
    """The store is about to remove or rename a file.

    Attributes:
        verb: ``remove`` or ``rename``.
        path: the file's path.
        content: its content as readers see it.
        is_synced: the medium has all of its content; its directory entry may lack.
        unsynced: what a power loss could change now, as ``Subject.unsynced_from``.
        checkpoint: the checkpoint as it is on the medium.
        deleted: the file of deleted topics as it is on the medium.
        log: the paths of the log files that are on the medium.
    """

    verb: str
    path: str
    content: bytes
    is_synced: bool
    unsynced: tuple[tuple[str, int], ...]
    checkpoint: bytes
    deleted: bytes
    log: tuple[str, ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class CheckpointWritten:
    """The store is about to write to the checkpoint.

    Attributes:
        position: the first byte that it writes.
        data: what it writes there.
        content: the checkpoint after that, as readers see it.
        medium: the checkpoint as a start could read it now from the medium.
        unsynced: what a power loss could change now, as ``Subject.unsynced_from``.
    """

    position: int
    data: bytes
    content: bytes
    medium: bytes
    unsynced: tuple[tuple[str, int], ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class FaultSet:
    """From now on calls to the disk may fail by a fault."""

    fault: DiskFault


@quickly_made
@dataclass(frozen=True, slots=True)
class FaultMet:
    """A fault hit a call on a path: it failed, or its page was not made durable."""

    call: FaultCall
    path: str


@quickly_made
@dataclass(frozen=True, slots=True)
class FaultsEnded:
    """The disk works again; on the medium the ranges ``spoilt`` are not as synced."""

    spoilt: tuple[Damaged, ...]


@quickly_made
@dataclass(frozen=True, slots=True)
class TimePassed:
    """The clock went on by ``ms`` while an activity was suspended.

    ``in_round``: the host ran a service's round meanwhile, so no other activity waited.
    """

    ms: int
    in_round: bool = False


@quickly_made
@dataclass(frozen=True, slots=True)
class FileDamaged:
    """A file of the store was changed from outside while the store was down."""

    damaged: Damaged


@quickly_made
@dataclass(frozen=True, slots=True)
class FilePlanted:
    """A foreign file was put into the store's directories."""

    planted: Planted


@quickly_made
@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """An option of the store was changed while the store was down."""

    change: ChangeConfig


@quickly_made
@dataclass(frozen=True, slots=True)
class Raised:
    """A call to the store raised."""

    failed: Failed


@quickly_made
@dataclass(frozen=True, slots=True)
class LifeEnded:
    """The process is killed, or power is lost."""

    crash: Crash


@quickly_made
@dataclass(frozen=True, slots=True)
class OpEnded:
    """An op has ended, or the store has ended during it.

    Attributes:
        seen: the observation of the op as a whole.
        disk_actions: how many it made.
        world: the clock and the room on the disk after it.
        is_unreadable: some sector of a file cannot be read.
        turns: the switches between ops that ran together, as preemptions.
    """

    seen: Observation
    disk_actions: int
    world: World
    is_unreadable: bool
    turns: tuple[tuple[int, int], ...] = ()


Happening: TypeAlias = (
    OpBegan
    | OthersMayAct
    | PutAsked
    | PutAnswered
    | ReadAsked
    | ReadAnswered
    | DeletionAsked
    | DeletionEnded
    | ProgressAsked
    | ProgressAnswered
    | BrokerPullAsked
    | BrokerPullHeld
    | BrokerPullAnswered
    | ReplicasConfirmed
    | OffsetsLoaded
    | ConsumerBegan
    | ConsumerMade
    | ConsumerEnded
    | Resubscribed
    | QueuesHeld
    | OffsetRead
    | OffsetSent
    | PullSent
    | PullReceived
    | Consumed
    | ListenerReturned
    | ExpiredCleaned
    | ConsumerSuspended
    | ResetTold
    | SentBack
    | SendBackRefused
    | SendAnswered
    | LocksAnswered
    | LocksReturned
    | HeartbeatTaken
    | NextRebalance
    | MembersTold
    | MembersAnswered
    | SubscriptionAsked
    | SubscriptionAnswered
    | FiltersLoaded
    | DelaysLoaded
    | StopBegan
    | StopEnded
    | StartBegan
    | StartEnded
    | RoundsEnded
    | RoundDone
    | TakenAway
    | CheckpointWritten
    | FaultSet
    | FaultMet
    | FaultsEnded
    | TimePassed
    | FileDamaged
    | FilePlanted
    | ConfigChanged
    | Raised
    | LifeEnded
    | OpEnded
)


class Entry(NamedTuple):
    """One event of a history: when it happened, in which activity, and what."""

    at_ms: int
    activity: int
    event: Happening


class History:
    """The events of one op so far; events are only appended."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def append(self, at_ms: int, activity: int, event: Happening) -> int:
        """Append an event; returns its number."""
        # Made as the tuple that it is: by its name it takes twice as long, and nothing
        # is made more often.
        self.entries.append(tuple.__new__(Entry, (at_ms, activity, event)))
        return len(self.entries) - 1


class ReadSpan(NamedTuple):
    """A read that others may have overlapped, with the numbers of its two events.

    ``before`` and ``after`` are the log's positions at its begin and end.
    """

    read: Read
    answer: Answer
    asked: int
    answered: int
    before: Positions
    after: Positions


PutOf: TypeAlias = tuple[MessageToPut, Put | None]
Deletion: TypeAlias = tuple[DeleteTopic, Observation | None]


class Life:
    """What a step did in one run of the store.

    Attributes:
        puts: each message with its answer; None if there was none.
        spans: for each put, the numbers of the events that asked and answered; the
            second is -1 if it got no answer.
        deletions: each with its observation; None if it raised or the run ended.
        stops: the observation of each stop that ended here.
        reads: those that others may have overlapped, in the order of the answers.
    """

    __slots__ = ("deletions", "puts", "reads", "spans", "stops")

    def __init__(self) -> None:
        self.puts: list[PutOf] = []
        self.spans: list[tuple[int, int]] = []
        self.deletions: list[Deletion] = []
        self.stops: list[Stopped] = []
        self.reads: list[ReadSpan] = []


class Start(NamedTuple):
    """One start of a step: the files it found, what could not be read, its answer.

    ``log_end`` is the log's end after it, and ``left`` are the files that it left;
    None: those at the end of the step.
    """

    found: Mapping[str, bytes]
    unreadable: tuple[Damaged, ...]
    seen: Observation
    log_end: int = -1
    left: Mapping[str, bytes] | None = None


_NO_WORLD = World()
_NO_PART: frozenset[str] = frozenset()
_UNENDED = Failed("start", "it did not come to an end")


_FROM_OUTSIDE = (ChangeConfig, Damage, PlantFile, During, Session)
"""Ops that may change something from outside; nobody does that beside others."""


class Step:
    """The history of one op, as a whole.

    Attributes:
        op: the op.
        acts: the op, and all ops and events that it contains.
        services: the services of which it ran rounds.
        clock_moves_ms: by how many ms each op in it moved the clock.
        seen: the observation of the op.
        runs: the run in which the op began, and those that its successful starts began.
        batches: the messages of each answered batch, with its answer.
        reads: every answered read, in the order of the answers.
        starts: every start, oldest first.
        still_held: the files that the newest failed start still holds.
        rounds: the ops of services that ended, oldest first.
        turned: the single rounds that ended, each with its event's number.
        raised: the errors that calls to the store raised.
        faults: the faults that were set.
        met: the calls that a fault hit.
        spoilt: ranges that differ on the medium from the writes, though no call failed.
        crash: the crash that ended the store's run; None if none did.
        is_alone: nothing else ran during the op, nor was a fault armed amid it.
        is_together: several ops began at the same time.
        is_stopping: a stop began, whether it ended or not.
        stalled_ms: for how many ms activities were suspended.
        longest_wait_ms: the longest wait of a put that was answered without its sync.
    """

    __slots__ = (
        "acts",
        "batches",
        "clock_moves_ms",
        "crash",
        "damaged",
        "disk_actions",
        "entries",
        "faults",
        "first_mtime_ms",
        "is_alone",
        "is_stopping",
        "is_together",
        "is_unreadable",
        "late_actions",
        "longest_wait_ms",
        "met",
        "op",
        "planted",
        "raised",
        "reads",
        "rounds",
        "runs",
        "seen",
        "services",
        "spoilt",
        "stalled_ms",
        "starts",
        "still_held",
        "stop_took_ms",
        "turned",
        "turns",
        "world",
    )

    def __init__(self, op: Event, entries: Sequence[Entry]) -> None:
        self.op = op
        self.acts = acts = all_parts(op)
        self.services: Sequence[ServiceName] = ()
        self.clock_moves_ms: Sequence[int] = ()
        if len(acts) > 1 or isinstance(op, RunService | AdvanceClock):
            self.services = [one.service for one in acts if isinstance(one, RunService)]
            moves = [one.ms for one in acts if isinstance(one, AdvanceClock)]
            self.clock_moves_ms = moves
        self.entries = entries
        self.seen: Observation = _UNENDED
        self.runs = [Life()]
        # Few of these happen in a step: what nothing is added to needs no list.
        self.batches: Sequence[tuple[tuple[MessageToPut, ...], Put]] = ()
        self.reads: Sequence[tuple[Read, Answer]] = ()
        self.starts: Sequence[Start] = ()
        self.still_held: tuple[str, ...] = ()
        self.rounds: Sequence[RoundsEnded] = ()
        self.turned: Sequence[tuple[int, RoundDone]] = ()
        self.raised: Sequence[Failed] = ()
        self.faults: Sequence[DiskFault] = ()
        self.met: Sequence[FaultMet] = ()
        self.spoilt: Sequence[Damaged] = ()
        self.damaged: Sequence[Damaged] = ()
        self.planted: Sequence[Planted] = ()
        self.crash: Crash | None = None
        self.disk_actions = 0
        self.is_alone = True
        self.is_together = self.is_stopping = self.is_unreadable = False
        self.turns: tuple[tuple[int, int], ...] = ()
        self.world = _NO_WORLD
        self.first_mtime_ms = self.stalled_ms = 0
        self.stop_took_ms = self.late_actions = self.longest_wait_ms = 0
        for number, (_, _, event) in enumerate(entries):
            take = _TAKE[type(event)]
            if take is not None:
                take(self, number, event)

    @classmethod
    def that_saw(cls, seen: Observation) -> Step:
        """A step without events, with a given observation."""
        ended = OpEnded(seen, 0, _NO_WORLD, is_unreadable=False)
        return cls(AdvanceClock(0), (Entry(0, MAIN, ended),))

    @classmethod
    def cut_short(
        cls, op: Event, entries: Sequence[Entry], seen: Observation, crash: Crash
    ) -> Step:
        """The step of an op during which a crash ended the store's run.

        The clock and the room on the disk are those before the op.
        """
        world = _NO_WORLD
        if entries and isinstance(entries[0].event, OpBegan):
            world = entries[0].event.world
        ended = (
            OthersMayAct(together=False),
            LifeEnded(crash),
            OpEnded(seen, 0, world, is_unreadable=False),
        )
        return cls(op, (*entries, *[Entry(0, MAIN, event) for event in ended]))

    def with_found(self, files: Mapping[str, bytes]) -> Step:
        """The same step, with other files found by its only start."""
        return Step(
            self.op,
            [
                entry._replace(event=StartBegan(files, entry.event.unreadable))
                if isinstance(entry.event, StartBegan)
                else entry
                for entry in self.entries
            ],
        )

    @property
    def beside_what_was_found(self) -> tuple[object, ...]:
        """All events without the files that a start found, as a hashable key."""
        return tuple(
            [
                (entry.at_ms, entry.activity, entry.event.unreadable)
                if isinstance(entry.event, StartBegan)
                else entry
                for entry in self.entries
            ]
        )

    @property
    def kinds(self) -> set[type[Happening]]:
        """The classes of its events, so that a walk can skip steps without its own."""
        return {type(event) for _, _, event in self.entries}

    @property
    def pulls_answered(self) -> list[BrokerPullAnswered]:
        """The broker's answers to pulls in the step, whichever op sent the pull."""
        events = [entry.event for entry in self.entries]
        return [event for event in events if isinstance(event, BrokerPullAnswered)]

    @property
    def pulls_woken(self) -> list[BrokerPullAnswered]:
        """Those of ``pulls_answered`` that answer pulls of earlier ops."""
        events = [entry.event for entry in self.entries]
        asked = {one.number for one in events if isinstance(one, BrokerPullAsked)}
        return [one for one in self.pulls_answered if one.number not in asked]

    @property
    def ended(self) -> Life:
        """The runs before the one that goes on, as one; or the only run."""
        runs = self.runs
        if len(runs) == 1:
            return runs[0]
        over = runs if self.crash is not None else runs[:-1]
        return over[0] if len(over) == 1 else _joined(over)

    @property
    def begun(self) -> Life | None:
        """The run that the newest successful start began, unless a crash ended it."""
        is_begun = len(self.runs) > 1 and self.crash is None
        return self.runs[-1] if is_begun else None

    @property
    def has_put(self) -> bool:
        """Whether anything was put in any run."""
        return any(run.puts for run in self.runs)

    @property
    def puts(self) -> list[PutOf]:
        """All puts of the step, of all runs."""
        return [put for run in self.runs for put in run.puts]

    @property
    def deletions(self) -> list[Deletion]:
        """All deletions of topics and queues in the step."""
        return [deletion for run in self.runs for deletion in run.deletions]

    @property
    def stops(self) -> list[Stopped]:
        """All stops in the step that came to their end."""
        return [stop for run in self.runs for stop in run.stops]

    @property
    def ends_awaited(self) -> list[EndAwaited]:
        """The answers to callers that waited for another caller's stop."""
        ends = [one.event for one in self.entries if isinstance(one.event, StopEnded)]
        return [end.seen for end in ends if isinstance(end.seen, EndAwaited)]

    @property
    def sets_back(self) -> bool:
        """Whether the wall clock may have been set back in the step."""
        moves = self.clock_moves_ms
        return bool(moves) and min(moves) < 0

    @property
    def _from_outside(self) -> Iterator[tuple[int, Happening]]:
        """What was changed from outside, with how many starts came before it."""
        starts = 0
        for entry in self.entries if isinstance(self.op, _FROM_OUTSIDE) else ():
            starts += isinstance(entry.event, StartBegan)
            if isinstance(entry.event, FileDamaged | FilePlanted | ConfigChanged):
                yield starts, entry.event

    @property
    def changed_after(self) -> frozenset[int]:
        """After how many starts something was changed from outside."""
        return frozenset([starts for starts, _ in self._from_outside])

    @property
    def ends_as_it_ran(self) -> bool:
        """Whether neither a crash nor a change came after its newest start."""
        return self.crash is None and len(self.starts) not in self.changed_after

    @property
    def changes(self) -> list[tuple[int, ChangeConfig]]:
        """The changes of options, each with how many starts came before it."""
        return [
            (starts, event.change)
            for starts, event in self._from_outside
            if isinstance(event, ConfigChanged)
        ]

    @property
    def set_back_ms(self) -> int:
        """By how many ms the wall clock may have been ahead of its end, at most."""
        return sum([max(0, -ms) for ms in self.clock_moves_ms])

    @property
    def may_dispatch(self) -> bool:
        """Whether more may have been dispatched in the step than before it."""
        return "reput" in self.services or self.is_stopping

    @property
    def is_undisturbed(self) -> bool:
        """Whether the op ran alone, to its end, and no call to the disk failed."""
        is_whole = self.is_alone and self.crash is None and not self.raised
        failed = self.met or self.is_unreadable or self.lacked_room
        return is_whole and not (self.starts or failed)

    def must_have_written(self, work: int) -> bool:
        """Whether a persist of the step that reports ``work`` wrote its table.

        Only beside a stop, or where something fails, it may have nothing to do.
        """
        return work > 0 or self.is_undisturbed

    @property
    def lacked_room(self) -> bool:
        """Whether a call met a full disk."""
        first = self.entries[0].event if self.entries else None
        before = first.world if isinstance(first, OpBegan) else self.world
        return self.world.full_calls > before.full_calls

    @property
    def is_quiet(self) -> bool:
        """Whether the op only read or let time pass."""
        only_read = len(self.entries) == len(self.reads) + len((OpBegan, OpEnded))
        return only_read and self.is_alone and not self.disk_actions

    @property
    def failed_parts(self) -> frozenset[str]:
        """The parts of the store on which calls failed; "" for an unknown part.

        A part is a file or folder directly in the store's directory, with all below it.
        """
        return _parts_of(self.met)

    @property
    def failed_since_its_start(self) -> frozenset[str]:
        """As ``failed_parts``, of the calls after its newest start."""
        met: list[FaultMet] = []
        for entry in reversed(self.entries if self.met else ()):
            if isinstance(entry.event, StartEnded):
                break
            if isinstance(entry.event, FaultMet):
                met.append(entry.event)
        return _parts_of(met)

    @property
    def fails_calls(self) -> bool:
        """Whether a call to the disk failed."""
        met = self.met
        return bool(met) and any(one.call not in SILENT for one in met)

    @property
    def fails_reads(self) -> bool:
        """Whether a read of the disk failed."""
        met = self.met
        return bool(met) and any(one.call == "read" for one in met)

    def _begin_put(self, number: int, event: PutAsked) -> None:
        life = self.runs[-1]
        life.puts += [(message, None) for message in event.messages]
        life.spans += [(number, -1)] * len(event.messages)

    def _end_put(self, number: int, event: PutAnswered) -> None:
        life = self._life_of(event.asked)
        spans = enumerate(life.spans)
        first = next((n for n, span in spans if span[0] == event.asked), 0)
        for place, answer in enumerate(event.answers, first):
            life.puts[place] = (life.puts[place][0], answer)
            life.spans[place] = (event.asked, number)
        if event.of_batch is not None:
            asked = self.entries[event.asked].event
            assert isinstance(asked, PutAsked), asked
            self.batches = [*self.batches, (asked.messages, event.of_batch)]
        if any(answer.status == "FLUSH_DISK_TIMEOUT" for answer in event.answers):
            self.longest_wait_ms = max(self.longest_wait_ms, event.waited_ms)

    def _life_of(self, asked: int) -> Life:
        """The run in which a put was asked; a start may have ended since."""
        for run in reversed(self.runs):
            if any(span[0] == asked for span in run.spans):
                return run
        return self.runs[0]

    def _end_deletion(self, number: int, event: DeletionEnded) -> None:
        del number
        asked = self.entries[event.asked].event
        assert isinstance(asked, DeletionAsked), asked
        for life in self.runs:
            for place, (op, _) in enumerate(life.deletions):
                if op is asked.op and life.deletions[place][1] is None:
                    life.deletions[place] = (op, event.seen)
                    return

    def _end_stop(self, number: int, event: StopEnded) -> None:
        del number
        self.stop_took_ms = event.took_ms
        if isinstance(event.seen, Stopped):
            self.runs[-1].stops.append(event.seen)
            self.late_actions += event.late_actions

    def _begin_start(self, number: int, event: StartBegan) -> None:
        del number
        begun = Start(event.found, event.unreadable, _UNENDED)
        self.starts = [*self.starts, begun]

    def _end_start(self, number: int, event: StartEnded) -> None:
        del number
        *before, begun = self.starts
        ended = begun._replace(seen=event.seen, log_end=event.log_end, left=event.left)
        self.starts = [*before, ended]
        self.still_held = event.still_held
        if isinstance(event.seen, Started):
            self.runs.append(Life())

    def _end_life(self, number: int, event: LifeEnded) -> None:
        del number
        self.crash = event.crash

    def _end_op(self, number: int, event: OpEnded) -> None:
        del number
        self.seen, self.disk_actions = event.seen, event.disk_actions
        self.world, self.is_unreadable = event.world, event.is_unreadable
        self.turns = event.turns

    def _others_act(self, number: int, event: OthersMayAct) -> None:
        del number
        self.is_alone = False
        self.is_together = self.is_together or event.together


def _joined(runs: Sequence[Life]) -> Life:
    """What was done in several runs, as if in one."""
    life = Life()
    for run in runs:
        for name in Life.__slots__:
            getattr(life, name).extend(getattr(run, name))
    return life


def _parts_of(met: Sequence[FaultMet]) -> frozenset[str]:
    """The parts of the store on which calls failed, of those that a fault met."""
    if not met:
        return _NO_PART
    return frozenset(
        [one.path.partition("/")[0] for one in met if one.call not in SILENT]
    )


def _adds(name: str, part: str = "") -> Callable[[Step, int, Any], None]:
    """A handler that adds an event, or a part of it, to a list of the step."""

    def add(step: Step, number: int, event: Any) -> None:
        del number
        added = getattr(event, part) if part else event
        setattr(step, name, [*getattr(step, name), added])

    return add


def _take_began(step: Step, number: int, event: OpBegan) -> None:
    del number
    step.world = event.world


def _take_read(step: Step, number: int, event: ReadAnswered) -> None:
    step.reads = [*step.reads, (event.read, event.answer)]
    if event.asked >= 0:
        asked = step.entries[event.asked].event
        assert isinstance(asked, ReadAsked), asked
        span = ReadSpan(
            event.read, event.answer, event.asked, number, asked.stands, event.stands
        )
        step.runs[-1].reads.append(span)


def _take_deletion(step: Step, number: int, event: DeletionAsked) -> None:
    del number
    step.runs[-1].deletions.append((event.op, None))


def _take_stop(step: Step, number: int, event: StopBegan) -> None:
    del number, event
    step.is_stopping = True


def _take_rounds(step: Step, number: int, event: RoundsEnded) -> None:
    del number
    step.rounds = [*step.rounds, event]
    if isinstance(event.seen, Ran) and event.service == "clean_commit_log":
        step.first_mtime_ms = event.first_mtime_ms


def _take_round(step: Step, number: int, event: RoundDone) -> None:
    step.turned = [*step.turned, (number, event)]


def _take_healing(step: Step, number: int, event: FaultsEnded) -> None:
    del number
    step.spoilt = [*step.spoilt, *event.spoilt]


def _take_time(step: Step, number: int, event: TimePassed) -> None:
    del number
    step.stalled_ms += event.ms


# What is None here is left to the walks that read the events themselves.
_TAKE: dict[type[Any], Callable[[Step, int, Any], None] | None] = {
    OpBegan: _take_began,
    OthersMayAct: Step._others_act,
    PutAsked: Step._begin_put,
    PutAnswered: Step._end_put,
    ReadAsked: None,
    ReadAnswered: _take_read,
    DeletionAsked: _take_deletion,
    DeletionEnded: Step._end_deletion,
    ProgressAsked: None,
    ProgressAnswered: None,
    BrokerPullAsked: None,
    BrokerPullHeld: None,
    BrokerPullAnswered: None,
    ReplicasConfirmed: None,
    OffsetsLoaded: None,
    ConsumerBegan: None,
    ConsumerMade: None,
    ConsumerEnded: None,
    Resubscribed: None,
    QueuesHeld: None,
    OffsetRead: None,
    OffsetSent: None,
    PullSent: None,
    PullReceived: None,
    Consumed: None,
    ListenerReturned: None,
    ExpiredCleaned: None,
    ConsumerSuspended: None,
    ResetTold: None,
    SentBack: None,
    SendBackRefused: None,
    SendAnswered: None,
    LocksAnswered: None,
    LocksReturned: None,
    HeartbeatTaken: None,
    NextRebalance: None,
    MembersTold: None,
    MembersAnswered: None,
    SubscriptionAsked: None,
    SubscriptionAnswered: None,
    FiltersLoaded: None,
    DelaysLoaded: None,
    StopBegan: _take_stop,
    StopEnded: Step._end_stop,
    StartBegan: Step._begin_start,
    StartEnded: Step._end_start,
    RoundsEnded: _take_rounds,
    RoundDone: _take_round,
    TakenAway: None,
    CheckpointWritten: None,
    FaultSet: _adds("faults", "fault"),
    FaultMet: _adds("met"),
    FaultsEnded: _take_healing,
    TimePassed: _take_time,
    FileDamaged: _adds("damaged", "damaged"),
    FilePlanted: _adds("planted", "planted"),
    ConfigChanged: None,
    Raised: _adds("raised", "failed"),
    LifeEnded: Step._end_life,
    OpEnded: Step._end_op,
}
