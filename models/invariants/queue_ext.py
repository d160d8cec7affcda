"""Laws of what lies beside a queue: an address leads to what is its record's."""

from __future__ import annotations

from collections.abc import Iterator

from models.image.queue_ext import EXT_ADDRESS_MAX, ext_unit_at
from models.invariants.judged import Judged
from models.invariants.registry import invariant
from models.verdict import Violation


@invariant(
    "CQ-6",
    "an address in a unit leads to its record's tags code and store time",
    law="I3",
)
def addresses_lead_to_their_records(judged: Judged) -> Iterator[Violation]:
    """Which unit is which record's is CQ-1's to say; nothing proves a bit map."""
    image = judged.image
    if not judged.clean or not image.has_queue_extension:
        return
    for queue, live in image.suspect_queues:
        for unit in live:
            record = image.commit_log.record_at.get(unit.phy_offset)
            if unit.tags_code > EXT_ADDRESS_MAX or record is None:
                continue
            found = ext_unit_at(image.files, queue.name, unit.tags_code)
            wanted = (record.tags_code, record.store_timestamp)
            if found is None or found[:2] != wanted:
                where = queue.where(unit.queue_offset)
                seen = f"an address that leads to {found and found[:2]}"
                yield Violation(where, seen, f"{wanted}, as the record says")
