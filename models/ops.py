"""Ops: the steps of a program, as data.

Every op is legal in every state; where it means nothing, its observation is
``Skipped``. So any op can be removed from a program, and shrinking needs no rules of
its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import (
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    assert_never,
    get_args,
    overload,
)

from crashmq.models.files.record import DLQ_PREFIX
from crashmq.models.limits import PAUSE_MS, PAUSE_MS_MIN, QUEUES_OF_A_TOPIC
from crashmq.models.quickly_made import quickly_made

ServiceName = Literal[
    "reput",
    "flush_commit_log",
    "flush_consume_queue",
    "checkpoint",
    "flush_index",
    "commit",
    "allocate",
    "clean_commit_log",
    "clean_consume_queue",
    "persist_consumer_offset",
    "client_housekeeping",
    "pull_request_hold",
    "persist_consumer_filter",
    "deliver_delayed",
    "persist_delay_offset",
]
SERVICE_NAMES: tuple[ServiceName, ...] = get_args(ServiceName)

PROPERTY_END = "\x02"
"""What separates a message's properties, and mostly ends the last one."""

ALL_TIME_MS = 1 << 62
"""More milliseconds than any clock says: no bound."""

SurvivorKind = Literal["none", "all", "prefix", "hashed", "units"]
CrashKind = Literal["process_kill", "power_loss"]
FaultCall = Literal[
    "read", "write", "sync", "create", "remove", "evict", "lose", "misdirect"
]
FaultErrno = Literal["EIO", "ENOSPC", "EDQUOT", "EINTR"]
Boundary = Literal["LOWER", "UPPER"]
BOUNDARIES: tuple[Boundary, ...] = ("LOWER", "UPPER")
DamageKind = Literal[
    "truncate",
    "zero",
    "flip",
    "repeat",
    "delete",
    "touch",
    "unreadable",
    "reword",
    "restore",
]
ForeignContent = Literal["empty", "zeros", "garbage", "copy", "directory"]
Strategy = Literal[
    "AVG",
    "AVG_BY_CIRCLE",
    "CONSISTENT_HASH",
    "MACHINE_ROOM",
    "MACHINE_ROOM_NEARBY",
    "CONFIG",
]
ConsumerTask = Literal[
    "rebalance",
    "pull",
    "persist",
    "heartbeat",
    "lock",
    "clean",
    "suspend",
    "resume",
    "reconnect",
    "disconnect",
]
ConsumeStatus = Literal[
    "success",
    "partly",
    "later",
    "raises",
    "hangs",
    "uncommitted",
    "commit",
    "rollback",
    "suspends",
]
ConsumerEnd = Literal["stop", "kill", "vanish"]
ExpressionType = Literal["TAG", "SQL92"]
FromWhere = Literal["last", "first", "timestamp"]
ResetTarget = Literal["offset", "end", "time"]
Question = Literal[
    "topics_of_group",
    "groups_of_topic",
    "subscribers",
    "pull_offset",
    "time",
    "group",
    "group_config",
    "topic_config",
    "lock",
]
IPv6Hosts = Literal["none", "born", "store", "both"]
BatchLength = Literal["none", "message", "body", "properties"]
TransactionType = Literal["none", "prepared", "commit", "rollback"]
Option = Literal[
    "flush_mode",
    "transient_store_pool",
    "preallocate",
    "flush_least_pages",
    "checks_crc",
    "read_window",
    "in_memory_size",
    "start_window",
    "reserved_hours",
    "delete_hours",
    "delete_batch",
    "cleans_forcibly",
    "max_message_size",
    "transient_store_buffers",
    "multi_dispatch",
    "on_damage",
    "lets_read",
    "takes_lite_pulls",
    "wrong_value",
]
ScheduleKind = Literal["preempt", "pct"]
Grain = Literal["calls", "lines"]


