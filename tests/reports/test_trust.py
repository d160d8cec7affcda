"""What is read of a run that somebody else wrote, or that rotted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from crashmq.harness.cli import main
from crashmq.reports.errors import NotARun
from crashmq.reports.files import (
    DECLARED_FILE,
    FINISHED_FILE,
    RUN_FILE,
    read_declared,
    read_elapsed_s,
    read_run_file,
)

DEFINITION: dict[str, Any] = {"scenarios": ["power_loss"], "seed": 7, "mutant": ""}
RUN: dict[str, Any] = {
    "format": 1,
    "run_id": "d1e5",
    "episodes": 100,
    "definition": DEFINITION,
}
SESSION = {"began": "", "host": "", "command": "", "ended": "", "elapsed_s": 0.5}
HUGE = "9" * 5000

BAD_RUNS: dict[str, tuple[object, str]] = {
    "no object": ([], "is not a JSON object"),
    "another format": (RUN | {"format": {}}, "another format than 1 and 2"),
    "no format": ({}, "another format than 1 and 2"),
    "no episodes": ({k: RUN[k] for k in RUN if k != "episodes"}, r"has no \$.episodes"),
    "a text of episodes": (RUN | {"episodes": "many"}, r"'many' at \$.episodes"),
    "a truth of episodes": (RUN | {"episodes": True}, r"True at \$.episodes"),
    "too few episodes": (RUN | {"episodes": -1}, r"-1 at \$.episodes"),
    "too many episodes": (RUN | {"episodes": 10**18}, r"at \$.episodes, not a count"),
    "a long id": (RUN | {"run_id": "x" * 5000}, r"x\.\.\. at \$.run_id"),
    "an id of a terminal": (RUN | {"run_id": "\x1b[2J"}, r"'\\x1b\[2J' at \$.run_id"),
    "no definition": (RUN | {"definition": None}, r"None at \$.definition"),
    "an empty definition": (RUN | {"definition": {}}, r"no \$.definition.scenarios"),
    **{
        f"defined {key} {number}": (
            RUN | {"definition": DEFINITION | {key: value}},
            rf"at \$.definition.{key}, not ",
        )
        for number, (key, value) in enumerate(
            [
                ("scenarios", "power_loss"),
                ("scenarios", [["power_loss"]]),
                ("scenarios", ["../../etc/passwd"]),
                ("seed", "7"),
                ("seed", 2**70),
                ("mutant", "../../../R01"),
                ("mutant", 7),
                ("code_version", {"a": 1}),
                ("episode_timeout_s", float("nan")),
                ("episode_timeout_s", float("inf")),
            ]
        )
    },
}
BAD_TEXTS = {
    "half a text": "{",
    "no UTF-8": b"\xff",
    "deep": "[" * 200_000,
    "a number nobody reads": f'{{"format": {HUGE}}}',
    "endless": " " * (17 * 1024 * 1024),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write(tmp_path / RUN_FILE, RUN)
    write(tmp_path / DECLARED_FILE, {"ops": ["Restart"]})
    return tmp_path


def write(path: Path, value: object) -> None:
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        path.write_text(value if isinstance(value, str) else json.dumps(value))


def test_a_run_is_read_as_it_was_written(run: Path) -> None:
    assert read_run_file(run) == RUN
    assert read_declared(run).ops == ["Restart"]
    assert read_elapsed_s(run) is None


@pytest.mark.parametrize("kind", BAD_RUNS)
def test_a_run_file_with_a_wrong_value_is_told_by_its_place(
    run: Path, kind: str
) -> None:
    value, says = BAD_RUNS[kind]
    write(run / RUN_FILE, value)

    with pytest.raises(NotARun, match=says) as told:
        read_run_file(run)

    assert len(str(told.value)) < 500 + len(str(run))
    assert str(told.value).isprintable()


@pytest.mark.parametrize("name", [RUN_FILE, DECLARED_FILE, FINISHED_FILE])
@pytest.mark.parametrize("kind", BAD_TEXTS)
def test_a_file_that_is_no_json_of_a_size_is_one_sentence(
    run: Path, name: str, kind: str
) -> None:
    write(run / name, BAD_TEXTS[kind])

    result = CliRunner().invoke(main, ["report", str(run)])

    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert name in line
    assert not (run / "spark").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (DECLARED_FILE, {"ops": "Restart"}),
        (DECLARED_FILE, {"ops": [7]}),
        (DECLARED_FILE, {"probes": ["a"]}),
        (DECLARED_FILE, {"probes": {"a": 7}}),
        (DECLARED_FILE, {"required_probes": {"a": "b"}}),
        (DECLARED_FILE, {"colours": []}),
        (FINISHED_FILE, {}),
        (FINISHED_FILE, {"elapsed_s": "7"}),
        (FINISHED_FILE, {"elapsed_s": float("nan")}),
        (FINISHED_FILE, {"elapsed_s": -1}),
        (RUN_FILE, RUN | {"episodes": None}),
        ("sessions/0001.json", {}),
        ("sessions/0001.json", SESSION | {"elapsed_s": "long"}),
        ("sessions/0001.json", SESSION | {"command": "\x1b[2J"}),
    ],
)
def test_a_report_of_a_wrong_file_is_one_sentence(
    run: Path, name: str, value: object
) -> None:
    (run / "sessions").mkdir()
    write(run / name, value)

    result = CliRunner().invoke(main, ["report", str(run)])

    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert Path(name).name in line
    assert not (run / "spark").exists()


def test_a_run_file_that_is_a_directory_or_never_ends_is_not_read(run: Path) -> None:
    (run / RUN_FILE).unlink()
    (run / RUN_FILE).symlink_to("/dev/zero")
    with pytest.raises(NotARun, match="no regular file"):
        read_run_file(run)

    (run / RUN_FILE).unlink()
    (run / RUN_FILE).mkdir()
    with pytest.raises(NotARun, match="no regular file"):
        read_run_file(run)
