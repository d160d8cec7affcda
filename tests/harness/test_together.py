"""Ops that begin at the same time: their schedules, and what comes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lockless import APPENDS_WITHOUT_LOCK

from crashmq.harness.disk.crash import ProcessKilled
from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.failures.shrink import shrink
from crashmq.harness.mutants.mutation import Edit, Mutant, applied
from crashmq.harness.scheduling.sim_runtime import Deadlock, SimRuntime
from crashmq.harness.scheduling.turns import Turns
from crashmq.models.describe import describe
from crashmq.models.observations import (
    Interleaved,
    Observation,
    Put,
    Skipped,
    status_of,
)
from crashmq.models.ops import (
    AdvanceClock,
    Crash,
    Damage,
    DeleteManually,
    During,
    Grain,
    Op,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Schedule,
    SearchOffset,
    Shutdown,
    Together,
)
from crashmq.models.program import Program, Setup
from crashmq.models.program_json import from_json, to_json
from crashmq.models.verdict import Outcome

PUT = PutMessage("T0", 0, 16)
OTHER = PutMessage("T1", 0, 16)
SYNC = Setup(flush_mode="SYNC_FLUSH")
RANDOM = Schedule("pct", seed=7, depth=3, steps=24)
LINES = replace(RANDOM, grain="lines", steps=300)


def run(setup: Setup, *ops: Op) -> EpisodeResult:
    result = run_program(Program(setup, ops))
    assert result.outcome is Outcome.PASSED, result.message
    return result


def seen(result: EpisodeResult, number: int) -> Observation:
    return next(s.observation for s in result.trace if s.number == number)


def both(result: EpisodeResult, number: int = 0) -> Interleaved:
    observed = seen(result, number)
    assert isinstance(observed, Interleaved), observed
    return observed


def offsets(observed: Interleaved) -> list[int]:
    puts = [put for put in observed.observations if isinstance(put, Put)]
    return [put.phy_offset for put in puts]


def test_without_a_preemption_activities_run_one_after_the_other() -> None:
    observed = both(run(Setup(), Together((PUT, OTHER))))

    assert offsets(observed) == [0, 131]
    assert observed.turns == ()


def test_a_preemption_lets_another_one_put_first() -> None:
    schedule = Schedule(preemptions=((1, 1),))
    observed = both(run(Setup(), Together((PUT, OTHER), schedule)))

    assert offsets(observed) == [131, 0]
    assert observed.turns == ((1, 1),)


@pytest.mark.parametrize("schedule", [RANDOM, LINES])
@pytest.mark.parametrize("setup", [Setup(), SYNC])
def test_what_priorities_did_is_told_as_preemptions_that_do_it_again(
    setup: Setup, schedule: Schedule
) -> None:
    ops = (PUT, OTHER, RunService("reput"), PullMessage("T0", 0, 0))
    drawn = both(run(setup, Together(ops, schedule)))
    told = Schedule(preemptions=drawn.turns, grain=schedule.grain)

    assert drawn.turns
    assert both(run(setup, Together(ops, told))) == drawn


def test_a_schedule_at_lines_has_more_switch_points_than_one_at_calls() -> None:
    ops = (PUT, OTHER)
    calls = both(run(Setup(), Together(ops)))
    lines = both(run(Setup(), Together(ops, Schedule(grain="lines"))))

    assert lines.points > 5 * calls.points


@pytest.mark.slow
def test_lines_of_an_edited_function_are_switch_points_too() -> None:
    op = Together((PUT, OTHER), Schedule(grain="lines"))
    said = Edit(
        module="crashmq.engine.store.group_commit",
        function="GroupCommitService.put_request",
        before="stopped = self._stopped",
        after="stopped = bool(self._stopped)",
    )

    with applied(Mutant("T01", "toy", ("CL-1",), (said,))):
        edited = both(run(SYNC, op)).points

    assert edited == both(run(SYNC, op)).points


def test_ops_at_the_same_time_survive_a_case_file() -> None:
    op = During(Together((PUT, Together((OTHER,))), RANDOM), 3, Crash("power_loss"))
    program = Program(Setup(), (op, Together((PUT,), Schedule(preemptions=((1, 2),)))))

    assert from_json(to_json(program)) == program


def test_ops_at_the_same_time_are_described_in_one_line() -> None:
    schedule = Schedule(preemptions=((4, 1),), grain="lines")

    assert describe(Together((PUT, OTHER), schedule)) == (
        "together, 1 from 4 on, at any line: put 16 B to T0/0; put 16 B to T1/0"
    )


@pytest.mark.parametrize(
    "op",
    [Restart(), Damage("abort", "delete"), During(PUT, 1, OTHER), Together((PUT,))],
)
def test_what_nobody_does_beside_others_is_skipped(op: Op) -> None:
    observed = both(run(Setup(), Together((op, PUT))))

    assert isinstance(observed.observations[0], Skipped)
    assert status_of(observed.observations[1]) == "PUT_OK"


def test_ops_at_the_same_time_are_legal_while_the_store_is_down() -> None:
    observed = both(run(Setup(), Shutdown(), Together((PUT, Shutdown()))), 1)

    assert [status_of(one) for one in observed.observations] == ["Skipped", "Skipped"]


def test_nobody_at_all_may_run_at_the_same_time() -> None:
    assert both(run(Setup(), Together(()))).observations == ()


def test_a_crash_ends_all_who_run_at_the_same_time() -> None:
    together = Together((PUT, OTHER, RunService("reput")), RANDOM)
    result = run(SYNC, PUT, During(together, 2, Crash("process_kill")), Restart(), PUT)

    assert status_of(seen(result, 1)) == "Crashed"


def test_a_stop_waits_for_who_still_reads() -> None:
    pull = PullMessage("T0", 0, 0)
    for point in range(1, 12):
        schedule = Schedule(preemptions=((point, 1),))
        ops = Together((pull, Shutdown()), schedule)
        run(Setup(), PUT, RunService("reput"), ops, Restart(), PUT)


@pytest.mark.slow
def test_a_stop_waits_for_who_still_reads_after_earlier_stops_too() -> None:
    searches = (SearchOffset("T0", 0, 1), PullMessage("T0", 0, 0), Shutdown())
    for point in range(1, 30):
        schedule = Schedule(preemptions=((point, 2),))
        ops = Together(searches, schedule)
        run(Setup(), PUT, RunService("reput"), Shutdown(), Restart(), ops, Restart())


def test_who_waits_for_each_other_for_ever_is_told_with_what_they_wait_for() -> None:
    runtime = SimRuntime(0)
    one, two = runtime.lock(), runtime.lock()

    def first() -> None:
        with one, two:
            pass

    def second() -> None:
        with two, one:
            pass

    turns = Turns(Schedule(preemptions=((3, 1),)))
    with pytest.raises(Deadlock) as caught:
        runtime.run(lambda: runtime.together([("A", first), ("B", second)], turns))

    assert "A waits for a lock that B holds" in str(caught.value)
    assert "B waits for a lock that A holds" in str(caught.value)


def test_who_never_began_ends_with_the_crash_of_another() -> None:
    runtime = SimRuntime(0)

    def crash() -> None:
        raise ProcessKilled("killed")

    began: list[str] = []
    bodies = [("A", crash), ("B", lambda: began.append("B"))]
    with pytest.raises(ProcessKilled):
        runtime.run(lambda: runtime.together(bodies, Turns(Schedule())))

    assert began == []
    assert runtime.run(lambda: 7) == 7


def test_nobody_is_answered_by_who_unwinds_from_a_crash() -> None:
    runtime = SimRuntime(0)
    done, answered = runtime.event(), list[str]()

    def stop() -> None:
        killed = ProcessKilled("killed")
        try:
            runtime.end_by(killed)
            raise killed
        finally:
            done.set()
            runtime.pause()

    def wait() -> None:
        if done.wait(1000):
            answered.append("answered")

    turns = Turns(Schedule(preemptions=((1, 1), (2, 0), (3, 0), (4, 0))))
    with pytest.raises(ProcessKilled):
        runtime.run(lambda: runtime.together([("A", wait), ("B", stop)], turns))

    assert answered == []
    assert runtime.run(lambda: 7) == 7


@pytest.mark.slow
def test_a_drawn_schedule_shrinks_to_the_preemption_that_is_enough() -> None:
    drawn = Schedule("pct", seed=3, depth=4, steps=12)
    ops = (PUT, Together((PUT, RunService("reput"), OTHER, PUT), drawn), PUT)
    with applied(APPENDS_WITHOUT_LOCK):
        small = shrink(Program(Setup(), ops), "interleavings", "PUT-1").program

    together = small.ops[-1]
    assert isinstance(together, Together)
    assert len(together.ops) == 2
    assert together.schedule.kind == "preempt"
    assert len(together.schedule.preemptions) <= 1


STOP_TWICE = Together((Shutdown(), Shutdown()), Schedule(grain="lines"))


@pytest.mark.slow
@pytest.mark.parametrize("point", range(1, 40))
def test_two_stops_at_once_are_one_stop(point: int) -> None:
    schedule = replace(STOP_TWICE.schedule, preemptions=((point, 1), (point + 3, 0)))
    result = run(Setup(), PUT, replace(STOP_TWICE, schedule=schedule), Restart(), PUT)

    told = [status_of(one) for one in both(result, 1).observations]
    assert "Stopped" in told
    assert {*told} <= {"Stopped", "EndAwaited", "Skipped"}


PULL = PullMessage("T0", 0, 0)


def test_a_pull_among_others_is_judged_by_what_lay_before_and_after() -> None:
    deaf = Mutant(
        id="T91",
        title="pull-that-finds-less",
        killed_by=("RD-5",),
        edits=(
            Edit(
                module="crashmq.engine.store.message_store",
                function="MessageStore.get_message",
                before="queue_offset, max_msg_nums, wanted",
                after="queue_offset, 1, wanted",
            ),
        ),
        source="a test",
        trigger=Program(Setup(), (PUT, PUT, RunService("reput"), Together((PULL,)))),
    )
    with applied(deaf):
        result = run_program(deaf.trigger)

    assert result.law == "RD-5", result.message


KEEPING = Setup(cleans=True, reserved_hours=2, flush_least_pages=0)
AGED = (
    *(PutMessage("T0", 0, 3858), PUT, RunService("reput")),
    *(RunService("flush_commit_log", 9), AdvanceClock(3 * 3_600_000), DeleteManually()),
)
CLEAN = RunService("clean_commit_log")


@pytest.mark.slow
@pytest.mark.parametrize("grain", ["calls", "lines"])
def test_a_reader_goes_on_behind_what_is_deleted_under_it(grain: Grain) -> None:
    firsts = set()
    for point in range(1, 60):
        schedule = Schedule(preemptions=((point, 1),), grain=grain)
        pulled = both(run(KEEPING, *AGED, Together((PULL, CLEAN), schedule)), len(AGED))
        firsts.add(status_of(pulled.observations[0]))

    assert firsts <= {"FOUND", "OFFSET_TOO_SMALL"}


def test_a_store_may_stop_beside_a_cleaner() -> None:
    run(KEEPING, *AGED, Together((CLEAN, Shutdown())), Restart(), PULL)


@pytest.mark.slow
def test_a_reader_beside_a_cleaner_and_a_stop_may_miss_what_has_gone() -> None:
    for point in range(1, 30):
        schedule = Schedule(preemptions=((point, 2),), grain="lines")
        run(KEEPING, *AGED, Together((PULL, Shutdown(), CLEAN), schedule), Restart())