class Capability(Enum):
    """What a store can do, or be asked, beyond the core of a subject.

    The core is start, stop, kill, put, pull, and the files as bytes. If an op needs
    more, it is ``Skipped`` where the subject lacks it; a law that needs more is not
    asked there. Each capability is a small protocol of ``harness.subjects.subject``;
    its value describes it.
    """

    STORES_AS_ROCKETMQ = "its files, records and refusals are RocketMQ's"
    TURNS_SERVICES = "its services run only when the harness runs them"
    HAS_CLOCK = "its time moves only when the harness moves it"
    STEPS_IN = "something can happen during an op, at its n-th disk action"
    RUNS_SEVERAL = "several ops can run in it at the same time"
    LOSES_POWER = "it can lose unsynced data, and tells which data that is"
    MEETS_FAULTS = "its disk calls can be made to fail"
    TAKES_DAMAGE = "its files can be changed while it is down"
    FINDS_STORES = "it can start on a directory that RocketMQ wrote"
    HAS_ROOM = "foreign files can fill its disk, and its files' times can be set"
    CHANGES_CONFIG = "its configuration can change while it is down"
    PUTS_BATCHES = "it takes batches of messages"
    SEARCHES = "it finds messages by phy_offset, time or key"
    DELETES = "it deletes topics and, on request, expired messages"
    TRACKS_PROGRESS = "it stores the offsets of consumer groups"
    RUNS_CONSUMERS = "it has consumers that the harness starts, runs and stops"
    HOLDS_PULLS = "it answers a group's pulls, at once or when a message has come"
    FILTERS = "it filters messages by a group's subscription"
    IS_REPLICATED = "it can be told how far its replicas have its log"
    DELIVERS_DELAYED = "it delays messages, and reports each that it delivers"
    TELLS_POSITIONS = "it reports its log's positions"
    TELLS_COUNTS = "it reports how many puts it has counted"
    TELLS_WHAT_IT_HOLDS = (
        "it reports the files and locks it holds, also after a shutdown"
    )
    TAKES_SNAPSHOTS = "its disk can be copied during an op, and a store started on it"


EVERYTHING = frozenset(Capability)
"""What our own engine can do on a simulated disk."""

_SEVERAL = frozenset({Capability.RUNS_SEVERAL})
_NONE: frozenset[Capability] = frozenset()

UNIT_ENTRY = -1
UNIT_END = -2
UNIT_ORDER = -3
UNIT_TAIL = -4


class KeptUnit(NamedTuple):
    """How many of the pending changes of one unit of the disk survive a power loss.

    Attributes:
        path: the path of a file at its creation, or of a directory entry.
        place: number of a sector of the file; ``UNIT_END``: its size; ``UNIT_ENTRY``:
            what the path leads to; ``UNIT_ORDER``, path "": all directory changes;
            ``UNIT_TAIL``: space of the file that was never synced.
        version: how many of the unit's changes survive, oldest first; for
            ``UNIT_TAIL``, 1: the space has garbage, 2: another file's old bytes.
    """

    path: str
    place: int
    version: int


@dataclass(frozen=True, slots=True)
class Survivors:
    """Which pending changes survive a power loss.

    ``none`` and ``all`` keep nothing and everything; ``prefix`` keeps the first
    ``number`` changes in the order they were made; ``hashed`` picks how many changes of
    each sector survive, and how many directory changes, by a hash of (``number``, path,
    sector); ``units`` keeps what ``units`` lists, and nothing else.
    """

    kind: SurvivorKind = "none"
    number: int = 0
    units: tuple[KeptUnit, ...] = ()


@dataclass(frozen=True, slots=True)
class Crash:
    """The process is killed, or power is lost.

    ``cut`` is how many bytes of the page being written were written. ``survivors``
    applies only to a power loss: a process kill keeps the effect of all calls.
    """

    kind: CrashKind
    survivors: Survivors = Survivors()
    cut: int = 0


@dataclass(frozen=True, slots=True)
class DiskFault:
    """The next ``times`` calls of one kind fail with ``errno`` while the op lasts.

    Attributes:
        call: the kind of call; ``remove`` includes renames. Three kinds fail no call:
            ``evict`` drops clean pages from the page cache, so that pages left clean by
            a failed sync are read as the medium has them; with ``lose`` and
            ``misdirect`` a sync succeeds, but ``times`` of its pages do not reach the
            medium, or are written to another page's place (rule E6).
        path: only calls on paths with this prefix fail; "": on all.
        after: how many such calls succeed first.
        lasts: all calls from then on fail, whatever ``times`` is.
        written: bytes of a failing write that are done; for a misdirected page, how
            many files further its place is, 0: the next page of its own file.
        survivors: which of the pages that a failed sync leaves clean are on the medium
            all the same; for each file separately.
    """

    call: FaultCall
    errno: FaultErrno
    times: int = 1
    path: str = ""
    after: int = 0
    lasts: bool = False
    written: int = 0
    survivors: Survivors = Survivors()


@dataclass(frozen=True, slots=True)
class PutMessage:
    """Put one message; its body of ``body_size`` bytes is derived from its step.

    ``keys`` adds the KEYS property. ``wait_store_ok`` false sets RocketMQ's property
    WAIT to false: the put does not wait for the flush.

    Attributes:
        ipv6: which of the two hosts has an address of 16 bytes.
        transaction: commit and rollback refer to the newest prepared message of this
            run.
        multi_dispatch: names of light queues, joined by commas, that list it as well.
        delay_level: the DELAY property; 0 for none.
        sys_flag: bits besides those of transaction and hosts, such as compression.
        properties: further properties, as ``a=1;b=x``.
    """

    topic: str
    queue_id: int
    body_size: int
    tags: str = ""
    keys: str = ""
    wait_store_ok: bool = True
    flag: int = 0
    ipv6: IPv6Hosts = "none"
    transaction: TransactionType = "none"
    multi_dispatch: str = ""
    delay_level: int = 0
    reconsume_times: int = 0
    sys_flag: int = 0
    properties: str = ""


