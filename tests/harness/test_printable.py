"""What others wrote reaches no terminal, report or test's output raw."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from toy_episode import violated_at

from crashmq.harness.cli import main
from crashmq.harness.episodes.timeline import timeline
from crashmq.harness.failures.case_file import BadCaseFile, CaseFile
from crashmq.models.laws.registry import declared_laws
from crashmq.models.ops import (
    DiskFault,
    During,
    PlantFile,
    PutMessage,
    Restart,
    Shutdown,
)
from crashmq.models.printable import printable, printable_lines, shown
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Violation
from crashmq.reports.render import environments

COMMANDS = Path(__file__).parents[2] / "harness" / "commands"
ODD = "\x1b[31m\r\nGREEN: no law was violated\u202e\u2028\x85\x07\ufeff"


@given(st.text())
def test_a_printable_text_is_one_line_and_says_the_same(text: str) -> None:
    told = printable(text)

    assert told.isprintable()
    assert told == text or not text.isprintable()
    assert printable(told) == told
    assert printable_lines(text).count("\n") == text.count("\n")


@given(st.text() | st.integers() | st.lists(st.integers()) | st.just(10**6000))
def test_what_is_shown_of_a_value_is_short(value: object) -> None:
    assert shown(value).isprintable()
    assert len(shown(value)) < 400


def test_a_violation_is_one_line_whatever_it_names() -> None:
    assert str(Violation(f"consumequeue/{ODD}", ODD, ODD)).isprintable()


def test_a_timeline_holds_no_line_that_others_wrote() -> None:
    put = During(PutMessage(ODD, 0, 1, tags=ODD), 1, DiskFault("sync", "EIO", path=ODD))
    program = Program(Setup(), (put, PlantFile(f"x{ODD}", "zeros", 3)))
    result = violated_at(program, 1)
    result = replace(result, message=f"CQ-3, a law:\n  {ODD.strip()}")
    result.record.scenario = ODD

    told = timeline(result, replay=f"crashmq replay {ODD}").split("\n")

    assert all(line.isprintable() for line in told)
    assert not [line for line in told if line.startswith("GREEN")]


def run(*arguments: object) -> str:
    return CliRunner().invoke(main, [str(one) for one in arguments]).output


def test_a_replay_prints_no_line_that_the_case_wrote(tmp_path: Path) -> None:
    name = f"a{ODD.replace('/', '')}.case.json"
    law = next(iter(declared_laws()))
    ops = (PutMessage(ODD, 0, 1, tags=ODD), Shutdown(), PlantFile(ODD), Restart())
    case = CaseFile("s", Program(Setup(), ops), law, 0, "", ODD)
    case.save(tmp_path / name)
    replace(case, violated="").save(tmp_path / "b.case.json")

    for told in (
        run("replay", tmp_path / name),
        run("replay", tmp_path / "b.case.json"),
        run("shrink", tmp_path / name),
        run("replay", tmp_path / "b.case.json", "--mutant", ODD),
        run("replay", tmp_path / ODD),
    ):
        assert told
        assert all(line.isprintable() for line in told.split("\n")), told
        assert "\nGREEN" not in told


@pytest.mark.parametrize("field", ["scenario", "subject", "mutant", "digest", "story"])
def test_a_name_of_several_lines_is_refused(tmp_path: Path, field: str) -> None:
    head = {"format": 1, "scenario": "s", "violated": "", "step": 0}
    case = {**head, "setup": {}, "ops": [], field: "a\nGREEN"}
    (tmp_path / "a.case.json").write_text(json.dumps(case))

    with pytest.raises(BadCaseFile, match=rf"\$\.{field}: .* no text of one line"):
        CaseFile.load(tmp_path / "a.case.json")


def test_a_store_that_forges_lines_is_told_in_its_own(tmp_path: Path) -> None:
    for folder in ("commitlog", f"consumequeue/{ODD}/0", "index"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "commitlog" / f"0{ODD}").write_bytes(b"x" * 9)
    (tmp_path / "consumequeue" / ODD / "0" / f"{0:020d}").write_bytes(b"x" * 40)

    for told in (run("fsck", tmp_path), run("fsck", tmp_path / ODD)):
        assert all(line.isprintable() for line in told.split("\n")), told
        assert "\nGREEN" not in told
    assert json.loads(run("fsck", tmp_path, "--json"))["format"] == 2


@pytest.mark.parametrize("number", [0, 1])
def test_a_report_shows_what_it_quotes(number: int) -> None:
    page = environments()[number].from_string("{{ text }}")

    told = page.render(text=f"<b>{ODD}")

    assert told.replace("\n", "").isprintable()
    assert "<b>" not in told


def test_all_that_commands_print_goes_one_way() -> None:
    raw = [
        path.name
        for path in COMMANDS.glob("*.py")
        if "click.echo(" in path.read_text() and path.name not in DOORS
    ]

    assert not raw, "print by harness.commands.output.say"


DOORS = ("output.py", "exits.py", "group.py")
