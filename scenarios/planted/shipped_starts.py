"""RocketMQ's present behaviour at sharp edges of a start, without a catalogued bug.

S01 is row 14.1 of the store reference, and so on; ``docs/sharp-edges.md`` has them all.
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
    Survivors,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)
_FILLING = PutMessage("T0", 0, 3900)  # a log file of its own
_PULL = PullMessage("T0", 0, 0)
_REPUT = RunService("reput")
_FLUSH = RunService("flush_commit_log")
_KILL = During(_PULL, 1, Crash("process_kill"))
_POWER_LOSS = During(_PULL, 1, Crash("power_loss"))

PHANTOM_FIRST_UNIT = Mutant(
    id="S01",
    title="phantom-first-unit",
    source="sharp edge 14.1",
    killed_by=("CQ-1", "CQ-2", "CQ-4", "PUT-1", "REC-1", "RD-1", "RD-2", "RD-4"),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue.truncate_dirty_units",
            before="    self.mapped_files.truncate_dirty_files(offset)\n",
            after=(
                "    if files:\n"
                "        first_end = files[-1].file_from_offset + CQ_STORE_UNIT_SIZE\n"
                "        offset = max(offset, first_end)\n"
                "    self.mapped_files.truncate_dirty_files(offset)\n"
            ),
        ),
    ),
    trigger=Program(
        Setup(), (_PUT, During(_REPUT, 9, Crash("process_kill")), Restart())
    ),
    as_shipped=True,
    component="CQ",
    difficulty=2,
    needs="process kill",
)

UNTRUSTED_SIZE_ALLOCATED = Mutant(
    id="S07",
    title="untrusted-size-allocated",
    source="sharp edge 14.7",
    killed_by=("RUN-1",),
    edits=(
        Edit(
            module="engine.store.message_codec",
            function="size_beyond",
            before="return total_size if there < total_size <= left_in_file else 0",
            after=(
                "if total_size > left_in_file:\n"
                "        raise MemoryError(f'no array of {total_size} bytes')\n"
                "    return total_size if there < total_size else 0"
            ),
        ),
    ),
    trigger=Program(
        Setup(), (_PUT, _KILL, Damage("commitlog[0]", "flip", at=1), Restart())
    ),
    as_shipped=True,
    component="RECOVERY",
    difficulty=2,
    needs="bit rot",
)

DAMAGE_CUTS_THE_LOG = Mutant(
    id="S08",
    title="damage-cuts-the-log",
    source="sharp edge 14.8",
    killed_by=("REC-4", "REC-2", "CP-1"),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp._refuse_lost",
            before="if scan.end < mark.durable_offset:",
            after="if False:",
        ),
        Edit(
            module="engine.store.start_up",
            function="StartUp._refuse_changed_bytes",
            before="if changed is not None:",
            after="if False:",
        ),
    ),
    trigger=Program(
        Setup(), (_PUT, Shutdown(), Damage("commitlog[0]", "flip", at=90), Restart())
    ),
    as_shipped=True,
    component="RECOVERY",
    difficulty=2,
    needs="bit rot",
)

CUT_BYTES_STAY = Mutant(
    id="S18",
    title="cut-bytes-stay",
    source="sharp edge 14.18",
    killed_by=("REC-1", "CL-1", "CQ-1", "REC-9"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.truncate_dirty_files",
            before="            file.erase(file.wrote)\n",
            after="            pass\n",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            _FILLING,
            During(_PULL, 1, Crash("power_loss", Survivors("hashed", 4))),
            Restart(),
        ),
    ),
    as_shipped=True,
    component="TRUNCATE",
    difficulty=4,
    needs="power loss with reordering",
)

# An end is orderly here only if the mark reaches the log's end, and a start holds the
# queues against the log in any case. So the bug comes with RocketMQ's trust.
ABORT_NOT_DURABLE = Mutant(
    id="S21",
    title="abort-not-durable",
    source="sharp edge 14.21",
    killed_by=("REC-6", "REC-2", "REC-4", "CQ-4", "REC-3"),
    edits=(
        Edit(
            module="engine.store.abort_file",
            function="AbortFile.create",
            before='    self._disk.sync_dir("")\n',
            after="",
        ),
        Edit(
            module="engine.store.start_up",
            function="StartUp._read",
            before="is_whole and not self._abort.exists()",
            after="not self._abort.exists()",
        ),
        Edit(
            module="engine.store.start_up",
            function="StartUp.mend",
            before="return lacks if lacks >= 0 else scan.end",
            after="return lacks if lacks >= 0 and not clean else scan.end",
        ),
    ),
    trigger=Program(
        Setup(disk_profile="posix_min"),
        (_PUT, _REPUT, Restart(), _PUT, _FLUSH, _POWER_LOSS, Restart()),
    ),
    as_shipped=True,
    component="RECOVERY",
    difficulty=3,
    needs="power loss",
)

SHIPPED_START_MUTANTS = (
    PHANTOM_FIRST_UNIT,
    UNTRUSTED_SIZE_ALLOCATED,
    DAMAGE_CUTS_THE_LOG,
    CUT_BYTES_STAY,
    ABORT_NOT_DURABLE,
)
