"""Group commit: one sync answers every put that waits for it.

A waiting put registers the offset at which its record ends, and is answered exactly
once: by the round whose sync covers it, by the shutdown of the store, or by its own
time-out.

Source: org.apache.rocketmq.store.CommitLog.GroupCommitService, GroupCommitRequest,
RocketMQ 5.3. Differs: a round commits write buffers itself, where RocketMQ waits for
another service; a failed sync acknowledges nothing; and a store that stops answers
waiting puts by what is durable then.
"""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.flush import CommitLogFlusher
from crashmq.engine.store.results import PutMessageStatus

COMMITTED = probe("flush.group.committed", "a sync answered a waiting put")
BEFORE = probe("flush.group.before", "a waiting put was durable already")
IDLE = probe("flush.group.idle", "a group commit without a waiting put")
FAILED = probe("flush.group.failed", "a failed sync answered a waiting put")
TIMED_OUT = probe("flush.group.timed_out", "a put's wait for its sync timed out")
STOPPED = probe("flush.group.stopped", "a waiting put was answered by the shutdown")


class GroupCommitRequest:
    """A put that waits until flushed_where reaches ``next_offset``."""

    def __init__(self, next_offset: int, runtime: Runtime) -> None:
        self.next_offset = next_offset
        self._done = runtime.event()
        self._answers: list[PutMessageStatus] = []

    def complete(self, status: PutMessageStatus) -> None:
        """Answer the put; only the first answer counts."""
        self._answers.append(status)
        self._done.set()

    def wait(self, timeout_ms: int) -> PutMessageStatus:
        """Wait for the answer; FLUSH_DISK_TIMEOUT if none came in time."""
        if not self._done.wait(timeout_ms):
            TIMED_OUT.hit()
            self.complete(PutMessageStatus.FLUSH_DISK_TIMEOUT)
        return self._answers[0]


class GroupCommitService:
    """SYNC_FLUSH: syncs when a put waits, and otherwise every few milliseconds."""

    name = "flush_commit_log"
    interval_ms = 10

    def __init__(
        self, commit_log: CommitLog, flusher: CommitLogFlusher, runtime: Runtime
    ) -> None:
        self._commit_log = commit_log
        self._flusher = flusher
        self._runtime = runtime
        self._lock = runtime.lock()
        self._requests: list[GroupCommitRequest] = []
        self._wake: Callable[[], None] | None = None
        self._stopped = False

    def on_work(self, wake: Callable[[], None]) -> None:
        """Register ``wake``, to be called when a put begins to wait."""
        self._wake = wake

    def put_request(self, next_offset: int) -> GroupCommitRequest:
        """Register a put that waits until flushed_where reaches ``next_offset``.

        Source: GroupCommitService#putRequest.
        """
        request = GroupCommitRequest(next_offset, self._runtime)
        with self._lock:
            self._requests.append(request)
            stopped = self._stopped
        if stopped:
            self.stop()
        elif self._wake is not None:
            self._wake()
        return request

    def run_once(self) -> int:
        """Sync and answer every waiting put; returns answers plus syncs.

        Raises:
            OSError: the disk failed the sync; every waiting put was answered.

        Source: GroupCommitService#doCommit.
        """
        requests = self._take_requests()
        try:
            self._commit_log.commit_all()
            if not requests:
                IDLE.hit()
                return int(self._flusher.flush(0))
            for request in requests:
                self._commit(request)
        except OSError:
            for request in requests:
                request.complete(PutMessageStatus.FLUSH_DISK_TIMEOUT)
            raise
        return len(requests)

    def _take_requests(self) -> list[GroupCommitRequest]:
        with self._lock:
            requests, self._requests = self._requests, []
        return requests

    def _commit(self, request: GroupCommitRequest) -> None:
        if self._commit_log.flushed_where >= request.next_offset:
            BEFORE.hit()
        while (before := self._commit_log.flushed_where) < request.next_offset:
            self._flusher.flush(0)
            # Another flush may have moved the mark meanwhile, so look at the mark.
            if self._commit_log.flushed_where == before:
                FAILED.hit()
                request.complete(PutMessageStatus.FLUSH_DISK_TIMEOUT)
                return
        COMMITTED.hit()
        request.complete(PutMessageStatus.PUT_OK)

    def stop(self) -> None:
        """Answer puts that wait, now or later, by what is durable.

        Source: GroupCommitService#run, its last doCommit.
        """
        with self._lock:
            self._stopped = True
        for request in self._take_requests():
            STOPPED.hit()
            is_durable = self._commit_log.flushed_where >= request.next_offset
            request.complete(
                PutMessageStatus.PUT_OK
                if is_durable
                else PutMessageStatus.FLUSH_DISK_TIMEOUT
            )
