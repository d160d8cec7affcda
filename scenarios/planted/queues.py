"""Planted bugs of the queues' units and minimum offsets."""

from __future__ import annotations

from models.ops import Damage, PutMessage, Restart, RunService, Shutdown
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

DUPLICATE_CQ_ON_REPLAY = Mutant(
    id="R28",
    title="duplicate-cq-on-replay",
    source="apache/rocketmq PR #146 (ROCKETMQ-265)",
    killed_by=("CQ-1", "CQ-2", "RD-1"),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue._put_unit",
            before="unit else BEHIND).hit()\n        return",
            after="unit else BEHIND).hit()",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            PutMessage("T0", 1, 16),
            PutMessage("T0", 0, 16),
            RunService("reput"),
            Shutdown(),
            Damage("consumequeue[-1]", "delete"),
            Restart(),
            RunService("reput"),
        ),
    ),
)

QUEUE_MUTANTS = (DUPLICATE_CQ_ON_REPLAY,)
