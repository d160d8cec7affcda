"""Shards, records and counts of a soak, without Spark."""

from __future__ import annotations

import json
import pickle
import signal
from dataclasses import replace
from typing import Any, NoReturn

import pytest
from toy_episode import result_of, toy_trace, violated_at

from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.harness.searches import soak
from crashmq.harness.searches.declaring import declared
from crashmq.harness.searches.episode_rows import DETERMINISM, OWN_DEFECT
from crashmq.harness.searches.soak import (
    SoakTask,
)
from crashmq.harness.searches.supervised import supervised as really_supervised
from crashmq.harness.searches.tally import Tally, tallied
from crashmq.models.knowledge.facts import Fact, decided_by
from crashmq.models.ops import (
    EVERYTHING,
    Crash,
    During,
    PutMessage,
    Restart,
    RunService,
)
from crashmq.models.program import Program, Setup
from crashmq.models.program_json import from_json
from crashmq.reports.records import EpisodeRecord, ExcuseCount, Shard, VerdictRecord
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

TASK = SoakTask.define(("clean_restart", "power_loss"), seed=7)
PROGRAM = Program(Setup(), (PutMessage("T0", 0, 1), Restart()))


def untimed(record: EpisodeRecord) -> EpisodeRecord:
    return replace(record, elapsed_us=0)


def test_an_episode_is_decided_by_the_task_and_its_number() -> None:
    first, again = TASK.run_episode(3), TASK.run_episode(3)

    assert untimed(first) == untimed(again)
    assert (first.run_id, first.episode_id, first.seed) == (TASK.run_id, 3, "7")
    assert first.scenario == "power_loss"
    assert first.outcome == "passed"


@pytest.mark.slow
def test_a_shard_gives_what_its_episodes_give() -> None:
    rows = list(TASK.run_shard(Shard(5, 4)))

    assert [row.episode_id for row in rows] == [5, 6, 7, 8]
    assert untimed(rows[2]) == untimed(TASK.run_episode(7))


@pytest.mark.slow
def test_one_episode_in_a_hundred_of_each_scenario_is_run_twice() -> None:
    rechecked = [
        number
        for number in (0, 1, 2, 3, 199, 200, 201, 202)
        if any(v.law == DETERMINISM for v in TASK.run_episode(number).verdicts)
    ]

    assert rechecked == [0, 1, 200, 201]


def test_an_episode_that_was_run_twice_keeps_its_trace() -> None:
    rechecked = TASK.run_episode(0)

    steps = [event.step for event in rechecked.events]
    assert set(range(rechecked.steps)) <= set(steps)
    assert steps == sorted(steps)
    assert TASK.run_episode(2).events == []


def test_a_task_travels_and_is_named_by_what_decides_it() -> None:
    assert pickle.loads(pickle.dumps(TASK)) == TASK
    assert SoakTask.define(TASK.scenarios, 7) == TASK
    assert SoakTask.define(TASK.scenarios, 8).run_id != TASK.run_id
    assert TASK.definition["code_version"] == TASK.code_version


class Hanging(SoakTask):
    def run_episode(self, number: int) -> EpisodeRecord:
        if number == 1:
            signal.pause()
        return super().run_episode(number)


@pytest.mark.slow
def test_many_that_hang_take_little_time_each(monkeypatch: pytest.MonkeyPatch) -> None:
    class AllHanging(SoakTask):
        def run_episode(self, number: int) -> NoReturn:
            while True:
                pass

    allowed: list[float] = []

    def supervised(work: Any, numbers: Any, timeout_s: float, *more: Any) -> Any:
        allowed.append(timeout_s)
        return really_supervised(work, numbers, timeout_s, *more)

    monkeypatch.setattr(soak, "supervised", supervised)
    monkeypatch.setattr(soak, "LITTLE_PATIENCE_MIN_S", 0.0)
    task = AllHanging("run", ("clean_restart",), 7, "", "code", 0.06)

    rows = list(task.run_shard(Shard(0, 7)))

    assert [row.outcome for row in rows] == ["timeout"] * 7
    assert allowed == [0.06, 0.06 / 30]


def test_an_episode_that_kills_has_a_row_with_its_program() -> None:
    row = TASK.lost(3, "killed")

    assert (row.outcome, row.episode_id, row.run_id) == ("killed", 3, TASK.run_id)
    assert from_json(_json(row)) == TASK.program_of(3)


class Failing(SoakTask):
    def run_episode(self, number: int) -> NoReturn:
        raise RuntimeError(f"no episode {number}")


class Rambling(SoakTask):
    def run_episode(self, number: int) -> NoReturn:
        error = json.JSONDecodeError("no JSON:\n  nothing", f"{number}", 0)
        error.add_note("as told above: not here")
        raise error


@pytest.mark.slow
def test_an_episode_that_hangs_is_a_row_with_its_program() -> None:
    task = Hanging("run", ("clean_restart",), 7, "", "code", 0.5)

    rows = list(task.run_shard(Shard(0, 3)))

    assert [row.outcome for row in rows] == ["passed", "timeout", "passed"]
    assert from_json(_json(rows[1])) == task.program_of(1)
    assert (rows[1].run_id, rows[1].episode_id) == ("run", 1)


