"""``crashmq soak`` and ``report``, with Spark and its complaints without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import CliRunner, Result

from crashmq.harness.cli import main
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.mutants.mutants import MUTANTS

pytest.importorskip("pyspark", reason="pip install 'crashmq[spark]' brings it")

ROOT = Path(__file__).resolve().parent.parent.parent
MUTANT = "R22"
Soaked: TypeAlias = tuple[Path, subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def summary_of(out: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((out / "summary.json").read_text())
    return found


def in_a_process(*args: object) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which ends its JVM with it."""
    command = [sys.executable, "-m", "crashmq.harness.cli", *map(str, args)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Soaked:
    """A small soak of the engine with a planted bug."""
    out = tmp_path_factory.mktemp("soak") / "run"
    args = ("clean_restart", "power_loss", "--episodes", 200, "--workers", 1)
    return out, in_a_process("soak", *args, "--mutant", MUTANT, "--out", out)


@pytest.mark.slow
def test_a_soak_ends_in_a_report(soaked: Soaked) -> None:
    out, result = soaked

    assert result.returncode == 1, result.stdout + result.stderr
    assert summary_of(out)["episodes"] == 200
    assert str(out / "report.html") in result.stdout
    assert (out / "report.html").exists()


@pytest.mark.slow
def test_a_soak_leaves_a_case_file_for_each_failure(soaked: Soaked) -> None:
    out, result = soaked

    cases = [CaseFile.load(path) for path in sorted((out / "cases").iterdir())]
    assert {case.mutant for case in cases} == {MUTANT}
    assert {case.violated for case in cases} & set(MUTANTS[MUTANT].killed_by)
    assert f"crashmq shrink {out / 'cases'}" in result.stdout


@pytest.mark.slow
def test_a_case_of_a_soak_fails_as_it_did_there(soaked: Soaked) -> None:
    path = min((soaked[0] / "cases").iterdir())

    result = crashmq("replay", path)

    assert result.exit_code == 1
    assert "the digest is the recorded one" in result.stdout


@pytest.mark.slow
def test_a_report_is_rendered_again_the_same(soaked: Soaked) -> None:
    out, first = soaked
    before = summary_of(out)
    (out / "report.html").unlink()

    again = in_a_process("report", out)

    assert (again.returncode, again.stdout) == (first.returncode, first.stdout)
    assert summary_of(out) == before
    assert (out / "report.html").exists()


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")

    result = crashmq("soak", "power_loss", "--episodes", 9, "--out", tmp_path)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "already holds mine" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("master", "code"), [("spark://127.0.0.1:9", 4), ("http://here", 2)]
)
def test_a_master_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, master: str, code: int
) -> None:
    args = ("--episodes", 9, "--out", tmp_path / "run", "--master", master)

    result = crashmq("soak", "power_loss", *args)

    assert (result.exit_code, result.stdout) == (code, "")
    (sentence,) = result.stderr.splitlines()
    assert master in sentence


def test_a_machine_without_spark_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("crashmq.reports.jvm._PACKAGES", ("no_such_package",))

    result = crashmq("soak", "power_loss", "--episodes", 9, "--out", tmp_path / "run")

    assert (result.exit_code, result.stdout) == (4, "")
    assert "pip install" in result.stderr
    assert not (tmp_path / "run").exists()


def test_a_directory_without_a_run_has_no_report(tmp_path: Path) -> None:
    result = crashmq("report", tmp_path)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "holds no run of crashmq" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_workers_are_for_this_machine(tmp_path: Path) -> None:
    args = ("--episodes", 9, "--out", tmp_path, "--master", "local[1]", "--workers", 2)

    assert crashmq("soak", "power_loss", *args).exit_code == 2
