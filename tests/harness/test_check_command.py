"""``crashmq check`` as a team uses it: for machines, with a baseline and settings."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from toy_episode import PLANTED

from crashmq.harness.cli import main
from crashmq.harness.commands import soak
from crashmq.harness.commands.settings import settings_for
from crashmq.harness.failures.baseline import BadBaseline, read_baseline
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.harness.mutants.mutation import applied
from crashmq.harness.searches import gate
from crashmq.harness.searches.gate_parts import GateProfile
from crashmq.models.laws.registry import declared_laws
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / "docs" / "ci" / "github-actions.yml"
RED = ("check", "clean_restart", "--mutant", "T01")
KNOWN = """
[[known]]
law = "PUT-1"
scenario = "clean_restart"
reason = "issue 7: the answer to a put counts from one"
expires = {expires}
"""


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture(autouse=True)
def _small_and_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(MUTANTS.by_id, PLANTED.id, PLANTED)
    monkeypatch.setitem(gate.PROFILES, "dev", GateProfile(2, 3, 300))


def test_a_failure_is_told_to_machines_as_to_people(tmp_path: Path) -> None:
    result = crashmq(*RED, "--junitxml", "j.xml", "--json", "r.json")

    told = json.loads(Path("r.json").read_text())
    suites = ET.parse("j.xml").getroot()
    (suite,) = suites
    assert result.exit_code == told["exit_code"] == 1, result.output
    assert told["verdict"] == "RED"
    (first, *_) = told["failures"]
    assert Path(first["case"]).is_file()
    assert {part["phase"] for part in told["parts"]} == {"cases", "machine", "soak"}
    failure = suite.find("testcase[@name='machine']/failure")
    assert failure is not None
    assert failure.get("type") == first["law"]
    assert "crashmq replay" in (failure.text or "")
    assert suite.get("failures") == str(len(suite.findall("*/failure")))


def test_json_alone_goes_to_standard_output() -> None:
    result = crashmq("check", "reput_behind", "--json", "-")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["verdict"] == "GREEN"


@pytest.mark.parametrize(("is_planted", "level"), [(False, "error"), (True, "notice")])
def test_under_ci_a_failure_is_annotated_and_the_page_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_planted: bool, level: str
) -> None:
    page = tmp_path / "summary.md"
    page.write_text("# before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))

    with nullcontext() if is_planted else applied(PLANTED):
        result = crashmq(*(RED if is_planted else RED[:2]))

    (first, *_) = [line for line in result.stdout.splitlines() if "%0A" in line]
    assert first.startswith(f"::{level} title=")
    assert " in clean_restart::" in first
    assert "%0Acrashmq replay" in first
    assert page.read_text().startswith("# before\n## crashmq check: RED\n")
    assert "VIOLATED clean_restart" in page.read_text()


def test_quiet_prints_the_verdict_alone() -> None:
    result = crashmq("check", "reput_behind", "-q")

    assert result.stdout.startswith("GREEN: ")
    assert result.stderr == ""


def test_a_known_failure_is_no_reason_for_red_until_it_expires() -> None:
    whole = json.loads(crashmq(*RED, "--json", "-").stdout)
    laws = {failure["law"] for failure in whole["failures"]}
    entries = [KNOWN.format(expires="2999-12-31").replace("PUT-1", one) for one in laws]
    Path("known.toml").write_text("".join(entries))
    Path("old.toml").write_text("".join(entries).replace("2999", "2020"))

    # A planted bug that nobody reports is a miss, so here the file alone decides.
    known = crashmq(*RED, "--baseline", "known.toml")
    old = crashmq(*RED, "--baseline", "old.toml")

    assert "RED" not in known.stdout, known.output
    assert "known: " in known.stdout
    assert "issue 7" in known.stdout
    assert "RED: " in old.stdout
    assert "expired: " in old.stdout
    as_json = crashmq(*RED, "--baseline", "old.toml", "--json", "-").stdout
    assert {one["law"] for one in json.loads(as_json)["expired"]} == laws


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("known = 3", "below a line"),
        ("[[knwon]]", "is not `known`"),
        (KNOWN.format(expires='"2026-12-31"'), "is to be a date"),
        (KNOWN.format(expires="2026-12-31").replace("PUT-1", "PUT-999"), "no law"),
        (KNOWN.format(expires="2026-12-31").replace("clean_", "clear_"), "no scenario"),
        ('[[known]]\nlaw = "PUT-1"\nexpires = 2026-12-31', "`reason`"),
        ("[[known]]\nlaw = 1", "law is 1"),
        ("[[known", "is not TOML"),
    ],
)
def test_a_baseline_that_is_none_is_refused(
    text: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text)

    with pytest.raises(BadBaseline, match=sentence):
        read_baseline(path, declared_laws(), SCENARIOS)
    assert crashmq("check", "reput_behind", "--baseline", path).exit_code == 2


def test_what_a_team_always_types_stands_in_its_pyproject(tmp_path: Path) -> None:
    Path("pyproject.toml").write_text(
        "[tool.crashmq]\nworkers = 1\n[tool.crashmq.check]\n"
        'scenario = "reput_behind"\nquiet = true\njson = "out/r.json"\n'
    )
    Path("out").mkdir()
    Path("below").mkdir()
    os.chdir("below")

    result = crashmq("check")

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("GREEN: ")
    told = json.loads((tmp_path / "out" / "r.json").read_text())
    assert {part["scenario"] for part in told["parts"]} == {"reput_behind"}
    assert "clean_restart" in crashmq("check", "clean_restart").stdout
    unset = crashmq("--no-settings", "check", "reput_behind")
    assert not unset.stdout.startswith("GREEN: ")
    assert unset.exit_code == 0, unset.output


def test_a_place_in_the_settings_lies_beside_them(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    os.chdir("below")
    soak.command.name = "soak"
    for out, meant in (
        ("runs", str(tmp_path / "runs")),
        ("s3://bucket/runs", "s3://bucket/runs"),
    ):
        text = f'[tool.crashmq.soak]\nout = "{out}"\n'
        (tmp_path / "pyproject.toml").write_text(text)
        assert settings_for(soak.command, ("soak",)) == {"out": meant}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tool.crashmq]\nsubjects = 'a'", "has no 'subjects'; did you mean 'subject'"),
        ("[tool.crashmq.chek]", "has no 'chek'; did you mean 'check'"),
        ("[tool.crashmq.check]\nprofil = 'ci'", "did you mean 'profile'"),
        ("[tool.crashmq.check]\nprofile = 'quick'", "'quick' is not one of"),
        ("[tool.crashmq", "cannot be read"),
    ],
)
def test_settings_that_name_nothing_are_refused(text: str, sentence: str) -> None:
    Path("pyproject.toml").write_text(text)

    result = crashmq("check", "reput_behind")

    assert result.exit_code == 2
    assert sentence in result.stderr


def commands_of_the_workflow() -> list[str]:
    """What the workflow runs, but for the installation."""
    workflow = yaml.safe_load(WORKFLOW.read_text())
    steps = workflow["jobs"]["check"]["steps"]
    return [step["run"] for step in steps if "run" in step][1:]


def test_the_workflow_of_the_docs_runs_by_its_own_commands(tmp_path: Path) -> None:
    called = tmp_path / "bin" / "crashmq"
    called.parent.mkdir()
    called.write_text(
        f"#!{sys.executable}\n"
        "from crashmq.harness.searches import gate\n"
        "from crashmq.harness.searches.gate_parts import GateProfile\n"
        "from crashmq.harness.cli import main\n"
        "gate.PROFILES['dev'] = GateProfile(4, 4, 300)\n"
        "main()\n"
    )
    called.chmod(called.stat().st_mode | stat.S_IXUSR)
    path = f"{called.parent}:{os.environ['PATH']}"
    check, canary = commands_of_the_workflow()
    # All scenarios take a minute; one says as much of the commands.
    check = check.replace("crashmq check", "crashmq check reput_behind")

    for command in (check, canary):
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    assert json.loads((tmp_path / "crashmq.json").read_text())["verdict"] == "GREEN"
    assert json.loads((tmp_path / "canary.json").read_text())["verdict"] == "RED"
    assert (tmp_path / "crashmq.xml").is_file()


def test_a_place_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()

    for place in (tmp_path, tmp_path / "file" / "below.xml"):
        result = crashmq("check", "clean_restart", "--junitxml", str(place))
        assert (result.exit_code, result.stdout) == (2, "")
        (sentence,) = result.stderr.splitlines()
        assert str(tmp_path) in sentence
