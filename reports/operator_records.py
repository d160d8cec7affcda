"""The row of a hunt for one generated mutant, and the file that has such rows.

``operators.jsonl`` gets a row on a line when a hunt ends, so that an interrupted run
can be continued; if a mutant has several rows, the last one counts. ``operators.json``
has the run's parameters. Integers are 64-bit, everything else is text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from crashmq.reports.errors import NotARun
from crashmq.reports.files import changing, write_json
from crashmq.reports.places import is_there
from crashmq.reports.trust import (
    Kind,
    are,
    are_by_name,
    is_count,
    is_seed,
    reason,
    wrong_field,
)

ROWS_FILE = "operators.jsonl"
ASKED_FILE = "operators.json"
LINES_FILE = "lines.json"
FORMAT = 1

Lines: TypeAlias = dict[str, dict[int, int]]  # slices by module and line


@dataclass(slots=True)
class OperatorRecord:
    """One search for one generated mutant."""

    id: str
    module: str
    function: str
    operator: str
    line: int
    before: str
    after: str
    outcome: str  # killed, survived, unconfirmed, defect
    law: str = ""  # of the kill; "timeout", "died" where no law had spoken
    about: str = ""  # own, another, any: what the law is about, against the module
    message: str = ""
    how: str = ""  # the kind of search that killed it
    scenario: str = ""
    cpu_us: int = 0  # of the search's processes, to the kill or all of the budget
    slices: int = 0  # that were searched, from the first one on
    states: int = 0
    histories: int = 0
    program: str = ""  # JSON, as found
    reached: int = -1  # slices of the clean engine that run the line; -1: not counted
    differing: int = -1  # programs whose digest differs from the clean engine's
    compared: int = 0  # programs of which that was asked

    @property
    def is_killed(self) -> bool:
        """Whether a confirmed kill ended the search."""
        return self.outcome == "killed"


def append_row(out: Path, row: OperatorRecord) -> None:
    """Append a row; durable when this returns.

    Raises:
        CannotWrite: the disk is full, say; a part of the row may be there.
    """
    line = json.dumps(asdict(row), ensure_ascii=False) + "\n"
    path = out / ROWS_FILE
    with changing(out), path.open("a", encoding="utf-8") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_operator_rows(out: Path) -> list[OperatorRecord]:
    """The last row of each mutant, in the order of their first rows.

    A last line without its line end was interrupted, and is skipped.

    Raises:
        NotARun: there are none, or a line is damaged or of another version.
    """
    path = out / ROWS_FILE
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError as error:
        raise NotARun(
            f"{path} cannot be read ({reason(error)}); give the directory of "
            f"`crashmq mutants --operators --out`."
        ) from None
    rows = [_row_in(line, path, number) for number, line in enumerate(lines, 1)]
    return list({row.id: row for row in rows}.values())


def _row_in(line: bytes, path: Path, number: int) -> OperatorRecord:
    why = "it is not JSON"
    try:
        given = json.loads(line)
        why = "its fields are not those of a row"
        row = OperatorRecord(**given)
    except (ValueError, TypeError, RecursionError):
        pass
    else:
        wrong = wrong_field(row)
        if not wrong:
            return row
        why = f"{wrong} is {getattr(row, wrong)!r:.80}"
    raise NotARun(
        f"{path}:{number} is no hunt of this version ({why}); remove the line, and the "
        f"same `crashmq mutants --operators` searches for its mutant again."
    )


def in_sample_order(
    rows: Iterable[OperatorRecord], ids: Iterable[str]
) -> list[OperatorRecord]:
    """The rows of the mutants with these ids, in that order, which is random."""
    by_id = {row.id: row for row in rows}
    return [by_id[one] for one in ids if one in by_id]


def cut_torn_row(out: Path) -> None:
    """Cut off an interrupted last line, so that the next row begins a new one."""
    path = out / ROWS_FILE
    if path.exists():
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with changing(out), path.open("r+b") as file:
                file.truncate(whole)


def write_asked(out: Path, asked: dict[str, Any]) -> None:
    """Write ``operators.json``: the run's parameters, and the mutants left out."""
    write_json(out / ASKED_FILE, {"format": FORMAT, **asked})


def read_asked(out: Path) -> dict[str, Any]:
    """The parameters of the run in a directory.

    Raises:
        NotARun: it is no such run, or of another version.
    """
    path = out / ASKED_FILE
    try:
        asked = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise NotARun(
            f"{path} cannot be read ({reason(error)}); give the directory of "
            f"`crashmq mutants --operators --out`."
        ) from None
    if not isinstance(asked, dict) or asked.get("format") != FORMAT:
        raise NotARun(f"{path} is not of format {FORMAT}, which this version reads.")
    for key, is_right in _ASKED.items():
        if not is_right(asked.get(key)):
            raise NotARun(
                f"{path} is damaged: {key} is {asked.get(key)!r:.80}. Restore the "
                f"file, or give --out a new directory."
            )
    return asked


def _is_drawn(value: object) -> bool:
    """Whether a value is a mutant of the sample, as a directory stores it."""
    return (
        isinstance(value, dict)
        and set(value) == {*_DRAWN, "line"}
        and all(isinstance(value[key], str) for key in _DRAWN)
        and is_count(value["line"])
    )


_DRAWN = ("id", "module", "function", "operator", "before", "after")
_ASKED: dict[str, Kind] = {
    "seed": is_seed,
    "size": is_count,
    "passed_over": are_by_name(is_count),
    "sample": are(_is_drawn),
}


def lines_text(lines: Lines) -> str:
    """The counts as JSON."""
    return json.dumps(lines)


def read_lines(out: Path) -> Lines | None:
    """How often each line of each module ran; None if nobody has counted.

    Raises:
        NotARun: the file is damaged.
        BadRequest: it cannot be looked at.
    """
    path = out / LINES_FILE
    if not is_there(path):
        return None
    try:
        found = json.loads(path.read_bytes())
        if are_by_name(are_by_name(is_count))(found):
            return {
                module: {int(line): count for line, count in counts.items()}
                for module, counts in found.items()
            }
        why = "it has no counts of lines"
    except (OSError, ValueError, RecursionError) as error:
        why = reason(error)
    raise NotARun(
        f"{path} cannot be read ({why}); remove it, and `crashmq mutants --operators` "
        f"counts the lines again."
    )


def with_reach(rows: Iterable[OperatorRecord], lines: Lines) -> list[OperatorRecord]:
    """The rows, each with the number of slices that ran its line."""
    found = list(rows)
    for row in found:
        row.reached = lines.get(row.module, {}).get(row.line, 0)
    return found
