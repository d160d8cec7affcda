"""The docs are run: each command that they show, and each sample of Python.

A block of ``console`` has commands behind ``$`` and what they print; ``...`` stands for
anything. A block of ``toml`` whose first line names a file becomes that file. A block
of ``python`` in docs/testing.md is a test module of its own. What cannot run in a test
is held by tests/test_docs_commands.py.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from pages import DOCS, PAGES, ROOT, blocks_of

import crashmq.testing  # noqa: F401  # a test of a sample drops what it imports first
from crashmq.harness.cli import main
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.failures.case_file import CaseFile
from crashmq.harness.mutants.check_edits import check_edits
from crashmq.harness.mutants.mutant_file import read_mutants
from crashmq.harness.mutants.mutation import applied
from crashmq.harness.subjects.subject import capabilities_of
from crashmq.models.laws.registry import declared_laws
from crashmq.models.verdict import Outcome
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.workload import program_for

pytest_plugins = ["pytester"]

NOTE_STORE = DOCS / "examples" / "note_store.py"
DIGEST = re.compile(r"digest [0-9a-f]{16}")
SHIM = "#!{python}\nfrom crashmq.harness.cli import main\nmain()\n"


class Sample(NamedTuple):
    """A command, and what it is to print."""

    command: str
    printed: str


def samples_in(block: str) -> Iterator[Sample]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield Sample(command, printed)


def matches(printed: str, shown: str) -> bool:
    """Whether a text is what the page shows; ``...`` is anything, so are digests."""
    shown, printed = DIGEST.sub("digest -", shown), DIGEST.sub("digest -", printed)
    lines = [line.rstrip() for line in shown.rstrip().splitlines()]
    patterns = [re.escape(line).replace(re.escape("..."), ".*") for line in lines]
    whole = "\n".join(patterns).replace("\n.*\n", "\n(?:.*\n)*?")
    if whole.startswith(".*\n"):
        whole = "(?:.*\n)*?" + whole.removeprefix(".*\n")
    if whole.endswith("\n.*"):
        whole = whole.removesuffix("\n.*") + "(?:\n.*)*"
    told = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
    return re.fullmatch(whole, told) is not None


def printed_by(command: str, directory: Path) -> str:
    """The standard output of a command of a page; Spark gets a process of its own."""
    words = shlex.split(command)
    is_plain = words[0] == "crashmq" and not {"|", "||", "&&", ">"} & set(words)
    if is_plain and not needs_spark(command):
        return CliRunner().invoke(main, words[1:]).stdout
    bin_dir = directory / ".bin"
    bin_dir.mkdir(exist_ok=True)
    (bin_dir / "crashmq").write_text(SHIM.format(python=sys.executable))
    (bin_dir / "crashmq").chmod(0o755)
    path = ":".join(
        [str(bin_dir), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": path, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    return done.stdout


def commands_of(page: Path) -> list[str]:
    shown = "".join(text for name, text in blocks_of(page) if name == "console")
    return [sample.command for sample in samples_in(shown)]


def needs_spark(command: str) -> bool:
    return command.startswith("crashmq soak ") and "--local" not in command


def marks_of(page: Path) -> list[pytest.MarkDecorator]:
    if any(map(needs_spark, commands_of(page))):
        return [pytest.mark.spark, pytest.mark.xdist_group("spark")]
    return []


SHOWING = [
    pytest.param(page, marks=marks_of(page), id=page.name)
    for page in PAGES
    if commands_of(page)
]


@pytest.mark.slow
@pytest.mark.parametrize("page", SHOWING)
def test_a_page_shows_what_its_commands_print(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = commands_of(page)
    if any(command.startswith("crashmq soak ") for command in commands):
        pytest.importorskip("duckdb", reason="pip install 'crashmq[reports]'")
    if any(map(needs_spark, commands)):
        pytest.importorskip("pyspark", reason="pip install 'crashmq[spark]'")
    shutil.copytree(DOCS / "examples", tmp_path / "docs" / "examples")
    for path in (DOCS / "examples").iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)

    for language, text in blocks_of(page):
        first, _, rest = text.partition("\n")
        if language == "toml" and first.startswith("# "):
            (tmp_path / first.removeprefix("# ")).write_text(rest)
        if language != "console":
            continue
        for sample in samples_in(text):
            printed = printed_by(sample.command, tmp_path)
            assert matches(printed, sample.printed), (
                f"{page.name} shows of `{sample.command}`:\n{sample.printed}\n"
                f"and it prints:\n{printed}"
            )


TESTS = [
    text for language, text in blocks_of(DOCS / "testing.md") if language == "python"
]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(TESTS)))
def test_a_sample_of_a_test_is_one_that_passes(
    pytester: pytest.Pytester, number: int
) -> None:
    pytester.makepyfile(TESTS[number])

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")

    assert result.parseoutcomes().get("passed", 0) >= 1
    assert not {"failed", "errors"} & set(result.parseoutcomes())


@pytest.mark.slow
def test_the_bugs_of_the_page_on_mutants_can_be_planted(tmp_path: Path) -> None:
    bugs, trigger = (t for name, t in blocks_of(DOCS / "mutants.md") if name == "toml")
    (tmp_path / "mine.toml").write_text(f"{bugs}\n{trigger}")

    mutants = read_mutants(tmp_path / "mine.toml", declared_laws())

    assert list(mutants) == ["MINE-1", "MINE-2"]
    assert list(check_edits(mutants)) == []
    trigger_of = mutants["MINE-2"].trigger
    assert run_program(trigger_of).outcome is Outcome.PASSED
    with applied(mutants["MINE-2"]):
        assert run_program(trigger_of).outcome is Outcome.VIOLATED


@pytest.mark.slow
def test_the_loop_of_the_page_on_stores_runs() -> None:
    (text,) = [
        t for name, t in blocks_of(DOCS / "bring-your-own.md") if name == "python"
    ]
    names: dict[str, Any] = {
        "MyStore": runpy.run_path(str(NOTE_STORE))["MendedStore"],
        "SCENARIOS": SCENARIOS,
        "Outcome": Outcome,
        "capabilities_of": capabilities_of,
        "program_for": program_for,
        "run_program": run_program,
    }

    exec(text, names)

    assert names["number"] == 299


def test_the_case_by_hand_of_the_page_on_cases_is_one(tmp_path: Path) -> None:
    (text,) = [t for name, t in blocks_of(DOCS / "case-files.md") if name == "json"]
    (tmp_path / "hand.case.json").write_text(text)

    assert len(CaseFile.load(tmp_path / "hand.case.json").program.ops) == 3


def test_every_page_is_in_the_site() -> None:
    written = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w-]+\.md", written))

    assert named == {page.name for page in DOCS.glob("*.md")}


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_of_a_page_leads_somewhere(page: Path) -> None:
    linked = re.findall(
        r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")
    )

    assert [one for one in linked if not (page.parent / one).exists()] == []


@pytest.mark.parametrize(
    ("printed", "shown", "is_it"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nx\ny\nb\n", "a\n...\nb\n", True),
        ("a\nb\n", "a\n...\nb\n", True),
        ("x\nb\n", "...\nb\n", True),
        ("b\nx\n", "b\n...\n", True),
        ("b 17 c\n", "b ... c\n", True),
        ("digest 0123456789abcdef", "digest fedcba9876543210", True),
        ("a\nc\n", "a\nb\n", False),
        ("a\nb\nc\n", "a\nb\n", False),
    ],
)
def test_what_is_shown_is_compared(printed: str, shown: str, is_it: bool) -> None:
    assert matches(printed, shown) is is_it
