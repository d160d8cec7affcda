"""RocketMQ 5.3.0 as it is: planted sharp edges that the catalogue has no id for.

S05 is row 14.5 of ``docs/sharp-edges.md``, and so on; N ids were found while building.
"""

from __future__ import annotations

from models.ops import (
    UNIT_ENTRY,
    UNIT_SIZE,
    UNIT_TAIL,
    AdvanceClock,
    Crash,
    Damage,
    DeleteManually,
    During,
    KeptUnit,
    Op,
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
_REPUT = RunService("reput")
_POWER_LOSS = Crash("power_loss")
_KEEPING = Setup(cleans=True, reserved_hours=2, flush_least_pages=0)
_LARGE = PutMessage("T0", 0, 3000)  # one to a log file
_SERVED: tuple[Op, ...] = (RunService("flush_commit_log", 9), _REPUT)
_CLEAN = RunService("clean_commit_log")
_EXPIRE: tuple[Op, ...] = (AdvanceClock(3 * 3_600_000), DeleteManually(), _CLEAN)
_LOSE_QUEUES: tuple[Op, ...] = (
    Shutdown(),
    Damage("consumequeue[-1]", "delete"),
    Restart(),
    _REPUT,
)

PRE_BLANK_UNITS_ARE_READ = Mutant(
    id="S05",
    title="pre-blank-units-are-read",
    source="sharp edge 14.5a",
    killed_by=("RD-2", "RD-1"),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue._pre_blank",
            before="if not self._has_unit:",
            after="if False:",
        ),
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue.correct_min_offset",
            before="if not is_pre_blank(unit) and UNIT",
            after="if is_pre_blank(unit) or UNIT",
        ),
    ),
    trigger=Program(
        _KEEPING,
        (
            *(_LARGE, _LARGE, *_SERVED, *_EXPIRE),
            *(*_LOSE_QUEUES, PullMessage("T0", 0, 0)),
        ),
    ),
    as_shipped=True,
    component="READ",
    difficulty=3,
    needs="deletion, deletion of one CQ file",
)

# Queues are told too late, as shipped; else nobody would ask for phy_offset 0.
OFFSET_ZERO_FALLS_BACK = Mutant(
    id="S05B",
    title="offset-zero-falls-back-to-the-first-file",
    source="sharp edge 14.5b",
    killed_by=("RD-1", "RD-2", "IX-1", "RD-3", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.find_mapped_file_by_offset",
            before="return file\n    return None",
            after="return file\n    return files[0] if files and not offset else None",
        ),
        Edit(
            module="engine.store.commit_log",
            function="CommitLog.get_message",
            before="position = phy_offset - file.file_from_offset",
            after="position = phy_offset % file.file_size",
        ),
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._delete_until",
            before="self._consume_queues.correct_min_offset(file.end_offset)",
            after="pass",
        ),
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._delete",
            before="self._consume_queues.correct_min_offset(self._commit_log.min_offset)",
            after="pass",
        ),
    ),
    trigger=Program(
        _KEEPING, (_LARGE, _LARGE, *_SERVED, *_EXPIRE, PullMessage("T0", 0, 0))
    ),
    as_shipped=True,
    component="READ",
    difficulty=3,
    needs="deletion",
)

CUT_BELOW_THE_FLUSHED_MARK = Mutant(
    id="S14",
    title="flushed-mark-stays-above-the-cut",
    source="sharp edge 14.14",
    killed_by=("CP-12", "CP-7", "CP-3", "CP-6", "CQ-4", "REC-3"),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue.set_flushed",
            before="flushed_where = max(self.mapped_files.min_offset, offset)",
            after="flushed_where = self._recovered_end",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_PUT, RunService("flush_commit_log"), _PUT, _REPUT),
            *(RunService("flush_consume_queue"), During(_REPUT, 1, _POWER_LOSS)),
            *(Restart(), _PUT),
            *(RunService("flush_commit_log"), _REPUT),
            *(RunService("flush_consume_queue"), RunService("checkpoint")),
            *(During(_REPUT, 1, _POWER_LOSS), Restart()),
        ),
    ),
    as_shipped=True,
    component="CQ",
    difficulty=4,
    needs="power loss, truncation",
)

WALL_CLOCK_IS_BELIEVED = Mutant(
    id="S20",
    title="wall-clock-is-believed",
    source="sharp edge 14.20",
    killed_by=("CL-4", "RD-4", "CP-6", "CP-3"),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._append_to",
            before="max(self._runtime.now_ms(), self._newest_timestamp)",
            after="self._runtime.now_ms()",
        ),
    ),
    trigger=Program(Setup(), (_PUT, AdvanceClock(-10), _PUT, _REPUT)),
    as_shipped=True,
    component="CKPT",
    difficulty=2,
    needs="clock",
)

