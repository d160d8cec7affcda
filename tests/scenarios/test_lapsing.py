"""Clocks about the end of a time limit, with looks on both sides of it."""

from __future__ import annotations

from crashmq.models.ops import AdvanceClock, RunService
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.chance import SeededChance
from crashmq.scenarios.programs.lapsing import NEAR_MS, lapse, limits_of
from crashmq.scenarios.programs.twists import twisted
from crashmq.scenarios.programs.workload import program_for

LIMIT_MS = 86_400_000
LOOK = RunService("persist_consumer_filter")


def clocks(number: int) -> list[int]:
    """What the clock has gone through at each look."""
    passed, found = 0, []
    for op in lapse(SeededChance(1, number), LIMIT_MS, (LOOK,)):
        if isinstance(op, AdvanceClock):
            passed += op.ms
        else:
            found.append(passed)
    return found


def test_looks_come_a_little_before_at_and_a_little_behind_a_limits_end() -> None:
    seen = {ms - LIMIT_MS for number in range(200) for ms in clocks(number)}

    assert seen == {0} | {sign * ms for ms in NEAR_MS for sign in (1, -1)}
    assert all(clocks(number)[-1] >= LIMIT_MS for number in range(200))


def test_no_clock_goes_back_for_a_short_limit() -> None:
    found = [lapse(SeededChance(1, number), 10, ()) for number in range(200)]

    assert all(op.ms >= 0 for ops in found for op in ops if type(op) is AdvanceClock)


def test_a_broker_has_more_limits_than_a_store() -> None:
    assert set(limits_of(Setup())) < set(limits_of(Setup(keeps_progress=True)))


def test_some_twisted_programs_of_brokers_wait_for_about_a_limit() -> None:
    plain = [program_for(SCENARIOS["filters"], 5, number) for number in range(200)]
    found = [twisted(program, 5, number) for number, program in enumerate(plain)]
    looks = RunService("client_housekeeping")

    assert any(
        looks in twist.ops and looks not in program.ops
        for twist, program in zip(found, plain, strict=True)
    )
