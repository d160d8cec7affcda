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
from crashmq.harness.commands.arguments import writing
from crashmq.harness.commands.exits import EnvironmentLacking
from crashmq.harness.commands.reporting import reporting_what_is_missing
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.mutants.mutants import MUTANTS
from crashmq.reports.errors import CannotWrite, NotInstalled, ShardLost, cannot_write
from crashmq.reports.run_dir import elapsed_of, read_sessions

pytest.importorskip("pyarrow", reason="pip install 'crashmq[reports]' brings it")

ROOT = Path(__file__).resolve().parent.parent.parent
MUTANT = "R22"
TWO = ("clean_restart", "power_loss", "--episodes")
RED = ("soak", *TWO, 60, "--mutant", MUTANT)
Soaked: TypeAlias = tuple[Path, subprocess.CompletedProcess[str]]

on_spark = pytest.mark.xdist_group("spark")


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
    pytest.importorskip("pyspark", reason="pip install 'crashmq[spark]' brings it")
    return out, in_a_process(*RED, "--workers", 1, "--out", out)


@pytest.mark.slow
@pytest.mark.spark
@on_spark
def test_a_soak_ends_in_a_report(soaked: Soaked) -> None:
    out, result = soaked

    assert result.returncode == 1, result.stdout + result.stderr
    assert summary_of(out)["episodes"] == 60
    assert str(out / "report.html") in result.stdout
    assert (out / "report.html").exists()


@pytest.mark.slow
def test_the_next_soak_is_in_the_manner_of_this_one(tmp_path: Path) -> None:
    manner = ("--local", "--invariants", "--explore", 1)

    done = in_a_process(
        *("soak", "clean_restart", "--episodes", 4, *manner, "--seed", 6),
        *("--out", tmp_path / "run"),
    )

    assert done.stdout.endswith(
        "  next    crashmq soak clean_restart --episodes 4 --seed 7 --explore 1 "
        "--invariants --local --out runs/seed-7\n"
    )


@pytest.mark.slow
def test_what_failed_on_a_store_is_shrunk_on_it(tmp_path: Path) -> None:
    store = "docs.examples.note_store:NoteStore"
    soak = ("soak", "process_kill", "--subject", store, "--local")

    done = in_a_process(*soak, "--episodes", 30, "--out", tmp_path / "run")
    *_, next_line = done.stdout.splitlines()
    told = in_a_process(*next_line.split()[2:], "--out", tmp_path / "small.case.json")

    assert done.returncode == 1, done.stdout + done.stderr
    assert next_line.endswith(f"--subject {store}")
    assert "small.case.json" in told.stdout, told.stdout + told.stderr


@pytest.mark.slow
@pytest.mark.spark
@on_spark
def test_a_soak_leaves_a_case_file_for_each_failure(soaked: Soaked) -> None:
    out, result = soaked

    cases = [CaseFile.load(path) for path in sorted((out / "cases").iterdir())]
    assert {case.mutant for case in cases} == {MUTANT}
    assert {case.violated for case in cases} & set(MUTANTS[MUTANT].killed_by)
    assert f"crashmq shrink {out / 'cases'}" in result.stdout


@pytest.mark.slow
@pytest.mark.spark
@on_spark
def test_a_case_of_a_soak_fails_as_it_did_there(soaked: Soaked) -> None:
    path = min((soaked[0] / "cases").iterdir())

    result = crashmq("replay", path)

    assert result.exit_code == 1
    assert "the digest is the recorded one" in result.stdout


@pytest.mark.slow
@pytest.mark.spark
@on_spark
def test_a_report_is_rendered_again_the_same(soaked: Soaked) -> None:
    out, first = soaked
    before = summary_of(out)
    (out / "report.html").unlink()

    again = in_a_process("report", out)

    assert (again.returncode, again.stdout) == (first.returncode, first.stdout)
    assert summary_of(out) == before
    assert (out / "report.html").exists()


