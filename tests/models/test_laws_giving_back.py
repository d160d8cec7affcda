"""Laws of what is given back, each shown what it must let pass and what it must not."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.files.record import SCHEDULE_TOPIC
from crashmq.models.history import Consumed, OneQueue
from crashmq.models.knowledge.consumption import Failed
from crashmq.models.laws.giving_back import (
    GivenBack,
    given_back_as_of_its_topic,
    given_back_for_its_tries,
    given_back_where_somebody_looks,
    tried_again_in_its_time,
)
from crashmq.models.messages import MessageToPut, message_for
from crashmq.models.ops import PutMessage

OF_T0 = GivenBack(
    OneQueue("c0", "g", "T0", 1),
    "key",
    "T0",
    1,
    is_for_good=False,
    levels=frozenset({4}),
)
DEAD = OF_T0._replace(is_for_good=True)


def copy(topic: str, queue_id: int = 0, was: str = "T0") -> MessageToPut:
    put = message_for(PutMessage(topic, queue_id, 16), 0, 0, 0)
    return replace(put, user_properties=f"RETRY_TOPIC={was}" if was else "")


def waiting(level: int, topic: str = "%RETRY%g", queue_id: int = 0) -> MessageToPut:
    return replace(
        copy(SCHEDULE_TOPIC, level - 1),
        delay_level=level,
        real_topic=topic,
        real_queue_id=queue_id,
    )


def test_what_is_given_back_goes_to_a_queue_that_is_there() -> None:
    judge = given_back_where_somebody_looks.violations

    assert not judge(OF_T0, [waiting(4)])
    assert not judge(DEAD, [copy("%DLQ%g")])
    assert judge(OF_T0, [waiting(4, queue_id=1)])
    assert judge(DEAD, [copy("%DLQ%g", 1)])


def test_what_another_group_is_given_is_not_looked_at() -> None:
    other = copy("%DLQ%h", 7, was="T9")

    assert not given_back_where_somebody_looks.violations(OF_T0, [other])
    assert not given_back_as_of_its_topic.violations(OF_T0, [other])
    assert not given_back_for_its_tries.violations(OF_T0, [other])


def test_what_is_given_back_says_of_which_topic_it_was() -> None:
    judge = given_back_as_of_its_topic.violations

    assert not judge(OF_T0, [waiting(4)])
    assert judge(OF_T0, [copy("%RETRY%g", was="%RETRY%g")])
    assert judge(OF_T0, [copy("%RETRY%g", was="")])


def test_what_is_given_back_waits_its_level_and_is_dead_in_the_end() -> None:
    judge = given_back_for_its_tries.violations

    assert not judge(OF_T0, [waiting(4)])
    assert judge(OF_T0, [waiting(3)])
    assert judge(OF_T0, [copy("%RETRY%g")])
    assert judge(OF_T0, [copy("%DLQ%g")])
    assert not judge(DEAD, [copy("%DLQ%g")])
    assert judge(DEAD, [waiting(4)])


def test_what_may_have_been_swept_may_wait_the_first_level() -> None:
    perhaps_swept = OF_T0._replace(levels=frozenset({3, 4}))
    judge = given_back_for_its_tries.violations

    assert not judge(perhaps_swept, [waiting(3)])
    assert not judge(perhaps_swept, [waiting(4)])
    assert judge(perhaps_swept, [waiting(5)])


def test_what_could_not_be_given_back_comes_again_after_five_seconds() -> None:
    given = Consumed(OneQueue("c0", "g", "T0", 1), 4, b"", "success", tries=1)
    failed = Failed("key", 4, at_ms=10_000, tries=0)

    def broken(at_ms: int) -> int:
        judge = tried_again_in_its_time.violations
        return len(judge(given, failed, at_ms, is_orderly=False))

    assert not broken(15_000)
    assert broken(14_999)
    assert not broken(9_999), "the clock was set back, so the wait is over"
