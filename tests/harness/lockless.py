"""A planted bug that only ops at the same time show, for tests of what runs several."""

from __future__ import annotations

from crashmq.harness.mutants.mutation import Edit, Mutant
from crashmq.models.ops import PutMessage, Schedule, Together
from crashmq.models.program import Program, Setup

_PUT = PutMessage("T0", 0, 16)

APPENDS_WITHOUT_LOCK = Mutant(
    id="T90",
    title="appends-without-lock",
    killed_by=("PUT-1",),
    edits=(
        Edit(
            module="crashmq.engine.store.commit_log",
            function="CommitLog._append_encoded",
            before="with self.put_lock:",
            after="if self.put_lock:",
        ),
    ),
    source="a test",
    trigger=Program(
        Setup(), (Together((_PUT, _PUT), Schedule(preemptions=((2, 1),))),)
    ),
)
