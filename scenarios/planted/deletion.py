"""Planted bugs of deletion, and of a log's and its queues' minimum afterwards."""

from __future__ import annotations

from dataclasses import replace

from models.ops import (
    AdvanceClock,
    Damage,
    DeleteManually,
    DiskFault,
    During,
    FillDisk,
    Op,
    PullMessage,
    PutMessage,
    Restart,
    RunService,
    Schedule,
    Shutdown,
    Together,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_KEEPING = Setup(cleans=True, reserved_hours=2, flush_least_pages=0)
_SMALL = PutMessage("T0", 1, 16)
_LARGE = PutMessage("T0", 0, 3000)  # one to a log file
_SERVED: tuple[Op, ...] = (RunService("flush_commit_log", 9), RunService("reput"))
_CLEAN = RunService("clean_commit_log")
_EXPIRE: tuple[Op, ...] = (AdvanceClock(3 * 3_600_000), DeleteManually(), _CLEAN)

MIN_STUCK_WHEN_ALL_EXPIRED = Mutant(
    id="R48",
    title="min-stuck-when-all-expired",
    source="apache/rocketmq#3706, #8753, #1960",
    killed_by=("RD-2", "RD-4"),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue.correct_min_offset",
            before="self.min_offset = low",
            after=("if low < self.max_offset:\n        self.min_offset = low"),
        ),
    ),
    trigger=Program(
        _KEEPING,
        (_SMALL, _LARGE, _LARGE, *_SERVED, *_EXPIRE, PullMessage("T0", 1, 0)),
    ),
    component="MIN",
    difficulty=2,
    needs="deletion, long history",
)

CACHED_MIN_NOT_INVALIDATED = Mutant(
    id="R50",
    title="cached-min-not-invalidated",
    source="apache/rocketmq#8076, #7035, #9371",
    killed_by=("RD-1", "RD-2"),
    edits=(
        Edit(
            module="engine.store.message_reader",
            function="MessageReader.get_message",
            before="low, high = queue.min_offset, queue.max_offset",
            after=(
                'known = self.__dict__.setdefault("_known", {})\n'
                "    low = known.setdefault((topic, queue_id), queue.min_offset)\n"
                "    high = queue.max_offset"
            ),
        ),
    ),
    trigger=Program(
        _KEEPING,
        (
            *(_LARGE, _LARGE, *_SERVED),
            *(PullMessage("T0", 0, 0), *_EXPIRE, PullMessage("T0", 0, 0)),
        ),
    ),
    component="MIN",
    difficulty=2,
    needs="deletion",
)

# Queues are told before the file goes; here the queues' own round tells them.
DAMAGED_FILE_NEVER_GOES = Mutant(
    id="X21",
    title="damage-in-old-segment-not-seen",
    source="prometheus/prometheus#18552, #5867",
    killed_by=("DEL-4",),
    edits=(
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._has_expired",
            before="newest_ms = self._runtime.now_ms()",
            after=(
                "data, at = file.read(0, file.file_size), 0\n"
                "    while at < len(data):\n"
                "        start = file.file_from_offset\n"
                "        found = self._commit_log.check_message(\n"
                "            start + at, data, at\n"
                "        )\n"
                "        if not found.success:\n"
                "            return False\n"
                "        at += found.msg_size or len(data)\n"
                "    newest_ms = self._runtime.now_ms()"
            ),
        ),
    ),
    trigger=Program(
        replace(_KEEPING, on_damage="serve"),
        (
            *(_LARGE, _LARGE, *_SERVED, Shutdown()),
            *(Damage("commitlog[0]", "flip", 4, 4), Restart(), *_EXPIRE),
        ),
    ),
    component="RECOVERY",
    difficulty=3,
    needs="bit rot, long history",
)

LOG_GOES_BEFORE_ITS_QUEUES = Mutant(
    id="E20",
    title="log-deleted-before-its-queues-are-told",
    source="store reference 9.2; apache/rocketmq#9371",
    killed_by=("RD-1", "RD-2"),
    edits=(
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._delete_until",
            before="self._consume_queues.correct_min_offset(file.end_offset)",
            after="self._consume_queues.correct_min_offset(self._commit_log.min_offset)",
        ),
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._delete",
            before="self._consume_queues.correct_min_offset(self._commit_log.min_offset)",
            after="pass",
        ),
        Edit(
            module="engine.store.clean_consume_queue",
            function="CleanConsumeQueueService.run_once",
            before="deleted += sum(delete(log_min) for delete in self._delete_expired)",
            after="self._consume_queues.correct_min_offset(log_min)",
        ),
    ),
    trigger=Program(
        _KEEPING, (_LARGE, _LARGE, *_SERVED, *_EXPIRE, PullMessage("T0", 0, 0))
    ),
    as_shipped=True,
    component="MIN",
    difficulty=2,
    needs="deletion",
)

