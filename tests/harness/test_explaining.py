"""A failure explains itself: replay in full, explain, cases by hand and as tests."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner, Result

import crashmq.testing as crashmq_testing
from crashmq.harness.cli import main
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.episodes.file_changes import change_lines, change_summary, changes
from crashmq.harness.episodes.watched import watch
from crashmq.harness.failures.case_file import BadCaseFile, CaseFile
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.models.laws.registry import declared_laws
from crashmq.models.observations import Observation
from crashmq.models.ops import (
    EVENT_CLASSES,
    Crash,
    During,
    PutMessage,
    Restart,
    RunService,
)
from crashmq.models.program import Program, Setup
from crashmq.models.program_json import op_from_dict
from crashmq.models.short_ops import source_of
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

BUG = MUTANTS["R28"]
KILLED = (
    PutMessage("T0", 0, 16),
    RunService("reput"),
    During(PutMessage("T0", 0, 16), 1, Crash("process_kill")),
    Restart(),
)


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A case of R28 as it was found."""
    monkeypatch.chdir(tmp_path)
    with applied(BUG):
        result = run_program(BUG.trigger, "truncated_files")
    found = CaseFile(
        scenario="truncated_files",
        program=BUG.trigger,
        violated=result.law,
        step=result.step,
        digest=result.digest,
        message=result.message,
        mutant=BUG.id,
    )
    found.save(tmp_path / "a.case.json")
    return Path("a.case.json")


def test_every_start_says_what_it_read_and_did(tmp_path: Path) -> None:
    kept = watch(Program(Setup(), KILLED), "process_kill")

    first, second, *_ = [start.words for start in kept.starts]
    assert first.startswith("start after orderly: read 0 B of the log; ")
    assert "checkpoint: made, 4096 B" in first
    assert second.startswith("start after a crash: read 4096 B of the log; ")


def test_what_a_step_changed_is_told_as_records_and_units() -> None:
    kept = watch(Program(Setup(), KILLED), "process_kill", around=1)

    seen = changes(*kept.around[1])
    assert "+ unit   T0/0 #0 -> @0 131 B" in list(change_lines(seen))
    assert "built 1 unit of T0/0" in change_summary(seen)
    assert change_summary(changes(*([kept.around[1][1]] * 2))) == "changed nothing"


def test_a_record_that_is_gone_is_told_as_cut() -> None:
    one = watch(Program(Setup(), KILLED[:1]), "process_kill", until=1)
    none = watch(Program(Setup(), ()), "process_kill", until=0)

    assert "- record @0 131 B T0/0 #0" in list(
        change_lines(changes(one.last, none.last))
    )


@pytest.mark.slow
def test_a_replay_tells_the_starts_the_healed_end_and_where_to_look(
    case: Path,
) -> None:
    result = crashmq("replay", case)

    assert result.exit_code == 1, result.output
    assert result.stdout.count("start after ") >= 2
    assert "put 16 B to T0/0" in result.stdout
    assert "look at ConsumeQueue._put_unit (engine/store/queue/" in result.stdout
    assert "parts from the engine without the bug" in result.stdout
    assert f"crashmq explain {CaseFile.load(case).violated}" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("until", "step"), [("0", "1"), ("1", "breach")])
def test_a_step_behind_the_end_of_the_run_is_told_as_such(
    tmp_path: Path, until: str, step: str
) -> None:
    bug = MUTANTS["R02"]
    with applied(bug):
        result = run_program(bug.trigger)
    case = CaseFile("", bug.trigger, result.law, result.step, "", "", mutant="R02")
    case.save(tmp_path / "b.case.json")

    told = crashmq("replay", tmp_path / "b.case.json", "--until", until, "--diff", step)

    number = result.step if step == "breach" else int(step)
    assert int(until) < number < len(bug.trigger.ops)
    assert f"  files: the run ended before step {number}\n" in told.stdout


