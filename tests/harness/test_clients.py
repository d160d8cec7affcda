"""Stories of living consumers, told as RocketMQ's and ended as they should end here.

Every step is judged, and each story goes on to an end at which all is consumed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from client_stories import C0, ONE_QUEUE, REPUT, Story, begins, put

from crashmq.harness.episodes.episode import Episode
from crashmq.models.history import (
    Consumed,
    ConsumerEnded,
    OffsetRead,
    OffsetSent,
    PullSent,
    QueuesHeld,
)
from crashmq.models.observations import Done, Interleaved, Skipped
from crashmq.models.ops import (
    AdvanceClock,
    Consume,
    ConsumerEnd,
    Crash,
    During,
    EndConsumer,
    Op,
    PutMessage,
    QueryOffset,
    ResetOffset,
    Restart,
    Resubscribe,
    RunService,
    Schedule,
    StartConsumer,
    Survivors,
    Together,
    TurnConsumer,
)

PERSIST = RunService("persist_consumer_offset")
LOSES_ALL = Crash("power_loss", Survivors("none"))
BY_CLIENTS = (Consumed, OffsetRead, OffsetSent, PullSent, QueuesHeld)
TELLING_ALL = StartConsumer("c0", "b", "T0", broadcasts=True)


def down_by(crash: Crash) -> tuple[Op, ...]:
    """The broker crashes and starts again, and c0 tells that it is there."""
    asks = QueryOffset("nobody", "T0", 0)
    return During(asks, 1, crash), Restart(), TurnConsumer("c0", "heartbeat")


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


def tagged(*tags: str) -> tuple[Op, ...]:
    return *[PutMessage("T0", 0, 1, tags=tag) for tag in tags], REPUT


@pytest.mark.parametrize("last", ["A || B", "A"])
def test_a_pull_that_is_held_passes_over_nothing_of_what_is_subscribed_meanwhile(
    last: str,
) -> None:
    # Only a topic that is there is pulled.
    story = Story(PutMessage("T0", 1, 1), *begins(replace(C0, expression="A")))
    story.does(Resubscribe("c0", "T0", "B"), *tagged("A", "B", "A"))
    story.does(Resubscribe("c0", "T0", last), TurnConsumer("c0", "pull", 4))
    story.does(Consume("c0", times=8))

    wanted = [0, 2] if last == "A" else [0, 1, 2]
    assert [offset for _, offset in story.consumed] == wanted
    story.ends_well()


def test_a_topic_that_is_subscribed_again_goes_on_where_its_group_was() -> None:
    story = Story(*put(3), *begins(C0), Consume("c0", times=2))
    rebalances = TurnConsumer("c0", "rebalance")
    story.does(Resubscribe("c0", "T1"), rebalances, *put(2))
    story.does(Resubscribe("c0", "T0"), rebalances, AdvanceClock(500))
    story.does(TurnConsumer("c0", "pull", 2), Consume("c0", times=8))

    assert [offset for _, offset in story.consumed] == [0, 1, 2, 3, 4]
    story.ends_well()


def test_messages_that_a_group_has_not_asked_for_are_passed_over() -> None:
    story = Story(*tagged("Aa", "BB", "C", "Aa"), *begins(replace(C0, expression="Aa")))
    story.does(Consume("c0", times=8), TurnConsumer("c0", "persist"))

    assert story.consumed == [("c0", 0), ("c0", 3)]
    assert story.kept() == 4
    story.ends_well()


def test_a_listener_in_order_commits_what_it_says_and_takes_back_the_rest() -> None:
    story = Story(*put(4), *begins(replace(C0, is_orderly=True)))
    kept = []
    for status in ("uncommitted", "commit", "uncommitted", "rollback"):
        story.does(Consume("c0", status=status), TurnConsumer("c0", "persist"))
        kept.append(story.kept())
    story.does(AdvanceClock(1000), Consume("c0", times=2))
    story.does(TurnConsumer("c0", "persist"))

    assert [number for _, number in story.consumed] == [0, 1, 2, 3, 2, 3]
    assert [*kept, story.kept()] == [0, 2, 2, 2, 4]
    story.ends_well()


def test_a_dead_letter_of_a_listener_in_order_waits_for_its_commit() -> None:
    one = replace(C0, is_orderly=True, max_reconsume_times=0)
    setup = replace(ONE_QUEUE, delivers_delayed=True)
    story = Story(*put(3), *begins(one), setup=setup)
    kept = []
    for status in ("uncommitted", "suspends", "commit"):
        story.does(Consume("c0", status=status), TurnConsumer("c0", "persist"))
        kept.append(story.kept())

    assert [number for _, number in story.consumed] == [0, 1, 2]
    assert kept == [0, 0, 3]
    story.ends_well()


def test_a_rollback_brings_back_a_dead_letter_that_was_not_committed() -> None:
    one = replace(C0, is_orderly=True, max_reconsume_times=0)
    setup = replace(ONE_QUEUE, delivers_delayed=True)
    story = Story(*put(3), *begins(one), setup=setup)
    for status in ("uncommitted", "suspends", "rollback"):
        story.does(Consume("c0", status=status))
    story.does(AdvanceClock(1000), Consume("c0", times=3))
    story.does(TurnConsumer("c0", "persist"))

    assert [number for _, number in story.consumed] == [0, 1, 2, 0, 1, 2]
    assert story.kept() == 3
    story.ends_well()


@pytest.mark.parametrize("how", get_args(ConsumerEnd))
def test_what_a_listener_has_not_committed_comes_to_the_next_consumer(
    how: ConsumerEnd,
) -> None:
    in_order = replace(C0, is_orderly=True)
    story = Story(*put(2), *begins(in_order))
    story.does(Consume("c0", times=2, status="uncommitted"), EndConsumer("c0", how))
    story.does(AdvanceClock(130_000), RunService("client_housekeeping"))
    story.does(*begins(replace(in_order, client="c1")), Consume("c1", times=2))

    assert story.consumed == [("c0", 0), ("c0", 1), ("c1", 0), ("c1", 1)]
    story.ends_well()


def test_an_episode_may_end_before_a_listener_has_committed() -> None:
    story = Story(*put(2), *begins(replace(C0, is_orderly=True)))
    story.does(Consume("c0", times=2, status="uncommitted"))

    story.ends_well()


def test_a_client_has_one_consumer_and_without_it_does_nothing() -> None:
    episode = Episode("", ONE_QUEUE)

    assert isinstance(episode.step(TurnConsumer("c0", "pull")), Skipped)
    assert isinstance(episode.step(EndConsumer("c0")), Skipped)
    assert isinstance(episode.step(Resubscribe("c0", "T1")), Skipped)
    assert episode.step(C0) == Done()
    assert isinstance(episode.step(C0), Skipped)
    assert episode.step(EndConsumer("c0")) == Done()
    assert episode.step(C0) == Done()


POINTS = range(1, 30, 2)


def at_once(point: int, *ops: Op) -> Together:
    """The first begins; at its ``point``-th call of the host the second one runs."""
    return Together(ops, Schedule(preemptions=((point, 1),)))


@pytest.mark.slow
@pytest.mark.parametrize("broadcasts", [False, True])
def test_two_that_start_one_client_at_once_give_it_one_consumer(
    broadcasts: bool,
) -> None:
    joins = replace(C0, broadcasts=broadcasts)
    for point in POINTS:
        episode = Episode("", ONE_QUEUE)
        seen = episode.step(at_once(point, joins, joins))

        assert isinstance(seen, Interleaved)
        assert sorted(map(type, seen.observations), key=str) == [Done, Skipped], point
        episode.finish()


@pytest.mark.slow
@pytest.mark.parametrize("broadcasts", [False, True])
@pytest.mark.parametrize("how", get_args(ConsumerEnd)[1:])
def test_a_client_that_ends_amid_its_work_does_nothing_more(
    how: ConsumerEnd, broadcasts: bool
) -> None:
    joins = replace(C0, broadcasts=broadcasts)
    amid = 0
    for beside in (Consume("c0", times=4), TurnConsumer("c0", "persist")):
        for point in POINTS:
            story = Story(*put(4), *begins(joins), Consume("c0"))
            story.does(at_once(point, beside, EndConsumer("c0", how)))
            last = story.events.index(ConsumerEnded("c0", how))
            amid += any(
                Skipped in map(type, seen.observations) for seen in story.together
            )

            mine = [one for one in story.events[last + 1 :] if type(one) in BY_CLIENTS]
            underway = [one for one in mine if isinstance(one, OffsetSent)]
            assert mine == underway[:1], point  # a request that is underway arrives
            story.does(*begins(joins))
            story.ends_well()
    assert amid > 0


@pytest.mark.slow
@pytest.mark.parametrize("broadcasts", [False, True])
def test_a_client_that_stops_amid_its_work_has_told_it(broadcasts: bool) -> None:
    joins = replace(C0, broadcasts=broadcasts)
    for point in POINTS:
        story = Story(*put(4), *begins(joins))
        story.does(at_once(point, Consume("c0", times=4), EndConsumer("c0")))
        done = [offset for _, offset in story.consumed]
        story.does(*begins(joins), Consume("c0", times=8))

        assert [offset for _, offset in story.consumed] == [0, 1, 2, 3], (point, done)
        story.ends_well()


def test_a_message_that_two_groups_give_back_is_delivered_to_each() -> None:
    episode = Episode("", replace(ONE_QUEUE, delivers_delayed=True))
    for group in ("g", "h"):
        consumer = StartConsumer(f"{group}0", group, "T0")
        for op in (*put(1), *begins(consumer), Consume(consumer.client, 0, 1, "later")):
            episode.step(op)

    episode.finish()

    done = episode.judge.known.consumption.owed.done
    assert done["g", "%RETRY%g", 0] == done["h", "%RETRY%h", 0] != set()
    assert episode.judge.checks["DLY-1"] == 2
