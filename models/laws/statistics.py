"""Laws of the statistics: they count exactly what was put."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from crashmq.models.laws.registry import law
from crashmq.models.limits import PUT_TIMES_MS
from crashmq.models.observations import Statistics
from crashmq.models.verdict import Violation


@law(
    "ST-1",
    "the statistics count exactly the messages, bytes and put durations of all puts "
    "appended since the store started",
    catalogue="I3",
)
def statistics_count_what_was_put(
    seen: Statistics,
    expected: Mapping[str, tuple[int, int]],
    puts: int,
    known_times_ms: Mapping[int, int] = MappingProxyType({}),
) -> Iterator[Violation]:
    """Compares the counts by topic, and how many puts took how long.

    Args:
        seen: what the store reports.
        expected: messages and bytes by topic.
        puts: how many puts there were; a batch counts as one.
        known_times_ms: how many of them took so many milliseconds; only of puts beside
            which no other op ran.

    Source: StoreStatsService#setPutMessageEntireTimeMax.
    """
    told = {topic: (times, size) for topic, times, size in seen.by_topic}
    for topic in sorted({*told, *expected}) if told != expected else ():
        if told.get(topic, (0, 0)) != expected.get(topic, (0, 0)):
            yield Violation(
                f"statistics of {topic}",
                "{} messages, {} bytes".format(*told.get(topic, (0, 0))),
                "{} messages, {} bytes".format(*expected.get(topic, (0, 0))),
            )
    if sum(seen.put_times) != puts:
        yield Violation("times of puts", f"{sum(seen.put_times)} puts", f"{puts}")
        return
    least = [0] * len(seen.put_times)
    for took_ms, times in known_times_ms.items():
        at = 1 + sum(took_ms >= end for end in PUT_TIMES_MS) if took_ms > 0 else 0
        least[at] += times
    for number, count in enumerate(seen.put_times):
        if count < least[number]:
            where = f"times of puts, range {number}"
            yield Violation(where, f"{count} puts", f"at least {least[number]}")
