"""Every schedule of few preemptions: counted, closed, and what it finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crashmq.harness.cli import main
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.explore.schedules import (
    clients_in,
    each_stop,
    explore_schedules,
    together_in,
)
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.models.ops import (
    Crash,
    During,
    PutMessage,
    RunService,
    Schedule,
    Together,
)
from crashmq.models.program import Program, Setup

PUT = PutMessage("T0", 0, 16)
OTHER = PutMessage("T1", 0, 16)
TWO_PUTS = Program(Setup(), (PUT, Together((PUT, OTHER))))
ROLLS = Program(
    Setup(preallocate=True),
    (
        *(PUT, PutMessage("T0", 0, 3858)),
        Together((PutMessage("T0", 0, 3858), RunService("allocate"))),
        *(PutMessage("T0", 0, 3858), PutMessage("T0", 0, 3858)),
    ),
)


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, ["explore", *map(str, args)])


def case_of(program: Program, directory: Path) -> Path:
    path = directory / "a.case.json"
    CaseFile("interleavings", program, "", -1, "", "").save(path)
    return path


@pytest.mark.slow
def test_two_puts_have_two_outcomes_over_all_schedules() -> None:
    seen = explore_schedules(TWO_PUTS, "interleavings", bound=2)

    assert seen.is_closed
    assert not seen.found
    assert len(seen.outcomes) == 2
    assert sum(seen.outcomes.values()) == seen.visited


def test_one_is_stopped_at_each_of_its_points_until_it_comes_to_none() -> None:
    stops = [*each_stop(TWO_PUTS, "interleavings", points_max=60)]

    turns = [result.trace[-1].turns for _, result in stops]
    assert 2 < len(stops) < 60
    assert turns == [*[((n, 1),) for n in range(1, len(stops))], ()]


def test_a_stop_at_each_point_finds_a_file_that_is_made_twice() -> None:
    with applied(MUTANTS["R42"]):
        found = [result.law for _, result in each_stop(ROLLS, "overlaps", 60)]

    assert "RUN-1" in found


@pytest.mark.slow
def test_a_smaller_bound_has_fewer_schedules_and_none_has_one() -> None:
    counts = [
        explore_schedules(TWO_PUTS, "interleavings", bound=bound).visited
        for bound in (0, 1, 2)
    ]

    assert counts[0] == 1 < counts[1] < counts[2]


def test_when_time_is_over_the_rest_is_open() -> None:
    seen = explore_schedules(TWO_PUTS, "interleavings", is_over=lambda: True)

    assert (seen.visited, seen.open, seen.is_closed) == (0, 1, False)


def test_ops_during_which_a_crash_comes_have_schedules_too() -> None:
    op = During(Together((PUT, OTHER)), 1, Crash("process_kill"))
    program = Program(Setup(), (PUT, op, PUT))

    assert together_in(program) == 1
    assert explore_schedules(program, "interleavings", bound=1).visited >= 1


@pytest.mark.slow
def test_a_race_is_found_with_no_more_preemptions_than_it_needs() -> None:
    with applied(MUTANTS["R42"]):
        none = explore_schedules(ROLLS, "interleavings", bound=0)
        one = explore_schedules(ROLLS, "interleavings", bound=1)

    assert not none.found
    (found,) = one.found.values()
    together = found.ops[2]
    assert isinstance(together, Together)
    assert len(together.schedule.preemptions) == 1


@pytest.mark.slow
def test_the_command_counts_schedules_and_says_what_is_closed(tmp_path: Path) -> None:
    out = tmp_path / "out"

    result = crashmq(case_of(TWO_PUTS, tmp_path), "--schedules", 2, "--out", out)

    assert result.exit_code == 0, result.output
    assert "1, of which 1 CLOSED" in result.output
    summary = json.loads((out / "summary.json").read_text())
    assert summary["outcomes"] == 2
    assert summary["violations"] == 0


def test_no_schedule_is_run_twice() -> None:
    """Each run of two short ops has its own turns."""
    program = Program(Setup(), (Together((PUT, RunService("reput"))),))
    found = explore_schedules(program, "interleavings", bound=1)
    tried = [*_tried(program)]

    assert len(tried) == found.visited
    assert len({*tried}) == len(tried)


def _tried(program: Program) -> Iterator[tuple[tuple[int, int], ...]]:
    """The turns of each run that a schedule of at most one preemption can have."""
    told: list[tuple[tuple[int, int], ...]] = [
        (),
        *[((n, who),) for n in range(1, 60) for who in (0, 1)],
    ]
    for preemptions in told:
        schedule = Schedule(preemptions=preemptions)
        (op,) = program.ops
        assert isinstance(op, Together)
        together = replace(op, schedule=schedule)
        result = run_program(replace(program, ops=(together,)), "interleavings")
        turns = next(step.turns for step in result.trace if step.number == 0)
        if turns == preemptions:
            yield turns


def test_only_histories_of_so_many_clients_are_taken() -> None:
    result = crashmq("interleavings", "--schedules", 0, "--clients", 99)

    assert result.exit_code == 2
    assert "as those of 99 clients" in result.output
    assert crashmq("interleavings", "--clients", 2).exit_code == 2
    assert clients_in(TWO_PUTS) == 2
    assert clients_in(Program(Setup(), (PUT,))) == 0


@pytest.mark.slow
def test_a_finding_is_a_case_that_replays(tmp_path: Path) -> None:
    case, out = case_of(ROLLS, tmp_path), tmp_path / "out"

    result = crashmq(case, "--schedules", 1, "--mutant", "R42", "--out", out)

    assert result.exit_code == 1, result.output
    (found,) = (out / "cases").iterdir()
    replayed = CliRunner().invoke(main, ["replay", str(found)])
    assert replayed.exit_code == 1, replayed.output


def test_a_case_without_ops_at_the_same_time_is_refused(tmp_path: Path) -> None:
    result = crashmq(case_of(Program(Setup(), (PUT,)), tmp_path), "--schedules", 2)

    assert result.exit_code == 2
    assert "begin at the same time" in result.output


def test_schedules_of_a_scenario_are_those_of_its_programs() -> None:
    result = crashmq("interleavings", "--schedules", 0, "--histories", 3)

    assert result.exit_code == 0, result.output
    assert "3, of which 3 CLOSED" in result.output


@pytest.mark.slow
def test_workers_find_what_one_finds_and_count_the_same(tmp_path: Path) -> None:
    of_five = ("interleavings", "--schedules", 0, "--histories", 5)
    told = []
    for workers in (1, 2):
        out = tmp_path / f"by{workers}"
        mutant = ("--mutant", "R22", "--workers", workers, "--out", out)
        assert crashmq(*of_five, *mutant).exit_code == 1
        cases = sorted(out.glob("cases/*"))
        told.append(
            (
                json.loads((out / "summary.json").read_text()),
                [(case.name, case.read_text()) for case in cases],
            )
        )

    assert told[0] == told[1]
    assert told[0][1]
