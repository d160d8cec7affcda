"""PutService: handles a put from its request to its answer.

It checks that the store takes puts, has the record appended, and under SYNC_FLUSH waits
for the sync.

Source: DefaultMessageStore#asyncPutMessage, CommitLog#handleDiskFlush,
HookUtils#checkBeforePutMessage, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.config import FlushDiskType, StoreConfig
from crashmq.engine.store.group_commit import GroupCommitService
from crashmq.engine.store.message.message import Message
from crashmq.engine.store.message.message_encoder import MessageRejected
from crashmq.engine.store.results import PutMessageResult, PutMessageStatus
from crashmq.engine.store.running_flags import RunningFlags
from crashmq.engine.store.store_stats_service import StoreStatsService

NOT_WRITEABLE = probe("message_store.put.refused", "a put met a store that takes none")
HOOKED = probe("message_store.put.hooked", "a broker refused what a caller put")

PutMessageHook: TypeAlias = Callable[[Message], Message]
"""What a broker makes of each message before it is put; it raises MessageRejected.

Source: org.apache.rocketmq.store.hook.PutMessageHook.
"""


class PutService:
    """Answers each put exactly once."""

    def __init__(
        self,
        config: StoreConfig,
        flags: RunningFlags,
        group_commit: GroupCommitService,
        stats: StoreStatsService,
        runtime: Runtime,
    ) -> None:
        self._config = config
        self._flags = flags
        self._group_commit = group_commit
        self._runtime = runtime
        self.stats = stats
        self.hook: PutMessageHook | None = None

    def put(
        self,
        message: Message,
        append: Callable[[Message], PutMessageResult],
        *,
        is_started: bool,
    ) -> PutMessageResult:
        """Append the message with ``append``; under SYNC_FLUSH wait for its sync."""
        takes_puts = is_started and not self._config.is_slave
        if not takes_puts or not self._flags.is_writeable:
            NOT_WRITEABLE.hit()
            return PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
        if self.hook is not None:
            try:
                message = self.hook(message)
            except MessageRejected as rejected:
                HOOKED.hit()
                return PutMessageResult(rejected.status)
        began_ms = self._runtime.now_ms()
        try:
            result = append(message)
        except OSError:
            self._flags.stop_writing()
            return PutMessageResult(PutMessageStatus.UNKNOWN_ERROR)
        if result.status is PutMessageStatus.PUT_OK:
            result = self._flushed(message, result)
        if result.is_appended:
            took_ms = self._runtime.now_ms() - began_ms
            times = len(result.phy_offsets)
            self.stats.count_put(message.topic, times, result.size, took_ms)
        return result

    def _flushed(self, message: Message, result: PutMessageResult) -> PutMessageResult:
        if (
            self._config.flush_disk_type is FlushDiskType.ASYNC_FLUSH
            or not message.waits_for_store
        ):
            return result
        request = self._group_commit.put_request(result.end_offset)
        status = request.wait(self._config.sync_flush_timeout)
        return result._replace(status=status)
