"""A run of files: lookup, rolling, flushing one at a time, and loading what is odd."""

from __future__ import annotations

import pytest
from file_queues import SIZE, bases, filled, loaded, name

from crashmq.engine.store.errors import StoreCorrupted
from crashmq.engine.store.logfile.mapped_file import file_name
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue, make_dirs
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.units import PendingUnits
from crashmq.models.ops import Crash, DiskFault, Survivors


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk()


def test_directories_are_made_durable_down_to_the_last(disk: SimDisk) -> None:
    make_dirs(disk.mount(), "a/b/c")
    disk.crash(Crash("power_loss", Survivors("none")))

    assert disk.mount().is_dir("a/b/c")


def test_an_empty_queue_begins_nowhere_and_ends_at_zero(disk: SimDisk) -> None:
    queue = MappedFileQueue(disk.mount(), "log", SIZE)
    queue.load()

    assert (queue.min_offset, queue.max_offset) == (-1, 0)
    assert queue.find_mapped_file_by_offset(0) is None
    assert not queue.flush(0)


@pytest.mark.parametrize(
    ("start", "base"), [(0, 0), (999, 0), (1000, 1000), (2500, 2000)]
)
def test_the_first_file_covers_the_offset_asked_for(
    disk: SimDisk, start: int, base: int
) -> None:
    queue = MappedFileQueue(disk.mount(), "log", SIZE)

    queue.get_or_create_last_mapped_file(start)

    assert bases(queue) == [base]
    assert (queue.min_offset, queue.max_offset) == (base, base)
    assert queue.flushed_where == base


def test_a_file_with_room_is_the_one_to_append_to(disk: SimDisk) -> None:
    queue = MappedFileQueue(disk.mount(), "log", SIZE)
    first = queue.get_or_create_last_mapped_file(0)
    first.append_message(b"x")

    assert queue.get_or_create_last_mapped_file(5000) is first


def test_a_full_file_is_followed_by_the_next(disk: SimDisk) -> None:
    queue = filled(disk, files=1, start=2000)

    queue.get_or_create_last_mapped_file(0)

    assert bases(queue) == [2000, 3000]


def test_a_file_that_cannot_be_made_leaves_the_queue_as_it_was(disk: SimDisk) -> None:
    queue = filled(disk, files=1)
    disk.fail(DiskFault("create", "ENOSPC"))

    with pytest.raises(OSError, match="create"):
        queue.get_or_create_last_mapped_file(0)

    assert bases(queue) == [0]
    disk.heal()
    assert queue.get_or_create_last_mapped_file(0).file_from_offset == SIZE


def test_a_ghost_of_an_earlier_life_is_not_appended_to(disk: SimDisk) -> None:
    disk.replace_file(name(0), b"ghost".ljust(SIZE, b"!"))
    queue = MappedFileQueue(disk.mount(), "log", SIZE)

    queue.get_or_create_last_mapped_file(0)

    assert disk.files()[name(0)] == bytes(SIZE)


@pytest.mark.parametrize(
    ("offset", "base"),
    [
        (1999, None),
        (2000, 2000),
        (2999, 2000),
        (3000, 3000),
        (4999, 4000),
        (5000, None),
    ],
)
def test_a_file_is_found_by_any_offset_it_covers(
    disk: SimDisk, offset: int, base: int | None
) -> None:
    queue = filled(disk, files=3, start=2000)

    file = queue.find_mapped_file_by_offset(offset)

    assert (file.file_from_offset if file else None) == base


@pytest.mark.parametrize(("offset", "base"), [(500, 0), (1500, None), (2500, 2000)])
def test_files_behind_a_gap_are_found(
    disk: SimDisk, offset: int, base: int | None
) -> None:
    queue = loaded(disk, {name(0): bytes(SIZE), name(2000): bytes(SIZE)})

    file = queue.find_mapped_file_by_offset(offset)

    assert (file.file_from_offset if file else None) == base
    assert queue.first_gap() == 1000


