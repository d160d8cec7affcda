"""What is known of the consumers of groups, and of the messages they have consumed.

A message is identified by its unique key (``names``), since a queue_offset is assigned
again after the log has lost its tail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from crashmq.models.appended import Appended
from crashmq.models.files.deleted import ALL_QUEUES
from crashmq.models.files.offsets import OffsetKey
from crashmq.models.history import OneQueue
from crashmq.models.knowledge.locks import Locks
from crashmq.models.knowledge.names import name_of
from crashmq.models.knowledge.owed import Owed
from crashmq.models.knowledge.progress import NO_OFFSET, Recovered
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel
from crashmq.models.knowledge.subscriptions import (
    EVERYTHING,
    Asked,
    Subscriptions,
)
from crashmq.models.limits import PUT_OFF_MS
from crashmq.models.ops import ConsumerEnd, Resubscribe, StartConsumer
from crashmq.models.plain_state import Forked

NOTHING_TOLD: Final = -1
_NO_MESSAGE: frozenset[str] = frozenset()
_NOWHERE: Final = 1 << 62
_ANY_QUEUE: Final = ("", -1)
_NO_LIFE: Final = -1


class Failed(NamedTuple):
    """A message whose consumption failed, and that the consumer will try again.

    Attributes:
        unique_key: its name; a message that was delivered twice has two copies.
        queue_offset: of the copy.
        at_ms: when the listener got it last, by the store's clock.
        tries: how many attempts there were before that one.
        waits_ms: how long the consumer waits before the next one, at least.
        most_ms: at most, once it is asked again.
    """

    unique_key: str
    queue_offset: int
    at_ms: int
    tries: int
    waits_ms: int
    most_ms: int = PUT_OFF_MS


class Begun(NamedTuple):
    """A message that a listener was given, and that counts as not finished.

    Attributes:
        queue_offset: of the message.
        least_ms: when the listener was given it, at the earliest.
        most_ms: at the latest.
    """

    queue_offset: int
    least_ms: int
    most_ms: int


class AnsweredPull(NamedTuple):
    """An answer to a pull: its next_begin_offset, and its messages' unique keys."""

    end: int
    messages: frozenset[str]


