"""Planted bugs of pulls and of searches by time."""

from __future__ import annotations

from models.ops import PullMessage, PutMessage, RunService, SearchOffset
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
            before="if 0 <= time < timestamp:",
            after=(
                "if time == timestamp:\n"
                "            return readable\n"
                "        if time < timestamp:"
            ),
        ),
    ),
    trigger=Program(Setup(), (_PUT, _PUT, _REPUT, SearchOffset("T0", 0, 0))),
    component="READ",
    difficulty=2,
    needs="none",
)

OVERFLOW_RESETS_TO_ZERO = Mutant(
    id="R51",
    title="overflow-resets-to-zero",
    source="apache/rocketmq#4215, PR #4219",
    killed_by=("RD-2",),
    edits=(
        Edit(
            module="engine.store.message_reader",
            function="_out_of_range",
            before="return GetMessageStatus.OFFSET_OVERFLOW_BADLY, high",
            after=(
                "next_begin = low if low == 0 else high\n"
                "    return GetMessageStatus.OFFSET_OVERFLOW_BADLY, next_begin"
            ),
        ),
    ),
    trigger=Program(Setup(), (_PUT, _REPUT, PullMessage("T0", 0, 9))),
    component="READ",
    difficulty=1,
    needs="truncation",
)

READING_MUTANTS = (
    OVERFLOW_RESETS_TO_ZERO,
    SEARCH_MIXES_BOUNDARIES,
)
