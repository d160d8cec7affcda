"""Planted bugs of what a store reports: counts, times, ids, work done."""

from __future__ import annotations

from dataclasses import replace

from models.ops import (
    AdvanceClock,
    DeleteManually,
    DeleteTopic,
    PutMessage,
    RunService,
)
from models.program import Program, Setup
from scenarios.mutation import Edit, Mutant

_PUT = PutMessage("T0", 0, 20, tags="TagA")
_LARGE = PutMessage("T0", 0, 1900)
_REPUT = RunService("reput")
_KEEPING = Setup(cleans=True, reserved_hours=2, flush_least_pages=0)
_BESIDE = Setup(queue_ext_size=60, log_file_size=8192)

PUT_TIME_RANGES_TOO_WIDE = Mutant(
    id="E46",
    title="put-time-in-the-next-range",
    source="StoreStatsService#setPutMessageEntireTimeMax; ours",
    killed_by=("ST-1",),
    edits=(
        Edit(
            module="engine.store.store_stats",
            function="StoreStatsService.count_put",
            before="if took_ms > 0 else 0",
            after="if took_ms >= 0 else 0",
        ),
    ),
    trigger=Program(Setup(), (_PUT,)),
    component="READ",
    difficulty=1,
    needs="none",
)

ID_OF_THE_RECORDS_END = Mutant(
    id="E47",
    title="message-id-names-the-records-end",
    source="MessageDecoder#createMessageId; ours",
    killed_by=("PUT-5",),
    edits=(
        Edit(
            module="engine.store.commit_log",
            function="CommitLog._append_to",
            before="tuple(places),",
            after=(
                "tuple(\n"
                "            place + part.size\n"
                "            for place, part in zip(places, encoded, strict=True)\n"
                "        ),"
            ),
        ),
    ),
    trigger=Program(Setup(), (_PUT,)),
    component="APPEND",
    difficulty=1,
    needs="none",
)

ID_WITHOUT_ITS_PORT = Mutant(
    id="E48",
    title="message-id-without-its-port",
    source="MessageDecoder#createMessageId; ours",
    killed_by=("PUT-5", "PUT-3"),
    edits=(
        Edit(
            module="engine.store.message",
            function="message_id",
            before="{store_host.port:08x}",
            after="{0:08x}",
        ),
    ),
    trigger=Program(Setup(), (_PUT,)),
    component="APPEND",
    difficulty=1,
    needs="none",
)

DELETED_FILES_COUNTED_TWICE = Mutant(
    id="E49",
    title="deleted-files-counted-twice",
    source="MappedFileQueue#deleteExpiredFileByTime; ours",
    killed_by=("RUN-3",),
    edits=(
        Edit(
            module="engine.store.clean_commit_log",
            function="CleanCommitLogService._delete_until",
            before="return self._commit_log.mapped_files.delete_first_files(",
            after="return 2 * self._commit_log.mapped_files.delete_first_files(",
        ),
    ),
    trigger=Program(
        _KEEPING,
        (
            *(_LARGE,) * 5,
            RunService("flush_commit_log", 9),
            _REPUT,
            AdvanceClock(3 * 3_600_000),
            DeleteManually(),
            RunService("clean_commit_log"),
        ),
    ),
    component="DELETE",
    difficulty=1,
    needs="deletion",
)

FLUSH_SAYS_IT_DID_NOTHING = Mutant(
    id="E50",
    title="flush-says-it-did-nothing",
    source="MappedFileQueue#flush, its inverted answer; ours",
    killed_by=("RUN-3",),
    edits=(
        Edit(
            module="engine.store.flush",
            function="CommitLogFlusher._flush",
            before="return moved",
            after="return False",
        ),
    ),
    trigger=Program(
        Setup(), (_PUT, AdvanceClock(3000), RunService("flush_commit_log"))
    ),
    component="FLUSH",
    difficulty=1,
    needs="none",
)

