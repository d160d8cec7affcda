"""Planted bugs of the replay from the log to the queues."""

from __future__ import annotations

from models.ops import (
    Crash,
    During,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)
_REPUT = RunService("reput")
_KILL = Crash("process_kill")

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
    component="REPUT",
    difficulty=2,
    needs="none (graceful stop)",
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
    component="REPUT",
    difficulty=2,
    needs="process kill",
)

LAGGING_QUEUE_NEVER_REBUILT = Mutant(
    id="R23",
    title="lagging-queue-never-rebuilt",
    source="4.9's recheck of the reput offset: the maximum over all queues",
    killed_by=("CQ-4", "REC-3", "CP-3", "CP-7"),
    edits=(
        Edit(
            module="engine.store.queue_audit",
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
    needs="power loss, deletion of one CQ file",
)

DISPATCH_PAST_FLUSHED = Mutant(
    id="R26",
    title="dispatch-past-flushed",
    source="apache/rocketmq#8239, PR #8240",
    killed_by=("FL-3", "FL-6", "FL-7"),
    edits=(
        Edit(
            module="engine.store.reput",
            function="ReputMessageService.confirm_offset",
            before="return self._commit_log.flushed_where",
            after="return self._commit_log.committed_where",
        ),
    ),
    trigger=Program(
        Setup(flush_mode="SYNC_FLUSH"),
        (PutMessage("T0", 0, 16, wait_store_ok=False), _REPUT),
    ),
    component="REPUT",
    difficulty=4,
    needs="power loss",
)

# Two records are handed over at a time, and each task looks at the shared cursor when
# it runs.
SHARED_CURSOR = Mutant(
    id="R27",
    title="shared-cursor-in-parallel-dispatch",
    source="apache/rocketmq#6518, PR #6519",
    killed_by=("CQ-4", "CQ-1", "REC-3", "RD-1", "RD-2"),
    edits=(
        Edit(
            module="engine.store.reput",
            function="ReputMessageService._reput_file",
            before="    at = 0\n",
            after="    at = 0\n    tasks = []\n",
        ),
        Edit(
            module="engine.store.reput",
            function="ReputMessageService._reput_file",
            before="self._dispatch(request)\n            at += request.msg_size",
            after=(
                "tasks.append(lambda: self._dispatch(request))\n"
                "            at += request.msg_size\n"
                "            if len(tasks) == 2 or at >= len(data):\n"
                "                for task in tasks:\n"
                "                    task()\n"
                "                tasks = []"
            ),
        ),
    ),
    trigger=Program(Setup(), (_PUT, _PUT, _REPUT)),
    component="REPUT",
    difficulty=4,
    needs="concurrency",
)

DISPATCH_MUTANTS = (
    DISPATCH_PAST_FLUSHED,
    SHARED_CURSOR,
    CLEAN_EXIT_WITH_DISPATCH_BEHIND,
    REPUT_STARTS_AT_LOG_END,
    LAGGING_QUEUE_NEVER_REBUILT,
)
