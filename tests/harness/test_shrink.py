"""Shrinking on toy stores whose smallest failing program is known."""

from __future__ import annotations

import pytest
from toy_episode import RECORD_SIZE, toy_run

from crashmq.harness.episodes.episode import EpisodeResult
from crashmq.harness.failures.shrink import NothingToShrink, shrink
from crashmq.models.ops import (
    AdvanceClock,
    Crash,
    Damage,
    During,
    Op,
    PlantFile,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Survivors,
)
from crashmq.models.program import Program, Setup

NOISE: tuple[Op, ...] = (
    PutMessage("T1", 3, 900, tags="TagA", wait_store_ok=False),
    RunService("checkpoint", 4),
    AdvanceClock(500),
    PullMessage("T1", 2, 7),
    During(PutMessage("T1", 1, 70), 3, RunService("reput", 5)),
    Damage("commitlog[2]", "zero", 100, 64),
    Shutdown(),
)
CRASH = Crash("power_loss", Survivors("hashed", 99), 511)


def crash_after_two_puts(ops: tuple[Op, ...]) -> int | None:
    """A restart shows it, after a power loss at action 3 or later of a reput."""
    puts, lost = 0, False
    for number, op in enumerate(ops):
        match op:
            case PutMessage():
                puts += 1
            case During(RunService("reput"), at, Crash("power_loss")) if at >= 3:
                lost = lost or puts >= 2
            case Restart() if lost:
                return number
    return None


LONG = Program(
    Setup(log_file_size=16384, flush_mode="SYNC_FLUSH"),
    (*NOISE * 4, During(RunService("reput", 3), 41, CRASH), *NOISE, Restart(), *NOISE),
)
SHORT = (
    PutMessage("T0", 0, 1),
    PutMessage("T0", 0, 1),
    During(RunService("reput"), 3, Crash("power_loss")),
    Restart(),
)


def test_what_is_needed_stays_and_all_else_goes() -> None:
    shrunk = shrink(LONG, "s", "CQ-3", run=toy_run(crash_after_two_puts))

    assert shrunk.program == Program(Setup(), SHORT)
    assert (shrunk.result.law, shrunk.result.step) == ("CQ-3", 3)
    assert (shrunk.ops_before, shrunk.exhausted) == (len(LONG.ops), False)
    assert shrunk.runs < 200


def test_shrinking_twice_gives_the_same_program_at_the_same_price() -> None:
    first = shrink(LONG, "s", "CQ-3", run=toy_run(crash_after_two_puts))
    again = shrink(LONG, "s", "CQ-3", run=toy_run(crash_after_two_puts))

    assert (first.program, first.runs) == (again.program, again.runs)


def test_what_is_smallest_already_stays() -> None:
    program = Program(Setup(), SHORT)

    assert shrink(program, "s", "CQ-3", run=toy_run(crash_after_two_puts)).program == (
        program
    )


def test_it_never_slips_to_another_law() -> None:
    def by_length(program: Program, scenario: str) -> EpisodeResult:
        law = "CQ-3" if len(program.ops) >= 20 else "CL-1"
        return toy_run(lambda ops: len(ops) - 1 if ops else None, law)(
            program, scenario
        )

    shrunk = shrink(LONG, "s", "CQ-3", run=by_length)

    assert len(shrunk.program.ops) == 20
    assert shrunk.result.law == "CQ-3"


PUT_BACK = PlantFile("checkpoint", "copy", source="checkpoint.kept")
A_FOLDER = PlantFile("checkpoint", "directory")


def something_stands_for_the_checkpoint(ops: tuple[Op, ...]) -> int | None:
    return next((at for at, op in enumerate(ops) if op in (PUT_BACK, A_FOLDER)), None)


def test_it_never_takes_what_no_case_file_may_hold() -> None:
    program = Program(Setup(), (Shutdown(), PUT_BACK))
    run = toy_run(something_stands_for_the_checkpoint)

    shrunk = shrink(program, "s", "CQ-3", run=run)

    assert shrunk.program.ops == (PUT_BACK,)
    assert run(Program(Setup(), (A_FOLDER,)), "s").law == "CQ-3"


