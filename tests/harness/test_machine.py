from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.mutation import Edit, Mutant, applied
from crashmq.harness.searches.machine import Recorder, machine_for
from crashmq.harness.searches.machine_search import first_failure, shrunk
from crashmq.harness.searches.search_settings import search_settings
from crashmq.models.laws.registry import LawViolated
from crashmq.models.ops import PutMessage
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.space import (
    Address,
    Label,
    Size,
    put_message,
    record_overhead,
)

WRONG_OFFSET = Mutant(
    id="T01",
    title="put-answers-a-wrong-queue-offset",
    killed_by=("OFF-1",),
    edits=(
        Edit(
            module="crashmq.harness.subjects.engine_messages",
            function="answer_of",
            before="result.queue_offset",
            after="result.queue_offset + 1",
        ),
    ),
    source="a test",
    trigger=Program(Setup(), (PutMessage("T0", 0, 16),)),
)


@pytest.mark.slow
def test_a_found_failure_is_shrunk_and_breaks_the_same_law_when_run_again() -> None:
    with applied(WRONG_OFFSET):
        failure = first_failure("clean_restart", 20, None, lambda _: None)
        assert failure is not None
        found = shrunk(failure)
        result = run_program(found.program, "clean_restart")

    assert len(found.program.ops) <= 1
    assert found.scenario == "clean_restart"
    assert result.outcome is Outcome.VIOLATED
    assert (result.law, result.step) == (found.violated, found.step)
    assert result.message == found.message


@pytest.mark.slow
def test_a_search_finds_the_same_twice() -> None:
    with applied(WRONG_OFFSET):
        first, second = (
            first_failure("process_kill", 20, None, lambda _: None) for _ in range(2)
        )

    assert first is not None
    assert first == second


@pytest.mark.slow
def test_a_failing_machine_records_the_program_that_hypothesis_reports() -> None:
    recorder = Recorder()
    machine = machine_for("reput_behind", recorder)

    with applied(WRONG_OFFSET), pytest.raises(LawViolated) as caught:
        run_state_machine_as_test(
            machine, settings=search_settings("ci", max_examples=5, steps=3)
        )

    found = recorder.failures[caught.value.id]
    assert [type(op) for op in found.program.ops] == [PutMessage]
    assert (found.step, found.message) == (0, str(caught.value))


def test_a_machine_is_named_and_described_after_its_scenario() -> None:
    machine = machine_for("power_loss")

    assert machine.__name__ == "PowerLossMachine"
    assert SCENARIOS["power_loss"].sentence in str(machine.__doc__)
    assert machine.TestCase.settings.stateful_step_count == 25


def test_a_profile_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'hard'; take one of dev, ci, nightly"):
        search_settings("hard")


@pytest.mark.parametrize(
    "label",
    [Label(), Label("TagA"), Label("TagB", "key-1"), Label(wait_store_ok=False)],
)
@pytest.mark.parametrize("parts", [8, 1])
def test_the_space_knows_a_records_size_to_the_byte(label: Label, parts: int) -> None:
    address = Address("topic-of-a-longer-name", 3)
    fits = put_message(4096, address, Size(parts=parts), label)
    program = Program(Setup(), (fits,) * (parts + 1))

    trace = run_program(program).trace

    stored = [step.positions.max_phy_offset for step in trace if step.number >= 0]
    record_size = record_overhead(address.topic, label) + fits.body_size
    assert record_size * parts == 4088
    assert stored[: parts + 1] == [
        *(record_size * (n + 1) for n in range(parts)),
        4096 + record_size,
    ]
