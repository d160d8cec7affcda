"""An administrator of a program asks a broker, and changes what it has."""

from __future__ import annotations

import pytest

from crashmq.harness.episodes.episode import Episode, run_program
from crashmq.models.describe import describe
from crashmq.models.observations import (
    Done,
    NamesTold,
    NumberTold,
    Observation,
    OffsetKept,
    Put,
    Skipped,
    Started,
    TopicsCleaned,
    describe_observation,
)
from crashmq.models.ops import (
    AdvanceClock,
    AskBroker,
    ChangeTopic,
    CleanOffsets,
    CleanTopics,
    CommitOffset,
    Consume,
    DeleteTopic,
    During,
    Op,
    PullMessage,
    PullThroughBroker,
    PutMessage,
    QueryOffset,
    Restart,
    RunService,
    Schedule,
    SendMessage,
    Shutdown,
    StartConsumer,
    TellReset,
    Together,
    TurnConsumer,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

BROKER = Setup(keeps_progress=True)
PUT = PutMessage("T0", 0, 16)
REPUT = RunService("reput")
COMMITS = (CommitOffset("g", "T0", 1, 0), CommitOffset("h", "T0", 0, 0))
JOINS = (
    StartConsumer("c0", "g", "T0", is_orderly=True),
    TurnConsumer("c0", "rebalance"),
)
WORKS = (
    *(PUT, PUT, PUT, REPUT, StartConsumer("c0", "g", "T0")),
    *(TurnConsumer("c0", "rebalance"), AdvanceClock(500)),
    *(TurnConsumer("c0", "pull", 3), Consume("c0", times=3)),
    TurnConsumer("c0", "persist"),
)


def last_of(*ops: Op, setup: Setup = BROKER) -> Observation:
    """What is observed of the last op; all laws hold."""
    episode = Episode("", setup)
    episode.begin()
    seen = [episode.step(op) for op in ops][-1]
    episode.finish()
    result = run_program(Program(setup, ops))
    assert result.outcome is Outcome.PASSED, result.message
    return seen


def test_a_broker_names_topics_and_groups_that_have_offsets() -> None:
    of_g, of_topic = (
        AskBroker("topics_of_group", "g"),
        AskBroker("groups_of_topic", "", "T0"),
    )

    assert last_of(*COMMITS, of_g) == NamesTold(("T0",))
    assert last_of(*COMMITS, of_topic) == NamesTold(("g", "h"))
    assert last_of(*COMMITS, Shutdown(), Restart(), of_topic) == NamesTold(("g", "h"))
    assert last_of(*COMMITS, DeleteTopic("T0"), of_topic) == NamesTold(())


def test_a_broker_names_the_groups_that_subscribe() -> None:
    joins = (*JOINS, StartConsumer("c1", "h", "T1"))
    asked = AskBroker("subscribers", "", "T0")

    assert last_of(*joins, asked) == NamesTold(("g",))
    later = (AdvanceClock(120_001), RunService("client_housekeeping"))
    assert last_of(*joins, *later, asked) == NamesTold(())
    of_retries = AskBroker("subscribers", "", "%RETRY%h")
    assert last_of(*joins, of_retries) == NamesTold(("h",))
    tells = StartConsumer("c1", "h", "T1", broadcasts=True)
    assert last_of(tells, of_retries) == NamesTold(())


def test_a_group_pulls_next_where_its_last_pull_said_or_at_its_offset() -> None:
    asked = AskBroker("pull_offset", "g", "T0")
    pull = PullThroughBroker("g", "T0", 0, 0, 2)
    stock = (PUT, PUT, PUT, REPUT)

    assert last_of(*stock, asked) == NumberTold(-1)
    assert last_of(*stock, CommitOffset("g", "T0", 0, 1), asked) == NumberTold(1)
    assert last_of(*stock, pull, asked) == NumberTold(2)
    assert last_of(*stock, pull, CleanOffsets("T0"), asked) == NumberTold(-1)
    assert last_of(*stock, pull, Restart(), asked) == NumberTold(-1)
    held = PullThroughBroker("g", "T0", 0, 3, suspends=True)
    assert last_of(*stock, held, asked) == NumberTold(3)


@pytest.mark.parametrize(("at_ms", "offset"), [(0, 0), (1, 1), (10, 1), (11, 2)])
def test_a_broker_finds_the_offset_at_a_time(at_ms: int, offset: int) -> None:
    asked = AskBroker("time", "", "T0", 0, at_ms)

    seen = last_of(PUT, AdvanceClock(10), PUT, REPUT, asked)

    assert seen == NumberTold(offset)


def test_a_broker_knows_groups_and_locks() -> None:
    group, lock = AskBroker("group", "g"), AskBroker("lock", "g", "T0", client="c0")

    assert last_of(group) == NumberTold(0)
    assert last_of(*JOINS, group) == NumberTold(1)
    assert last_of(*JOINS, lock) == NumberTold(1)
    assert last_of(*JOINS, AdvanceClock(60_000), lock) == NumberTold(1)
    assert last_of(*JOINS, AdvanceClock(60_001), lock) == NumberTold(0)
    assert last_of(*JOINS, Restart(), lock) == NumberTold(0)


def test_cleaned_offsets_are_gone_for_all_groups_and_stay_gone() -> None:
    asked = QueryOffset("g", "T0", 1)

    assert last_of(*COMMITS, CleanOffsets("T1"), asked) == OffsetKept(0)
    assert last_of(*COMMITS, CleanOffsets("T0"), asked) == OffsetKept(-1)
    persisted = (*COMMITS, RunService("persist_consumer_offset"), CleanOffsets("T0"))
    assert last_of(*persisted, Restart(), asked) == OffsetKept(-1)


def test_offsets_may_be_cleaned_and_asked_for_beside_commits() -> None:
    ops = (*COMMITS, CleanOffsets("T0"), AskBroker("groups_of_topic", "", "T0"))
    for first in range(1, 12):
        schedule = Schedule(preemptions=((first, 1), (first + 1, 2)))
        asked = AskBroker("topics_of_group", "g")
        last_of(Together(ops, schedule), asked, QueryOffset("g", "T0", 1))


def test_all_topics_go_but_those_retained() -> None:
    puts = [PutMessage(topic, 0, 16) for topic in ("T0", "T1", "T2")]
    pull = PullMessage("T1", 0, 0)

    cleaned = last_of(*puts, REPUT, CleanTopics("T1,T9"), setup=Setup())

    assert isinstance(cleaned, TopicsCleaned)
    assert [topic for topic, _ in cleaned.rows] == ["T0", "T2"]
    assert describe_observation(cleaned) == "2 deleted: T0, T2"
    last_of(*puts, CleanTopics("T1"), REPUT, pull, Restart(), pull, setup=Setup())
    beside = During(CleanTopics("T0"), 2, PutMessage("T3", 0, 16))
    last_of(*puts, REPUT, beside, PullMessage("T3", 0, 0), setup=Setup())
    assert isinstance(last_of(*puts, CleanTopics()), Skipped), "a broker decides"


def test_a_topic_has_the_queues_and_the_permission_it_was_given() -> None:
    wider, closed = ChangeTopic("N0", 9, 2), ChangeTopic("N0", is_writeable=False)

    assert last_of(wider) == Done()
    assert isinstance(last_of(wider, SendMessage("N0", 8, 1)), Put)
    assert isinstance(last_of(wider, Restart(), SendMessage("N0", 8, 1)), Put)
    assert isinstance(last_of(wider, SendMessage("N0", 9, 1)), Skipped)
    assert isinstance(last_of(closed, SendMessage("N0", 0, 1)), Skipped)
    again = (closed, DeleteTopic("N0"), SendMessage("N0", 7, 1))
    assert isinstance(last_of(*again), Put)
    assert isinstance(last_of(ChangeTopic("TBW102")), Skipped)
    assert isinstance(last_of(ChangeTopic("%RETRY%g")), Skipped)


def test_a_change_that_was_refused_makes_no_topic() -> None:
    assert isinstance(last_of(ChangeTopic("%T"), Shutdown(), Restart()), Started)


def test_a_consumer_begins_where_its_broker_tells_it() -> None:
    told = (*WORKS, TellReset("c0", "T0", 0, 1))
    asked = QueryOffset("g", "T0", 0)

    assert last_of(*WORKS, asked) == OffsetKept(3)
    assert last_of(*told, asked) == OffsetKept(1)
    again = (TurnConsumer("c0", "rebalance"), AdvanceClock(500))
    works = (TurnConsumer("c0", "pull", 3), Consume("c0", times=3))
    assert last_of(*told, *again, *works, TurnConsumer("c0", "persist"), asked) == (
        OffsetKept(3)
    )
    assert isinstance(last_of(*WORKS, TellReset("c0", "T9", 0, 1)), Skipped)
    broadcasts = StartConsumer("c1", "b", "T0", broadcasts=True)
    tells = (broadcasts, TurnConsumer("c1", "rebalance"), TellReset("c1", "T0", 0, 1))
    assert isinstance(last_of(*tells), Skipped)


def test_a_store_without_a_broker_answers_no_question() -> None:
    for op in (AskBroker("group", "g"), CleanOffsets("T0"), ChangeTopic("T0")):
        assert isinstance(last_of(op, setup=Setup()), Skipped)
        assert isinstance(last_of(Shutdown(), op), Skipped)
    assert isinstance(last_of(Shutdown(), CleanTopics(), setup=Setup()), Skipped)


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (AskBroker("topics_of_group", "g"), "ask for the topics of group g"),
        (
            AskBroker("time", "", "T0", 1, -5),
            "ask for the offset in T0/1 at -5 ms",
        ),
        (
            AskBroker("lock", "g", "T0", 1, client="c0"),
            "ask if c0 of g has the lock of T0/1",
        ),
        (CleanTopics(), "delete all topics but none"),
        (CleanOffsets("T0"), "remove all offsets on T0"),
        (
            ChangeTopic("T0", 9, 2, is_writeable=False),
            "topic T0 has 9 queues to read and 2 to write, and takes no message",
        ),
        (
            TellReset("c0", "T0", 1, 7),
            "consumer c0 is told to begin T0/1 at 7",
        ),
    ],
)
def test_what_an_administrator_does_is_told_in_words(op: Op, words: str) -> None:
    assert describe(op) == words
