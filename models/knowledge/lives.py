"""Which offsets of earlier runs of a broker are good in the present one.

A crash may take the end of the log, and the offsets of what was lost are given again.
So a broker believes a client of an earlier run up to where its queue ended at each
start since; beyond that it sends the client back, which then gets messages again.

Source: docs/sharp-edges.md; RocketMQ has nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.plain_state import Forked

RUNS_KEPT = 4
"""Of so many starts the ends are known; a broker keeps those of eight."""


@dataclass(slots=True)
class Lives(Forked):
    """Where queues ended at the newest starts of one broker.

    Attributes:
        ends: by the number of the run that began, the ends of all queues with messages.
        deleted: the topics of which a deletion was ever asked: their offsets begin
            anew, or may do so after the next crash.
    """

    ends: dict[int, Mapping[QueueKey, int]] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()

    def may_be_deleted(self, topic: str) -> None:
        """Record that somebody wants a topic to be deleted, or a queue of it."""
        self.deleted |= {topic}

    def forget(self) -> None:
        """Record that the broker may have lost what it knew of earlier runs."""
        self.ends.clear()

    def began(self, run: int, ends: Mapping[QueueKey, int] | None) -> None:
        """Record where queues ended at the start that began a run; None: unknown."""
        if ends is not None:
            self.ends[run] = ends
        self.ends.pop(run - RUNS_KEPT, None)

    def end_since(self, queue: QueueKey, run: int, now: int) -> int | None:
        """Where a queue ended at the lowest of the starts after ``run`` up to ``now``.

        None: that is unknown, or none of them is known to be.
        """
        ends = self._ends_since(queue, run, now)
        return None if ends is None else min(ends, default=None)

    def are_good(self, queue: QueueKey, offset: int, run: int, now: int) -> bool:
        """Whether an offset that a client has of ``run`` is certainly good in ``now``.

        It must lie in a queue of which nothing before it was lost in between.
        """
        ends = self._ends_since(queue, run, now)
        return ends is not None and all(offset <= end for end in ends)

    def _ends_since(self, queue: QueueKey, run: int, now: int) -> list[int] | None:
        """Where a queue ended at each start after ``run``; None: not all are known."""
        since = [self.ends.get(one) for one in range(run + 1, now + 1)]
        known = [ends.get(queue, 0) for ends in since if ends is not None]
        is_unknown = queue[0] in self.deleted or len(known) < len(since)
        return None if is_unknown else known
