"""The histories that explorers are compared on: programs as data, said once.

Programs of seeds change with every setup and every generator; these stay, so that
figures of two versions are of the same work. A line of ``fixed_histories.jsonl`` is the
seed of a history's draws and its program; fields at their defaults are left out.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from crashmq.harness.explore.campaign import Job, jobs_of_scenario
from crashmq.harness.explore.limits import Limits
from crashmq.models.program_json import from_json, to_short_json

SCENARIO = "power_loss"
HISTORIES = 200
_SEED = 7
_OPS_MAX = 1000
_PATH = Path(__file__).with_suffix(".jsonl")


def jobs(histories: int, depth: int) -> list[Job]:
    """The first so many of the fixed histories."""
    limits = Limits(depth=depth)
    lines = islice(_PATH.read_text("utf-8").splitlines(), histories)
    return [
        Job(SCENARIO, from_json(line["program"]), line["seed"], limits)
        for line in map(json.loads, lines)
    ]


def write() -> None:
    """Make the histories anew, by the generators as they are now."""
    limits = Limits()
    seeded = jobs_of_scenario(SCENARIO, _SEED, _OPS_MAX, limits)
    made = list(islice(seeded, HISTORIES))
    _PATH.write_text("".join([f"{_line(job)}\n" for job in made]), "utf-8")
    assert jobs(HISTORIES, limits.depth) == made


def _line(job: Job) -> str:
    said = {"seed": job.seed, "program": to_short_json(job.program)}
    return json.dumps(said, separators=(",", ":"))
