"""ReputMessageService: passes the log's records to the dispatchers, in log order.

Source: org.apache.rocketmq.store.DefaultMessageStore.ReputMessageService, RocketMQ 5.3.
Differs: bytes that are not a record stop the replay; there, a master skips to the end
of the file, and the messages that it skips are never delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crashmq.engine.host.probe import probe
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import FlushDiskType, StoreConfig
from crashmq.engine.store.dispatch import CommitLogDispatcher, DispatchRequest

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


class ReputMessageService:
    """Dispatches new records; one round catches up with the log.

    Every record below ``reput_from_offset`` was taken by every dispatcher.

    Attributes:
        calc_bit_map: comes before all dispatchers and gives a record its bit map; a
            broker sets it. Source: CommitLogDispatcherCalcBitMap.

    Invariants:
        0 <= reput_from_offset <= the log's end, once a round has run
    """

    name = "reput"
    interval_ms = 1

    def __init__(
        self,
        config: StoreConfig,
        commit_log: CommitLog,
        dispatchers: Sequence[CommitLogDispatcher],
    ) -> None:
        self._config = config
        self._commit_log = commit_log
        self._dispatchers = dispatchers
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
        """The end of the records that may be dispatched and served.

        Source: DefaultMessageStore#getConfirmOffset: under SYNC_FLUSH only what was
        flushed, since the rest may be lost and its offsets given again.
        """
        if self._config.flush_disk_type is FlushDiskType.SYNC_FLUSH:
            return self._commit_log.flushed_where
        return self._commit_log.committed_where

    @property
    def behind(self) -> int:
        """Bytes of the log that are not dispatched yet."""
        return self.confirm_offset - self.reput_from_offset

    def run_once(self) -> int:
        """Dispatch everything there is; returns how many bytes.

        Raises:
            OSError: a dispatcher's disk failed; the replay stays at that record.

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
            PASSED.hit()
            start = self.reput_from_offset = damage.end_of(start)
            end = damage.next_start(start, end)
        data = self._commit_log.read_from(start, end)
        if not data:
            NO_DATA.hit()
            return False
        at = 0
        while at < len(data):
            request = self._commit_log.check_message(start + at, data, at)
            if request.success and request.msg_size > 0:
                self._dispatch(request)
                at += request.msg_size
                self.reput_from_offset = start + at
            elif request.success:
                FILLER.hit()
                self.reput_from_offset = self._commit_log.roll_next_file(start + at)
                return True
            elif size := self._commit_log.size_beyond(start + at, data, at):
                BEYOND_WINDOW.hit()
                start, at = start + at, 0
                data = self._commit_log.read_from(start, end, size)
                if len(data) < size:
                    return self._stop_at(start, request)
            else:
                return self._stop_at(start + at, request)
        return True

    def _dispatch(self, request: DispatchRequest) -> None:
        if self.calc_bit_map is not None and request.has_unit:
            request = request._replace(bit_map=self.calc_bit_map(request))
        try:
            for dispatcher in self._dispatchers:
                dispatcher.dispatch(request)
        except OSError:
            FAILED.hit()
            raise
        DISPATCHED.hit()

    def _stop_at(self, phy_offset: int, request: DispatchRequest) -> bool:
        (HALF if request.msg_size > 0 else ILLEGAL).hit()
        self.stopped_at = phy_offset
        return False
