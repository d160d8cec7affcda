from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from harness.disk.profiles import PROFILES
from harness.interpreter import Report
from harness.judging.lifetime import Lifetime
from harness.judging.promises import Promises
from harness.subjects.engine_config import THOROUGH_MS
from harness.subjects.python_store import PythonStore
from models.invariants.registry import InvariantViolated
from models.messages import message_for
from models.observations import (
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
from models.ops import (
    AdvanceClock,
    Crash,
    DeleteTopic,
    Op,
    PutMessage,
    RunService,
    Shutdown,
)
from models.program import Setup
from models.store_image import read_store

FLUSH = RunService("flush_commit_log")
PUT = PutMessage("T0", 0, 16)
WAITS = Positions(0, 131, 0, 0, 131, 0)
DOWN = Positions(-1, -1, -1, -1)
EIO = Failed("OSError", "[Errno 5]")


@dataclass
class Life:
    """A life told step by step, without a store."""

    lifetime: Lifetime = field(default_factory=lambda: Lifetime(Setup()))
    now_ms: int = 0

    def sees(
        self, op: Op, seen: Observation, after: Positions = WAITS, **more: object
    ) -> None:
        report = Report(seen, world=World(self.now_ms))
        for name, value in more.items():
            setattr(report, name, value)
        disk = (Promises(PROFILES["ext4_ordered"]), PythonStore(Setup()))
        image = lambda: read_store({})  # noqa: E731
        self.lifetime.judge({}, op, report, after, disk, image)

    def waits(self, ms: int) -> None:
        self.now_ms += ms
        self.sees(AdvanceClock(ms), ClockMoved(self.now_ms))


def test_a_round_may_leave_a_little_until_an_interval_has_passed() -> None:
    life = Life()
    life.sees(PUT, Put("PUT_OK"))
    life.waits(THOROUGH_MS - 1)
    life.sees(FLUSH, Ran(0))
    life.waits(1)

    with pytest.raises(InvariantViolated, match="FL-10"):
        life.sees(FLUSH, Ran(0))


def test_what_a_clock_that_was_set_back_says_counts_for_nothing() -> None:
    life = Life()
    life.sees(PUT, Put("PUT_OK"))
    life.waits(-1)
    life.waits(THOROUGH_MS)

    life.sees(FLUSH, Ran(0))
    life.waits(THOROUGH_MS)
    with pytest.raises(InvariantViolated, match="FL-10"):
        life.sees(FLUSH, Ran(0))


def test_the_last_round_may_be_of_before_the_clock_was_set_back() -> None:
    life = Life()
    life.waits(1000)
    life.waits(-1000)
    life.sees(PUT, Put("PUT_OK"))
    life.waits(THOROUGH_MS)

    life.sees(FLUSH, Ran(0))
    life.waits(1000)
    with pytest.raises(InvariantViolated, match="FL-10"):
        life.sees(FLUSH, Ran(0))


def test_a_put_after_a_failed_flush_is_a_breach_in_that_life_alone() -> None:
    message = message_for(PUT, 0, 0, 0, 0)
    answered = [(message, Put("PUT_OK", 131, 131))]
    life = Life()
    life.sees(FLUSH, EIO, failures=[EIO])

    with pytest.raises(InvariantViolated, match="PUT-8"):
        life.sees(PUT, answered[0][1], puts=answered)
    crash = Crash("process_kill")
    life.sees(PUT, Crashed("process_kill", 0, ""), DOWN, crash=crash)
    life.sees(PUT, answered[0][1], puts=answered)


def test_a_stop_after_a_failed_flush_of_queues_is_not_orderly() -> None:
    life = Life()
    life.sees(RunService("flush_consume_queue"), EIO, failures=[EIO])

    with pytest.raises(InvariantViolated, match="REC-19"):
        life.sees(Shutdown(), Stopped(clean=True), stops=[Stopped(clean=True)])


def test_a_stop_after_a_deletion_that_failed_amid_it_is_not_orderly() -> None:
    """That it was amid it is told by the puts, which have stopped."""
    message = message_for(PUT, 0, 0, 0, 0)
    refused, taken = Put("SERVICE_NOT_AVAILABLE"), Put("PUT_OK", 131, 131)
    for answer, is_amid in ((taken, False), (refused, True)):
        life = Life()
        delete = DeleteTopic("T0")
        life.sees(delete, EIO, failures=[EIO], deletions=[(delete, None)])
        life.sees(PUT, answer, puts=[(message, answer)])
        stop = Stopped(clean=True)
        if is_amid:
            with pytest.raises(InvariantViolated, match="REC-19"):
                life.sees(Shutdown(), stop, stops=[stop])
        else:
            life.sees(Shutdown(), stop, stops=[stop])


def test_a_life_that_has_ended_leaves_nothing_to_tell_it_by() -> None:
    life = Life()
    life.sees(FLUSH, EIO, failures=[EIO])
    life.waits(10)
    crash = Crash("power_loss")
    life.sees(PUT, Crashed("power_loss", 0, ""), DOWN, crash=crash)

    assert life.lifetime == Lifetime(Setup(), newest_ms=10)
