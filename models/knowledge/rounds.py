"""What one life of a store has had of rounds: when each service last took everything.

A flush looks at whole pages only, and at every byte once an interval has passed since
it last did; its first round in a life does so. When its last such round began is known
exactly, or between two times where others acted beside it.

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
    """Something happened at the earliest, and at the latest, by the wall clock."""

    least_ms: int
    most_ms: int

    def is_past(self, now_ms: int, interval_ms: int) -> bool | None:
        """Whether it is so long ago, or ahead of the clock; None: it may be."""
        if now_ms - self.most_ms >= interval_ms or now_ms < self.least_ms:
            return True
        if now_ms >= self.most_ms and now_ms - self.least_ms < interval_ms:
            return False
        return None


_NEVER = Within(0, 0)


@dataclass(slots=True)
class Rounds(Forked):
    """What rounds of the present life have done.

    Attributes:
        thorough: of a flush, when its last round began that took everything; a service
            that is missing is not known of.
        begun_at: where the log's files ended when the life began; -1: unknown.
        durable_until: units of records below are on the medium, by a flush of queues
            that took everything.
        index_until: index files that are full of records below are on the medium, by a
            flush of the index that had work.
    """

    thorough: dict[str, Within] = field(default_factory=dict)
    begun_at: int = -1
    durable_until: int = 0
    index_until: int = 0

    def end_life(self) -> None:
        """Forget all: no store runs."""
        self.thorough = {}
        self.begun_at, self.durable_until, self.index_until = -1, 0, 0

    def begin_life(self, files_end: int) -> None:
        """A start has succeeded; the log's files ended at ``files_end`` then."""
        self.thorough = dict.fromkeys(INTERVALS_MS, _NEVER)
        self.begun_at, self.durable_until, self.index_until = files_end, 0, 0

    def takes_all(self, done: RoundDone) -> bool | None:
        """Whether a round had to take everything, or may not; None: unknown.

        Asked once of each round that had no other beside it.
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
        """Rounds of a service ran at unknown times of a step, or failed."""
        last = self.thorough.get(service)
        if last is None:
            return
        if step.sets_back or step.world.now_ms < last.most_ms:
            del self.thorough[service]
        else:
            self.thorough[service] = last._replace(most_ms=step.world.now_ms)
