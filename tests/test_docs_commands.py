"""What the docs tell people to type is there: commands, arguments, options, extras.

Samples are run by tests/test_docs.py. What cannot run in a test (a night, a cluster, an
installation) is held here against the programs themselves.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import click
import pytest
from pages import PAGES, ROOT, blocks_of, commands_in, shell_in

from crashmq.harness.cli import main
from crashmq.harness.commands.group import _COMMANDS
from crashmq.reports.jvm import java_home
from crashmq.scenarios.catalogue.scenarios import SCENARIOS

INLINE = re.compile(r"`crashmq ([a-z]+[^`]*)`")
TYPED = re.compile(r"\bcrashmq ([a-z]+)\b([^`\n]*(?:\n +\[[^`\n]*)*)")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
EXTRAS = re.compile(r"(?:crashmq|\.)\[([a-z,]+)\]")
OF_PYTEST = re.compile(r"--crashmq[a-z-]*|\bcrashmq_[a-z]+(?= =)")
ITS_FILE = ("$CLI", "local://CLI")
SHOWS_NO_COMMAND = re.compile(r"^(?:\$ |crashmq )", re.MULTILINE)

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def command_named(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


def parse(words: list[str]) -> None:
    """Parse a command line as crashmq does, up to the names of scenarios.

    Raises:
        click.UsageError: there is no such command, argument or option.
    """
    command = command_named(words[0])
    params = command.make_context(words[0], words[1:]).params
    target = params.get("target")
    names = params.get("scenario", (target,) if target else ())
    for name in names:
        if name not in SCENARIOS and not (name.isupper() or name.endswith(".json")):
            raise click.UsageError(f"there is no scenario {name!r}")


@pytest.fixture(scope="module")
def help_of_pytest() -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return done.stdout


def hold(words: list[str], help_of_pytest: str) -> None:
    """Hold a command that no test runs against the program that it names."""
    program = Path(words[0]).name
    if program == "export" or re.match(r"\w+=", words[0]):
        return
    if program == "crashmq":
        parse(words[1:])
    elif program == "spark-submit":
        (ours,) = (at for at, word in enumerate(words) if word in ITS_FILE)
        parse(words[ours + 1 :])
    elif words[1:3] == ["-m", "pytest"]:
        options = OPTION.findall(" ".join(words[3:]))
        assert [one for one in options if one not in help_of_pytest] == []
    elif program == "pip":
        files = [words[at + 1] for at, word in enumerate(words) if word == "-c"]
        assert words[1] == "install"
        assert [one for one in files if not (ROOT / one).is_file()] == []
    elif words[0].startswith(".ci/"):
        assert os.access(ROOT / words[0], os.X_OK), words[0]
    else:
        assert program in ("python", "python3", "tar"), f"no test knows {program}"


@every_page
def test_a_command_that_cannot_run_here_is_one_that_there_is(
    page: Path, help_of_pytest: str
) -> None:
    for shell in shell_in(page):
        for words in commands_in(shell):
            hold(words, help_of_pytest)


@pytest.mark.parametrize(
    "shell",
    [
        "crashmq sook power_loss",
        "crashmq soak power_los --out runs",
        "crashmq soak power_loss --episodes many --out runs",
        "true && crashmq soak power_loss --episode 9 --out runs",
        "crashmq explore nowhere",
        "crashmq list lows",
        "crashmq replay",
        "spark-submit --master yarn \\\n  local://CLI soak power_loss --tim 6h",
        "python -m pytest --deeper",
        "pip install -c .ci/no_such_constraints.txt .",
        "X=$(crashmq lst)",
        ".ci/runs",
        "unheard-of --option",
    ],
)
def test_a_command_that_there_is_not_is_found(shell: str, help_of_pytest: str) -> None:
    *_, words = commands_in(shell)

    with pytest.raises((click.UsageError, AssertionError)):
        hold(words, help_of_pytest)


@every_page
def test_a_block_without_a_language_shows_no_command(page: Path) -> None:
    shown = [text for language, text in blocks_of(page) if language == ""]

    assert [text for text in shown if SHOWS_NO_COMMAND.search(text)] == []


def choices_of(typed: str) -> Iterator[list[str]]:
    """The command lines that a line with [brackets] and this|that stands for."""
    words = shlex.split(re.sub(r"[][\\]", "", typed))
    plain = ["2" if word in ("N", "S") else word.removesuffix("...") for word in words]
    width = max(word.count("|") for word in plain)
    for at in range(width + 1):
        yield [word.split("|")[min(at, word.count("|"))] for word in plain]


@every_page
def test_a_command_in_a_sentence_can_be_typed_so(page: Path) -> None:
    for typed in INLINE.findall(page.read_text(encoding="utf-8")):
        for words in choices_of(typed):
            try:
                parse(words)
            except (click.MissingParameter, click.BadOptionUsage):
                pass  # a sentence may leave out what it is about
            except click.UsageError as error:
                pytest.fail(f"`crashmq {typed}`: {error.format_message()}")


@every_page
def test_a_page_names_options_that_its_commands_have(page: Path) -> None:
    for name, rest in TYPED.findall(page.read_text(encoding="utf-8")):
        if name in _COMMANDS:
            has = {one for param in command_named(name).params for one in param.opts}
            typed = rest.partition("&&")[0].partition("||")[0]
            named = {*OPTION.findall(typed)}
            assert named - {*has, "--help", "-h"} == set(), typed


@every_page
def test_a_page_names_extras_that_there_are(page: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = ",".join(EXTRAS.findall(page.read_text(encoding="utf-8")))

    assert {*named.split(",")} - {*project["optional-dependencies"], ""} == set()


@every_page
def test_a_page_names_options_and_settings_that_pytest_has(
    page: Path, help_of_pytest: str
) -> None:
    named = OF_PYTEST.findall(page.read_text(encoding="utf-8"))

    assert [one for one in named if one not in help_of_pytest] == []


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_submit_has_the_options_that_pages_give_it() -> None:
    pytest.importorskip("pyspark", reason="pip install 'crashmq[spark]' brings it")
    submit = shutil.which("spark-submit", path=Path(sys.executable).parent)
    assert submit is not None
    shown = [
        words
        for page in PAGES
        for shell in shell_in(page)
        for words in commands_in(shell)
        if Path(words[0]).name == "spark-submit"
    ]
    given = {
        word
        for words in shown
        for word in takewhile(lambda word: word not in ITS_FILE, words)
        if word.startswith("--")
    }
    done = subprocess.run(
        [submit, "--help"],
        env={
            **os.environ,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "JAVA_HOME": str(java_home()),
        },
        capture_output=True,
        text=True,
    )

    assert len(shown) == 2
    assert "--master" in given
    assert given - {*OPTION.findall(done.stderr)} == set()
