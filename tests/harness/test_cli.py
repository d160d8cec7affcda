"""The command line: exit codes, one sentence a complaint, nothing overwritten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner, Result
from toy_episode import PLANTED
from unpacking import unpacked

from crashmq.harness.cli import main
from crashmq.harness.commands.group import _COMMANDS, _JUDGE_NOTHING
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.listing import ops as listed_ops
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.harness.searches import gate
from crashmq.harness.searches.gate_parts import GateProfile
from crashmq.models.ops import PutMessage, Restart, RunService, Shutdown
from crashmq.models.program import Program, Setup
from crashmq.reports.extras import install

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden" / "rocketmq-5.3.0-clean.tar.xz"
HEAVY = ("hypothesis", "msgspec", "numpy", "pyspark", "pytest", "rich")
HEAVY_OF_OURS = ("crashmq.models", "crashmq.engine")
OPS = (PutMessage("T0", 0, 96), RunService("reput"), Shutdown(), Restart())
CASE = CaseFile("clean_restart", Program(Setup(), OPS), "CQ-3", 3, "d1e5", "was so")


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def complaint(result: Result, code: int = 2) -> str:
    """The one line on standard error of a command that ended so."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "a.case.json"
    CASE.save(path)
    return path


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("golden")
    return unpacked(GOLDEN, directory) / "store"


def test_help_imports_nothing_heavy() -> None:
    asked = (
        "import sys\n"
        "from crashmq.harness.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        f"print([name for name in {HEAVY + HEAVY_OF_OURS!r} if name in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", asked],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout.splitlines()[-1] == "[]"


def test_every_command_of_the_help_explains_itself() -> None:
    lines = crashmq("--help").stdout.partition("Commands:")[2].splitlines()
    names = [line.split()[0] for line in lines if line.strip()]

    assert len(names) == len(_COMMANDS)
    assert all(crashmq(name, "--help").exit_code == 0 for name in names)


def test_an_unknown_command_is_met_with_the_nearest() -> None:
    result = crashmq("relpay")

    assert result.exit_code == 2
    assert "did you mean 'replay'" in result.stderr


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("check", "power_los"), "no scenario 'power_los'; did you mean 'power_loss'"),
        (("check", "--mutant", "R999", "power_loss"), "there is no mutant 'R999'"),
        (("replay", "none.case.json"), "none.case.json: cannot be read: No such file"),
        (("shrink", "none.case.json"), "none.case.json: cannot be read: No such file"),
        (("soak", "powerloss", "--episodes", 9, "--out", "x"), "mean 'power_loss'"),
    ],
)
def test_a_wrong_name_is_one_sentence(args: tuple[object, ...], sentence: str) -> None:
    assert sentence in complaint(crashmq(*args))


@pytest.mark.parametrize(
    "args",
    [
        ("soak",),
        ("soak", "power_loss", "--out", "x"),
        ("soak", "power_loss", "--out", "x", "--episodes", "0"),
        ("soak", "power_loss", "--out", "x", "--episodes", "many"),
        ("list", "colours"),
        ("check", "--profile", "quick"),
        ("replay",),
    ],
)
def test_wrong_usage_is_refused(args: tuple[str, ...]) -> None:
    result = crashmq(*args)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr


def test_a_truncated_case_file_is_refused(case: Path) -> None:
    case.write_text(case.read_text()[:-20])

    assert "is not JSON" in complaint(crashmq("replay", case))


def test_a_case_of_another_store_is_refused(case: Path) -> None:
    other = replace(CaseFile.load(case), subject="rocketmq").to_text()
    case.write_text(other)

    assert "$.subject is 'rocketmq'" in complaint(crashmq("replay", case))


def test_a_mended_case_is_told_as_such(case: Path) -> None:
    result = crashmq("replay", case)

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("PASSED clean_restart, 4 steps")
    assert "FIXED: CQ-3 is not violated." in result.stdout


def test_the_disk_of_a_moment_is_written(case: Path, tmp_path: Path) -> None:
    dump = tmp_path / "dump"

    result = crashmq("replay", case, "--until", 1, "--dump", dump)

    assert result.exit_code == 0, result.output
    assert "crashmq fsck" in result.stdout
    assert (dump / "commitlog" / ("0" * 20)).stat().st_size == 4096
    assert (dump / "abort").exists()


