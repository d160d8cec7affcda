"""Planted bugs of the checkpoint and of what its marks promise."""

from __future__ import annotations

from models.ops import (
    AdvanceClock,
    Crash,
    DeleteManually,
    During,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)
_REPUT = RunService("reput")
_CHECKPOINT = RunService("checkpoint")
_FLUSH = RunService("flush_commit_log")
_POWER_LOSS = During(PullMessage("T0", 0, 0), 1, Crash("power_loss"))

MARK_BEFORE_SYNC = Mutant(
    id="X06",
    title="mark-before-fsync",
    source="apache/bookkeeper PR #2983",
    killed_by=("CP-9", "CP-1", "REC-4"),
    edits=(
        Edit(
            module="engine.store.flush",
            function="CheckpointService._write",
            before="flushed_where = self._commit_log.flushed_where",
            after="flushed_where = self._commit_log.max_offset",
        ),
    ),
    trigger=Program(Setup(), (_PUT, _CHECKPOINT)),
    component="CKPT",
    difficulty=4,
    needs="power loss",
)

# RocketMQ's mark is a time; this store's is an offset beside it. Both come early.
CHECKPOINT_AHEAD_OF_QUEUES = Mutant(
    id="R55",
    title="checkpoint-ahead-of-cq-flush",
    source="apache/rocketmq#10073, PR #10074; #678; sharp edge 14.3",
    killed_by=("CP-12", "CP-3", "CP-7", "CQ-4"),
    edits=(
        Edit(
            module="engine.store.flush",
            function="CheckpointService._write",
            before="flushed_where = self._commit_log.flushed_where",
            after=(
                "flushed_where = self._commit_log.flushed_where\n"
                "    dispatched = self._consume_queues.dispatched_timestamp\n"
                "    self._checkpoint.logics_msg_timestamp = max(\n"
                "        self._checkpoint.logics_msg_timestamp, dispatched\n"
                "    )"
            ),
        ),
        Edit(
            module="engine.store.flush",
            function="CheckpointService._write",
            before="self._consume_queues.durable_dispatched_offset",
            after="self._consume_queues.dispatched_offset",
        ),
    ),
    trigger=Program(
        Setup(),
        (_PUT, _FLUSH, _REPUT, _CHECKPOINT, _POWER_LOSS, Restart()),
    ),
    as_shipped=True,
    component="CKPT",
    difficulty=5,
    needs="power loss, long history",
)

CHECKPOINT_STAYS_ZERO = Mutant(
    id="R57",
    title="checkpoint-stays-zero-in-one-mode",
    source="apache/rocketmq#1153, #1456, PR #1455; #7233, PR #7235; #10079, PR #10080",
    killed_by=("CP-6",),
    edits=(
        Edit(
            module="engine.store.flush",
            function="CommitLogFlusher._flush",
            before="self._commit_log.flushed_timestamp\n",
            after="self._commit_log.flushed_timestamp if least_pages else 0\n",
        ),
    ),
    trigger=Program(Setup(), (_PUT,)),
    component="CKPT",
    difficulty=2,
    needs="process kill, long history",
)

# This store writes two slots in place, in turn. So the bug is the rename that others
# make: a new file takes the old one's name before its bytes are durable.
RENAMED_UNSYNCED = Mutant(
    id="X02",
    title="checkpoint-file-renamed-unsynced",
    source="apache/kafka PR #15993 (KAFKA-16541)",
    killed_by=("REC-18", "CP-4", "REC-4", "CP-1"),
    edits=(
        Edit(
            module="engine.store.checkpoint",
            function="StoreCheckpoint.flush",
            before="    self._file.write_at(0, fields)\n",
            after=(
                "    page = self._file.read_at(0, CHECKPOINT_SIZE)\n"
                "    self._file.close()\n"
                "    self._file = self._disk.open(\n"
                "        'checkpoint.tmp', CHECKPOINT_SIZE, create=True, mapped=True\n"
                "    )\n"
                "    self._file.write_at(0, page)\n"
                "    self._file.write_at(0, fields)\n"
            ),
        ),
        Edit(
            module="engine.store.checkpoint",
            function="StoreCheckpoint.flush",
            before="    self._file.sync()\n",
            after=(
                "    self._disk.rename('checkpoint.tmp', 'checkpoint')\n"
                "    self._disk.sync_dir('')\n"
            ),
        ),
    ),
    trigger=Program(
        Setup(disk_profile="posix_min"),
        (_POWER_LOSS, Restart()),
    ),
    component="CKPT",
    difficulty=4,
    needs="power loss with reordering",
)

_FILLING = PutMessage("T0", 0, 3900)  # a log file of its own

MARK_MOVES_BACKWARDS = Mutant(
    id="X07",
    title="mark-moves-backwards",
    source="apache/bookkeeper PR #4740",
    killed_by=("CP-1", "CP-4", "DEL-1", "REC-4"),
    edits=(
        Edit(
            module="engine.store.flush",
            function="CheckpointService.run_once",
            before="with self._lock:",
            after="if True:",
        ),
    ),
    trigger=Program(
        Setup(cleans=True, reserved_hours=2),
        (
            *(_FILLING, _FILLING),
            *(RunService("flush_commit_log", 2), _REPUT),
            *(AdvanceClock(3 * 3_600_000), DeleteManually()),
            During(_CHECKPOINT, 2, RunService("clean_commit_log")),
            *(_POWER_LOSS, Restart()),
        ),
    ),
    component="CKPT",
    difficulty=4,
    needs="concurrency, deletion",
)

CHECKPOINT_MUTANTS = (
    MARK_MOVES_BACKWARDS,
    CHECKPOINT_AHEAD_OF_QUEUES,
    CHECKPOINT_STAYS_ZERO,
    RENAMED_UNSYNCED,
    MARK_BEFORE_SYNC,
)