# The name goes with the last reader, as RocketMQ lets it go; and a file that was let go
# already stops the next round.
HUNG_FILE_BLOCKS_DELETION = Mutant(
    id="R45",
    title="hung-file-blocks-deletion",
    source="apache/rocketmq PR #39; alibaba/rocketmq PR #300; dledger#125",
    killed_by=("DEL-4", "DEL-5", "RD-1", "RD-2", "RD-3", "RD-8", "CL-1", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue._delete_first",
            before="first.destroy()\n",
            after=(
                "if not first.hold():\n"
                "            return False\n"
                "        first.release()\n"
                "        first.shutdown()\n"
                "        if not first.is_cleaned_up:\n"
                "            return False\n"
                "        self._disk.remove(first.path)\n"
            ),
        ),
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue._delete_first",
            before="    except OSError:",
            after="        return True\n    except OSError:",
        ),
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue.delete_first_files",
            before="        self._delete_first()\n",
            after="        if not self._delete_first():\n            break\n",
        ),
    ),
    trigger=Program(
        _KEEPING,
        (
            *(_LARGE, _LARGE, *_SERVED, *_EXPIRE[:-1]),
            Together(
                (PullMessage("T0", 0, 0), _CLEAN),
                Schedule(preemptions=((3, 1),)),  # while it reads the record
            ),
        ),
    ),
    component="DELETE",
    difficulty=4,
    needs="concurrency, deletion",
)

# The file leaves the list once its going is certain, and not with its name.
MIN_OFFSET_FROM_DEAD_FILE = Mutant(
    id="R47",
    title="min-offset-from-dead-file",
    source="apache/rocketmq#7283, PR #7284",
    killed_by=("RD-1", "RD-2", "RD-3", "DEL-4", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue._delete_first",
            before="        del self.files[0]\n",
            after="",
        ),
        Edit(
            module="engine.store.mapped_file_queue",
            function="MappedFileQueue._delete_first",
            before=(
                "        self._may_come_back = True\n        self.settle_deletion()\n"
            ),
            after=(
                "        self._may_come_back = True\n"
                "        self.settle_deletion()\n"
                "        del self.files[0]\n"
            ),
        ),
    ),
    trigger=Program(
        _KEEPING,
        (
            *(_LARGE, _LARGE, *_SERVED, *_EXPIRE[:-1]),
            During(_CLEAN, 1, DiskFault("sync", "EIO", path="commitlog")),
            PullMessage("T0", 0, 0),
        ),
    ),
    component="DELETE",
    difficulty=3,
    needs="deletion, EIO",
)

# What is checked first of all is where the log begins, which the mark knows.
CHAINED_CRC_SEED_LOST = Mutant(
    id="X14",
    title="chained-crc-seed-lost-after-purge",
    source="etcd-io/etcd PR #11924",
    killed_by=("REC-4",),
    edits=(
        Edit(
            module="engine.store.start_up",
            function="StartUp._refuse_lost",
            before="if scan.start > mark.log_min_offset and not mark.is_empty:",
            after="if scan.start > 0:",
        ),
    ),
    trigger=Program(_KEEPING, (_LARGE, _LARGE, *_SERVED, *_EXPIRE, Restart())),
    component="DELETE",
    difficulty=2,
    needs="deletion",
)

DELETES_WHATEVER_THE_AGE = Mutant(
    id="S22",
    title="full-disk-deletes-what-has-not-expired",
    source="sharp edge 14.22: over 85 % the oldest files go, whatever their age",
    killed_by=("DEL-3",),
    edits=(
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._is_forced",
            before="self._config.clean_file_forcibly_enable",
            after="True",
        ),
    ),
    trigger=Program(
        replace(_KEEPING, disk_capacity=96 * 1024),
        (_LARGE, _LARGE, *_SERVED, FillDisk(86), _CLEAN),
    ),
    as_shipped=True,
    component="DELETE",
    difficulty=2,
    needs="ENOSPC",
)

AGE_IS_THE_FILES = Mutant(
    id="S22B",
    title="age-is-the-files-time-alone",
    source="sharp edge 14.22: a file's mtime is its age",
    killed_by=("DEL-3",),
    edits=(
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._has_expired",
            before="if not 0 < stored_ms <= newest_ms:",
            after="if not 0 < stored_ms:",
        ),
    ),
    trigger=Program(
        _KEEPING,
        (
            *(_LARGE, _LARGE, *_SERVED, Shutdown()),
            Damage("commitlog[0]", "touch", 3 * 3_600_000),
            *(Restart(), DeleteManually(), _CLEAN),
        ),
    ),
    as_shipped=True,
    component="DELETE",
    difficulty=2,
    needs="clock",
)

UNDISPATCHED_IS_DELETED = Mutant(
    id="S22C",
    title="deleted-before-it-was-dispatched",
    source="sharp edge 14.22: nobody asks whether a file was dispatched",
    killed_by=("DEL-2", "RD-1", "RD-2", "FL-1", "REC-3"),
    edits=(
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._end_of_what_may_go",
            before="min(self._reput.reput_from_offset, self._commit_log.flushed_where)",
            after="self._commit_log.max_offset",
        ),
    ),
    trigger=Program(_KEEPING, (_LARGE, _LARGE, *_EXPIRE)),
    as_shipped=True,
    component="DELETE",
    difficulty=2,
    needs="deletion",
)

DELETION_MUTANTS = (
    MIN_STUCK_WHEN_ALL_EXPIRED,
    CACHED_MIN_NOT_INVALIDATED,
    DAMAGED_FILE_NEVER_GOES,
    LOG_GOES_BEFORE_ITS_QUEUES,
    HUNG_FILE_BLOCKS_DELETION,
    MIN_OFFSET_FROM_DEAD_FILE,
    CHAINED_CRC_SEED_LOST,
    DELETES_WHATEVER_THE_AGE,
    AGE_IS_THE_FILES,
    UNDISPATCHED_IS_DELETED,
)
