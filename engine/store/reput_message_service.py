"""ReputMessageService: passes the log's records to the dispatchers, in log order.

For each record the bit map is computed first; then each dispatcher is called in turn,
the queues' before the index's; then a listener is told that the message can be read. If
a dispatcher fails, all of them get the record again, and the listener is told after
that.

Source: org.apache.rocketmq.store.DefaultMessageStore.ReputMessageService, RocketMQ 5.3.
Differs: dispatch stops at bytes that are not a record; RocketMQ's master skips to the
end of the file, and never delivers the messages that it skips. The listener is told
only of records that a queue lists. With ``duplication_enable`` under SYNC_FLUSH a
record is dispatched only if it is flushed, too.
"""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.host.probe import probe
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import FlushDiskType, StoreConfig
from crashmq.engine.store.dispatch import CommitLogDispatcher, DispatchRequest
from crashmq.engine.store.message.message_codec import (
    BLANK_SIZE_MIN,
    properties_from_bytes,
)
from crashmq.engine.store.message_arriving_listener import (
    ArrivedMessage,
    MessageArrivingListener,
)
from crashmq.engine.store.store_stats_service import StoreStatsService

IDLE = probe("reput.idle", "a round found nothing to dispatch")
BELOW_MIN = probe(
    "reput.below_min",
    "records were deleted before they were dispatched",
    unreachable="cleaners keep what is not dispatched, and a start resumes at a record",
)
DISPATCHED = probe("reput.dispatched", "a record was handed to the dispatchers")
FILLER = probe("reput.filler", "a BLANK was met; dispatch continues in the next file")
BEYOND_WINDOW = probe(
    "reput.beyond_window", "a record continues behind the window that was read"
)
HALF = probe(
    "reput.half", "dispatch stops at a record whose length disagrees with its parts"
)
ILLEGAL = probe("reput.illegal", "dispatch stops at bytes that are no record")
FAILED = probe("reput.failed", "a dispatcher could not take a record")
PASSED = probe("reput.passed", "dispatch continued in a log with damage")
NO_DATA = probe("reput.no_data", "the log has no bytes where dispatch stands")
UNCONFIRMED = probe(
    "reput.unconfirmed", "dispatch stops at a record that replicas do not have whole"
)
ARRIVED = probe("reput.arrived", "a message arrival listener was called")
ARRIVED_LIGHT = probe(
    "reput.arrived.light", "a message arrival listener was called for a light queue"
)