@dataclass(frozen=True, slots=True)
class PutBatch:
    """Put several messages of one queue at once: all of them, or none.

    Attributes:
        tags, keys, properties, multi_dispatch: of each message, as of a single one.
        wait_store_ok: of the batch; its messages say for themselves that they wait.
        properties_end: what follows the last value of each message's properties; some
            producers leave the separator out, or send a name without a value.
        cut: how many bytes its body lacks at the end; fewer than a message has.
        wrong: which length before its last message is wrong, and ``off_by`` how much:
            as much as fits its field.
    """

    topic: str
    queue_id: int
    body_sizes: tuple[int, ...]
    tags: str = ""
    wait_store_ok: bool = True
    keys: str = ""
    properties: str = ""
    multi_dispatch: str = ""
    properties_end: str = PROPERTY_END
    cut: int = 0
    wrong: BatchLength = "none"
    off_by: int = 1


@dataclass(frozen=True, slots=True)
class SendMessage:
    """A producer sends one message through the broker, which creates its topic.

    A message for a group's retry topic is stored in its dead-letter topic instead if it
    has been consumed in vain too often, or if the group consumes in order.

    Attributes:
        reconsume_times: how often the message has been consumed in vain.
        max_reconsume_times: how often it may be; -1: what the group's configuration
            says.
        delay_level: the DELAY property; 0 for none.
        properties: further properties, as ``a=1;b=x``.
        asks_queues: how many queues the producer wants a new topic to have.
    """

    topic: str
    queue_id: int
    body_size: int
    reconsume_times: int = 0
    max_reconsume_times: int = -1
    delay_level: int = 0
    properties: str = ""
    asks_queues: int = QUEUES_OF_A_TOPIC

    @property
    def put(self) -> PutMessage:
        """The put of the same message into the topic that it names."""
        return PutMessage(
            self.topic,
            self.queue_id,
            self.body_size,
            delay_level=self.delay_level,
            reconsume_times=self.reconsume_times,
            properties=self.properties,
        )


@quickly_made
@dataclass(frozen=True, slots=True)
class PullMessage:
    """Read up to ``max_msg_nums`` messages of one queue from ``queue_offset`` on.

    ``tags`` is a tag expression, ``A || B``: only messages with one of these tags.
    """

    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int = 32
    tags: str = "*"


@quickly_made
@dataclass(frozen=True, slots=True)
class LookMessage:
    """Read the message whose record begins at ``phy_offset`` of the log."""

    phy_offset: int


@quickly_made
@dataclass(frozen=True, slots=True)
class SearchOffset:
    """Search a queue by store time.

    ``at_ms`` counts from the beginning of the subject's clock. LOWER is the first
    message stored at or after it, UPPER the last one stored at or before it.
    """

    topic: str
    queue_id: int
    at_ms: int
    boundary: Boundary = "LOWER"


@quickly_made
@dataclass(frozen=True, slots=True)
class QueryMessage:
    """Query the newest ``max_num`` messages of a topic that have ``key``.

    Only those stored in [``begin_ms``, ``end_ms``], which count from the beginning of
    the subject's clock.
    """

    topic: str
    key: str
    max_num: int = 32
    begin_ms: int = -ALL_TIME_MS
    end_ms: int = ALL_TIME_MS


@quickly_made
@dataclass(frozen=True, slots=True)
class RunService:
    """Run one background service for ``times`` rounds."""

    service: ServiceName
    times: int = 1


@quickly_made
@dataclass(frozen=True, slots=True)
class AdvanceClock:
    """Let ``ms`` milliseconds pass; negative: the wall clock is set back."""

    ms: int


