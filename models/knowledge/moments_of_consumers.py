"""Moments at which a consumer client has done something that laws are asked about."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crashmq.models.appended import Appended
from crashmq.models.files.config_tables import TableTurn
from crashmq.models.files.offsets import OffsetKey
from crashmq.models.files.record import Record
from crashmq.models.history import Consumed, OneQueue, PullReceived, SendAnswered
from crashmq.models.knowledge.consumption import Failed, Share
from crashmq.models.knowledge.group_configs import GroupConfig
from crashmq.models.knowledge.locks import Lock
from crashmq.models.knowledge.moments import Moment
from crashmq.models.knowledge.progress import TopicsWritten
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.knowledge.subscriptions import Asked
from crashmq.models.knowledge.topics import Shape
from crashmq.models.messages import MessageToPut
from crashmq.models.ops import ChangeTopic, ConfigureGroup, ConsumeStatus


@dataclass(slots=True)
class PullGoesOn(Moment):
    """A consumer pulls a queue that it has pulled before.

    Attributes:
        queue_offset: where it pulls from.
        expected: where its last pull began, and the next_begin_offsets answered to
            it.
        waiting: how many messages it has pulled and not consumed.
        span: how far apart those lie whose offsets are known; 0 if it consumes in
            order.
    """

    queue: OneQueue
    queue_offset: int
    expected: Sequence[int]
    waiting: int
    span: int


@dataclass(slots=True)
class MessagesPulled(Moment):
    """A consumer's pull was answered, and the answer does not send it elsewhere.

    ``wanted`` is the subscription that it pulled with; None: unknown.
    """

    answer: PullReceived
    wanted: Asked | None


@dataclass(slots=True)
class ConsumerAnswered(Moment):
    """A broker answered a consumer's pull of ``queue`` with ``code``.

    ``broadcasts``: whether the consumers of its group do; None: some do.
    """

    queue: OneQueue
    code: str
    broadcasts: bool | None


@dataclass(slots=True)
class ConsumerCommitted(Moment):
    """A consumer committed an offset of the log as it is; the broker now has ``kept``.

    ``end`` is the queue_offset that the queue's next message gets.
    """

    queue: OneQueue
    offset: int
    kept: int
    end: int


@dataclass(slots=True)
class GroupIsAt(Moment):
    """A consumer has committed, and the broker then stores ``offset`` for its group.

    Attributes:
        key: the group and the queue.
        passed: messages below the offset that the group had to get and has not
            consumed.
        end: the queue_offset that the queue's next message gets.
    """

    key: OffsetKey
    offset: int
    passed: Sequence[Appended]
    end: int


@dataclass(slots=True)
class MessageConsumed(Moment):
    """A consumer's listener was given a message.

    Attributes:
        consumed: what it was given.
        share: what the consumer has done with the queue; None if it gave the queue
            up.
        unique_key: the unique key of the message.
        passed: earlier messages that it has pulled too, and not consumed.
        is_orderly: the consumer consumes the messages of each queue in order.
        lock_ms: how long ago the broker last confirmed its lock of the queue; None:
            it holds none, or needs none.
        at_ms: when, by the store's clock.
        failed: its earlier failed attempt, if the consumer kept the message; None:
            there was none, or it is unknown.
        given: the message as its record has it; None: it cannot be decoded.
    """

    consumed: Consumed
    share: Share | None
    unique_key: str
    passed: Sequence[Appended]
    is_orderly: bool
    lock_ms: int | None
    at_ms: int
    failed: Failed | None
    given: Record | None


@dataclass(slots=True)
class MessageSentBack(Moment):
    """A broker confirmed to a consumer that it has stored a message sent back.

    Attributes:
        given: the message as the consumer had it.
        copies: the puts of the step that hold it, with one more reconsume time.
        times: how often the consumer's group got that confirmation in the step.
    """

    queue: OneQueue
    given: Record
    copies: Sequence[MessageToPut]
    times: int

    @property
    def unique_key(self) -> str:
        """The unique key of the message."""
        return self.given.properties.get("UNIQ_KEY", "")


@dataclass(slots=True)
class BackRefused(Moment):
    """A broker has refused a message that a consumer sent back.

    Attributes:
        code: the broker's answer.
        is_put: it had passed the message to its store.
        given: the message as the consumer had it.
        copies: the puts of the step that hold it, with one more reconsume time.
    """

    queue: OneQueue
    code: str
    is_put: bool
    given: Record
    copies: Sequence[MessageToPut]


@dataclass(slots=True)
class MessageGivenUp(Moment):
    """A consumer sent back a message when it cleaned expired messages.

    ``had_ms`` is for how long its listener has had the message, at most; None: the
    listener was never given it.
    """

    queue: OneQueue
    queue_offset: int
    had_ms: int | None


@dataclass(slots=True)
class ExpiredLeft(Moment):
    """A consumer has cleaned expired messages; a queue still has a first message.

    Attributes:
        queue: the queue, with its group and client.
        queue_offset: of that message, which its listener was given.
        had_ms: for how long the listener has had it, at least.
        given_up: how many messages of the queue the consumer has sent back meanwhile.
    """

    queue: OneQueue
    queue_offset: int
    had_ms: int
    given_up: int


@dataclass(slots=True)
class GivenBackAgain(Moment):
    """A consumer sent back a message; ``again``: it had done so before."""

    queue: OneQueue
    unique_key: str
    again: bool


@dataclass(slots=True)
class FailureSentBack(Moment):
    """A consumer sent back a message, in a step in which it gave up none.

    ``results`` are what its listener returned for the message in the step.
    """

    queue: OneQueue
    queue_offset: int
    results: Sequence[ConsumeStatus]


@dataclass(slots=True)
class PullsSuspended(Moment):
    """Rounds of a suspended consumer's pull service have ended.

    ``pulled`` are the queues that it has pulled in them.
    """

    client: str
    pulled: Sequence[OneQueue]


@dataclass(slots=True)
class MessageSent(Moment):
    """A broker has answered a producer that sent a message, with no other op beside.

    Attributes:
        sent: the message as the producer sent it, and the answer.
        copies: what the broker has passed to the store for it.
        is_dead: it has to be a dead letter of its group; None: that is unknown, or its
            topic is not one of retries.
        queues: how many queues its topic has in the broker's file, -1: it is not
            there; None: the topic is one of a group or RocketMQ's own, or something may
            have changed the file, or an administrator may have changed it.
        is_taken: the broker has to pass it to the store, which itself refuses a queue
            id below 0; None: that is unknown.
    """

    sent: SendAnswered
    copies: Sequence[MessageToPut]
    is_dead: bool | None
    queues: int | None
    is_taken: bool | None


@dataclass(slots=True)
class TopicsChanged(Moment):
    """The broker's file of topics, after a change or as a start found it.

    ``possible`` has each topic that an administrator has changed, and what it may be.
    """

    rows: Mapping[str, Any]
    possible: Mapping[str, frozenset[Shape]]


@dataclass(slots=True)
class ChangeAnswered(Moment):
    """A broker carried out, or refused, a change that it must carry out."""

    change: ChangeTopic | ConfigureGroup
    is_done: bool


@dataclass(slots=True)
class LockAnswered(Moment):
    """A broker answered a consumer's request for the lock of a queue.

    Attributes:
        queue: the queue, with its group and client.
        is_granted: whether the consumer got the lock.
        lock: what was known of the lock before.
        at_ms: when it was answered.
    """

    queue: OneQueue
    is_granted: bool
    lock: Lock
    at_ms: int


@dataclass(slots=True)
class LockNeeded(Moment):
    """An orderly consumer looks up where to begin in a queue, or pulls it.

    ``has_lock``: the broker had confirmed that it holds the queue's lock.
    """

    queue: OneQueue
    has_lock: bool


@dataclass(slots=True)
class MembersChanged(Moment):
    """A client has joined a group or left it, and nothing else happened.

    Attributes:
        is_there: it has joined.
        others: who certainly is a member besides.
        told: the members that the broker named to them all, last; None: it did not.
    """

    group: str
    client: str
    is_there: bool
    others: frozenset[str]
    told: tuple[str, ...] | None


@dataclass(slots=True)
class MembersListed(Moment):
    """A broker listed the members of a group to one of its clients.

    Attributes:
        silent_ms: by client, the time since its last heartbeat.
        left: the clients that have left the group, as the broker knows.
        expired: those found silent for too long by the last scan for inactive
            clients.
    """

    client: str
    group: str
    members: Sequence[str]
    silent_ms: Mapping[str, int]
    left: Sequence[str]
    expired: Sequence[str]


@dataclass(slots=True)
class TopicsNeeded(Moment):
    """A message was sent back, which needs its group's retry or dead-letter topic.

    Attributes:
        group: the name of the group.
        written: the group tables that the broker has written.
        before: the same, when such a topic was needed last; None: unknown.
    """

    group: str
    written: TopicsWritten
    before: TopicsWritten | None


@dataclass(slots=True)
class TableTurned(Moment):
    """A step has ended in which the file of a table of the broker has changed."""

    turn: TableTurn


@dataclass(slots=True)
class GroupConfigsSeen(Moment):
    """A group was configured or deleted, or a start has loaded the configurations.

    Attributes:
        rows: the written configurations, by group.
        possible: by group, the configurations that were confirmed, or may be in
            effect.
    """

    rows: Mapping[str, Any]
    possible: Mapping[str, frozenset[GroupConfig]]


@dataclass(slots=True)
class PullMoved(Moment):
    """A pull was answered with PULL_OFFSET_MOVED.

    Attributes:
        queue: the queue, with its group and client.
        to: where the consumer is sent.
        end: the queue_offset that the queue's next message gets.
        possible: where it may be sent; None: unknown.
    """

    queue: OneQueue
    to: int
    end: int
    possible: frozenset[int] | None


@dataclass(slots=True)
class ElsewhereNeeded(Moment):
    """A pull was answered whose consumer has to begin elsewhere.

    Attributes:
        queue: the queue, with its group and client.
        queue_offset: of the pull.
        to: where the consumer is sent; -1: nowhere.
        places: where it has to be sent.
    """

    queue: OneQueue
    queue_offset: int
    to: int
    places: frozenset[int]


@dataclass(slots=True)
class MoveTaken(Moment):
    """A consumer that was sent elsewhere in a queue has committed where it begins.

    Attributes:
        queue: the queue, with its group and client.
        told: the offset that it commits.
        to: the offset it was sent to, or the offset of its group that it read
            afterwards, whichever is lower.
    """

    queue: OneQueue
    told: int
    to: int


@dataclass(slots=True)
class LockingConsumerStopped(Moment):
    """A consumer in order has stopped in an orderly way.

    Attributes:
        client: its client.
        locked: the queues whose locks the broker still keeps for it.
    """

    client: str
    locked: Sequence[OneQueue]


@dataclass(slots=True)
class ConsumerStopped(Moment):
    """A consumer has stopped in an orderly way, while none of its listeners ran.

    Attributes:
        client: its client.
        took_ms: how long that took.
    """

    client: str
    took_ms: int


@dataclass(slots=True)
class ConsumerIdle(Moment):
    """A consumer has not started yet, or has stopped.

    ``work`` is what a round of each of its services has done all the same.
    """

    client: str
    work: int


@dataclass(slots=True)
class ConsumerTold(Moment):
    """A consumer has started, subscribed something else, or come to other queues.

    Attributes:
        client: its client.
        subscribed: the topics that it subscribes now, with their expressions.
        told: those of its last heartbeat in the step; None: it has sent none.
    """

    client: str
    subscribed: tuple[tuple[str, str, str], ...]
    told: tuple[tuple[str, str, str], ...] | None


@dataclass(slots=True)
class TaskReported(Moment):
    """Rounds of a client's task have ended.

    Attributes:
        client: the client.
        task: its task.
        work: what the rounds reported.
        seen: what the broker or the queues held have shown of it.
        is_all: the rounds have done nothing else.
    """

    client: str
    task: str
    work: int
    seen: int
    is_all: bool


@dataclass(slots=True)
class RebalanceOver(Moment):
    """Rounds of a consumer's rebalance have ended; the next is due in ``after_ms``.

    ``is_done``: it has all that its strategy assigns to it; else it lacks something.
    """

    client: str
    after_ms: int
    is_done: bool


@dataclass(slots=True)
class QueueGivenBack(Moment):
    """A consumer has given up a queue in an orderly way.

    Attributes:
        queue: the queue, with its group and client.
        told: the newest offset that it has committed; -1: none.
        worked_until: the end of what it has consumed without a gap; -1: nothing.
    """

    queue: OneQueue
    told: int
    worked_until: int


@dataclass(slots=True)
class ResetObeyed(Moment):
    """A consumer commits a queue after its broker told it to begin it elsewhere.

    ``told`` is where; ``sent`` is what it commits.
    """

    queue: OneQueue
    told: int
    sent: int


@dataclass(slots=True)
class QueueBegunAnew(Moment):
    """A consumer whose group has no offset for a queue pulls it for the first time.

    ``told`` is the offset that it has committed for that queue; -1: none.
    """

    queue: OneQueue
    told: int


@dataclass(slots=True)
class NothingToDo(Moment):
    """A consumer was asked to consume a queue of its own, and reported nothing to do.

    Attributes:
        queue: the queue, with its group and client.
        waiting: the messages of it that it has pulled and not consumed.
        put_off_ms: how long ago it was last asked before that; None: never.
        due_ms: for so long after that the queue may be put off.
    """

    queue: OneQueue
    waiting: Sequence[str]
    put_off_ms: int | None
    due_ms: int


@dataclass(slots=True)
class GroupIdle(Moment):
    """The only consumer of a queue has consumed everything, and has committed that.

    ``told`` is the offset that it has committed; ``end`` that of the next message.
    """

    key: OffsetKey
    told: int
    end: int


@dataclass(slots=True)
class QueuesShared(Moment):
    """All consumers of a group have rebalanced, and no assignment changes any more."""

    group: str
    queues: Sequence[QueueKey]
    held: Mapping[str, Sequence[QueueKey]]


@dataclass(slots=True)
class GroupCaughtUp(Moment):
    """The consumers of a group have nothing left to do.

    ``left`` are the messages of a queue that the group had to get and has not consumed.
    """

    key: OffsetKey
    left: Sequence[Appended]


@dataclass(slots=True)
class PullDue(Moment):
    """A round of a consumer's pull service has ended, and a queue's pull was due in it.

    Attributes:
        queue: the queue, with its group and client.
        due_ms: since when it was due, at the latest.
        now_ms: when the round ended.
        is_sent: the consumer has pulled the queue.
    """

    queue: OneQueue
    due_ms: int
    now_ms: int
    is_sent: bool


@dataclass(slots=True)
class PullTimed(Moment):
    """A consumer pulls a queue; ``least_ms`` is when it may, at the earliest."""

    queue: OneQueue
    at_ms: int
    least_ms: int


@dataclass(slots=True)
class QueueRetaken(Moment):
    """A rebalance began a queue again that its consumer had.

    A round of the pull service looked at it ``idle_ms`` before, or later than that.
    """

    queue: OneQueue
    idle_ms: int


@dataclass(slots=True)
class HeartbeatOver(Moment):
    """Heartbeat rounds of a client have ended; ``is_heard``: the broker took one."""

    client: str
    group: str
    is_heard: bool


@dataclass(slots=True)
class LocksRenewed(Moment):
    """Rounds that renew the locks of an orderly consumer's queues have ended.

    Attributes:
        client: the consumer.
        held: the queues assigned to it.
        asked: the queues whose locks it has asked for.
    """

    client: str
    held: Sequence[QueueKey]
    asked: Collection[QueueKey]


@dataclass(slots=True)
class QueuePersisted(Moment):
    """A consumer that works on ``queue`` has ended rounds of persisting offsets.

    Attributes:
        queue: the queue, with its group and client.
        told: the newest offset that it has committed to the broker; -1: none.
        worked_until: the end of what it has consumed without a gap.
    """

    queue: OneQueue
    told: int
    worked_until: int


@dataclass(slots=True)
class QueuesTaken(Moment):
    """A consumer has rebalanced, and got the same list of members for all its topics.

    Attributes:
        client: the consumer.
        group: its group.
        held: the queues assigned to it.
        share: the queues that its strategy must assign to it.
        refused: the queues whose locks it did not get.
    """

    client: str
    group: str
    held: Sequence[QueueKey]
    share: Collection[QueueKey]
    refused: Collection[QueueKey]
