"""Planted bugs of pulls and of searches by time."""

from __future__ import annotations

from models.ops import PutMessage, RunService, SearchOffset
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)
_REPUT = RunService("reput")

SEARCH_MIXES_BOUNDARIES = Mutant(
    id="R53",
    title="time-search-boundaries",
    source="apache/rocketmq#4890, #7961, #5445",
    killed_by=("RD-4",),
    edits=(
        Edit(
            module="engine.store.time_search",
            function="_first_at_or_after",
            before="if time < timestamp:",
            after="if time <= timestamp:",
        ),
    ),
    trigger=Program(Setup(), (_PUT, _REPUT, SearchOffset("T0", 0, 0))),
    component="READ",
    difficulty=2,
)

READING_MUTANTS = (SEARCH_MIXES_BOUNDARIES,)
