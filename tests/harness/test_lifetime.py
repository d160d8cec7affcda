"""What one life of a store owes: what waits for its sync, what a failure has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from crashmq.harness.judging.judge import Judge
from crashmq.harness.subjects.python_store import PythonStore
from crashmq.models.history import (
    MAIN,
    DeletionAsked,
    Happening,
    History,
    LifeEnded,
    OpEnded,
    PutAnswered,
    PutAsked,
    Raised,
    Step,
    StopBegan,
    StopEnded,
)
from crashmq.models.knowledge.debts import Debts
from crashmq.models.knowledge.moments import At
from crashmq.models.knowledge.walk import walk_debts
from crashmq.models.laws.registry import LawViolated
from crashmq.models.messages import message_for
from crashmq.models.observations import (
    ClockMoved,
    Crashed,
    Failed,
    Observation,
    Positions,
    Put,
    Ran,
    Stopped,
    World,
)
from crashmq.models.ops import (
    AdvanceClock,
    Crash,
    DeleteTopic,
    Op,
    PutMessage,
    RunService,
    Shutdown,
)
from crashmq.models.program import FLUSH_THOROUGH_MS as THOROUGH_MS
from crashmq.models.program import Setup

FLUSH = RunService("flush_commit_log")
PUT = PutMessage("T0", 0, 16)
WAITS = Positions(0, 131, 0, 0, 131, 0)
DOWN = Positions(-1, -1, -1, -1)
EIO = Failed("OSError", "[Errno 5]")
STOPPED = (StopBegan(), StopEnded(Stopped(clean=True), 0, 0))


def answered(answer: Put) -> Sequence[Happening]:
    """The events of a put and its answer, the first of their step."""
    message = message_for(PUT, 0, 0, 0, 0)
    return PutAsked((message,)), PutAnswered(0, (answer,), None, 0)


@dataclass
class Life:
    """A life told step by step, without a store."""

    judge: Judge = field(default_factory=lambda: Judge(Setup(), PythonStore(Setup())))
    now_ms: int = 0

    @property
    def debts(self) -> Debts:
        return self.judge.known.debts

    def sees(
        self,
        op: Op,
        seen: Observation,
        *events: Happening,
        after: Positions = WAITS,
    ) -> None:
        history = History()
        ended = OpEnded(seen, 0, World(self.now_ms), is_unreadable=False)
        for event in (*events, ended):
            history.append(self.now_ms, MAIN, event)
        step = Step(op, history.entries)
        at = At(step, self.judge.known, self.judge, after)
        self.judge.ask(walk_debts(at))

    def waits(self, ms: int) -> None:
        self.now_ms += ms
        self.sees(AdvanceClock(ms), ClockMoved(self.now_ms))


def test_a_round_may_leave_a_little_until_an_interval_has_passed() -> None:
    life = Life()
    life.sees(PUT, Put("PUT_OK"))
    life.waits(THOROUGH_MS - 1)
    life.sees(FLUSH, Ran(0))
    life.waits(1)

    with pytest.raises(LawViolated, match="FL-10"):
        life.sees(FLUSH, Ran(0))


def test_what_a_clock_that_was_set_back_says_counts_for_nothing() -> None:
    life = Life()
    life.sees(PUT, Put("PUT_OK"))
    life.waits(-1)
    life.waits(THOROUGH_MS)

    life.sees(FLUSH, Ran(0))
    life.waits(THOROUGH_MS)
    with pytest.raises(LawViolated, match="FL-10"):
        life.sees(FLUSH, Ran(0))


def test_the_last_round_may_be_of_before_the_clock_was_set_back() -> None:
    life = Life()
    life.waits(1000)
    life.waits(-1000)
    life.sees(PUT, Put("PUT_OK"))
    life.waits(THOROUGH_MS)

    life.sees(FLUSH, Ran(0))
    life.waits(1000)
    with pytest.raises(LawViolated, match="FL-10"):
        life.sees(FLUSH, Ran(0))


def test_a_put_after_a_failed_flush_is_a_breach_in_that_life_alone() -> None:
    taken = Put("PUT_OK", 131, 131)
    life = Life()
    life.sees(FLUSH, EIO, Raised(EIO))

    with pytest.raises(LawViolated, match="PUT-8"):
        life.sees(PUT, taken, *answered(taken))
    killed = LifeEnded(Crash("process_kill"))
    life.sees(PUT, Crashed("process_kill", 0, ""), killed, after=DOWN)
    life.sees(PUT, taken, *answered(taken))


def test_a_stop_after_a_failed_flush_of_queues_is_not_orderly() -> None:
    life = Life()
    life.sees(RunService("flush_consume_queue"), EIO, Raised(EIO))

    with pytest.raises(LawViolated, match="REC-19"):
        life.sees(Shutdown(), Stopped(clean=True), *STOPPED)


def test_a_stop_after_a_deletion_that_failed_amid_it_is_not_orderly() -> None:
    """That it was amid it is told by the puts, which have stopped."""
    refused, taken = Put("SERVICE_NOT_AVAILABLE"), Put("PUT_OK", 131, 131)
    for answer, is_amid in ((taken, False), (refused, True)):
        life = Life()
        delete = DeleteTopic("T0")
        life.sees(delete, EIO, DeletionAsked(delete), Raised(EIO))
        life.sees(PUT, answer, *answered(answer))
        stop = Stopped(clean=True)
        if is_amid:
            with pytest.raises(LawViolated, match="REC-19"):
                life.sees(Shutdown(), stop, *STOPPED)
        else:
            life.sees(Shutdown(), stop, *STOPPED)


def test_a_life_that_has_ended_leaves_nothing_to_tell_it_by() -> None:
    life = Life()
    life.sees(FLUSH, EIO, Raised(EIO))
    life.waits(10)
    lost = LifeEnded(Crash("power_loss"))
    life.sees(PUT, Crashed("power_loss", 0, ""), lost, after=DOWN)

    assert life.debts == Debts(Setup(), newest_ms=10)