BESIDE_LEFT_TOO_EARLY = Mutant(
    id="E51",
    title="file-beside-a-queue-left-too-early",
    source="ConsumeQueueExt#put; ours",
    killed_by=("CQ-9",),
    edits=(
        Edit(
            module="engine.store.consume_queue_ext",
            function="ConsumeQueueExt.put",
            before="if unit.size > room - file.wrote:",
            after="if unit.size + END_BLANK_SIZE > room - file.wrote:",
        ),
    ),
    trigger=Program(
        _BESIDE, (*(replace(_PUT, body_size=size) for size in (0, 10, 0)), _REPUT)
    ),
    component="CQ",
    difficulty=1,
    needs="none",
)

BESIDE_NEVER_CLOSED = Mutant(
    id="E52",
    title="file-beside-a-queue-never-closed",
    source="ConsumeQueueExt#fullFillToEnd; ours",
    killed_by=("CQ-9", "CQ-6", "CQ-8"),
    edits=(
        Edit(
            module="engine.store.consume_queue_ext",
            function="ConsumeQueueExt.put",
            before="file.append_declared(_CLOSED, file.file_size - file.wrote)",
            after='file.append_declared(b"", file.file_size - file.wrote)',
        ),
    ),
    trigger=Program(_BESIDE, (*(_PUT,) * 4, _REPUT)),
    component="CQ",
    difficulty=1,
    needs="none",
)

LOCK_NOT_TAKEN = Mutant(
    id="E53",
    title="lock-not-taken",
    source="DefaultMessageStore#start, its tryLock; ours",
    killed_by=("RUN-4",),
    edits=(
        Edit(
            module="engine.store.message_store",
            function="MessageStore.load",
            before='self._lock = self._disk.lock("lock")',
            after="pass",
        ),
    ),
    trigger=Program(Setup(), ()),
    component="FLAGS",
    difficulty=1,
    needs="none",
)

LOCK_LET_GO_AT_THE_START = Mutant(
    id="E54",
    title="lock-let-go-once-started",
    source="ours",
    killed_by=("RUN-4", "RUN-1"),
    edits=(
        Edit(
            module="engine.store.message_store",
            function="MessageStore.start",
            before="self.is_started = True",
            after=(
                "self.is_started = True\n"
                "    assert self._lock is not None\n"
                "    self._lock.release()\n"
                "    self._lock = None"
            ),
        ),
    ),
    trigger=Program(Setup(), ()),
    component="FLAGS",
    difficulty=1,
    needs="none",
)

_GONE = Program(
    Setup(queue_ext_size=60),
    (_PUT, _REPUT, DeleteTopic("T0")),
)

BESIDE_OUTLIVES_ITS_TOPIC = Mutant(
    id="E57",
    title="files-beside-a-deleted-queue-stay",
    source="ConsumeQueue#destroy, its ext; ours",
    killed_by=("DEL-13",),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue.remove",
            before="self._ext.mapped_files.remove()",
            after="self._ext.close()",
        ),
    ),
    trigger=_GONE,
    component="DELETE",
    difficulty=1,
    needs="deletion",
)

NEWEST_BESIDE_OUTLIVES_ITS_TOPIC = Mutant(
    id="E58",
    title="newest-file-beside-a-deleted-queue-stays",
    source="ours",
    killed_by=("DEL-13",),
    edits=(
        Edit(
            module="engine.store.consume_queue",
            function="ConsumeQueue.remove",
            before="self._ext.mapped_files.remove()",
            after=(
                "for file in self._ext.mapped_files.files[:-1]:\n"
                "            file.destroy()\n"
                "        self._ext.close()"
            ),
        ),
    ),
    trigger=_GONE,
    component="DELETE",
    difficulty=1,
    needs="deletion",
)

TOLD_MUTANTS = (
    BESIDE_OUTLIVES_ITS_TOPIC,
    NEWEST_BESIDE_OUTLIVES_ITS_TOPIC,
    LOCK_NOT_TAKEN,
    LOCK_LET_GO_AT_THE_START,
    PUT_TIME_RANGES_TOO_WIDE,
    ID_OF_THE_RECORDS_END,
    ID_WITHOUT_ITS_PORT,
    DELETED_FILES_COUNTED_TWICE,
    FLUSH_SAYS_IT_DID_NOTHING,
    BESIDE_LEFT_TOO_EARLY,
    BESIDE_NEVER_CLOSED,
)
