"""Stories of living consumers, told as RocketMQ's and ended as they should end here.

Every step is judged, and each story goes on to an end at which all is consumed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from crashmq.harness.episodes.episode import Episode
from crashmq.models.history import Consumed
from crashmq.models.observations import Done, OffsetKept, Skipped
from crashmq.models.ops import (
    AdvanceClock,
    Consume,
    ConsumerEnd,
    Crash,
    During,
    EndConsumer,
    Op,
    PutBatch,
    QueryOffset,
    ResetOffset,
    Restart,
    RunService,
    StartConsumer,
    Survivors,
    TurnConsumer,
)
from crashmq.models.program import Setup

ONE_QUEUE = Setup(keeps_progress=True, topic_queues=1)
REPUT = RunService("reput")
PERSIST = RunService("persist_consumer_offset")
LOSES_ALL = Crash("power_loss", Survivors("none"))
C0 = StartConsumer("c0", "g", "T0")
TELLING_ALL = StartConsumer("c0", "b", "T0", broadcasts=True)


def put(count: int) -> tuple[Op, ...]:
    return PutBatch("T0", 0, (1,) * count), REPUT


def begins(consumer: StartConsumer) -> tuple[Op, ...]:
    client = consumer.client
    rebalances = TurnConsumer(client, "rebalance")
    return consumer, rebalances, AdvanceClock(500), TurnConsumer(client, "pull", 2)


def down_by(crash: Crash) -> tuple[Op, ...]:
    """The broker crashes and starts again, and c0 tells that it is there."""
    asks = QueryOffset("nobody", "T0", 0)
    return During(asks, 1, crash), Restart(), TurnConsumer("c0", "heartbeat")


class Story:
    """A broker, its clients, and what these have consumed: client and queue_offset."""

    def __init__(self, *ops: Op) -> None:
        self.episode = Episode("", ONE_QUEUE)
        self.episode.begin()
        self.consumed: list[tuple[str, int]] = []
        self.does(*ops)

    def does(self, *ops: Op) -> None:
        for op in ops:
            number = len(self.episode.ops)
            self.episode.ops.append(op)
            done = self.episode.interpreter.run(op, number)
            self.episode.judge.judge(done, self.episode.subject.positions())
            self.consumed += [
                (entry.event.queue.client, entry.event.queue_offset)
                for entry in done.entries
                if isinstance(entry.event, Consumed)
            ]

    def kept(self, group: str = "g") -> int:
        seen = self.episode.step(QueryOffset(group, "T0", 0))
        assert isinstance(seen, OffsetKept)
        return seen.offset

    def ends_well(self) -> None:
        self.episode.finish()
        checks = self.episode.judge.checks
        assert min(checks["CON-2"], checks["CON-3"], checks["CON-7"]) > 0


def test_e1_what_is_consumed_out_of_order_comes_again_to_the_next_client() -> None:
    story = Story(*put(4), *begins(C0))
    kept = []
    for nth in (2, 2, 0):  # the messages 2, 3 and 0
        story.does(Consume("c0", nth), TurnConsumer("c0", "persist"))
        kept.append(story.kept())
    story.does(EndConsumer("c0", "kill"), *begins(StartConsumer("c1", "g", "T0")))
    story.does(Consume("c1", times=8))

    assert kept == [0, 0, 1]
    assert story.consumed == [
        *(("c0", 2), ("c0", 3), ("c0", 0)),
        *(("c1", 1), ("c1", 2), ("c1", 3)),
    ]
    story.ends_well()


def test_e3_who_starts_again_with_its_broker_goes_on_at_what_was_persisted() -> None:
    story = Story(*put(6), *begins(C0), Consume("c0", times=3))
    story.does(TurnConsumer("c0", "persist"), PERSIST, Consume("c0", times=2))
    story.does(TurnConsumer("c0", "persist"), EndConsumer("c0", "kill"))
    story.does(*down_by(Crash("process_kill")), *begins(C0), Consume("c0", times=8))

    assert [offset for _, offset in story.consumed] == [0, 1, 2, 3, 4, 3, 4, 5]
    story.ends_well()


@pytest.mark.parametrize("new", [2, 12])
@pytest.mark.parametrize("persists", [False, True])
def test_e4_who_outlives_its_broker_consumes_what_took_the_place_of_lost_messages(
    new: int, persists: bool
) -> None:
    told = (TurnConsumer("c0", "persist"), PERSIST) if persists else ()
    story = Story(*put(8), *begins(C0), Consume("c0", times=8), *told)
    story.consumed.clear()

    story.does(*down_by(LOSES_ALL), *put(new), TurnConsumer("c0", "persist"))
    assert story.kept() <= 0
    for _ in range(2):  # the pull is sent elsewhere, and the queue begun anew
        story.does(AdvanceClock(31_000), TurnConsumer("c0", "pull", 3))
        story.does(TurnConsumer("c0", "rebalance"))
    story.does(AdvanceClock(500), TurnConsumer("c0", "pull", 3))
    story.does(Consume("c0", times=20))

    assert [offset for _, offset in story.consumed] == [*range(new)]
    story.ends_well()


def test_e8_a_reset_holds_against_what_its_consumer_tells_meanwhile() -> None:
    story = Story(*put(5), *begins(C0), Consume("c0", times=5))
    story.does(TurnConsumer("c0", "persist"), ResetOffset("g", "T0", 0, 2))
    story.does(TurnConsumer("c0", "persist"))
    assert story.kept() == 2

    # A message ends the pull that was held; the next one meets the reset.
    story.does(*put(1), TurnConsumer("c0", "pull", 3), TurnConsumer("c0", "rebalance"))
    story.does(AdvanceClock(500), TurnConsumer("c0", "pull", 3))
    story.consumed.clear()
    story.does(Consume("c0", times=8))

    assert [offset for _, offset in story.consumed] == [2, 3, 4, 5]
    story.ends_well()


@pytest.mark.parametrize("how", get_args(ConsumerEnd)[1:])
def test_one_that_broadcasts_goes_on_at_what_its_own_disk_has(how: ConsumerEnd) -> None:
    story = Story(*put(4), *begins(TELLING_ALL), Consume("c0", times=2))
    story.does(TurnConsumer("c0", "persist"), Consume("c0"))
    story.does(EndConsumer("c0", how), *begins(TELLING_ALL), Consume("c0", times=8))

    assert [offset for _, offset in story.consumed] == [0, 1, 2, 2, 3]
    assert story.kept("b") <= 0
    story.ends_well()


def test_a_client_has_one_consumer_and_without_it_does_nothing() -> None:
    episode = Episode("", ONE_QUEUE)

    assert isinstance(episode.step(TurnConsumer("c0", "pull")), Skipped)
    assert isinstance(episode.step(EndConsumer("c0")), Skipped)
    assert episode.step(C0) == Done()
    assert isinstance(episode.step(C0), Skipped)
    assert episode.step(EndConsumer("c0")) == Done()
    assert episode.step(C0) == Done()


def test_a_message_that_two_groups_give_back_is_delivered_to_each() -> None:
    episode = Episode("", replace(ONE_QUEUE, delivers_delayed=True))
    for group in ("g", "h"):
        consumer = StartConsumer(f"{group}0", group, "T0")
        for op in (*put(1), *begins(consumer), Consume(consumer.client, 0, 1, "later")):
            episode.step(op)

    episode.finish()

    done = episode.judge.known.consumption.done
    assert done["g", "%RETRY%g", 0] == done["h", "%RETRY%h", 0] != set()
    assert episode.judge.checks["DLY-1"] == 2
