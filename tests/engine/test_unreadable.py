"""Sectors that the medium cannot give: refused, served around, or made again."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from store_builder import LOG_FILE_SIZE, RECORD_SIZE, StoreBuilder, log_file, queue_file

from crashmq.engine.store.config import OnDamage
from crashmq.engine.store.errors import StoreCorrupted
from crashmq.engine.store.unreadable import examined, pieces, readable, with_zeros
from crashmq.models.files.store_image import decode_record
from crashmq.models.ops import DiskFault

PER_FILE = LOG_FILE_SIZE // RECORD_SIZE


def reading(*bad: int, number: int = errno.EIO) -> Callable[[int, int], bytes]:
    """A read of numbered sectors, some of which cannot be read."""

    def read(position: int, size: int) -> bytes:
        sectors = range(position // 512, (position + size - 1) // 512 + 1)
        if any(sector in bad for sector in sectors):
            raise OSError(number, "bad")
        return bytes(at // 512 + 1 for at in range(position, position + size))

    return read


@pytest.fixture
def down(store: StoreBuilder) -> StoreBuilder:
    """A store of two log files, down, all of it durable and dispatched."""
    return store.put(PER_FILE + 5).reput().make_all_durable().kill()


def pulled(store: StoreBuilder) -> list[int]:
    found: list[int] = []
    at = 0
    while (got := store.pull(at)).next_begin_offset > at:
        found += [decode_record(data).queue_offset for data in got.messages]
        at = got.next_begin_offset
    return found


def test_what_lies_before_a_bad_sector_is_as_good_as_ever() -> None:
    assert readable(reading(1), 100, 2000) == b"\1" * 412
    assert readable(reading(), 0, 600) == b"\1" * 512 + b"\2" * 88


def test_what_is_examined_ends_before_a_bad_sector() -> None:
    def read_and(
        read: Callable[[int, int], bytes],
    ) -> Callable[[int, int, Callable[[bytes], bytes]], bytes]:
        return lambda position, size, of: of(read(position, size))

    for read in (reading(1), reading()):
        seen = examined(read_and(read), read, 100, 2000, bytes.hex)
        assert seen == readable(read, 100, 2000).hex()


def test_bad_sectors_are_zeros_where_they_lie() -> None:
    data, holes = with_zeros(reading(1), 500, 600)

    assert data == b"\1" * 12 + bytes(512) + b"\3" * 76
    assert holes == [range(12, 524)]


def test_what_can_be_read_when_it_is_read_again_is_no_hole() -> None:
    reads = reading(1)
    tries: list[int] = []

    def at_the_second_time(position: int, size: int) -> bytes:
        tries.append(size)
        return bytes(size) if len(tries) > 1 else reads(position, size)

    assert with_zeros(at_the_second_time, 500, 600) == (bytes(600), [])
    assert tries == [600, 12, 512, 76]


def test_another_error_is_nobodys_bad_sector() -> None:
    interrupted = reading(0, number=errno.EINTR)

    with pytest.raises(OSError, match="bad"):
        readable(interrupted, 0, 8)
    with pytest.raises(OSError, match="bad"):
        examined(lambda at, size, _: interrupted(at, size), interrupted, 0, 8, len)
    with pytest.raises(OSError, match="bad"):
        list(pieces(interrupted, 0, 8))


@pytest.mark.parametrize("sector", [0, 1])
def test_a_log_that_cannot_be_read_is_refused_and_named(
    down: StoreBuilder, sector: int
) -> None:
    before = down.disk.files()
    down.disk.make_unreadable(log_file(), sector * 512, sector * 512 + 1)

    with pytest.raises(StoreCorrupted, match=f"{log_file()}.*cannot be read"):
        down.restart()

    assert down.disk.files() == before


def test_a_log_that_cannot_be_read_above_the_mark_is_refused_too(
    store: StoreBuilder,
) -> None:
    store.put(7).kill()
    store.disk.make_unreadable(log_file(), 512, 513)

    with pytest.raises(StoreCorrupted, match="whether the log goes on"):
        store.restart()


def test_room_that_was_never_written_need_not_be_read(store: StoreBuilder) -> None:
    store.put(2).reput().make_all_durable().kill()
    store.disk.make_unreadable(log_file(), 512, 1024)

    store.restart().put(6).reput()

    assert pulled(store) == list(range(8))
    assert store.disk.unreadable() == ()


def test_a_store_that_serves_around_damage_serves_around_bad_sectors(
    down: StoreBuilder,
) -> None:
    down.configured(on_damage=OnDamage.SERVE)
    down.disk.make_unreadable(log_file(), 0, 1)

    down.restart().reput()

    assert pulled(down) == list(range(6, PER_FILE + 5))
    ranges = [(at.start, at.end) for at in down.live.damaged_ranges]
    assert ranges == [(0, 6 * RECORD_SIZE)]


def test_a_queue_that_cannot_be_read_is_made_again(down: StoreBuilder) -> None:
    down.disk.make_unreadable(queue_file(), 0, 1)

    down.restart().reput()

    assert pulled(down) == list(range(PER_FILE + 5))
    assert down.disk.unreadable() == ()


def test_a_bad_sector_is_mended_though_its_units_read_as_they_were() -> None:
    """Zeros are taken for it, and the last unit ends with zeros."""
    store = StoreBuilder().configured(mapped_file_size_consume_queue=800)
    store.put(26).reput().make_all_durable().stop()
    store.disk.make_unreadable(queue_file(), 512, 513)

    store.restart().put(1).reput()

    assert pulled(store) == list(range(27))
    assert store.disk.unreadable() == ()


def test_a_checkpoint_that_cannot_be_read_is_refused(down: StoreBuilder) -> None:
    down.disk.make_unreadable("checkpoint", 0, 1)

    with pytest.raises(StoreCorrupted, match="checkpoint"):
        down.restart()


def test_a_read_that_fails_once_costs_nothing(down: StoreBuilder) -> None:
    down.disk.fail(DiskFault("read", "EIO", path="commitlog"))

    assert pulled(down.restart().reput()) == list(range(PER_FILE + 5))
