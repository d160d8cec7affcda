"""The gate: green on the engine, red and shrunk on a planted bug."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import ClassVar

import pytest
from tiny_store import TinyStore
from toy_episode import PLANTED

from crashmq.harness.failures.baseline import Known
from crashmq.harness.failures.case_file import BadCaseFile, CaseFile
from crashmq.harness.searches import gate, gate_parts
from crashmq.harness.searches.gate import GateOptions, GateProgress, GateRow, check
from crashmq.harness.searches.gate_parts import GateProfile
from crashmq.harness.searches.tally import Tally
from crashmq.harness.subjects.named import subject_named
from crashmq.models import observations as seen
from crashmq.models.messages import MessageToPut
from crashmq.models.ops import PutMessage, Restart
from crashmq.models.program import Program, Setup
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

SMALL = GateProfile(5, 5, shrink_runs=300, part_timeout_s=20.0)
PUTS = (PutMessage("T0", 0, 7), PutMessage("T0", 0, 9), Restart())


class LeavingStore(TinyStore):
    """It ends its process as if all were well."""

    def put(self, message: MessageToPut) -> seen.Observation:
        os._exit(0)


class WrongOnceStore(TinyStore):
    """Puts break PUT-1 in the first store of a process; a second one never answers."""

    made: ClassVar = Counter[int]()  # by the process

    def __init__(self) -> None:
        super().__init__()
        self.made[os.getpid()] += 1

    def put(self, message: MessageToPut) -> seen.Observation:
        while self.made[os.getpid()] > 1:
            pass
        answer = super().put(message)
        if isinstance(answer, seen.Put):
            return replace(answer, queue_offset=answer.queue_offset + 1)
        return answer


@pytest.fixture(autouse=True)
def _small_and_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gate.PROFILES, "dev", SMALL)


def told(far: GateProgress) -> None:
    assert 0 <= far.done <= far.scenarios


def kept_in(artefacts: Path, cases: Path) -> GateOptions:
    return GateOptions(workers=2, artefacts=artefacts, cases=cases)


def test_many_scenarios_share_the_programs() -> None:
    each = GateProfile(9, 40, 300, programs_max=800)

    assert each.shared_by(1) == each.shared_by(16) == each
    for scenarios in (17, 44, 400, 5000):
        shared = each.shared_by(scenarios)
        programs = shared.machine_cases + shared.soak_episodes
        assert min(shared.machine_cases, shared.soak_episodes) >= 1
        assert programs * scenarios <= 800 or programs == 2, scenarios


@pytest.mark.slow
def test_the_shipped_engine_passes(tmp_path: Path) -> None:
    result = check(["reput_behind"], "dev", told, options=kept_in(tmp_path, tmp_path))

    assert result.rows == [
        GateRow("reput_behind", "cases", 0, 0),
        GateRow("reput_behind", "machine", 5, 0),
        GateRow("reput_behind", "soak", 5, 0),
    ]
    assert (result.failures, result.unjudged) == ([], [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_number_of_workers_decides_nothing(tmp_path: Path) -> None:
    def found(workers: int) -> list[object]:
        kept = tmp_path / str(workers)
        options = GateOptions(workers=workers, artefacts=kept, cases=tmp_path / "none")
        names = ["clean_restart", "reput_behind"]
        result = check(names, "dev", told, mutant=PLANTED, options=options)
        failures = [(f.law, f.scenario, f.phase) for f in result.failures]
        return [result.rows, failures, sorted(path.name for path in kept.iterdir())]

    assert found(1) == found(3)


@pytest.mark.slow
def test_a_gate_that_stops_at_the_first_failure_says_what_it_left(
    tmp_path: Path,
) -> None:
    options = replace(kept_in(tmp_path, tmp_path / "none"), workers=1, first_only=True)
    names = ["clean_restart", "reput_behind"]
    result = check(names, "dev", told, mutant=PLANTED, options=options)

    assert len(result.failures) == 1
    assert ("reput_behind", "soak") in result.not_run


def test_a_gate_without_time_says_that_it_asked_nothing(tmp_path: Path) -> None:
    options = replace(kept_in(tmp_path, tmp_path), max_time_s=0.0)
    result = check(["clean_restart"], "dev", told, options=options)

    assert result.unfinished_scenarios == ["clean_restart"]
    assert (result.failures, result.interrupted) == ([], False)


@pytest.mark.slow
def test_a_part_that_its_store_ended_is_not_judged(tmp_path: Path) -> None:
    leaving = subject_named(f"{__name__}:LeavingStore")

    options = kept_in(tmp_path, tmp_path / "none")
    result = check(["clean_restart"], "dev", told, subject=leaving, options=options)

    assert (
        "the machine of clean_restart: its process ended by exit:0" in result.unjudged
    )
    assert result.failures == []


@pytest.mark.slow
def test_the_time_for_a_gate_is_that_of_shrinking_too(tmp_path: Path) -> None:
    cases, wrong = tmp_path / "cases", subject_named(f"{__name__}:WrongOnceStore")
    cases.mkdir()
    case = CaseFile("clean_restart", Program(Setup(), PUTS), "PUT-1", 1, "", "")
    case.save(cases / "wrong.case.json")

    options = replace(kept_in(tmp_path, cases), max_time_s=6.0)
    result = check(["clean_restart"], "dev", told, subject=wrong, options=options)

    (failure,) = result.failures
    assert (failure.phase, failure.law) == ("cases", "PUT-1")
    assert (failure.shrunk.runs, failure.shrunk.exhausted) == (1, True)
    assert result.unjudged == []  # the shrinking was cut, and not ended as hung


@pytest.mark.slow
def test_a_known_failure_is_counted_and_no_other_is_hidden(tmp_path: Path) -> None:
    whole = kept_in(tmp_path / "all", tmp_path / "none")
    red = check(["clean_restart"], "dev", told, mutant=PLANTED, options=whole)
    (first, *others) = [failure.law for failure in red.failures]
    entry = Known(first, "we know", date(2026, 12, 31), "clean_restart")
    options = replace(whole, artefacts=tmp_path / "kept", baseline=(entry,))

    result = check(["clean_restart"], "dev", told, mutant=PLANTED, options=options)

    assert result.known[entry] >= 1
    assert [failure.law for failure in result.failures] == others
    assert sum(row.known for row in result.rows) == result.known[entry]


def test_a_failure_elsewhere_than_the_baseline_says_is_red(tmp_path: Path) -> None:
    entry = Known("PUT-1", "we know", date(2026, 12, 31), "power_loss")

    assert entry.is_of("PUT-1", "power_loss")
    assert not entry.is_of("PUT-1", "clean_restart")
    assert replace(entry, scenario="").is_of("PUT-1", "clean_restart")


@pytest.mark.slow
def test_a_planted_bug_is_found_shrunk_and_kept(tmp_path: Path) -> None:
    result = check(
        ["clean_restart"],
        "dev",
        told,
        mutant=PLANTED,
        options=kept_in(tmp_path, tmp_path / "none"),
    )

    first = result.failures[0]
    kept = CaseFile.load(first.case)
    assert (first.phase, first.scenario) == ("machine", "clean_restart")
    assert (kept.violated, kept.mutant) == (first.law, "T01")
    assert kept.program == PLANTED.trigger
    laws = [failure.law for failure in result.failures]
    assert len(laws) == len(set(laws))


@pytest.mark.slow
def test_a_recorded_case_that_fails_again_is_red(tmp_path: Path) -> None:
    case = CaseFile("reput_behind", Program(Setup(), PUTS), "PUT-1", 1, "", "")
    case.save(tmp_path / "twice.case.json")

    result = check(
        ["reput_behind"],
        "dev",
        told,
        mutant=PLANTED,
        options=kept_in(tmp_path / "kept", tmp_path),
    )

    assert result.rows[0] == GateRow("reput_behind", "cases", 1, 1)
    assert result.failures[0].phase == "cases"


@pytest.mark.slow
def test_a_case_of_another_scenario_is_not_replayed(tmp_path: Path) -> None:
    case = CaseFile("power_loss", Program(Setup(), PUTS), "PUT-1", 1, "", "")
    case.save(tmp_path / "twice.case.json")

    options = kept_in(tmp_path / "kept", tmp_path)
    result = check(["reput_behind"], "dev", told, options=options)

    assert result.rows[0].runs == 0


def test_a_broken_case_file_stops_the_gate(tmp_path: Path) -> None:
    (tmp_path / "a.case.json").write_text("{")

    with pytest.raises(BadCaseFile, match=r"a\.case\.json"):
        check(["reput_behind"], "dev", told, options=kept_in(tmp_path, tmp_path))


def test_what_a_thousand_episodes_never_reached_is_said(tmp_path: Path) -> None:
    tally = Tally(episodes=1000)
    scenario = SCENARIOS["power_loss"]
    wanted = [*scenario.required_laws, *scenario.required_probes]

    missing = list(gate_parts.missing_from(tally, scenario))
    few = list(gate_parts.missing_from(Tally(episodes=10), scenario))

    assert [line.split()[-1] for line in missing] == wanted
    assert few == []
