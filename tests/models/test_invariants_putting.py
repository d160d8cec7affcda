from __future__ import annotations

import pytest

from harness.episode import run_program
from models.invariants.putting import put_takes_the_next_place
from models.observations import Put
from models.ops import PutMessage
from models.program import Program, Setup
from models.verdict import Outcome


@pytest.mark.parametrize(
    ("keys", "status"), [("k" * 32_000, "PUT_OK"), ("k" * 32_760, "PROPERTIES")]
)
def test_properties_are_refused_from_their_own_limit_on(keys: str, status: str) -> None:
    setup = Setup(log_file_size=1 << 16)

    result = run_program(Program(setup, (PutMessage("T0", 0, 16, keys=keys),)))

    answer = next(step.observation for step in result.trace if step.number == 0)
    assert result.outcome is Outcome.PASSED, result.message
    assert isinstance(answer, Put)
    assert answer.status.startswith(status)


def test_a_put_beside_its_place_breaks_put_1() -> None:
    answer = Put("PUT_OK", 4096, 131, 3)

    assert not put_takes_the_next_place.violations(answer, 131, 4096, 3, 131)
    assert not put_takes_the_next_place.violations(answer, 131, -1, 3, 131)
    assert put_takes_the_next_place.violations(answer, 131, 131, 3, 131)
    assert put_takes_the_next_place.violations(answer, 131, 4096, 2, 131)
    assert put_takes_the_next_place.violations(answer, 131, 4096, 3, 130)
