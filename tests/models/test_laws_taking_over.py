"""Laws of a start on a directory that another program may have written to."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from written_store import WrittenStore, unit_bytes

from crashmq.models.files.store_image import StoreImage, read_store
from crashmq.models.laws.taking_over import no_unit_of_others_is_cut

UNIT_SIZE = 20
PATH = f"consumequeue/T0/0/{0:020d}"
WRITTEN = WrittenStore().put("T0", 0).put("T0", 0)
END = len(WRITTEN.log)


def with_units(*units: bytes, crashed: bool = False) -> StoreImage:
    """The written store with other units in its only queue."""
    files = dict(WRITTEN.files())
    files[PATH] = b"".join(units).ljust(200, b"\0")
    if crashed:
        files["abort"] = b"1"
    return read_store(files)


FIRST, SECOND = WRITTEN.units["T0", 0]
UNKNOWN = unit_bytes(7, 90)
PAST_THE_END = unit_bytes(END, 90)


def cut(
    found: StoreImage, left: StoreImage, deleted: Collection[tuple[str, int]] = ()
) -> list[str]:
    judged = no_unit_of_others_is_cut.violations(found, left, deleted)
    return [violation.where for violation in judged]


def test_units_that_stay_and_units_that_dispatch_writes_again_are_right() -> None:
    found = with_units(FIRST, SECOND, UNKNOWN)

    assert not cut(found, found)
    assert not cut(with_units(FIRST, SECOND), with_units(FIRST))
    assert not cut(with_units(FIRST, UNKNOWN), with_units(FIRST))


def test_a_unit_that_nobody_writes_again_is_missed() -> None:
    found, left = with_units(FIRST, SECOND, UNKNOWN), with_units(FIRST, SECOND)

    (where,) = cut(found, left)

    assert where == f"{PATH} byte {2 * UNIT_SIZE} (queue_offset 2)"
    assert not cut(found, left, {("T0", 0)})


def test_what_cannot_point_at_a_record_is_no_unit() -> None:
    for spoilt in (unit_bytes(-1, 90), unit_bytes(0, 0), unit_bytes(7, -90)):
        assert not cut(with_units(FIRST, spoilt), with_units(FIRST))


@pytest.mark.parametrize("crashed", [False, True])
def test_a_unit_past_the_log_may_go_after_a_crash_alone(crashed: bool) -> None:
    found = with_units(FIRST, SECOND, PAST_THE_END, crashed=crashed)
    left = with_units(FIRST, SECOND)

    assert bool(cut(found, left)) is not crashed
