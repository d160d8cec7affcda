"""Planted bugs of a full disk and of the running flags."""

from __future__ import annotations

from models.ops import (
    AdvanceClock,
    Crash,
    DeleteManually,
    DiskFault,
    During,
    FillDisk,
    Op,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 16)
_LARGE = PutMessage("T0", 0, 3000)  # the second one lies in two pages
_REPUT = RunService("reput")

# The flags are members of an enum, so they collide where they are kept.
FLAG_BITS_COLLIDE = Mutant(
    id="R72",
    title="flag-bits-collide",
    source="apache/rocketmq#7574, PR #7575",
    killed_by=("PUT-1", "REC-2", "FL-2", "REC-1", "FL-5", "PUT-8"),
    edits=(
        Edit(
            module="engine.store.running_flags",
            function="RunningFlags.set",
            before="self._flags.add(flag)",
            after=(
                "both = {Flag.DISK_FULL, Flag.FLUSH_FAILED}\n"
                "    self._flags.update(both if flag in both else {flag})"
            ),
        ),
        Edit(
            module="engine.store.running_flags",
            function="RunningFlags.clear",
            before="self._flags.discard(flag)",
            after=(
                "both = {Flag.DISK_FULL, Flag.FLUSH_FAILED}\n"
                "    self._flags.difference_update(both if flag in both else {flag})"
            ),
        ),
    ),
    trigger=Program(
        Setup(cleans=True, flush_mode="SYNC_FLUSH", log_file_size=8192),
        (
            _LARGE,
            During(_LARGE, 1, DiskFault("sync", "EIO")),
            RunService("clean_commit_log"),
            _PUT,
            During(_PUT, 9, Crash("power_loss")),
            Restart(),
        ),
    ),
    component="FLAGS",
    difficulty=1,
    needs="ENOSPC",
)

DISK_FULL_LEAVES_A_HOLE = Mutant(
    id="R73",
    title="disk-full-makes-permanent-hole",
    source="alibaba/rocketmq#331",
    killed_by=("RD-2", "RD-1", "REC-3", "IX-2", "CP-7"),
    edits=(
        Edit(
            module="engine.store.reput",
            function="ReputMessageService._dispatch",
            before="FAILED.hit()\n        raise",
            after="FAILED.hit()",
        ),
    ),
    trigger=Program(
        Setup(),
        (
            _PUT,
            During(_REPUT, 1, DiskFault("create", "ENOSPC")),
            PullMessage("T0", 0, 0),
        ),
    ),
    component="FLAGS",
    difficulty=3,
    needs="ENOSPC",
)

_TIGHT = Program(
    Setup(disk_capacity=64 * 1024, cleans=True), (FillDisk(85), PutMessage("T0", 0, 16))
)

ROOM_WITHOUT_THE_FILE = Mutant(
    id="E55",
    title="room-asked-without-the-file-to-come",
    source="ours",
    killed_by=("DEL-12",),
    edits=(
        Edit(
            module="engine.store.disk_space",
            function="DiskSpace.has_room_for",
            before="(used + size) * 100",
            after="used * 100",
        ),
    ),
    trigger=_TIGHT,
    component="FLAGS",
    difficulty=2,
    needs="ENOSPC",
)

NO_ROOM_ASKED_FOR = Mutant(
    id="E56",
    title="no-room-asked-for-before-a-roll",
    source="CleanCommitLogService#isSpaceToDelete, asked at each round alone",
    killed_by=("DEL-12",),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._file_with_space",
            before="if space is not None and not space.has_room_for(self._file_size):",
            after="if False:",
        ),
    ),
    trigger=_TIGHT,
    as_shipped=True,
    component="FLAGS",
    difficulty=2,
    needs="ENOSPC",
)

_POOLED = Setup(transient_store_pool=True, preallocate=True)

BUFFER_OF_A_FULL_FILE = Mutant(
    id="E80",
    title="buffer-of-a-full-file-is-kept",
    source="DefaultMappedFile#commit, which returns it",
    killed_by=("RES-2",),
    edits=(
        Edit(
            module="engine.store.mapped_file",
            function="MappedFile.commit",
            before="self.committed == self.file_size:\n        self._return_buffer()",
            after="self.committed == self.file_size:\n        self._buffer = None",
        ),
    ),
    trigger=Program(_POOLED, (_LARGE, _LARGE, RunService("commit", 9))),
    component="FLAGS",
    difficulty=2,
    needs="none",
)

BUFFER_OF_NO_FILE = Mutant(
    id="E81",
    title="buffer-of-a-file-that-cannot-be-made-is-lost",
    source="ours",
    killed_by=("RES-2",),
    edits=(
        Edit(
            module="engine.store.mapped_file",
            function="MappedFile._open",
            before="self._return_buffer()\n        raise",
            after="raise",
        ),
    ),
    trigger=Program(_POOLED, (During(_PUT, 2, DiskFault("create", "ENOSPC")),)),
    component="FLAGS",
    difficulty=3,
    needs="ENOSPC",
)

_CLEAN = RunService("clean_commit_log")
_AGED: tuple[Op, ...] = (
    _LARGE,
    _LARGE,
    RunService("flush_commit_log", 9),
    _REPUT,
    AdvanceClock(3 * 3_600_000),
    _CLEAN,
)
_KEEPS = Setup(cleans=True, reserved_hours=2, delete_hours="23")

REQUEST_FOR_EVER = Mutant(
    id="E82",
    title="a-request-to-delete-holds-for-ever",
    source="CleanCommitLogService#isSpaceToDelete, manualDeleteFileSeveralTimes",
    killed_by=("DEL-3",),
    edits=(
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._is_due",
            before="self._manual_times -= 1",
            after="pass",
        ),
    ),
    trigger=Program(_KEEPS, (DeleteManually(), *(_CLEAN,) * 20, *_AGED)),
    component="FLAGS",
    difficulty=3,
    needs="deletion, long history",
)

ANY_HOUR = Mutant(
    id="E83",
    title="files-go-at-any-hour",
    source="ours",
    killed_by=("DEL-3",),
    edits=(
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._is_due",
            before="is_due = False",
            after="is_due = True",
        ),
    ),
    trigger=Program(_KEEPS, _AGED),
    component="FLAGS",
    difficulty=1,
    needs="deletion",
)

PRESSURE_MUTANTS = (
    BUFFER_OF_A_FULL_FILE,
    BUFFER_OF_NO_FILE,
    REQUEST_FOR_EVER,
    ANY_HOUR,
    FLAG_BITS_COLLIDE,
    DISK_FULL_LEAVES_A_HOLE,
    ROOM_WITHOUT_THE_FILE,
    NO_ROOM_ASKED_FOR,
)
