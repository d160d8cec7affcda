"""Producers of a program send messages through the broker."""

from __future__ import annotations

import pytest

from crashmq.harness.episodes.episode import Episode, run_program
from crashmq.models.describe import describe
from crashmq.models.observations import Put, Skipped
from crashmq.models.ops import (
    AdvanceClock,
    ConfigureGroup,
    Op,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Schedule,
    SendMessage,
    Shutdown,
    StartConsumer,
    Together,
    TurnConsumer,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

BROKER = Setup(keeps_progress=True)
MINUTE_MS = 60_000
OF_G = SendMessage("%RETRY%g", 0, 16)
JOINS: tuple[Op, ...] = (
    *(StartConsumer(f"c{n}", "g", "T0", is_orderly=True) for n in range(2)),
    *(TurnConsumer(f"c{n}", "rebalance") for n in (0, 1, 0, 1)),
    *(TurnConsumer(f"c{n}", "lock") for n in range(2)),
)


def stored_by(*ops: Op, setup: Setup = BROKER) -> dict[str, int]:
    """How many messages the topics of group g have after the ops; all laws hold."""
    episode = Episode("", setup)
    episode.begin()
    for op in ops:
        episode.step(op)
    queues = episode.judge.known.model.queues
    counts = {topic: len(messages) for (topic, _), messages in queues.items()}
    result = run_program(Program(setup, ops))
    episode.finish()
    assert result.outcome is Outcome.PASSED, result.message
    return {topic: count for topic, count in counts.items() if topic[0] == "%"}


@pytest.mark.parametrize(
    ("times", "bound", "topic"),
    [
        (2, -1, "%RETRY%g"),
        (3, -1, "%DLQ%g"),
        (3, 3, "%RETRY%g"),
        (4, 3, "%DLQ%g"),
        (0, 0, "%RETRY%g"),
        (1, 0, "%DLQ%g"),
    ],
)
def test_what_was_tried_too_often_is_a_dead_letter(
    times: int, bound: int, topic: str
) -> None:
    sent = SendMessage("%RETRY%g", 0, 16, times, bound)

    assert stored_by(ConfigureGroup("g", 2), sent) == {topic: 1}


@pytest.mark.parametrize(
    ("then", "topic"),
    [
        ((), "%DLQ%g"),
        ((AdvanceClock(MINUTE_MS),), "%DLQ%g"),
        ((AdvanceClock(MINUTE_MS + 1),), "%RETRY%g"),
        (
            (
                *(AdvanceClock(MINUTE_MS - 10), TurnConsumer("c1", "lock")),
                AdvanceClock(11),
            ),
            "%DLQ%g",
        ),
        ((Restart(),), "%RETRY%g"),
    ],
)
def test_a_group_with_a_lock_gets_dead_letters_alone(
    then: tuple[Op, ...], topic: str
) -> None:
    assert stored_by(*JOINS, *then, OF_G) == {topic: 1}
    assert stored_by(*JOINS, *then, SendMessage("%RETRY%h", 0, 16)) == {"%RETRY%h": 1}


def test_a_sent_message_waits_for_its_level_and_a_dead_letter_does_not() -> None:
    delivers = Setup(keeps_progress=True, delivers_delayed=True)
    alive, dead = (SendMessage("%RETRY%g", 0, 16, n, 0, 1) for n in (0, 1))

    assert stored_by(alive, dead, setup=delivers) == {"%DLQ%g": 1}
    later = (RunService("reput"), AdvanceClock(1000), RunService("deliver_delayed"))
    told = stored_by(alive, dead, *later, setup=delivers)
    assert told == {"%DLQ%g": 1, "%RETRY%g": 1}


def test_a_store_without_a_broker_or_that_is_down_takes_nothing_sent() -> None:
    episode = Episode("", Setup())
    episode.begin()
    assert isinstance(episode.step(OF_G), Skipped)
    episode.finish()
    episode = Episode("", BROKER)
    episode.begin()
    assert isinstance(episode.step(OF_G), Put)
    assert isinstance(episode.step(SendMessage("%RETRY%", 0, 1)), Skipped)
    episode.step(Shutdown())
    assert isinstance(episode.step(OF_G), Skipped)
    episode.finish()


def test_messages_that_are_sent_at_once_are_told_apart() -> None:
    sends = (SendMessage("T0", 0, 16), SendMessage("T0", 0, 16), OF_G)
    schedules = (Schedule(preemptions=((n, 1), (n + 2, 2))) for n in range(1, 12))

    for schedule in schedules:
        program = (
            Together((*sends, PutMessage("T0", 0, 16)), schedule),
            *(RunService("reput"), PullMessage("T0", 0, 0)),
        )
        result = run_program(Program(BROKER, program))
        assert result.outcome is Outcome.PASSED, result.message


def test_a_send_is_told_in_words() -> None:
    sent = SendMessage("%RETRY%g", 0, 16, 3, 2, 1, "RETRY_TOPIC=T0")

    assert describe(sent) == (
        "send 16 B to %RETRY%g/0 with RETRY_TOPIC=T0, delayed by level 1, "
        "reconsume_times 3, max_reconsume_times 2"
    )
