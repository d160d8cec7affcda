"""A run of files at its ends: deletion, moving back, and what is durable of it."""

from __future__ import annotations

from typing import Any

import pytest
from file_queues import SIZE, bases, filled, name

from crashmq.engine.store.logfile.mapped_file import MappedFile, file_name
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue, make_dirs
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.ops import Crash, DiskFault, Survivors


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk()


def test_files_are_deleted_from_the_front_while_they_may_go(disk: SimDisk) -> None:
    queue = filled(disk, files=4)

    deleted = queue.delete_first_files(
        lambda file: file.file_from_offset < 2000, at_most=10
    )

    assert (deleted, bases(queue), queue.min_offset) == (2, [2000, 3000], 2000)
    assert sorted(disk.files()) == [name(2000), name(3000)]


def test_no_more_files_are_deleted_in_a_call_than_allowed(disk: SimDisk) -> None:
    queue = filled(disk, files=4)
    pauses: list[int] = []

    deleted = queue.delete_first_files(
        lambda _: True, at_most=2, pause=lambda: pauses.append(len(queue.files))
    )

    assert (deleted, pauses, bases(queue)) == (2, [3], [2000, 3000])


def test_the_last_file_is_never_deleted(disk: SimDisk) -> None:
    queue = filled(disk, files=3)

    assert queue.delete_first_files(lambda _: True, at_most=9) == 2
    assert queue.delete_first_files(lambda _: True, at_most=9) == 0
    assert bases(queue) == [2000]


def test_a_file_that_must_stay_keeps_those_behind_it(disk: SimDisk) -> None:
    queue = filled(disk, files=4)

    deleted = queue.delete_first_files(
        lambda file: file.file_from_offset != 1000, at_most=9
    )

    assert (deleted, bases(queue)) == (1, [1000, 2000, 3000])


def test_a_deleted_file_stays_deleted_after_power_loss(disk: SimDisk) -> None:
    queue = filled(disk, files=3)
    while queue.flush(0):
        pass

    queue.delete_first_files(lambda _: True, at_most=1)
    disk.crash(Crash("power_loss", Survivors("none")))

    assert sorted(disk.files()) == [name(1000), name(2000)]


def test_who_reads_a_file_reads_on_while_it_is_deleted(disk: SimDisk) -> None:
    queue = filled(disk, files=2)
    first = queue.files[0]
    assert first.hold()

    queue.delete_first_files(lambda _: True, at_most=1)

    assert name(0) not in disk.files()
    held = first.is_cleaned_up
    first.release()
    assert (held, first.is_cleaned_up) == (False, True)
    assert first.read(0, 1) == b""


def test_a_file_that_cannot_be_deleted_stays_and_goes_next_time(
    disk: SimDisk,
) -> None:
    queue = filled(disk, files=3)
    disk.fail(DiskFault("sync", "EIO"))

    with pytest.raises(OSError, match="sync"):
        queue.delete_first_files(lambda _: True, at_most=9)

    disk.heal()
    assert queue.delete_first_files(lambda _: True, at_most=9) == 1
    assert (bases(queue), sorted(disk.files())) == ([2000], [name(2000)])


def test_a_flush_goes_on_behind_deleted_files(disk: SimDisk) -> None:
    queue = filled(disk, files=3)
    queue.delete_first_files(lambda _: True, at_most=2)

    assert queue.flush(0)
    assert queue.flushed_where == 3000


def test_a_flush_of_a_file_that_was_let_go_counts_nothing(disk: SimDisk) -> None:
    queue = filled(disk, files=1)
    queue.files[0].close()

    assert not queue.flush(0)
    assert queue.flushed_where == 0


def test_the_end_is_moved_back_and_the_files_behind_it_are_gone(
    disk: SimDisk,
) -> None:
    queue = filled(disk, files=3)

    assert queue.reset_offset(1400)

    assert (bases(queue), queue.max_offset) == ([0, 1000], 1400)
    assert sorted(disk.files()) == [name(0), name(1000)]


def test_the_end_is_not_moved_back_over_more_than_two_files(disk: SimDisk) -> None:
    queue = filled(disk, files=3)

    assert not queue.reset_offset(999)

    assert queue.max_offset == 3000


@pytest.mark.parametrize("offset", [0, 1500, 2999])
def test_a_lookup_that_meets_a_deletion_looks_again(disk: SimDisk, offset: int) -> None:
    queue = filled(disk, files=3)

    class Shrinking(list[MappedFile]):
        """Loses its first element once somebody has looked at it."""

        def __getitem__(self, index: Any) -> Any:
            found = super().__getitem__(index)
            if index == 0 and len(self) == 3:
                del self[0]
            return found

    queue.files = Shrinking(queue.files)

    file = queue.find_mapped_file_by_offset(offset)

    expected = None if offset < SIZE else offset - offset % SIZE
    assert (file.file_from_offset if file else None) == expected


def test_a_directory_whose_name_could_not_be_synced_is_made_again() -> None:
    disk = SimDisk(PROFILES["posix_min"])
    mount = disk.mount()
    disk.fail(DiskFault("sync", "EIO"))
    with pytest.raises(OSError, match="made to fail"):
        make_dirs(mount, "log")

    make_dirs(mount, "log")

    assert mount.is_dir("log")
    disk.crash(Crash("power_loss", Survivors("none")))
    assert disk.mount().is_dir("log")


def test_room_that_was_never_written_is_durable_zeros_before_anything_is_appended(
    disk: SimDisk,
) -> None:
    queue = MappedFileQueue(disk.mount(), "log", SIZE)
    queue.get_or_create_last_mapped_file(0)

    assert disk.durable_files() == {name(0): bytes(SIZE)}


def test_a_directory_that_a_killed_process_made_is_durable_before_its_files_are() -> (
    None
):
    disk = SimDisk(PROFILES["posix_min"])
    disk.mount().make_dir("above")
    disk.crash(Crash("process_kill"))
    mount = disk.mount()
    queue = MappedFileQueue(mount, "above/log", SIZE)
    queue.get_or_create_last_mapped_file(0).append_message(b"x" * SIZE)

    assert queue.flush(0)
    mount.sync_dir("")
    disk.crash(Crash("power_loss"))
    assert list(disk.files()) == [f"above/log/{file_name(0)}"]
