"""``crashmq mutants``: the stranger's way in, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crashmq.harness.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENT = ROOT / "docs" / "mutants.md"


def crashmq(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The worked example of the document, as one would copy it."""
    text, *_ = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return file


@pytest.mark.slow
def test_the_worked_example_of_the_document_does_what_it_says(
    example: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    told = crashmq("mutants", "--file", example, "--budget", 60, "--out", out)

    assert told.exit_code == 0, told.output
    assert "Killed: 2 of 2 mutants." in told.stdout
    assert re.search(r"MINE-1  (CL-1|REC-1|REC-4) after", told.stdout)
    assert "MINE-2  RD-10 (argued: not a law it names)" in told.stdout
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["mutants"], summary["mutants_killed"]) == (2, 2)
    assert summary["seconds"] > 0
    for row in summary["per_mutant"]:
        assert row["killed"] is True
        assert row["law"]
        assert row["states"] > 0
        assert 0 < row["ops"] <= 8
    assert (out / "cases" / "MINE-1.case.json").exists()
    assert len((out / "hunts.jsonl").read_text().splitlines()) == 2
    case = out / "cases" / "MINE-1.case.json"
    assert crashmq("replay", case, "--mutant-file", example).exit_code == 1
    assert "there is no mutant 'MINE-1'" in crashmq("replay", case).stderr


@pytest.mark.slow
def test_a_stale_edit_is_named_and_nothing_is_searched_for(
    example: Path, tmp_path: Path
) -> None:
    example.write_text(example.read_text().replace("request.success", "request.ok"))

    told = crashmq("mutants", "--file", example, "--out", tmp_path / "out")

    assert told.exit_code == 2
    assert "mutant MINE-1, crashmq.engine.store.log_scan" in told.stderr
    assert "0 times" in told.stderr
    assert told.stdout == ""
    assert not (tmp_path / "out").exists()


def test_bad_toml_is_told_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[[mutant]]\nid = \n")

    told = crashmq("mutants", "--file", file)

    assert told.exit_code == 2
    assert re.search(r"bad\.toml: not TOML: .*line 2", told.stderr)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--only", "R1"), "there is no mutant 'R1'; did you mean"),
        (("--any-module",), "--any-module is for mutants of a --file"),
        (("--policy", "none"), "Invalid value for '--policy'"),
        (("--budget", "0"), "Invalid value for '--budget'"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(args: tuple[str, ...], says: str) -> None:
    told = crashmq("mutants", *args)

    assert told.exit_code == 2
    assert says in told.stderr


def test_a_directory_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")

    told = crashmq("mutants", "--out", tmp_path)

    assert told.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.slow
def test_several_names_and_policies_can_be_asked_for_at_once() -> None:
    told = crashmq(
        "mutants",
        "--only",
        "R01",
        "R22",
        "--policy",
        "all",
        "--budget",
        0.5,
        "--workers",
        1,
    )

    assert told.exit_code == 0, told.output
    assert "Killed: 2 of 2 mutants." in told.stdout
    assert re.search(r"ours +killed 2 of 2", told.stdout)
    assert re.search(r"kill_only +killed [12] of 2", told.stdout)


@pytest.mark.slow
def test_a_survivor_is_told_with_what_the_search_reached(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[[mutant]]\nid = "SAME"\nlaws = []\n[[mutant.edit]]\n'
        'module = "crashmq.engine.store.commit_log"\n'
        'function = "CommitLog._scan_file"\n'
        'before = "position += found.size"\nafter = "position += +found.size"\n'
    )

    told = crashmq("mutants", "--file", file, "--budget", 0.3)

    assert told.exit_code == 1
    assert "Survived: 1 of 1 mutants." in told.stdout
    assert re.search(r"where the bug is .*commit_log\.recover\.normal", told.stdout)
    assert "next    crashmq mutants --only SAME --file" in told.stdout


@pytest.mark.slow
def test_the_fast_subset_finds_the_canary_and_leaves_the_clean_engine_alone() -> None:
    told = crashmq("mutants", "--ci", "--budget", 8, "R22")

    assert told.exit_code == 0, told.output
    assert re.search(r"canary, seed 0: [A-Z]+-\d+ flagged", told.stdout)
    assert "clean engine, seed 0: nothing flagged" in told.stdout


@pytest.mark.slow
def test_a_mutant_is_shown_as_a_diff_and_nothing_is_searched_for(example: Path) -> None:
    ours = crashmq("mutants", "--show", "R28")
    theirs = crashmq("mutants", "--show", "MINE-1", "--file", example)

    assert (ours.exit_code, theirs.exit_code) == (0, 0), ours.output + theirs.output
    assert ours.stdout.startswith("R28 duplicate-cq-on-replay\n--- engine/")
    assert "+++ engine/store/log_scan.py with MINE-1" in theirs.stdout
    assert crashmq("mutants", "--show", "R999").exit_code == 2


def test_who_names_a_file_of_mutants_is_told_that_its_text_is_executed() -> None:
    for name in ("replay", "shrink", "mutants"):
        words = " ".join(crashmq(name, "--help").stdout.split())

        assert re.search(r"executes? text of that file|its text is executed", words)
