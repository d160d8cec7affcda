"""Hunts: what is searched, when it ends, and what becomes of bugs that kill."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from crashmq.harness.episodes.episode import run_program
from crashmq.harness.mutants import examine as examining
from crashmq.harness.mutants import hunt as hunting
from crashmq.harness.mutants.aim import Aim
from crashmq.harness.mutants.campaign import CANARY, Campaign, outcomes, run_campaign
from crashmq.harness.mutants.examine import examine
from crashmq.harness.mutants.failure_signature import failure_signature
from crashmq.harness.mutants.hunt import DIED, HANG, Hunt, HuntResult, hunt, kind_of
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import Edit, Mutant, applied
from crashmq.harness.mutants.policies import POLICIES
from crashmq.harness.mutants.search_slices import (
    FAILURES,
    FoundBug,
    SliceRow,
    run_slice,
)
from crashmq.harness.mutants.search_turns import (
    ROUND,
    SliceKind,
    scenario_of_slice,
    scenario_of_turn,
)
from crashmq.harness.mutants.verdict import (
    bucketing,
    policy_table,
    summary_of,
    verdict_of,
)
from crashmq.models.ops import Crash, During, PutBatch, PutMessage, Restart, Together
from crashmq.models.program import Program, Setup
from crashmq.models.program_json import from_json
from crashmq.reports.mutation_records import HuntRecord
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

SCAN = ("crashmq.engine.store.log_scan", "records_in")
SCANNED = "if request.success and request.msg_size > 0:"


def planted(after: str) -> Mutant:
    return Mutant("T01", "toy", ("CL-1",), (Edit(*SCAN, SCANNED, after),))


@pytest.mark.slow
def test_the_canary_is_found_at_once_and_cut_to_a_case_that_replays() -> None:
    row = examine(Hunt(CANARY, 0, 60.0))

    assert (row.outcome, row.is_named) == ("killed", 1)
    assert row.ops <= 3
    assert row.ops <= row.ops_found
    with applied(CANARY):
        again = run_program(from_json(json.loads(row.program)), row.scenario)
    assert (again.law, again.digest) == (row.law, row.digest)


@pytest.mark.slow
def test_a_kill_that_the_mutant_does_not_repeat_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = FoundBug("CL-1", "said", "soak", "process_kill", Program(Setup(), ()))
    result = HuntResult(found=found)
    monkeypatch.setattr(examining, "hunt", lambda _: result)

    row = examine(Hunt(CANARY, 0, 60.0))

    assert row.outcome == "unconfirmed"
    assert row.message.startswith("on the clean engine passed, with the mutant passed;")


@pytest.mark.slow
def test_the_clean_engine_survives_to_the_end_of_its_budget() -> None:
    row = examine(Hunt(None, 3, 0.2))

    assert (row.outcome, row.law) == ("survived", "")
    assert row.histories >= 10
    assert row.probes


@pytest.mark.slow
@pytest.mark.parametrize("kind", get_args(SliceKind))
def test_a_slice_is_a_function_of_seed_and_number(kind: SliceKind) -> None:
    assert run_slice(kind, 5, 2, "") == run_slice(kind, 5, 2, "")


@pytest.mark.parametrize("kind", ["machine", "explore"])
def test_slices_of_a_kind_come_to_every_scenario(kind: SliceKind) -> None:
    numbers = [n for n in range(ROUND * len(SCENARIOS)) if kind_of(n) == kind]

    assert {scenario_of_slice(number) for number in numbers} == {*SCENARIOS}


def test_sweeps_of_failing_calls_come_to_every_scenario() -> None:
    numbers = [n for n in range(ROUND * 20) if kind_of(n) == "failures"]
    sweeps = {one for n in numbers for one in range(n * FAILURES, (n + 1) * FAILURES)}

    assert {scenario_of_turn(one) for one in sweeps} == {*SCENARIOS}


@pytest.mark.slow
def test_exploring_finds_what_a_lost_sync_does_and_its_program_replays() -> None:
    bug = Mutant(
        "T02",
        "never syncs",
        ("REC-1", "REC-2"),
        (
            Edit(
                "crashmq.engine.store.logfile.mapped_file",
                "MappedFile.flush",
                "self._open_file.sync()",
                "pass",
            ),
        ),
    )
    with applied(bug):
        rows = (run_slice("explore", 1, number, "") for number in range(2, 30))
        found = next(row.found for row in rows if row.found)
        assert found.program is not None
        again = run_program(found.program, found.scenario)

    assert again.law == found.law


@pytest.mark.slow
def test_a_bug_that_ends_its_process_is_found_by_that() -> None:
    bug = planted("if __import__('os')._exit(7):")

    row = examine(Hunt(bug, 0, 20.0))

    assert (row.outcome, row.law, row.is_named) == ("killed", DIED, 0)
    assert row.program
    assert row.scenario


@pytest.mark.slow
def test_a_bug_that_hangs_its_process_is_found_by_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hunting, "SLICE_TIMEOUT_S", 3.0)
    # A slow machine's clean engine comes to an end well within it.
    monkeypatch.setattr(hunting, "EPISODE_TIMEOUT_S", 2.0)
    bug = planted("if all(True for _ in iter(int, 1)):")

    row = examine(Hunt(bug, 0, 60.0, in_cpu_time=True))

    assert (row.outcome, row.law) == ("killed", HANG)
    assert "no end in sight" in row.message


def spin(*_: object, **__: object) -> None:
    while True:
        pass


@pytest.mark.parametrize("clean_ends", [True, False])
@pytest.mark.slow
def test_a_hang_counts_only_if_the_clean_engine_comes_to_an_end(
    monkeypatch: pytest.MonkeyPatch, clean_ends: bool
) -> None:
    def slice_of(
        _kind: SliceKind, _seed: int, number: int, _policy: str, _aim: Aim
    ) -> SliceRow:
        if not number:
            spin()
        return SliceRow()

    monkeypatch.setattr(hunting, "SLICE_TIMEOUT_S", 0.2)
    monkeypatch.setattr(hunting, "EPISODE_TIMEOUT_S", 0.2)
    monkeypatch.setattr(hunting, "run_slice", slice_of)
    monkeypatch.setattr(hunting, "run_episode", spin)
    if not clean_ends:
        monkeypatch.setattr(hunting, "run_program", spin)

    result = hunt(Hunt(CANARY, 0, 0.1))

    assert (result.found is not None, result.unknown) == (clean_ends, not clean_ends)


def test_a_mutant_that_cannot_be_planted_is_a_search_not_carried_out() -> None:
    result = hunt(Hunt(planted("if nonsense(:"), 0, 5.0))

    assert result.found is None
    assert "MutantUnsupported" in result.own_defect


@pytest.mark.slow
def test_a_campaign_over_processes_finds_what_one_process_finds() -> None:
    hunts = Campaign((CANARY, MUTANTS["R22"]), budget_s=60.0).hunts()

    alone = list(run_campaign(hunts, 1))
    spread = sorted(run_campaign(hunts, 2), key=lambda row: row.mutant)

    def known(row: HuntRecord) -> tuple[str, str, int, str]:
        return row.mutant, row.law, row.ops, row.digest

    assert list(map(known, spread)) == list(map(known, alone))
    assert [one.id for one in outcomes(alone)] == ["R22"]


def row(mutant: str, outcome: str, policy: str = "", **more: object) -> HuntRecord:
    made = HuntRecord(mutant, mutant, "", 0, policy, 0, outcome)
    for name, value in more.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("rows", "code", "says"),
    [
        ([row("A", "killed")], 0, "Killed: 1 of 1 mutants."),
        ([row("A", "killed"), row("B", "survived")], 1, "Survived: 1 of 2 mutants."),
        ([row("A", "killed"), row("", "killed", law="CL-1")], 1, "False alarm"),
        ([row("A", "killed"), row("CANARY", "survived")], 5, "CANARY was not found"),
        ([row("A", "killed"), row("", "defect")], 5, "Not judged: clean engine"),
        (
            [row("A", "unconfirmed", message="on the clean engine CL-1; said")],
            1,
            "Not confirmed: A (seed 0): on the clean engine CL-1.",
        ),
    ],
)
def test_the_verdict_says_the_worst_first(
    rows: list[HuntRecord], code: int, says: str
) -> None:
    verdict = verdict_of(rows)

    assert verdict.exit_code == code
    assert says in verdict.sentence


def test_policies_are_told_side_by_side_with_what_only_one_of_them_finds() -> None:
    rows = [
        row("A", "killed", "ours", elapsed_us=2_000_000),
        row("B", "killed", "ours", elapsed_us=1_000_000),
        row("A", "killed", "omit_one", elapsed_us=500_000),
        row("B", "survived", "omit_one", elapsed_us=9_500_000),
        row("", "survived", "omit_one"),
    ]

    ours, other = policy_table(rows)

    assert (ours.killed, ours.only_here, ours.median_seconds) == (2, ("B",), 1.5)
    assert (other.mutants, other.killed, other.false_alarms) == (2, 1, 0)
    assert other.median_seconds == 5.0


def test_a_survivor_counts_with_all_the_time_it_had() -> None:
    rows = [
        row("A", "killed", elapsed_us=2_000_000),
        row("B", "survived", elapsed_us=9_000_000),
        row("C", "defect", elapsed_us=1_000),
        row("CANARY", "killed", elapsed_us=1_000),
        row("", "survived", elapsed_us=9_000_000),
    ]

    told = summary_of(rows, Campaign((), budget_s=9.0), 1.0)

    assert (told["median_seconds"], told["p95_seconds"]) == (2.0, 9.0)


def test_bucketing_is_measured_over_pairs() -> None:
    rows = [row("A", "killed", signature=s) for s in ("s", "s", "t")]
    rows += [row("B", "killed", signature="t")]

    found = bucketing(rows)

    assert (found["precision"], found["recall"]) == (0.5, 0.3333)


@pytest.mark.slow
def test_a_cause_names_law_harm_and_way_of_recovery_but_no_place() -> None:
    def crashed(topic: str) -> Program:
        put = PutMessage(topic, 0, 16)
        crash = During(put, 1, Crash("process_kill", cut=104))
        return Program(Setup(), (put, crash, Restart()))

    with applied(MUTANTS["R01"]):
        one = failure_signature(crashed("T0"), "", "CL-1")
        other = failure_signature(crashed("T1"), "", "CL-1")

    assert one.signature == other.signature
    assert one.signature.startswith("CL-1 | - | - | - | commit_log.recover.abnormal | ")


def test_a_cause_names_what_was_asked_that_is_not_plain() -> None:
    put = PutMessage("T0", 0, 16, tags="A")
    asked = Program(Setup(), (Together((put, PutBatch("T0", 0, (16,)))),))

    cause = failure_signature(asked, "", "CL-1")

    assert cause.asked == ("batch", "callers at once", "tags")
    assert "batch, callers at once, tags" in cause.signature


def test_our_own_policy_is_among_those_compared() -> None:
    assert len(POLICIES) == 8
    assert next(iter(POLICIES)) == "ours"


@pytest.mark.slow
def test_what_the_engine_raises_as_the_harness_looks_at_it_is_found() -> None:
    place = ("crashmq.engine.store.logfile.mapped_file_queue", "MappedFileQueue")
    bug = Edit(place[0], f"{place[1]}.max_offset", "if not files:", "if False:")

    row = examine(Hunt(Mutant("T04", "toy", ("RUN-1",), (bug,)), 0, 5.0))

    assert (row.outcome, row.law) == ("killed", "RUN-1")
    assert "IndexError" in row.message
