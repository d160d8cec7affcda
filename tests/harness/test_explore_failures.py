"""Each call of one op fails in its turn: how many there are, and what it finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.explore.failures import each_failure
from models.observations import Armed, Interrupted
from models.ops import (
    DiskFault,
    During,
    Op,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from models.program import Program, Setup
from scenarios.catalogue import SCENARIOS
from scenarios.failing import failing_for
from scenarios.mutants import MUTANTS
from scenarios.mutation import applied

PUTS = (PutMessage("T0", 0, 16), PutMessage("T0", 0, 16), RunService("reput", 2))


def start_that_meets(fault: DiskFault, setup: Setup) -> Program:
    return Program(setup, (*PUTS, Shutdown(), During(Restart(), 1, fault)))


def failed(program: Program) -> Iterator[int]:
    """Of each run of a sweep, how many calls failed."""
    for _, result in each_failure(program, "latent_errors", 60):
        last = len(program.ops) - 1
        seen = next(step for step in result.trace if step.number == last).observation
        assert isinstance(seen, Interrupted)
        assert isinstance(seen.event, Armed)
        yield seen.event.failed


def test_a_call_that_fails_once_is_each_in_turn_until_there_is_none() -> None:
    counts = [*failed(start_that_meets(DiskFault("read", "EIO"), Setup()))]

    assert len(counts) > 2
    assert counts == [1] * (len(counts) - 1) + [0]


def test_runs_end_where_no_more_are_asked_for() -> None:
    program = start_that_meets(DiskFault("read", "EIO"), Setup())

    assert len([*each_failure(program, "latent_errors", 2)]) == 2


def test_reads_that_fail_from_some_call_on_find_a_start_that_changes_its_mind() -> None:
    """Only a failure that begins between the two readings of a unit shows it."""
    program = start_that_meets(
        DiskFault("read", "EIO", lasts=True), Setup(queue_ext_size=100)
    )
    with applied(MUTANTS["E64"]):
        found = [
            result.invariant for _, result in each_failure(program, "latent_errors", 60)
        ]

    assert {"CQ-4", "CQ-1"} & {*found}
    assert found[-1] == ""


@pytest.mark.parametrize("name", SCENARIOS)
def test_programs_have_a_failing_call_of_a_plain_op_to_be_swept(name: str) -> None:
    for number in range(20):
        program = failing_for(SCENARIOS[name], 3, number)
        assert failing_for(SCENARIOS[name], 3, number) == program

        faults = [
            op
            for op in program.ops
            if isinstance(op, During) and isinstance(op.event, DiskFault)
        ]
        assert faults
        assert not isinstance(faults[-1].op, During)


def test_some_programs_ask_again_and_some_crash_behind_the_failure() -> None:
    programs = [failing_for(SCENARIOS["power_loss"], 3, number) for number in range(60)]
    tails = [program.ops[_fault_of(program) + 1 :] for program in programs]
    asked_again = [
        program.ops[_fault_of(program) + 1 :][:1] == (_failing(program),)
        for program in programs
    ]

    assert {len(tail) for tail in tails} >= {0, 1, 2}
    assert any(asked_again)
    assert any(isinstance(op, During) for tail in tails for op in tail)


def _fault_of(program: Program) -> int:
    return max(
        number
        for number, op in enumerate(program.ops)
        if isinstance(op, During) and isinstance(op.event, DiskFault)
    )


def _failing(program: Program) -> Op:
    op = program.ops[_fault_of(program)]
    assert isinstance(op, During)
    return op.op
