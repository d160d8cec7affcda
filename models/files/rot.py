"""Finds the records of the log in which bytes were changed from outside."""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.models.files.log import LogImage
from crashmq.models.files.record import Record
from crashmq.models.observations import Damaged


def rotten_records(log: LogImage, damages: Sequence[Damaged]) -> frozenset[Record]:
    """Records of the chain that lie in a damaged range, although they look intact."""
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
