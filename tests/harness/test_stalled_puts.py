"""How long a put took is known where only its own disk let time pass."""

from __future__ import annotations

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.models.observations import Interrupted, Put
from crashmq.models.ops import (
    AdvanceClock,
    DiskFault,
    During,
    Event,
    PutMessage,
    RunService,
)
from crashmq.models.program import Program, Setup

PUT = PutMessage("T0", 0, 16)


def took_ms(event: Event) -> int:
    """What is told of a put at whose first disk action something happens."""
    result = run_program(Program(Setup(), (During(PUT, 1, event),)))
    seen = result.trace[1].observation
    assert isinstance(seen, Interrupted)
    assert isinstance(seen.observation, Put)
    return seen.observation.took_ms


@pytest.mark.parametrize("ms", [1, 10, 5000])
def test_a_put_that_stood_still_took_as_long(ms: int) -> None:
    assert took_ms(AdvanceClock(ms)) == ms


@pytest.mark.parametrize(
    "event", [DiskFault("sync", "EIO", path="checkpoint"), RunService("reput")]
)
def test_a_put_during_which_no_time_passed_took_none(event: Event) -> None:
    assert took_ms(event) == 0


def test_nobody_knows_how_long_a_put_took_whose_clock_was_set_back() -> None:
    assert took_ms(AdvanceClock(-1000)) == -1
