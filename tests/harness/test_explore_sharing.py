"""What is shared between states: the starts, and what judges said of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import pytest

from crashmq.harness.disk.read_tracking import Read
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.explore.certificate import Certificate
from crashmq.harness.explore.crash_point import CrashPoint, History, record
from crashmq.harness.explore.crash_states import CrashStates
from crashmq.harness.explore.explorer import Explorer
from crashmq.harness.explore.judged_crash import (
    JudgedCrash,
    JudgedCrashes,
    judged_crash,
)
from crashmq.harness.explore.limits import Limits
from crashmq.harness.explore.read_log import ReadLog
from crashmq.harness.explore.recovery import Recoveries, Remnant
from crashmq.harness.explore.state_key import StateKey, StateKeys
from crashmq.harness.judging.judge import Judge
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import Edit, Mutant, applied
from crashmq.harness.subjects.interpreter import Interpreter
from crashmq.models.history import StartEnded, Step
from crashmq.models.laws.registry import LawViolated
from crashmq.models.observations import Started
from crashmq.models.ops import (
    Crash,
    CrashKind,
    Damage,
    Op,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

SMALL_FILES = Setup(1024, 4, disk_profile="posix_min")
FLUSHED: tuple[Op, ...] = (
    PutMessage("T0", 0, 16),
    RunService("flush_commit_log"),
    RunService("checkpoint"),
    RunService("reput"),
)
PROGRAMS = {
    "sectors": Program(
        SMALL_FILES, (PutMessage("T0", 0, 16), PutMessage("T1", 0, 600))
    ),
    "files": Program(SMALL_FILES, tuple(PutMessage("T0", 0, 400) for _ in range(3))),
    "marks": Program(SMALL_FILES, (*FLUSHED, PutMessage("T0", 0, 700), *FLUSHED)),
    "ends": Program(SMALL_FILES, (*FLUSHED, Shutdown(), Restart())),
    "lies": Program(
        Setup(1024, 4, disk_profile="lying_disk"),
        (PutMessage("T0", 0, 700), *FLUSHED[1:]),
    ),
    "damage": Program(
        SMALL_FILES,
        (*FLUSHED, Shutdown(), Damage("commitlog[-1]", "flip", 60), Restart()),
    ),
    "bad": Program(
        SMALL_FILES,
        (*FLUSHED, Shutdown(), Damage("checkpoint", "unreadable", 600), Restart()),
    ),
}


def states(
    program: Program, state_keys: StateKeys
) -> Iterator[tuple[CrashPoint, JudgedCrash, Remnant]]:
    """Some of each crash point's power losses, and its kill."""
    falls = JudgedCrashes(state_keys)
    for crash_point in record(program, "power_loss").crash_points[::3]:
        disk = SimDisk.fork(crash_point.disk)
        remnant = Remnant(state_keys.of(*disk.seen()), disk.files, disk.snapshot)
        yield crash_point, falls.at(crash_point, "process_kill"), remnant
        crash_states, one = (
            CrashStates(crash_point.disk, state_keys),
            falls.at(crash_point, "power_loss"),
        )
        for state in crash_states.some(7, 24, 8):
            made = (
                partial(crash_states.files, state.vector),
                partial(crash_states.disk, state.vector),
            )
            yield crash_point, one, Remnant(state.state_key, *made)


CUTS = Mutant(
    "cuts",
    "whatever is not durable is cut",
    (),
    (
        Edit(
            "crashmq.engine.store.start_up",
            "StartUp._read",
            "self._found = found",
            "self._found = replace(found[0], end=mark.durable_offset if mark else 0), "
            "*found[1:]",
        ),
    ),
)
ENGINES = {"": None, "cuts": CUTS} | {
    name: MUTANTS[name] for name in ("S21", "X06", "R11", "S18", "X12", "R01", "R15")
}


# Each program meets a third of the engines, and each engine a third of the programs.
MET = [
    (name, engine)
    for row, name in enumerate(PROGRAMS)
    for column, engine in enumerate(ENGINES)
    if (row + column) % 3 == 0 or not engine
]


