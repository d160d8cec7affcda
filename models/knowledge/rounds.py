"""What rounds have done in this run of a store, and what they must do next.

A flush round normally writes whole pages only. Once the thorough interval has passed
since the last thorough round, it writes everything; so does the first round of a run.
The begin of the last thorough round is known exactly, or between two times if other ops
overlapped.

Source: FlushRealTimeService, CommitRealTimeService, FlushConsumeQueueService.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from crashmq.models.history import RoundDone, Step
from crashmq.models.plain_state import Forked
from crashmq.models.program import COMMIT_THOROUGH_MS, FLUSH_THOROUGH_MS

INTERVALS_MS = {
    "flush_commit_log": FLUSH_THOROUGH_MS,
    "commit": COMMIT_THOROUGH_MS,
    "flush_consume_queue": FLUSH_THOROUGH_MS,
}


class Within(NamedTuple):
    """Bounds of the wall-clock time of an event."""

    least_ms: int
    most_ms: int

    def is_past(self, now_ms: int, interval_ms: int) -> bool | None:
        """Whether the interval has passed, or the clock was set back; None: unknown."""
        if now_ms - self.most_ms >= interval_ms or now_ms < self.least_ms:
            return True
        if now_ms >= self.most_ms and now_ms - self.least_ms < interval_ms:
            return False
        return None


_NEVER = Within(0, 0)


@dataclass(slots=True)
class Rounds(Forked):
    """What rounds of services have done in the present run.

    Attributes:
        thorough: by service, when its last thorough round began; a service that is
            missing is unknown.
        begun_at: the phy_offset where the log's files ended when the run began; -1:
            unknown.
        put_from: where the log ended when the run began: what lies behind was put in
            it; -1: unknown.
        durable_until: units of records below this phy_offset are on the medium, by a
            thorough flush of the queues.
        index_until: full index files of records below this phy_offset are on the
            medium, by a flush of the index that had to sync some.
        index_names: the names of the index files after the last step, as numbers; None:
            unknown.
        newest_index: the newest name that an index file has had in this run.
        replicated: in a store that waits for replicas, bounds of the phy_offset up to
            which these have the log, as far as the store was told.
    """

    thorough: dict[str, Within] = field(default_factory=dict)
    begun_at: int = -1
    put_from: int = -1
    durable_until: int = 0
    index_until: int = 0
    index_names: frozenset[int] | None = None
    newest_index: int = 0
    replicated: tuple[int, int] = (0, 0)

    def end_life(self) -> None:
        """Forget everything, since no store runs."""
        self.thorough = {}
        self.begun_at, self.durable_until, self.index_until = -1, 0, 0
        self.put_from = -1

    def begin_life(self, files_end: int, log_end: int) -> None:
        """Record that a start succeeded when the log ended at ``log_end``.

        Its files ended at ``files_end``.
        """
        self.put_from = log_end
        self.thorough = dict.fromkeys(INTERVALS_MS, _NEVER)
        self.begun_at, self.durable_until, self.index_until = files_end, 0, 0

    def is_set_back(self, done: RoundDone) -> bool:
        """Whether a round began before the last thorough one, by the clock."""
        last = self.thorough.get(done.service)
        return last is not None and done.began_ms < last.least_ms

    def takes_all(self, done: RoundDone) -> bool | None:
        """Whether a round had to be thorough, or must not; None: unknown.

        Call it once for each round that nothing overlapped.
        """
        interval_ms = INTERVALS_MS.get(done.service)
        last = self.thorough.get(done.service)
        if interval_ms is None or last is None:
            return None
        is_past = last.is_past(done.began_ms, interval_ms)
        if is_past is None:
            self.thorough[done.service] = last._replace(most_ms=done.began_ms)
        elif is_past:
            self.thorough[done.service] = Within(done.began_ms, done.began_ms)
        return is_past

    def saw_unclear(self, step: Step, service: str) -> None:
        """Record that rounds of a service ran at unknown times of a step, or failed."""
        last = self.thorough.get(service)
        if last is None:
            return
        if step.sets_back or step.world.now_ms < last.most_ms:
            del self.thorough[service]
        else:
            # Of a clock that was set back before, each of them may have taken all.
            least_ms = min(last.least_ms, step.entries[0].at_ms)
            self.thorough[service] = Within(least_ms, step.world.now_ms)