@dataclass(frozen=True, slots=True)
class DeleteManually:
    """Ask the cleaner to delete expired files at any hour."""


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete a topic with all its queues; or one queue of it, if ``queue_id`` >= 0."""

    topic: str
    queue_id: int = -1


@dataclass(frozen=True, slots=True)
class CleanTopics:
    """Delete all topics of a store without a broker but those ``retained``.

    System topics and light queues stay too. Nobody does this beside others, nor to a
    store that began with another program's topics.

    Attributes:
        retained: names of topics, joined by commas; "": none.
    """

    retained: str = ""


@dataclass(frozen=True, slots=True)
class CommitOffset:
    """A consumer of a group commits: it has consumed everything below ``offset``.

    Its offset store keeps the highest offset so far, and sends that to the broker.
    """

    group: str
    topic: str
    queue_id: int
    offset: int


@quickly_made
@dataclass(frozen=True, slots=True)
class QueryOffset:
    """Ask the broker for the offset of a group."""

    group: str
    topic: str
    queue_id: int


@dataclass(frozen=True, slots=True)
class ResetOffset:
    """Reset a group's offset at the broker; its consumers pick the reset up later.

    ``to``: its ``offset``; its queue's end; or the first message stored at or after
    ``offset`` milliseconds since the run began.
    """

    group: str
    topic: str
    queue_id: int
    offset: int
    to: ResetTarget = "offset"


@dataclass(frozen=True, slots=True)
class TakeQueue:
    """A consumer is assigned a queue, gets a pending reset, and reads where to begin.

    ``where`` is where a group without an offset begins; with ``timestamp`` that is the
    first message stored at or after ``at_ms`` milliseconds since the run began.
    """

    group: str
    topic: str
    queue_id: int
    where: FromWhere = "last"
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Delete a consumer group and its offsets, also in its consumer's offset store."""

    group: str


@dataclass(frozen=True, slots=True)
class ConfigureGroup:
    """Create or change the configuration of a consumer group at the broker.

    Attributes:
        group: the name of the group.
        retry_max_times: how often a message is retried, unless a consumer sets it.
        consume_timeout_minute: the time-out of a listener for a message, in minutes.
        consume_enable: whether its consumers may pull.
        consume_broadcast_enable: whether they may pull if they broadcast.
        is_retried: whether it has the setup's ``retry_queues``; else it has none.
    """

    group: str
    retry_max_times: int = 16
    consume_timeout_minute: int = 15
    consume_enable: bool = True
    consume_broadcast_enable: bool = True
    is_retried: bool = True


@dataclass(frozen=True, slots=True)
class CloneOffset:
    """Copy the offsets of ``group`` on a topic, if there are any, to group ``target``.

    The consumer of ``target`` forgets the offsets that it knew.
    """

    group: str
    target: str
    topic: str


@dataclass(frozen=True, slots=True)
class QueryLowestOffsets:
    """Query each queue of a topic for the lowest offset of all groups but ``group``.

    Source: ConsumerOffsetManager#queryMinOffsetInAllGroup, its filterGroups.
    """

    group: str
    topic: str


@dataclass(frozen=True, slots=True)
class CleanOffsets:
    """Remove the offsets of all groups on a topic, which stays.

    Their consumers, but for those that run by themselves, forget them too.
    """

    topic: str


@dataclass(frozen=True, slots=True)
class ChangeTopic:
    """Create or change a topic at the broker; consumers may read it as before.

    It is ``Skipped`` for the broker's own topics, for topics of retries, and for a
    topic of dead letters if it would take no more of them.

    Attributes:
        read_queues: consumers pull queue ids below it; not fewer than a new topic has.
        write_queues: producers send to queue ids below it, or below ``read_queues``.
        is_writeable: producers may send to it.
    """

    topic: str
    read_queues: int = 8
    write_queues: int = 8
    is_writeable: bool = True

    @property
    def is_left_to_the_group(self) -> bool:
        """Whether it is ``Skipped`` since a group has the topic."""
        if self.topic.startswith(DLQ_PREFIX):
            return not self.is_writeable
        return self.topic.startswith("%")


@dataclass(frozen=True, slots=True)
class AskBroker:
    """An administrator asks the broker a question; that changes nothing.

    Attributes:
        question: ``topics_of_group``, ``groups_of_topic``: where there are offsets;
            ``pull_offset``: where the group pulls next; ``time``: the first message
            stored since ``at_ms``; ``group``: whether the group is configured;
            ``group_config``, ``topic_config``: how it is configured; ``lock``: whether
            the client has the lock of the queue; ``subscribers``: the groups that
            subscribe the topic.
        at_ms: milliseconds since the run began.
    """

    question: Question
    group: str = ""
    topic: str = ""
    queue_id: int = 0
    at_ms: int = 0
    client: str = ""


RETRIED = 2
"""So often most consumers of programs let a message be tried again, before it is a dead
letter; far below RocketMQ's sixteen, so that short histories come to it."""


