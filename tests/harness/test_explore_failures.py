"""Each call of an op fails in its turn: how many there are, and what it finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crashmq.harness.cli import main
from crashmq.harness.explore.failures import (
    CALLS,
    LEFT_BY_SYNCS,
    each_failure,
    explore_failures,
)
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.models.observations import Armed, Interrupted
from crashmq.models.ops import (
    Crash,
    DiskFault,
    During,
    Op,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.failing import failing_for
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

PUTS = (PutMessage("T0", 0, 16), PutMessage("T0", 0, 16), RunService("reput", 2))
STOPPED = Program(Setup(queue_ext_size=100), (*PUTS, Shutdown(), Restart()))


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, ["explore", *map(str, args)])


def case_of(program: Program, directory: Path) -> Path:
    path = directory / "a.case.json"
    CaseFile("latent_errors", program, "", -1, "", "").save(path)
    return path


def start_that_meets(fault: DiskFault, setup: Setup) -> Program:
    return Program(setup, (*PUTS, Shutdown(), During(Restart(), 1, fault)))


def failed(program: Program) -> Iterator[int]:
    """Of each run of a sweep of its last op, how many calls failed."""
    last = len(program.ops) - 1
    for _, result in each_failure(program, "latent_errors", last, 60):
        seen = next(step for step in result.trace if step.number == last).observation
        assert isinstance(seen, Interrupted)
        assert isinstance(seen.event, Armed)
        yield seen.event.failed


def test_a_call_that_fails_once_is_each_in_turn_until_there_is_none() -> None:
    counts = [*failed(start_that_meets(DiskFault("read", "EIO"), Setup()))]

    assert len(counts) > 2
    assert counts == [1] * (len(counts) - 1) + [0]


def test_runs_end_where_no_more_are_asked_for() -> None:
    program = start_that_meets(DiskFault("read", "EIO"), Setup())

    assert len([*each_failure(program, "latent_errors", 4, 2)]) == 2


def test_reads_that_fail_from_some_call_on_find_a_start_that_changes_its_mind() -> None:
    """Only a failure that begins between the two readings of a unit shows it."""
    program = start_that_meets(DiskFault("read", "EIO", lasts=True), STOPPED.setup)
    with applied(MUTANTS["E64"]):
        runs = [*each_failure(program, "latent_errors", 4, 60)]

    found = [result.law for _, result in runs]
    assert {"CQ-4", "CQ-1"} & {*found}
    assert found[-1] == ""


@pytest.mark.slow
def test_a_program_is_closed_when_each_call_of_each_op_has_failed() -> None:
    seen = explore_failures(STOPPED, "latent_errors")

    ways = len(STOPPED.ops) * len(CALLS) * 2
    assert seen.is_closed
    assert not seen.found
    assert seen.calls > 0
    assert seen.visited == seen.calls + ways


def test_what_a_failed_sync_leaves_is_asked_where_the_medium_shows_it() -> None:
    def ways(*behind: Op, disk: str = "ext4_ordered") -> int:
        program = Program(Setup(disk_profile=disk), (Shutdown(), *behind))
        return explore_failures(program, "power_loss", lambda: True).open

    lost = During(Restart(), 1, Crash("power_loss"))
    forgotten = During(Restart(), 1, DiskFault("evict", "EIO"))
    plain, others = len(CALLS) * 2, 2 * (len(LEFT_BY_SYNCS) - 1)

    assert ways(Restart()) == 2 * plain
    assert ways(lost) == ways(forgotten) == 2 * plain + others
    assert ways(Restart(), disk="btrfs") == 2 * (plain + others)


@pytest.mark.slow
def test_a_store_is_right_whatever_its_failed_syncs_leave() -> None:
    flush = RunService("flush_commit_log")
    lost = During(RunService("checkpoint"), 1, Crash("power_loss"))
    program = Program(Setup(), (PutMessage("T0", 0, 5000), flush, lost, Restart()))

    seen = explore_failures(program, "power_loss")

    assert seen.is_closed
    assert not seen.found


def test_when_time_is_over_the_rest_is_open() -> None:
    seen = explore_failures(STOPPED, "latent_errors", lambda: True)

    assert (seen.visited, seen.is_closed) == (0, False)
    assert seen.open == len(STOPPED.ops) * len(CALLS) * 2


@pytest.mark.slow
def test_what_happens_amid_an_op_gives_way_to_its_failure() -> None:
    put = During(PUTS[0], 1, Crash("process_kill"))
    seen = explore_failures(Program(Setup(), (put,)), "process_kill")

    assert seen.calls > 0
    assert not seen.found


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_programs_have_a_plain_op_that_meets_a_failing_call(name: str) -> None:
    for number in range(20):
        program, failing = failing_for(SCENARIOS[name], 3, number)
        assert failing_for(SCENARIOS[name], 3, number) == (program, failing)

        op = program.ops[failing]
        assert isinstance(op, During)
        assert isinstance(op.event, DiskFault)
        assert not isinstance(op.op, During)


def test_some_programs_ask_again_and_some_crash_behind_the_failure() -> None:
    asked_again, crashed = set(), set()
    for number in range(60):
        program, failing = failing_for(SCENARIOS["power_loss"], 3, number)
        op, behind = program.ops[failing], program.ops[failing + 1 :]
        assert isinstance(op, During)
        asked_again.add(behind[:1] == (op.op,))
        crashed.add(
            any(isinstance(o, During) and isinstance(o.event, Crash) for o in behind)
        )

    assert asked_again == crashed == {False, True}


@pytest.mark.slow
def test_the_command_counts_calls_and_says_what_is_closed(tmp_path: Path) -> None:
    out = tmp_path / "out"

    result = crashmq(case_of(STOPPED, tmp_path), "--failures", "--out", out)

    assert result.exit_code == 0, result.output
    assert "1, of which 1 CLOSED" in result.output
    summary = json.loads((out / "summary.json").read_text())
    assert summary["calls"] > 0
    assert (summary["open"], summary["violations"]) == (0, 0)


@pytest.mark.slow
def test_a_finding_of_the_command_is_a_case_that_replays(tmp_path: Path) -> None:
    case, out = case_of(STOPPED, tmp_path), tmp_path / "out"

    result = crashmq(case, "--failures", "--mutant", "E64", "--out", out)

    assert result.exit_code == 1, result.output
    found = sorted((out / "cases").iterdir())
    assert f"crashmq replay {found[0].parent}" in result.output
    replayed = CliRunner().invoke(main, ["replay", str(found[0])])
    assert replayed.exit_code == 1, replayed.output


@pytest.mark.slow
def test_failures_of_a_scenario_are_those_of_its_programs() -> None:
    result = crashmq("clean_restart", "--failures", "--ops", 2, "--histories", 2)

    assert result.exit_code == 0, result.output
    assert "2, of which 2 CLOSED" in result.output


def test_failures_and_schedules_are_two_questions() -> None:
    result = crashmq("clean_restart", "--failures", "--schedules", 1)

    assert result.exit_code == 2
    assert "one at a time" in result.output


def test_a_world_has_no_failures_to_be_swept() -> None:
    result = crashmq("--world", 1, "--failures")

    assert result.exit_code == 2
    assert "ask for a SCENARIO" in result.output
