"""The planted bugs, by their id in the catalogue of bugs that real stores shipped.

Each names the laws of which one must flag it, and a trigger: a program that is red with
the bug and green without. How an edit is applied is told in ``scenarios.mutation``.
"""

from __future__ import annotations

from models.ops import (
    Crash,
    Damage,
    During,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from models.program import Program, Setup
from scenarios.message_mutants import MESSAGE_MUTANTS
from scenarios.mutants_recovery import RECOVERY_MUTANTS
from scenarios.mutation import Edit, Mutant

_KILL = Crash("process_kill")
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

# A lost abort file alone does no harm here: every start holds the queues against the
# log, whatever the marker says. So the bug comes with RocketMQ's trust in the marker.
CLEAN_EXIT_WITH_DISPATCH_BEHIND = Mutant(
    id="R21",
    title="clean-exit-with-dispatch-behind",
    source="apache/rocketmq PR #197 (ROCKETMQ-320)",
    killed_by=("CQ-4", "REC-3"),
    edits=(
        Edit(
            module="engine.store.message_store",
            function="MessageStore._make_durable",
            before="self._flags.is_sound and self.reput.behind <= 0",
            after="self._flags.is_sound",
        ),
        Edit(
            module="engine.store.start_up",
            function="StartUp.mend",
            before="return lacks if lacks >= 0 else scan.end",
            after="return lacks if lacks >= 0 and not clean else scan.end",
        ),
    ),
    trigger=Program(Setup(), (PutMessage("T0", 0, 16), Shutdown(), Restart())),
)

REPUT_STARTS_AT_LOG_END = Mutant(
    id="R22",
    title="reput-starts-at-log-end",
    source="apache/rocketmq#405",
    killed_by=("CQ-4", "REC-3"),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp.mend",
            before="return lacks if lacks >= 0 else scan.end",
            after="return scan.end",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            PutMessage("T0", 0, 16),
            During(PullMessage("T0", 0, 0), 1, _KILL),
            Restart(),
        ),
    ),
    as_shipped=True,
)

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

MUTANTS: dict[str, Mutant] = {
    mutant.id: mutant
    for mutant in (
        *RECOVERY_MUTANTS,
        HALF_RECORD_COUNTED,
        CLEAN_EXIT_WITH_DISPATCH_BEHIND,
        REPUT_STARTS_AT_LOG_END,
        DUPLICATE_CQ_ON_REPLAY,
        *MESSAGE_MUTANTS,
    )
}