class Share(NamedTuple):
    """What a consumer has done with one queue since the queue was assigned to it.

    Attributes:
        asked: the offset of its newest pull.
        answers: to that pull; more than one if the consumer had given the pull up,
            pulled again, and the first answer came after all.
        waiting: unique keys of messages of older answers, not consumed yet.
        worked: unique keys of the messages that it has consumed.
        life: the run of the broker in which the consumer committed last; -1: the queue
            may have been deleted since.
        wanted: the subscription of its newest pull; None: unknown.
        begun: the offset at which it began, or a huge number while unknown.
        begins_group: its group had no offset then, so the group begins there too.
        was_reset: the group's offset was reset since, and the consumer has not heard of
            it.
        failed: messages that failed and that the consumer will try again itself.
        uncommitted: unique keys of the messages that its listener has consumed and not
            committed; they count as consumed once it commits.
        given: the messages that the listener was given and that are not finished.
        given_up: unique keys of messages that it may have sent back since they had
            expired; no completion tells their offsets, and it may be given them again.
        sent_back: unique keys of messages that it has certainly sent back, and done
            with.
        cut_short: unique keys of messages that it was about to be done with as its
            broker crashed, that it has perhaps committed, or perhaps not taken; no
            offset tells them, and they may come again.
        untold: unique keys of messages that it has sent back amid a batch in order; no
            offset tells them before the rest of the batch is consumed.
    """

    asked: int
    answers: tuple[AnsweredPull, ...] = ()
    waiting: frozenset[str] = _NO_MESSAGE
    worked: frozenset[str] = _NO_MESSAGE
    life: int = 0
    wanted: Asked | None = EVERYTHING
    begun: int = _NOWHERE
    begins_group: bool = False
    was_reset: bool = False
    failed: tuple[Failed, ...] = ()
    uncommitted: frozenset[str] = _NO_MESSAGE
    given: tuple[Begun, ...] = ()
    given_up: frozenset[str] = _NO_MESSAGE
    sent_back: frozenset[str] = _NO_MESSAGE
    cut_short: frozenset[str] = _NO_MESSAGE
    untold: frozenset[str] = _NO_MESSAGE

    @property
    def may_come_again(self) -> frozenset[str]:
        """Unique keys of messages that it may be given again though they count."""
        return self.given_up | self.cut_short

    @property
    def was_moved(self) -> bool:
        """Whether a pull got PULL_OFFSET_MOVED; the client may drop such a queue."""
        return self.begun == _NOWHERE

    @property
    def reach(self) -> int:
        """How far apart its messages can lie at most; below 0 if nobody knows."""
        return max(self.asked, *self.ends, 0) - self.begun

    @property
    def ends(self) -> tuple[int, ...]:
        """The next_begin_offsets of the answers to the newest pull."""
        return tuple([answer.end for answer in self.answers])

    @property
    def newest(self) -> frozenset[str]:
        """Unique keys of the messages in these answers."""
        return _NO_MESSAGE.union(*[answer.messages for answer in self.answers])

    def pulls(self, queue_offset: int) -> Share:
        """The state after the next pull, which begins at ``queue_offset``.

        That is the offset of the pull before if no answer came: an answer after the
        consumer's time-out does not count, nor one to what it no longer subscribes. So
        it has the messages of those answers alone that end where it continues.
        """
        taken = [one.messages for one in self.answers if one.end == queue_offset]
        waiting = self.waiting | _NO_MESSAGE.union(*taken) - self.worked
        return self._replace(asked=queue_offset, answers=(), waiting=waiting)

    def begins_again(self, queue_offset: int) -> Share:
        """The state after PULL_OFFSET_MOVED; messages not consumed yet may stay."""
        pulled = self.waiting | self.newest - self.worked
        return self._replace(
            asked=queue_offset,
            answers=(),
            waiting=pulled,
            begun=_NOWHERE,
            was_reset=False,
            failed=(),
            given=(),
        )

    def is_given(self, one: Begun) -> Share:
        """The state after the listener was given a message."""
        return self._replace(given=(*self.finishes(one.queue_offset).given, one))

    def finishes(self, queue_offset: int) -> Share:
        """The state after a message was finished, so that it cannot expire."""
        its = [one for one in self.given if one.queue_offset != queue_offset]
        return self._replace(given=tuple(its))

    def when_given(self, queue_offset: int) -> Begun | None:
        """When the listener was given a message; None: never, or it is finished."""
        its = [one for one in self.given if one.queue_offset == queue_offset]
        return its[0] if its else None

    def consumes(self, unique_key: str) -> Share:
        """The state after a message was consumed."""
        gone = frozenset({unique_key})
        return self._replace(
            waiting=self.waiting - gone,
            worked=self.worked | gone,
            failed=self.without_failed(unique_key),
        )

    def takes(self, unique_key: str) -> Share:
        """The state after a message was consumed without a commit."""
        return self._replace(
            uncommitted=self.uncommitted | {unique_key},
            failed=self.without_failed(unique_key),
        )

    def may_take(self, names: frozenset[str]) -> Share:
        """The state after an answer that the consumer takes, or does not."""
        return self._replace(
            worked=self.worked | names, cut_short=self.cut_short | names
        )

    def rolls_back(self, unique_key: str, queue_offset: int) -> Share:
        """The state after a listener has taken back all that it had not committed."""
        again = self.without_failed(unique_key, queue_offset)
        return self._replace(uncommitted=_NO_MESSAGE, failed=again)

    def failed_before(self, unique_key: str, queue_offset: int) -> Failed | None:
        """The earlier failed attempt at this copy; None if there was none."""
        copy = (unique_key, queue_offset)
        return next((one for one in self.failed if one[:2] == copy), None)

    def without_failed(
        self, unique_key: str, queue_offset: int | None = None
    ) -> tuple[Failed, ...]:
        """The failed messages except one, or except that copy of it."""
        return tuple(
            [
                one
                for one in self.failed
                if one.unique_key != unique_key
                or queue_offset not in (None, one.queue_offset)
            ]
        )


class Taken(NamedTuple):
    """What was known when a consumer asked at which offset to begin in a queue.

    Attributes:
        possible: the offsets that its group may have had; -1: none.
        begins: where a group without an offset may begin; None: anywhere.
        life: the run of the broker then.
        was_reset: the group's offset was reset since.
        told: the offset that was answered, or that the consumer has committed since;
            -1: none.
        is_second: another consumer of its group has committed an offset since.
    """

    possible: frozenset[int]
    begins: frozenset[int] | None
    life: int
    was_reset: bool = False
    told: int = NOTHING_TOLD
    is_second: bool = False

    def is_anew(self, begin: int) -> bool:
        """Whether a begin at ``begin`` shows that the group had no offset."""
        return self.may_be_anew and begin not in self.possible

    @property
    def may_be_anew(self) -> bool:
        """Whether the group may have had no offset."""
        return NO_OFFSET in self.possible and not self.was_reset


