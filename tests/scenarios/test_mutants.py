from __future__ import annotations

import pytest

from harness.episode import run_program
from harness.machine import find_failure
from models.invariants.registry import declared_invariants
from models.verdict import Outcome
from scenarios.catalogue import SCENARIOS
from scenarios.mutants import MUTANTS
from scenarios.mutation import Mutant, applied
from scenarios.workload import program_for

EVERY_MUTANT = pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
SEARCHED_EPISODES = 2000


def killers(mutant: Mutant, scenario_name: str, episodes: int) -> set[str]:
    """Laws that flag the mutant, up to the first of those it names."""
    scenario = SCENARIOS[scenario_name]
    found: set[str] = set()
    with applied(mutant):
        for episode in range(episodes):
            program = program_for(scenario, 1, episode)
            result = run_program(program, scenario_name, keep_trace=False)
            found.add(result.invariant)
            if result.invariant in mutant.killed_by:
                break
    return found


def test_the_first_four_mutants_are_there() -> None:
    assert {"R01", "R21", "R22", "R28"} <= set(MUTANTS)
    assert all(name == mutant.id for name, mutant in MUTANTS.items())


@EVERY_MUTANT
def test_a_mutant_names_laws_that_exist(mutant: Mutant) -> None:
    assert mutant.killed_by
    assert set(mutant.killed_by) <= set(declared_invariants())


@EVERY_MUTANT
def test_a_mutants_trigger_breaks_a_law_it_names(mutant: Mutant) -> None:
    with applied(mutant):
        result = run_program(mutant.trigger)

    assert result.outcome is Outcome.VIOLATED, mutant.title
    assert result.invariant in mutant.killed_by, result.message


@EVERY_MUTANT
def test_a_mutants_trigger_passes_on_the_shipped_engine(mutant: Mutant) -> None:
    result = run_program(mutant.trigger)

    assert result.outcome is Outcome.PASSED, result.message


@pytest.mark.slow
@EVERY_MUTANT
def test_a_seeded_search_of_some_scenario_kills_the_mutant(mutant: Mutant) -> None:
    found = [killers(mutant, name, SEARCHED_EPISODES) for name in SCENARIOS]

    assert any(not laws.isdisjoint(mutant.killed_by) for laws in found), found


@pytest.mark.slow
@EVERY_MUTANT
def test_hypothesis_kills_the_mutant_with_a_short_program(mutant: Mutant) -> None:
    for name in SCENARIOS:
        found = find_failure(name, max_examples=300, mutant=mutant.id)
        if found is not None and found.violated in mutant.killed_by:
            break

    assert found is not None, mutant.title
    assert found.violated in mutant.killed_by, found.message
    assert len(found.program.ops) <= 20, found.program.ops
