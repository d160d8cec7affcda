"""Laws of queue offsets: each is given to one message, without gaps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Violation


@law(
    "OFF-1",
    "within a queue, each record's queue_offset is one more than the previous one's; "
    "prepared and rolled-back records do not count",
    catalogue="I5",
)
def queue_offsets_rise_by_one(judged: Judged) -> Iterator[Violation]:
    """Compares neighbours among records of type none or commit, oldest first.

    Checked after a crash too: the log is what was appended, cut at a record.

    Source: QueueOffsetOperator#increaseQueueOffset.
    """
    image = judged.image
    for topic, queue_id in image.commit_log.misnumbered_queues:
        records = image.commit_log.indexed_records[topic, queue_id]
        for before, after in pairwise(records):
            if not image.commit_log.follow(before, after):
                yield Violation(
                    image.commit_log.where(after.phy_offset),
                    f"queue_offset {after.queue_offset} of {topic}/{queue_id}",
                    f"{before.queue_offset + 1}, one more than at phy_offset "
                    f"{before.phy_offset}",
                )
