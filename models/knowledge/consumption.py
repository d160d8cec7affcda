"""What is known of the consumers of groups, and of the messages they have worked off.

A message is named by its unique key, since a queue_offset is given again after the log
has lost its tail. What was given back has the key of before, and several consumers may
have given it: it is named by its tries and its place as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from crashmq.models.appended import Appended
from crashmq.models.files.offsets import OffsetKey
from crashmq.models.history import OneQueue
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel
from crashmq.models.ops import StartConsumer
from crashmq.models.plain_state import Forked

_NO_MESSAGE: frozenset[str] = frozenset()


class Share(NamedTuple):
    """What a consumer has done with a queue since it was given it.

    Attributes:
        asked: where its newest pull began.
        next_pull: where the answer to that says to go on.
        newest: unique keys of the messages of that answer.
        waiting: those of older answers that are not worked off.
        worked: those that it has worked off.
        life: of the broker that has told it last where it is.
    """

    asked: int
    next_pull: int
    newest: frozenset[str] = _NO_MESSAGE
    waiting: frozenset[str] = _NO_MESSAGE
    worked: frozenset[str] = _NO_MESSAGE
    life: int = 0

    def pulls(self, queue_offset: int) -> Share:
        """The share once it pulls on; from where it has asked last, if no answer came.

        An answer that comes after the consumer's time-out is none to it.
        """
        waiting = self.waiting
        if queue_offset == self.next_pull:
            waiting |= self.newest - self.worked
        return self._replace(
            asked=queue_offset,
            next_pull=queue_offset,
            newest=_NO_MESSAGE,
            waiting=waiting,
        )

    def begins_again(self, queue_offset: int) -> Share:
        """The share once its pull was told to begin elsewhere; what waits may go on."""
        pulled = self.waiting | self.newest - self.worked
        return self._replace(
            asked=queue_offset,
            next_pull=queue_offset,
            newest=_NO_MESSAGE,
            waiting=pulled,
        )

    def consumes(self, unique_key: str) -> Share:
        """The share once a message is worked off."""
        gone = frozenset({unique_key})
        return self._replace(waiting=self.waiting - gone, worked=self.worked | gone)


class Taken(NamedTuple):
    """What was known when a consumer asked where to begin with a queue.

    Attributes:
        possible: the offsets of its group.
        begins: where a group without one may begin; None: anywhere.
        life: of the broker.
        was_reset: its group was reset since.
    """

    possible: frozenset[int]
    begins: frozenset[int] | None
    life: int
    was_reset: bool = False


@dataclass(slots=True)
class Consumption(Forked):
    """Of all groups.

    Attributes:
        living: the consumers that run, by client.
        newest: the consumer that joined each group last.
        held: the queues that each of them works on.
        taken: the queues that a consumer was given and has not pulled yet.
        shares: what each does with each queue that it pulls.
        done: by group, topic and queue the messages that were worked off.
        local: the offsets that a broadcasting consumer keeps in its file.
        owed_from: the first queue_offset that a group must see of a queue.
        life: how often the broker has started.
    """

    living: dict[str, StartConsumer] = field(default_factory=dict)
    newest: dict[str, StartConsumer] = field(default_factory=dict)
    held: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    taken: dict[OneQueue, Taken] = field(default_factory=dict)
    shares: dict[OneQueue, Share] = field(default_factory=dict)
    done: dict[OffsetKey, frozenset[str]] = field(default_factory=dict)
    local: dict[OffsetKey, int] = field(default_factory=dict)
    owed_from: dict[OffsetKey, int] = field(default_factory=dict)
    life: int = 0

    def began(self, op: StartConsumer) -> None:
        """Take note that a consumer has started."""
        self.ended(op.client)
        self.living[op.client] = self.newest[self.reader(op)] = op

    def ended(self, client: str) -> None:
        """Take note that a client's consumer is no more."""
        self.living.pop(client, None)
        self.held.pop(client, None)
        self._keep_of(client, ())

    def holds(self, client: str, queues: tuple[tuple[str, int], ...]) -> None:
        """Take note of all the queues that a consumer works on."""
        self.held[client] = queues
        self._keep_of(client, queues)

    def _keep_of(self, client: str, queues: tuple[tuple[str, int], ...]) -> None:
        gone = [
            one
            for one in self.shares
            if one.client == client and (one.topic, one.queue_id) not in queues
        ]
        for one in gone:
            del self.shares[one]

    def begins(self, key: OffsetKey, begin: int, *, is_anew: bool) -> None:
        """Take note of where a group begins; ``is_anew``: perhaps it had no offset."""
        if is_anew or key not in self.owed_from:
            self.owed_from[key] = begin

    def sees_where(self, queue: OneQueue, offset: int) -> None:
        """Take note that a consumer says where it is.

        Who has heard nothing of a whole life of the broker may name an offset that was
        lost and given anew in it: nobody can tell, so what lies below is not owed.
        """
        share = self.shares.get(queue)
        key = self.key_of(queue)
        if share is not None and share.life < self.life - 1 and key in self.owed_from:
            self.owed_from[key] = max(self.owed_from[key], offset)

    def was_reset(self, key: OffsetKey, offset: int) -> None:
        """Take note that a group's offset was set; what lies below is not owed."""
        self.owed_from[key] = offset
        for queue, taken in self.taken.items():
            if self.key_of(queue) == key:
                self.taken[queue] = taken._replace(was_reset=True)

    def worked_off(self, queue: OneQueue, unique_key: str) -> None:
        """Take note that a message was consumed."""
        key = self.key_of(queue)
        self.done[key] = self.done.get(key, _NO_MESSAGE) | {unique_key}
        share = self.shares.get(queue)
        if share is not None:
            self.shares[queue] = share.consumes(unique_key)

    def passed_over(
        self, key: OffsetKey, model: ReferenceModel, end: int
    ) -> Iterator[Appended]:
        """The messages below ``end`` that a group is owed, and has not worked off."""
        begin = self.owed_from.get(key, end)
        done = self.done.get(key, _NO_MESSAGE)
        for appended in model.visible(key[1:]).messages:
            is_done = name_of(appended) in done
            if begin <= appended.queue_offset < end and not is_done:
                yield appended

    def members(self, reader: str) -> dict[str, tuple[QueueKey, ...]]:
        """The consumers of a group that run, and the queues that each works on."""
        return {
            client: self.held.get(client, ())
            for client, op in sorted(self.living.items())
            if self.reader(op) == reader
        }

    def key_of(self, queue: OneQueue) -> OffsetKey:
        """Whose progress on which queue: of a group, or of one that broadcasts."""
        op = self.living.get(queue.client)
        reader = queue.group if op is None else self.reader(op)
        return reader, queue.topic, queue.queue_id

    def is_broadcast(self, client: str) -> bool:
        """Whether a client's consumer keeps its offsets itself."""
        op = self.living.get(client)
        return op is not None and op.broadcasts

    @staticmethod
    def reader(op: StartConsumer) -> str:
        """Whose progress a consumer makes: its group's, or its own."""
        return f"{op.group}@{op.client}" if op.broadcasts else op.group


def named(unique_key: str, reconsume_times: int, queue_offset: int) -> str:
    """The name of a message of a queue; "": it has none."""
    if not unique_key or not reconsume_times:
        return unique_key
    return f"{unique_key}~{reconsume_times}@{queue_offset}"


def name_of(appended: Appended) -> str:
    """The name of a message that was put."""
    message = appended.message
    return named(message.unique_key, message.reconsume_times, appended.queue_offset)


def queues_of(op: StartConsumer, topic_queues: int) -> list[QueueKey]:
    """All queues that the consumers of a group share out, its retry topic's too.

    Source: RebalanceImpl#rebalanceByTopic; each consumer subscribes %RETRY% and its
    group, a topic of one queue.
    """
    topics = [(topic, topic_queues) for topic in op.topics.split(",")]
    if not op.broadcasts:
        topics.append((f"%RETRY%{op.group}", 1))
    return [(topic, queue) for topic, count in topics for queue in range(count)]
