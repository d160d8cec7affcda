"""Laws of the statistics a store keeps: they count what was put, and that alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from models.invariants.registry import invariant
from models.observations import Statistics
from models.verdict import Violation


@invariant(
    "ST-1", "the statistics are those of what was put since the store started", law="I3"
)
def statistics_count_what_was_put(
    seen: Statistics, expected: Mapping[str, tuple[int, int]], puts: int
) -> Iterator[Violation]:
    """``expected``: messages and bytes by topic; ``puts``: a batch is one."""
    told = {topic: (times, size) for topic, times, size in seen.by_topic}
    for topic in sorted({*told, *expected}):
        if told.get(topic, (0, 0)) != expected.get(topic, (0, 0)):
            yield Violation(
                f"statistics of {topic}",
                "{} messages, {} bytes".format(*told.get(topic, (0, 0))),
                "{} messages, {} bytes".format(*expected.get(topic, (0, 0))),
            )
    if sum(seen.put_times) != puts:
        yield Violation("times of puts", f"{sum(seen.put_times)} puts", f"{puts}")
