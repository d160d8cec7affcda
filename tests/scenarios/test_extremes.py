"""Odd values: one field anywhere in its range, which a case file can hold."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from crashmq.harness.failures.case_bounds import check_program
from crashmq.models.ops import (
    LookMessage,
    Op,
    PullMessage,
    PullThroughBroker,
    PutBatch,
    PutMessage,
    QueryMessage,
    SearchOffset,
    SendMessage,
)
from crashmq.models.program import Program, Setup
from crashmq.scenarios.programs.chance import SeededChance
from crashmq.scenarios.programs.extremes import SMALL_MAX, has_fields, with_an_odd_value

OPS: tuple[Op, ...] = (
    PutMessage("T0", 0, 5),
    PutBatch("T0", 0, (5, 5)),
    SendMessage("T0", 0, 5),
    PullMessage("T0", 0, 3),
    PullThroughBroker("g0", "T0", 0, 3),
    LookMessage(131),
    SearchOffset("T0", 0, 5),
    QueryMessage("T0", "a"),
)
DRAWN = 400


def odd(op: Op, *, keeps_queue: bool = False) -> list[Op]:
    return [
        with_an_odd_value(op, SeededChance(1, number), keeps_queue=keeps_queue)
        for number in range(DRAWN)
    ]


def changed(op: Op, other: Op) -> set[str]:
    names = [field.name for field in fields(op)]
    return {name for name in names if getattr(op, name) != getattr(other, name)}


@pytest.mark.parametrize("op", OPS, ids=lambda op: type(op).__name__)
def test_one_field_is_odd_and_a_case_file_can_hold_it(op: Op) -> None:
    assert has_fields(op)
    found = odd(op)

    assert all(len(changed(op, one)) <= 1 for one in found)
    for one in found:
        check_program(Program(Setup(), (one,)))


def test_numbers_are_below_zero_small_and_beyond_their_field() -> None:
    flags = {
        one.flag for one in odd(PutMessage("T0", 0, 5)) if isinstance(one, PutMessage)
    }

    assert min(flags) < -(1 << 31)
    assert max(flags) > 1 << 31
    assert flags & set(range(SMALL_MAX))


def test_the_queue_stays_where_a_new_one_could_be_missed() -> None:
    put = PutMessage("T0", 7, 5)

    kept = odd(put, keeps_queue=True)

    assert all(
        replace(one, queue_id=7) == one for one in kept if isinstance(one, PutMessage)
    )
    assert any(changed(put, one) == {"queue_id"} for one in odd(put))
