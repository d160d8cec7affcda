"""Bugs that show over a life of a store: what waits for ever, what a failure ends."""

from __future__ import annotations

from misreporting import (
    EAGER,
    FEW,
    FLUSH,
    KEYS,
    KILL,
    MARK,
    MINUTE,
    PLAIN,
    POOLED,
    PUT,
    REPUT,
    bug,
    does,
    lie,
)

from crashmq.models.ops import (
    AdvanceClock,
    Damage,
    DeleteManually,
    DiskFault,
    During,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Subscribe,
)
from crashmq.models.program import HOUR_MS, Setup

_FAILS = DiskFault("sync", "EIO")
_FLUSH_QUEUES = RunService("flush_consume_queue")
_FLUSH_INDEX = RunService("flush_index")
_FLUSH_FAILED = does(EAGER, PUT, During(FLUSH, 1, _FAILS), PUT)
_SECOND = AdvanceClock(1500)
_LITTLE = does(PLAIN, FLUSH, PUT, _SECOND, FLUSH, _SECOND, FLUSH)
_BUFFERED = does(POOLED, PUT, AdvanceClock(300), RunService("commit"))
_UNITS = does(PLAIN, _FLUSH_QUEUES, PUT, REPUT, MINUTE, _FLUSH_QUEUES)
_INDEX_FAILED = does(
    FEW, *(*KEYS, FLUSH), During(_FLUSH_INDEX, 1, _FAILS), MINUTE, Shutdown()
)
_QUEUES_FAILED = does(PLAIN, PUT, REPUT, During(_FLUSH_QUEUES, 1, _FAILS), Shutdown())
_ABORT_TAKEN = does(
    PLAIN,
    *(PUT, REPUT, MINUTE, FLUSH, MARK, PUT, KILL),
    *(Damage("abort", "delete"), Restart()),
)
_WANTED = does(
    Setup(keeps_progress=True, filters=True, queue_ext_size=512),
    Subscribe("g", "T0", "a > 5"),
    *(PutMessage("T0", 0, 16, properties="a=9"), REPUT),
)
_DELIVER = RunService("deliver_delayed")
_DELAYED = does(
    Setup(delivers_delayed=True),
    *(PutMessage("T0", 0, 16, delay_level=1), REPUT, _SECOND, _DELIVER, _DELIVER),
)
_UNREAD = does(
    Setup(delivers_delayed=True),
    *(PutMessage("T0", 0, 16, delay_level=1), PutMessage("T0", 0, 16, delay_level=2)),
    *(REPUT, _SECOND),
    During(_DELIVER, 1, DiskFault("read", "EIO", path="consumequeue/SCHEDULE")),
)
_UNSYNCED_REMOVAL = does(
    Setup(cleans=True, reserved_hours=2),
    *(PutMessage("T0", 0, 3000), PutMessage("T0", 0, 3000)),
    *(RunService("flush_commit_log", 2), REPUT, AdvanceClock(3 * HOUR_MS)),
    DeleteManually(),
    During(
        RunService("clean_commit_log"), 1, DiskFault("sync", "EIO", path="commitlog")
    ),
)

