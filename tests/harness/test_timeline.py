"""A timeline is short, in order, and marks the breach."""

from __future__ import annotations

from dataclasses import replace

from toy_episode import MESSAGE, result_of, toy_trace, violated_at

from crashmq.harness.episodes.timeline import timeline
from crashmq.models.ops import (
    Crash,
    Damage,
    DiskFault,
    During,
    Op,
    PutMessage,
    Restart,
    RunService,
    Survivors,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

OPS: tuple[Op, ...] = (
    PutMessage("T0", 0, 96),
    PutMessage("T0", 0, 96, tags="TagA"),
    RunService("flush_commit_log"),
    During(RunService("reput"), 2, Crash("power_loss", Survivors("prefix", 3), 11)),
    Restart(),
)
PROGRAM = Program(Setup(), OPS)
TOLD = """
VIOLATED power_loss, 5 steps
  log files 4096 B, queue files 10 units, ASYNC_FLUSH, ext4_ordered, digest
  d1e5
   0   put 96 B to T0/0              -> PUT_OK [0] @0 100 B  (max 100)
   1   put 96 B to T0/0 tagged TagA  -> PUT_OK [1] @100 100 B  (max 200)
   2   run flush_commit_log          -> work 1
   3 ! run reput
       at disk action 2: POWER LOSS after 11 B of the page, survivors
       PREFIX(3)
         -> down by power_loss at action 2 (write:commitlog/…4096)
   4   restart                       -> up, last exit not ok
     ✗ CQ-3 (I3), no ConsumeQueue unit points past the CommitLog's end:
         consumequeue T0/0 unit 2: phy_offset 374 of 187 B; expected at most
         374
  replay  crashmq replay x
"""


def test_a_failure_is_told_line_by_line() -> None:
    told = timeline(violated_at(PROGRAM, 4), width=76, replay="crashmq replay x")

    assert f"\n{told}\n" == TOLD


def test_ten_ops_take_at_most_twenty_five_lines() -> None:
    result = violated_at(Program(Setup(), OPS * 2), 9)

    assert len(timeline(result, replay="crashmq replay x").splitlines()) <= 25


def test_a_passed_episode_says_so() -> None:
    told = timeline(result_of(PROGRAM, toy_trace(OPS)))

    assert told.splitlines()[0] == "PASSED power_loss, 5 steps"
    assert told.splitlines()[-1] == "     ✓ no law was broken"


def test_delay_levels_of_a_brokers_own_are_told() -> None:
    program = Program(Setup(message_delay_level="3s 1m"), OPS)

    assert "delay levels 3s 1m" in timeline(result_of(program, toy_trace(OPS)))
    assert "delay levels" not in timeline(result_of(PROGRAM, toy_trace(OPS)))


def test_a_breach_at_the_end_comes_after_all_steps() -> None:
    result = result_of(
        PROGRAM,
        toy_trace(OPS),
        outcome=Outcome.VIOLATED,
        law="REC-3",
        step=len(OPS),
        message="REC-3 (I9), reput has caught up",
    )

    assert timeline(result).splitlines()[-1] == (
        "     ✗ at the end, healed and idle: REC-3 (I9), reput has caught up"
    )


def test_healing_and_reading_back_are_told_where_they_led_to_a_breach() -> None:
    program = Program(Setup(), OPS)
    restarts = (Restart(),) * 9
    first, *others = toy_trace((Restart(), *OPS, *restarts))
    trace = [replace(step, number=step.number - 1) for step in (first, *others)]
    trace[-9:] = [replace(step, number=len(OPS)) for step in trace[-9:]]

    passed = result_of(program, trace)
    passed.record.steps = len(OPS)
    broken = result_of(
        program, trace, outcome=Outcome.VIOLATED, step=len(OPS), message="REC-3"
    )
    broken.record.steps = len(OPS)

    assert timeline(passed).count("restart") == 1
    assert timeline(broken).count("\n   -   restart") == 3


def test_an_unknown_verdict_is_marked_as_such() -> None:
    result = result_of(
        PROGRAM, toy_trace(OPS), outcome=Outcome.UNKNOWN, step=1, message="CL-1 raised"
    )

    assert "     ? CL-1 raised" in timeline(result).splitlines()


def test_faults_and_damage_are_marked() -> None:
    ops: tuple[Op, ...] = (
        During(PutMessage("T0", 0, 1), 1, DiskFault("sync", "EIO")),
        Damage("commitlog[0]", "zero", 1, 2),
        During(PutMessage("T0", 0, 1), 1, RunService("reput")),
    )
    lines = timeline(result_of(Program(Setup(), ops), toy_trace(ops))).splitlines()

    assert [line[5] for line in lines if line[:4].strip().isdigit()] == ["!", "!", " "]


def test_a_planted_bug_is_named() -> None:
    result = violated_at(PROGRAM, 4)
    result.record.mutant = "R01"

    assert timeline(result).startswith("VIOLATED power_loss, planted bug R01, 5 steps")


def test_no_line_is_wider_than_asked() -> None:
    told = timeline(violated_at(PROGRAM, 4, message=MESSAGE * 3), width=60)

    assert max(map(len, told.splitlines())) <= 60


def test_many_violations_are_cut_to_a_few() -> None:
    message = "\n".join(["CQ-3 (I3), the law:", *(f"  unit {n}" for n in range(50))])

    told = timeline(violated_at(PROGRAM, 4, message=message))

    assert "and 40 more lines" in told
    assert len(told.splitlines()) < 25
