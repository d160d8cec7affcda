"""Each call of one op fails in its turn: how many there are, and what it finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.explore.failures import each_failure
from models.observations import Armed, Interrupted
from models.ops import DiskFault, During, PutMessage, Restart, RunService, Shutdown
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
def test_programs_end_with_a_failing_call_of_a_plain_op(name: str) -> None:
    for number in range(20):
        program = failing_for(SCENARIOS[name], 3, number)
        assert failing_for(SCENARIOS[name], 3, number) == program

        last = program.ops[-1]
        assert isinstance(last, During)
        assert isinstance(last.event, DiskFault)
        assert not isinstance(last.op, During)
