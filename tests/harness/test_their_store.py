"""A store that is not ours, by its name: the one of the docs, on every way in."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crashmq.harness.cli import main
from crashmq.harness.failures.case_file import CaseFile
from crashmq.models.ops import Crash, During, Op, PutMessage, RunService
from crashmq.models.program import Program, Setup
from crashmq.testing import Subject, holds

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
NAME = "note_store:NoteStore"
KILLED: tuple[Op, ...] = (During(PutMessage("T0", 0, 1), 1, Crash("process_kill")),)
LAW = "PUT-1"


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def case_of(directory: Path, *ops: Op, subject: str = NAME, mutant: str = "") -> Path:
    path = directory / "lost.case.json"
    program = Program(Setup(), ops or KILLED)
    CaseFile(
        "process_kill", program, LAW, -1, "", "", subject=subject, mutant=mutant
    ).save(path)
    return path


@pytest.fixture(autouse=True)
def _beside_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))


def test_a_test_of_theirs_names_the_class_or_a_function_of_the_setup() -> None:
    stores = import_module("note_store")

    def made(setup: Setup) -> Subject:
        assert setup == Setup()
        store: Subject = stores.NoteStore()
        return store

    program = Program(Setup(), KILLED)
    for factory in (stores.NoteStore, made):
        with pytest.raises(AssertionError, match=LAW):
            holds(program, subject=factory)
    holds(program, subject=stores.MendedStore)


def test_their_case_as_a_test_runs_on_their_store(tmp_path: Path) -> None:
    printed = crashmq("case", case_of(tmp_path), "--pytest").stdout

    namespace: dict[str, object] = {}
    exec(compile(printed, "test_lost.py", "exec"), namespace)
    run = namespace["test_lost"]
    assert callable(run)
    with pytest.raises(AssertionError, match=LAW):
        run()


def test_a_store_that_cannot_be_imported_gives_no_test(tmp_path: Path) -> None:
    case = case_of(tmp_path, subject="test_it:test_one.<locals>.Store")

    told = crashmq("case", case, "--pytest")

    assert (told.exit_code, told.stdout) == (2, "")
    assert "which Python cannot import" in told.stderr


def test_what_their_store_cannot_do_is_no_defect_of_ours(tmp_path: Path) -> None:
    case = case_of(tmp_path, *KILLED, RunService("reput"), subject="python")

    for command in ("replay", "shrink"):
        told = crashmq(command, case, "--subject", NAME)
        assert (told.exit_code, told.stdout) == (2, "")
        assert f"op 1, RunService, is more than {NAME} can do" in told.stderr
        assert "TurnsServices" in told.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("check", "process_kill", "--mutant", "R28"),
        ("soak", "process_kill", "--mutant", "R28", "--episodes", 1, "--out", "run"),
        ("explore", "process_kill", "--mutant", "R28"),
        ("replay", "lost.case.json"),
        ("shrink", "lost.case.json"),
    ],
)
def test_a_bug_of_our_engine_is_not_planted_in_their_store(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    case_of(tmp_path, subject="python", mutant="R28")

    told = crashmq(*words, "--subject", NAME)

    assert (told.exit_code, told.stdout) == (2, "")
    assert "planted bug R28 changes our engine" in told.stderr


@pytest.mark.slow
def test_every_report_says_how_to_replay_on_their_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    files = ("--junitxml", "j.xml", "--json", "r.json")

    told = crashmq("check", "process_kill", "--subject", NAME, "-x", *files)

    (first, *_) = json.loads(Path("r.json").read_text())["failures"]
    replay = f"crashmq replay {first['case']} --subject {NAME}"
    assert first["replay"] == replay
    (annotation, *_) = [line for line in told.stdout.splitlines() if "::error" in line]
    assert annotation.endswith(f"%0A{replay}")
    page = Path("page.md").read_text()
    assert f"  replay  {replay}\n" in page
    assert f"profile dev, store {NAME}, " in page
    assert replay in "".join(ET.parse("j.xml").getroot().itertext())
    again = crashmq(*replay.split()[1:])
    assert again.exit_code == 1
    assert f"SAME: {first['law']} is violated" in again.stdout
