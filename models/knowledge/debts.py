"""What waits for a sync or a commit in one run of a store, and which flushes failed.

After a failed flush of a service, no flush of it counts until the next start. A service
whose rounds run often handles all that waited once its thorough interval has passed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from crashmq.models.history import Step
from crashmq.models.knowledge.seen import Seen
from crashmq.models.observations import Failed, Observation, Positions, PutStatus
from crashmq.models.ops import Event, RunService
from crashmq.models.plain_state import Forked
from crashmq.models.program import COMMIT_THOROUGH_MS, FLUSH_THOROUGH_MS, Setup
from crashmq.models.within import each_within

DELETION = "delete_topic"
FLUSHES = frozenset({"flush_commit_log", "flush_consume_queue", "flush_index"})


class Waiting(NamedTuple):
    """Bytes below phy_offset ``until`` have waited since ``since_ms`` at the latest."""

    since_ms: int
    until: int

    def is_due(self, now_ms: int, interval_ms: int = FLUSH_THOROUGH_MS) -> bool:
        """Whether the thorough interval has passed, so that a round takes it all."""
        return now_ms - self.since_ms >= interval_ms


@dataclass(slots=True)
class Debts(Forked):
    """What waits for a sync between two steps of one run, and what readers were shown.

    Attributes:
        failed: the services whose flush has failed, and ``DELETION`` if a deletion has
            failed half-way.
        may_be_amid: a deletion has failed; if puts are refused afterwards, it has
            failed half-way.
        unflushed: bytes of one log file that wait for their sync.
        uncommitted: bytes of the log that wait in a write buffer.
        undurable: records whose consume queue units may wait for their sync.
        newest_ms: the latest time of the clock so far. If the clock was set back, the
            last thorough round may have run at that time.
        seen: the bounds of queues that answers of this run have shown.
    """

    setup: Setup = field(compare=False)
    failed: frozenset[str] = frozenset()
    may_be_amid: bool = False
    unflushed: Waiting | None = None
    uncommitted: Waiting | None = None
    undurable: Waiting | None = None
    newest_ms: int = 0
    seen: Seen = field(default_factory=Seen)

    def saw_failures(self, step: Step, *, life_ended: bool) -> None:
        """Note the failed flushes and deletions of a step, and its clock."""
        if life_ended or step.starts or step.ended.stops:
            self.failed = frozenset()
            begun = step.begun.deletions if step.begun is not None else ()
            self.may_be_amid = any(seen is None for _, seen in begun)
            self.forgive()
        elif step.raised or step.ended.puts:
            told = {answer.status for _, answer in step.ended.puts if answer}
            self.failed |= self._failed_flushes(step, told)
            self._see_deletions(step, told)
        if step.sets_back:
            # The clock may have been ahead by so much, at most.
            self.newest_ms += sum([max(0, ms) for ms in step.clock_moves_ms])
            self.newest_ms += step.stalled_ms
        self.newest_ms = max(self.newest_ms, step.world.now_ms)

    def forgive(self) -> None:
        """Forget what waits, since the time when it is due is unknown."""
        self.unflushed = self.uncommitted = self.undurable = None

    def _failed_flushes(self, step: Step, told: set[PutStatus]) -> set[str]:
        """The services whose round raised; the log's too after a FLUSH_DISK_TIMEOUT."""
        failed = _raised(step.op, step.seen) & FLUSHES if step.raised else set()
        if self.setup.transient_store_pool:
            # A round may have failed to take a buffer to the file, which is no sync.
            return failed - {"flush_commit_log"}
        timed_out = "FLUSH_DISK_TIMEOUT" in told
        if timed_out and not (step.stalled_ms or step.is_stopping):
            failed.add("flush_commit_log")
        return failed

    def _see_deletions(self, step: Step, told: set[PutStatus]) -> None:
        """Note a failed deletion: it has changed nothing, or puts are refused now."""
        is_clear = not (self.setup.disk_capacity or step.is_stopping)
        if self.may_be_amid and "SERVICE_NOT_AVAILABLE" in told and is_clear:
            self.failed |= {DELETION}
        if step.raised and any(seen is None for _, seen in step.deletions):
            self.may_be_amid = True

    def due(self, service: str, now_ms: int) -> Waiting | None:
        """What the round that ends now had to sync or commit; None if nothing."""
        if service == "flush_commit_log":
            waits, interval_ms = self.unflushed, FLUSH_THOROUGH_MS
        elif service == "commit":
            waits, interval_ms = self.uncommitted, COMMIT_THOROUGH_MS
        elif service == "flush_consume_queue":
            waits, interval_ms = self.undurable, FLUSH_THOROUGH_MS
        else:
            return None
        is_due = waits is not None and waits.is_due(now_ms, interval_ms)
        return waits if is_due else None

    def saw_positions(self, now: Positions, *, queues_flushed: bool) -> None:
        """Note what was synced or committed, and what waits from now on."""
        if self.unflushed is not None and now.flushed_where >= self.unflushed.until:
            self.unflushed = None
        waits = self.uncommitted
        if waits is not None and now.committed_where >= waits.until:
            self.uncommitted = None
        if queues_flushed:
            self.undurable = None
        since_ms = self.newest_ms
        if self.unflushed is None and now.committed_where > now.flushed_where:
            size = self.setup.log_file_size
            end = now.flushed_where - now.flushed_where % size + size
            self.unflushed = Waiting(since_ms, min(end, now.committed_where))
        if self.uncommitted is None and now.max_phy_offset > now.committed_where >= 0:
            self.uncommitted = Waiting(since_ms, now.max_phy_offset)
        if self.undurable is None and now.reput_from_offset > 0:
            self.undurable = Waiting(since_ms, now.reput_from_offset)


def _raised(op: Event, seen: Observation) -> set[str]:
    """The services of which a round raised an OSError."""
    return {
        one.service
        for one, of in each_within(op, seen)
        if isinstance(one, RunService) and isinstance(of, Failed)
        if of.error == "OSError"
    }
