"""Moments at which a consumer has done something that laws speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crashmq.models.appended import Appended
from crashmq.models.files.config_tables import TableTurn
from crashmq.models.files.offsets import OffsetKey
from crashmq.models.files.record import Record
from crashmq.models.history import Consumed, OneQueue, PullReceived
from crashmq.models.knowledge.consumption import Failed, Share
from crashmq.models.knowledge.group_configs import GroupConfig
from crashmq.models.knowledge.locks import Lock
from crashmq.models.knowledge.moments import Moment
from crashmq.models.knowledge.progress import TopicsWritten
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.knowledge.subscriptions import Asked
from crashmq.models.messages import MessageToPut


@dataclass(slots=True)
class PullGoesOn(Moment):
    """A consumer pulls a queue again.

    Attributes:
        queue_offset: where from.
        expected: where its last pull began, and where answers to it said to go on.
        waiting: how many messages it has pulled and not worked off.
    """

    queue: OneQueue
    queue_offset: int
    expected: Sequence[int]
    waiting: int


@dataclass(slots=True)
class MessagesPulled(Moment):
    """A consumer's pull is answered, and it needs not begin elsewhere.

    ``wanted`` is what it has asked for; None: nobody knows.
    """

    answer: PullReceived
    wanted: Asked | None


@dataclass(slots=True)
class OffsetTold(Moment):
    """A consumer has told an offset of the log as it is, and the broker keeps ``kept``.

    ``end`` is the queue_offset of the next message that is put there.
    """

    queue: OneQueue
    offset: int
    kept: int
    end: int


@dataclass(slots=True)
class GroupIsAt(Moment):
    """A consumer has told its group's offset, and the broker keeps ``offset`` then.

    Attributes:
        key: the group and the queue.
        passed: the messages below it that the group is owed and has not worked off.
        end: the queue_offset of the next message that is put there.
    """

    key: OffsetKey
    offset: int
    passed: Sequence[Appended]
    end: int


@dataclass(slots=True)
class MessageConsumed(Moment):
    """A consumer was given a message.

    Attributes:
        consumed: what it was given.
        share: what it has done with the queue; None if it gave that back.
        unique_key: of the message.
        passed: messages before it that it has pulled too, and not worked off.
        is_orderly: it asked for the messages of each queue in their order.
        lock_ms: how long ago it was told that it has the queue's lock; None: it has
            none, or needs none.
        at_ms: when.
        failed: how it failed before and was kept; None: it did not, or nobody knows.
    """

    consumed: Consumed
    share: Share | None
    unique_key: str
    passed: Sequence[Appended]
    is_orderly: bool
    lock_ms: int | None
    at_ms: int
    failed: Failed | None


@dataclass(slots=True)
class MessageSentBack(Moment):
    """A consumer was told that the broker has a message of it once more.

    Attributes:
        given: the message as the consumer had it.
        copies: the puts of the step that hold it, with one more try.
        times: so often its group was told that in the step.
    """

    queue: OneQueue
    given: Record
    copies: Sequence[MessageToPut]
    times: int

    @property
    def unique_key(self) -> str:
        """Of the message."""
        return self.given.properties.get("UNIQ_KEY", "")


@dataclass(slots=True)
class LockAnswered(Moment):
    """A consumer was told whether it has a queue's lock.

    Attributes:
        queue: of which queue, and whose.
        is_granted: whether it has it.
        lock: what was known of the lock before.
        at_ms: when it was told.
    """

    queue: OneQueue
    is_granted: bool
    lock: Lock
    at_ms: int


@dataclass(slots=True)
class LockNeeded(Moment):
    """An orderly consumer asks where a queue begins, or pulls it.

    ``has_lock``: it was told that the queue's lock is its own.
    """

    queue: OneQueue
    has_lock: bool


@dataclass(slots=True)
class MembersTold(Moment):
    """A client was told who the members of its group are.

    Attributes:
        silent_ms: by client for how long the broker has not heard of it.
        left: the clients that have left the group, as the broker knows.
        expired: those that were silent for too long as it looked for such.
    """

    client: str
    group: str
    members: Sequence[str]
    silent_ms: Mapping[str, int]
    left: Sequence[str]
    expired: Sequence[str]


@dataclass(slots=True)
class TopicsNeeded(Moment):
    """A group's topics were needed, since a message was given back.

    Attributes:
        group: whose.
        written: what the broker has written of its topics.
        before: the same, when it was needed last; None: that is not known.
    """

    group: str
    written: TopicsWritten
    before: TopicsWritten | None


@dataclass(slots=True)
class TableTurned(Moment):
    """A step came to its end, in which a table of the broker may have changed."""

    turn: TableTurn


@dataclass(slots=True)
class GroupConfigsSeen(Moment):
    """A group was configured or deleted, or a start found what is written of groups.

    Attributes:
        rows: what is written, by group.
        possible: by group the configurations that were answered, or may count.
    """

    rows: Mapping[str, Any]
    possible: Mapping[str, frozenset[GroupConfig]]


@dataclass(slots=True)
class PullMoved(Moment):
    """A consumer is told to pull a queue elsewhere.

    ``end`` is the queue_offset of the next message that is put there.
    """

    queue: OneQueue
    to: int
    end: int


@dataclass(slots=True)
class QueueGivenBack(Moment):
    """A consumer gives a queue back, in order.

    Attributes:
        queue: which, and whose.
        told: the newest offset that it has told; -1: none.
        worked_until: the end of what it has worked off without a gap; -1: nothing.
    """

    queue: OneQueue
    told: int
    worked_until: int


@dataclass(slots=True)
class QueueBegunAnew(Moment):
    """A consumer whose group has no offset pulls a queue for the first time.

    ``told`` is the offset that it has told of that queue; -1: none.
    """

    queue: OneQueue
    told: int


@dataclass(slots=True)
class NothingToDo(Moment):
    """A consumer was asked to work, and found nothing more to do on a queue of its own.

    Attributes:
        queue: which, and whose.
        waiting: the messages of it that it has pulled and not worked off.
        put_off_ms: how long ago it was asked before that; None: never.
    """

    queue: OneQueue
    waiting: Sequence[str]
    put_off_ms: int | None


@dataclass(slots=True)
class GroupIdle(Moment):
    """The only consumer of a queue has nothing left to do, and has told so.

    ``told`` is the offset that it has told; ``end`` that of the next message.
    """

    key: OffsetKey
    told: int
    end: int


@dataclass(slots=True)
class QueuesShared(Moment):
    """All consumers of a group have shared out its queues, and nothing moves."""

    group: str
    queues: Sequence[QueueKey]
    held: Mapping[str, Sequence[QueueKey]]


@dataclass(slots=True)
class GroupCaughtUp(Moment):
    """The consumers of a group have nothing left to do.

    ``left`` are the messages of a queue that the group is owed and has not worked off.
    """

    key: OffsetKey
    left: Sequence[Appended]
