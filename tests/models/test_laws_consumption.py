from __future__ import annotations

from dataclasses import replace

import pytest
from written_store import record_bytes

from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.judging.judge import Judge
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.appended import Appended
from crashmq.models.brokers import queues_of
from crashmq.models.history import (
    Consumed,
    ConsumerBegan,
    Happening,
    LocksAnswered,
    LocksReturned,
    OffsetRead,
    OffsetSent,
    OneQueue,
    PullReceived,
    PullSent,
    QueuesHeld,
    Step,
)
from crashmq.models.knowledge.consumption import (
    AnsweredPull,
    Consumption,
    Share,
)
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.locks import Lock, Locks
from crashmq.models.knowledge.moments import At, Moment, QueueBegun
from crashmq.models.knowledge.moments_of_consumers import (
    ConsumerAnswered,
    ConsumerCommitted,
    GroupIsAt,
    MessagesPulled,
    PullGoesOn,
    QueueBegunAnew,
    QueueGivenBack,
)
from crashmq.models.knowledge.walk_consumers import walk_consumers
from crashmq.models.laws.consumption import (
    a_beginning_is_told,
    a_consumer_goes_where_it_is_sent,
    a_full_consumer_does_not_pull,
    a_pull_goes_on,
    a_queue_is_given_back_with_its_offset,
    an_idle_group_is_at_the_end,
    an_orderly_consumer_is_given_the_next_message,
    each_queue_has_one_consumer,
    every_message_is_consumed,
    no_kept_offset_is_past_the_end,
    no_offset_passes_a_message,
    nobody_is_sent_past_the_end,
    nothing_is_consumed_twice,
    nothing_that_waits_is_forgotten,
    only_what_was_pulled_is_consumed,
    what_a_consumer_tells_is_kept,
    what_was_given_back_is_put_again,
)
from crashmq.models.messages import MessageToPut, message_for
from crashmq.models.observations import Done, Positions, Put
from crashmq.models.ops import PutMessage, StartConsumer
from crashmq.models.program import Setup

KEY = ("g", "T0", 0)
C0 = StartConsumer("c0", "g", "T0")
AT_C0 = OneQueue("c0", "g", "T0", 0)
SETUP = Setup(keeps_progress=True)


def message(queue_offset: int) -> Appended:
    put = message_for(PutMessage("T0", 0, 16), queue_offset, 0, 0)
    return Appended(put, 100 * queue_offset, 100, queue_offset)


class Walked:
    """What is known of a broker with some messages, while events are told."""

    def __init__(self, messages: int = 0) -> None:
        self.known = Knowledge.of_new_store(SETUP, PROFILES[SETUP.disk_profile])
        self.known.consumption.life = 1
        model = self.known.model
        for number in range(messages):
            put = message(number)
            model.put(
                put.message, Put("PUT_OK", put.phy_offset, 100, number), stored_ms=0
            )
        model.saw_positions(Positions(0, 100 * messages, 0, 100 * messages))

    def tell(self, *events: Happening) -> list[Moment]:
        up = Positions(0, 0, 0, 0)
        judge = Judge(SETUP, PythonStore(SETUP))
        at = At(Step.that_saw(Done()), self.known, judge, up)
        return [moment for event in events for moment in walk_consumers(at, event, 0)]

    @property
    def share(self) -> Share:
        return self.known.consumption.shares[AT_C0]

    def owed_from(self) -> int | None:
        return self.known.consumption.owed.since.get(KEY)


def pulled(asked: int, next_begin: int, code: str = "SUCCESS") -> PullReceived:
    return PullReceived(AT_C0, asked, code, next_begin, (), -2)


def test_no_offset_is_kept_before_what_lies_below_it_is_consumed() -> None:
    assert not no_offset_passes_a_message.violations(KEY, 5, [])
    (found,) = no_offset_passes_a_message.violations(KEY, 5, [message(3), message(4)])
    assert found.expected == "at most offset 3"
    assert not every_message_is_consumed.violations(KEY, [])
    assert every_message_is_consumed.violations(KEY, [message(3)])


@pytest.mark.parametrize(("offset", "is_right"), [(3, True), (5, True), (4, False)])
def test_a_pull_goes_on_at_the_end_of_the_last_or_asks_again(
    offset: int, is_right: bool
) -> None:
    assert bool(a_pull_goes_on.violations(AT_C0, offset, (3, 5))) is not is_right


