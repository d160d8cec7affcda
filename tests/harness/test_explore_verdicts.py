"""What is said of an explored state is what running its program says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.sim_file import SimFile
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.explore.certificate import Certificate
from crashmq.harness.explore.crash_point import CrashPoint, record
from crashmq.harness.explore.crash_states import CrashStates
from crashmq.harness.explore.explorer import Explorer
from crashmq.harness.explore.judged_crash import JudgedCrashes, judged_crash
from crashmq.harness.explore.limits import Limits
from crashmq.harness.explore.recovery import Recoveries, Remnant
from crashmq.harness.explore.state_key import StateKeys
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.models.ops import (
    AdvanceClock,
    Consume,
    Crash,
    CrashKind,
    Damage,
    DeleteTopic,
    During,
    EndConsumer,
    PlantFile,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    StartConsumer,
    TurnConsumer,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

KINDS: tuple[CrashKind, ...] = ("process_kill", "power_loss")
SMALL = Limits(
    depth=2,
    exact_max=16,
    exact_max_nested=4,
    promising=8,
    draws=4,
    nested_max=1,
    nested_draws=0,
)


def short(scenario: str, number: int, ops: int) -> Program:
    program = program_for(SCENARIOS[scenario], 11, number)
    return Program(program.setup, program.ops[:ops])


def two_puts() -> Program:
    ops = (PutMessage("T0", 0, 16), PutMessage("T0", 0, 600), RunService("reput"))
    return Program(Setup(), ops)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "ops"),
    [
        *(("power_loss", 8), ("process_kill", 8), ("truncated_files", 8)),
        pytest.param("consumer_crash", 40, marks=pytest.mark.slow),
        ("broadcast", 40),
    ],
)
def test_what_is_said_of_a_state_is_what_its_program_says(
    scenario: str, ops: int
) -> None:
    """Every state of a few crash points, those of a recovery too."""
    state_keys = StateKeys()
    recoveries = Recoveries(scenario, state_keys, Certificate())
    for number in range(4):
        crash_points = record(short(scenario, number, ops), scenario).crash_points
        crash_point = crash_points[len(crash_points) * (number + 1) // 5]
        for kind in KINDS:
            one = judged_crash(crash_point, kind, state_keys)
            for crash, remnant in crashes(crash_point, kind, state_keys):
                said = recoveries.outcome(crash_point, one, remnant)
                assert said.breach is None
                assert run_program(crash_point.program(crash)).outcome is Outcome.PASSED


def test_a_crash_takes_the_consumers_too_and_leaves_what_is_on_their_disks() -> None:
    """At the end another consumer goes on where the one that broadcast had told."""
    broadcasts = StartConsumer("c0", "g", "T0", "first", broadcasts=True)
    ops = (
        *(broadcasts, TurnConsumer("c0", "rebalance"), AdvanceClock(500)),
        *(PutMessage("T0", 0, 16), RunService("reput"), TurnConsumer("c0", "pull", 4)),
        *(Consume("c0"), TurnConsumer("c0", "persist"), EndConsumer("c0", "kill")),
        *(broadcasts, PutMessage("T0", 0, 16)),
    )
    crash_points = record(Program(Setup(keeps_progress=True), ops), "").crash_points
    before, after = crash_points[0], crash_points[-1]
    program = after.program(Crash("process_kill"))
    store = after.down_on(SimDisk.fork(after.disk))

    assert (before.clients, after.clients) == ((), ("c0",))
    assert program.ops[-1] == EndConsumer("c0", "kill")
    assert [*store.client_disks] == ["c0"]
    files = SimDisk.fork(store.client_disks["c0"]).files()
    assert b"}:1," in files["c0/g/offsets.json"]
    assert run_program(program).outcome is Outcome.PASSED


def crashes(
    crash_point: CrashPoint, kind: CrashKind, state_keys: StateKeys
) -> Sequence[tuple[Crash, Remnant]]:
    if kind == "process_kill" or not crash_point.disk.profile.loses_unsynced:
        disk = SimDisk.fork(crash_point.disk)
        remnant = Remnant(
            state_keys.of(*disk.seen()), disk.files, lambda: crash_point.disk
        )
        return [(Crash(kind), remnant)]
    crash_states = CrashStates(crash_point.disk, state_keys)
    return [
        (
            Crash("power_loss", crash_states.survivors(state.vector)),
            Remnant(
                state.state_key,
                partial(crash_states.files, state.vector),
                partial(crash_states.disk, state.vector),
            ),
        )
        for state in crash_states.some(0, 4, 2)
    ][:6]


def test_a_view_tells_the_files_that_its_program_finds() -> None:
    state_keys = StateKeys()
    for crash_point in record(two_puts(), "").crash_points:
        crash_states = CrashStates(crash_point.disk, state_keys)
        for state in crash_states.some(0, 40, 4):
            crash = Crash("power_loss", crash_states.survivors(state.vector))
            disk = SimDisk.fork(crash_point.disk)
            disk.crash(crash)
            assert state_keys.of(*disk.seen()) == state.state_key


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["R01", "R22"])
def test_each_finding_is_a_program_that_breaks_the_same_law(mutant: str) -> None:
    explorer = Explorer("power_loss", SMALL)
    with applied(MUTANTS[mutant]):
        explorer.explore(record(two_puts(), "power_loss"))
        assert explorer.found
        for finding in explorer.found.values():
            again = run_program(finding.program, "power_loss")
            assert (again.law, again.outcome) == (
                finding.law,
                Outcome.VIOLATED,
            )


def test_a_foreign_file_is_looked_for_at_its_moment_not_at_the_end() -> None:
    there = PlantFile("consumequeue/.nfs0001", "garbage", 7)
    gone = Damage("consumequeue[0]", "delete")
    explorer = Explorer("foreign_files", SMALL)

    explorer.explore(record(Program(Setup(), (Shutdown(), there, gone)), ""))

    assert not explorer.found


@pytest.mark.slow
def test_an_op_that_a_crash_ended_may_be_done_or_not() -> None:
    served = (PutMessage("T0", 0, 16), RunService("reput"))
    explorer = Explorer("deleted_topics", SMALL)

    explorer.explore(record(Program(Setup(), (*served, DeleteTopic("T0"))), ""))

    assert not explorer.found


def test_falls_told_from_those_before_are_what_each_is_by_itself() -> None:
    state_keys = StateKeys()
    falls = JudgedCrashes(state_keys)
    put_meanwhile = During(PutMessage("T0", 0, 600), 4, PutMessage("T1", 0, 16))
    programs = [
        *[short("power_loss", number, 8) for number in range(4)],
        Program(Setup(), (PutMessage("T0", 0, 16), put_meanwhile)),
        Program(Setup(), (During(Restart(), 2, RunService("reput")),)),
    ]
    for program in programs:
        for crash_point in record(program, "power_loss").crash_points:
            for kind in KINDS:
                one, alone = (
                    falls.at(crash_point, kind),
                    judged_crash(crash_point, kind, state_keys),
                )
                assert (one.kind, one.ops, one.number, str(one.breach)) == (
                    *(alone.kind, alone.ops, alone.number, str(alone.breach)),
                )


def test_a_fall_amid_a_write_of_the_checkpoint_may_have_torn_it() -> None:
    services = RunService("flush_commit_log"), RunService("checkpoint")
    falls, ops = JudgedCrashes(StateKeys()), (*two_puts().ops, *services)
    torn = {
        crash_point.disk.last
        for crash_point in record(Program(Setup(), ops), "").crash_points
        for kind in KINDS
        if falls.at(crash_point, kind, 4).number != falls.at(crash_point, kind).number
    }

    assert torn == {("write", "checkpoint")}


@pytest.mark.slow
def test_exploring_a_history_leaves_it_as_it_was() -> None:
    program = short("power_loss", 3, 5)
    before = run_program(program, "power_loss").digest

    history = record(program, "power_loss")
    Explorer("power_loss", SMALL).explore(history)

    assert run_program(program, "power_loss").digest == before


@pytest.mark.slow
def test_the_same_history_and_seed_give_the_same_certificate() -> None:
    program = short("power_loss", 2, 5)

    one, two = (Explorer("power_loss", SMALL, seed=5) for _ in range(2))
    for explorer in (one, two):
        explorer.explore(record(program, "power_loss"))

    assert one.counts == two.counts


@pytest.mark.slow
def test_neither_lock_nor_abort_is_ever_read() -> None:
    """So that what they hold may be left out of a state key."""
    read: list[str] = []
    before = SimFile.read_at
    with pytest.MonkeyPatch.context() as patch:

        def noted(self: SimFile, offset: int, size: int) -> bytes:
            read.append(self._path)
            return before(self, offset, size)

        patch.setattr(SimFile, "read_at", noted)
        for number in range(20):
            run_program(short("power_loss", number, 20))

    assert "checkpoint" in read
    assert not {"lock", "abort"} & set(read)