@pytest.mark.parametrize(("name", "engine"), MET)
@pytest.mark.slow
def test_what_is_said_of_a_state_is_what_is_said_of_it_alone(
    name: str, engine: str
) -> None:
    state_keys, shared_starts, count = StateKeys(), Certificate(), 0
    mutant = ENGINES[engine]
    with applied(mutant) if mutant is not None else nullcontext():
        shared = Recoveries("power_loss", state_keys, shared_starts)
        for crash_point, one, remnant in states(PROGRAMS[name], state_keys):
            if one.breach is not None:
                continue
            count += 1
            alone = Recoveries("power_loss", state_keys, Certificate())
            said, by_itself = (
                (outcome.path, str(outcome.breach))
                for outcome in (
                    shared.outcome(crash_point, one, remnant),
                    alone.outcome(crash_point, one, remnant),
                )
            )
            assert said == by_itself

    assert shared_starts.starts < count


@pytest.mark.slow
def test_states_are_counted_as_their_programs_would_be() -> None:
    """So that what a kill left and what a power loss left the same are two states."""
    explorer = Explorer("power_loss", Limits(depth=1, cuts=False))
    with applied(CUTS):
        history = record(PROGRAMS["sectors"], "power_loss")
        explorer.explore(history)
        outcomes = [
            run_program(crash_point.program(crash)).outcome
            for crash_point in history.crash_points
            for crash in (Crash("process_kill"), *power_losses(crash_point))
        ]
        states = {*told_apart(history, StateKeys())}

    assert len(outcomes) == explorer.counts.visited
    assert len(states) == explorer.counts.distinct
    assert 0 < outcomes.count(Outcome.VIOLATED) == explorer.counts.violations


def power_losses(crash_point: CrashPoint) -> Iterator[Crash]:
    crash_states = CrashStates(crash_point.disk, StateKeys())
    for state in crash_states.all():
        yield Crash("power_loss", crash_states.survivors(state.vector))


def told_apart(
    history: History, state_keys: StateKeys
) -> Iterator[tuple[StateKey, int, CrashKind]]:
    falls = JudgedCrashes(state_keys)
    for crash_point in history.crash_points:
        kill = falls.at(crash_point, "process_kill")
        yield (
            state_keys.of(*SimDisk.fork(crash_point.disk).seen()),
            kill.number,
            kill.kind,
        )
        loss = falls.at(crash_point, "power_loss")
        for state in CrashStates(crash_point.disk, state_keys).all():
            yield state.state_key, loss.number, loss.kind


def crashed(*ops: Op) -> tuple[Judge, Step, dict[str, bytes]]:
    """The judge of a store that was killed, and what its next start did and left."""
    state_keys = StateKeys()
    crash_point = record(Program(SMALL_FILES, ops), "").crash_points[-1]
    one = judged_crash(crash_point, "process_kill", state_keys)
    subject = crash_point.down_on(SimDisk.fork(crash_point.disk))
    step = Interpreter(subject, crash_point.life).run(Restart(), len(one.ops))
    return one.judge, step, dict(subject.files())


def answered(step: Step, seen: Started) -> Step:
    """The same start, with another answer."""
    events = [
        entry._replace(event=replace(entry.event, seen=seen))
        if isinstance(entry.event, StartEnded)
        else entry
        for entry in step.entries
    ]
    return Step(step.op, events)


def asked_again(
    judge: Judge, step: Step, found: dict[str, bytes], after: dict[str, bytes]
) -> str:
    try:
        return str(judge.judge_found_again(found, step, after))
    except LawViolated as breach:
        return breach.id


def test_a_judge_asked_again_looks_at_the_files_that_were_found() -> None:
    judge, step, after = crashed(*FLUSHED)
    found = dict(step.starts[0].found)
    log = "commitlog/00000000000000000000"
    believed = answered(step, Started(last_exit_ok=True, log_bytes_read=1024))

    assert asked_again(judge, step, found, after) == "-1"
    no_abort = {path: found[path] for path in found if path != "abort"}
    assert asked_again(judge, step, no_abort, after) == "REC-6"
    assert asked_again(judge, step, found | {log: bytes(1024)}, after) == "CL-1"
    assert asked_again(judge, believed, found, after) == "REC-13"


def test_a_judge_asked_again_looks_at_what_is_left_of_an_orderly_end() -> None:
    judge, step, after = crashed(*FLUSHED, Shutdown())
    found, log = dict(step.starts[0].found), "commitlog/00000000000000000000"

    assert asked_again(judge, step, found, after) == "-1"
    changed = after | {log: after[log][:-1] + b"x"}
    assert asked_again(judge, step, found, changed) == "REC-15"