def test_a_consumer_is_given_what_its_pulls_have_brought_once() -> None:
    answers = (AnsweredPull(2, frozenset({"new"})),)
    share = Share(0, answers, frozenset({"old"}), frozenset({"done"}))
    brought = only_what_was_pulled_is_consumed.violations
    twice = nothing_is_consumed_twice.violations

    assert [bool(brought(AT_C0, 0, key, share)) for key in ("new", "old", "done")] == [
        False
    ] * 3
    assert brought(AT_C0, 0, "another", share)
    assert brought(AT_C0, 0, "", share)
    assert [bool(twice(AT_C0, 0, key, share)) for key in ("new", "old", "done")] == [
        *(False, False, True)
    ]


def test_order_is_that_of_what_waits_before() -> None:
    judge = an_orderly_consumer_is_given_the_next_message.violations

    assert not judge(AT_C0, 3, [])
    assert judge(AT_C0, 3, [message(2)])


def test_each_queue_has_one_consumer_and_none_has_two() -> None:
    queues = [("T0", 0), ("T0", 1)]
    judge = each_queue_has_one_consumer.violations

    assert not judge("g", queues, {"a": queues[:1], "b": queues[1:]})
    assert len(judge("g", queues, {"a": queues, "b": queues[1:]})) == 1
    assert len(judge("g", queues, {"a": (), "b": ()})) == 2


def test_bounds_are_held_up_to_the_bound_itself() -> None:
    assert not a_full_consumer_does_not_pull.violations(AT_C0, 4, 4)
    assert a_full_consumer_does_not_pull.violations(AT_C0, 5, 4)
    assert not a_full_consumer_does_not_pull.violations(AT_C0, 4, 4, 2, 2)
    assert a_full_consumer_does_not_pull.violations(AT_C0, 4, 4, 3, 2)
    assert not no_kept_offset_is_past_the_end.violations(KEY, 5, 5)
    assert no_kept_offset_is_past_the_end.violations(KEY, 6, 5)


def test_nobody_is_sent_past_the_end_of_a_queue() -> None:
    assert not nobody_is_sent_past_the_end.violations(AT_C0, 3, 3)
    assert nobody_is_sent_past_the_end.violations(AT_C0, 4, 3)


@pytest.mark.parametrize(
    ("to", "possible", "is_right"),
    [
        (2, None, True),
        (2, frozenset({2}), True),
        (1, frozenset({2}), False),
        (2, frozenset[int](), False),
    ],
)
def test_a_consumer_is_sent_where_the_queue_or_a_reset_says(
    to: int, possible: frozenset[int] | None, is_right: bool
) -> None:
    found = nobody_is_sent_past_the_end.violations(AT_C0, to, 3, possible)

    assert bool(found) is not is_right


def test_a_consumer_goes_where_it_was_sent() -> None:
    assert not a_consumer_goes_where_it_is_sent.violations(AT_C0, 2, 2)
    assert a_consumer_goes_where_it_is_sent.violations(AT_C0, 1, 2)
    assert a_consumer_goes_where_it_is_sent.violations(AT_C0, 3, 2)


def test_what_is_given_back_is_put_once_to_a_topic_of_its_group() -> None:
    def copy(topic: str) -> MessageToPut:
        return replace(message(0).message, topic=topic)

    judge = what_was_given_back_is_put_again.violations
    retry, dead, own = copy("%RETRY%g"), copy("%DLQ%g"), copy("T0")

    assert not judge(AT_C0, "key", [retry])
    assert not judge(AT_C0, "key", [dead])
    assert judge(AT_C0, "key", [])
    assert judge(AT_C0, "key", [own])
    assert judge(AT_C0, "key", [retry, dead])
    assert not judge(AT_C0, "key", [retry, retry], 2)
    assert judge(AT_C0, "key", [retry], 2)


def test_a_share_keeps_what_waits_and_forgets_an_answer_that_never_came() -> None:
    answers = (AnsweredPull(3, frozenset("abc")),)
    share = Share(0, answers, worked=frozenset("a"))

    assert share.pulls(3).waiting == {"b", "c"}
    assert share.pulls(0).waiting == frozenset()
    assert share.consumes("b").worked == {"a", "b"}
    assert share.begins_again(1) == share._replace(
        asked=1, answers=(), waiting=frozenset("bc")
    )


def test_a_share_has_the_messages_of_the_answer_that_it_continues_from() -> None:
    """One that was given up ended at 0, where it asks again, without a message."""
    answers = (AnsweredPull(0, frozenset()), AnsweredPull(1, frozenset("a")))
    share = Share(0, answers)

    assert share.ends == (0, 1)
    assert share.newest == {"a"}
    assert share.pulls(0).waiting == frozenset()
    assert share.pulls(1).waiting == {"a"}


