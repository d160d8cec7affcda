"""Planted bugs of mapped files: loading, creating ahead, lookup and truncation."""

from __future__ import annotations

from models.ops import (
    AdvanceClock,
    Crash,
    Damage,
    DeleteManually,
    During,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Survivors,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)
_FILLING = PutMessage("T0", 0, 3900)  # a log file of its own
_PULL = PullMessage("T0", 0, 0)
_KILL = During(_PULL, 1, Crash("process_kill"))

ZERO_LENGTH_LAST_FILE = Mutant(
    id="R11",
    title="zero-length-last-file",
    source="apache/rocketmq#6904, PR #6903",
    killed_by=("REC-4",),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue._load_file",
            before="if size > self.file_size or offset % self.file_size:",
            after="if not size or size > self.file_size or offset % self.file_size:",
        ),
    ),
    trigger=Program(Setup(), (During(_PUT, 4, Crash("process_kill")), Restart())),
    component="MFILE",
    difficulty=2,
    needs="power loss",
)

# The put gives up waiting for the service, and both make the file; what the service
# made is the next file's by then.
MAPPED_FILE_EXISTS_TWICE = Mutant(
    id="R42",
    title="mapped-file-exists-twice",
    source="alibaba/rocketmq#419; commit ba3282d3b7",
    killed_by=("RUN-1", "PUT-1", "REC-1", "CL-1", "CL-2", "CL-3", "CQ-1", "CQ-3"),
    edits=(
        Edit(
            module="engine.store.allocate",
            function="AllocateMappedFileService.take",
            before="with self._lock:",
            after="if True:",
        ),
    ),
    trigger=Program(
        Setup(preallocate=True),
        (
            _FILLING,
            During(RunService("allocate"), 3, _FILLING),
            _FILLING,
        ),
    ),
    component="MFILE",
    difficulty=4,
    needs="slow I/O, concurrency",
)

# The place in the list is worked out before the sync, and used after it, when a cleaner
# may have taken the first file away.
FOUND_BY_A_STALE_PLACE = Mutant(
    id="R44",
    title="find-file-by-index-races-with-delete",
    source="apache/rocketmq PR #227 (ROCKETMQ-332)",
    killed_by=("FL-1", "FL-4", "FL-5", "CL-1", "CP-1", "CP-9", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.flush",
            before="flushed = file.file_from_offset + file.flush(least_pages)",
            after=(
                "place = self.files.index(file)\n"
                "    flushed = file.flush(least_pages)\n"
                "    flushed += self.files[place].file_from_offset"
            ),
        ),
    ),
    trigger=Program(
        Setup(cleans=True, reserved_hours=2, flush_least_pages=0),
        (
            *(_FILLING, _FILLING, _FILLING),
            *(RunService("flush_commit_log", 2), RunService("reput")),
            *(AdvanceClock(3 * 3_600_000), DeleteManually()),
            During(RunService("flush_commit_log"), 1, RunService("clean_commit_log")),
        ),
    ),
    component="MFILE",
    difficulty=4,
    needs="concurrency, deletion",
)

# A start removes or takes over every name it finds, and a new file replaces what has
# its name. So the bug comes with a start that only forgets what lies behind its cut.
FILE_NUMBER_REUSED = Mutant(
    id="X22",
    title="file-number-reused-after-lost-edit",
    source="cockroachdb/pebble#984, facebook/rocksdb#7621",
    killed_by=("REC-1", "CL-1", "CL-3", "PUT-1", "REC-9", "CQ-1", "REC-3", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.truncate_dirty_files",
            before="        self.files[-1].destroy()\n",
            after="        self.files[-1].close()\n",
        ),
        Edit(
            module="engine.store.mapped_file_queue",
            function="new_file",
            before="        disk.remove(path)\n",
            after="        pass\n",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_FILLING, _FILLING),
            During(_PULL, 1, Crash("power_loss", Survivors("hashed", 38))),
            *(Restart(), _FILLING, _PUT),
            *(_KILL, Restart()),
        ),
    ),
    component="MFILE",
    difficulty=5,
    needs="power loss twice",
)

# The loop that goes backwards begins at the front, so it never runs.
CUT_LEAVES_LATER_FILES = Mutant(
    id="R13",
    title="reset-offset-does-nothing",
    source="apache/rocketmq PR #4678; #7684, PR #7682",
    killed_by=("CL-1", "CL-2", "CL-3", "REC-1", "RUN-1", "PUT-1"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.truncate_dirty_files",
            before="while self.files and self.files[-1].file_from_offset > offset:",
            after="while self.files and self.files[0].file_from_offset > offset:",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_FILLING, _FILLING),
            During(_PULL, 1, Crash("power_loss", Survivors("hashed", 38))),
            Restart(),
        ),
    ),
    component="TRUNCATE",
    difficulty=1,
    needs="truncation",
)

# What was confirmed is, of the queues, what their part of the mark vouches for.
CONFIRM_KEPT_AFTER_TRUNCATE = Mutant(
    id="R16",
    title="confirm-kept-after-truncate",
    source="apache/rocketmq#6665, PR #6666",
    killed_by=("CP-7", "CP-3", "CQ-4"),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp._set_checkpoint",
            before="dispatched = min(dispatched, audit.first_wrong_phy_offset)",
            after="pass",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_PUT, RunService("reput"), Shutdown()),
            *(Damage("consumequeue[0]", "delete"), Restart()),
        ),
    ),
    component="TRUNCATE",
    difficulty=3,
    needs="truncation",
)

HIGH_WATERMARK_BELOW_START = Mutant(
    id="X03",
    title="high-watermark-below-log-start",
    source="apache/kafka PR #8037 (KAFKA-9491)",
    killed_by=("REC-10", "CP-7", "CP-3", "CQ-4", "REC-2", "CP-6"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue._create",
            before="self.flushed_where = offset",
            after="pass",
        ),
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue._file_to_flush",
            before="first if self.flushed_where < first.file_from_offset else None",
            after="None",
        ),
    ),
    trigger=Program(
        Setup(cleans=True, reserved_hours=2, flush_least_pages=0, queue_file_units=2),
        (
            *(_FILLING, _FILLING, _FILLING, _FILLING),
            *(RunService("flush_commit_log", 4), RunService("reput")),
            *(AdvanceClock(3 * 3_600_000), DeleteManually()),
            *(RunService("clean_commit_log"), Shutdown()),
            *(Damage("consumequeue[0]", "delete"), Damage("consumequeue[0]", "delete")),
            *(Restart(), RunService("reput"), Shutdown()),
        ),
    ),
    component="TRUNCATE",
    difficulty=2,
    needs="deletion, truncation",
)

MAPPED_FILE_MUTANTS = (
    HIGH_WATERMARK_BELOW_START,
    ZERO_LENGTH_LAST_FILE,
    MAPPED_FILE_EXISTS_TWICE,
    FOUND_BY_A_STALE_PLACE,
    FILE_NUMBER_REUSED,
    CUT_LEAVES_LATER_FILES,
    CONFIRM_KEPT_AFTER_TRUNCATE,
)