@pytest.mark.slow
def test_without_a_bug_to_compare_the_active_functions_are_told(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with applied(BUG):  # a store that nobody knows a healthy version of
        result = crashmq("replay", case, "--mutant", "none")

    assert result.exit_code == 1, result.output
    (_, told) = result.stdout.split("look at, active in the step of the breach")
    assert "(engine/store/" in told


@pytest.mark.slow
def test_the_disk_of_the_breach_is_written_and_the_step_before_it(case: Path) -> None:
    at_breach = crashmq("replay", case, "--dump", "breach")
    before = crashmq("replay", case, "--until", "0", "--dump", "step")

    assert "disk at the breach: breach" in at_breach.stdout
    assert "disk after step 0: step" in before.stdout
    assert Path("breach/commitlog").is_dir()
    assert crashmq("fsck", "step").exit_code in (0, 1)


@pytest.mark.slow
def test_until_the_breach_is_the_step_of_the_breach(tmp_path: Path) -> None:
    bug = MUTANTS["R02"]
    with applied(bug):
        result = run_program(bug.trigger)
    assert 0 <= result.step < len(bug.trigger.ops)
    case = CaseFile("", bug.trigger, result.law, result.step, "", "", mutant="R02")
    case.save(tmp_path / "b.case.json")

    told = crashmq("replay", tmp_path / "b.case.json", "--until", "breach")

    assert told.exit_code == 1, told.output
    assert result.law in told.stdout


@pytest.mark.slow
@pytest.mark.parametrize("step", ["soon", "1.5"])
def test_a_step_is_a_number_or_the_breach(case: Path, step: str) -> None:
    told = crashmq("replay", case, "--until", step)

    assert (told.exit_code, told.stdout) == (2, "")
    assert "name a number, or `breach`" in told.stderr


def test_a_healthy_run_has_no_breach(case: Path) -> None:
    told = crashmq("replay", case, "--mutant", "none", "--until", "breach")

    assert told.exit_code == 2
    assert "no law is broken here" in told.stderr


@pytest.mark.slow
def test_a_timeline_is_drawn(case: Path) -> None:
    crashmq("replay", case, "--svg", "a.svg")

    root = ET.parse("a.svg").getroot()
    drawn = "".join(root.itertext()).replace("\xa0", " ")
    assert root.tag.endswith("svg")
    assert "VIOLATED truncated_files" in drawn
    assert "exists already" in crashmq("replay", case, "--svg", "a.svg").stderr


@pytest.mark.parametrize("law", ["CQ-1", "cq-3", "OFS-1", "CFG-1", "RUN-1"])
def test_a_law_explains_itself(law: str) -> None:
    told = crashmq("explain", law, "--no-example")

    assert told.exit_code == 0, told.output
    known = declared_laws()[law.upper()]
    assert " ".join(told.stdout.split()).startswith(f"{known.id}: {known.sentence}.")
    for word in ("states", "declared", "asked", "planted bugs"):
        assert word in told.stdout


@pytest.mark.slow
def test_an_explained_law_has_an_example_that_breaks_it() -> None:
    told = crashmq("explain", "CQ-1")

    assert "example: with planted bug " in told.stdout
    assert "✗" in told.stdout
    assert "CQ-1 (I3)" in told.stdout


def test_a_law_that_there_is_not_is_refused() -> None:
    assert "there is no law 'CQ-99'" in crashmq("explain", "CQ-99").stderr
    assert "`crashmq mutants --show R28`" in crashmq("explain", "r28").stderr


@pytest.mark.slow
def test_a_case_by_hand_is_the_same_case(case: Path) -> None:
    printed = crashmq("case", case).stdout
    Path("hand.case.json").write_text(printed)

    by_hand = CaseFile.load(Path("hand.case.json"))
    assert by_hand.program == BUG.trigger
    assert (by_hand.violated, by_hand.mutant) == (CaseFile.load(case).violated, "R28")
    assert "SAME" in crashmq("replay", "hand.case.json").stdout
    assert crashmq("case", case, "--full").stdout == case.read_text()


def test_a_case_needs_no_more_than_what_is_done(tmp_path: Path) -> None:
    path = tmp_path / "least.case.json"
    ops = ["PutMessage('T0', 0, 16)", {"op": "Restart"}]
    path.write_text(json.dumps({"format": 1, "scenario": "clean_restart", "ops": ops}))

    assert CaseFile.load(path).program.ops == (PutMessage("T0", 0, 16), Restart())
    told = crashmq("replay", path)
    assert told.exit_code == 0
    assert f"PASSED: no law is violated.\n  next  crashmq explore {path}" in told.stdout


def test_people_import_every_op_and_observation_from_one_module() -> None:
    named = {*crashmq_testing.__all__}

    assert {op.__name__ for op in EVENT_CLASSES} - named == set()
    assert {seen.__name__ for seen in get_args(Observation)} - named == set()
    assert {"KeptUnit", "Schedule", "Survivors"} <= named


def test_every_op_that_is_drawn_has_a_short_form() -> None:
    for number, scenario in enumerate(SCENARIOS.values()):
        for op in program_for(scenario, 3, number).ops:
            assert op_from_dict(source_of(op), "$") == op


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("__import__('os').system('true')", "is no value of an op"),
        ("Exec('true')", "unknown op 'Exec'"),
        ("Restart(1, 2, 3)", "Restart is given 3 values, and it has"),
        ("PutMessage('T0', 0)", "PutMessage lacks body_size."),
        ("PutMessage('T0', 0, 16, colour=1)", "PutMessage has no field 'colour'; it"),
        ("PutMessage('T0', 0, 16, topic='T1')", "PutMessage is given topic twice."),
        ("PutMessage(**{'a': 1})", "by its name"),
        ("PutMessage('T0', 0, open('x'))", "unknown op 'open'"),
        ("Restart(", "is no call of an op"),
        ("3", "is no op"),
        ("Crash('process_kill')", "is an event, not an op"),
        ("PutMessage('T0', 0, 'many')", "Expected `int`"),
        ("(" * 3000, "is no call of an op"),
    ],
)
def test_a_short_form_runs_nothing(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.case.json"
    said = {"format": 1, "scenario": "clean_restart", "ops": [text]}
    path.write_text(json.dumps(said))

    with pytest.raises(BadCaseFile) as refused:
        CaseFile.load(path)
    assert sentence in str(refused.value)


@pytest.mark.slow
def test_a_case_as_a_test_passes_on_the_engine_and_fails_with_the_bug(
    case: Path,
) -> None:
    printed = crashmq("case", case, "--pytest").stdout
    namespace: dict[str, object] = {}
    exec(compile(printed, "test_a.py", "exec"), namespace)
    run = namespace["test_a"]
    assert callable(run)

    run()
    with applied(BUG), pytest.raises(AssertionError, match="VIOLATED"):
        run()


@pytest.mark.slow
def test_a_case_remembers_the_file_of_its_bug(case: Path, tmp_path: Path) -> None:
    theirs = replace(CaseFile.load(case), mutant="X01", mutant_file="bugs.toml")
    theirs.save(tmp_path / "theirs.case.json")

    told = crashmq("replay", "theirs.case.json")

    assert CaseFile.load(tmp_path / "theirs.case.json") == theirs
    assert told.exit_code == 2
    assert "add --mutant-file bugs.toml" in told.stderr