LIES_OF_LIVES = (
    bug(
        "FL-14",
        "crashmq.engine.store.flush:CommitLogFlusher._flush",
        "SYNC_FAILED.hit()",
        "self._commit_log.mapped_files.flushed_where = self._commit_log.max_offset",
        does(
            EAGER,
            PUT,
            During(FLUSH, 1, DiskFault("sync", "EIO", path="commitlog", after=1)),
        ),
    ),
    bug(
        "PUT-8",
        "crashmq.engine.store.flush:CommitLogFlusher._flush",
        "self._flags.stop_flushing()",
        "pass",
        _FLUSH_FAILED,
    ),
    bug(
        "PUT-8",
        "crashmq.engine.store.running_flags:RunningFlags.stop_flushing",
        "self.set(Flag.FLUSH_FAILED)",
        "pass",
        _FLUSH_FAILED,
    ),
    lie(
        "REC-19",
        "shutdown",
        "Stopped(clean, self.disk.unsynced()",
        "Stopped(not store.is_started, ()",
        _QUEUES_FAILED,
    ),
    lie(
        "REC-19",
        "shutdown",
        "Stopped(clean, self.disk.unsynced()",
        "Stopped(True, ()",
        _INDEX_FAILED,
    ),
    bug(
        "FL-10",
        "crashmq.engine.store.flush:FlushRealTimeService.run_once",
        "waited = now - self._last_thorough_ms",
        "waited, self._last_thorough_ms = now - self._last_thorough_ms, now",
        _LITTLE,
    ),
    bug(
        "FL-10",
        "crashmq.engine.store.flush:FlushRealTimeService.run_once",
        "if not 0 <= waited < self._config.flush_commit_log_thorough_interval:",
        "if waited < 0:",
        _LITTLE,
    ),
    bug(
        "FL-11",
        "crashmq.engine.store.flush:CommitRealTimeService.run_once",
        "if 0 <= waited < self._config.commit_commit_log_thorough_interval:",
        "if waited:",
        _BUFFERED,
    ),
    bug(
        "FL-11",
        "crashmq.engine.store.flush:CommitRealTimeService.run_last",
        "return self._commit_log.commit_all()",
        "return 0",
        _BUFFERED,
    ),
    bug(
        "FL-12",
        "crashmq.engine.store.flush:FlushConsumeQueueService.run_once",
        "if 0 <= waited < self._config.flush_consume_queue_thorough_interval:",
        "if waited:",
        _UNITS,
    ),
    bug(
        "FL-12",
        "crashmq.engine.store.flush:FlushConsumeQueueService.flush_thoroughly",
        "synced = self._consume_queues.flush(0)",
        "synced = self._consume_queues.flush(1)",
        _UNITS,
    ),
    bug(
        "REC-20",
        "crashmq.engine.store.start_up:StartUp._read",
        "mark.durable_offset == found[0].end",
        "mark.durable_offset <= found[0].end",
        _ABORT_TAKEN,
    ),
    lie(
        "REC-20",
        "start",
        "return Started(store.last_exit_ok",
        "return Started(True",
        _ABORT_TAKEN,
    ),
    bug(
        "RUN-10",
        "crashmq.engine.store.flush:CheckpointService._write",
        "return int(self._checkpoint.flush())",
        "return int(not self._checkpoint.flush())",
        does(PLAIN, PUT, MARK),
    ),
    bug(
        "RUN-10",
        "crashmq.engine.store.queue.consume_queue_store:ConsumeQueueStore.flush",
        "return synced",
        "return 0",
        _UNITS,
    ),
    bug(
        "IX-13",
        "crashmq.engine.store.index.index_service:_name_of",
        "shown_ms // 1000, UTC",
        "shown_ms // 1000 + 3600, UTC",
        does(FEW, *KEYS),
    ),
    bug(
        "IX-13",
        "crashmq.engine.store.index.index_service:IndexService._file_with_space",
        "self._last_name + 1)",
        "self._last_name + 2)",
        does(FEW, *KEYS),
    ),
    bug(
        "CQ-12",
        "crashmq.engine.broker.filter.commit_log_dispatcher_calc_bit_map:"
        "CommitLogDispatcherCalcBitMap.calc",
        "if _may_match(data, properties):",
        "if not properties and _may_match(data, properties):",
        _WANTED,
    ),
    bug(
        "DLY-1",
        "crashmq.engine.broker.schedule.schedule_message_service:"
        "ScheduleMessageService._pass",
        "self._update_offset(level, unit.queue_offset + 1, end_offset)",
        "self._update_offset(level, unit.queue_offset, end_offset)",
        _DELAYED,
    ),
    bug(
        "RUN-11",
        "crashmq.engine.broker.schedule.schedule_message_service:"
        "ScheduleMessageService.deliver",
        "failed = failed or error",
        "pass",
        _UNREAD,
    ),
    bug(
        "RUN-11",
        "crashmq.engine.store.logfile.mapped_file_queue:MappedFileQueue._delete_first",
        "NOT_DELETED.hit()\n            raise",
        "NOT_DELETED.hit()",
        _UNSYNCED_REMOVAL,
    ),
)
