"""Neighbours: what stays of a program, what changes, and that nothing else decides."""

from __future__ import annotations

import pytest

from crashmq.models.ops import OP_CLASSES, During, Together
from crashmq.models.program import Program
from crashmq.models.program_json import from_json, to_json
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.neighbours import OPS_MAX, neighbour_of
from crashmq.scenarios.programs.workload import program_for

NUMBERS = range(60)


def neighbours(name: str) -> tuple[Program, list[Program]]:
    scenario = SCENARIOS[name]
    program = program_for(scenario, 7, 3)
    return program, [neighbour_of(program, scenario, 7, number) for number in NUMBERS]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_neighbour_is_a_program_and_comes_again(name: str) -> None:
    program, found = neighbours(name)

    assert found == neighbours(name)[1]
    for one in found:
        assert from_json(to_json(one)) == one
        assert 0 < len(one.ops) <= OPS_MAX
        assert one.setup in (program.setup, *SCENARIOS[name].setups)
    assert len({repr(one) for one in found}) > len(found) // 2


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_most_of_a_program_is_in_its_neighbours(name: str) -> None:
    program, found = neighbours(name)

    kept = [sum(op in one.ops for op in program.ops) for one in found]

    assert sorted(kept)[len(kept) // 2] >= len(program.ops) // 2
    assert any(len(one.ops) > len(program.ops) for one in found)
    assert any(len(one.ops) < len(program.ops) for one in found)


def test_a_neighbour_of_nothing_is_something() -> None:
    scenario = SCENARIOS["power_loss"]
    nothing = Program(scenario.setups[0], ())

    assert any(neighbour_of(nothing, scenario, 1, n).ops for n in NUMBERS)


@pytest.mark.slow
def test_what_is_interrupted_was_a_single_op() -> None:
    """Else a program would nest deeper than case files may."""
    for name in SCENARIOS:
        for one in neighbours(name)[1]:
            for op in one.ops:
                assert depth_of(op) <= 3, op


def depth_of(op: object) -> int:
    if isinstance(op, During):
        return 1 + max(depth_of(op.op), depth_of(op.event))
    if isinstance(op, Together):
        return 1 + max(map(depth_of, op.ops))
    return 1 if isinstance(op, OP_CLASSES) else 0
