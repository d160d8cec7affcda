"""RocketMQ's present behaviour at sharp edges of appends, commits and stops.

S13 is row 14.13 of the store reference, and so on; see ``docs/sharp-edges.md``.
"""

from __future__ import annotations

from models.ops import (
    AdvanceClock,
    Crash,
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
_KILL = During(PullMessage("T0", 0, 0), 1, Crash("process_kill"))
_POOL = Setup(transient_store_pool=True)
_SYNC = Setup(flush_mode="SYNC_FLUSH")

TOO_LARGE_FOR_A_FILE = Mutant(
    id="S13",
    title="too-large-for-a-file",
    source="sharp edge 14.13",
    killed_by=("PUT-1", "PUT-2"),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._append",
            before="if size + BLANK_SIZE_MIN > self._file_size:",
            after="if False:",
        ),
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._append_to",
            before="self._write(file,",
            after=(
                "if end - places[0] > file.file_size - file.wrote:\n"
                "        return PutMessageResult(PutMessageStatus.PUT_OK)\n"
                "    self._write(file,"
            ),
        ),
    ),
    trigger=Program(Setup(), (PutMessage("T0", 0, 5000),)),
    as_shipped=True,
    component="APPEND",
    difficulty=1,
    needs="none",
)

WRITE_ERROR_COUNTS = Mutant(
    id="S15",
    title="failed-write-counts",
    source="sharp edge 14.15",
    killed_by=(
        "CL-1",
        "CQ-1",
        "CQ-2",
        "CQ-4",
        "RD-1",
        "REC-1",
        "REC-2",
        "REC-3",
        "PUT-2",
    ),
    edits=(
        Edit(
            module="engine.store.mapped_file",
            function="MappedFile.append_declared",
            before="        self._open_file.write_at(start, data)\n",
            after=(
                "        try:\n"
                "            self._open_file.write_at(start, data)\n"
                "        except OSError:\n"
                "            pass\n"
            ),
        ),
    ),
    trigger=Program(Setup(), (_PUT, During(_PUT, 1, DiskFault("write", "EIO")))),
    as_shipped=True,
    component="CQ",
    difficulty=2,
    needs="EIO on write",
)

POOL_EXHAUSTED_UNREADABLE = Mutant(
    id="S17",
    title="pool-exhausted-unreadable",
    source="sharp edge 14.17",
    killed_by=("FL-5", "REC-3", "CQ-4", "REC-6", "RD-1", "REC-1", "PUT-2", "FL-10"),
    edits=(
        Edit(
            module="engine.store.mapped_file",
            function="MappedFile.append_declared",
            before="self.wrote = self.committed = start + declared",
            after=(
                "self.wrote = start + declared\n"
                "        if self._pool is None:\n"
                "            self.committed = self.wrote"
            ),
        ),
    ),
    trigger=Program(
        Setup(transient_store_pool=True, transient_store_buffers=0), (_PUT,)
    ),
    as_shipped=True,
    component="FLUSH",
    difficulty=3,
    needs="long history",
)

FLUSHED_TIME_OF_A_BUFFER = Mutant(
    id="S24",
    title="flushed-time-of-a-buffer",
    source="sharp edge 14.24",
    killed_by=("CP-9", "CP-2", "CP-6"),
    edits=(
        Edit(
            module="engine.store.mapped_file",
            function="MappedFile.flush",
            before="if self._buffer is not None:",
            after="if False:",
        ),
    ),
    trigger=Program(
        _POOL,
        (
            *(_PUT, RunService("commit"), AdvanceClock(10), _PUT),
            *(RunService("flush_commit_log"), RunService("checkpoint"), _KILL),
            Restart(),
        ),
    ),
    as_shipped=True,
    component="CKPT",
    difficulty=3,
    needs="process kill",
)

SHORT_COMMIT_COUNTS = Mutant(
    id="S27",
    title="short-commit-counts",
    source="sharp edge 14.27",
    killed_by=("CL-1", "REC-1", "REC-2", "REC-3", "RD-1", "CQ-4", "FL-6", "PUT-2"),
    edits=(
        Edit(
            module="engine.store.mapped_file",
            function="MappedFile.commit",
            before="        COMMIT_FAILED.hit()\n        raise\n",
            after="        pass\n",
        ),
    ),
    trigger=Program(
        _POOL,
        (_PUT, During(RunService("commit"), 1, DiskFault("write", "EIO", written=40))),
    ),
    as_shipped=True,
    component="FLUSH",
    difficulty=2,
    needs="EIO on write",
)

UNFLUSHED_TAIL_NOT_BEHIND = Mutant(
    id="S28",
    title="unflushed-tail-not-behind",
    source="sharp edge 14.28",
    killed_by=("CQ-4", "REC-6", "CP-6"),
    edits=(
        Edit(
            module="engine.store.message_store",
            function="MessageStore._make_durable",
            before="        self._flusher.flush_all()\n",
            after="        pass\n",
        ),
        Edit(
            module="engine.store.message_store",
            function="MessageStore._make_durable",
            before="    self._checkpoint_service.run_once()\n",
            after=(
                "    clean = self._flags.is_sound and self.reput.behind <= 0\n"
                "    self._flusher.flush_all()\n"
                "    self._checkpoint_service.run_once()\n"
            ),
        ),
        Edit(
            module="engine.store.message_store",
            function="MessageStore._make_durable",
            before=(
                "    clean = self._flags.is_sound and self.reput.behind <= 0\n"
                "    clean ="
            ),
            after="    clean =",
        ),
    ),
    trigger=Program(
        _SYNC, (PutMessage("T0", 0, 16, wait_store_ok=False), Shutdown(), Restart())
    ),
    as_shipped=True,
    component="FLUSH",
    difficulty=2,
    needs="none (graceful stop)",
)

SHIPPED_WRITE_MUTANTS = (
    TOO_LARGE_FOR_A_FILE,
    WRITE_ERROR_COUNTS,
    POOL_EXHAUSTED_UNREADABLE,
    FLUSHED_TIME_OF_A_BUFFER,
    SHORT_COMMIT_COUNTS,
    UNFLUSHED_TAIL_NOT_BEHIND,
)