@dataclass(slots=True)
class Consumption(Forked):
    """What the consumers of all groups have been assigned, pulled and consumed.

    Attributes:
        living: the consumers that run, by client.
        newest: the consumer that joined each group last.
        held: the queues assigned to each client.
        taken: queues assigned to a consumer that it has not pulled yet.
        shares: what each consumer has done with each queue that it pulls.
        leaving: the same for queues that it pulls no more and whose locks it still has.
        local: the offsets in the files of broadcasting consumers; an entry with an
            empty topic: the client's other offsets are unknown.
        owed: the messages that groups must consume, and have consumed.
        told: the newest offset that each has committed in this run of the broker.
        locks: the queue locks of orderly consumers.
        life: how often the broker has started.
        subscriptions: what the members of all groups subscribe.
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

    def broker_started(self, recovered: Recovered) -> None:
        """Record that a broker has started, and knows only what was persisted."""
        self.life += 1
        self.owed.broker_started(recovered)
        self.told = {}
        self.locks.broker_started()
        self.subscriptions.broker_began()

    def may_be_deleted(self, topic: str, queue_id: int) -> None:
        """Record that queues may have been deleted without their consumers' knowledge.

        Their next messages then get offsets from 0 on. ``queue_id`` may stand for all
        queues of the topic.
        """
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
        """Record that retry delays may be over, and new subscriptions look older."""
        self.subscriptions.clock_was_set_back()
        self.locks.clock_was_set_back()
        for queue, share in self.shares.items():
            self.shares[queue] = share._replace(failed=())

    def began(self, op: StartConsumer) -> None:
        """Record that a consumer has started."""
        self._gone(op.client)
        self.subscriptions.began(op)
        self.living[op.client] = self.newest[self.reader(op)] = op

    def resubscribed(self, op: Resubscribe, *, is_done: bool) -> None:
        """Record a change of subscriptions: its begin, or, if ``is_done``, its end."""
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
        """Record that a client's consumer has ended in the way ``how``."""
        self.subscriptions.ended(client, is_gone=how == "vanish")
        self._gone(client)

    def _gone(self, client: str) -> None:
        self.living.pop(client, None)
        self.held.pop(client, None)
        self._keep_of(client, ())
        for queue in [one for one in self.leaving if one.client == client]:
            del self.leaving[queue]

    def holds(
        self,
        client: str,
        queues: tuple[tuple[str, int], ...],
        locked: tuple[tuple[str, int], ...] = (),
    ) -> None:
        """Record all queues that are now assigned to a consumer.

        It may be about to take those of ``locked``, so their locks stay known.
        """
        self.held[client] = queues
        self._keep_of(client, queues, locked)

    def _keep_of(
        self,
        client: str,
        queues: tuple[tuple[str, int], ...],
        locked: tuple[tuple[str, int], ...] = (),
    ) -> None:
        gone = [
            one
            for one in self.shares
            if one.client == client and (one.topic, one.queue_id) not in queues
        ]
        for one in gone:
            share = self.shares.pop(one)
            if self.is_locking(client):
                self.leaving[one] = share
        self.locks.forgotten(client, (*queues, *locked))

    def reads_file(self, queue: OneQueue, offset: int) -> int:
        """The offset that a broadcasting consumer must have in its file; -1: none.

        Args:
            queue: the queue and the consumer.
            offset: the offset that it has read; returned if the file's content is
                unknown.
        """
        key = self.key_of(queue)
        is_unknown = (key[0], *_ANY_QUEUE) in self.local
        return self.local.get(key, offset if is_unknown else NO_OFFSET)

    def may_have_written(self, client: str) -> None:
        """Record that a broadcasting consumer may have rewritten its file unseen."""
        op = self.living.get(client)
        if op is None or not op.broadcasts:
            return
        reader = self.reader(op)
        for key in [key for key in self.local if key[0] == reader]:
            del self.local[key]
        self.local[(reader, *_ANY_QUEUE)] = NO_OFFSET

    def was_reset(self, key: OffsetKey, offset: int) -> None:
        """Record that a group's offset was set: it need not consume what lies below."""
        self.owed.was_reset(key, offset)
        for queue, taken in self.taken.items():
            if self.key_of(queue) == key:
                self.taken[queue] = taken._replace(was_reset=True)
        for queue in {**self.shares, **self.leaving}:
            if self.key_of(queue) == key:
                self._change_shares(
                    queue, lambda its: its._replace(begins_group=False, was_reset=True)
                )

    def missed_resets(self, keys: Container[OffsetKey]) -> None:
        """Record that a broker has ended with resets told that nobody has followed.

        The next broker knows nothing of them, and takes what their consumers commit.
        """
        for queue in {**self.shares, **self.leaving}:
            if self.key_of(queue) in keys:
                self._change_shares(queue, lambda its: its._replace(was_reset=True))

    def has_missed_a_reset(self, queue: OneQueue) -> bool:
        """Whether a consumer's group was reset since it has heard of its offset."""
        known = [self.taken.get(queue), self.shares.get(queue), self.leaving.get(queue)]
        return any(one is not None and one.was_reset for one in known)

    def has_another(self, queue: OneQueue) -> bool:
        """Whether another consumer of the group may have the queue, too."""
        key = self.key_of(queue)
        return any(
            one.client != queue.client and self.key_of(one) == key
            for one in (*self.shares, *self.leaving, *self.taken)
        )

    def told_to_begin(self, queue: OneQueue, offset: int) -> None:
        """Record that a broker tells a consumer to begin its queue at an offset.

        The consumer drops what it has of the queue, and need not have consumed it; its
        group need not consume what lies below.
        """
        key = self.key_of(queue)
        if key in self.owed.since:  # else it owes nothing before it has begun
            self.owed.since[key] = max(offset, self.owed.since[key])
        for shares in (self.shares, self.leaving):
            shares.pop(queue, None)
        self.taken.pop(queue, None)
        self.told.pop(queue, None)

    def committed(self, queue: OneQueue, offset: int) -> None:
        """Record that a consumer has committed an offset."""
        self.told[queue] = offset
        taken, share = self.taken.get(queue), self._share_of(queue)
        key = self.key_of(queue)
        for one, other in self.taken.items():
            if one != queue and self.key_of(one) == key:
                self.taken[one] = other._replace(is_second=True)
        if taken is not None:
            self.taken[queue] = taken._replace(told=offset)
        if share is not None and share.begins_group and not share.was_moved:
            self.owed.began_again_at(key, share.begun)

    def worked_until(self, queue: OneQueue, model: ReferenceModel) -> int:
        """The end of what a consumer has consumed of a queue without a gap; or -1.

        A message of which the queue has two copies counts as a gap, since it is unknown
        which copy was consumed: one delivered twice, or sent back by two consumers.
        """
        share, until = self._share_of(queue), NOTHING_TOLD
        if share is None or not share.worked:
            return until
        told = share.worked - share.may_come_again - share.untold
        due, there = share.begun, model.visible((queue.topic, queue.queue_id)).messages
        copies = Counter([name_of(appended) for appended in there])
        for appended in there:
            if appended.queue_offset < due:
                continue
            name = name_of(appended)
            is_worked = name in told and copies[name] == 1
            if appended.queue_offset != due or not is_worked:
                break
            due = until = due + 1
        return until

    def places_of(
        self, queue: OneQueue, names: frozenset[str], model: ReferenceModel
    ) -> list[int]:
        """The queue_offsets of those of the named messages that the queue has once."""
        there = model.visible((queue.topic, queue.queue_id)).messages
        places: dict[str, list[int]] = {}
        for appended in there:
            if (name := name_of(appended)) in names:
                places.setdefault(name, []).append(appended.queue_offset)
        return [its[0] for its in places.values() if len(its) == 1]

    def _share_of(self, queue: OneQueue) -> Share | None:
        return self.shares.get(queue) or self.leaving.get(queue)

    def is_of_before(self, queue: OneQueue, unique_key: str, queue_offset: int) -> bool:
        """Whether a message was given to a listener before the queue was begun anew.

        Its consumer has lost the queue since, and has begun it again with all that it
        pulls, this message too: what becomes of the one is not about the other. A queue
        that is locked is not lost while a listener has its messages. A listener in
        order fails for the rest of its batch, too, which it was not given.
        """
        share, op = self._share_of(queue), self.living.get(queue.client)
        if share is None or share.was_moved or unique_key in share.may_come_again:
            return False
        if self.is_locking(queue.client):
            return False
        is_amid_a_batch = op is not None and op.is_orderly and bool(share.given)
        return share.when_given(queue_offset) is None and not is_amid_a_batch

    def was_sent_back(self, queue: OneQueue, unique_key: str) -> None:
        """Record that a message was sent back, perhaps amid a batch in order."""
        op = self.living.get(queue.client)
        if op is not None and op.is_orderly:
            one = frozenset({unique_key})
            self._change_shares(
                queue, lambda its: its._replace(untold=its.untold | one)
            )

    def done_uncommitted(self, queue: OneQueue, unique_key: str) -> None:
        """Record that a group has done with a message that is not committed.

        Its consumer commits it with what it has consumed before, or gets it again with
        that after a rollback.
        """
        self.owed.consumed_one(self.key_of(queue), unique_key)
        self.was_cut_short(queue, unique_key)
        self._change_shares(queue, lambda its: its.takes(unique_key))

    def consumed_before(self, queue: OneQueue, unique_key: str) -> None:
        """Record that a message was consumed that was given before, as above."""
        self.owed.consumed_one(self.key_of(queue), unique_key)

    def consumed_one(self, queue: OneQueue, unique_key: str) -> None:
        """Record that a message was consumed."""
        self.owed.consumed_one(self.key_of(queue), unique_key)
        self._change_shares(queue, lambda its: its.consumes(unique_key))

    def was_cut_short(self, queue: OneQueue, unique_key: str) -> None:
        """Record that a crash may have cut off the end of what a listener did."""
        one = frozenset({unique_key})
        self._change_shares(
            queue, lambda its: its._replace(cut_short=its.cut_short | one)
        )

    def _change_shares(self, queue: OneQueue, change: Callable[[Share], Share]) -> None:
        for shares in (self.shares, self.leaving):
            if queue in shares:
                shares[queue] = change(shares[queue])

    def committed_all(self, queue: OneQueue, unique_key: str) -> None:
        """Record that a message was consumed, and that its consumer commits with it."""
        for one in (*self._no_more_uncommitted(queue), unique_key):
            self.consumed_one(queue, one)

    def may_have_committed_all(self, queue: OneQueue) -> None:
        """Record that a consumer may have committed what it had not, or not."""
        for one in self._no_more_uncommitted(queue):
            self.was_cut_short(queue, one)
            self.consumed_one(queue, one)

    def _no_more_uncommitted(self, queue: OneQueue) -> list[str]:
        """Forget what a consumer has not committed; returns its unique keys."""
        share = self._share_of(queue)
        if share is None or not share.uncommitted:
            return []
        self._change_shares(queue, lambda its: its._replace(uncommitted=_NO_MESSAGE))
        return sorted(share.uncommitted)

    def passed_over(
        self, key: OffsetKey, model: ReferenceModel, end: int
    ) -> Iterator[Appended]:
        """The messages below ``end`` that a group must consume and has not."""
        return self.owed.passed_over(key, model, end)

    def members(self, reader: str) -> dict[str, tuple[QueueKey, ...]]:
        """The running consumers of a group, each with the queues assigned to it."""
        return {
            client: self.held.get(client, ())
            for client, op in sorted(self.living.items())
            if self.reader(op) == reader
        }

    def held_by(self, key: OffsetKey) -> list[str]:
        """The clients of a group to which a queue is assigned."""
        members = self.members(key[0])
        return [client for client, held in members.items() if key[1:] in held]

    def key_of(self, queue: OneQueue) -> OffsetKey:
        """The group (or broadcasting consumer), topic and queue of an offset."""
        op = self.living.get(queue.client)
        reader = queue.group if op is None else self.reader(op)
        return reader, queue.topic, queue.queue_id

    def owner_of(self, queue: OneQueue) -> StartConsumer | None:
        """The consumer that works on a queue, or did so until it ended.

        One of which that is unknown is as the others of its group.
        """
        joined = self.subscriptions.joined
        op = self.living.get(queue.client) or joined.get(queue.client)
        is_its = op is not None and op.group == queue.group
        return op if is_its else self.newest.get(queue.group)

    def is_broadcast(self, client: str) -> bool:
        """Whether a client's consumer broadcasts, and so keeps its own offsets."""
        op = self.living.get(client)
        return op is not None and op.broadcasts

    def broadcasts(self, group: str) -> bool | None:
        """Whether the consumers of a group broadcast; None: some do, or none lives."""
        living = {op.broadcasts for op in self.living.values() if op.group == group}
        # The newest heartbeat decides, be it of one that has ended since.
        kinds = self._kinds_of(group)
        return kinds.pop() if living and len(kinds) == 1 else None

    def _kinds_of(self, group: str) -> set[bool]:
        return {op.broadcasts for op in self.newest.values() if op.group == group}

    def counts_others(self, op: StartConsumer) -> bool:
        """Whether a group shares its queues with members that broadcast.

        A broker lists those too, so that queues are left to them.
        """
        return not op.broadcasts and len(self._kinds_of(op.group)) > 1

    def is_locking(self, client: str) -> bool:
        """Whether a client's consumer is orderly: it pulls only locked queues."""
        op = self.living.get(client)
        return op is not None and op.is_orderly and not op.broadcasts

    @staticmethod
    def reader(op: StartConsumer) -> str:
        """The owner of a consumer's offsets: its group, or itself if it broadcasts."""
        return f"{op.group}@{op.client}" if op.broadcasts else op.group
