"""Answers that hide what became of the disk: unsynced, open, full, failed or damaged.

Bugs of the store that only the disk shows are among them.
"""

from __future__ import annotations

from misreporting import (
    AGAIN,
    AROUND,
    AROUND_KEYS,
    COMMIT_FAILS,
    CUT_SHORT,
    DELETED,
    EAGER,
    FLUSH,
    INDEX_TOLD,
    LOG,
    MARK,
    ONE,
    PLAIN,
    PULL,
    PUT,
    QUEUE,
    REFUSED,
    REPUT,
    SYNC_FAILS,
    TOLD,
    TOO_FULL,
    bug,
    does,
    lie,
)

from models.ops import DiskFault, During
from models.program import Setup

_CHANGED = """self.disk.unmount()
        self.disk.replace_file('{}', b'x')
        return Refused(str(refusal))"""

LIES_OF_THE_MEDIUM = (
    lie("RD-6", "pull", "result.messages,", "(),", AROUND),
    lie("RD-6", "pull", "result.messages,", "result.messages[::-1],", AROUND),
    bug(
        "REC-18",
        "engine.store.mapped_file:MappedFile.extend",
        "self.sync()",
        "pass",
        CUT_SHORT,
    ),
    lie(
        "REC-18",
        "unsynced_from",
        "return self.disk.unsynced_from()",
        "return {**self.disk.unsynced_from(), 'deletedTopics': 0}",
        ONE,
    ),
    bug(
        "CP-12",
        "engine.store.consume_queue:ConsumeQueue.flush",
        "moved = self.mapped_files.flush(least_pages)",
        "moved = False",
        TOLD,
    ),
    bug(
        "CP-12",
        "engine.store.index_file:IndexFile.flush",
        "self._file.sync()",
        "pass",
        INDEX_TOLD,
    ),
    lie("RD-10", "search", "Searched(found,", "Searched(found + 9,", AROUND),
    lie("RD-10", "search", "stored_at, earliest)", "stored_at, -1)", AROUND),
    lie("IX-10", "query", "Queried(result.messages)", "Queried(())", AROUND_KEYS),
    lie(
        "IX-10",
        "query",
        "Queried(result.messages)",
        "Queried(result.messages[1:])",
        AROUND_KEYS,
    ),
    bug(
        "PUT-6",
        "engine.store.scan_around:end_behind",
        "if left and damage.meets(last.file_from_offset, last.end_offset):",
        "if False:",
        AROUND,
    ),
    bug(
        "PUT-6",
        "engine.store.scan_around:end_behind",
        "last.append_declared(encode_filler(left), left)",
        "pass",
        AROUND,
    ),
    bug(
        "PUT-7",
        "engine.store.group_commit:GroupCommitService.run_once",
        "request.complete(PutMessageStatus.FLUSH_DISK_TIMEOUT)",
        "pass",
        COMMIT_FAILS,
    ),
    bug(
        "PUT-7",
        "engine.store.group_commit:GroupCommitRequest.complete",
        "self._done.set()",
        "if status is PutMessageStatus.PUT_OK: self._done.set()",
        SYNC_FAILS,
    ),
    bug(
        "RD-9",
        "engine.store.message_reader:MessageReader._record_of",
        "self._commit_log.is_record(phy_offset, message)",
        "True",
        does(
            Setup(checks_crc=True),
            PUT,
            During(FLUSH, 1, DiskFault("lose", "EIO")),
            REPUT,
            During(PULL, 1, DiskFault("evict", "EIO")),
            PULL,
        ),
    ),
    lie(
        "REC-8",
        "start",
        "return Refused(str(refusal))",
        _CHANGED.format("config"),
        REFUSED,
    ),
    lie(
        "REC-8",
        "start",
        "return Refused(str(refusal))",
        _CHANGED.format("abort"),
        REFUSED,
    ),
    lie("REC-10", "shutdown", "self.disk.unsynced()", "('f',)", AGAIN),
    lie("RUN-2", "shutdown", "self.disk.left_open()", "('f',)", AGAIN),
    lie(
        "RUN-2",
        "shutdown",
        "self.disk.left_open()",
        "self.disk.left_open() or ('lock',)",
        AGAIN,
    ),
    bug(
        "DEL-6",
        "engine.store.running_flags:RunningFlags.is_writeable",
        "self._flags.isdisjoint(_STOP_PUTS)",
        "True",
        TOO_FULL,
    ),
    bug(
        "DEL-6",
        "engine.store.disk_space:DiskSpace.watch",
        "self._flags.set(Flag.DISK_FULL)",
        "pass",
        TOO_FULL,
    ),
    lie(
        "FL-9",
        "unsynced_from",
        "return self.disk.unsynced_from()",
        f"return {{'{LOG}': 9}} if self.positions().max_phy_offset else {{}}",
        does(EAGER, PUT, FLUSH),
    ),
    lie(
        "REC-16",
        "unsynced_from",
        "return self.disk.unsynced_from()",
        f"return {{'{QUEUE}': -1}}",
        AGAIN,
    ),
    lie(
        "REC-16",
        "unsynced_from",
        "return self.disk.unsynced_from()",
        f"return {{'{QUEUE}': -1}}",
        DELETED,
    ),
    bug(
        "CP-11",
        "engine.store.checkpoint:StoreCheckpoint.flush",
        "self._file.sync()",
        "if self.mark is None or self.mark.is_empty: self._file.sync()",
        does(EAGER, PUT, FLUSH, MARK),
    ),
    lie(
        "CP-11",
        "unsynced_from",
        "return self.disk.unsynced_from()",
        "return {'checkpoint': 512} if self.positions().max_phy_offset else {}",
        does(PLAIN, PUT, MARK),
    ),
    lie("REC-11", "start", "damaged)", "((0, 9999),) if damaged else ())", AROUND),
    lie("REC-11", "start", "damaged)", "((7000, 9999),) if damaged else ())", AROUND),
    lie("REC-12", "start", "damaged)", "())", AROUND),
    lie(
        "REC-12",
        "start",
        "return Started(",
        "return Refused('no') if damaged else Started(",
        AROUND,
    ),
)