def test_ops_that_need_each_other_go_together() -> None:
    def even_puts(ops: tuple[Op, ...]) -> int | None:
        puts = sum(isinstance(op, PutMessage) for op in ops)
        return len(ops) - 1 if ops and ops[-1] == Restart() and puts % 2 == 0 else None

    puts: tuple[Op, ...] = (PutMessage("T0", 0, 1), Shutdown(), PutMessage("T0", 0, 1))
    shrunk = shrink(
        Program(Setup(), (*puts, Restart())), "s", "CQ-3", run=toy_run(even_puts)
    )

    assert shrunk.program.ops == (Restart(),)


def test_an_event_is_unwrapped_when_the_op_alone_will_do() -> None:
    def wrapped(ops: tuple[Op, ...]) -> int | None:
        parts = [part for op in ops for part in (op, getattr(op, "op", None))]
        return len(ops) - 1 if any(isinstance(p, PutMessage) for p in parts) else None

    program = Program(Setup(), (During(PutMessage("T0", 2, 64), 9, CRASH),))

    assert shrink(program, "s", "CQ-3", run=toy_run(wrapped)).program.ops == (
        PutMessage("T0", 0, 1),
    )


def test_two_ops_that_need_not_overlap_are_told_one_after_the_other() -> None:
    def put_then_reput(ops: tuple[Op, ...]) -> int | None:
        flat = [part for op in ops for part in parts_of(op)]
        needed = {PutMessage, RunService}
        return len(ops) - 1 if needed <= set(map(type, flat)) else None

    def parts_of(op: Op) -> tuple[object, ...]:
        return (op.op, op.event) if isinstance(op, During) else (op,)

    program = Program(
        Setup(), (During(PutMessage("T0", 0, 1), 1, RunService("reput")),)
    )

    assert shrink(program, "s", "CQ-3", run=toy_run(put_then_reput)).program.ops == (
        PutMessage("T0", 0, 1),
        RunService("reput"),
    )


def test_a_spent_budget_is_said_and_the_best_is_kept() -> None:
    shrunk = shrink(
        LONG, "s", "CQ-3", budget_runs=10, run=toy_run(crash_after_two_puts)
    )

    assert (shrunk.runs, shrunk.exhausted) == (10, True)
    assert crash_after_two_puts(shrunk.program.ops) is not None
    assert len(shrunk.program.ops) < len(LONG.ops)


def test_progress_is_told_after_each_run() -> None:
    told: list[tuple[int, int]] = []
    shrunk = shrink(
        LONG,
        "s",
        "CQ-3",
        progress=lambda far: told.append((far.runs, len(far.program.ops))),
        run=toy_run(crash_after_two_puts),
    )

    assert [runs for runs, _ in told] == list(range(1, shrunk.runs + 1))
    assert told[-1][1] == len(SHORT)


def test_a_program_that_breaks_nothing_is_refused() -> None:
    with pytest.raises(NothingToShrink, match="does not break CQ-3 here"):
        shrink(LONG, "s", "CQ-3", run=toy_run(lambda _: None))


def bodies_of_400_bytes(ops: tuple[Op, ...]) -> int | None:
    """A reput shows it, if all bodies before it are 400 bytes together."""
    total = 0
    for number, op in enumerate(ops):
        match op:
            case PutMessage(body_size=size):
                total += size
            case RunService("reput") if total == 400:
                return number
    return None


def test_puts_that_keep_what_follows_in_its_place_become_one() -> None:
    puts = tuple(PutMessage("T0", 0, RECORD_SIZE) for _ in range(4))

    shrunk = shrink(
        Program(Setup(), (*puts, RunService("reput"))),
        "power_loss",
        "CQ-3",
        run=toy_run(bodies_of_400_bytes),
    )

    assert shrunk.program.ops == (PutMessage("T0", 0, 400), RunService("reput"))
