"""The bounds of queues that answers have shown, below which no later answer may go.

Kept between steps; forgotten at a start, a crash or a deletion of the topic.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crashmq.models.plain_state import Forked

QueueKey = tuple[str, int]


@dataclass(slots=True)
class Seen(Forked):
    """The highest min_offset and max_offset shown of each queue in this run.

    Invariants:
        bounds are queue offsets, at least 0
    """

    bounds: dict[QueueKey, tuple[int, int]] = field(default_factory=dict)

    def _check(self) -> None:
        for key, (low, high) in self.bounds.items():
            assert low >= 0, (key, low)
            assert high >= 0, (key, high)

    def saw(self, key: QueueKey, low: int, high: int) -> None:
        """Note what an answer has shown."""
        known = self.bounds.get(key)
        if known is not None and known[0] >= low and known[1] >= high:
            return
        before = known or (0, 0)
        self.bounds[key] = (max(before[0], low), max(before[1], high))

    def forget(self, key: QueueKey) -> None:
        """Note that the queue's offsets may begin again."""
        self.bounds.pop(key, None)

    def forget_lows(self) -> None:
        """Note that queues may begin earlier than was shown."""
        self.bounds = {key: (0, high) for key, (_, high) in self.bounds.items()}
