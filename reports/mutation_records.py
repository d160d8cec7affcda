"""The row of a hunt for one planted bug, and the file that has such rows.

Integers are 64-bit, everything else is text, as in ``records``. If a hunt is repeated
with enough budget, only times differ. ``hunts.jsonl`` has a row on each line, written
without Arrow, since a search for bugs must not require it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from crashmq.reports.errors import NotARun
from crashmq.reports.files import write_text
from crashmq.reports.records import ProbeHit
from crashmq.reports.trust import reason, wrong_field

HUNTS_FILE = "hunts.jsonl"


@dataclass(slots=True)
class HuntRecord:
    """One search for one planted bug from one seed, under one crash policy."""

    mutant: str  # "" is the clean engine
    title: str
    component: str
    difficulty: int
    policy: str  # "" is the whole portfolio
    seed: int
    outcome: str  # killed, survived, unconfirmed, defect
    law: str = ""  # of the kill; "timeout", "died" where no law had spoken
    is_named: int = 0  # 1 if the mutant names the law
    message: str = ""
    how: str = ""  # the kind of search that killed it
    scenario: str = ""
    elapsed_us: int = 0  # to the kill, or all of the budget
    budget_us: int = 0
    states: int = 0  # starts of the store that were judged
    histories: int = 0  # programs that were run
    unknown: int = 0  # programs that could not be judged
    ops_found: int = 0
    ops: int = 0  # after shrinking
    trigger_ops: int = 0  # of the hand-made program; 0 if there is none
    crashes: int = 0
    lost_units: int = 0
    profile: str = ""  # the mildest disk on which the shrunk program still kills
    shrink_us: int = 0
    shrink_runs: int = 0
    signature: str = ""  # what the failures of one bug share
    program: str = ""  # JSON, shrunk
    step: int = -1
    digest: str = ""
    probes: list[ProbeHit] = field(default_factory=list)

    @property
    def doubt(self) -> str:
        """Why a kill is not confirmed: its message begins with that."""
        return self.message.partition(";")[0]


def write_rows(rows: Sequence[HuntRecord], out: Path) -> None:
    """Write the rows of a campaign into its directory, atomically."""
    lines = [json.dumps(asdict(row), ensure_ascii=False) for row in rows]
    write_text(out / HUNTS_FILE, "".join(f"{line}\n" for line in lines))


def read_rows(out: Path) -> list[HuntRecord]:
    """The rows of a campaign.

    Raises:
        NotARun: there are none, or they are of another version.
    """
    path = out / HUNTS_FILE
    try:
        given = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        rows = [
            HuntRecord(**{**row, "probes": [ProbeHit(**hit) for hit in row["probes"]]})
            for row in given
        ]
        why = next(filter(None, (_wrong(row) for row in rows)), "")
    except OSError as error:
        why = reason(error)
    except (ValueError, TypeError, KeyError, RecursionError):
        why = "they are no rows of one"
    if why:
        raise NotARun(
            f"{path} holds no hunts of this version ({why}); give the directory of "
            f"`crashmq mutants --out`."
        )
    return rows


def _wrong(row: HuntRecord) -> str:
    for each in (row, *row.probes):
        if name := wrong_field(each):
            return f"{row.mutant!r:.40}: {name} is {getattr(each, name)!r:.80}"
    return ""
