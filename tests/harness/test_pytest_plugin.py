from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import crashmq
from crashmq.harness.failures.case_file import CaseFile
from crashmq.models.ops import Crash, During, PutMessage
from crashmq.models.program import Program, Setup

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
IMPORTED_FROM = str(Path(crashmq.__file__).parents[1])
INSTALLED = entry_points(group="pytest11", name="crashmq")
NAME = "crashmq" if INSTALLED else "crashmq.harness.pytest_plugin"
PLUGIN = ("-p", NAME, "-p", "no:cacheprovider")
PLANT_A_BUG = """
    import pytest
    from crashmq.models.program import Program, Setup
    from crashmq.harness.mutants.mutation import Edit, Mutant, applied

    EDIT = Edit(
        module="crashmq.harness.subjects.engine_messages",
        function="answer_of",
        before="result.queue_offset",
        after="result.queue_offset + 1",
    )
    BUG = Mutant("T01", "toy", (), (EDIT,), "a test", Program(Setup(), ()))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol():
        with applied(BUG):
            return (yield)
"""
BROKEN_LAW = "PUT-1"
A_MACHINE = """
    from crashmq.harness.searches.machine import machine_for
    from crashmq.harness.searches.search_settings import search_settings

    TestStore = machine_for("reput_behind").TestCase
    TestStore.settings = search_settings("ci", max_examples=5, shrinks=False)
"""


def case_in(directory: Path) -> None:
    program = Program(Setup(), (PutMessage("T0", 0, 16),))
    case = CaseFile("clean_restart", program, BROKEN_LAW, 0, "", "")
    case.save(directory / "lost.case.json")


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*PLUGIN, *args)


def test_the_plugin_imports_neither_engine_nor_hypothesis_when_loaded() -> None:
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, json, crashmq.harness.pytest_plugin;"
            "print(json.dumps([*sys.modules]))",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    names = set(json.loads(loaded.stdout))
    assert "pytest" in names
    assert names.isdisjoint(
        {"crashmq.engine", "crashmq.models", "crashmq.scenarios"}
        | {"hypothesis", "numpy", "msgspec"}
    )


def test_a_case_file_is_a_test_that_passes_when_no_law_is_broken(
    pytester: pytest.Pytester,
) -> None:
    case_in(pytester.path)

    run(pytester, "--crashmq", "lost.case.json").assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_case_that_fails_again_shows_its_timeline_and_no_traceback(
    pytester: pytest.Pytester,
) -> None:
    case_in(pytester.path)
    pytester.makeconftest(PLANT_A_BUG)

    result = run(pytester, "--crashmq", "lost.case.json")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{BROKEN_LAW}*", "*crashmq replay lost.c*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_case_files_of_other_tools_are_left_alone(pytester: pytest.Pytester) -> None:
    (pytester.mkdir("theirs") / "login.case.json").write_text('{"theirs": true}')
    (pytester.path / "login.case.json").write_text("[]")
    pytester.makepyfile("def test_of_theirs(): pass")

    run(pytester).assert_outcomes(passed=1)
    run(pytester, "theirs", ".").assert_outcomes(passed=1)


def test_case_files_are_collected_where_the_ini_file_says(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\ncrashmq_cases = ours\n    more/ours\n")
    (pytester.mkdir("theirs") / "login.case.json").write_text('{"theirs": true}')
    for name in ("ours", "ours/below", "more/ours"):
        (pytester.path / name).mkdir(parents=True)
        case_in(pytester.path / name)

    run(pytester).assert_outcomes(passed=3)


def test_case_files_are_collected_where_the_command_line_says(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    case_in(pytester.mkdir("ours"))
    case_in(pytester.mkdir("theirs"))

    run(pytester, "--crashmq-cases", "ours").assert_outcomes(passed=1)
    monkeypatch.chdir(pytester.path / "theirs")
    run(pytester, "--crashmq-cases", "../ours", "..").assert_outcomes(passed=1)


@pytest.mark.parametrize("text", ["{", '{"format": 99}', "[]"])
def test_a_file_that_is_no_case_fails_with_one_sentence(
    pytester: pytest.Pytester, text: str
) -> None:
    (pytester.path / "bad.case.json").write_text(text)

    result = run(pytester, "--crashmq", "bad.case.json")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*bad.case.json: *"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*def *")


def without_asserts(pytester: pytest.Pytester) -> pytest.RunResult:
    return pytester.run(sys.executable, "-O", "-m", "pytest", *PLUGIN)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["case", "machine"])