@dataclass(frozen=True, slots=True)
class StartConsumer:
    """A client starts its consumer, which joins a group.

    It has no queue before its first rebalance, and does nothing by itself.

    Attributes:
        client: its name; a client has at most one consumer.
        topics: what it subscribes, joined by commas; the same in all of the group.
        expression: which of their messages it subscribes; the same in all of the group.
        batch: how many messages its listener is given at most in one call.
        where: where a group without an offset begins; ``timestamp`` is half an hour
            before the consumer's start.
        strategy: the allocation strategy of the rebalance.
        listed: with ``CONFIG`` the consumer's queues, as ``T0/0,T0/1``.
        is_orderly: it locks its queues, and consumes one message of each at a time.
        broadcasts: it gets every queue, and keeps its offsets in a file of its own.
        max_reconsume_times: how often it lets a message be tried again; -1: sixteen
            times or, in order, without end. The same in all of the group.
    """

    client: str
    group: str
    topics: str
    where: FromWhere = "first"
    strategy: Strategy = "AVG"
    is_orderly: bool = False
    broadcasts: bool = False
    listed: str = ""
    expression: str = "*"
    expression_type: ExpressionType = "TAG"
    batch: int = 1
    max_reconsume_times: int = RETRIED


@dataclass(frozen=True, slots=True)
class Resubscribe:
    """A running consumer replaces its subscriptions by these topics.

    The fields are as in ``StartConsumer``.
    """

    client: str
    topics: str
    expression: str = "*"
    expression_type: ExpressionType = "TAG"


@dataclass(frozen=True, slots=True)
class EndConsumer:
    """A client's consumer stops, is killed or vanishes.

    ``stop`` is its orderly shutdown; with ``kill`` its process ends, and the broker
    sees the connection close; with ``vanish`` its machine loses power, and the broker
    sees nothing.
    """

    client: str
    how: ConsumerEnd = "stop"


@quickly_made
@dataclass(frozen=True, slots=True)
class TurnConsumer:
    """Run a task of a consumer for ``times`` rounds, or until it has nothing to do.

    Four are no tasks: with ``suspend`` the application tells the consumer to pull
    nothing, until ``resume`` tells it to go on. With ``reconnect`` its connection has
    broken, and it sends its heartbeats on a new one from now on, the first at once;
    with ``disconnect`` the broker sees that its old connections have closed. That does
    nothing before a heartbeat has come on the new one.

    Of the questions that it asks its broker meanwhile, the ``lost``-th gets no answer;
    0: all do. Questions are those for queues, members, offsets and ends of queues.
    """

    client: str
    task: ConsumerTask
    times: int = 1
    lost: int = 0


PAUSE_MS_MAX: Final = 5_000
"""After that long what was put off after a failure is due again, whatever it was."""


def pause_ms(again: int) -> int:
    """How long a queue in order pauses if its listener says ``again``; see Consume.

    Source: ConsumeMessageOrderlyService#submitConsumeRequestLater.
    """
    return min(max(again, PAUSE_MS_MIN), PAUSE_MS_MAX) if again else PAUSE_MS


@quickly_made
@dataclass(frozen=True, slots=True)
class Consume:
    """A consumer's listener consumes messages that were pulled, with the given result.

    ``nth`` is which of the waiting messages, modulo their number; ``times`` how many,
    one after the other. With ``partly`` the first half of a batch succeeds, rounded up,
    and the others come again ``later``. With ``hangs`` the listener keeps the messages
    and does not return; it does when its turn comes again, with the result given then.
    An orderly listener never hangs and is never half done: it succeeds.

    Of messages that failed, ``again`` says when they come again: it is the delay level
    for which they wait; 0: the broker chooses it, negative: they become dead letters at
    once. After a failure in order the queue pauses for that many ms, though never more
    than ``PAUSE_MS_MAX``; 0: as long as is usual, negative: as briefly as is possible.

    The listener has each batch for ``takes_ms`` before it returns, so that what begins
    at the same time happens meanwhile.

    The last four of the results are those of a listener in order that commits by
    itself: ``uncommitted`` consumes without a commit; ``commit`` also commits all that
    was consumed before; after ``rollback`` all since the last commit comes again; with
    ``suspends`` it fails as with ``later``, and commits nothing. Other consumers take
    the last two for ``later``, and the other two for ``success``.
    """

    client: str
    nth: int = 0
    times: int = 1
    status: ConsumeStatus = "success"
    again: int = 0
    takes_ms: int = 0


