"""Laws of deletion: only what may go goes, from the front, and it stays gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from models.invariants.registry import invariant
from models.verdict import Violation


@invariant(
    "DEL-1", "a start finds the log's beginning where deletion had left it", law="I14"
)
def log_begins_where_it_was_left(
    found_min: int, lowest: int, highest: int
) -> Iterator[Violation]:
    """Judged where nobody else took a file away.

    ``lowest`` is where a deletion that came to its end has left it, ``highest`` where
    one that did not could have come.
    """
    if not lowest <= found_min <= highest:
        seen = f"the log begins at {found_min}"
        expected = f"{lowest}" if lowest == highest else f"in [{lowest}, {highest}]"
        yield Violation("commitlog", seen, expected)


@invariant(
    "DEL-2",
    "a queue whose records have all expired goes on counting where they ended",
    law="I5 I6",
)
def empty_queues_keep_their_end(
    found_ends: Mapping[tuple[str, int], int], ends: Mapping[tuple[str, int], int]
) -> Iterator[Violation]:
    """Judged where nobody else touched the queues.

    ``found_ends`` are the queue offsets at which the queues' files end, ``ends`` where
    those without a record in the log must.
    """
    for (topic, queue_id), end in ends.items():
        found = found_ends.get((topic, queue_id), 0)
        if found != end:
            where = f"consumequeue/{topic}/{queue_id}"
            yield Violation(where, f"it ends at queue_offset {found}", f"{end}")
