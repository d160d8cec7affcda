"""Steps that only read, or let time pass: what is asked again, and what is not."""

from __future__ import annotations

import pytest

from crashmq.harness.judging.judge import Judge
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.history import (
    MAIN,
    Happening,
    History,
    OpBegan,
    OpEnded,
    ReadAnswered,
    Step,
)
from crashmq.models.laws.registry import LawViolated
from crashmq.models.observations import (
    ClockMoved,
    Looked,
    Observation,
    Positions,
    World,
)
from crashmq.models.ops import AdvanceClock, LookMessage, Op
from crashmq.models.program import Setup

STOOD = Positions(0, 262, 131, 131)
LOOK, LOOKED = LookMessage(0), Looked(None)
LOOKED_AT = (ReadAnswered(LOOK, LOOKED),)


def judge_of_a_running_store() -> Judge:
    """A judge that knows where the log of a store in an orderly life stands."""
    judge = Judge(Setup(), PythonStore(Setup()))
    judge.known.positions = STOOD
    return judge


def step_of(
    op: Op, seen: Observation, *events: Happening, disk_actions: int = 0
) -> Step:
    """A step in which this happened."""
    history = History()
    now_ms = op.ms if isinstance(op, AdvanceClock) else 0
    ended = OpEnded(seen, disk_actions, World(now_ms), is_unreadable=False)
    for event in (OpBegan(op, World()), *events, ended):
        history.append(0, MAIN, event)
    return Step(op, history.entries)


def test_a_read_that_changed_nothing_is_judged_alone() -> None:
    judge = judge_of_a_running_store()

    judge.judge(step_of(LOOK, LOOKED, *LOOKED_AT), STOOD)

    assert judge.checks == {"RD-3": 1}


@pytest.mark.parametrize("flushed_where", [0, 200])
def test_marks_are_judged_if_they_moved_while_a_store_was_read(
    flushed_where: int,
) -> None:
    judge = judge_of_a_running_store()
    now = Positions(0, 262, flushed_where, 131)

    if flushed_where < STOOD.flushed_where:
        with pytest.raises(LawViolated, match="FL-4"):
            judge.judge(step_of(LOOK, LOOKED, *LOOKED_AT), now)
    else:
        judge.judge(step_of(LOOK, LOOKED, *LOOKED_AT), now)
    assert judge.checks["FL-4"] == 1


def test_a_read_that_wrote_is_judged_as_any_step() -> None:
    judge = judge_of_a_running_store()

    judge.judge(step_of(LOOK, LOOKED, *LOOKED_AT, disk_actions=1), STOOD)

    assert judge.checks["FL-4"] == 1


def test_time_that_passes_is_noted_though_nothing_is_asked() -> None:
    judge = judge_of_a_running_store()

    judge.judge(step_of(AdvanceClock(700), ClockMoved(700)), STOOD)

    assert judge.checks == {}
    assert judge.known.debts.newest_ms == 700
