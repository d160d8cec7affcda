"""Stories of living consumers: every step is judged, and all is consumed at the end."""

from __future__ import annotations

from crashmq.harness.episodes.episode import Episode
from crashmq.models.history import Consumed, Happening, ListenerReturned
from crashmq.models.observations import Interleaved, OffsetKept
from crashmq.models.ops import (
    AdvanceClock,
    Op,
    PutBatch,
    QueryOffset,
    RunService,
    StartConsumer,
    TurnConsumer,
)
from crashmq.models.program import Setup

ONE_QUEUE = Setup(keeps_progress=True, topic_queues=1)
REPUT = RunService("reput")
C0 = StartConsumer("c0", "g", "T0")


def put(count: int) -> tuple[Op, ...]:
    return PutBatch("T0", 0, (1,) * count), REPUT


def begins(consumer: StartConsumer) -> tuple[Op, ...]:
    client = consumer.client
    rebalances = TurnConsumer(client, "rebalance")
    return consumer, rebalances, AdvanceClock(500), TurnConsumer(client, "pull", 2)


class Story:
    """A broker, its clients, and what has happened to them.

    Attributes:
        events: of all ops.
        consumed: the client and queue_offset of each message consumed.
        together: what was seen of the newest op, if it ran several.
    """

    def __init__(self, *ops: Op, setup: Setup = ONE_QUEUE) -> None:
        self.episode = Episode("", setup)
        self.episode.begin()
        self.consumed: list[tuple[str, int]] = []
        self.events: list[Happening] = []
        self.together: list[Interleaved] = []
        self.does(*ops)

    def does(self, *ops: Op) -> None:
        for op in ops:
            number = len(self.episode.ops)
            self.episode.ops.append(op)
            done = self.episode.interpreter.run(op, number)
            self.episode.judge.judge(done, self.episode.subject.positions())
            events = [entry.event for entry in done.entries]
            self.events += events
            self.together = [one for one in (done.seen,) if type(one) is Interleaved]
            self.consumed += [
                (one.queue.client, one.queue_offset)
                for one in events
                if isinstance(one, Consumed)
            ]

    def told(self, kind: type[Happening]) -> list[Happening]:
        return [one for one in self.events if isinstance(one, kind)]

    def given(self, kind: type[Consumed | ListenerReturned] = Consumed) -> list[int]:
        return [one.queue_offset for one in self.events if isinstance(one, kind)]

    def asked(self, law: str) -> int:
        return self.episode.judge.checks.get(law, 0)

    def kept(self, group: str = "g") -> int:
        seen = self.episode.step(QueryOffset(group, "T0", 0))
        assert isinstance(seen, OffsetKept)
        return seen.offset

    def ends_well(self) -> None:
        self.episode.finish()
        assert min(map(self.asked, ("CON-2", "CON-3", "CON-7"))) > 0
