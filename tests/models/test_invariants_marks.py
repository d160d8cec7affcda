"""The laws of a running store's marks: what each flags, and what it lets pass."""

from __future__ import annotations

import pytest

from models.invariants.marks import (
    dispatched_is_confirmed,
    marks_are_in_order,
    served_is_confirmed,
)
from models.invariants.putting import gave_up
from models.messages import message_for
from models.observations import Positions, Put
from models.ops import PutMessage
from models.program import FlushMode
from models.reference import Appended


def positions(
    flushed: int, committed: int, reput: int = 0, confirm: int = 0
) -> Positions:
    return Positions(0, 300, flushed, reput, committed, confirm)


@pytest.mark.parametrize(("flushed", "committed"), [(0, 0), (100, 200), (300, 300)])
def test_marks_in_order_pass_fl_5(flushed: int, committed: int) -> None:
    assert not marks_are_in_order.violations(positions(flushed, committed))


@pytest.mark.parametrize(("flushed", "committed"), [(200, 100), (0, 301)])
def test_marks_out_of_order_break_fl_5(flushed: int, committed: int) -> None:
    assert marks_are_in_order.violations(positions(flushed, committed))


@pytest.mark.parametrize(
    ("mode", "confirm", "reput", "broken"),
    [
        ("ASYNC_FLUSH", 200, 200, 0),
        ("ASYNC_FLUSH", 201, 0, 1),
        ("ASYNC_FLUSH", 200, 201, 1),
        ("SYNC_FLUSH", 100, 100, 0),
        ("SYNC_FLUSH", 200, 100, 1),
        ("SYNC_FLUSH", 101, 102, 2),
    ],
)
def test_what_the_mode_does_not_confirm_breaks_fl_6(
    mode: FlushMode, confirm: int, reput: int, broken: int
) -> None:
    now = positions(100, 200, reput, confirm)

    assert len(dispatched_is_confirmed.violations(mode, now)) == broken


@pytest.mark.parametrize(("confirm", "broken"), [(200, 0), (199, 1), (0, 2)])
def test_a_message_above_the_confirmed_breaks_fl_7(confirm: int, broken: int) -> None:
    message = message_for(PutMessage("T0", 0, 1), 0, 0, 0)
    served = [Appended(message, at, 100, at // 100) for at in (0, 100)]

    assert len(served_is_confirmed.violations(0, served, confirm)) == broken


@pytest.mark.parametrize(
    ("status", "stalled_ms", "expected"),
    [
        ("FLUSH_DISK_TIMEOUT", 5000, True),
        ("FLUSH_DISK_TIMEOUT", 4999, False),
        ("SERVICE_NOT_AVAILABLE", 9000, False),
    ],
)
def test_only_a_long_stall_excuses_a_time_out(
    status: str, stalled_ms: int, expected: bool
) -> None:
    assert gave_up(Put(status), stalled_ms) is expected
