"""RecoveredEnds: where each queue ended when this life of the broker began.

A crash may take the end of a log that consumers had read already. Then its queue
offsets are given again, to other messages, and a consumer that goes on where it was
would pass over these. Up to where a queue ended at the start every offset means what it
always did. Beyond that, only a client knows what it means that has asked in this life
where to begin, or came from below; what another one says of such an offset is of an
earlier life.

RocketMQ has nothing of the kind: a surviving consumer skips what was written since
(``docs/sharp-edges.md``).
"""

from __future__ import annotations

from collections.abc import Mapping

from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

STALE = probe(
    "recovered_ends.stale", "a consumer named an offset of an earlier life of the log"
)


class RecoveredEnds:
    """The ends of all queues at the start, and who has asked since then."""

    def __init__(self, runtime: Runtime) -> None:
        self._lock = runtime.lock()
        self._ends: dict[tuple[str, int], int] = {}
        self._knowing: set[tuple[str, str, int]] = set()

    def begin(self, ends: Mapping[tuple[str, int], int]) -> None:
        """Take note of the next queue_offset of each queue that a start has found."""
        with self._lock:
            self._ends = dict(ends)
            self._knowing.clear()

    def end_of(self, topic: str, queue_id: int) -> int:
        """Where a queue ended; 0: it is younger."""
        return self._ends.get((topic, queue_id), 0)

    def knows(self, client_id: str, topic: str, queue_id: int) -> None:
        """Take note that a client knows where it is in a queue of this life."""
        with self._lock:
            self._knowing.add((client_id, topic, queue_id))

    def is_stale(self, client_id: str, topic: str, queue_id: int, offset: int) -> bool:
        """Whether a client names an offset that it cannot know from this life.

        Whoever does not say who it is, is believed.
        """
        if not client_id or offset <= self.end_of(topic, queue_id):
            return False
        with self._lock:
            is_stale = (client_id, topic, queue_id) not in self._knowing
        if is_stale:
            STALE.hit()
        return is_stale