def test_nothing_of_ours_is_judged_without_asserts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    if kind == "case":
        pytester.makeini("[pytest]\ncrashmq_cases = .\n")
        case_in(pytester.path)
    else:
        pytester.makepyfile(A_MACHINE)

    result = without_asserts(pytester)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*crashmq (*) judges nothing under python -O*"])


@pytest.mark.slow
def test_tests_that_are_not_ours_run_without_asserts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile("def test_of_theirs(): pass")

    without_asserts(pytester).assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_failing_machine_leaves_a_case_file_and_the_command_to_replay_it(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(PLANT_A_BUG)
    pytester.makepyfile(A_MACHINE)

    result = run(pytester, "--crashmq-artifacts", "kept")

    result.assert_outcomes(failed=1)
    (saved,) = (pytester.path / "kept").glob("*.case.json")
    case = CaseFile.load(saved)
    assert case.violated == BROKEN_LAW
    assert len(case.program.ops) <= 1
    result.stdout.fnmatch_lines(["VIOLATED reput_behind*", f"*{BROKEN_LAW}*"])
    result.stdout.fnmatch_lines([f"crashmq replay kept/{saved.name}"])
    result.stdout.no_fnmatch_line("*stateful.py*")


@pytest.mark.slow
def test_a_profile_is_loaded_and_named_in_the_header(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", IMPORTED_FROM)
    pytester.makepyfile("""
        from hypothesis import settings

        def test_profile():
            assert settings().max_examples == 200
            assert settings().derandomize
    """)

    result = pytester.runpytest_subprocess(*PLUGIN, "--crashmq-profile", "ci")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["crashmq: profile ci"])


def test_an_unknown_profile_in_the_ini_file_is_a_usage_error(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\ncrashmq_profile = hard\n")

    result = run(pytester)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*crashmq_profile is 'hard'; take one of dev, ci, *"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["models", "engine", "harness"])
def test_a_project_may_have_packages_called_like_our_rooms(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    package = pytester.mkpydir(name)
    (package / "ops.py").write_text("THEIRS = True")
    (package / "test_theirs.py").write_text(
        f"from {name}.ops import THEIRS\n\n\ndef test_it_is_theirs():\n"
        f"    assert THEIRS\n"
    )
    case_in(package)
    path = f"{pytester.path}{os.pathsep}{IMPORTED_FROM}"
    monkeypatch.setenv("PYTHONPATH", path)

    result = pytester.runpytest_subprocess(*PLUGIN, "--crashmq-cases", name)

    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


THEIR_TESTS = """
    from pathlib import Path

    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st
    from models.ops import answer

    settings.register_profile("theirs", max_examples=7, deadline=None)
    settings.load_profile("theirs")
    seen = []

    @given(st.integers())
    def test_a_property_of_theirs(number):
        seen.append(number)
        assert answer(number) == number

    def test_their_profile_is_the_one_in_force():
        assert settings.default.max_examples == 7
        assert 0 < len(seen) <= 7 or not seen

    def test_their_package_is_theirs():
        import models
        assert Path(models.__file__).parent == Path(__file__).parent / "models"
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_foreign_project_passes_as_without_us(
    pytester: pytest.Pytester, workers: str
) -> None:
    (pytester.mkdir("models") / "__init__.py").write_text("")
    (pytester.path / "models" / "ops.py").write_text("def answer(n):\n    return n\n")
    for place in (pytester.path, pytester.mkdir("data")):
        (place / "login.case.json").write_text('{"steps": ["open", "type"]}')
    pytester.makepyfile(test_theirs=THEIR_TESTS)
    pytester.makeini("[pytest]\naddopts = --strict-config\npythonpath = .\n")
    args = ("-n", workers, "-p", "no:cacheprovider", ".", "data")

    ours = pytester.runpytest_subprocess("-p", NAME, *args)
    without = pytester.runpytest_subprocess("-p", f"no:{NAME}", *args)

    assert ours.parseoutcomes() == without.parseoutcomes()
    assert ours.parseoutcomes()["passed"] == 3
    ours.stdout.no_fnmatch_line("crashmq: *")
    assert not (pytester.path / ".crashmq").exists()


def test_a_passed_case_of_a_planted_bug_says_that_it_was_run_without(
    pytester: pytest.Pytester,
) -> None:
    program = Program(Setup(), (PutMessage("T0", 0, 16),))
    case = CaseFile("clean_restart", program, BROKEN_LAW, 0, "", "", mutant="R28")
    case.save(pytester.path / "planted.case.json")

    result = run(pytester, "--crashmq")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["crashmq: 1 passed of cases that name a*(R28)*"])


def test_the_setting_takes_all_cases_that_are_met(pytester: pytest.Pytester) -> None:
    case_in(pytester.mkdir("anywhere"))

    run(pytester).assert_outcomes(passed=0)
    pytester.makeini("[pytest]\ncrashmq = true\n")
    run(pytester).assert_outcomes(passed=1)


STORES = Path(__file__).parents[2] / "docs" / "examples"
THEIRS = "note_store:NoteStore"
THEIR_RULES = """
    from hypothesis.stateful import rule
    from note_store import NoteStore

    from crashmq.testing import Crash, During, PutMessage, RunService
    from crashmq.testing import StoreRules, search_settings

    class Notes(StoreRules):
        make = NoteStore

        @rule()
        def put(self):
            self.do(PutMessage("T0", 0, 16))

        @rule()
        def run_what_it_has_not(self):
            self.do(RunService("reput"))

        @rule()
        def put_and_kill(self):
            self.do(During(PutMessage("T0", 0, 16), 1, Crash("process_kill")))

    TestNotes = Notes.TestCase
    TestNotes.settings = search_settings("ci", max_examples=20, steps=6)
"""


def their_case_in(directory: Path) -> None:
    ops = (During(PutMessage("T0", 0, 16), 1, Crash("process_kill")),)
    program = Program(Setup(), ops)
    case = CaseFile("process_kill", program, "PUT-1", 0, "", "", subject=THEIRS)
    case.save(directory / "theirs.case.json")


@pytest.mark.slow
def test_a_case_of_their_store_runs_once_the_store_is_named(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(STORES))
    their_case_in(pytester.path)

    unnamed = run(pytester, "--crashmq")
    unnamed.assert_outcomes(failed=1)
    unnamed.stdout.fnmatch_lines([f"*or by --crashmq-subject {THEIRS}."])

    pytester.makeini(f"[pytest]\ncrashmq_subject =\n    {THEIRS}\n")
    named = run(pytester, "--crashmq")
    named.assert_outcomes(failed=1)
    replay = f"*crashmq replay theirs.case.json --subject {THEIRS}"
    named.stdout.fnmatch_lines(["VIOLATED process_kill*", replay])


@pytest.mark.slow
def test_a_failing_machine_of_their_store_leaves_a_case_of_that_store(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(STORES))
    pytester.makepyfile(THEIR_RULES)

    result = run(pytester)

    result.assert_outcomes(failed=1)
    (saved,) = (pytester.path / ".crashmq").glob("*.case.json")
    case = CaseFile.load(saved)
    assert case.subject == THEIRS
    assert len(case.program.ops) == 1
    replay = f"crashmq replay .crashmq/{saved.name} --subject {THEIRS}"
    result.stdout.fnmatch_lines(["VIOLATED clean_restart*", replay])
    result.stdout.no_fnmatch_line("*run on its own it passes*")
