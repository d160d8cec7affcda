from __future__ import annotations

from crashmq.harness.episodes.episode import run_program
from crashmq.models.ops import During, PutMessage, RunService
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome


def test_a_service_turned_amid_its_own_round_waits_for_the_end_of_it() -> None:
    replay = RunService("reput")
    puts = (PutMessage("T0", 0, 16), PutMessage("T0", 0, 16))
    program = Program(Setup(), (*puts, During(replay, 1, replay)))

    result = run_program(program)

    assert result.outcome is Outcome.PASSED, result.message
    assert [step.op for step in result.trace if step.number == 2] == [program.ops[2]]
