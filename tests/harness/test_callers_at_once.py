"""Several callers in one step: stalls, stops, crashes, and who is judged when."""

from __future__ import annotations

import pytest

from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.models.observations import Interrupted, Observation, Put, status_of
from crashmq.models.ops import (
    AdvanceClock,
    Crash,
    DiskFault,
    During,
    Op,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

SYNC = Setup(flush_mode="SYNC_FLUSH")
POOL = Setup(transient_store_pool=True)
PUT = PutMessage("T0", 0, 16)
NOT_WAITING = PutMessage("T0", 0, 16, wait_store_ok=False)
LATE = 1000


def run(setup: Setup, *ops: Op) -> EpisodeResult:
    result = run_program(Program(setup, ops))
    assert result.outcome is Outcome.PASSED, result.message
    return result


def seen(result: EpisodeResult, number: int) -> Observation:
    return next(s.observation for s in result.trace if s.number == number)


@pytest.mark.parametrize(
    ("ms", "status"), [(4999, "PUT_OK"), (5001, "FLUSH_DISK_TIMEOUT")]
)
def test_a_put_waits_for_a_stalled_sync_up_to_its_time_out(
    ms: int, status: str
) -> None:
    result = run(SYNC, PUT, During(PUT, 2, AdvanceClock(ms)))

    observed = seen(result, 1)
    assert isinstance(observed, Interrupted)
    assert status_of(observed.observation) == status


def test_puts_at_once_share_one_sync() -> None:
    result = run(SYNC, PUT, During(PUT, 1, PUT))

    assert status_of(seen(result, 1)) == "PUT_OK+PUT_OK"
    assert next(s.disk_actions for s in result.trace if s.number == 1) == 3


def test_a_put_that_waits_while_the_store_stops_is_answered() -> None:
    result = run(SYNC, During(PUT, 1, Shutdown()), Restart(), PullMessage("T0", 0, 0))

    observed = seen(result, 0)
    assert isinstance(observed, Interrupted)
    assert isinstance(observed.observation, Put)
    assert observed.observation.status == "PUT_OK"


def test_a_pull_while_the_store_stops_is_turned_away() -> None:
    result = run(Setup(), PUT, During(Shutdown(), 1, PullMessage("T0", 0, 0)))

    assert status_of(seen(result, 1)) == "Stopped+Skipped"


@pytest.mark.parametrize("at_action", range(1, 9))
def test_a_stop_during_a_stop_changes_nothing(at_action: int) -> None:
    run(Setup(), PUT, RunService("reput"), During(Shutdown(), at_action, Shutdown()))


@pytest.mark.slow
@pytest.mark.parametrize("at_action", range(1, 12))
def test_a_round_that_stalls_while_the_store_stops_ends_first(at_action: int) -> None:
    turned = During(Shutdown(), 1, RunService("flush_consume_queue"))
    run(Setup(), PUT, RunService("reput"), During(turned, at_action, AdvanceClock(10)))


def test_a_stop_right_after_a_start_ends_the_new_life() -> None:
    run(Setup(), PUT, During(Restart(), LATE, Shutdown()), Restart())


@pytest.mark.parametrize("setup", [Setup(), SYNC, POOL])
def test_a_put_right_after_a_start_is_of_the_new_life(setup: Setup) -> None:
    run(setup, PUT, During(Restart(), LATE, PUT), RunService("reput"), Restart())


def test_what_an_unanswered_put_leaves_in_front_of_an_answered_one_is_right() -> None:
    at_once = During(PUT, 1, NOT_WAITING)
    result = run(SYNC, PUT, During(at_once, 3, Crash("process_kill")), Restart(), PUT)

    answer = seen(result, 3)
    assert isinstance(answer, Put)
    assert answer.queue_offset == 3


def test_a_kill_may_take_what_was_not_committed_and_no_more() -> None:
    result = run(
        POOL,
        PUT,
        RunService("commit"),
        PUT,
        During(RunService("reput"), LATE, Crash("process_kill")),
        Restart(),
        PUT,
    )

    answer = seen(result, 5)
    assert isinstance(answer, Put)
    assert answer.queue_offset == 1


def test_a_commit_that_fails_while_the_store_stops_leaves_the_log_to_a_start() -> None:
    large = PutMessage("T0", 0, 6000)
    run(
        Setup(transient_store_pool=True, log_file_size=16384),
        large,
        During(Shutdown(), 2, DiskFault("write", "EIO")),
        Restart(),
    )
