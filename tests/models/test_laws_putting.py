from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.models.laws.putting import (
    batch_is_put_as_one,
    put_is_told_its_id,
    put_takes_the_next_place,
    puts_lie_in_the_order_they_were_made,
    who_waits_is_answered,
)
from crashmq.models.laws.run import rounds_tell_what_they_did
from crashmq.models.laws.statistics import statistics_count_what_was_put
from crashmq.models.messages import MessageToPut, batch_for
from crashmq.models.observations import Positions, Put, Statistics
from crashmq.models.ops import Op, PutBatch, PutMessage
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome


@pytest.mark.parametrize(
    ("keys", "status"), [("k" * 32_000, "PUT_OK"), ("k" * 32_760, "PROPERTIES")]
)
def test_properties_are_refused_from_their_own_limit_on(keys: str, status: str) -> None:
    setup = Setup(log_file_size=1 << 16)

    result = run_program(Program(setup, (PutMessage("T0", 0, 16, keys=keys),)))

    answer = next(step.observation for step in result.trace if step.number == 0)
    assert result.outcome is Outcome.PASSED, result.message
    assert isinstance(answer, Put)
    assert answer.status.startswith(status)


def test_a_put_beside_its_place_breaks_put_1() -> None:
    answer = Put("PUT_OK", 4096, 131, 3)

    assert not put_takes_the_next_place.violations(answer, 131, 4096, 3, 131)
    assert not put_takes_the_next_place.violations(answer, 131, -1, 3, 131)
    assert put_takes_the_next_place.violations(answer, 131, 131, 3, 131)
    assert put_takes_the_next_place.violations(answer, 131, 4096, 2, 131)
    assert put_takes_the_next_place.violations(answer, 131, 4096, 3, 130)


def batch(*sizes: int) -> tuple[list[MessageToPut], Put]:
    messages = batch_for(PutBatch("T0", 0, sizes), 1, 2, 0)
    total = sum(message.record_size for message in messages)
    host = "7F00000100002AA0"
    ends = accumulate([message.record_size for message in messages], initial=0)
    ids = tuple(f"{host}{at:016X}" for at in [*ends][:-1])
    return messages, Put("PUT_OK", 0, total, 0, ids)


def test_a_batch_is_answered_as_its_messages_one_after_the_other() -> None:
    messages, answer = batch(10, 20, 30)

    def broken(seen: Put, setup: Setup) -> bool:
        return bool(
            batch_is_put_as_one.violations(messages, seen, setup, may_refuse=False)
        )

    assert not broken(answer, Setup())
    assert broken(replace(answer, size=answer.size - 1), Setup())
    assert broken(replace(answer, message_ids=answer.message_ids[:2]), Setup())
    assert broken(Put("MESSAGE_ILLEGAL"), Setup())
    assert not broken(Put("MESSAGE_ILLEGAL"), Setup(log_file_size=256))
    assert broken(answer, Setup(log_file_size=256))
    assert broken(replace(answer, phy_offset=4000), Setup())


@pytest.mark.parametrize(
    ("op", "setup", "status"),
    [
        (PutBatch("T0", 0, ()), Setup(), "MESSAGE_ILLEGAL"),
        (
            PutBatch("T0", 0, (600, 600)),
            Setup(max_message_size=1024),
            "MESSAGE_ILLEGAL",
        ),
        (PutBatch("T0", 0, (2000, 2000)), Setup(), "MESSAGE_ILLEGAL"),
        (PutBatch("T0", 0, (1,), "a" * 32_800), Setup(), "PROPERTIES_SIZE_EXCEEDED"),
        (PutBatch("T0", 0, (1,), "a\0"), Setup(), "MESSAGE_ILLEGAL"),
        (PutBatch("T0", 0, (0, 1), wait_store_ok=False), Setup(), "PUT_OK"),
        (PutBatch("T0", 0, (1, 2), keys="a b", properties="c=1"), Setup(), "PUT_OK"),
        *[
            (
                PutBatch("T0", 0, (1,), wait_store_ok=waits, properties_end=end),
                setup,
                "PUT_OK",
            )
            for waits in (True, False)
            for end in ("", "\x02x\x01\x02")
            for setup in (Setup(), Setup(prop_crc=True))
        ],
        (PutBatch("T0", 0, (1,), cut=1), Setup(), "MESSAGE_ILLEGAL"),
        (PutBatch("T0", 0, (1, 2), cut=21), Setup(), "MESSAGE_ILLEGAL"),
        (PutBatch("T0", 0, (1, 2), wrong="body"), Setup(), "MESSAGE_ILLEGAL"),
        (PutBatch("T0", 0, (1,), multi_dispatch="%LMQ%a"), Setup(), "PUT_OK"),
        (
            PutBatch("T0", 0, (1,), multi_dispatch="%LMQ%a"),
            Setup(multi_dispatch=True),
            "MESSAGE_ILLEGAL",
        ),
        (PutBatch("T0", 0, (1,), properties="INNER_NUM=2"), Setup(), "MESSAGE_ILLEGAL"),
        (
            PutMessage("T0", 0, 1, properties="INNER_MULTI_QUEUE_OFFSET=7"),
            Setup(),
            "MESSAGE_ILLEGAL",
        ),
        (PutMessage("t" * 255, 0, 1), Setup(), "PUT_OK"),
        (PutMessage("t" * 256, 0, 1), Setup(), "MESSAGE_ILLEGAL"),
        (PutMessage("T0", 0, 1, sys_flag=0x80), Setup(), "MESSAGE_ILLEGAL"),
        (PutMessage("T0", -1, 1), Setup(), "MESSAGE_ILLEGAL"),
        (PutMessage("T0", 2**31, 1), Setup(), "MESSAGE_ILLEGAL"),
        (PutMessage("T0", 2**31 - 1, 1), Setup(), "PUT_OK"),
        (PutMessage("T0", 0, 1, flag=2**31), Setup(), "MESSAGE_ILLEGAL"),
        (PutMessage("T0", 0, 1, flag=-(2**31)), Setup(), "PUT_OK"),
        (PutMessage("T0", 0, 1, reconsume_times=-1), Setup(), "MESSAGE_ILLEGAL"),
        (PutMessage("T0", 0, 1, multi_dispatch="foo"), Setup(), "PUT_OK"),
        (
            PutMessage("T0", 0, 1, multi_dispatch="foo"),
            Setup(multi_dispatch=True),
            "MESSAGE_ILLEGAL",
        ),
    ],
)
def test_the_model_knows_which_puts_are_refused_and_why(
    op: Op, setup: Setup, status: str
) -> None:
    result = run_program(Program(setup, (op,)))

    answer = next(step.observation for step in result.trace if step.number == 0)
    assert result.outcome is Outcome.PASSED, result.message
    assert isinstance(answer, Put)
    assert answer.status == status


