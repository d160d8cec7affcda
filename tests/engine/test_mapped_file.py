"""One file: three positions, appends, syncs, and what becomes of its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashmq.engine.host.disk import PAGE_SIZE, Disk
from crashmq.engine.host.real_disk import RealDisk
from crashmq.engine.store.logfile.mapped_file import MappedFile, file_name
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.ops import Crash, DiskFault, Survivors

SIZE = 4 * PAGE_SIZE
PATH = f"f/{file_name(SIZE)}"


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk()


def created(disk: Disk, size: int = SIZE) -> MappedFile:
    disk.make_dir("f")
    return MappedFile(disk, PATH, size, create=True)


def positions(file: MappedFile) -> tuple[int, int, int]:
    return file.flushed, file.committed, file.wrote


def test_a_file_is_named_by_its_offset_in_twenty_digits() -> None:
    assert file_name(1073741824) == "00000000001073741824"
    assert file_name(10**20) == "100000000000000000000"


def test_a_new_file_is_empty_and_knows_where_it_begins(disk: SimDisk) -> None:
    file = created(disk.mount())

    assert positions(file) == (0, 0, 0)
    assert (file.file_from_offset, file.end_offset) == (SIZE, 2 * SIZE)
    assert disk.files()[PATH] == bytes(SIZE)


def test_an_append_moves_wrote_and_committed_alone(disk: SimDisk) -> None:
    file = created(disk.mount())

    assert file.append_message(b"abc")

    assert positions(file) == (0, 3, 3)
    assert file.read(0, 4) == b"abc\0"


def test_an_append_may_fill_the_file_to_its_last_byte(disk: SimDisk) -> None:
    file = created(disk.mount())

    assert file.append_message(b"x" * SIZE)

    assert file.is_full
    assert not file.append_message(b"y")


def test_an_append_that_does_not_fit_does_nothing(disk: SimDisk) -> None:
    file = created(disk.mount())
    file.append_message(b"x" * (SIZE - 2))

    assert not file.append_message(b"abc")

    assert positions(file) == (0, SIZE - 2, SIZE - 2)
    assert file.read(SIZE - 2, 2) == b"\0\0"


def test_a_filler_counts_more_than_it_writes(disk: SimDisk) -> None:
    file = created(disk.mount())
    file.append_message(b"x" * 100)

    assert file.append_declared(b"filler!!", SIZE - 100)

    assert file.is_full
    assert file.read(100, SIZE - 100) == b"filler!!".ljust(SIZE - 100, b"\0")


def test_a_failed_write_moves_no_position(disk: SimDisk) -> None:
    file = created(disk.mount())
    disk.fail(DiskFault("write", "EIO"))

    with pytest.raises(OSError, match="write"):
        file.append_message(b"abc")

    assert positions(file) == (0, 0, 0)


def test_a_flush_moves_flushed_to_wrote_and_survives_power_loss(disk: SimDisk) -> None:
    file = created(disk.mount())
    file.append_message(b"abc")
    file.store_timestamp = 77

    assert file.flush(0) == 3

    assert positions(file) == (3, 3, 3)
    assert file.flushed_timestamp == 77
    assert disk.durable_files()[PATH].startswith(b"abc")


def test_a_failed_sync_moves_nothing(disk: SimDisk) -> None:
    file = created(disk.mount())
    file.append_message(b"abc")
    file.store_timestamp = 77
    disk.fail(DiskFault("sync", "EIO"))

    with pytest.raises(OSError, match="sync"):
        file.flush(0)

    assert positions(file) == (0, 3, 3)
    assert file.flushed_timestamp == 0


@pytest.mark.parametrize(
    ("flushed", "wrote", "least_pages", "is_able"),
    [
        (0, 0, 0, False),
        (0, 1, 0, True),
        (0, PAGE_SIZE, 2, False),
        (0, 2 * PAGE_SIZE - 1, 2, False),
        (0, 2 * PAGE_SIZE, 2, True),
        (PAGE_SIZE - 1, 2 * PAGE_SIZE, 2, True),  # pages begun, not bytes
        (PAGE_SIZE, 3 * PAGE_SIZE - 1, 2, False),
        (SIZE - 1, SIZE, 4, True),  # a full file is always worth it
        (SIZE, SIZE, 0, False),
        (SIZE, SIZE, 4, False),
    ],
)
def test_least_pages_count_page_numbers(
    disk: SimDisk, flushed: int, wrote: int, least_pages: int, is_able: bool
) -> None:
    file = created(disk.mount())
    file.set_positions(flushed)
    file.append_message(b"x" * (wrote - flushed))

    assert file.is_able_to_flush(least_pages) is is_able


def test_a_flush_without_enough_pages_does_not_touch_the_disk(disk: SimDisk) -> None:
    file = created(disk.mount())
    file.append_message(b"x" * PAGE_SIZE)
    before = disk.actions

    assert file.flush(2) == 0
    assert disk.actions == before


def test_an_erased_end_reads_as_zeros_and_leaves_the_front(disk: SimDisk) -> None:
    file = created(disk.mount())
    file.append_message(b"x" * SIZE)
    file.set_positions(PAGE_SIZE + 10)

    file.erase(file.wrote)

    kept = b"x" * (PAGE_SIZE + 10)
    assert file.read(0, SIZE) == kept.ljust(SIZE, b"\0")


@pytest.mark.parametrize("at", [1 << 20, (2 << 20) - 1, 2 << 20, (3 << 20) - 1])
def test_what_lies_far_behind_the_end_is_erased_and_written_again(
    disk: SimDisk, at: int
) -> None:
    file = created(disk.mount(), size=3 << 20)
    file.append_message(b"x")
    file.set_positions(at)
    file.append_message(b"y")
    file.sync()
    written = disk.actions

    file.rewrite(0, at + 1)
    assert disk.actions - written == at // PAGE_SIZE + 1

    file.erase(1)
    assert file.read(0, 1) == b"x"
    assert not any(file.read(1, file.file_size - 1))


def test_erasing_zeros_writes_nothing(disk: SimDisk) -> None:
    file = created(disk.mount())
    file.append_message(b"x" * 10)
    before = disk.actions

    file.erase(10)

    assert disk.actions == before


def test_erasing_writes_only_pages_that_are_not_zero(disk: SimDisk) -> None:
    file = created(disk.mount())
    file.append_message(b"x")
    file.set_positions(3 * PAGE_SIZE)
    file.append_message(b"x")
    file.sync()
    before = disk.actions

    file.erase(1)

    assert disk.actions == before + 2  # one page written, one page synced
    assert file.read(0, SIZE) == b"x".ljust(SIZE, b"\0")


def test_what_was_erased_does_not_come_back_after_power_loss(disk: SimDisk) -> None:
    file = created(disk.mount())
    file.append_message(b"x" * SIZE)
    file.sync()

    file.erase(10)
    disk.crash(Crash("power_loss", Survivors("none")))

    assert disk.files()[PATH] == (b"x" * 10).ljust(SIZE, b"\0")


def test_bytes_written_again_are_made_durable_by_the_next_sync(disk: SimDisk) -> None:
    file = created(disk.mount())
    file.append_message(b"abc")
    disk.fail(DiskFault("sync", "EIO"))
    with pytest.raises(OSError, match="sync"):
        file.sync()
    file.sync()
    assert not disk.durable_files()[PATH].startswith(b"abc")

    file.rewrite(0, 3)
    file.sync()

    assert disk.durable_files()[PATH].startswith(b"abc")


def test_a_file_cut_short_reads_as_zeros_where_it_lacks_bytes(disk: SimDisk) -> None:
    disk.replace_file(PATH, b"abc")
    file = MappedFile(disk.mount(), PATH, SIZE, create=False)

    assert file.on_disk_size == 3
    assert file.read(1, 5) == b"bc\0\0\0"
    assert file.read(100, 4) == bytes(4)


@pytest.mark.parametrize("content", [b"", b"abc"])
def test_an_extended_file_has_its_size_and_takes_appends(
    disk: SimDisk, content: bytes
) -> None:
    disk.replace_file(PATH, content)
    file = MappedFile(disk.mount(), PATH, SIZE, create=False)
    file.extend()
    file.set_positions(len(content))

    assert file.append_message(b"def")

    assert disk.files()[PATH] == (content + b"def").ljust(SIZE, b"\0")
    assert file.on_disk_size == SIZE


def test_extending_a_whole_file_does_nothing(disk: SimDisk) -> None:
    file = created(disk.mount())
    before = disk.actions

    file.extend()

    assert disk.actions == before


def test_a_destroyed_file_is_gone(disk: SimDisk) -> None:
    created(disk.mount()).destroy()

    assert disk.files() == {}


def test_a_killed_process_leaves_what_was_appended(disk: SimDisk) -> None:
    created(disk.mount()).append_message(b"abc")

    disk.crash(Crash("process_kill"))

    assert disk.files()[PATH].startswith(b"abc")


def test_the_real_disk_has_the_same_bytes(tmp_path: Path) -> None:
    file = created(RealDisk(tmp_path))
    file.append_message(b"x" * 5000)
    file.flush(0)
    file.set_positions(10)
    file.erase(10)
    file.sync()
    file.close()

    assert (tmp_path / PATH).read_bytes() == b"x" * 10 + bytes(SIZE - 10)
