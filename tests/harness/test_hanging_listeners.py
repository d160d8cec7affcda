"""Stories of listeners that hang with messages, and of consumers that are suspended.

Every step is judged, and each story goes on to an end at which all is consumed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from client_stories import C0, REPUT, Story, begins, put

from crashmq.models.history import (
    Consumed,
    ExpiredCleaned,
    ListenerReturned,
    PullSent,
    SentBack,
)
from crashmq.models.ops import (
    AdvanceClock,
    Consume,
    ConsumeStatus,
    Crash,
    During,
    PutBatch,
    Restart,
    Schedule,
    Shutdown,
    StartConsumer,
    Together,
    TurnConsumer,
)
from crashmq.models.program import Setup

SETUP = Setup(keeps_progress=True, delivers_delayed=True, topic_queues=1)
TIME_OUT_MS = 15 * 60_000
EXPIRES = AdvanceClock(TIME_OUT_MS + 1)
HANGS = Consume("c0", status="hangs")
CLEAN = TurnConsumer("c0", "clean")
PULL = TurnConsumer("c0", "pull", 2)


def story_of(messages: int, consumer: StartConsumer = C0) -> Story:
    """One client of a broker, which has pulled messages."""
    locks = (TurnConsumer("c0", "lock"),) if consumer.is_orderly else ()
    joins, *pulls = begins(consumer)
    return Story(*put(messages), joins, *locks, *pulls, setup=SETUP)


@pytest.mark.parametrize(("after_ms", "expires"), [(0, False), (1, True)])
def test_a_message_is_given_up_once_its_listener_had_it_for_too_long(
    after_ms: int, expires: bool
) -> None:
    story = story_of(2)
    story.does(HANGS, AdvanceClock(TIME_OUT_MS + after_ms), CLEAN)
    first = [one.first for one in story.events if isinstance(one, ExpiredCleaned)]

    assert len(story.told(SentBack)) == expires
    assert first == [(("T0", 0, int(expires)),)]
    assert story.asked("CON-27") == (not expires)
    assert story.asked("CON-28") == story.asked("CON-29") == expires
    story.ends_well()


@pytest.mark.parametrize("status", ["success", "later", "raises"])
def test_what_a_listener_returns_for_a_message_given_up_is_ignored(
    status: ConsumeStatus,
) -> None:
    story = story_of(1)
    story.does(HANGS, EXPIRES, CLEAN, Consume("c0", status=status))

    assert len(story.told(SentBack)) == 1
    assert story.given() == story.given(ListenerReturned) == [0]
    story.ends_well()


@pytest.mark.parametrize(("status", "back"), [("success", 0), ("later", 1)])
def test_a_listener_that_returns_in_time_finishes_its_message(
    status: ConsumeStatus, back: int
) -> None:
    story = story_of(1)
    story.does(
        HANGS, HANGS, AdvanceClock(60_000), Consume("c0", status=status), EXPIRES
    )
    sent_back = len(story.told(SentBack))
    story.does(CLEAN)

    assert sent_back == len(story.told(SentBack)) == back
    assert story.given() == story.given(ListenerReturned) == [0]
    story.ends_well()


def test_a_round_gives_up_sixteen_messages_of_a_queue() -> None:
    story = story_of(20)
    story.does(PULL, Consume("c0", times=20, status="hangs"), EXPIRES, CLEAN)
    assert len(story.told(SentBack)) == 16
    story.does(CLEAN)

    assert len(story.told(SentBack)) == 20
    story.ends_well()


def test_a_message_stays_while_nobody_takes_it_back() -> None:
    story = story_of(1)
    story.does(HANGS, EXPIRES, Shutdown(), CLEAN, Restart())
    assert not story.told(SentBack)
    assert [one for one in story.events if getattr(one, "refused", False)]
    story.does(CLEAN)

    assert len(story.told(SentBack)) == 1
    story.ends_well()


def test_a_message_that_failed_and_was_kept_expires_too_and_is_given_again() -> None:
    story = story_of(1)
    story.does(Shutdown(), Consume("c0", status="later"), Restart(), EXPIRES, CLEAN)
    assert len(story.told(SentBack)) == 1
    story.does(Consume("c0", status="later"))

    assert story.given() == [0, 0]
    assert len(story.told(SentBack)) == 1
    story.ends_well()


def test_what_fails_late_and_is_kept_is_put_off_from_then_on() -> None:
    story = story_of(1)
    story.does(HANGS, AdvanceClock(5000), Shutdown())
    story.does(Consume("c0", times=8, status="later"), AdvanceClock(4999))
    story.does(Consume("c0", times=8), AdvanceClock(1), Consume("c0"), Restart())

    assert story.given() == [0, 0]
    assert story.asked("RTY-4") == 1
    story.ends_well()


def test_messages_of_a_batch_expire_one_by_one() -> None:
    story = story_of(3, replace(C0, batch=3))
    story.does(HANGS, EXPIRES, CLEAN, Consume("c0", status="later"))

    assert len(story.told(SentBack)) == 3
    assert story.given() == story.given(ListenerReturned) == [0, 1, 2]
    story.ends_well()


def test_a_listener_that_hangs_with_its_queue_gone_is_not_heard() -> None:
    story = story_of(1)
    story.does(
        HANGS, AdvanceClock(130_000), TurnConsumer("c0", "rebalance"), Consume("c0")
    )

    assert story.given() == [0]
    assert not story.told(ListenerReturned)
    story.ends_well()


@pytest.mark.parametrize("consumer", [replace(C0, is_orderly=True)])
def test_an_orderly_listener_never_hangs(consumer: StartConsumer) -> None:
    story = story_of(2, consumer)
    story.does(Consume("c0", times=2, status="hangs"), EXPIRES, CLEAN)

    given = [one.status for one in story.events if isinstance(one, Consumed)]
    assert given == ["success"] * 2
    assert not story.told(SentBack)
    story.ends_well()


def test_a_broadcast_message_expires_too() -> None:
    story = story_of(2, replace(C0, broadcasts=True))
    story.does(HANGS, EXPIRES, CLEAN, Consume("c0", times=4))

    assert len(story.told(SentBack)) == 1
    story.ends_well()


@pytest.mark.slow
def test_a_listener_may_return_amid_a_round_that_gives_its_message_up() -> None:
    for point in range(1, 40, 3):
        for ops in ((CLEAN, Consume("c0")), (Consume("c0", status="later"), CLEAN)):
            story = story_of(1)
            story.does(HANGS, EXPIRES)
            story.does(Together(ops, Schedule(preemptions=((point, 1),))))
            story.ends_well()


def test_a_broker_may_die_while_a_message_is_given_up() -> None:
    for action in range(1, 8):
        story = story_of(2)
        story.does(Consume("c0", times=2, status="hangs"), EXPIRES)
        story.does(During(CLEAN, action, Crash("power_loss")), Restart(), CLEAN)
        story.does(TurnConsumer("c0", "heartbeat"), Consume("c0", times=4))
        story.ends_well()


def test_a_suspended_consumer_pulls_nothing_and_consumes_what_it_has() -> None:
    story = story_of(2)
    story.does(TurnConsumer("c0", "suspend"))
    pulls = len(story.told(PullSent))
    more = (PutBatch("T0", 0, (1,)), REPUT, AdvanceClock(1000), PULL)
    story.does(*more, Consume("c0", times=4), PULL, TurnConsumer("c0", "rebalance"))

    assert len(story.told(PullSent)) == pulls
    assert story.given() == [0, 1, 2]  # the last came with a pull of before
    assert story.asked("CON-30") == 2
    story.ends_well()


def test_a_resumed_consumer_goes_on_within_a_second() -> None:
    story = story_of(1)
    story.does(Consume("c0"), TurnConsumer("c0", "suspend"), PULL)
    story.does(PutBatch("T0", 0, (1,)), REPUT, TurnConsumer("c0", "resume"))
    before = story.asked("CON-21")
    story.does(AdvanceClock(1000), PULL, PULL, Consume("c0"))

    assert story.asked("CON-21") > before
    assert story.given() == [0, 1]
    story.ends_well()


def test_a_consumer_that_begins_again_is_not_suspended() -> None:
    story = story_of(1)
    story.does(TurnConsumer("c0", "suspend"))
    story.does(TurnConsumer("c0", "suspend"), TurnConsumer("c0", "resume"))
    assert not story.episode.judge.known.progress.due.suspended
    story.ends_well()


def test_who_is_suspended_beside_others_may_or_may_not_pull() -> None:
    for point in range(1, 30, 3):
        story = story_of(1)
        both = (PULL, TurnConsumer("c0", "suspend"))
        story.does(Together(both, Schedule(preemptions=((point, 1),))))
        assert story.episode.judge.known.progress.due.suspended == {"c0": False}
        story.does(AdvanceClock(1000), PULL, TurnConsumer("c0", "resume"), PULL)
        story.ends_well()