def test_the_queues_of_a_group_are_those_of_its_topics_and_its_retry_topic() -> None:
    both = replace(C0, topics="T0,T1")
    assert queues_of(both, Setup(topic_queues=1)) == [
        ("T0", 0),
        ("T1", 0),
        ("%RETRY%g", 0),
    ]
    assert queues_of(replace(C0, broadcasts=True), Setup()) == [("T0", 0), ("T0", 1)]


def test_a_consumer_begins_pulls_and_tells_where_it_is() -> None:
    walked = Walked(messages=3)
    began = walked.tell(ConsumerBegan(C0), OffsetRead(AT_C0, 0), PullSent(AT_C0, 0, -1))
    went_on = walked.tell(pulled(0, 3), PullSent(AT_C0, 3, -1))
    told = walked.tell(OffsetSent(AT_C0, 2, 2))

    assert [type(each) for each in began] == [QueueBegun, QueueBegunAnew]
    assert [type(each) for each in went_on] == [
        ConsumerAnswered,
        MessagesPulled,
        PullGoesOn,
    ]
    (group_is_at,) = [each for each in told if isinstance(each, GroupIsAt)]
    assert [one.queue_offset for one in group_is_at.passed] == [0, 1]
    assert group_is_at.end == 3


@pytest.mark.parametrize(("code", "life"), [("SUCCESS", 2), ("SYSTEM_ERROR", 1)])
def test_only_a_broker_that_looked_knows_where_a_consumer_is(
    code: str, life: int
) -> None:
    walked = Walked(messages=3)
    walked.tell(ConsumerBegan(C0), OffsetRead(AT_C0, 0), PullSent(AT_C0, 0, -1))
    walked.tell(pulled(0, 3))
    walked.known.consumption.life = 2
    moments = walked.tell(PullSent(AT_C0, 3, -1), pulled(3, 0, code))

    assert walked.share.life == life
    assert walked.share.ends == ((0,) if code == "SUCCESS" else ())
    assert len(moments) == 2 + (code == "SUCCESS")


def test_who_missed_a_life_of_the_broker_is_owed_all_of_before() -> None:
    walked = Walked(messages=3)
    walked.tell(ConsumerBegan(C0), OffsetRead(AT_C0, 0), PullSent(AT_C0, 0, -1))
    walked.tell(pulled(0, 2))
    walked.known.consumption.life = 3
    walked.tell(PullSent(AT_C0, 2, -1))

    assert walked.owed_from() == 0


@pytest.mark.parametrize("is_given_before", [True, False])
def test_a_reset_says_what_is_owed_to_whoever_has_begun(is_given_before: bool) -> None:
    walked = Walked(messages=3)
    walked.tell(ConsumerBegan(C0))
    if is_given_before:
        walked.tell(OffsetRead(AT_C0, -1))
    walked.known.consumption.was_reset(KEY, 2)
    if not is_given_before:
        walked.tell(OffsetRead(AT_C0, -1))
    walked.tell(PullSent(AT_C0, 0, -1))

    assert walked.owed_from() == (2 if is_given_before else 0)


def test_one_that_broadcasts_makes_progress_of_its_own() -> None:
    known = Consumption()
    known.began(replace(C0, broadcasts=True))
    known.began(StartConsumer("c1", "g", "T0"))

    assert known.key_of(AT_C0) == ("g@c0", "T0", 0)
    assert known.key_of(AT_C0._replace(client="c1")) == KEY
    assert [*known.members("g@c0")] == ["c0"]
    known.ended("c0")
    assert known.members("g@c0") == {}
    assert known.newest["g@c0"].client == "c0"


def test_offsets_and_ends_are_told_as_they_are() -> None:
    back = a_queue_is_given_back_with_its_offset.violations

    assert not back(AT_C0, 2, 2)
    assert not back(AT_C0, 3, 2)
    assert back(AT_C0, 1, 2)
    assert back(AT_C0, -1, 1)
    assert not a_beginning_is_told.violations(AT_C0, 0)
    assert a_beginning_is_told.violations(AT_C0, -1)
    assert not an_idle_group_is_at_the_end.violations(KEY, 3, 3)
    assert an_idle_group_is_at_the_end.violations(KEY, 2, 3)
    assert not what_a_consumer_tells_is_kept.violations(AT_C0, 2, 2)
    assert what_a_consumer_tells_is_kept.violations(AT_C0, 2, 1)


def consumed(queue_offset: int) -> Consumed:
    properties = f"UNIQ_KEY\1{message(queue_offset).message.unique_key}\2".encode()
    record = record_bytes(0, queue_offset=queue_offset, properties=properties)
    return Consumed(AT_C0, queue_offset, record, "success")


