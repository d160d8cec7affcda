"""Planted bugs of commits, syncs and the acknowledgements they stand for."""

from __future__ import annotations

from models.ops import (
    AdvanceClock,
    Crash,
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

_PUT = PutMessage("T0", 0, 16)
_UNFLUSHED = PutMessage("T0", 0, 3900, wait_store_ok=False)  # fills a log file
_SYNC = Setup(flush_mode="SYNC_FLUSH")
_POOL = Setup(transient_store_pool=True)
_POWER_LOSS = During(PullMessage("T0", 0, 0), 1, Crash("power_loss"))

FLUSHED_ADVANCES_ON_FAILED_FSYNC = Mutant(
    id="R35",
    title="flushed-advances-on-failed-fsync",
    source="apache/rocketmq#9713, PR #9714; #3129; sharp edge 14.10",
    killed_by=("REC-2", "FL-2", "CL-1", "CP-1", "CP-7", "CP-8", "REC-4", "PUT-2"),
    edits=(
        Edit(
            module="engine.store.mapped_file",
            function="MappedFile.flush",
            before="            self._open_file.sync()\n",
            after=(
                "            try:\n"
                "                self._open_file.sync()\n"
                "            except OSError:\n"
                "                pass\n"
            ),
        ),
    ),
    trigger=Program(
        _SYNC, (_PUT, During(_PUT, 1, DiskFault("sync", "EIO")), _POWER_LOSS, Restart())
    ),
    as_shipped=True,
    component="FLUSH",
    difficulty=2,
    needs="EIO on fsync, power loss",
)

# A start of ours sets the cursor itself. So the bug comes with a start that sets none
# where the log does not begin at 0.
FLUSH_CURSOR_ZERO = Mutant(
    id="R37",
    title="flush-cursor-zero-file-not-zero",
    source="commit f18dc03809 (ROCKETMQ-270)",
    killed_by=("FL-1", "PUT-2", "REC-2", "REC-3", "CP-4"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue._file_to_flush",
            before="first if self.flushed_where < first.file_from_offset else None",
            after="None",
        ),
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._set_recovered",
            before="self.mapped_files.flushed_where = scan.end",
            after="self.mapped_files.flushed_where = 0 if scan.start else scan.end",
        ),
    ),
    trigger=Program(
        Setup(cleans=True, reserved_hours=2),
        (
            *(_UNFLUSHED, _UNFLUSHED),
            *(RunService("flush_commit_log", 2), RunService("reput")),
            *(AdvanceClock(3 * 3_600_000), DeleteManually()),
            *(RunService("clean_commit_log"), Restart()),
        ),
    ),
    component="FLUSH",
    difficulty=3,
    needs="deletion",
)

# The request lists are swapped without the lock; what is added until the old one is
# cleared goes with it.
GROUP_COMMIT_SWAP_RACE = Mutant(
    id="R38",
    title="group-commit-swap-race",
    source="commit 0b39fcadfa (ROCKETMQ-145); PR #31",
    killed_by=("PUT-7", "PUT-2", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.group_commit",
            function="GroupCommitService._take_requests",
            before="requests, self._requests = self._requests, []",
            after="requests = list(self._requests)",
        ),
        Edit(
            module="engine.store.group_commit",
            function="GroupCommitService.run_once",
            before="        return len(requests)\n",
            after="        self._requests.clear()\n        return len(requests)\n",
        ),
    ),
    trigger=Program(_SYNC, (_PUT, During(_PUT, 2, _PUT))),
    component="FLUSH",
    difficulty=5,
    needs="concurrency",
)

TWO_FLUSH_ATTEMPTS = Mutant(
    id="R39",
    title="two-flush-attempts-only",
    source="apache/rocketmq#7523, PR #7524",
    killed_by=("PUT-2",),
    edits=(
        Edit(
            module="engine.store.group_commit",
            function="GroupCommitService._commit",
            before=(
                "while (before := self._commit_log.flushed_where)"
                " < request.next_offset:"
            ),
            after=(
                "for attempt in range(3):\n"
                "        before = self._commit_log.flushed_where\n"
                "        if before >= request.next_offset:\n"
                "            break\n"
                "        if attempt == 2:\n"
                "            request.complete(PutMessageStatus.FLUSH_DISK_TIMEOUT)"
            ),
        ),
    ),
    trigger=Program(_SYNC, (_UNFLUSHED, _UNFLUSHED, _PUT)),
    component="FLUSH",
    difficulty=2,
    needs="none",
)

# Whoever must have every byte asks for 0 pages here. So the threshold, of pages where
# bytes are compared, is the inner function's own.
COMMIT_THRESHOLD_UNIT_MIXUP = Mutant(
    id="R40",
    title="commit-threshold-unit-mixup",
    source="apache/rocketmq#3099, PR #3125; PRs #2346, #2564",
    killed_by=("REC-3", "FL-5", "REC-1", "REC-6", "CQ-4", "PUT-2", "REC-2"),
    edits=(
        Edit(
            module="engine.store.mapped_file",
            function="MappedFile.commit",
            before="if buffer is None or not self.is_able_to_commit(least_pages):",
            after=(
                "if buffer is None or not self.is_able_to_commit(least_pages)"
                " or self.wrote - self.committed <= (least_pages or 4) * 64:"
            ),
        ),
    ),
    trigger=Program(_POOL, (_PUT, Shutdown(), Restart())),
    component="FLUSH",
    difficulty=2,
    needs="process kill",
)

FLUSH_MUTANTS = (
    FLUSHED_ADVANCES_ON_FAILED_FSYNC,
    FLUSH_CURSOR_ZERO,
    GROUP_COMMIT_SWAP_RACE,
    TWO_FLUSH_ATTEMPTS,
    COMMIT_THRESHOLD_UNIT_MIXUP,
)
