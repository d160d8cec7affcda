"""A certificate claims what was looked at, and no more."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from crashmq.harness.explore.campaign import Job, Result, run_job, run_jobs
from crashmq.harness.explore.certificate import Certificate
from crashmq.harness.explore.crash_point import record
from crashmq.harness.explore.explorer import Explorer
from crashmq.harness.explore.limits import WHOLE, Limits
from crashmq.harness.explore.summary import certificate_lines, exit_code_of, summary_of
from crashmq.models.ops import AdvanceClock, PutMessage, Restart
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.small_worlds import LETTERS, SETUPS, nodes

ONE_PUT = Program(Setup(), (PutMessage("T0", 0, 16),))
FOR_EVER = 1e12


def explored(limits: Limits, program: Program = ONE_PUT) -> Certificate:
    explorer = Explorer("", limits)
    explorer.explore(record(program, ""))
    return explorer.counts


def test_a_history_of_which_all_was_tried_is_closed() -> None:
    counts = explored(replace(WHOLE, depth=1))

    assert counts.is_closed
    assert counts.closed_histories == 1
    assert counts.visited == counts.space > counts.distinct > 10


@pytest.mark.slow
def test_only_the_start_of_a_recovery_is_crashed_and_not_what_makes_it_readable() -> (
    None
):
    """A broker that is closed to readers is started once more, to be read."""
    setup = Setup(keeps_progress=True, lets_read=False, disk_profile="kill9")
    closed = Job(
        "", Program(setup, (AdvanceClock(0), Restart())), 0, replace(WHOLE, depth=2)
    )

    found = run_job(closed, FOR_EVER)

    assert found.counts.visited > 100
    assert found.counts.violations == 0


def test_crashes_in_recoveries_that_were_not_tried_leave_it_open() -> None:
    counts = explored(Limits(depth=2, nested_max=1))

    assert counts.open_recoveries > 0
    assert not counts.is_closed


def test_states_left_to_chance_leave_a_moment_open() -> None:
    counts = explored(Limits(depth=1, exact_max=1, promising=1, draws=2))

    assert counts.open > 0
    assert counts.drawn.total() > 0
    assert not counts.is_closed


def test_a_run_that_stopped_early_says_so() -> None:
    result = run_job(Job("", ONE_PUT, 0, WHOLE), deadline=0.0)

    assert result.counts.stopped_early
    assert "STOPPED EARLY" in " ".join(certificate_lines(result))
    assert exit_code_of(result) == 5


def test_the_chance_of_something_new_is_the_share_of_classes_met_once() -> None:
    counts = Certificate()
    counts.drawn.update({"a": 1, "b": 3, "c": 1})

    assert counts.unseen_estimate == 2 / 5
    assert Certificate().unseen_estimate == 0.0


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.slow
def test_a_job_leaves_the_collector_of_cycles_as_it_was(*, is_on: bool) -> None:
    was_on = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        run_job(Job("", ONE_PUT, 0, replace(WHOLE, depth=1)), FOR_EVER)
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if was_on else gc.disable)()


def test_a_program_dealt_out_in_parts_comes_to_the_same() -> None:
    limits = replace(WHOLE, depth=1)
    whole = run_job(Job("", ONE_PUT, 0, limits), FOR_EVER)
    parts = Result()
    for part in range(3):
        parts.add(run_job(Job("", ONE_PUT, 0, limits, part=part, parts=3), FOR_EVER))

    assert parts.counts.visited == whole.counts.visited
    assert parts.counts.space == whole.counts.space


@pytest.mark.slow
def test_a_small_world_has_each_program_on_each_store_and_shares_crash_points() -> None:
    world = list(nodes(2))

    letters = len(LETTERS)
    assert len(world) == (letters + letters**2) * len(SETUPS)
    below = next(node for node in world if node.letters == ("small", "reput"))
    alone, whole, rest = (
        run_job(Job("", program, 0, replace(WHOLE, depth=1), shared=shared), FOR_EVER)
        for program, shared in (
            (world[0].program, 0),
            (below.program, 0),
            (below.program, below.shared),
        )
    )
    assert alone.counts.visited + rest.counts.visited == whole.counts.visited


def test_a_summary_has_the_figures_that_were_promised() -> None:
    jobs = iter([Job("", ONE_PUT, 0, replace(WHOLE, depth=1))])
    result = Result()
    for one in run_jobs(jobs, 1, 60.0):
        result.add(one)

    summary = summary_of(result, 1.0)

    assert summary["states"] == summary["space"] > 0
    assert summary["unseen_estimate"] == 0.0
    assert {
        "recoveries",
        "states_per_second_per_core",
        "recoveries_per_second_per_core",
        "histories",
        "violations",
        "unknown",
        "visited",
        "classes",
    } <= set(summary)