def test_a_flush_syncs_one_file_a_call(disk: SimDisk) -> None:
    queue = filled(disk, files=3)
    marks = []
    while queue.flush(0):
        marks.append(queue.flushed_where)

    assert marks == [1000, 2000, 3000]


def test_a_flush_finds_a_log_that_does_not_begin_at_zero(disk: SimDisk) -> None:
    queue = filled(disk, files=1, start=2000)
    queue.flushed_where = 0

    assert queue.flush(0)
    assert queue.flushed_where == 3000


def test_a_flush_with_too_few_pages_moves_nothing(disk: SimDisk) -> None:
    queue = MappedFileQueue(disk.mount(), "log", 4 * 4096)
    queue.get_or_create_last_mapped_file(0).append_message(b"x" * 4096)

    assert not queue.flush(2)
    assert queue.flush(1)
    assert queue.flushed_where == 4096


def test_the_flushed_timestamp_is_that_of_the_newest_flushed_byte(
    disk: SimDisk,
) -> None:
    queue = filled(disk, files=2)
    queue.files[0].store_timestamp, queue.files[1].store_timestamp = 5, 6

    queue.flush(0)

    assert queue.flushed_timestamp == 5


def test_names_are_durable_before_the_mark_moves(disk: SimDisk) -> None:
    queue = filled(disk, files=1)
    disk.at_action(2, 0, lambda: disk.fail(DiskFault("sync", "EIO")))

    with pytest.raises(OSError, match="sync"):
        queue.flush(0)

    assert disk.last_action == "sync_dir:log"
    assert queue.flushed_where == 0


def test_names_are_synced_once_and_again_after_the_next_file(disk: SimDisk) -> None:
    queue = filled(disk, files=1)
    queue.flush(0)
    before = disk.actions
    queue.sync_names()
    assert disk.actions == before

    queue.get_or_create_last_mapped_file(0)
    queue.sync_names()

    assert disk.last_action == "sync_dir:log"


def test_a_failed_sync_moves_no_mark(disk: SimDisk) -> None:
    queue = filled(disk, files=1)
    queue.files[0].store_timestamp = 5
    disk.fail(DiskFault("sync", "EIO"))

    with pytest.raises(OSError, match="sync"):
        queue.flush(0)

    assert (queue.flushed_where, queue.flushed_timestamp) == (0, 0)


def test_a_cut_removes_later_files_and_erases_later_bytes(disk: SimDisk) -> None:
    queue = filled(disk, files=3)
    queue.flushed_where = 3000

    queue.truncate_dirty_files(1400)

    assert bases(queue) == [0, 1000]
    assert (queue.max_offset, queue.flushed_where) == (1400, 1400)
    assert disk.files()[name(0)] == b"x" * 1000
    assert disk.files()[name(1000)] == b"x" * 400 + bytes(600)


def test_removed_files_stay_removed_after_power_loss(disk: SimDisk) -> None:
    queue = filled(disk, files=3)
    while queue.flush(0):
        pass

    queue.truncate_dirty_files(1400)
    disk.crash(Crash("power_loss", Survivors("none")))

    assert sorted(disk.files()) == [name(0), name(1000)]


def test_a_file_that_begins_at_the_cut_is_kept_empty(disk: SimDisk) -> None:
    queue = filled(disk, files=2)

    queue.truncate_dirty_files(1000)

    assert bases(queue) == [0, 1000]
    assert queue.max_offset == 1000
    assert disk.files()[name(1000)] == bytes(1000)


def test_a_cut_behind_the_end_keeps_everything(disk: SimDisk) -> None:
    queue = filled(disk, files=2)

    queue.truncate_dirty_files(2000)

    assert queue.max_offset == 2000
    assert disk.files() == {name(0): b"x" * 1000, name(1000): b"x" * 1000}


