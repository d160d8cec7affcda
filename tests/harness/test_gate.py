"""The gate: green on the engine, red and shrunk on a planted bug."""

from __future__ import annotations

from pathlib import Path

import pytest
from toy_episode import PLANTED

from crashmq.harness.failures.case_file import BadCaseFile, CaseFile
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.searches import gate
from crashmq.harness.searches.gate import GateProfile, GateRow, check
from crashmq.harness.searches.soak import Tally
from crashmq.models.ops import PutMessage, Restart
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

SMALL = GateProfile(machine_cases=5, soak_episodes=5, shrink_runs=300)
PUTS = (PutMessage("T0", 0, 7), PutMessage("T0", 0, 9), Restart())


@pytest.fixture(autouse=True)
def _small_and_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gate.PROFILES, "dev", SMALL)
    monkeypatch.setitem(MUTANTS, PLANTED.id, PLANTED)


def told(_what: str, done: int, total: int) -> None:
    assert 0 <= done <= max(done, total)


def test_the_shipped_engine_passes(tmp_path: Path) -> None:
    result = check(["reput_behind"], "dev", told, artefacts=tmp_path, cases=tmp_path)

    assert result.rows == [
        GateRow("reput_behind", "cases", 0, 0),
        GateRow("reput_behind", "machine", 5, 0),
        GateRow("reput_behind", "soak", 5, 0),
    ]
    assert (result.failures, result.unjudged) == ([], [])
    assert list(tmp_path.iterdir()) == []


def test_a_planted_bug_is_found_shrunk_and_kept(tmp_path: Path) -> None:
    result = check(
        ["clean_restart"],
        "dev",
        told,
        mutant="T01",
        artefacts=tmp_path,
        cases=tmp_path / "none",
    )

    first = result.failures[0]
    kept = CaseFile.load(first.case)
    assert (first.phase, first.scenario) == ("machine", "clean_restart")
    assert (kept.violated, kept.mutant) == (first.law, "T01")
    assert kept.program == PLANTED.trigger
    laws = [failure.law for failure in result.failures]
    assert len(laws) == len(set(laws))


def test_a_recorded_case_that_fails_again_is_red(tmp_path: Path) -> None:
    case = CaseFile("reput_behind", Program(Setup(), PUTS), "PUT-1", 1, "", "")
    case.save(tmp_path / "twice.case.json")

    result = check(
        ["reput_behind"],
        "dev",
        told,
        mutant="T01",
        artefacts=tmp_path / "kept",
        cases=tmp_path,
    )

    assert result.rows[0] == GateRow("reput_behind", "cases", 1, 1)
    assert result.failures[0].phase == "cases"


def test_a_case_of_another_scenario_is_not_replayed(tmp_path: Path) -> None:
    case = CaseFile("power_loss", Program(Setup(), PUTS), "PUT-1", 1, "", "")
    case.save(tmp_path / "twice.case.json")

    result = check(
        ["reput_behind"], "dev", told, artefacts=tmp_path / "kept", cases=tmp_path
    )

    assert result.rows[0].runs == 0


def test_a_broken_case_file_stops_the_gate(tmp_path: Path) -> None:
    (tmp_path / "a.case.json").write_text("{")

    with pytest.raises(BadCaseFile, match=r"a\.case\.json"):
        check(["reput_behind"], "dev", told, artefacts=tmp_path, cases=tmp_path)


def test_what_a_thousand_episodes_never_reached_is_said(tmp_path: Path) -> None:
    tally = Tally(episodes=1000)
    scenario = SCENARIOS["power_loss"]
    wanted = [*scenario.required_laws, *scenario.required_probes]

    missing = list(gate.missing_from(tally, scenario))
    few = list(gate.missing_from(Tally(episodes=10), scenario))

    assert [line.split()[-1] for line in missing] == wanted
    assert few == []