def test_a_defect_of_ours_is_unknown_never_passed() -> None:
    task = Failing("run", ("clean_restart",), 7, "", "code", 60.0)

    (row, _) = task.run_shard(Shard(0, 2))

    assert (row.outcome, row.signature) == ("unknown", "crashmq-RuntimeError")
    (verdict,) = row.verdicts
    assert (verdict.law, verdict.outcome) == (OWN_DEFECT, "unknown")
    assert "no episode 0" in verdict.message


def test_a_defect_is_named_by_its_class_whatever_its_message_says() -> None:
    task = Rambling("run", ("clean_restart",), 7, "", "code", 60.0)

    (row,) = task.run_shard(Shard(0, 1))

    assert row.signature == "crashmq-json.decoder.JSONDecodeError"
    assert "as told above" in row.verdicts[0].message


def test_another_digest_the_second_time_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digests = iter(["one", "two"])

    def run(program: Program, scenario: str, **_: object) -> EpisodeResult:
        result = result_of(program, toy_trace(program.ops), scenario=scenario)
        result.digest = next(digests)
        return result

    monkeypatch.setattr(soak, "run_program", run)
    record = TASK.run_episode(0)

    assert (record.outcome, record.signature) == ("unknown", "DET-1-clean_restart")
    assert record.verdicts[-1].violations == 1
    assert from_json(_json(record)) == TASK.program_of(0)


def test_a_failure_is_kept_with_trace_and_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(soak, "run_program", lambda p, s, **_: violated_at(p, 2))

    record = TASK.run_episode(5)

    assert record.outcome == "violated"
    assert [event.step for event in record.events] == [0, 1, 2]
    assert from_json(_json(record)) == TASK.program_of(5)


def test_a_start_at_the_end_that_fails_has_the_signature_of_any_start() -> None:
    killed = During(RunService("reput"), 1, Crash("process_kill"))
    program = Program(Setup(), (PutMessage("T0", 0, 1), killed))
    with applied(MUTANTS["R22"]):
        rows = [
            run_program(each).record
            for each in (program, replace(program, ops=(*program.ops, Restart())))
        ]

    assert [row.signature for row in rows] == ["CQ-4-Restart"] * 2
    assert [row.verdicts[-1].op for row in rows] == ["end", "Restart"]


def test_a_tally_counts_and_keeps_the_first_of_each_failure() -> None:
    tally = Tally()
    outcomes = ["passed", "unknown", "violated", "violated", "timeout"]
    for number, outcome in enumerate(outcomes):
        record = violated_at(PROGRAM, 1).record
        record.episode_id, record.outcome = number, outcome
        record.signature = "" if outcome in ("passed", "timeout") else "CQ-3-Restart"
        record.verdicts = [VerdictRecord("CQ-3", 4, 0, "passed")]
        record.excuses = [ExcuseCount("CQ-3", "alone", 3)]
        tally.add(record)

    assert (tally.episodes, tally.violated, tally.unjudged) == (5, 2, 2)
    assert tally.checks == {"CQ-3": 20}
    assert tally.excuses == {("CQ-3", "alone"): 15}
    assert {name: one.episode_id for name, one in tally.failures.items()} == {
        "unknown-CQ-3-Restart": 1,
        "CQ-3-Restart": 2,
        "timeout-power_loss": 4,
    }


@pytest.mark.slow
def test_a_small_soak_runs_here() -> None:
    *_, tally = tallied(SoakTask.define(("reput_behind",), 1), 10)

    assert (tally.episodes, tally.outcomes) == (10, {"passed": 10})
    assert tally.steps > 100


def test_everything_that_could_happen_is_declared() -> None:
    found = declared(("power_loss",))

    assert found.scenarios == {"power_loss": SCENARIOS["power_loss"].sentence}
    assert {"CL-1", "CQ-3", "REC-1", "DET-1"} <= set(found.laws)
    assert "PutMessage" in found.ops
    assert found.catalogue.keys() == found.laws.keys()
    assert found.facts["alone"] == Fact.ALONE.value
    assert found.facts.keys().isdisjoint(one.label for one in decided_by(EVERYTHING))
    assert len(found.facts) == len(Fact) - len(decided_by(EVERYTHING))


def test_of_somebodys_store_only_what_it_can_be_asked_is_declared() -> None:
    found = declared(("process_kill",), "docs.examples.note_store:MendedStore")

    assert {"PUT-1", "RD-2", "REC-4", "DET-1"} <= found.laws.keys()
    assert found.laws.keys().isdisjoint({"CL-1", "DUR-1", "IX-6"})
    assert found.catalogue.keys() == found.laws.keys()
    assert found.required_laws == {"process_kill": ["PUT-1", "RD-1", "REC-4"]}
    assert (found.probes, found.unreachable, found.required_probes) == ({}, {}, {})


def _json(record: EpisodeRecord) -> object:
    return json.loads(record.program)