class ReputMessageService:
    """Dispatches new records; one round catches up with the log.

    Every record below ``reput_from_offset`` was processed by every dispatcher.

    Attributes:
        dispatchers: called with each record, in this order; a broker may add others.
        calc_bit_map: computes a record's bit map, before any dispatcher is called.
        arriving_listener: is told of each message once it can be read.

    Invariants:
        0 <= reput_from_offset <= the log's end, once a round has run
    """

    name = "reput"
    interval_ms = 1

    def __init__(
        self,
        config: StoreConfig,
        commit_log: CommitLog,
        dispatchers: list[CommitLogDispatcher],
        stats: StoreStatsService,
    ) -> None:
        self._config = config
        self._commit_log = commit_log
        self._stats = stats
        self.dispatchers = dispatchers
        self.arriving_listener: MessageArrivingListener | None = None
        self._replicated_where = 0
        self.reput_from_offset = 0
        self.stopped_at = -1
        self.is_stopped = False
        self.calc_bit_map: Callable[[DispatchRequest], bytes] | None = None

    def _check(self) -> None:
        assert self.reput_from_offset >= 0, self.reput_from_offset
        end = max(self._commit_log.min_offset, self._commit_log.max_offset)
        assert self.reput_from_offset <= end, (self.reput_from_offset, end)

    @property
    def confirm_offset(self) -> int:
        """The phy_offset below which records may be dispatched and read.

        Source: DefaultMessageStore#getConfirmOffset: under SYNC_FLUSH only what was
        flushed, since the rest may be lost and its offsets given again; with
        ``duplication_enable`` only what replicas have.
        """
        stored = self._stored_where
        if self._config.duplication_enable:
            return min(stored, self._replicated_where)
        return stored

    @property
    def _stored_where(self) -> int:
        if self._config.flush_disk_type is FlushDiskType.SYNC_FLUSH:
            return self._commit_log.flushed_where
        return self._commit_log.committed_where

    def set_confirm_offset(self, phy_offset: int) -> None:
        """Record that replicas have the log up to this phy_offset, and will keep it.

        Only used with ``duplication_enable``.

        Source: DefaultMessageStore#setConfirmOffset.
        """
        self._replicated_where = max(self._replicated_where, phy_offset)

    @property
    def behind(self) -> int:
        """Bytes of the log that may be dispatched and are not yet."""
        return self.confirm_offset - self.reput_from_offset

    @property
    def unconfirmed(self) -> int:
        """Bytes of the log that may not be dispatched yet: replicas lack them."""
        return self._stored_where - self.confirm_offset

    def run_once(self) -> int:
        """Dispatch every record that may be dispatched; returns how many bytes.

        Raises:
            OSError: a dispatcher's disk failed; the next round begins at that record.

        Source: ReputMessageService#doReput.
        """
        if self.is_stopped:
            return 0
        start = self.reput_from_offset
        log_min = self._commit_log.min_offset
        if start < log_min:
            BELOW_MIN.hit()
            start = self.reput_from_offset = log_min
        if self.behind <= 0:
            IDLE.hit()
        while self.behind > 0:
            if not self._reput_file():
                break
        return self.reput_from_offset - start

    def stop(self) -> None:
        """Dispatch nothing more, so that what was dispatched can be made durable.

        Source: ReputMessageService#shutdown.
        """
        self.is_stopped = True

    def _reput_file(self) -> bool:
        """Dispatch the records of one file; return whether there were any."""
        damage, end = self._commit_log.damage, self.confirm_offset
        start = self.reput_from_offset
        if damage.ranges:
            behind = damage.end_of(start)
            if self._is_unconfirmed(behind):
                return False
            PASSED.hit()
            start = self.reput_from_offset = behind
            end = damage.next_start(start, end)
        data = self._commit_log.read_from(start, end)
        if not data:
            NO_DATA.hit()
            return False
        at = 0
        while at < len(data):
            request = self._commit_log.check_message(start + at, data, at)
            size = request.taken_size
            if request.success and size > 0:
                request = self._with_bit_map(request)
                self._dispatch(request)
                at += size
                self.reput_from_offset = start + at
                self._notify_message_arrive(request)
            elif request.success:
                behind = self._commit_log.roll_next_file(start + at)
                if self._is_unconfirmed(behind):
                    return False
                FILLER.hit()
                self.reput_from_offset = behind
                return True
            elif size := self._commit_log.size_beyond(start + at, data, at):
                BEYOND_WINDOW.hit()
                start, at = start + at, 0
                data = self._commit_log.read_from(start, end, size)
                if len(data) < size:
                    return self._stop_at(start, size, request)
            else:
                return self._stop_at(start + at, BLANK_SIZE_MIN, request)
        return True

    def _with_bit_map(self, request: DispatchRequest) -> DispatchRequest:
        """The record with its bit map, if a function to compute it is set.

        Source: CommitLogDispatcherCalcBitMap.
        """
        if self.calc_bit_map is None or not request.has_unit:
            return request
        return request._replace(bit_map=self.calc_bit_map(request))

    def _dispatch(self, request: DispatchRequest) -> None:
        try:
            for dispatcher in self.dispatchers:
                dispatcher.dispatch(request)
        except OSError:
            FAILED.hit()
            raise
        DISPATCHED.hit()
        if self._config.is_slave and not self._config.duplication_enable:
            # A master has counted the put; a slave gets its log otherwise.
            self._stats.count_dispatched(request.topic, 1, request.msg_size)

    def _notify_message_arrive(self, request: DispatchRequest) -> None:
        """Tell the listener, once for each queue that lists the message.

        Source: DefaultMessageStore#notifyMessageArriveIfNecessary,
        ReputMessageService#notifyMessageArrive4MultiQueue.
        """
        listener = self.arriving_listener
        if listener is None or not request.has_unit:
            return
        ARRIVED.hit()
        properties = properties_from_bytes(request.properties)
        listener.arriving(_arrived(request, request, properties))
        for light in request.in_light_queues() if request.light_places else ():
            ARRIVED_LIGHT.hit()
            listener.arriving(_arrived(light, request, properties))

    def _is_unconfirmed(self, end: int) -> bool:
        """Whether replicas lack a part of the log before ``end``."""
        if self.unconfirmed <= 0 or end <= self.confirm_offset:
            return False
        UNCONFIRMED.hit()
        return True

    def _stop_at(self, phy_offset: int, size: int, request: DispatchRequest) -> bool:
        if self._is_unconfirmed(phy_offset + size):
            return False
        (HALF if request.msg_size > 0 else ILLEGAL).hit()
        self.stopped_at = phy_offset
        return False


def _arrived(
    listed: DispatchRequest, request: DispatchRequest, properties: dict[str, str]
) -> ArrivedMessage:
    """What the listener is told of a record; ``listed`` is as one queue lists it."""
    return ArrivedMessage(
        listed.topic,
        listed.queue_id,
        listed.consume_queue_offset + 1,
        request.tags_code,
        request.store_timestamp,
        request.bit_map or None,
        properties,
    )