@pytest.mark.slow
@pytest.mark.spark
@on_spark
def test_processes_here_find_what_spark_finds(soaked: Soaked, tmp_path: Path) -> None:
    out, on_spark = soaked

    here = in_a_process(*RED, "--local", "--out", tmp_path / "run")

    def without_places(text: str, where: Path) -> list[str]:
        return text.replace(str(where), "").splitlines()

    assert here.returncode == on_spark.returncode
    found = without_places(here.stdout, tmp_path / "run")
    assert found == without_places(on_spark.stdout, out)


@pytest.mark.slow
def test_a_soak_without_spark_goes_on_and_becomes_longer(tmp_path: Path) -> None:
    again = in_a_process("soak", *TWO, 6, "--local", "--out", tmp_path / "again")
    again = in_a_process("soak", *TWO, 16, "--local", "--out", tmp_path / "again")
    whole = in_a_process("soak", *TWO, 16, "--local", "--out", tmp_path / "whole")

    found, wanted = summary_of(tmp_path / "again"), summary_of(tmp_path / "whole")
    assert (again.returncode, whole.returncode) == (0, 0), again.stderr
    assert "continues run" in again.stderr
    assert "6 of 16 episodes are there" in again.stderr
    assert found["digest"] == wanted["digest"]
    assert (found["episodes"], found["steps"]) == (16, wanted["steps"])
    assert [
        path.name for path in sorted((tmp_path / "again" / "sessions").iterdir())
    ] == [
        "0001.json",
        "0002.json",
    ]


@pytest.mark.slow
def test_a_planted_bug_that_breaks_no_law_is_missed(tmp_path: Path) -> None:
    args = ("--episodes", 4, "--mutant", "E269", "--local", "--out", tmp_path / "run")

    result = in_a_process("soak", "clean_restart", *args)

    again = in_a_process("report", tmp_path / "run")

    assert result.returncode == 1, result.stdout + result.stderr
    assert result.stdout.startswith("MISSED: planted bug E269 (")
    assert result.stdout.endswith("  next    crashmq mutants --only E269\n")
    assert (again.returncode, again.stdout) == (1, result.stdout)
    assert "**MISSED: planted bug E269" in (tmp_path / "run/report.md").read_text()
    assert summary_of(tmp_path / "run")["exit_code"] == 1


@pytest.mark.slow
def test_a_night_has_a_place_and_a_seed_of_its_own(tmp_path: Path) -> None:
    night = ("--seed", "nightly", "--night", "2026-11-24", "--time", "1s")

    result = in_a_process("soak", "clean_restart", "--local", *night, "--out", tmp_path)

    (place,) = tmp_path.iterdir()
    assert result.returncode == 0, result.stdout + result.stderr
    assert place.name.startswith("2026-11-24-")
    definition = json.loads((place / "run.json").read_text())["definition"]
    assert definition["seed"] == 20261124
    assert summary_of(place)["episodes"] == summary_of(place)["episodes_planned"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "say how long: --episodes N, --time 6h, or both"),
        (("--time", "soon"), "'soon' is no time like 90s, 45m or 6h"),
        (("--episodes", 9, "--seed", "x"), "'x' is no number from 0 on, nor nightly"),
        (("--episodes", 9, "--night", "2026-01-01"), "--night is for --seed nightly"),
        (
            ("--episodes", 9, "--local", "--master", "yarn"),
            "--local is for this machine",
        ),
    ],
)
def test_what_contradicts_is_one_sentence(
    tmp_path: Path, args: tuple[object, ...], says: str
) -> None:
    result = crashmq("soak", "power_loss", *args, "--out", tmp_path / "out")

    assert result.exit_code == 2
    assert says in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("args", [(), ("--local",)])
def test_a_place_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "run"

    result = crashmq("soak", "power_loss", "--episodes", 9, *args, "--out", out)

    assert result.exit_code == 2
    (sentence,) = result.stderr.splitlines()
    assert "cannot be written: Not a directory" in sentence


def test_a_disk_that_is_full_is_told_though_no_file_is_named() -> None:
    with (
        pytest.raises(EnvironmentLacking, match=r"^a file cannot be writ.*No space l"),
        writing(),
        Path("/dev/full").open("w", encoding="utf-8") as file,
    ):
        file.write("x")


