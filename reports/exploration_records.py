"""The rows of an exploration, as JSON lines, written without Arrow.

``findings.jsonl`` has a row for each distinct failure, ``classes.jsonl`` one for each
class of states: what happened, how often, and how often by random choice. There is no
row for a single state, so millions of states cost no space.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from crashmq.reports.files import write_text

FINDINGS_FILE = "findings.jsonl"
CLASSES_FILE = "classes.jsonl"


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One distinct failure, with its smallest program."""

    signature: str
    law: str
    message: str
    scenario: str
    mutant: str
    ops: int
    crashes: int
    profile: str  # the mildest disk that shows it
    lost: str  # what a power loss must take, in words
    case: str  # the case file, relative to the run's directory


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class of states."""

    name: str
    states: int
    drawn: int


def write_rows(
    findings: Sequence[FindingRow], classes: Sequence[ClassRow], out: Path
) -> None:
    """Write the rows of an exploration into its directory."""
    for name, rows in ((FINDINGS_FILE, findings), (CLASSES_FILE, classes)):
        lines = [json.dumps(asdict(row), ensure_ascii=False) for row in rows]
        write_text(out / name, "".join(f"{line}\n" for line in lines))
