"""What is known of the consumers of groups, and of the messages they have worked off.

A message is named by its unique key, since a queue_offset is given again after the log
has lost its tail (``names``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from crashmq.models.appended import Appended
from crashmq.models.files.deleted import ALL_QUEUES
from crashmq.models.files.offsets import OffsetKey
from crashmq.models.history import OneQueue
from crashmq.models.knowledge.locks import Locks
from crashmq.models.knowledge.names import name_of
from crashmq.models.knowledge.owed import Owed
from crashmq.models.knowledge.progress import NO_OFFSET
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel
from crashmq.models.knowledge.subscriptions import (
    EVERYTHING,
    Asked,
    Subscriptions,
)
from crashmq.models.ops import ConsumerEnd, Resubscribe, StartConsumer
from crashmq.models.plain_state import Forked

NOTHING_TOLD: Final = -1
_NO_MESSAGE: frozenset[str] = frozenset()
_NOWHERE: Final = 1 << 62
_ANY_QUEUE: Final = ("", -1)
_NO_LIFE: Final = -1


class Failed(NamedTuple):
    """A message that a consumer could not work off and has kept.

    Attributes:
        at_ms: when it was given the message.
        tries: so often was it tried before that.
    """

    unique_key: str
    at_ms: int
    tries: int


class Share(NamedTuple):
    """What a consumer has done with a queue since it was given it.

    Attributes:
        asked: where its newest pull began.
        ends: where the answers to that say to go on: one may come after it was given up
            and asked again.
        newest: unique keys of the messages of these answers.
        waiting: those of older answers that are not worked off.
        worked: those that it has worked off.
        life: of the broker that has told it last where it is; -1: its queue may have
            been deleted since.
        wanted: what its newest pull asks for; None: unknown.
        begun: where it began, as far as that is known.
        begins_group: its group had no offset then, and begins there as well.
        failed: what it will try again by itself.
    """

    asked: int
    ends: tuple[int, ...] = ()
    newest: frozenset[str] = _NO_MESSAGE
    waiting: frozenset[str] = _NO_MESSAGE
    worked: frozenset[str] = _NO_MESSAGE
    life: int = 0
    wanted: Asked | None = EVERYTHING
    begun: int = _NOWHERE
    begins_group: bool = False
    failed: tuple[Failed, ...] = ()

    @property
    def was_moved(self) -> bool:
        """Whether a pull of it was answered with another offset; may be dropped."""
        return self.begun == _NOWHERE

    def pulls(self, queue_offset: int) -> Share:
        """The share once it pulls on; from where it has asked last, if no answer came.

        An answer that comes after the consumer's time-out is none to it.
        """
        waiting = self.waiting
        if queue_offset in self.ends:
            waiting |= self.newest - self.worked
        return self._replace(
            asked=queue_offset,
            ends=(),
            newest=_NO_MESSAGE,
            waiting=waiting,
        )

    def begins_again(self, queue_offset: int) -> Share:
        """The share after its pull was sent elsewhere; waiting messages may stay."""
        pulled = self.waiting | self.newest - self.worked
        return self._replace(
            asked=queue_offset,
            ends=(),
            newest=_NO_MESSAGE,
            waiting=pulled,
            begun=_NOWHERE,
            failed=(),
        )

    def consumes(self, unique_key: str) -> Share:
        """The share once a message is worked off."""
        gone = frozenset({unique_key})
        return self._replace(
            waiting=self.waiting - gone,
            worked=self.worked | gone,
            failed=self.without_failed(unique_key),
        )

    def failed_before(self, unique_key: str) -> Failed | None:
        """How a message failed that is kept; None if it did not."""
        return next((one for one in self.failed if one.unique_key == unique_key), None)

    def without_failed(self, unique_key: str) -> tuple[Failed, ...]:
        """What is kept besides a message."""
        return tuple([one for one in self.failed if one.unique_key != unique_key])


class Taken(NamedTuple):
    """What was known when a consumer asked where to begin with a queue.

    Attributes:
        possible: the offsets of its group.
        begins: where a group without one may begin; None: anywhere.
        life: of the broker.
        was_reset: its group was reset since.
        told: the offset that it was answered, or has told since; -1: none.
    """

    possible: frozenset[int]
    begins: frozenset[int] | None
    life: int
    was_reset: bool = False
    told: int = NOTHING_TOLD

    def is_anew(self, begin: int) -> bool:
        """Whether its group has no offset, if that is where the consumer begins."""
        is_without = NO_OFFSET in self.possible and begin not in self.possible
        return is_without and not self.was_reset


@dataclass(slots=True)
class Consumption(Forked):
    """Of all groups.

    Attributes:
        living: the consumers that run, by client.
        newest: the consumer that joined each group last.
        held: the queues that each of them works on.
        taken: the queues that a consumer was given and has not pulled yet.
        shares: what each does with each queue that it pulls.
        leaving: what it has done with queues that it pulls no more, and whose locks it
            has not given back.
        local: the offsets that a broadcasting consumer keeps in its file; one of no
            queue: nobody knows the others.
        owed: what groups are owed, and have worked off.
        told: the newest offset that each has told this life of the broker.
        locks: of the queues of orderly groups.
        life: how often the broker has started.
        subscriptions: of all groups.
    """

    living: dict[str, StartConsumer] = field(default_factory=dict)
    newest: dict[str, StartConsumer] = field(default_factory=dict)
    held: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    taken: dict[OneQueue, Taken] = field(default_factory=dict)
    shares: dict[OneQueue, Share] = field(default_factory=dict)
    leaving: dict[OneQueue, Share] = field(default_factory=dict)
    local: dict[OffsetKey, int] = field(default_factory=dict)
    owed: Owed = field(default_factory=Owed)
    told: dict[OneQueue, int] = field(default_factory=dict)
    locks: Locks = field(default_factory=Locks)
    life: int = 0
    subscriptions: Subscriptions = field(default_factory=Subscriptions)

    def broker_started(self) -> None:
        """Record that a broker has come up, which knows what was persisted."""
        self.life += 1
        self.told = {}
        self.locks.broker_started()
        self.subscriptions.broker_began()

    def may_be_deleted(self, topic: str, queue_id: int) -> None:
        """Record that queues may begin again at 0 unknown to their consumers."""
        for queue in {**self.shares, **self.leaving, **self.taken, **self.told}:
            if queue.topic != topic or queue_id not in (ALL_QUEUES, queue.queue_id):
                continue
            self.told.pop(queue, None)
            for shares in (self.shares, self.leaving):
                if queue in shares:
                    shares[queue] = shares[queue]._replace(life=_NO_LIFE)
            if queue in self.taken:
                self.taken[queue] = self.taken[queue]._replace(life=_NO_LIFE)

    def clock_was_set_back(self) -> None:
        """Record that waits may be over, and that new subscriptions may look older."""
        self.subscriptions.clock_was_set_back()
        for queue, share in self.shares.items():
            self.shares[queue] = share._replace(failed=())

    def began(self, op: StartConsumer) -> None:
        """Record that a consumer has started."""
        self._gone(op.client)
        self.subscriptions.began(op)
        self.living[op.client] = self.newest[self.reader(op)] = op

    def resubscribed(self, op: Resubscribe, *, is_done: bool) -> None:
        """Record that a consumer subscribes something else, or is done with it."""
        before = self.living.get(op.client)
        if before is None:
            return
        now = replace(
            before,
            topics=op.topics,
            expression=op.expression,
            expression_type=op.expression_type,
        )
        self.living[op.client] = now
        if self.newest.get(self.reader(now)) == before:
            self.newest[self.reader(now)] = now
        self.subscriptions.changes(now, is_done=is_done)

    def ended(self, client: str, how: ConsumerEnd = "stop") -> None:
        """Record that a client's consumer no longer exists."""
        self.subscriptions.ended(client, is_gone=how == "vanish")
        self._gone(client)

    def _gone(self, client: str) -> None:
        self.living.pop(client, None)
        self.held.pop(client, None)
        self._keep_of(client, ())
        for queue in [one for one in self.leaving if one.client == client]:
            del self.leaving[queue]

    def holds(self, client: str, queues: tuple[tuple[str, int], ...]) -> None:
        """Record all the queues that a consumer works on."""
        self.held[client] = queues
        self._keep_of(client, queues)

    def _keep_of(self, client: str, queues: tuple[tuple[str, int], ...]) -> None:
        gone = [
            one
            for one in self.shares
            if one.client == client and (one.topic, one.queue_id) not in queues
        ]
        for one in gone:
            share = self.shares.pop(one)
            if self.is_locking(client):
                self.leaving[one] = share
        self.locks.forgotten(client, queues)

    def reads_file(self, queue: OneQueue, offset: int) -> int:
        """The offset that a broadcasting consumer must have in its file; -1: none.

        Args:
            queue: whose offset it reads.
            offset: what it has found; that counts where nobody else knows.
        """
        key = self.key_of(queue)
        is_unknown = (key[0], *_ANY_QUEUE) in self.local
        return self.local.get(key, offset if is_unknown else NO_OFFSET)

    def may_have_written(self, client: str) -> None:
        """Record that a broadcasting consumer may have written its file unnoticed."""
        op = self.living.get(client)
        if op is None or not op.broadcasts:
            return
        reader = self.reader(op)
        for key in [key for key in self.local if key[0] == reader]:
            del self.local[key]
        self.local[(reader, *_ANY_QUEUE)] = NO_OFFSET

    def was_reset(self, key: OffsetKey, offset: int) -> None:
        """Record that a group's offset was set; earlier messages need no consumer."""
        self.owed.since[key] = offset
        for queue, taken in self.taken.items():
            if self.key_of(queue) == key:
                self.taken[queue] = taken._replace(was_reset=True)
        for shares in (self.shares, self.leaving):
            for queue, share in shares.items():
                if self.key_of(queue) == key:
                    shares[queue] = share._replace(begins_group=False)

    def tells(self, queue: OneQueue, offset: int) -> None:
        """Record that a consumer has committed an offset."""
        self.told[queue] = offset
        taken, share = self.taken.get(queue), self._share_of(queue)
        if taken is not None:
            self.taken[queue] = taken._replace(told=offset)
        if share is not None and share.begins_group and not share.was_moved:
            self.owed.began_again_at(self.key_of(queue), share.begun)

    def worked_until(self, queue: OneQueue, model: ReferenceModel) -> int:
        """The end of what a consumer has worked off of a queue without a gap; or -1.

        A message of which the queue has two copies, as of one that was delivered twice
        or given back by two, counts as a gap: nobody knows which one it was.
        """
        share, until = self._share_of(queue), NOTHING_TOLD
        if share is None or not share.worked:
            return until
        due, there = share.begun, model.visible((queue.topic, queue.queue_id)).messages
        copies = Counter([name_of(appended) for appended in there])
        for appended in there:
            if appended.queue_offset < due:
                continue
            name = name_of(appended)
            is_worked = name in share.worked and copies[name] == 1
            if appended.queue_offset != due or not is_worked:
                break
            due = until = due + 1
        return until

    def _share_of(self, queue: OneQueue) -> Share | None:
        return self.shares.get(queue) or self.leaving.get(queue)

    def consumed_one(self, queue: OneQueue, unique_key: str) -> None:
        """Record that a message was consumed."""
        self.owed.consumed_one(self.key_of(queue), unique_key)
        for shares in (self.shares, self.leaving):
            if queue in shares:
                shares[queue] = shares[queue].consumes(unique_key)

    def passed_over(
        self, key: OffsetKey, model: ReferenceModel, end: int
    ) -> Iterator[Appended]:
        """The messages below ``end`` that a group must consume and has not."""
        return self.owed.passed_over(key, model, end)

    def members(self, reader: str) -> dict[str, tuple[QueueKey, ...]]:
        """The consumers of a group that run, and the queues that each works on."""
        return {
            client: self.held.get(client, ())
            for client, op in sorted(self.living.items())
            if self.reader(op) == reader
        }

    def held_by(self, key: OffsetKey) -> list[str]:
        """The clients of a group that work on a queue."""
        members = self.members(key[0])
        return [client for client, held in members.items() if key[1:] in held]

    def key_of(self, queue: OneQueue) -> OffsetKey:
        """The key of progress on a queue: a group's, or a broadcasting consumer's."""
        op = self.living.get(queue.client)
        reader = queue.group if op is None else self.reader(op)
        return reader, queue.topic, queue.queue_id

    def is_broadcast(self, client: str) -> bool:
        """Whether a client's consumer keeps its offsets itself."""
        op = self.living.get(client)
        return op is not None and op.broadcasts

    def is_locking(self, client: str) -> bool:
        """Whether a client's consumer works only on queues that it has locked."""
        op = self.living.get(client)
        return op is not None and op.is_orderly and not op.broadcasts

    @staticmethod
    def reader(op: StartConsumer) -> str:
        """The owner of a consumer's progress: its group, or itself if it broadcasts."""
        return f"{op.group}@{op.client}" if op.broadcasts else op.group


def queues_of(op: StartConsumer, topic_queues: int) -> list[QueueKey]:
    """All queues that the consumers of a group share out, its retry topic's too.

    Source: RebalanceImpl#rebalanceByTopic; each consumer subscribes %RETRY% and its
    group, a topic of one queue.
    """
    topics = [(topic, topic_queues) for topic in op.topics.split(",")]
    if not op.broadcasts:
        topics.append((f"%RETRY%{op.group}", 1))
    return [(topic, queue) for topic, count in topics for queue in range(count)]
