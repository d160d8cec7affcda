"""Which lines of the engine are switch points, and why others are not."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from crashmq import engine
from crashmq.engine.broker.client.rebalance_lock_manager import RebalanceLockManager
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.filter.selector_parser import parse
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.mutation import Edit, Mutant, applied
from crashmq.harness.scheduling.line_switches import (
    LINED,
    NOT_LINED,
    at_each_line,
    has_lines,
)
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.observations import Interleaved
from crashmq.models.ops import CommitOffset, Grain, QueryOffset, Schedule, Together
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

GRAINS: tuple[Grain, ...] = ("calls", "lines")
ENGINE = Path(engine.__file__).parent
SHARED_STATE = (".lock()", "Runtime", "_lock")
"""What only code has that several activities share."""


def test_every_package_of_the_engine_has_lines_or_a_reason() -> None:
    packages = {path.parent.name for path in ENGINE.glob("*/__init__.py")}
    without = {name for name in NOT_LINED if "." not in name}

    assert packages == {*LINED} | without
    assert not {*LINED} & without
    assert all(NOT_LINED.values())


@pytest.mark.parametrize("name", NOT_LINED)
def test_what_has_no_lines_is_there_and_shares_nothing(name: str) -> None:
    below = ENGINE.joinpath(*name.split("."))
    files = [*below.rglob("*.py")] if below.is_dir() else [below.with_suffix(".py")]
    assert files

    for file in files:
        assert not has_lines(str(file))
        if name != "host":
            text = file.read_text("utf-8")
            assert not [word for word in SHARED_STATE if word in text], file


@pytest.mark.parametrize("package", ["broker", "client", "common", "remoting"])
def test_all_other_modules_have_lines(package: str) -> None:
    lacking = {
        ".".join(path.relative_to(ENGINE).with_suffix("").parts)
        for path in (ENGINE / package).rglob("*.py")
        if not has_lines(str(path))
    }

    assert all(
        any(f"{module}.".startswith(f"{name}.") for name in NOT_LINED)
        for module in lacking
    )
    assert len(lacking) < len([*(ENGINE / package).rglob("*.py")])


def test_foreign_code_has_no_lines() -> None:
    assert not has_lines(__file__)
    assert not has_lines("<string>")


def test_no_line_of_a_parser_is_reported() -> None:
    seen: list[str] = []

    def pause() -> None:
        seen.append(sys._getframe(2).f_code.co_filename)

    with at_each_line(pause, enabled=True):
        parse("a > 5 AND b = 'never parsed before'")

    assert seen == []


@pytest.mark.slow
@pytest.mark.parametrize("is_edited", [False, True])
def test_each_line_of_a_broker_is_reported_with_a_planted_bug_too(
    is_edited: bool,
) -> None:
    lines: list[str] = []

    def pause() -> None:
        lines.append(sys._getframe(2).f_code.co_name)

    edit = Edit(
        module="crashmq.engine.broker.client.rebalance_lock_manager",
        function="RebalanceLockManager.try_lock_batch",
        before="now_ms = self._runtime.now_ms()",
        after="now_ms = int(self._runtime.now_ms())",
    )
    mutants = [Mutant("T01", "toy", ("CL-1",), (edit,))] if is_edited else []
    with ExitStack() as stack:
        for mutant in mutants:
            stack.enter_context(applied(mutant))
        locks = RebalanceLockManager(SimRuntime(0))
        with at_each_line(pause, enabled=True):
            locks.try_lock_batch("g", [MessageQueue("T0", "b", 0)], "c")

    assert lines.count("try_lock_batch") >= 5


def test_commits_that_meet_have_switch_points_between_their_lines() -> None:
    ops = CommitOffset("g", "T0", 0, 0), QueryOffset("g", "T0", 0)

    points = []
    for grain in GRAINS:
        op = Together(ops, Schedule(grain=grain))
        result = run_program(Program(Setup(keeps_progress=True), (op,)))
        assert result.outcome is Outcome.PASSED, result.message
        seen = next(one.observation for one in result.trace if one.number == 0)
        assert isinstance(seen, Interleaved), seen
        points.append(seen.points)

    assert points[1] > points[0] + 10
