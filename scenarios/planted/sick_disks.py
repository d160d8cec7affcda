"""Mistakes in the face of a disk that is sick, and of files that are not the store's.

Only R12 is in the catalogue; each is a way to get wrong what a directory's reading,
``engine.store.unreadable``, or a start after a lost write has to get right.
"""

from __future__ import annotations

from models.ops import (
    AdvanceClock,
    Crash,
    Damage,
    DiskFault,
    During,
    PlantFile,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)
_HALF = PutMessage("T0", 0, 1900)
_REPUT = RunService("reput")
_FLUSH = RunService("flush_commit_log", 9)
_KILL = During(AdvanceClock(1), 1, Crash("process_kill"))
_POWER_LOSS = During(AdvanceClock(1), 1, Crash("power_loss"))

LOG_ENDS_WHERE_IT_CANNOT_BE_READ = Mutant(
    id="E60",
    title="log-ends-where-it-cannot-be-read",
    source="a failed read taken for the log's end",
    killed_by=("REC-4",),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp._refuse_damage",
            before="if scan.stopped_by is Stop.UNREADABLE:",
            after="if False:",
        ),
    ),
    trigger=Program(
        Setup(), (_PUT, _KILL, Damage("commitlog[0]", "unreadable", 0, 1), Restart())
    ),
    component="RECOVERY",
    difficulty=2,
    needs="latent sector error",
)

FAILED_READ_GIVES_ZEROS = Mutant(
    id="E61",
    title="failed-read-gives-zeros",
    source="an error swallowed; the buffer is returned as it was made",
    killed_by=("REC-4", "REC-3", "CP-4", "CQ-1"),
    edits=(
        Edit(
            module="engine.store.mapped_file",
            function="MappedFile._read_around",
            before="if self.may_lose or (lost and lost <= self.known_lost):",
            after="if holes:",
        ),
    ),
    trigger=Program(
        Setup(), (_HALF, _KILL, Damage("commitlog[0]", "unreadable", 600, 1), Restart())
    ),
    component="READ",
    difficulty=2,
    needs="latent sector error",
)

BAD_SECTOR_IS_NEVER_WRITTEN_AGAIN = Mutant(
    id="E62",
    title="bad-sector-is-never-written-again",
    source="a queue is made again where none of it can be written",
    killed_by=("REC-3", "REC-5", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.mapped_file",
            function="MappedFile.erase",
            before="if not self._is_zeros(at, size):",
            after="if self.read(at, size) != bytes(size):",
        ),
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.rewrite",
            before="if file.known_lost:",
            after="if False:",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_PUT, _FLUSH, _REPUT, Shutdown()),
            *(Damage("consumequeue[0]", "unreadable", 0, 1), Restart()),
        ),
    ),
    component="TRUNCATE",
    difficulty=2,
    needs="latent sector error",
)

FILLER_IS_NOT_READ = Mutant(
    id="E63",
    title="filler-is-not-read",
    source="a start passes over what dispatch then stops at for ever",
    killed_by=("REC-4", "REC-3", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._scan_file",
            before="if len(readable(file.read, position, left)) < left:",
            after="if False:",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_PUT, PutMessage("T0", 0, 3900), _FLUSH, _KILL),
            *(Damage("commitlog[0]", "unreadable", 2048, 1), Restart()),
        ),
    ),
    component="RECOVERY",
    difficulty=3,
    needs="latent sector error",
)

START_CHANGES_ITS_MIND = Mutant(
    id="E64",
    title="start-changes-its-mind",
    source="what was read once is taken for lost when it is read again",
    killed_by=("CQ-1", "CQ-6", "CQ-4", "REC-3", "CP-4"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.lose_no_more",
            before="file.may_lose = False",
            after="file.may_lose = self._is_derived",
        ),
    ),
    trigger=Program(
        Setup(queue_ext_size=100),
        (
            *(_PUT, _REPUT, Restart()),
            During(
                Restart(), 3, DiskFault("read", "EIO", path="consumequeue", lasts=True)
            ),
        ),
    ),
    component="CQ",
    difficulty=4,
    needs="EIO on read during recovery",
)

FOREIGN_FILE_BLOCKS_START = Mutant(
    id="R12",
    title="foreign-file-blocks-start",
    source="apache/rocketmq#3257",
    killed_by=("RUN-1", "REC-4"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.load",
            before="not is_file_name(name) or self._disk.is_dir(path)",
            after="self._disk.is_dir(path)",
        ),
    ),
    trigger=Program(
        Setup(), (_PUT, Shutdown(), PlantFile("commitlog/x.tmp"), Restart())
    ),
    component="MFILE",
    difficulty=1,
    needs="foreign files",
)

