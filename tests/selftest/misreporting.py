"""A store that misreports: one lie for each thing that a law looks at.

Edits of the subject, so that the whole way from a store's answer to its judgement is
examined: a law that is never asked, or asked too late, fires at none of them. Each
comes with a program that shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from crashmq.harness.mutants.mutation import Edit, Mutant
from crashmq.models.ops import (
    AdvanceClock,
    Crash,
    Damage,
    DeleteManually,
    DeleteTopic,
    DiskFault,
    During,
    FillDisk,
    Op,
    PlantFile,
    PullMessage,
    PutBatch,
    PutMessage,
    Restart,
    RunService,
    Schedule,
    Shutdown,
    Together,
)
from crashmq.models.program import Program, Setup


@dataclass(frozen=True, slots=True)
class Lie:
    """One edit of the subject, and a program in which its law fires."""

    law: str
    edit: Edit
    program: Program

    @property
    def id(self) -> str:
        """The law and what is said instead."""
        return f"{self.law}: {self.edit.after[:60]}"

    def as_mutant(self) -> Mutant:
        """The lie, to be put in place."""
        return Mutant(f"lie-{self.law}", "misreports", (self.law,), (self.edit,))


def down(law: str, change: str, program: Program) -> Lie:
    """As ``_files``, but only while the store is down: what a start will find."""
    return files(law, f"if self._store is None: {change}", program)


def lie(law: str, verb: str, before: str, after: str, program: Program) -> Lie:
    module = "crashmq.harness.subjects.python_store"
    return Lie(law, Edit(module, f"PythonStore.{verb}", before, after), program)


def bug(law: str, place: str, before: str, after: str, program: Program) -> Lie:
    """A bug of the store or of the harness: ``place`` is ``module:function``."""
    module, _, function = place.partition(":")
    return Lie(law, Edit(module, function, before, after), program)


def files(law: str, change: str, program: Program) -> Lie:
    """Files that are not those on the disk: ``change`` is done to ``files``."""
    after = f"files = dict(self.disk.files())\n    {change}\n    return files"
    return lie(law, "files", "return self.disk.files()", after, program)


def does(setup: Setup, *ops: Op) -> Program:
    return Program(setup, ops)


PLAIN = Setup()
EAGER = Setup(flush_least_pages=0)
SYNC = Setup(flush_mode="SYNC_FLUSH")
INDEXED = Setup(index_slots=4, index_entries=8)
CLEANS = Setup(cleans=True, reserved_hours=2, flush_least_pages=0)
FULL = Setup(cleans=True, disk_capacity=40_000, flush_least_pages=0)
BESIDE = Setup(queue_ext_size=512)
SERVES = Setup(on_damage="serve")
POOLED = Setup(transient_store_pool=True)
PUT = PutMessage("T0", 0, 16)
KEYED = PutMessage("T0", 0, 16, keys="a b")
HALF = PutMessage("T0", 0, 1900)  # two fill a log file
REPUT = RunService("reput")
FLUSH = RunService("flush_commit_log")
MARK = RunService("checkpoint")
PULL = PullMessage("T0", 0, 0)
KILL = During(PULL, 1, Crash("process_kill"))
LOSS = During(PULL, 1, Crash("power_loss"))
ONE = does(PLAIN, PUT, REPUT)
ENDED = does(PLAIN, PUT, REPUT, Shutdown())
AGAIN = does(PLAIN, PUT, REPUT, Restart())
STOPPED_TWICE = does(PLAIN, PUT, REPUT, During(Shutdown(), 1, Shutdown()))
DELETED_LATE = does(
    PLAIN,
    *(PUT, FLUSH, REPUT),
    Together((DeleteTopic("T0", -1), Shutdown()), Schedule(preemptions=((2, 1),))),
)
ROLLED = does(PLAIN, HALF, HALF, HALF, REPUT)
LISTED = does(INDEXED, KEYED, REPUT)
EXPIRED = does(
    CLEANS,
    *(HALF, HALF, HALF, RunService("flush_commit_log", 2), REPUT),
    *(AdvanceClock(3 * 3_600_000), DeleteManually(), RunService("clean_commit_log")),
)
EXPIRED_AND_KILLED = does(
    CLEANS,
    *(HALF, HALF, HALF, RunService("flush_commit_log", 2), REPUT),
    *(AdvanceClock(3 * 3_600_000), DeleteManually()),
    *(During(RunService("clean_commit_log"), 1000, Crash("process_kill")), Restart()),
)
EXPIRED_BY_THE_HOUR = does(
    CLEANS,
    *(HALF, HALF, HALF, RunService("flush_commit_log", 2), REPUT),
    # The clock begins at 22:13; files go between four and five.
    *(AdvanceClock(6 * 3_600_000), RunService("clean_commit_log")),
)
CRASHED = does(PLAIN, PUT, REPUT, KILL, Restart())
LOST = During(FLUSH, 1, DiskFault("lose", "EIO", path="commitlog"))
KILLED_WITH_A_LOST_PAGE = does(EAGER, PUT, REPUT, LOST, KILL, Restart())
BROKEN = (PUT, PUT, PUT, REPUT, Shutdown(), Damage("commitlog[0]", "flip", at=225))
AROUND = does(SERVES, *BROKEN, Restart(), PULL)
READS_FAIL = During(Restart(), 1, DiskFault("read", "EIO", path="nothing at all"))
AROUND_WHILE_READS_FAIL = does(SERVES, *BROKEN, READS_FAIL, PULL)
AROUND_KEYS = does(
    Setup(on_damage="serve", index_slots=4, index_entries=8),
    *(KEYED, KEYED, KEYED, REPUT, Shutdown()),
    *(Damage("commitlog[0]", "flip", at=235), Restart()),
)
REFUSED = does(PLAIN, *BROKEN, Restart())
CUT_SHORT = does(
    PLAIN,
    *(PUT, REPUT, Shutdown(), Damage("consumequeue[0]", "truncate", 100), Restart()),
)
TOLD = does(EAGER, PUT, REPUT, FLUSH, RunService("flush_consume_queue"), MARK)
TOLD_AND_KILLED = does(
    EAGER,
    *(PUT, REPUT, FLUSH, RunService("flush_consume_queue"), MARK),
    *(KILL, Restart(), KILL, Restart()),
)
SYNC_FAILS = does(SYNC, PUT, During(PUT, 1, DiskFault("sync", "EIO")))
COMMIT_FAILS = does(
    Setup(flush_mode="SYNC_FLUSH", transient_store_pool=True),
    *(PUT, During(PUT, 1, DiskFault("write", "EIO"))),
)
TWICE = does(PLAIN, PUT, REPUT, KILL, Restart(), KILL, Restart())
MARKED = does(EAGER, PUT, REPUT, FLUSH, MARK, Shutdown())
SMALLQUEUES = Setup(cleans=True, reserved_hours=2, queue_file_units=1)
LOG = "commitlog/00000000000000000000"
QUEUE = "consumequeue/T0/0/00000000000000000000"


def patched(path: str, at: int, data: bytes, least: int = 8) -> str:
    """Text that puts ``data`` into a file, once ``least`` bytes of it are written."""
    end = at + len(data)
    return (
        f"files.update({{p: d[:{at}] + {data!r} + d[{end}:] for p, d in files.items() "
        f"if p.startswith({path!r}) and any(d[{least - 8}:{least}])}})"
    )


def dead(line: str) -> str:
    """Text that puts a record of deleted topics there."""
    text = f"crashmq deleted topics 1\n{line}\n".encode()
    said = text + b"%08x\n" % crc32(text)
    return f"if '{QUEUE}' in files: files['deletedTopics'] = {said!r}"


TAGGED = does(BESIDE, PutMessage("T0", 0, 16, tags="A"), REPUT)
EMPTIED = does(
    CLEANS,
    *(PutMessage("T1", 0, 16), HALF, HALF, HALF),
    *(RunService("flush_commit_log", 2), REPUT, AdvanceClock(3 * 3_600_000)),
    *(DeleteManually(), RunService("clean_commit_log"), Restart()),
)
OLDQUEUES = does(
    SMALLQUEUES,
    *(HALF, HALF, HALF, RunService("flush_commit_log", 2), REPUT),
    *(AdvanceClock(3 * 3_600_000), DeleteManually(), RunService("clean_commit_log")),
    RunService("clean_consume_queue"),
)
DELETED = does(PLAIN, PUT, REPUT, DeleteTopic("T0"))
EARLY = does(SYNC, PutMessage("T0", 0, 16, wait_store_ok=False), PULL)
LATE = does(PLAIN, PUT, REPUT, KILL, Restart(), PUT, KILL, Restart())
DELETED_UNLISTED = does(PLAIN, PUT, DeleteTopic("T0"), PUT, REPUT)
UNWAITED = does(SYNC, PutMessage("T0", 0, 16, wait_store_ok=False))
BATCH = does(PLAIN, PutBatch("T0", 0, (16, 16)))
WINDOWED = does(Setup(start_window=0), PUT, REPUT, Restart())
FEW = Setup(index_slots=4, index_entries=3, flush_least_pages=0)
PUT_AGAIN = does(PLAIN, PUT, REPUT, PUT, REPUT)
ROLLED = does(PLAIN, HALF, HALF, HALF, REPUT)
AT_ONCE_AND_ALIKE = does(PLAIN, Together((PUT, PUT)))
TOO_FULL = does(FULL, PUT, FillDisk(95), RunService("clean_commit_log"), PUT)
PLANTED = does(
    PLAIN, PUT, Shutdown(), PlantFile("commitlog/notes", "garbage", 20), Restart()
)
MINUTE = AdvanceClock(61_000)
KEYS = (KEYED, AdvanceClock(2000), KEYED, AdvanceClock(2000), KEYED, REPUT)
INDEX_TOLD = does(FEW, *(*KEYS, FLUSH, MINUTE, RunService("flush_index"), MINUTE, MARK))
INDEX_FILES = does(
    FEW,
    *(*KEYS, FLUSH, MINUTE, RunService("flush_consume_queue"), MINUTE),
    *(RunService("flush_index"), MARK, MINUTE, MARK, KILL, Restart()),
)
INDEX_AND_FAULT = does(
    FEW,
    *KEYS[:-1],
    During(REPUT, 1, DiskFault("create", "EIO", path="index")),
    REPUT,
)
ANYWHERE = Setup(disk_profile="posix_min")  # no name and no room is durable by itself
MADE_AHEAD = does(
    Setup(disk_profile="posix_min", preallocate=True),
    *(PUT, RunService("allocate"), PUT),
)
CUT_SHORT_ANYWHERE = does(
    ANYWHERE,
    *(PUT, REPUT, Shutdown(), Damage("consumequeue[0]", "truncate", 100), Restart()),
)
CUT_BESIDE = does(
    Setup(queue_ext_size=512, flush_least_pages=0),
    *(PUT, REPUT, FLUSH, MINUTE, RunService("flush_consume_queue"), MARK),
    *(PUT, During(REPUT, 2, Crash("process_kill")), Restart()),
)
DELETION_FAILS = does(
    PLAIN,
    *(PUT, REPUT, During(DeleteTopic("T0"), 1, DiskFault("sync", "EIO", after=1))),
    *(PUT, Shutdown()),
)