def test_loading_opens_files_in_order_and_changes_nothing(disk: SimDisk) -> None:
    files = {name(base): bytes(SIZE) for base in (0, 1000, 2000)}

    queue = loaded(disk, files)

    assert bases(queue) == [0, 1000, 2000]
    assert [file.wrote for file in queue.files] == [0, 0, 0]
    assert (disk.actions, disk.files()) == (0, files)


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 999])
def test_a_short_file_is_loaded_as_it_is_and_made_whole_by_the_cut(
    disk: SimDisk, content: bytes
) -> None:
    queue = loaded(disk, {name(0): content})
    assert disk.files() == {name(0): content}

    queue.truncate_dirty_files(len(content))

    assert disk.files() == {name(0): content.ljust(SIZE, b"\0")}
    assert queue.max_offset == len(content)


@pytest.mark.parametrize(
    "files",
    [
        {name(0): bytes(SIZE + 1)},
        {name(500): bytes(SIZE)},
    ],
    ids=["too long", "between two places"],
)
def test_a_file_of_another_geometry_is_refused(
    disk: SimDisk, files: dict[str, bytes]
) -> None:
    with pytest.raises(StoreCorrupted, match="files here have 1000 bytes"):
        loaded(disk, files)

    assert disk.files() == files


@pytest.mark.parametrize(
    "foreign", ["log/.swp", "log/core", "log/0000.bak", "log/\uff11"]
)
def test_a_foreign_name_is_passed_over(disk: SimDisk, foreign: str) -> None:
    queue = loaded(disk, {name(0): bytes(SIZE), foreign: b"not ours"})

    assert bases(queue) == [0]
    queue.truncate_dirty_files(0)
    assert disk.files()[foreign] == b"not ours"


def test_a_synced_tail_is_durable_with_its_names(disk: SimDisk) -> None:
    queue = filled(disk, files=3)

    queue.sync_from(1500)
    disk.crash(Crash("power_loss", Survivors("none")))

    assert disk.files()[name(1000)] == disk.files()[name(2000)] == b"x" * SIZE
    assert disk.files()[name(0)] == bytes(SIZE)


def test_a_rewrite_reaches_from_the_offset_to_the_end(disk: SimDisk) -> None:
    queue = filled(disk, files=3)
    disk.fail(DiskFault("sync", "EIO", times=3))
    for file in queue.files:
        with pytest.raises(OSError, match="sync"):
            file.sync()
    disk.heal()

    queue.rewrite(1500)
    queue.sync_from(1500)

    durable = disk.durable_files()
    assert durable[name(0)] == bytes(SIZE)
    # A page is written back whole, and the file has but one.
    assert durable[name(1000)] == durable[name(2000)] == b"x" * SIZE


def test_a_destroyed_queue_has_no_files(disk: SimDisk) -> None:
    queue = filled(disk, files=2)

    queue.destroy()

    assert disk.files() == {}
    assert (queue.max_offset, queue.flushed_where) == (0, 0)


def test_the_names_of_files_become_durable_in_their_order() -> None:
    disk = SimDisk(PROFILES["posix_min"])
    mount = disk.mount()
    mount.make_dir("log")
    mount.sync_dir("")
    queue = MappedFileQueue(mount, "log", 100)
    for _ in range(4):
        queue.get_or_create_last_mapped_file(0).append_message(bytes(100))

    left = {
        tuple(survivor_names(disk, survivors))
        for survivors in PendingUnits.of(disk.snapshot()).choices()
    }

    names = [f"log/{file_name(offset)}" for offset in (0, 100, 200, 300)]
    assert left == {tuple(names[:3]), tuple(names)}


def survivor_names(disk: SimDisk, survivors: Survivors) -> list[str]:
    fork = SimDisk.fork(disk.snapshot())
    fork.crash(Crash("power_loss", survivors))
    return sorted(fork.files())