FOREIGN_FILES_ARE_SWEPT_AWAY = Mutant(
    id="E65",
    title="foreign-files-are-swept-away",
    source="MappedFileQueue#load deletes an empty last file, whoever made it",
    killed_by=("REC-14", "REC-8", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.load",
            before="                FOREIGN.hit()\n",
            after=(
                "                FOREIGN.hit()\n"
                "                if not self._disk.is_dir(path):\n"
                "                    self._disk.remove(path)\n"
            ),
        ),
    ),
    trigger=Program(
        Setup(), (_PUT, Shutdown(), PlantFile("commitlog/notes"), Restart())
    ),
    component="MFILE",
    difficulty=1,
    needs="foreign files",
)

FOREIGN_FILES_ARE_ODD_ONES = Mutant(
    id="E69",
    title="foreign-files-are-odd-ones",
    source="what is no index file is removed like one of another length",
    killed_by=("REC-14",),
    edits=(
        Edit(
            module="engine.store.index_service",
            function="IndexService.load",
            before="                FOREIGN.hit()\n",
            after=(
                "                FOREIGN.hit()\n"
                "                if not self._disk.is_dir(path):\n"
                "                    self._odd_paths.append(path)\n"
            ),
        ),
    ),
    trigger=Program(
        Setup(index_slots=8, index_entries=20),
        (_PUT, Shutdown(), PlantFile("index/notes"), Restart()),
    ),
    component="INDEX",
    difficulty=1,
    needs="foreign files",
)

DIRECTORY_TAKEN_FOR_A_FILE = Mutant(
    id="E66",
    title="directory-taken-for-a-file",
    source="MappedFileQueue#load before file.isDirectory() was asked",
    killed_by=("RUN-1",),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.load",
            before="not is_file_name(name) or self._disk.is_dir(path)",
            after="not is_file_name(name)",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_PUT, Shutdown()),
            PlantFile("commitlog/00000009999999999999", "directory"),
            Restart(),
        ),
    ),
    component="MFILE",
    difficulty=1,
    needs="foreign files",
)

ORDERLY_END_IS_BELIEVED = Mutant(
    id="E67",
    title="orderly-end-is-believed",
    source="CommitLog#recoverNormally: what is not there was never put",
    killed_by=("REC-4",),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp._refuse_lost",
            before="if scan.end < mark.durable_offset:",
            after="if scan.end < mark.durable_offset and self._abort.exists():",
        ),
        Edit(
            module="engine.store.start_up",
            function="StartUp._refuse_changed_bytes",
            before="if changed is not None:",
            after="if changed is not None and self._abort.exists():",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_PUT, _REPUT),
            During(
                Shutdown(), 1, DiskFault("lose", "EIO", path="commitlog", lasts=True)
            ),
            *(_POWER_LOSS, Restart()),
        ),
    ),
    component="RECOVERY",
    difficulty=2,
    needs="lost write",
)

UNITS_ARE_COUNTED_NOT_COMPARED = Mutant(
    id="E68",
    title="units-are-counted-not-compared",
    source="a queue is long enough, so it is taken for right",
    killed_by=("CQ-1", "CQ-2", "CQ-4", "RD-1", "RD-2"),
    edits=(
        Edit(
            module="engine.store.queue_audit",
            function="QueueAudit._has_this_unit",
            before="queue.agrees_with(request, is_proven, log_min)",
            after="queue.recovered_units > request.consume_queue_offset",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            *(_PUT, PutMessage("T0", 1, 16), _FLUSH, _REPUT),
            RunService("flush_consume_queue", 9),
            *(_PUT, _FLUSH, _REPUT),
            During(
                Shutdown(),
                1,
                DiskFault("misdirect", "EIO", path="consumequeue/T0/0", written=1),
            ),
            *(_POWER_LOSS, Restart()),
        ),
    ),
    component="CQ",
    difficulty=3,
    needs="misdirected write",
)

SICK_DISK_MUTANTS = (
    LOG_ENDS_WHERE_IT_CANNOT_BE_READ,
    FAILED_READ_GIVES_ZEROS,
    BAD_SECTOR_IS_NEVER_WRITTEN_AGAIN,
    FILLER_IS_NOT_READ,
    START_CHANGES_ITS_MIND,
    FOREIGN_FILE_BLOCKS_START,
    FOREIGN_FILES_ARE_SWEPT_AWAY,
    FOREIGN_FILES_ARE_ODD_ONES,
    DIRECTORY_TAKEN_FOR_A_FILE,
    ORDERLY_END_IS_BELIEVED,
    UNITS_ARE_COUNTED_NOT_COMPARED,
)
