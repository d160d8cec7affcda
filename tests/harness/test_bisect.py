"""``crashmq bisect``: since which revision is a case broken?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crashmq.harness.cli import main
from crashmq.harness.searches.revisions import (
    NOT_RUN,
    PASSED,
    VIOLATED,
    NoRevision,
    Revision,
    Tried,
    halved,
    revisions_named,
)

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "note_store.py"
CASE = {
    "format": 1,
    "scenario": "process_kill",
    "subject": "store:Store",
    "violated": "PUT-1",
    "ops": [
        "During(PutMessage('T0', 0, 1), 1, Crash('process_kill'))",
        "Restart()",
        "PutMessage('T0', 0, 16)",
    ],
}


def git(repository: Path, *words: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(repository), *who, *words]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Five commits of a store; the fourth one has the bug."""
    place = tmp_path / "repository"
    place.mkdir()
    git(place, "init", "-q")
    (place / "notes.py").write_text(EXAMPLE.read_text())
    for number, of_it in enumerate(("Mended", "Mended", "Mended", "Note", "Note")):
        text = f"from notes import {of_it}Store as Store\n# change {number}\n"
        (place / "store.py").write_text(text)
        git(place, "add", ".")
        git(place, "commit", "-q", "-m", f"change {number}")
    return place


def bisect(*words: object) -> Result:
    return CliRunner().invoke(main, ["bisect", *map(str, words)])


@pytest.mark.slow
def test_a_range_is_halved_until_the_change_is_found(
    repository: Path, tmp_path: Path
) -> None:
    case = tmp_path / "it.case.json"
    case.write_text(json.dumps(CASE))

    result = bisect(
        *(case, "HEAD~4..HEAD", "--repository", repository),
        *("--subject", "store:Store"),
    )

    assert result.exit_code == 0, result.output
    *table, change = result.stdout.splitlines()
    assert change.startswith("violated since ")
    assert change.endswith(": change 3")
    assert [line.split()[2] for line in table] == [*[PASSED] * 2, *[VIOLATED] * 2]
    assert "FIXED: PUT-1 is not violated." in table[0]
    assert "SAME: PUT-1 is violated as recorded" in table[-1]


@pytest.mark.slow
def test_a_revision_that_cannot_start_has_not_violated_a_law(
    repository: Path, tmp_path: Path
) -> None:
    """Python that cannot import crashmq exits with 1, as a replay that found does."""
    broken = repository / ".ci" / "checkout" / "crashmq"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('half of a merge')\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "no engine")
    case = tmp_path / "it.case.json"
    case.write_text(json.dumps(CASE | {"subject": "python"}))

    result = bisect(case, "HEAD", "--repository", repository)

    assert result.exit_code == 0, result.output
    row, change = result.stdout.splitlines()
    assert row.split("  ")[2] == NOT_RUN
    assert row.endswith("ImportError: half of a merge")
    assert change == "it ran at none of them"


def test_a_revision_without_an_engine_is_not_judged_by_the_installed_one(
    repository: Path, tmp_path: Path
) -> None:
    case = tmp_path / "it.case.json"
    case.write_text(json.dumps(CASE | {"subject": "python"}))

    result = bisect(case, "HEAD~1", "HEAD", "--repository", repository)

    assert result.exit_code == 0, result.output
    *table, change = result.stdout.splitlines()
    assert [row.split("  ")[2] for row in table] == [NOT_RUN] * 2
    assert all("has no .ci/checkout" in row for row in table)
    assert change == "it ran at none of them"


def test_a_revision_that_is_none_is_one_sentence(
    repository: Path, tmp_path: Path
) -> None:
    case = tmp_path / "it.case.json"
    case.write_text(json.dumps(CASE | {"subject": "python"}))

    result = bisect(case, "no-such", "--repository", repository)

    assert (result.exit_code, result.stdout) == (2, "")
    (sentence,) = result.stderr.splitlines()
    assert "git knows no such revision" in sentence


def test_a_range_is_its_ends_and_what_is_between_them(repository: Path) -> None:
    found = revisions_named(repository, ["HEAD~2..HEAD", "HEAD~4"])

    titles = [one.title for one in found]
    assert titles == ["change 2", "change 3", "change 4", "change 0"]
    with pytest.raises(NoRevision, match="git knows no such revision"):
        revisions_named(repository, ["HEAD~9"])


@pytest.mark.parametrize(
    ("outcomes", "tried"),
    [
        ("ppppv", "0432"),  # the ends, then the middle, then what is left of it
        ("pvvvv", "0421"),
        ("ppppp", "04"),
        ("pxxvv", "04231"),
        ("xpvvv", "04"),
        ("p", "0"),
    ],
)
def test_as_few_are_tried_as_show_the_change(outcomes: str, tried: str) -> None:
    by_sign = {"p": PASSED, "v": VIOLATED, "x": NOT_RUN}
    revisions = [Revision(str(n), "", "") for n in range(len(outcomes))]

    def run(one: Revision) -> Tried:
        return Tried(one, by_sign[outcomes[int(one.name)]], "")

    found: Sequence[Tried] = list(halved(revisions, run))
    assert sorted(each.revision.name for each in found) == sorted(tried)
