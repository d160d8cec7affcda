from __future__ import annotations

from pathlib import Path

import pytest

from crashmq.reports.errors import CannotWrite, NotARun, OutputExists
from crashmq.reports.files import (
    check_output,
    read_declared,
    read_run_file,
    write_declared,
    write_json,
    write_text,
)
from crashmq.reports.records import Declared


def test_a_directory_that_is_not_there_or_empty_may_be_written(tmp_path: Path) -> None:
    check_output(tmp_path / "new")
    check_output(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_what_spark_left_of_a_start_that_failed_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    (tmp_path / ".run.json.0a1b.tmp").touch()

    check_output(tmp_path)


@pytest.mark.parametrize("name", ["run.json", "notes.txt", "episodes"])
def test_a_directory_with_anything_in_it_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")

    with pytest.raises(OutputExists, match=f"already holds {name}; nothing was"):
        check_output(tmp_path)

    assert (tmp_path / name).read_text() == "mine"


def test_a_file_is_no_place_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")

    with pytest.raises(OutputExists, match="is a file"):
        check_output(tmp_path / "out")


def test_a_text_is_replaced_whole_and_leaves_no_other_file(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "first, and longer")
    write_text(tmp_path / "a", "second")

    assert (tmp_path / "a").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_text_that_cannot_be_written_is_one_sentence_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").mkdir()

    with pytest.raises(CannotWrite, match=f"^{tmp_path} cannot be written: Is a dir"):
        write_text(tmp_path / "a", "text")

    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_was_declared_is_read_as_it_was_written(tmp_path: Path) -> None:
    declared = Declared(ops=["PutMessage"], probes={"a.b": "Grüße"})

    write_declared(tmp_path, declared)

    assert read_declared(tmp_path) == declared


@pytest.mark.parametrize("text", [None, "", "{", "[1]", '{"format": 9}'])
def test_a_foreign_directory_is_told_in_one_sentence(
    tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text)

    with pytest.raises(NotARun) as refusal:
        read_run_file(tmp_path)

    assert "run.json" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_declarations_of_another_version_are_told_so(tmp_path: Path) -> None:
    write_json(tmp_path / "declared.json", {"colours": []})

    with pytest.raises(NotARun, match="does not say what this version needs"):
        read_declared(tmp_path)
