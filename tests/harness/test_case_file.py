"""A case file: what it keeps, what it refuses, and that it never overwrites."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from crashmq.harness.failures.case_file import (
    FILE_SIZE_MAX,
    THIS_PYTHON,
    BadCaseFile,
    CaseFile,
)
from crashmq.harness.searches.aiming import perhaps_aimed
from crashmq.models.ops import (
    EVENT_CLASSES,
    AdvanceClock,
    Crash,
    Damage,
    DiskFault,
    During,
    Grain,
    Op,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Schedule,
    Shutdown,
    Survivors,
    Together,
)
from crashmq.models.program import Program, Setup
from crashmq.models.program_json import to_json
from crashmq.scenarios.catalogue.scenarios import SCENARIOS
from crashmq.scenarios.programs.searching import searched_program

OPS: tuple[Op, ...] = (
    PutMessage("T0", 0, 96, tags="TagA", keys="k \u00e9", wait_store_ok=False),
    PullMessage("T0", 0, 3, 8),
    RunService("reput", 2),
    AdvanceClock(-5),
    During(RunService("reput"), 2, DiskFault("sync", "EIO", 3)),
    During(Restart(), 5, Crash("power_loss", Survivors("prefix", 4), 11)),
    During(PutMessage("T0", 1, 5), 1, During(RunService("reput"), 1, Restart())),
    Damage("commitlog[-1]", "zero", 10, 20),
    Shutdown(),
)
CASE = CaseFile(
    scenario="power_loss",
    program=Program(Setup(log_file_size=8192, flush_mode="SYNC_FLUSH"), OPS),
    violated="CQ-3",
    step=6,
    digest="d1e5",
    message='T0/0[2]: points past the end\nand "more"',
    mutant="R01",
)


DEFAULTS = "f5f8d53c4d6b086df270fa20257cc33ff2a7e256076b163327d1639d61378307"


def saved(path: Path, **changes: Any) -> Path:
    """The case as JSON with some fields changed; None takes a field away."""
    given = json.loads(CASE.to_text()) | changes
    kept = {name: value for name, value in given.items() if value is not None}
    path.write_text(json.dumps(kept), encoding="utf-8")
    return path


def test_a_saved_case_is_read_back_equal(tmp_path: Path) -> None:
    CASE.save(tmp_path / "deep" / "a.case.json")

    assert CaseFile.load(tmp_path / "deep" / "a.case.json") == CASE


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_program_that_is_drawn_can_be_kept(tmp_path: Path, name: str) -> None:
    """A failing one is replayed from its file; one that aims has ops of its own."""
    for number in range(100):
        program = searched_program(SCENARIOS[name], 5, number)
        if number % 10 == 0:
            program = perhaps_aimed(program, 5, number)
        path = tmp_path / f"{number}.case.json"
        replace(CASE, scenario=name, program=program, step=-1).save(path)
        assert CaseFile.load(path).program == program


def test_every_op_has_a_line_of_its_own() -> None:
    lines = CASE.to_text().splitlines()

    assert sum(line.startswith('    {"op": ') for line in lines) == len(OPS)
    assert json.loads(CASE.to_text())["format"] == 1


def test_what_is_at_its_default_is_left_out() -> None:
    given = json.loads(CASE.to_text())

    assert given["setup"] == {"log_file_size": 8192, "flush_mode": "SYNC_FLUSH"}
    assert given["ops"][3] == {"op": "AdvanceClock", "ms": -5}
    assert {"subject", "story"}.isdisjoint(given)


def test_the_defaults_that_case_files_leave_out_stay_as_they_are() -> None:
    """Another default would make recorded cases run something else."""
    setup = {field.name: field.default for field in fields(Setup)}
    events = {
        cls.__name__: {
            field.name: field.default
            for field in fields(cls)
            if field.default is not MISSING
        }
        for cls in (*EVENT_CLASSES, Survivors, Schedule)
    }

    said = json.dumps([setup, events], default=str, sort_keys=True).encode()

    assert sha256(said).hexdigest() == DEFAULTS, (
        "give the field its old default, or let FORMAT rise and read both; a field "
        "that is new may have any: put the new sum here"
    )


def test_a_case_of_before_with_all_fields_is_read(tmp_path: Path) -> None:
    whole = json.loads(CASE.to_text()) | to_json(CASE.program) | {"subject": "python"}
    del whole["python"]
    (tmp_path / "a.case.json").write_text(json.dumps(whole), encoding="utf-8")

    assert CaseFile.load(tmp_path / "a.case.json") == replace(CASE, python="")


def together(grain: Grain) -> Program:
    op = Together((PutMessage("T0", 0, 1), Shutdown()), Schedule(grain=grain))
    return Program(Setup(), (During(op, 1, Crash("process_kill")),))


@pytest.mark.parametrize(
    ("grain", "python", "expected"),
    [
        ("lines", "3.9", f"under Python 3.9 .* differ in {THIS_PYTHON}"),
        ("lines", THIS_PYTHON, "^$"),
        ("lines", "", "^$"),
        ("calls", "3.9", "^$"),
    ],
)
def test_a_schedule_by_lines_of_another_python_is_told(
    tmp_path: Path, grain: Grain, python: str, expected: str
) -> None:
    path = tmp_path / "a.case.json"
    case = replace(CASE, program=together(grain), step=-1, python=python)
    case.save(path)

    assert re.search(expected, CaseFile.load(path).caveat)


def test_a_case_says_which_python_ran_it() -> None:
    assert json.loads(CASE.to_text())["python"] == THIS_PYTHON


RECORDED = Path(__file__).parents[2] / "scenarios" / "cases"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.iterdir()))
def test_a_recorded_case_tells_its_story_and_no_defaults(name: str) -> None:
    case = CaseFile.load(RECORDED / name)

    assert case.story.endswith("."), "say its bug in a sentence or two"
    assert 40 <= len(case.story) <= 500
    assert case.story == case.story.strip()
    assert case.to_text() == (RECORDED / name).read_text(encoding="utf-8")


def test_a_case_without_ops_is_a_case(tmp_path: Path) -> None:
    empty = CaseFile("s", Program(Setup(), ()), "RUN-1", 0, "", "")
    empty.save(tmp_path / "a.case.json")

    assert CaseFile.load(tmp_path / "a.case.json") == empty


def test_saving_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "a.case.json"
    path.write_text("mine")

    with pytest.raises(FileExistsError, match=r"a\.case\.json exists already"):
        CASE.save(path)

    assert path.read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.case.json"]


def test_another_case_of_the_same_name_is_saved_beside(tmp_path: Path) -> None:
    first = CASE.save_beside(tmp_path, "power_loss-CQ-3")
    again = CASE.save_beside(tmp_path, "power_loss-CQ-3")
    other = CaseFile("power_loss", Program(Setup(), OPS[:1]), "CQ-3", 0, "", "")
    second = other.save_beside(tmp_path, "power_loss-CQ-3")

    assert first == again
    assert second.name == "power_loss-CQ-3-2.case.json"
    assert CaseFile.load(second) == other


PUT = {"op": "PutMessage", "topic": "T0", "queue_id": 0, "body_size": 1}


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"format": 2}, r"\$\.format is 2"),
        ({"format": True}, r"\$\.format is True"),
        ({"format": None}, r"\$\.format: is missing; say"),
        ({"extra": 1}, r"\$\.extra: a case file has no such field"),
        ({"program": {}}, r"\$\.program: a case file has no such field"),
        ({"ops": None}, r"\$\.ops: this field is missing"),
        ({"scenario": 5}, r"\$\.scenario: expected text, got int"),
        ({"scenario": "x" * 201}, r"\$\.scenario: longer than 200"),
        ({"violated": "rm -rf"}, r"\$\.violated: 'rm -rf' is no law's id"),
        ({"step": "3"}, r"\$\.step: expected a whole number from -1 to 9, got '3'"),
        ({"step": 10}, r"\$\.step: expected a whole number"),
        ({"step": True}, r"\$\.step: expected a whole number"),
        ({"python": "3"}, r"\$\.python: '3' is no version of Python"),
        ({"story": 5}, r"\$\.story: expected text, got int"),
        ({"story": "x" * 1001}, r"\$\.story: longer than 1000"),
        ({"a\x1b[2J": 1}, r"\$\.a\\x1b\[2J: a case file has no such field"),
        ({"ops": {}}, r"\$\.ops: expected a list"),
        ({"ops": ["put"]}, r"\$\.ops\[0\]: 'put' is no value of an op"),
        ({"ops": [PUT, {"op": "Exec"}]}, r"\$\.ops\[1\]: unknown op 'Exec'"),
        ({"ops": [PUT | {"colour": 1}]}, r"\$\.ops\[0\]: .*'colour'"),
        ({"ops": [PUT | {"body_size": -1}]}, r"\$\.ops\[0\]\.body_size: -1 is out"),
        ({"ops": [PUT | {"body_size": 1 << 40}]}, r"\$\.ops\[0\]\.body_size"),
        ({"ops": [PUT | {"topic": 7}]}, r"\$\.ops\[0\]"),
        ({"ops": [PUT | {"topic": "../../evil"}]}, r"\$\.ops\[0\]\.topic: '\.\./"),
        ({"ops": [PUT | {"topic": ""}]}, r"\$\.ops\[0\]\.topic: '' is not a topic"),
        ({"setup": {"log_file_size": 0}}, r"\$\.setup\.log_file_size: 0 is out"),
        ({"setup": {"log_file_size": 1 << 50}}, r"\$\.setup\.log_file_size"),
        (
            {"setup": {"disk_profile": "tape"}},
            r"\$\.setup\.disk_profile: 'tape' is not",
        ),
        ({"setup": []}, r"\$\.setup"),
    ],
)
def test_a_wrong_field_is_named(
    tmp_path: Path, changes: dict[str, Any], where: str
) -> None:
    path = saved(tmp_path / "a.case.json", **changes)

    with pytest.raises(BadCaseFile, match=rf"(?s)a\.case\.json: .*{where}") as raised:
        CaseFile.load(path)

    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff\xfe", b"[]", b"null", b"[" * 200_000, b'{"format": NaN}'],
)
def test_what_is_no_json_object_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.case.json"
    path.write_bytes(data)

    with pytest.raises(BadCaseFile, match=r"a\.case\.json"):
        CaseFile.load(path)


def test_every_cut_of_a_case_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.case.json"
    data = CASE.to_text().rstrip().encode()

    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        with pytest.raises(BadCaseFile):
            CaseFile.load(path)


def test_a_fault_nested_in_an_op_is_checked_too(tmp_path: Path) -> None:
    crash = {"op": "Crash", "kind": "power_loss", "cut": -3}
    op = {"op": "During", "during": PUT, "at_action": 1, "event": crash}
    path = saved(tmp_path / "a.case.json", ops=[op], step=0)

    with pytest.raises(BadCaseFile, match=r"\$\.ops\[0\]\.event\.cut: -3"):
        CaseFile.load(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCaseFile, match="No such file"):
        CaseFile.load(tmp_path / "none.case.json")
    with pytest.raises(BadCaseFile, match="no regular file"):
        CaseFile.load(tmp_path)


def test_a_file_too_big_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.case.json"
    with path.open("wb") as file:
        file.truncate(FILE_SIZE_MAX + 1)

    with pytest.raises(BadCaseFile, match=f"{FILE_SIZE_MAX + 1} bytes"):
        CaseFile.load(path)
