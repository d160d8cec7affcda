"""Questions to a run, and the document that says what they may be about."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from sample_run import SampleTask

from crashmq.harness.cli import main

pytest.importorskip("duckdb", reason="duckdb is not installed")
store = pytest.importorskip("sample_store")
run_document = pytest.importorskip("crashmq.reports.run_document")
ROOT = Path(__file__).resolve().parent.parent.parent


def asked(out: Path, question: str) -> str:
    result = CliRunner().invoke(main, ["sql", str(out), question])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("write", ["write_run", "write_old_run"])
def test_rows_and_sums_answer_alike(tmp_path: Path, write: str) -> None:
    out = getattr(store, write)(tmp_path / "out", SampleTask(break_every=7), 120)
    wanted = sum(SampleTask().episode(n).verdicts[0].checks for n in range(120))

    of_rows = "select sum(v.checks) n from (select unnest(verdicts) v from episodes)"

    assert str(wanted) in asked(out, "select sum(checks) from laws where law = 'CL-1'")
    assert str(wanted) in asked(out, f"{of_rows} where v.law = 'CL-1'")
    failed = "select sum(failed) from manifests union select count(*) from episodes"
    assert " 18 " in asked(out, f"{failed} where outcome = 'violated'")


def test_a_question_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "out", SampleTask(), 50)

    result = CliRunner().invoke(main, ["sql", str(out), "select colour from episodes"])

    assert result.exit_code == 2
    assert "colour" in result.stderr
    assert "Views: episodes, manifests, scenarios," in result.stderr


@pytest.mark.parametrize(
    "question",
    ["", "select 1; select 2", "copy (select 1) to '{file}'", "attach '{file}'"],
)
def test_what_is_no_question_is_refused_and_writes_nothing(
    question: str, tmp_path: Path
) -> None:
    out, file = store.write_run(tmp_path / "out", SampleTask(), 50), tmp_path / "file"

    result = CliRunner().invoke(main, ["sql", str(out), question.format(file=file)])

    assert result.exit_code == 2
    assert "It takes one SELECT, and changes nothing." in result.stderr
    assert not file.exists()


def test_a_pivot_and_a_plan_are_questions(tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "out", SampleTask(), 50)

    counted = asked(out, "pivot episodes on outcome using count(*) group by scenario")
    assert "passed" in counted
    assert "select" not in asked(out, "explain select count(*) from episodes")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("select cast(scenario as int) from episodes", "Could not convert string"),
        ("select cast(9e300 as int)", "out of range"),
    ],
)
def test_a_value_that_cannot_be_converted_is_one_sentence(
    question: str, words: str, tmp_path: Path
) -> None:
    out = store.write_run(tmp_path / "out", SampleTask(), 50)

    result = CliRunner().invoke(main, ["sql", str(out), question])

    assert (result.exit_code, result.stdout) == (2, "")
    (sentence,) = result.stderr.splitlines()
    assert words in sentence


@pytest.mark.parametrize("kept", [0, 100, 0.5, -1])
def test_a_damaged_file_of_rows_is_one_sentence(kept: float, tmp_path: Path) -> None:
    out = store.write_run(tmp_path / "out", SampleTask(), 50)
    (rows, *_) = sorted((out / "episodes").glob("*.parquet"))
    data = rows.read_bytes()
    rows.write_bytes(data[: int(kept if kept % 1 == 0 else len(data) * kept)])

    result = CliRunner().invoke(main, ["sql", str(out), "select * from episodes"])

    assert (result.exit_code, result.stdout) == (2, "")
    (sentence,) = result.stderr.splitlines()
    assert rows.name in sentence


def test_a_directory_without_a_run_answers_nothing(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["sql", str(tmp_path), "select 1"])

    assert result.exit_code == 2
    assert "holds no readable run of crashmq" in result.stderr


def test_the_document_is_what_the_classes_say() -> None:
    """Else write it again: python -m crashmq.reports.run_document > docs/runs.md."""
    assert (ROOT / "docs" / "runs.md").read_text() == run_document.document()


def test_a_question_that_goes_wrong_as_it_is_answered_is_one_sentence(
    tmp_path: Path,
) -> None:
    out = store.write_run(tmp_path / "out", SampleTask(), 50)
    question = "select cast(outcome as int) from episodes"

    result = CliRunner().invoke(main, ["sql", str(out), question])

    assert (result.exit_code, result.stdout) == (2, "")
    assert "Could not convert string 'passed' to INT32" in result.stderr