def test_statistics_that_miss_a_message_break_st_1() -> None:
    seen = Statistics((("T0", 2, 262), ("T1", 1, 131)), (3, 0))
    expected = {"T0": (2, 262), "T1": (1, 131)}

    assert not statistics_count_what_was_put.violations(seen, expected, 3)
    assert statistics_count_what_was_put.violations(seen, expected, 2)
    assert statistics_count_what_was_put.violations(seen, {"T0": (2, 262)}, 3)
    assert statistics_count_what_was_put.violations(seen, {**expected, "T2": (1, 1)}, 3)


def test_a_put_in_front_of_one_that_was_answered_before_it_began_breaks_put_4() -> None:
    first, second = Put("PUT_OK", 131, 131, 1), Put("PUT_OK", 0, 131, 0)
    law = puts_lie_in_the_order_they_were_made

    assert law.violations([(first, (1, 2)), (second, (3, 4))])
    assert not law.violations([(first, (1, 3)), (second, (2, 4))])
    assert not law.violations([(second, (1, 2)), (first, (3, 4))])
    assert not law.violations([(first, (1, 2)), (Put("MESSAGE_ILLEGAL"), (3, 4))])


def test_a_message_must_be_told_the_id_of_its_place() -> None:
    message = MessageToPut("T0", 0, b"body", "", "", "A", True)
    told = Put("PUT_OK", 256, 100, 0, ("7F00000100002AA00000000000000100",))

    assert put_is_told_its_id.violations(message, told) == []
    assert put_is_told_its_id.violations(message, Put("MESSAGE_ILLEGAL")) == []
    for wrong in (Put("PUT_OK", 257, 100, 0, told.message_ids), Put("PUT_OK", 256)):
        assert len(put_is_told_its_id.violations(message, wrong)) == 1


@pytest.mark.parametrize(
    ("took_ms", "at"),
    [(0, 0), (1, 1), (9, 1), (10, 2), (4999, 10), (5000, 11), (10_000, 12)],
)
def test_a_put_must_be_counted_in_the_range_of_its_time(took_ms: int, at: int) -> None:
    law, times = statistics_count_what_was_put, [0] * 13
    times[at] = 1

    assert law.violations(Statistics((), tuple(times)), {}, 1, {took_ms: 1}) == []
    times[at], times[at - 1] = 0, 1
    assert len(law.violations(Statistics((), tuple(times)), {}, 1, {took_ms: 1})) == 1


def test_a_round_must_say_what_it_has_done() -> None:
    law, before = rounds_tell_what_they_did, Positions(0, 900, 100, 100, 900)
    dispatched = replace(before, reput_from_offset=900)
    flushed = replace(before, flushed_where=900)
    cleaned = replace(before, min_phy_offset=200)

    assert law.violations("reput", 800, before, dispatched, 100) == []
    assert law.violations("flush_commit_log", 3, before, flushed, 100) == []
    assert law.violations("clean_commit_log", 2, before, cleaned, 100) == []
    assert len(law.violations("reput", 0, before, dispatched, 100)) == 1
    assert len(law.violations("flush_commit_log", 0, before, flushed, 100)) == 1
    assert len(law.violations("flush_commit_log", 1, before, before, 100)) == 1
    assert len(law.violations("commit", 1, before, before, 100)) == 1
    assert len(law.violations("clean_commit_log", 1, before, cleaned, 100)) == 1


@pytest.mark.parametrize(
    ("waited_ms", "stalled_ms", "broken"),
    [(0, 0, 0), (4999, 0, 0), (5000, 0, 1), (5000, 5000, 0), (6000, 4999, 1)],
)
def test_a_put_waits_its_time_out_only_for_a_disk_that_stands_still(
    waited_ms: int, stalled_ms: int, broken: int
) -> None:
    assert len(who_waits_is_answered.violations(waited_ms, stalled_ms)) == broken
