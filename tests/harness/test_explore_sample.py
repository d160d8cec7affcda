"""Soaks and machines glance at crashes of the histories they have run."""

from __future__ import annotations

import json

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.explore.sample import sample
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.harness.searches.machine import Recorder, machine_for
from crashmq.harness.searches.soak import SoakTask
from crashmq.models.laws.registry import LawViolated
from crashmq.models.ops import PutMessage, RunService
from crashmq.models.program import Program, Setup
from crashmq.models.program_json import from_json
from crashmq.models.verdict import Outcome

OPS = (PutMessage("T0", 0, 16), PutMessage("T0", 1, 16), RunService("reput"))
BUG = MUTANTS["R22"]


@pytest.mark.slow
def test_a_glance_finds_what_the_history_itself_does_not_show() -> None:
    program = Program(Setup(), OPS)
    with applied(BUG):
        assert run_program(program).outcome is Outcome.PASSED
        found = sample(program, "", states=64)

        assert found is not None
        assert run_program(found.program).law == found.law


@pytest.mark.slow
def test_a_glance_finds_nothing_in_the_clean_engine() -> None:
    assert sample(Program(Setup(), OPS), "", states=400) is None


@pytest.mark.slow
def test_a_machine_reports_the_crashed_history_as_its_own() -> None:
    recorder = Recorder()
    machine = machine_for("clean_restart", recorder, explore=64)()
    machine.open(Setup())
    with applied(BUG):
        machine.step(*OPS)
        with pytest.raises(LawViolated) as breach:
            machine.teardown()

        failure = recorder.failures[breach.value.id]
        assert run_program(failure.program).law == breach.value.id


@pytest.mark.slow
def test_a_soak_that_explores_keeps_the_crashed_program() -> None:
    task = SoakTask.define(("clean_restart",), 0, explore=48)
    with applied(BUG):
        records = [task.run_episode(number) for number in range(4)]
        bad = [one for one in records if one.outcome == Outcome.VIOLATED.value]

        assert bad
        again = run_program(from_json(json.loads(bad[0].program)))
    assert again.outcome is Outcome.VIOLATED


def test_a_task_that_explores_nothing_is_named_as_ever() -> None:
    plain = SoakTask.define(("clean_restart",), 0)

    assert "explore" not in plain.definition
    assert plain.run_id != SoakTask.define(("clean_restart",), 0, explore=9).run_id
