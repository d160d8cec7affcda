"""Planted bugs of a start: what it takes for the log's end, and what it restores."""

from __future__ import annotations

from models.ops import (
    AdvanceClock,
    Crash,
    Damage,
    DeleteManually,
    DiskFault,
    During,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_LIGHT = PutMessage("T0", 0, 16, multi_dispatch="%LMQ%a")
_PUT = PutMessage("T0", 0, 16)
_HALF = PutMessage("T0", 0, 1900)  # two fill a log file
_CLEANS = Setup(cleans=True, reserved_hours=2, flush_least_pages=0)
_PULL = PullMessage("T0", 0, 0)
_REPUT = RunService("reput")
_KILL = During(_PULL, 1, Crash("process_kill"))
_POWER_LOSS = During(_PULL, 1, Crash("power_loss"))
_BODY_AND_HEADER = 88 + 16  # the size of a record's header, and of the body below

HALF_RECORD_COUNTED = Mutant(
    id="R01",
    title="half-record-counted",
    source="apache/rocketmq#467, PR #501",
    killed_by=("CL-1", "REC-1"),
    edits=(
        Edit(
            module="engine.store.log_scan",
            function="records_in",
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
    component="RECOVERY",
    difficulty=3,
    needs="power loss, bit rot",
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
    component="RECOVERY",
    difficulty=1,
    needs="none",
)

# An orderly end is believed here only with a durable mark, and then the log is whole.
# So the bug comes with RocketMQ's belief in the marker alone.
QUEUES_AHEAD_AFTER_NORMAL_RECOVERY = Mutant(
    id="R02",
    title="cq-ahead-after-normal-recovery",
    source="alibaba/rocketmq#358; apache/rocketmq PR #501",
    killed_by=("CQ-1", "CQ-2", "CQ-3", "OFF-1", "PUT-1"),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp.mend",
            before="self.last_exit_ok and (mark is not None or scan.end == 0)",
            after="self.last_exit_ok",
        ),
        Edit(
            module="engine.store.start_up",
            function="StartUp.mend",
            before="    self._consume_queues.recover(audit, scan, clean=clean)\n",
            after=(
                "    if clean:\n"
                "        queues = self._consume_queues._queues\n"
                "        ends = {key: queues[key].recovered_units for key in queues}\n"
                "        audit.next_offsets.update(ends)\n"
                "    self._consume_queues.recover(audit, scan, clean=clean)\n"
            ),
        ),
    ),
    trigger=Program(
        Setup(adopt=True),
        (
            *(_PUT, _REPUT, Shutdown()),
            Damage("commitlog[0]", "flip", at=90),
            Damage("checkpoint", "delete"),
            Restart(),
        ),
    ),
    component="RECOVERY",
    difficulty=2,
    needs="bit rot, truncation",
)

# A new file is durable zeros here. So the bug comes with files that are used again.
RECORD_OFFSET_NOT_VALIDATED = Mutant(
    id="R04",
    title="record-offset-not-validated",
    source="apache/rocketmq#10017, PR #10018",
    killed_by=("CL-1", "REC-1", "OFF-1", "CQ-1", "CL-4", "PUT-1"),
    edits=(
        Edit(
            module="engine.store.message_codec",
            function="check_message",
            before="    if fields[6] != phy_offset:\n        return BAD_OFFSET\n",
            after="",
        ),
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue._delete_first",
            before="        first.destroy()\n",
            after=(
                "        if self.path == 'commitlog':\n"
                "            self._disk.rename(first.path, 'recycled')\n"
                "            first.shutdown()\n"
                "        else:\n"
                "            first.destroy()\n"
            ),
        ),
        Edit(
            module="engine.store.mapped_file_queue",
            function="new_file",
            before="    file = MappedFile(",
            after=(
                "    if path.startswith('commitlog/') and disk.exists('recycled'):\n"
                "        disk.rename('recycled', path)\n"
                "    file = MappedFile("
            ),
        ),
    ),
    trigger=Program(
        _CLEANS,
        (
            *(_HALF, _HALF, _HALF),
            *(RunService("flush_commit_log", 2), _REPUT),
            *(AdvanceClock(3 * 3_600_000), DeleteManually()),
            *(RunService("clean_commit_log"), _HALF, _HALF),
            *(_KILL, Restart()),
        ),
    ),
    component="RECOVERY",
    difficulty=4,
    needs="process kill, deletion, long history",
)

# What was confirmed is, on one node, what was flushed. RocketMQ's start takes all that
# it can read as flushed, dispatches it and shows it, without a sync.
REPLAY_PAST_CONFIRM = Mutant(
    id="R15",
    title="replay-past-confirm",
    source="apache/rocketmq#6609, PR #6618",
    killed_by=("FL-9", "CL-1", "REC-2", "FL-3", "CP-1", "REC-4"),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog.recover_abnormally",
            before=(
                "    self.mapped_files.rewrite(durable_offset)\n"
                "    self.mapped_files.sync_from(durable_offset)\n"
            ),
            after="",
        ),
    ),
    trigger=Program(Setup(), (_PUT, _KILL, Restart(), _POWER_LOSS, Restart())),
    as_shipped=True,
    component="RECOVERY",
    difficulty=3,
    needs="process kill, power loss",
)

NEXT_OFFSET_FROM_QUEUES_ONLY = Mutant(
    id="R17",
    title="next-queue-offset-from-cq-only",
    source="apache/rocketmq#7689, PR #7690",
    killed_by=("PUT-1", "OFF-1", "REC-1"),
    edits=(
        Edit(
            module="engine.store.consume_queue_store",
            function="ConsumeQueueStore.recover",
            before="in audit.next_offsets.items():",
            after="in ():",
        ),
    ),
    trigger=Program(Setup(), (_PUT, Restart(), _PUT)),
    component="RECOVERY",
    difficulty=4,
    needs="process kill",
)

FOREIGN_CUT = Mutant(
    id="E95",
    title="directory-without-its-mark-is-cut",
    source="MappedFileQueue#truncateDirtyFiles; ours",
    killed_by=("REC-4",),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp._refuse_foreign",
            before="if losses.where:",
            after="if losses.index_files:",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_HALF, _PUT, Shutdown(), Damage("checkpoint", "delete")),
            *(Damage("commitlog[0]", "flip", 35, 1), Restart()),
        ),
    ),
    component="RECOVERY",
    difficulty=2,
    needs="truncation",
)

MARK_LOWERED_TOO_LATE = Mutant(
    id="E96",
    title="mark-vouches-for-units-that-a-failed-start-cut",
    source="ours",
    killed_by=("CP-7",),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp._lower_mark",
            before="dispatched < mark.dispatched_offset",
            after="dispatched < 0",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_PUT, PutMessage("T0", 1, 16), _REPUT),
            During(Restart(), 1, DiskFault("read", "EIO", 9, "consumequeue")),
        ),
    ),
    component="RECOVERY",
    difficulty=5,
    needs="read error",
)

RECOVERY_MUTANTS = (
    FOREIGN_CUT,
    MARK_LOWERED_TOO_LATE,
    HALF_RECORD_COUNTED,
    QUEUES_AHEAD_AFTER_NORMAL_RECOVERY,
    RECORD_OFFSET_NOT_VALIDATED,
    REPLAY_PAST_CONFIRM,
    NEXT_OFFSET_FROM_QUEUES_ONLY,
    SECOND_OFFSET_TABLE_NOT_RESTORED,
)
