"""The clean engine is never flagged, in seeded episodes of every scenario.

Part of the self-test that each mutant of the harness has to meet.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.failures.case_file import CaseFile
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

CASES = Path(__file__).parents[2] / "scenarios" / "cases"
EPISODES = 6


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(p.name for p in CASES.glob("*.case.json")))
def test_what_failed_once_passes(name: str) -> None:
    case = CaseFile.load(CASES / name)

    result = run_program(case.program, case.scenario, keep_trace=False)

    assert result.outcome is Outcome.PASSED, result.message


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_seeded_episodes_pass(name: str) -> None:
    for episode in range(EPISODES):
        program = program_for(SCENARIOS[name], 11, episode)

        result = run_program(program, name, keep_trace=False)

        assert result.outcome is Outcome.PASSED, (episode, result.message)