def test_a_dump_never_overwrites(case: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")

    args = ("replay", case, "--until", 1, "--dump", tmp_path)

    assert "exists already and is not overwritten" in complaint(crashmq(*args))
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("step", [-1, 4, 99])
def test_a_step_that_is_not_there_is_refused(case: Path, step: int) -> None:
    assert "has steps 0 to 3" in complaint(crashmq("replay", case, "--until", step))


def test_a_case_that_does_not_fail_cannot_be_shrunk(case: Path) -> None:
    said = complaint(crashmq("shrink", case))

    assert "does not break CQ-3 here" in said
    assert list(case.parent.iterdir()) == [case]


def test_a_case_that_names_no_law_is_not_shrunk(tmp_path: Path) -> None:
    path = tmp_path / "well.case.json"
    replace(CASE, violated="", step=-1, message="").save(path)

    assert "names no law that it breaks" in complaint(crashmq("shrink", path))


def test_shrink_never_overwrites(case: Path) -> None:
    said = complaint(crashmq("shrink", case, "--out", case))

    assert "exists already" in said
    assert CaseFile.load(case) == CASE


def test_a_clean_store_is_clean(golden: Path) -> None:
    result = crashmq("fsck", golden)

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "CLEAN"


def test_a_damaged_store_is_named(golden: Path, tmp_path: Path) -> None:
    for path in golden.rglob("*"):
        target = tmp_path / path.relative_to(golden)
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    log = tmp_path / "commitlog" / ("0" * 20)
    data = bytearray(log.read_bytes())
    data[4] ^= 0xFF
    log.write_bytes(data)

    text, machine = crashmq("fsck", tmp_path), crashmq("fsck", tmp_path, "--json")

    assert (text.exit_code, machine.exit_code) == (1, 1)
    assert "✗ CL-1 commitlog/00000000000000000000 byte" in text.stdout
    assert json.loads(machine.stdout)["violations"][0]["law"] == "CL-1"


def test_a_directory_of_something_else_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")

    result = crashmq("fsck", tmp_path)

    assert result.exit_code == 2
    assert result.stdout.splitlines()[0] == "NOT A STORE"
    assert str(tmp_path) in result.stdout


@pytest.mark.parametrize(
    "kind", ["scenarios", "laws", "probes", "mutants", "services", "ops"]
)
def test_what_there_is_can_be_listed(kind: str) -> None:
    result = crashmq("list", kind)

    assert result.exit_code == 0
    assert all("  " in line for line in result.stdout.splitlines())
    assert len(result.stdout.splitlines()) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scenarios", "laws", "probes", "mutants", "ops"])
def test_a_process_of_its_own_lists_what_one_with_all_modules_lists(kind: str) -> None:
    command = [sys.executable, "-m", "crashmq.harness.cli", "list", kind]
    names = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    alone = subprocess.run(command, env=names, capture_output=True, text=True)

    assert alone.stdout == crashmq("list", kind).stdout


def test_the_doctor_looks_at_everything_and_judges_the_gate() -> None:
    result = crashmq("doctor")

    assert result.exit_code == 0
    findings = [line[:6] for line in result.stdout.splitlines() if "  ok " in line]
    assert findings[:3] == ["python", "core p", "crashm"]
    told = [line.partition(":")[0] for line in result.stdout.splitlines()]
    assert {"check", "soak", "soak --local", "rocketmq"} <= set(told)
    assert "check: can run\n  next  crashmq check\n" in result.stdout


def test_the_doctor_says_what_installs_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("crashmq.harness.commands.doctor.REPORT_PACKAGES", ("no-one",))
    monkeypatch.setattr("crashmq.harness.commands.doctor.SPARK_PACKAGES", ("no-two",))

    soak, check = crashmq("doctor", "soak"), crashmq("doctor", "check")

    assert (soak.exit_code, check.exit_code) == (4, 0)
    assert "MISSING  no-two" in soak.stdout
    on_spark, _, here = soak.stdout.partition("soak --local: lacks report packages\n")
    assert f"  get   {install('spark')}\n" in on_spark
    assert here == f"  get   {install('reports')}\n"


def test_the_doctor_says_how_to_get_rocketmq_to_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, **_: None)

    result = crashmq("doctor", "rocketmq")

    assert result.exit_code == 4
    assert "JDK" in result.stdout
    assert "  get   the package maven of your system\n" in result.stdout