@dataclass(frozen=True, slots=True)
class TellReset:
    """A broker tells a running consumer to begin a queue of its own at ``offset``.

    The consumer drops the queue, commits the offset, and begins there with its next
    rebalance. It is ``Skipped`` if the consumer broadcasts, since the broker does not
    know where that is, or does not have the queue.

    Source: Broker2Client#resetOffset, MQClientInstance#resetOffset.
    """

    client: str
    topic: str
    queue_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class PullThroughBroker:
    """A consumer pulls a queue through the broker, which may hold the pull.

    The answer comes during this op or, if the pull is held, during a later one: when a
    message arrives, when the broker checks the pulls it holds, or when it shuts down.

    Attributes:
        commit_offset: before the pull the consumer has consumed everything below
            it; its offset store keeps the highest such offset, and the pull carries
            it. -1: the pull carries none.
        suspends: whether the pull may be held, for 15 seconds.
        tags: a tag expression, as in ``PullMessage``; or the expression of another
            type, which the pull carries itself.
        is_lite: the consumer says that it pulls by itself, without rebalances.
    """

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int = 32
    commit_offset: int = -1
    suspends: bool = True
    tags: str = "*"
    expression_type: ExpressionType = "TAG"
    is_lite: bool = False


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A client sends the broker its group's subscription to a topic, an expression.

    ``version`` is the version of the subscription: the highest one is in effect; 0:
    higher than all before.
    """

    group: str
    topic: str
    expression: str
    expression_type: ExpressionType = "SQL92"
    version: int = 0


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A client unregisters its group from the broker."""

    group: str


@dataclass(frozen=True, slots=True)
class PullFiltered:
    """Read up to ``max_msg_nums`` messages of a queue that a group's filter accepts."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int = 32


@dataclass(frozen=True, slots=True)
class ConfirmLog:
    """Replicas confirm that they have the log except its newest ``behind`` bytes."""

    behind: int = 0


@dataclass(frozen=True, slots=True)
class FillDisk:
    """Fill the disk to ``percent`` with a foreign file; 0 removes that file."""

    percent: int


@dataclass(frozen=True, slots=True)
class ChangeConfig:
    """Give an option of the setup another value, while the store is down."""

    option: Option
    value: bool | int | str


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Shut the store down in an orderly way."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Start the store; if it is up, shut it down first."""