def test_a_judge_of_a_damaged_log_tells_how_far_it_was_found_whole() -> None:
    damage = Damage("commitlog[-1]", "flip", 900, 1)
    judge, step, after = crashed(*FLUSHED, Shutdown(), damage)
    found = dict(step.starts[0].found)
    lost = found | {"commitlog/00000000000000000000": bytes(1024)}

    assert asked_again(judge, step, found, after) == str(step.starts[0].log_end)
    assert asked_again(judge, step, lost, after) == "REC-4"


READS = (Read("a", 0, 2), Read("b", 1, 3))


def test_a_start_is_known_by_the_answers_to_what_it_read() -> None:
    reads: ReadLog[str] = ReadLog()
    reads.add("frame", READS, {"a": b"1234", "b": b"5678"}, "known")

    assert reads.find("frame", {"a": b"12..", "b": b".67."}) == "known"
    assert reads.find("frame", {"a": b"1.34", "b": b"5678"}) is None
    assert reads.find("frame", {"a": b"1234", "b": b"56.8"}) is None
    assert reads.find("another", {"a": b"1234", "b": b"5678"}) is None


def test_starts_part_where_their_answers_do() -> None:
    reads: ReadLog[str] = ReadLog()
    reads.add("frame", READS, {"a": b"11", "b": b"111"}, "one")
    reads.add("frame", READS[:1], {"a": b"22", "b": b"111"}, "short")
    reads.add("frame", READS, {"a": b"11", "b": b"222"}, "other")

    found = [
        reads.find("frame", {"a": first, "b": second})
        for first, second in ((b"11", b".11"), (b"22", b"..."), (b"11", b"122"))
    ]

    assert found == ["one", "short", "other"]


def test_a_start_that_examined_bytes_is_known_by_what_it_was_told() -> None:
    reads: ReadLog[str] = ReadLog()
    begins = (_begins_with, b"1")
    reads.add("frame", (Read("a", 1, 3, begins),), {"a": b".12."}, "known")

    assert reads.find("frame", {"a": b"?19?"}) == "known"
    assert reads.find("frame", {"a": b"1.1."}) is None


def test_a_start_that_fell_over_bytes_is_known_by_them() -> None:
    reads: ReadLog[str] = ReadLog()
    reads.add("frame", (Read("a", 0, 2, (int,)),), {"a": b"x1"}, "known")

    assert reads.find("frame", {"a": b"x1"}) == "known"
    assert reads.find("frame", {"a": b"x2"}) is None
    assert reads.find("frame", {"a": b"11"}) is None


def _begins_with(data: bytes, start: bytes) -> bool:
    return data.startswith(start)


def test_what_a_life_examined_is_not_read_unless_it_had_changed_it() -> None:
    disk = SimDisk()
    disk.load({name: bytes(range(100)) for name in ("changed", "gone", "whole")})
    asked = disk.note_reads()
    mount = disk.mount()
    changed, gone, whole = (
        mount.open(name, 100, create=False, mapped=True)
        for name in ("changed", "gone", "whole")
    )
    begins = (_begins_with, b"\n")
    assert changed.examine(10, 5, _begins_with, b"\n")
    changed.write_at(10, b"new")
    assert not changed.examine(10, 5, _begins_with, b"\n")
    mount.remove("gone")
    assert gone.examine(10, 2, _begins_with, b"\n")
    whole.read_at(8, 20)
    assert whole.examine(10, 5, _begins_with, b"\n")

    assert asked.reads == [
        Read("changed", 10, 15, begins),
        Read("changed", 10, 15),
        Read("gone", 10, 12, begins),
        Read("whole", 8, 28),
    ]


def test_a_life_asked_for_what_it_read_and_for_what_it_left() -> None:
    disk = SimDisk()
    disk.load({name: bytes(range(100)) for name in ("cut", "gone", "left", "new")})
    asked = disk.note_reads()
    mount = disk.mount()
    file = mount.open("cut", 100, create=False, mapped=True)
    for place in (10, 40, 12):
        file.read_at(place, 20)
    file.read_at(12, 4)
    file.close()
    mount.truncate("cut", 30)
    mount.truncate("cut", 100)
    mount.remove("gone")
    mount.rename("new", "renamed")
    mount.open("made", 50, create=True, mapped=True).read_at(0, 50)

    assert asked.all() == (
        *(Read("cut", 10, 30), Read("cut", 40, 60), Read("cut", 12, 32)),
        *(Read("cut", 0, 30), Read("left", 0, 100), Read("new", 0, 100)),
    )
