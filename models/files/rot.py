"""Which records lie where bytes of the log were changed from outside."""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.models.files.log import LogImage
from crashmq.models.files.record import Record
from crashmq.models.observations import Damaged


def rotten_records(log: LogImage, damages: Sequence[Damaged]) -> frozenset[Record]:
    """Intact-looking records of the chain in which a byte was changed."""
    base_of = {file.path: file.base for file in log.files}
    ranges = [
        (base_of[damage.path] + damage.start, base_of[damage.path] + damage.end)
        for damage in damages
        if damage.path in base_of and damage.start < damage.end
    ]
    return frozenset(
        record
        for record in log.records
        if any(start < record.end and record.phy_offset < end for start, end in ranges)
    )
