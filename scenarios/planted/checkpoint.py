"""Planted bugs of the checkpoint and of what its marks vouch for."""

from __future__ import annotations

from models.ops import PutMessage, Restart, RunService, Shutdown
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)

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

CHECKPOINT_MUTANTS = (MARK_BEFORE_SYNC,)
