"""Planted bugs of a start, of the checkpoint's marks, and of searches by time."""

from __future__ import annotations

from models.ops import (
    Crash,
    During,
    PutMessage,
    Restart,
    RunService,
    SearchOffset,
    Shutdown,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)
_REPUT = RunService("reput")

LAGGING_QUEUE_NEVER_REBUILT = Mutant(
    id="R23",
    title="lagging-queue-never-rebuilt",
    source="4.9's recheck of the reput offset: the maximum over all queues",
    killed_by=("CQ-4", "REC-3", "CP-3", "CP-7"),
    edits=(
        Edit(
            module="engine.store.consume_queue_store",
            function="QueueAudit._visit_place",
            before="if self.first_wrong_phy_offset < 0:",
            after="if True:",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            _PUT,
            PutMessage("T0", 1, 16),
            During(_REPUT, 1, Crash("process_kill")),
            Restart(),
        ),
    ),
    as_shipped=True,
    component="REPUT",
    difficulty=4,
)

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

MARK_BEFORE_SYNC = Mutant(
    id="X06",
    title="mark-before-fsync",
    source="a replay mark made durable before the data it vouches for",
    killed_by=("CP-9", "CP-1", "REC-4"),
    edits=(
        Edit(
            module="engine.store.flush",
            function="CheckpointService.run_once",
            before="flushed_where = self._commit_log.flushed_where",
            after="flushed_where = self._commit_log.max_offset",
        ),
    ),
    trigger=Program(Setup(), (_PUT, RunService("checkpoint"), Shutdown(), Restart())),
    component="CKPT",
    difficulty=4,
)

RECOVERY_MUTANTS = (
    LAGGING_QUEUE_NEVER_REBUILT,
    SEARCH_MIXES_BOUNDARIES,
    MARK_BEFORE_SYNC,
)
