"""Which law each planted bug breaks. Part of the self-test of the harness."""

from __future__ import annotations

import pytest

from harness.episode import run_program
from scenarios.mutants import MUTANTS
from scenarios.mutation import applied


@pytest.mark.parametrize("name", MUTANTS)
def test_a_trigger_breaks_the_law_it_is_known_to_break(name: str) -> None:
    mutant = MUTANTS[name]

    with applied(mutant):
        result = run_program(mutant.trigger, keep_trace=False)

    assert result.invariant in mutant.killed_by, result.message
