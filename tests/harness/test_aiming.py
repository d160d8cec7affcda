"""Programs whose damage is aimed by what their store holds, and damage undone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import takewhile
from typing import Any
from unittest.mock import patch

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.searches.aiming import (
    aimed_until_lost,
    perhaps_aimed,
    with_aim,
)
from crashmq.models.observations import RESTORED, Refused, Skipped, Started
from crashmq.models.ops import (
    Damage,
    DamageKind,
    Op,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.chance import SeededChance
from crashmq.scenarios.programs.workload import program_for

PUT = PutMessage("T0", 0, 16)
AIMED_TWICE = 18  # the number of a program of which two damages at least get an aim
STORED = (PUT, PUT, RunService("reput"), Shutdown())
RESTORE = Damage("", "restore")


def aimed(*ops: Op, run: int = 1) -> Program:
    program = Program(Setup(), (*STORED, *ops))
    return with_aim(program, len(program.ops), SeededChance(run, 1))


def seen_of(*ops: Op) -> list[object]:
    """What was seen of ops after a stop, in an episode that keeps every law."""
    result = run_program(Program(Setup(), (*STORED, *ops)))
    assert result.outcome is Outcome.PASSED, result.message
    first = len(STORED)
    return [
        step.observation
        for step in result.trace
        if first <= step.number < first + len(ops)
    ]


def test_damage_moves_to_what_the_store_holds_and_all_else_stays() -> None:
    flip = Damage("commitlog[0]", "flip", 4000, 1)

    programs = [aimed(flip, Restart(), PUT, run=run) for run in range(20)]

    for program in programs:
        assert program.ops[:4] == STORED
        assert program.ops[-2:] == (Restart(), PUT)
        assert any(isinstance(op, Damage) for op in program.ops)
    assert flip not in {op for program in programs for op in program.ops}


def test_what_a_start_refused_is_put_back_before_more_is_tried() -> None:
    programs = [aimed(Damage("commitlog[0]", "flip"), run=run) for run in range(20)]
    tries = [program for program in programs if RESTORE in program.ops]

    assert tries
    for program in tries:
        for number, op in enumerate(program.ops):
            if op == RESTORE:
                assert program.ops[number - 1] == Restart()
        assert run_program(program).outcome is Outcome.PASSED


def test_a_store_that_is_up_is_not_aimed_at() -> None:
    program = Program(Setup(), (PUT, Damage("commitlog[0]", "flip", 4000, 1)))

    assert with_aim(program, 2, SeededChance(1, 1)) == program


def test_half_of_the_programs_with_damage_are_aimed_and_always_alike() -> None:
    scenario = SCENARIOS["bit_rot"]
    plain = [program_for(scenario, 5, number) for number in range(40)]
    again = [perhaps_aimed(p, 5, number) for number, p in enumerate(plain)]
    changed = [one for one, other in zip(again, plain, strict=True) if one != other]

    assert 5 <= len(changed) <= 35
    assert again == [perhaps_aimed(p, 5, number) for number, p in enumerate(plain)]
    calm = program_for(SCENARIOS["clean_restart"], 5, 0)
    assert all(perhaps_aimed(calm, 5, number) is calm for number in range(9))


def test_a_store_starts_again_once_what_was_damaged_is_put_back() -> None:
    kinds: tuple[DamageKind, ...]
    kinds = ("flip", "zero", "truncate", "repeat", "delete", "unreadable")
    for kind in kinds:
        broken = Damage("commitlog[0]", kind, 8, 4)
        _, refused, done, started = seen_of(broken, Restart(), RESTORE, Restart())

        assert isinstance(refused, Refused), kind
        assert done == RESTORED, kind
        assert isinstance(started, Started), kind


def test_nothing_is_put_back_once_a_start_has_changed_something() -> None:
    rot = Damage("consumequeue[0]", "flip", 0, 1)

    *_, undone = seen_of(rot, Restart(), Shutdown(), RESTORE)

    assert isinstance(undone, Skipped)


def test_what_was_damaged_before_and_stays_is_damage_still() -> None:
    """The queue was mended by a start; then the log rots, and is put back."""
    rot = Damage("commitlog[0]", "flip", 12, 1)
    lost = Damage("consumequeue[0]", "delete")

    _, started, *_, again = seen_of(
        lost, Restart(), Shutdown(), rot, Restart(), RESTORE, Restart()
    )

    assert isinstance(started, Started)
    assert isinstance(again, Started)


def drawn(number: int) -> Program:
    return program_for(SCENARIOS["bit_rot"], 5, number)


@pytest.mark.slow
def test_an_episode_that_was_lost_is_aimed_as_it_was() -> None:
    for number in range(12):
        program = drawn(number)
        found = aimed_until_lost(program, 5, number, nullcontext, 60.0)
        assert found == perhaps_aimed(program, 5, number)


@pytest.mark.slow
def test_a_program_that_hangs_while_it_is_aimed_keeps_the_aim_it_got() -> None:
    program = drawn(AIMED_TWICE)
    whole = perhaps_aimed(program, 5, AIMED_TWICE)

    @contextmanager
    def hanging_at_the_second() -> Iterator[None]:
        aim: Callable[..., Sequence[Damage]] = with_aim.__globals__["aimed"]
        met = set()

        def hangs(op: Damage, *args: Any) -> Sequence[Damage]:
            met.add(id(op))
            while len(met) > 1:
                time.sleep(1)
            return aim(op, *args)

        with patch.dict(with_aim.__globals__, aimed=hangs):
            yield

    found = aimed_until_lost(
        program, 5, AIMED_TWICE, hanging_at_the_second, timeout_s=0.5
    )

    pairs = zip(found.ops, whole.ops, strict=False)
    alike = [one for one, other in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    assert found.ops[len(alike) :] == program.ops[len(alike) - len(found.ops) :]
    assert not set(alike) <= {*program.ops}