def test_what_to_do_without_spark_is_told_where_it_is_not_installed() -> None:
    with (
        pytest.raises(EnvironmentLacking, match=r"^No Java\. Take --local\.$"),
        reporting_what_is_missing(spark=False, instead="Take --local."),
    ):
        raise NotInstalled("No Java.")
    full = cannot_write("runs", "it is full")
    with (
        pytest.raises(CannotWrite) as refusal,
        reporting_what_is_missing(spark=False, instead="Take --local."),
    ):
        raise full

    assert refusal.value is full


def test_a_place_elsewhere_is_refused_and_no_directory_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    result = crashmq("soak", "power_loss", "--episodes", 9, "--out", "hdfs://b/run")

    assert result.exit_code == 2
    assert "'hdfs://b/run': hdfs:// is not read or written" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "ended"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (ShardLost("No memory is left."), 4, "gave up: No memory is left."),
    ],
)
def test_a_session_that_stops_says_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    ended: str,
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("crashmq.harness.searches.shards_here.run_here", stop)

    soak = ("soak", "power_loss", "--episodes", 9, "--local")
    result = crashmq(*soak, "--out", tmp_path / "run")

    assert result.exit_code == code
    (session,) = read_sessions(tmp_path / "run")
    assert session.ended == ended
    assert elapsed_of(tmp_path / "run") is None


@pytest.mark.slow
def test_a_run_of_something_else_is_not_gone_on_with(tmp_path: Path) -> None:
    args = ("--local", "--episodes", 4, "--out", tmp_path / "run")
    in_a_process("soak", "clean_restart", *args)

    result = crashmq("soak", "power_loss", *args)

    assert result.exit_code == 2
    assert "holds another run, of scenarios ['clean_restart']; " in result.stderr


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
    monkeypatch.setattr("crashmq.reports.extras.SPARK_PACKAGES", ("no_such_package",))

    result = crashmq("soak", "power_loss", "--episodes", 9, "--out", tmp_path / "run")

    assert (result.exit_code, result.stdout) == (4, "")
    assert "pip install" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_report_is_added_to_the_page_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, out = tmp_path / "page.md", tmp_path / "run"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))

    in_a_process("soak", "clean_restart", "--episodes", 2, "--local", "--out", out)

    assert page.read_text() == "before\n" + (out / "report.md").read_text()


def test_a_directory_without_a_run_has_no_report(tmp_path: Path) -> None:
    result = crashmq("report", tmp_path)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "holds no readable run of crashmq" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_workers_are_for_this_machine(tmp_path: Path) -> None:
    args = ("--episodes", 9, "--out", tmp_path, "--master", "local[1]", "--workers", 2)

    assert crashmq("soak", "power_loss", *args).exit_code == 2


@pytest.mark.slow
def test_a_bug_of_one_night_is_new_there_and_resolved_in_the_next(
    tmp_path: Path,
) -> None:
    runs, known = tmp_path / "runs", tmp_path / "baseline.toml"
    known.write_text(
        '[[known]]\nlaw = "CQ-4"\nreason = "planted"\nexpires = 2999-12-31\n'
    )

    def night(day: int, *more: object) -> subprocess.CompletedProcess[str]:
        args = ("--seed", "nightly", "--night", f"2026-11-{day}", "--episodes", 16)
        there = ("--local", "--out", runs)
        return in_a_process("soak", "clean_restart", *args, *there, *more)

    one, two, three = night(21), night(22, "--mutant", MUTANT), night(23)
    (second,) = runs.glob("2026-11-22-*")
    excused = crashmq("report", second, "--baseline", known)
    nights = crashmq("nights", runs)

    codes = [each.returncode for each in (one, two, three)]
    assert codes == [0, 1, 0], two.stderr
    assert "nights  new" in two.stdout
    assert f": resolved, last seen {second.name}" in three.stdout
    assert (excused.exit_code, nights.exit_code) == (0, 0), excused.output
    assert "known   planted, until 2999-12-31" in excused.output
    assert f": resolved, last seen {second.name}" in nights.output
    assert (runs / "nights.html").exists()
