"""Planted bugs of a start: what it takes for the log's end, and what it restores."""

from __future__ import annotations

from models.ops import Crash, During, PutMessage, Restart, RunService
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_LIGHT = PutMessage("T0", 0, 16, multi_dispatch="%LMQ%a")
_BODY_AND_HEADER = 88 + 16  # the size of a record's header, and of the body below

HALF_RECORD_COUNTED = Mutant(
    id="R01",
    title="half-record-counted",
    source="apache/rocketmq#467, PR #501",
    killed_by=("CL-1", "REC-1"),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._scan_file",
            before="if request.success and request.msg_size > 0:",
            after="if request.msg_size > 0:",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            PutMessage("T0", 0, 16),
            During(
                PutMessage("T0", 0, 16), 1, Crash("process_kill", cut=_BODY_AND_HEADER)
            ),
            Restart(),
        ),
    ),
)

SECOND_OFFSET_TABLE_NOT_RESTORED = Mutant(
    id="R18",
    title="second-offset-table-not-restored",
    source="apache/rocketmq#5965, PR #5968",
    killed_by=("REC-1", "OFF-1", "CQ-1", "CQ-4", "RD-1", "PUT-1"),
    edits=(
        Edit(
            module="engine.store.consume_queue_store",
            function="ConsumeQueueStore.recover",
            before="self._next_offsets[key] = max(known, next_offset)",
            after=(
                "self._next_offsets[key] = max(known, next_offset)\n"
                "        for key in self._next_offsets:\n"
                '            if key[0].startswith("%LMQ%"):\n'
                "                self._next_offsets[key] = 0"
            ),
        ),
    ),
    trigger=Program(
        Setup(multi_dispatch=True),
        (_LIGHT, RunService("reput"), Restart(), _LIGHT, Restart()),
    ),
)

RECOVERY_MUTANTS = (
    HALF_RECORD_COUNTED,
    SECOND_OFFSET_TABLE_NOT_RESTORED,
)