FIRST_UNIT_APPENDED_ANYWHERE = Mutant(
    id="S25",
    title="queue-offset-zero-appended-at-the-end",
    source="sharp edge 14.25",
    killed_by=("CQ-1", "CQ-2"),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue._put_unit",
            before="if expect < end:",
            after="if 0 < expect < end:",
        ),
    ),
    trigger=Program(Setup(), (PutMessage("T0", 1, 16), _PUT, _REPUT, *_LOSE_QUEUES)),
    as_shipped=True,
    component="CQ",
    difficulty=3,
    needs="process kill",
)

TOPIC_SIZE_IN_CHARACTERS = Mutant(
    id="S11",
    title="topic-size-counted-in-characters",
    source="sharp edge 14.11",
    killed_by=("PUT-2", "PUT-1", "REC-1", "CL-1", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.message_encoder",
            function="_check_fields",
            before="if not is_topic(message.topic):",
            after="if len(message.topic) > 255:",
        ),
        Edit(
            module="engine.store.message_encoder",
            function="encode_message",
            before="if len(topic) > TOPIC_SIZE_MAX_V1:",
            after="if len(message.topic) > TOPIC_SIZE_MAX_V1:",
        ),
        Edit(
            module="engine.store.message_encoder",
            function="encode_message",
            before="bytes((len(topic),))",
            after="bytes((len(topic) & 0xFF,))",
        ),
    ),
    trigger=Program(Setup(), (PutMessage("付" * 43, 0, 16),)),
    as_shipped=True,
    component="FORMAT",
    difficulty=2,
    needs="none",
)

# RocketMQ asks for a queue's last offset before it deletes, and walks over the newest
# file's units until one is no unit: the newest file may have none such.
LAST_OFFSET_READ_PAST_A_FULL_FILE = Mutant(
    id="N01",
    title="last-offset-read-past-a-full-file",
    source="RocketMQ 5.3.0, ConsumeQueue#getLastOffset; see tests/golden/README.md",
    killed_by=("RUN-1", "DEL-5"),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue.delete_expired",
            before="files = self.mapped_files\n",
            after=(
                "files = self.mapped_files\n"
                "    if files.files:\n"
                "        newest = files.files[-1]\n"
                "        units = newest.read(0, self._file_size)\n"
                "        at = max(0, newest.wrote - CQ_STORE_UNIT_SIZE)\n"
                "        while UNIT.unpack_from(units, at)[1] > 0:\n"
                "            at += CQ_STORE_UNIT_SIZE\n"
            ),
        ),
    ),
    trigger=Program(
        Setup(cleans=True, reserved_hours=2, flush_least_pages=0, queue_file_units=2),
        (
            *(_LARGE, _LARGE, *_SERVED, *_EXPIRE),
            RunService("clean_consume_queue"),
        ),
    ),
    as_shipped=True,
    component="DELETE",
    difficulty=2,
    needs="deletion",
)

_FIRST_LOG_FILE = "commitlog/00000000000000000000"

# A file system may give a file another file's blocks. RocketMQ maps a new file and
# fills it, unsynced; a record whose last sector was lost goes on in what lies there.
NEW_ROOM_IS_NOT_SYNCED = Mutant(
    id="N02",
    title="new-room-is-not-synced",
    source="RocketMQ 5.3.0, AllocateMappedFileService#mmapOperation",
    killed_by=("DUR-2", "REC-1", "CL-5"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="new_file",
            before="        file.sync()\n",
            after="        pass\n",
        ),
    ),
    trigger=Program(
        Setup(disk_profile="posix_min"),
        (
            PutMessage("T0", 0, 14),
            During(
                AdvanceClock(0),
                1,
                Crash(
                    "power_loss",
                    Survivors(
                        "units",
                        units=(
                            KeptUnit(_FIRST_LOG_FILE, UNIT_ENTRY, 1),
                            KeptUnit(_FIRST_LOG_FILE, UNIT_SIZE, 1),
                            KeptUnit(_FIRST_LOG_FILE, UNIT_TAIL, 1),
                            KeptUnit(_FIRST_LOG_FILE, 0, 2),
                        ),
                    ),
                ),
            ),
        ),
    ),
    as_shipped=True,
    component="MFILE",
    difficulty=4,
    needs="power loss with reordering",
)

SHIPPED_MUTANTS = (
    PRE_BLANK_UNITS_ARE_READ,
    OFFSET_ZERO_FALLS_BACK,
    TOPIC_SIZE_IN_CHARACTERS,
    CUT_BELOW_THE_FLUSHED_MARK,
    WALL_CLOCK_IS_BELIEVED,
    FIRST_UNIT_APPENDED_ANYWHERE,
    LAST_OFFSET_READ_PAST_A_FULL_FILE,
    NEW_ROOM_IS_NOT_SYNCED,
)
