"""The laws of a running store's marks: what each flags, and what it lets pass."""

from __future__ import annotations

import pytest

from crashmq.models.appended import Appended
from crashmq.models.laws.marks import (
    dispatched_is_confirmed,
    marks_are_in_order,
    marks_lie_in_the_log,
    round_flushes_what_is_enough,
    served_is_confirmed,
    what_is_stored_is_confirmed,
)
from crashmq.models.laws.putting import gave_up
from crashmq.models.laws.recovery import services_have_caught_up
from crashmq.models.laws.run import buffers_come_back
from crashmq.models.messages import message_for
from crashmq.models.observations import (
    Positions,
    Put,
    PutStatus,
)
from crashmq.models.ops import PutMessage
from crashmq.models.program import FlushMode, Setup


def positions(
    flushed: int, committed: int, reput: int = 0, confirm: int = 0
) -> Positions:
    return Positions(0, 300, flushed, reput, committed, confirm)


@pytest.mark.parametrize(
    ("flushed", "reput", "broken"),
    [
        (100, 300, []),
        (300, 100, []),
        (99, 200, ["flushed_where"]),
        (301, 200, ["flushed_where"]),
        (200, 99, ["reput_from_offset"]),
        (200, 301, ["reput_from_offset"]),
    ],
)
def test_a_mark_outside_the_log_breaks_fl_1(
    flushed: int, reput: int, broken: list[str]
) -> None:
    now = Positions(100, 300, flushed, reput, 300, 300)

    assert [found.where for found in marks_lie_in_the_log.violations(now)] == broken


@pytest.mark.parametrize(
    ("now", "busy", "broken"),
    [
        (positions(300, 300, 300), (), []),
        (positions(299, 300, 300), (), ["flushed_where"]),
        (positions(300, 300, 299), (), ["reput_from_offset"]),
        (positions(300, 300, 300), ("reput",), ["reput"]),
    ],
)
def test_what_stands_still_behind_the_end_breaks_rec_3(
    now: Positions, busy: tuple[str, ...], broken: list[str]
) -> None:
    found = services_have_caught_up.violations(now, busy)

    assert [violation.where for violation in found] == broken


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


@pytest.mark.parametrize(
    ("mode", "replicated", "least"),
    [
        ("ASYNC_FLUSH", None, 200),
        ("SYNC_FLUSH", None, 100),
        ("ASYNC_FLUSH", 150, 150),
        ("SYNC_FLUSH", 150, 100),
        ("ASYNC_FLUSH", 0, 0),
    ],
)
def test_what_is_stored_and_replicated_and_not_confirmed_breaks_fl_13(
    mode: FlushMode, replicated: int | None, least: int
) -> None:
    law = what_is_stored_is_confirmed

    assert not law.violations(mode, positions(100, 200, 0, least), replicated)
    assert law.violations(mode, positions(100, 200, 0, least - 1), replicated)


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
    status: PutStatus, stalled_ms: int, expected: bool
) -> None:
    assert gave_up(Put(status), stalled_ms) is expected


@pytest.mark.parametrize(
    ("least", "before", "committed", "now", "broken"),
    [
        (4, 0, 16384, 0, 1),  # whole pages enough
        (4, 0, 16383, 0, 0),
        (4, 100, 32768, 100, 1),  # the file is full: any byte
        (4, 32000, 32768, 32768, 0),
        (4, 32000, 40000, 32000, 1),
        (0, 200, 201, 200, 1),
        (0, 200, 200, 200, 0),
        (1, 4000, 4097, 4000, 1),
        (1, 4096, 8191, 4096, 0),
    ],
)
def test_a_round_that_leaves_enough_unflushed_breaks_fl_8(
    least: int, before: int, committed: int, now: int, broken: int
) -> None:
    setup = Setup(log_file_size=32768, flush_least_pages=least)
    was = Positions(0, 40000, before, 0, committed, 0)
    violations = round_flushes_what_is_enough.violations(
        was, Positions(0, 40000, now, 0, committed, 0), setup
    )

    assert len(violations) == broken


@pytest.mark.parametrize(
    ("log_files", "free", "broken"),
    [
        ([], 3, 0),
        ([], 2, 1),  # one is out for no file
        ([0, 100, 200], 2, 0),
        ([0, 100, 200], 1, 1),
        ([0, 100, 200, 300], 1, 0),  # a file made ahead has one, too
        ([0, 100, 200], 4, 1),  # one was given back twice
    ],
)
def test_a_write_buffer_that_is_out_for_no_open_file_breaks_res_2(
    log_files: list[int], free: int, broken: int
) -> None:
    now = Positions(0, 250, 0, 0, 230, 0, free_buffers=free)
    if not log_files:
        now = Positions(-1, 0, 0, 0, 0, 0, free_buffers=free)

    assert len(buffers_come_back.violations(now, 3, log_files, 100)) == broken
