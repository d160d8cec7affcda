"""Laws of the medium, each seen to fire and to hold."""

from __future__ import annotations

import struct

import pytest
from written_store import summed_slot_bytes

from crashmq.models.files.store_image import StoreImage, read_store
from crashmq.models.laws.medium import (
    names_are_durable_in_order,
    room_is_durable,
    start_leaves_nothing_to_lose,
    what_the_checkpoint_tells_of_is_on_the_medium,
)
from crashmq.models.observations import HalfMade

QUEUE = f"consumequeue/T0/0/{0:020d}"
LOG = f"commitlog/{0:020d}"
INDEX = "index/20260101120000000"
UNITS = b"".join(struct.pack(">qiq", at, 131, 0) for at in (0, 131, 262))
FULL, WITH_ROOM = UNITS, UNITS + bytes(20)


@pytest.mark.parametrize(
    ("path", "was", "now", "ended", "broken"),
    [
        (QUEUE, FULL, FULL, False, 0),
        (QUEUE, WITH_ROOM, WITH_ROOM, False, 1),
        (QUEUE, FULL, FULL, True, 1),
        (QUEUE, FULL[:40], FULL, False, 1),
        (QUEUE, None, FULL, False, 1),
        (INDEX, b"i", b"i", False, 0),
        (LOG, b"l", b"l", False, 1),
        ("checkpoint", b"c", b"c", False, 1),
        ("abort", b"1", b"1", False, 0),
    ],
)
def test_a_start_leaves_what_it_found_of_queues_and_index_alone(
    path: str, was: bytes | None, now: bytes, ended: bool, broken: int
) -> None:
    found = {} if was is None else {path: was}

    seen = start_leaves_nothing_to_lose.violations(
        {path: 0}, found, {path: now}, ended=ended, damaged=False
    )

    assert len(seen) == broken


def test_a_start_leaves_an_abort_file_whose_name_is_synced() -> None:
    law, files = start_leaves_nothing_to_lose, {"abort": b"1"}

    seen = law.violations({"abort": 0}, {}, files, ["abort"], ended=True, damaged=False)

    assert len(seen) == 1


def test_a_filler_behind_damage_may_wait_for_a_flush() -> None:
    law, files = start_leaves_nothing_to_lose, {LOG: b"l"}

    assert not law.violations({LOG: 9}, files, files, ended=False, damaged=True)


def told(dispatched: int, index_ms: int = 0) -> StoreImage:
    """A store whose checkpoint tells of so much."""
    fields = struct.pack(">qqqqq", 0, 0, index_ms, 0, 0)
    slot = summed_slot_bytes(1, 393, dispatched, ())
    checkpoint = (fields.ljust(512, b"\0") + slot).ljust(4096, b"\0")
    header = struct.pack(">qqqqii", 1000, 2000, 0, 262, 1, 3).ljust(100, b"\0")
    files = {QUEUE: UNITS, "checkpoint": checkpoint, INDEX: header}
    return read_store({**files, LOG: bytes(4096)})


@pytest.mark.parametrize(
    ("path", "first", "dispatched", "index_ms", "broken"),
    [
        (QUEUE, 45, 262, 0, 0),
        (QUEUE, 45, 263, 0, 1),
        (QUEUE, 20, 131, 0, 0),
        (QUEUE, 39, 132, 0, 1),
        (INDEX, 5, 0, 2000, 0),
        (INDEX, 5, 0, 2001, 1),
        (LOG, 0, 393, 2001, 0),
    ],
)
def test_what_the_checkpoint_tells_of_is_synced(
    path: str, first: int, dispatched: int, index_ms: int, broken: int
) -> None:
    seen = what_the_checkpoint_tells_of_is_on_the_medium.violations(
        {path: first}, told(dispatched, index_ms)
    )

    assert len(seen) == broken


NEXT = f"commitlog/{4096:020d}"


@pytest.mark.parametrize(
    ("names", "files", "broken"),
    [
        ((LOG,), (LOG, NEXT), 1),
        ((NEXT,), (LOG, NEXT), 0),
        ((LOG, NEXT), (LOG, NEXT), 1),
        ((LOG,), (LOG, QUEUE), 0),
        ((LOG,), (LOG, "commitlog/lost+found"), 0),
        ((QUEUE,), (LOG, QUEUE, f"consumequeue/T0/0/{200:020d}"), 1),
        ((INDEX,), (INDEX, f"{INDEX[:-1]}1"), 0),
    ],
)
def test_a_name_is_durable_before_the_next_file_is_made(
    names: tuple[str, ...], files: tuple[str, ...], broken: int
) -> None:
    seen = names_are_durable_in_order.violations(HalfMade(names=names), files)

    assert len(seen) == broken


def test_room_of_the_log_and_the_queues_is_synced_before_it_is_used() -> None:
    half_made = HalfMade(rooms=(LOG, QUEUE, "checkpoint"))

    seen = room_is_durable.violations(half_made)

    assert [breach.where for breach in seen] == [LOG, QUEUE]
