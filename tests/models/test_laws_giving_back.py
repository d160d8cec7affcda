"""Laws of what is given back, each shown what it must let pass and what it must not."""

from __future__ import annotations

from dataclasses import replace

from crashmq.models.files.message_delay_level import DEFAULT_LEVELS
from crashmq.models.files.record import SCHEDULE_TOPIC, Record
from crashmq.models.history import Consumed, OneQueue
from crashmq.models.knowledge.consumption import Failed
from crashmq.models.laws.giving_back import (
    NEVER,
    GivenBack,
    given_back_as_it_was,
    given_back_as_of_its_topic,
    given_back_for_its_tries,
    given_back_to_the_store,
    given_back_where_somebody_looks,
    sent_once_and_as_it_was,
    sent_to_its_retries_or_dead_letters,
    tried_again_in_its_time,
)
from crashmq.models.messages import MessageToPut, message_for
from crashmq.models.ops import PutMessage

OF_T0 = GivenBack(
    OneQueue("c0", "g", "T0", 1),
    "key",
    "T0",
    1,
    levels=frozenset({4}),
)
DEAD = OF_T0._replace(levels=frozenset({NEVER}))


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

    assert not judge(OF_T0, [waiting(4)], 1)
    assert not judge(OF_T0, [waiting(4, queue_id=1)], 2)
    assert not judge(DEAD, [copy("%DLQ%g")], 1)
    assert judge(OF_T0, [waiting(4, queue_id=1)], 1)
    assert judge(DEAD, [copy("%DLQ%g", 1)], 2)


def test_what_another_group_is_given_is_not_looked_at() -> None:
    other = copy("%DLQ%h", 7, was="T9")

    assert not given_back_where_somebody_looks.violations(OF_T0, [other], 1)
    assert not given_back_as_of_its_topic.violations(OF_T0, [other])
    assert not given_back_for_its_tries.violations(OF_T0, [other])


def test_what_is_given_back_says_of_which_topic_it_was() -> None:
    judge = given_back_as_of_its_topic.violations

    assert not judge(OF_T0, [waiting(4)])
    assert judge(OF_T0, [copy("%RETRY%g", was="%RETRY%g")])
    assert judge(OF_T0, [copy("%RETRY%g", was="")])


def had_at(phy_offset: int, properties: str) -> Record:
    """The message of ``copy`` as its consumer had it, from T0."""
    put = message_for(PutMessage("T0", 0, 16), 0, 0, 0)
    return Record(
        phy_offset,
        size=200,
        topic="T0",
        queue_id=0,
        queue_offset=0,
        tags_code=0,
        store_timestamp=0,
        sys_flag=put.sys_flag,
        body=put.body,
        properties_raw=properties.encode(),
        magic=0,
        body_crc=0,
        flag=put.flag,
        born_timestamp=put.born_timestamp,
        born_host=put.born_host,
        store_host=put.store_host,
        reconsume_times=0,
        prepared_transaction_offset=0,
    )


def test_what_is_given_back_is_what_its_consumer_had() -> None:
    judge = given_back_as_it_was.violations
    unique_key = waiting(4).unique_key
    had = had_at(255, f"UNIQ_KEY\x01{unique_key}\x02a\x01b\x02DELAY\x013\x02")
    again = had._replace(
        phy_offset=700,
        properties_raw=b"ORIGIN_MESSAGE_ID\x01FF\x02" + had.properties_raw,
    )
    origin = f"{had.store_host.hex()}{255:016x}".upper()
    told = f"RETRY_TOPIC=T0;ORIGIN_MESSAGE_ID={origin};a=b"
    right = replace(waiting(4), user_properties=told)

    assert not judge(OF_T0, had, [right])
    assert not judge(OF_T0, had, [copy("%DLQ%h")])  # of another group
    assert not judge(
        OF_T0, again, [replace(right, user_properties=told.replace(origin, "FF"))]
    )
    assert judge(OF_T0, again, [right])
    assert judge(OF_T0, had, [replace(right, user_properties=f"{told};c=d")])
    assert judge(OF_T0, had, [replace(right, body=b"")])
    assert judge(OF_T0, had, [replace(right, flag=1)])
    assert judge(OF_T0, had, [replace(right, born_timestamp=1)])


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
    failed = Failed("key", 4, at_ms=10_000, tries=0, waits_ms=5_000)

    def broken(at_ms: int) -> int:
        judge = tried_again_in_its_time.violations
        return len(judge(given, failed, at_ms))

    assert not broken(15_000)
    assert broken(14_999)
    assert not broken(9_999), "the clock was set back, so the wait is over"


SENT = replace(copy("%RETRY%g"), reconsume_times=3)
LETTER = replace(SENT, topic="%DLQ%g")


def test_a_sent_message_is_a_dead_letter_if_it_has_to_be_and_no_other_is() -> None:
    judge = sent_to_its_retries_or_dead_letters.violations

    assert not judge(SENT, [SENT], is_dead=False)
    assert not judge(SENT, [LETTER], is_dead=True)
    assert not judge(SENT, [waiting(4)], is_dead=False)
    assert judge(SENT, [LETTER], is_dead=False)
    assert judge(SENT, [SENT], is_dead=True)
    assert judge(SENT, [waiting(4)], is_dead=True)
    assert judge(SENT, [replace(SENT, queue_id=1)], is_dead=False)
    assert judge(SENT, [replace(LETTER, queue_id=1)], is_dead=True)


def test_a_sent_message_is_stored_once_and_as_it_was_sent() -> None:
    judge = sent_once_and_as_it_was.violations
    delayed = replace(SENT, delay_level=2)

    assert not judge(SENT, [SENT], DEFAULT_LEVELS)
    assert not judge(SENT, [LETTER], None)
    assert not judge(delayed, [delayed.scheduled()], DEFAULT_LEVELS)
    assert not judge(delayed, [delayed], None)
    assert not judge(delayed, [LETTER], DEFAULT_LEVELS)
    assert judge(SENT, [], None)
    assert judge(SENT, [SENT, SENT], None)
    assert judge(SENT, [replace(SENT, body=b"other")], None)
    assert judge(SENT, [replace(LETTER, user_properties="")], None)
    assert judge(delayed, [delayed], DEFAULT_LEVELS)
    assert judge(delayed, [replace(LETTER, delay_level=2)], None)


def test_only_what_is_sent_to_a_retry_topic_may_lie_elsewhere() -> None:
    judge = sent_once_and_as_it_was.violations
    sent = copy("T0", 1)

    assert not judge(sent, [sent], DEFAULT_LEVELS)
    assert judge(sent, [replace(sent, queue_id=0)], DEFAULT_LEVELS)
    assert judge(sent, [replace(sent, topic="%DLQ%T0", queue_id=0)], DEFAULT_LEVELS)
    assert not judge(LETTER, [LETTER], DEFAULT_LEVELS)


def test_a_refusal_is_the_stores_or_of_a_group_that_takes_nothing_back() -> None:
    judge = given_back_to_the_store.violations
    queue = OneQueue("c0", "g", "T0", 1)

    for code, is_put, has_retries, is_right in (
        ("SYSTEM_ERROR", False, True, False),
        ("SYSTEM_ERROR", True, True, True),
        ("SUBSCRIPTION_GROUP_NOT_EXIST", False, True, True),
        ("SYSTEM_ERROR", False, False, True),
        ("SUCCESS", True, False, False),
    ):
        found = judge(queue, code, is_put=is_put, has_retries=has_retries)
        assert bool(found) is not is_right, code
