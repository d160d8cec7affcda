"""The histories that explorers are compared on: programs as data, said once.

Programs of seeds change with every setup and every generator; these stay, so that
figures of two versions are of the same work. A line of ``fixed_histories.jsonl`` is the
seed of a history's draws and its program; fields at their defaults are left out.
"""

from __future__ import annotations

import json
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import models.ops
from harness.explore.campaign import Job, jobs_of_scenario
from harness.explore.limits import Limits
from models.program import Setup, from_json, to_json

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
    said = to_json(job.program)
    setup = _without(said["setup"], _defaults(Setup))
    program = {"setup": setup, "ops": [_short(op) for op in said["ops"]]}
    return json.dumps({"seed": job.seed, "program": program}, separators=(",", ":"))


def _short(value: Any) -> Any:
    """An op, or anything in one, without what is at its default."""
    if not isinstance(value, dict):
        return [_short(one) for one in value] if isinstance(value, list) else value
    cls = getattr(models.ops, value["op"]) if "op" in value else None
    kept = _without(value, _defaults(cls) if cls else {})
    return {name: _short(one) for name, one in kept.items()}


def _defaults(cls: type) -> dict[str, Any]:
    return {one.name: one.default for one in fields(cls)}


def _without(value: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    return {
        name: one
        for name, one in value.items()
        if name not in defaults or one != defaults[name]
    }