@dataclass(frozen=True, slots=True)
class During:
    """Run ``op`` and let ``event`` happen at its ``at_action``-th disk action.

    If the op makes fewer disk actions, the event happens right after it. A clock
    advance as the event is a stall: the op stands still while others run. Events nest
    two deep (``During`` in ``During``); deeper is ``Skipped``.
    """

    op: Op
    at_action: int
    event: Crash | DiskFault | Op


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which activity runs next where several could, so that a run can be repeated.

    Activities are numbered from 0 in the order of their begin. At a *switch point*,
    numbered from 1, the running activity may hand over to another; where it waits or
    ends it has to, and that counts as a point if there is a choice. ``preempt`` lets
    the running activity go on, or else the next one by number, except for
    ``preemptions``. ``pct`` runs the activity of the highest priority: priorities are
    drawn from ``seed``, and at ``depth`` - 1 points, drawn below ``steps``, the running
    activity gets the lowest.

    Attributes:
        preemptions: pairs of a point's number and the activity that runs from there on;
            an activity that cannot run is skipped.
        grain: where the points are: only at calls of the host (disk, locks, events), or
            also at each engine line with an effect that others could see.

    Source: Musuvathi and Qadeer, PLDI 2007, for bounded preemption; Burckhardt et al.,
    ASPLOS 2010, for probabilistic concurrency testing.
    """

    kind: ScheduleKind = "preempt"
    preemptions: tuple[tuple[int, int], ...] = ()
    seed: int = 0
    depth: int = 1
    steps: int = 32
    grain: Grain = "calls"


@dataclass(frozen=True, slots=True)
class Session:
    """One caller's ops, one after the other; several callers run in a ``Together``.

    Anywhere else, and inside another ``Session``, it is ``Skipped``.
    """

    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """Begin all ``ops`` at the same time; ``schedule`` decides which runs when.

    Each is one op, or a ``Session`` of several. Only ops of callers and services are
    allowed (``CAN_BE_TOGETHER``); another op is ``Skipped``.
    """

    ops: tuple[Op, ...]
    schedule: Schedule = Schedule()


@dataclass(frozen=True, slots=True)
class Damage:
    """Change one file while the store is down.

    Attributes:
        file: a selector ``commitlog[n]``, ``consumequeue[n]``, ``index[n]`` (the n-th
            file below that directory in sorted order, modulo their number; negative
            from the end), ``checkpoint`` or ``abort``.
        kind: ``truncate`` cuts the file to ``at`` bytes, ``zero`` zeroes ``size``
            bytes from ``at`` (0: to the end), ``flip`` inverts ``size`` bytes from
            ``at``, ``delete`` removes the file. ``at`` counts modulo the file's size.
            ``repeat`` makes them those of the ``size`` bytes behind them, as a write
            that landed in front of its place.
            ``touch`` sets the file's mtime to ``at`` ms ago. ``unreadable`` makes the
            sectors of those bytes fail reads until they are written again (a latent
            sector error). ``reword`` changes one member of a config file as somebody
            would who edits it: ``at`` counts the members, ``size`` the changes (see
            ``models.files.rewording``). ``restore`` puts back from a copy what damage
            has changed since the last start that changed anything.
    """

    file: str
    kind: DamageKind
    at: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class PlantFile:
    """Put a foreign file into the store's directories while the store is down.

    It replaces nothing that exists, and is not put below a file.

    Attributes:
        path: below the root; ``{next}`` in it stands for the name that the next
            file of the same directory would have, ``{far}`` for one with a gap
            before it.
        content: ``zeros`` and ``garbage`` have ``size`` bytes, ``copy`` those of
            the file that ``source`` selects, as ``Damage`` does.

    Source: rule E9 of the disk fault model.
    """

    path: str
    content: ForeignContent = "empty"
    size: int = 0
    source: str = ""


Op: TypeAlias = (
    PutMessage
    | PutBatch
    | SendMessage
    | PullMessage
    | LookMessage
    | SearchOffset
    | QueryMessage
    | RunService
    | AdvanceClock
    | DeleteManually
    | DeleteTopic
    | CleanTopics
    | CommitOffset
    | QueryOffset
    | ResetOffset
    | TakeQueue
    | StartConsumer
    | Resubscribe
    | EndConsumer
    | TurnConsumer
    | Consume
    | TellReset
    | PullThroughBroker
    | Subscribe
    | Unsubscribe
    | PullFiltered
    | ConfirmLog
    | DeleteGroup
    | ConfigureGroup
    | CloneOffset
    | QueryLowestOffsets
    | CleanOffsets
    | ChangeTopic
    | AskBroker
    | FillDisk
    | ChangeConfig
    | Shutdown
    | Restart
    | During
    | Session
    | Together
    | Damage
    | PlantFile
)

OP_CLASSES: tuple[type[Op], ...] = (
    PutMessage,
    PutBatch,
    SendMessage,
    PullMessage,
    LookMessage,
    SearchOffset,
    QueryMessage,
    RunService,
    AdvanceClock,
    DeleteManually,
    DeleteTopic,
    CleanTopics,
    CommitOffset,
    QueryOffset,
    ResetOffset,
    TakeQueue,
    StartConsumer,
    Resubscribe,
    EndConsumer,
    TurnConsumer,
    Consume,
    TellReset,
    PullThroughBroker,
    Subscribe,
    Unsubscribe,
    PullFiltered,
    ConfirmLog,
    DeleteGroup,
    ConfigureGroup,
    CloneOffset,
    QueryLowestOffsets,
    CleanOffsets,
    ChangeTopic,
    AskBroker,
    FillDisk,
    ChangeConfig,
    Shutdown,
    Restart,
    During,
    Session,
    Together,
    Damage,
    PlantFile,
)
SILENT: frozenset[FaultCall] = frozenset({"evict", "lose", "misdirect"})
"""Faults that let no call fail."""

CAN_BE_TOGETHER: tuple[type[Op], ...] = (
    PutMessage,
    PutBatch,
    SendMessage,
    PullMessage,
    LookMessage,
    SearchOffset,
    QueryMessage,
    RunService,
    AdvanceClock,
    DeleteManually,
    DeleteTopic,
    CommitOffset,
    QueryOffset,
    ResetOffset,
    TakeQueue,
    StartConsumer,
    Resubscribe,
    EndConsumer,
    TurnConsumer,
    Consume,
    TellReset,
    PullThroughBroker,
    Subscribe,
    Unsubscribe,
    PullFiltered,
    ConfirmLog,
    DeleteGroup,
    ConfigureGroup,
    CloneOffset,
    QueryLowestOffsets,
    CleanOffsets,
    ChangeTopic,
    AskBroker,
    FillDisk,
    Shutdown,
)
FilterOp: TypeAlias = Subscribe | Unsubscribe
"""What clients say of what their groups subscribe."""

ConsumerOp: TypeAlias = (
    StartConsumer | Resubscribe | EndConsumer | TurnConsumer | Consume | TellReset
)
"""What one consumer does, or what becomes of it."""

QueueOp: TypeAlias = CommitOffset | QueryOffset | ResetOffset | TakeQueue
"""What is asked of the broker of one queue of one group."""

GroupOp: TypeAlias = DeleteGroup | ConfigureGroup | CloneOffset | QueryLowestOffsets
"""What is asked of the broker of a whole group."""

AdminOp: TypeAlias = CleanOffsets | ChangeTopic | AskBroker
"""What an administrator asks of the broker."""

ProgressOp: TypeAlias = QueueOp | GroupOp | AdminOp
"""What consumers, and who administers them, ask of the broker."""

Event: TypeAlias = Crash | DiskFault | Op
EVENT_CLASSES: tuple[type[Event], ...] = (Crash, DiskFault, *OP_CLASSES)
NESTING_MAX = 2


def needs(op: Event) -> frozenset[Capability]:
    """The capabilities that a subject must have for ``op`` not to be ``Skipped``.

    A process kill needs none: a subject where nothing can happen during an op is killed
    right after it.
    """
    match op:
        case During() | Session() | Together():
            return _needs_of_parts(op)
        case RunService():
            return frozenset({Capability.TURNS_SERVICES})
        case AdvanceClock():
            return frozenset({Capability.HAS_CLOCK})
        case Damage(kind="touch"):
            return frozenset({Capability.TAKES_DAMAGE, Capability.HAS_ROOM})
        case Damage(kind="unreadable" | "restore"):
            return frozenset({Capability.TAKES_DAMAGE, Capability.LOSES_POWER})
        case Damage() | PlantFile():
            return frozenset({Capability.TAKES_DAMAGE})
        case DiskFault(call="evict" | "lose" | "misdirect"):
            return frozenset({Capability.MEETS_FAULTS, Capability.LOSES_POWER})
        case DiskFault():
            return frozenset({Capability.MEETS_FAULTS})
        case Crash(kind="power_loss"):
            return frozenset({Capability.LOSES_POWER})
        case PutMessage(transaction=kind, multi_dispatch=light):
            # They are listed in no queue, or in several.
            is_plain = kind == "none" and not light
            return _NONE if is_plain else frozenset({Capability.STORES_AS_ROCKETMQ})
        case Crash() | PullMessage() | Shutdown() | Restart():
            return _NONE
        case PutBatch():
            return frozenset({Capability.PUTS_BATCHES})
        case LookMessage() | SearchOffset() | QueryMessage():
            return frozenset({Capability.SEARCHES})
        case DeleteManually() | DeleteTopic() | CleanTopics():
            return frozenset({Capability.DELETES})
        case CommitOffset() | QueryOffset() | ResetOffset() | TakeQueue():
            return frozenset({Capability.TRACKS_PROGRESS})
        case StartConsumer() | Resubscribe() | EndConsumer():
            return frozenset({Capability.RUNS_CONSUMERS})
        case TurnConsumer() | Consume() | TellReset():
            return frozenset({Capability.RUNS_CONSUMERS})
        case SendMessage():
            return frozenset({Capability.TRACKS_PROGRESS})
        case PullThroughBroker():
            return frozenset({Capability.TRACKS_PROGRESS, Capability.HOLDS_PULLS})
        case Subscribe() | Unsubscribe() | PullFiltered():
            return frozenset({Capability.FILTERS})
        case ConfirmLog():
            return frozenset({Capability.IS_REPLICATED})
        case DeleteGroup() | ConfigureGroup() | CloneOffset() | QueryLowestOffsets():
            return frozenset({Capability.TRACKS_PROGRESS})
        case CleanOffsets() | ChangeTopic() | AskBroker():
            return frozenset({Capability.TRACKS_PROGRESS})
        case FillDisk():
            return frozenset({Capability.HAS_ROOM})
        case ChangeConfig():
            return frozenset({Capability.CHANGES_CONFIG})
        case _:
            assert_never(op)


def _needs_of_parts(op: During | Session | Together) -> frozenset[Capability]:
    match op:
        case During(inner, _, Crash(kind="process_kill")):
            return needs(inner)
        case During(inner, _, event):
            beside = _SEVERAL if isinstance(event, OP_CLASSES) else _NONE
            return beside | {Capability.STEPS_IN} | needs(inner) | needs(event)
        case Session(ops):
            return _NONE.union(*map(needs, ops))
        case Together(ops):
            return _SEVERAL.union(*map(needs, ops))


def nesting(op: Event) -> int:
    """The depth of nested ``During`` in an op."""
    if isinstance(op, Together | Session):
        return max([0, *map(nesting, op.ops)])
    if not isinstance(op, During):
        return 0
    return 1 + max(nesting(op.op), nesting(op.event))


def parts(op: Event) -> tuple[Event, ...]:
    """The ops and events that an op contains; none for a simple one."""
    match op:
        case During(inner, _, event):
            return inner, event
        case Together(ops) | Session(ops):
            return ops
        case _:
            return ()


def all_parts(op: Event) -> tuple[Event, ...]:
    """The op, and all ops and events that it contains, however deep."""
    if not isinstance(op, During | Together | Session):
        return (op,)
    return (op, *[one for part in parts(op) for one in all_parts(part)])


@overload
def innermost(op: Op) -> Op: ...
@overload
def innermost(op: Event) -> Event: ...
def innermost(op: Event) -> Event:
    """The op inside all nested ``During``; the op itself if it is none."""
    while isinstance(op, During):
        op = op.op
    return op