@pytest.fixture
def red_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A case that fails with the planted bug it names."""
    monkeypatch.setitem(MUTANTS.by_id, PLANTED.id, PLANTED)
    program = Program(Setup(), (*OPS, *PLANTED.trigger.ops, *OPS))
    with applied(PLANTED):
        result = run_program(program, "clean_restart")
    case = CaseFile(
        scenario="clean_restart",
        program=program,
        violated=result.law,
        step=result.step,
        digest=result.digest,
        message=result.message,
        mutant=PLANTED.id,
    )
    case.save(tmp_path / "red.case.json")
    return tmp_path / "red.case.json"


@pytest.mark.slow
def test_a_failure_is_replayed_with_its_planted_bug(red_case: Path) -> None:
    result = crashmq("replay", red_case)

    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("VIOLATED clean_restart, planted bug T01")
    assert "SAME: " in result.stdout
    assert "the digest is the recorded one" in result.stdout


def test_the_shipped_engine_has_not_the_planted_bug(red_case: Path) -> None:
    result = crashmq("replay", red_case, "--mutant", "none")

    assert result.exit_code == 0, result.output
    assert "it was found with --mutant T01" in result.stdout


@pytest.mark.slow
def test_another_law_than_recorded_is_told(red_case: Path) -> None:
    case = CaseFile.load(red_case)
    red_case.write_text(replace(case, violated="CL-2").to_text())

    result = crashmq("replay", red_case)

    assert result.exit_code == 1
    assert f"CHANGED: {case.violated} at step" in result.stdout


@pytest.mark.slow
def test_a_failure_is_shrunk_into_a_file_beside_it(red_case: Path) -> None:
    result = crashmq("shrink", red_case)

    small = CaseFile.load(red_case.with_name("red.min.case.json"))
    assert result.exit_code == 0, result.output
    assert small.program == PLANTED.trigger
    assert (small.violated, small.mutant) == (CaseFile.load(red_case).violated, "T01")
    assert "shrunk from 9 to 1 ops" in result.stdout


@pytest.mark.slow
def test_a_red_gate_tells_and_keeps_the_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(MUTANTS.by_id, PLANTED.id, PLANTED)
    monkeypatch.setitem(gate.PROFILES, "dev", GateProfile(3, 3, 300))

    result = crashmq("check", "clean_restart", "--mutant", "T01")

    assert result.exit_code == 1, result.output
    assert "RED: " in result.stdout
    assert "VIOLATED clean_restart, planted bug T01, 1 step" in result.stdout
    (kept,) = (tmp_path / ".crashmq").glob("clean_restart-*.case.json")
    assert f"crashmq replay {kept.relative_to(tmp_path)}" in result.stdout


@pytest.mark.slow
def test_a_green_gate_says_what_to_do_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(gate.PROFILES, "dev", GateProfile(3, 3, 300))

    result = crashmq("check", "clean_restart", "reput_behind")

    assert result.exit_code == 0, result.output
    assert "GREEN: " in result.stdout
    assert "crashmq soak clean_restart reput_behind" in result.stdout


@pytest.mark.slow
def test_a_planted_bug_that_the_gate_does_not_find_is_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(gate.PROFILES, "dev", GateProfile(1, 1, 300))

    result = crashmq("check", "reput_behind", "--mutant", "R28")

    assert result.exit_code == 1, result.output
    assert "GREEN" not in result.stdout
    assert f"MISSED: planted bug R28 ({MUTANTS['R28'].title})" in result.stdout
    assert "3 programs over reput_behind, profile dev" in result.stdout


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def rows() -> NoReturn:
        raise error

    return rows


def test_a_defect_of_ours_leaves_a_file_to_send(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    broken = raising(ZeroDivisionError("oh"))
    monkeypatch.setattr(listed_ops, "rows", broken)

    result = crashmq("list", "ops")

    (kept,) = tmp_path.iterdir()
    assert result.exit_code == 3
    assert "a defect of crashmq" in result.stderr
    assert str(kept) in result.stderr
    assert "ZeroDivisionError: oh" in kept.read_text()


def test_an_interrupt_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_ops, "rows", raising(KeyboardInterrupt()))

    assert crashmq("list", "ops").exit_code == 130


@pytest.mark.parametrize("name", _COMMANDS)
def test_no_command_judges_without_asserts(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("crashmq.harness.commands.group.are_checked", lambda: False)

    result = crashmq(name, "--help")

    if name in _JUDGE_NOTHING:
        assert result.exit_code == 0
    else:
        assert f"`crashmq {name}` judges nothing under python -O" in complaint(result)


def test_a_python_without_asserts_is_refused_in_a_sentence() -> None:
    told = subprocess.run(
        [sys.executable, "-O", "-m", "crashmq.harness.cli", "check", "reput_behind"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert (told.returncode, told.stdout) == (2, "")
    (line,) = told.stderr.splitlines()
    assert line.startswith("crashmq: `crashmq check` judges nothing under python -O")


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", ".", "--limit", "-1"),
        ("inspect", ".", "--limit", "0"),
        ("inspect", ".", "--topic", "T", "--queue", "-1"),
        ("inspect", ".", "--topic", "T", "--queue", "0", "--offset", "-1"),
        ("inspect", ".", "--phy-offset", "-1"),
        ("check", "--max-time", "nan"),
        ("check", "--max-time", "inf"),
        ("explore", "--budget", "nan"),
        ("mutants", "--budget", "inf"),
    ],
)
def test_a_number_that_means_nothing_is_refused(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, words)

    assert result.exit_code == 2, result.output
    assert f"Invalid value for '{words[-2]}'" in result.stderr
