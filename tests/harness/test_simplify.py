"""Variants are simpler, legal, and come to an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashmq.harness.failures.simplify import (
    simpler_everywhere,
    simpler_ops,
    simpler_setups,
    smaller_numbers,
    unwrapped,
)
from crashmq.models.ops import (
    UNIT_ORDER,
    AdvanceClock,
    Crash,
    Damage,
    DiskFault,
    During,
    KeptUnit,
    Op,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Survivors,
)
from crashmq.models.program import Program, Setup

CRASH = Crash("power_loss", Survivors("hashed", 77), 511)
KEPT = (KeptUnit("commitlog/0", 3, 9), KeptUnit("", UNIT_ORDER, 2))
OPS: tuple[Op, ...] = (
    PutMessage("topic", 3, 900, tags="TagA", keys="k", wait_store_ok=False),
    PullMessage("topic", -1, -7, 32),
    RunService("reput", 9),
    AdvanceClock(1000),
    AdvanceClock(-1000),
    During(RunService("reput", 2), 40, CRASH),
    During(Shutdown(), 1, Crash("power_loss", Survivors("units", units=KEPT))),
    During(
        PutMessage("T1", 0, 5), 1, During(Restart(), 7, DiskFault("sync", "EIO", 3))
    ),
    Damage("commitlog[-3]", "zero", 100, 64),
    Damage("checkpoint", "delete", 5, 5),
    Shutdown(),
)


@pytest.mark.slow
@pytest.mark.parametrize("variants", [simpler_ops, unwrapped])
@pytest.mark.parametrize("op", OPS, ids=lambda op: type(op).__name__)
def test_taking_the_last_variant_each_time_comes_to_an_end(
    op: Op, variants: Callable[[Op], Iterator[Op]]
) -> None:
    seen = {op}

    while found := list(variants(op)):
        op = found[-1]
        assert op not in seen
        seen.add(op)


@pytest.mark.parametrize("op", OPS, ids=lambda op: type(op).__name__)
def test_taking_the_first_variant_each_time_is_quick(op: Op) -> None:
    for _ in range(40):
        op = next(simpler_ops(op), op)

    assert list(simpler_ops(op)) == []


def test_an_op_with_an_event_is_unwrapped_both_ways() -> None:
    nested = During(Restart(), 7, CRASH)
    op = During(PutMessage("T0", 0, 1), 1, nested)

    assert list(unwrapped(op)) == [
        PutMessage("T0", 0, 1),
        nested,
        During(PutMessage("T0", 0, 1), 1, Restart()),
    ]


def test_one_argument_is_made_simplest_in_all_ops_at_once() -> None:
    program = Program(Setup(), OPS)

    first = next(simpler_everywhere(program))

    assert {op.topic for op in first.ops if isinstance(op, PutMessage)} == {"T0"}
    assert len(first.ops) == len(OPS)


def test_all_of_the_setup_is_tried_before_its_parts() -> None:
    setup = Setup(log_file_size=8192, flush_mode="SYNC_FLUSH")

    assert list(simpler_setups(setup)) == [
        Setup(),
        Setup(flush_mode="SYNC_FLUSH"),
        Setup(log_file_size=8192),
    ]
    assert list(simpler_setups(Setup())) == []


@given(value=st.integers(-(2**40), 2**40), least=st.sampled_from([-1, 0, 1]))
def test_smaller_numbers_go_from_the_least_towards_the_value(
    value: int, least: int
) -> None:
    numbers = list(smaller_numbers(value, least))

    assert numbers[:1] == ([] if value == least else [least])
    assert numbers == sorted(numbers, reverse=value < least)
    assert value not in numbers
