"""Laws of dispatch: queues before the index, and only what replicas have."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.store_image import StoreImage
from crashmq.models.laws.registry import law
from crashmq.models.observations import Positions
from crashmq.models.verdict import Violation


@law(
    "DSP-1",
    "the index lists a record only after the record's ConsumeQueue does, even where a "
    "dispatch failed",
    catalogue="I4 I11",
)
def queues_come_before_the_index(
    image: StoreImage, index_slots: int, newest_at_start: int
) -> Iterator[Violation]:
    """Otherwise a query by key finds a message that no consumer gets.

    Asked while the store is up. For records up to ``newest_at_start``, a phy_offset, a
    crash may have taken the unit and left the index entry.

    Source: DefaultMessageStore#doDispatch, over its dispatcherList.
    """
    log, seen = image.commit_log, -1
    for path, _, number, entry in reversed(image.index(index_slots).entries):
        if entry.phy_offset <= newest_at_start:
            return
        record = log.record_at.get(entry.phy_offset)
        if entry.phy_offset == seen or record is None or not record.is_indexed:
            continue
        seen = entry.phy_offset
        key = (record.topic, record.queue_id)
        if record.phy_offset < log.deleted.dead_below(*key):
            continue
        queue = image.queue_at.get(key)
        last = queue.units[-1].phy_offset if queue and queue.units else -1
        if last < record.phy_offset:
            where = f"{path} entry {number}"
            listed = f"its record at {record.phy_offset} is in the index"
            topic, queue_id = key
            yield Violation(where, listed, f"a unit of it in {topic}/{queue_id}")


@law(
    "DSP-2",
    "with duplicationEnable, a record is dispatched only once the replicas have "
    "confirmed all of its bytes, and confirm_offset is not past what they have",
    catalogue="I4 I13",
)
def dispatched_is_replicated(
    image: StoreImage, now: Positions, replicated: int
) -> Iterator[Violation]:
    """``replicated`` is the phy_offset the replicas have confirmed in this run.

    Asked while the store is up; what any queue lists at a start counts as confirmed.

    Source: ReputMessageService#doReput, DefaultMessageStore#getConfirmOffset.
    """
    expected = f"at most {replicated}, what replicas have"
    if now.confirm_offset > replicated:
        yield Violation("confirm_offset", f"{now.confirm_offset}", expected)
    if now.reput_from_offset > replicated:
        yield Violation("reput_from_offset", f"{now.reput_from_offset}", expected)
    for queue in image.consume_queues:
        end = queue.units[-1].phy_offset + queue.units[-1].size if queue.units else 0
        if end > replicated:
            seen = f"its last unit leads to a record that ends at {end}"
            yield Violation(queue.name, seen, expected)
