"""Results as ``run_program`` gives them, of toy stores whose bugs are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from crashmq.harness.episodes.episode import EpisodeResult, TracedStep
from crashmq.harness.mutants.mutation import Edit, Mutant
from crashmq.models.observations import (
    Crashed,
    Observation,
    Positions,
    Put,
    Ran,
    Skipped,
    Started,
)
from crashmq.models.ops import Crash, During, Op, PutMessage, Restart, RunService
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.reports.records import EpisodeRecord

DOWN = Positions(-1, -1, -1, -1)
RECORD_SIZE = 100
MESSAGE = (
    "CQ-3 (I3), no ConsumeQueue unit points past the CommitLog's end:\n"
    "  consumequeue T0/0 unit 2: phy_offset 374 of 187 B; expected at most 374"
)


def result_of(
    program: Program,
    trace: list[TracedStep],
    *,
    scenario: str = "power_loss",
    outcome: Outcome = Outcome.PASSED,
    law: str = "",
    step: int = -1,
    message: str = "",
) -> EpisodeResult:
    """A result with a record that agrees with it."""
    record = EpisodeRecord(
        run_id="",
        episode_id=0,
        scenario=scenario,
        subject="python",
        mutant="",
        seed="",
        setup=json.dumps(asdict(program.setup)),
        outcome=outcome.value,
        steps=len(trace),
        crashes=0,
        recoveries=0,
        digest="d1e5",
        elapsed_us=0,
        code_version="",
    )
    return EpisodeResult(
        outcome=outcome,
        law=law,
        step=step,
        message=message,
        digest="d1e5",
        trace=trace,
        record=record,
    )


def violated_at(
    program: Program, step: int, law: str = "CQ-3", message: str = MESSAGE
) -> EpisodeResult:
    """The result of a program that breaks a law at a step, told by the toy store."""
    return result_of(
        program,
        toy_trace(program.ops[: step + 1]),
        outcome=Outcome.VIOLATED,
        law=law,
        step=step,
        message=message,
    )


def toy_trace(ops: tuple[Op, ...]) -> list[TracedStep]:
    """What a store with records of 100 bytes would show of these ops."""
    trace: list[TracedStep] = []
    size, up = 0, True
    for number, op in enumerate(ops):
        seen: Observation
        match op:
            case PutMessage() if up:
                seen = Put("PUT_OK", size, RECORD_SIZE, size // RECORD_SIZE)
                size += RECORD_SIZE
            case During(_, at_action, Crash(kind)) if up:
                action = "write:commitlog/00000000000000004096"
                seen, up = Crashed(kind, at_action, action), False
            case Restart():
                seen, up = Started(up), True
            case RunService() if up:
                seen = Ran(1)
            case _:
                seen = Skipped("the store is down")
        positions = Positions(0, size, 0, 0) if up else DOWN
        trace.append(TracedStep(number, op, seen, positions, number * 3, 1000 + number))
    return trace


Bug = Callable[[tuple[Op, ...]], int | None]


def toy_run(bug: Bug, law: str = "CQ-3") -> Callable[[Program, str], EpisodeResult]:
    """A ``run_program`` over a store whose ``bug`` says at which op it shows."""

    def run(program: Program, scenario: str) -> EpisodeResult:
        step = bug(program.ops)
        if step is None:
            return result_of(program, toy_trace(program.ops), scenario=scenario)
        return violated_at(program, step, law)

    return run


# Two messages of a queue get one queue offset: one put shows it, with that of the end.
PLANTED = Mutant(
    id="T01",
    title="queue-offset-given-twice",
    killed_by=("PUT-1",),
    edits=(
        Edit(
            module="crashmq.engine.store.queue.consume_queue_store",
            function="ConsumeQueueStore.increase_queue_offset",
            before="get(key, 0) + count",
            after="get(key, 0) + 0",
        ),
    ),
    source="a test",
    trigger=Program(Setup(), (PutMessage("T0", 0, 1),)),
)
