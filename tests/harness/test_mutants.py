from __future__ import annotations

import json
from pathlib import Path

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import Mutant, applied
from crashmq.harness.searches.machine_search import first_failure, shrunk
from crashmq.models.laws.registry import declared_laws
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

EVERY_MUTANT = pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
# Those that any search must find at once; `crashmq mutants` searches for each of them.
CANARIES = ("R01", "R21", "R22", "R28", "R23", "R53", "X12", "S18")
EACH_CANARY = pytest.mark.parametrize(
    "mutant", [MUTANTS[name] for name in CANARIES], ids=CANARIES
)
SEARCHED_EPISODES = 500
# Which law each trigger breaks: a bug that another law finds than before is to be seen.
TRIGGERED: dict[str, str] = json.loads(
    (Path(__file__).parents[1] / "selftest" / "triggered.json").read_text("utf-8")
)
MOST_DAMAGING_FIRST = sorted(SCENARIOS, reverse=True)


def killers(mutant: Mutant) -> set[str]:
    """Laws that flag the mutant in a seeded search, up to the first it names."""
    found: set[str] = set()
    with applied(mutant):
        for episode in range(SEARCHED_EPISODES):
            for name, scenario in SCENARIOS.items():
                program = program_for(scenario, 1, episode)
                found.add(run_program(program, name, keep_trace=False).law)
            if not found.isdisjoint(mutant.killed_by):
                break
    return found


def test_the_first_four_mutants_are_there() -> None:
    assert {"R01", "R21", "R22", "R28"} <= set(MUTANTS)
    assert all(name == mutant.id for name, mutant in MUTANTS.items())


@pytest.mark.slow
@EVERY_MUTANT
def test_a_mutant_says_where_it_is_and_what_it_takes(mutant: Mutant) -> None:
    assert mutant.title
    assert mutant.source
    assert mutant.component
    assert 1 <= mutant.difficulty <= 5
    assert mutant.needs


@pytest.mark.slow
@EVERY_MUTANT
def test_a_mutant_names_laws_that_exist(mutant: Mutant) -> None:
    assert mutant.killed_by
    assert set(mutant.killed_by) <= set(declared_laws())


@pytest.mark.slow
@EVERY_MUTANT
def test_a_mutants_trigger_breaks_a_law_it_names(mutant: Mutant) -> None:
    with applied(mutant):
        result = run_program(mutant.trigger)

    assert result.outcome is Outcome.VIOLATED, mutant.title
    assert result.law in mutant.killed_by, result.message
    assert result.law == TRIGGERED.get(mutant.id), "tell it in triggered.json"


@pytest.mark.slow
@EVERY_MUTANT
def test_a_mutants_trigger_passes_on_the_shipped_engine(mutant: Mutant) -> None:
    result = run_program(mutant.trigger)

    assert result.outcome is Outcome.PASSED, result.message


@pytest.mark.slow
@EACH_CANARY
def test_a_seeded_search_kills_the_mutant(mutant: Mutant) -> None:
    found = killers(mutant)

    assert not found.isdisjoint(mutant.killed_by), found


@pytest.mark.slow
@EACH_CANARY
def test_hypothesis_kills_the_mutant_with_a_short_program(mutant: Mutant) -> None:
    for name in MOST_DAMAGING_FIRST:
        with applied(mutant):
            found = first_failure(name, 100, None, lambda _: None)
            if found is not None and found.violated in mutant.killed_by:
                found = shrunk(found)
                break

    assert found is not None, mutant.title
    assert found.violated in mutant.killed_by, found.message
    assert len(found.program.ops) <= 12, found.program.ops
