"""StoreStatsService: counts puts since the start, by topic and by duration.

Source: org.apache.rocketmq.store.StoreStatsService, RocketMQ 5.3. Differs: averages and
rates are left to the reader of the counts.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from crashmq.engine.host.runtime import Runtime

# Where RocketMQ's ranges end, in milliseconds: the first at 0, each other before its
# end; what took longer is the last.
PUT_TIME_ENDS_MS = (
    *(0, 10, 50, 100, 200, 500),
    *(1000, 2000, 3000, 4000, 5000, 10_000),
)


class TopicStats(NamedTuple):
    """The messages of one topic, and the bytes of their records."""

    times: int
    size: int


class StoreStatsService:
    """Counts appended messages; every start begins at zero."""

    def __init__(self, runtime: Runtime) -> None:
        self._lock = runtime.lock()
        self._put_by_topic: dict[str, list[int]] = {}
        self.put_time_distribution = [0] * (len(PUT_TIME_ENDS_MS) + 1)

    @property
    def put_by_topic(self) -> dict[str, TopicStats]:
        """The counts of each topic."""
        return {topic: TopicStats(*n) for topic, n in self._put_by_topic.items()}

    def count_put(self, topic: str, times: int, size: int, took_ms: int) -> None:
        """Count one put of ``times`` messages, ``size`` bytes, that ran ``took_ms``.

        Source: CommitLog#asyncPutMessage, StoreStatsService#setPutMessageEntireTimeMax.
        """
        at = bisect_right(PUT_TIME_ENDS_MS, took_ms) if took_ms > 0 else 0
        with self._lock:
            self._count(topic, times, size)
            self.put_time_distribution[at] += 1

    def count_dispatched(self, topic: str, times: int, size: int) -> None:
        """Count messages that a slave has dispatched: nobody puts them there.

        Source: ReputMessageService#doReput, of a slave without duplication.
        """
        with self._lock:
            self._count(topic, times, size)

    def _count(self, topic: str, times: int, size: int) -> None:
        counts = self._put_by_topic.get(topic)
        if counts is None:
            counts = self._put_by_topic[topic] = [0, 0]
        counts[0] += times
        counts[1] += size
