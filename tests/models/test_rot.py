"""Which records of a log have bytes that were changed from outside."""

from __future__ import annotations

import pytest
from written_store import WrittenStore, log_path

from crashmq.models.files.rot import rotten_records
from crashmq.models.files.store_image import read_store
from crashmq.models.observations import Damaged

STORE = WrittenStore().fill(40)
FIRST, SECOND = STORE.records[:2]


@pytest.mark.parametrize(
    ("start", "end", "rotten"),
    [
        (FIRST[1] - 1, FIRST[1], [FIRST]),
        (SECOND[0], SECOND[0] + 1, [SECOND]),
        (FIRST[1] - 1, FIRST[1] + 1, [FIRST, SECOND]),
        (SECOND[0] + 4, SECOND[0] + 4, []),
    ],
)
def test_a_record_with_a_changed_byte_is_rotten(
    start: int, end: int, rotten: list[tuple[int, int]]
) -> None:
    log = read_store(STORE.files()).commit_log

    found = rotten_records(log, [Damaged(log_path(0), start, end)])

    assert sorted((record.phy_offset, record.size) for record in found) == rotten


def test_damage_is_counted_from_the_base_of_its_file() -> None:
    log = read_store(STORE.files()).commit_log
    (there,) = (r for r in log.records if r.phy_offset == 4096)

    elsewhere = Damaged("consumequeue/T0/0/00000000000000000000", 0, 8)

    assert rotten_records(log, [Damaged(log_path(4096), 0, 1), elsewhere]) == {there}