@pytest.mark.parametrize(("offsets", "until"), [((0, 1), 2), ((1,), -1), ((0, 2), 1)])
def test_what_is_worked_off_without_a_gap_has_to_be_told(
    offsets: tuple[int, ...], until: int
) -> None:
    walked = Walked(messages=3)
    walked.tell(ConsumerBegan(C0), OffsetRead(AT_C0, 0), PullSent(AT_C0, 0, -1))
    walked.tell(pulled(0, 3), OffsetSent(AT_C0, 0, 0))
    walked.tell(*map(consumed, offsets))
    (given_back,) = walked.tell(QueuesHeld("c0", ()))

    assert isinstance(given_back, QueueGivenBack)
    assert (given_back.told, given_back.worked_until) == (0, until)


def test_what_a_consumer_does_after_it_gave_up_a_queue_counts_until_its_lock_goes() -> (
    None
):
    walked = Walked(messages=3)
    in_order = replace(C0, is_orderly=True)
    walked.tell(ConsumerBegan(in_order), LocksAnswered("c0", "g", (("T0", 0),), ()))
    walked.tell(OffsetRead(AT_C0, 0), PullSent(AT_C0, 0, -1), pulled(0, 3))
    assert not walked.tell(QueuesHeld("c0", ()))
    walked.tell(consumed(0), OffsetSent(AT_C0, 0, 0))
    (given_back,) = walked.tell(LocksReturned("c0", "g", (("T0", 0),)))

    assert isinstance(given_back, QueueGivenBack)
    assert (given_back.told, given_back.worked_until) == (0, 1)
    assert walked.known.consumption.leaving == {}


@pytest.mark.parametrize(("told_ms", "is_asked"), [(60_000, True), (60_001, False)])
def test_whose_lock_ran_out_need_not_tell(told_ms: int, is_asked: bool) -> None:
    locks = Locks()
    locks.granted(AT_C0, Lock("c0", 0, 0))

    assert locks.is_kept(AT_C0, told_ms) is is_asked


@pytest.mark.parametrize("life", [1, 2])
def test_only_who_read_the_queue_in_this_life_is_believed_at_once(life: int) -> None:
    walked = Walked(messages=3)
    walked.tell(ConsumerBegan(C0), OffsetRead(AT_C0, 0), PullSent(AT_C0, 0, -1))
    walked.tell(pulled(0, 3))
    walked.known.consumption.life = life
    told = walked.tell(OffsetSent(AT_C0, 0, 0))

    assert any(isinstance(each, ConsumerCommitted) for each in told) is (life == 1)


@pytest.mark.parametrize(("kept", "told"), [(-2, 0), (0, 0), (-1, -1)])
def test_a_beginning_that_a_broker_answers_counts_if_it_keeps_it(
    kept: int, told: int
) -> None:
    walked = Walked(messages=3)
    moments = walked.tell(
        ConsumerBegan(C0), OffsetRead(AT_C0, 0, kept), PullSent(AT_C0, 0, -1)
    )
    (anew,) = [each for each in moments if isinstance(each, QueueBegunAnew)]

    assert anew.told == told
    assert walked.known.progress.of(KEY) == ({-1, 0} if kept == 0 else {-1})


@pytest.mark.parametrize(
    ("waiting", "put_off_ms", "is_right"),
    [
        (("k",), 5000, False),
        (("k",), None, False),
        (("k",), 4999, True),
        ((), 5000, True),
    ],
)
def test_what_was_put_off_is_taken_up_within_five_seconds(
    waiting: tuple[str, ...], put_off_ms: int | None, is_right: bool
) -> None:
    found = nothing_that_waits_is_forgotten.violations(AT_C0, waiting, put_off_ms)

    assert bool(found) is not is_right


def test_con_20_wants_a_queue_again_after_its_pause() -> None:
    law = nothing_that_waits_is_forgotten

    assert law.violations(AT_C0, ("a",), 9, 10) == []
    assert len(law.violations(AT_C0, ("a",), 10, 10)) == 1


@pytest.mark.parametrize(
    ("at_ms", "is_lasting"), [(0, False), (1, True), (29_999, True), (30_000, False)]
)
def test_a_lease_lasts_from_after_it_was_told_for_half_a_minute(
    at_ms: int, is_lasting: bool
) -> None:
    locks = Locks()
    locks.granted(AT_C0, Lock("c0", 0, 0))

    assert locks.is_lasting(AT_C0, at_ms) is is_lasting
