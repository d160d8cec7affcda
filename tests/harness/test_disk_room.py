"""Room and times: what the port says of them, on every disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from crashmq.engine.host.disk import PAGE_SIZE, Disk, Usage
from crashmq.engine.host.real_disk import RealDisk
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.ops import Crash

NOW_MS = 1_700_000_000_000


@pytest.fixture(params=["real", "sim"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "real":
        return RealDisk(tmp_path)
    return SimDisk(now_ms=lambda: NOW_MS, capacity=1 << 20).mount()


def small_disk(capacity: int = 2 * PAGE_SIZE) -> SimDisk:
    return SimDisk(capacity=capacity)


def test_a_new_file_is_as_old_as_its_making(disk: Disk) -> None:
    disk.open("first", 10, create=True, mapped=False).close()
    disk.open("second", 10, create=True, mapped=True).close()

    assert disk.mtime_ms("second") >= disk.mtime_ms("first") >= NOW_MS


def test_the_time_of_an_absent_file_is_asked_in_vain(disk: Disk) -> None:
    with pytest.raises(FileNotFoundError):
        disk.mtime_ms("absent")


def test_the_time_of_a_directory_is_no_files_time(disk: Disk) -> None:
    disk.make_dir("d")

    with pytest.raises(OSError, match="directory") as caught:
        disk.mtime_ms("d")
    assert caught.value.errno == errno.EISDIR


def test_the_disk_says_how_full_it_is(disk: Disk) -> None:
    used, total = disk.usage()

    assert 0 <= used <= total
    assert 0 <= disk.usage().percent <= 100


@pytest.mark.parametrize(
    ("usage", "percent"),
    [
        (Usage(0, 1000), 0),
        (Usage(1, 1000), 1),
        (Usage(750, 1000), 75),
        (Usage(751, 1000), 76),
        (Usage(1000, 1000), 100),
        (Usage(12345, 0), 0),
    ],
)
def test_the_share_in_use_is_rounded_up(usage: Usage, percent: int) -> None:
    assert usage.percent == percent


def test_a_real_files_time_is_what_a_user_sets(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk.open("f", 10, create=True, mapped=False).close()

    os.utime(tmp_path / "f", ns=(NOW_MS * 1_000_000, NOW_MS * 1_000_000))

    assert disk.mtime_ms("f") == NOW_MS


@pytest.mark.parametrize("mapped", [True, False])
def test_a_write_makes_a_simulated_file_young(mapped: bool) -> None:
    now = [1000]
    mount = SimDisk(now_ms=lambda: now[0]).mount()
    file = mount.open("f", 3 * PAGE_SIZE, create=True, mapped=mapped)
    seen = [mount.mtime_ms("f")]

    for offset, size in ((0, 10), (20, 10), (PAGE_SIZE - 5, 10)):
        now[0] += 1
        file.write_at(offset, bytes(size))
        seen.append(mount.mtime_ms("f"))

    assert seen == [1000, 1001, 1002, 1003]


def test_a_simulated_file_keeps_its_time_over_a_crash_and_a_fork() -> None:
    disk = SimDisk(now_ms=lambda: NOW_MS)
    file = disk.mount().open("f", 10, create=True, mapped=True)
    file.sync()
    file.write_at(0, b"lost")
    disk.crash(Crash("power_loss"))

    assert disk.mtimes() == {"f": NOW_MS}
    assert SimDisk.fork(disk.snapshot()).mtimes() == {"f": NOW_MS}


def test_a_file_beyond_the_capacity_is_not_made() -> None:
    disk = small_disk()
    mount = disk.mount()
    mount.open("f", PAGE_SIZE, create=True, mapped=True)

    with pytest.raises(OSError, match="are free") as caught:
        mount.open("g", PAGE_SIZE + 1, create=True, mapped=True)

    assert caught.value.errno == errno.ENOSPC
    assert mount.list_dir("") == ["f"]
    assert disk.usage() == Usage(PAGE_SIZE, 2 * PAGE_SIZE)


def test_a_file_may_shrink_but_not_grow_on_a_full_disk() -> None:
    disk = small_disk()
    mount = disk.mount()
    mount.open("f", PAGE_SIZE, create=True, mapped=True).close()
    disk.fill(100)

    mount.truncate("f", 10)
    disk.fill(100)
    with pytest.raises(OSError, match="are free"):
        mount.truncate("f", 11)

    assert mount.file_size("f") == 10


def test_a_foreign_file_takes_room_and_gives_it_back() -> None:
    disk = small_disk(1000)
    disk.fill(90)
    assert disk.usage() == Usage(900, 1000)

    disk.fill(0)

    assert disk.usage() == Usage(0, 1000)
    assert disk.files() == {}


def test_a_fork_is_as_full_as_its_disk() -> None:
    disk = small_disk(1000)
    disk.fill(90)

    assert SimDisk.fork(disk.snapshot()).usage() == Usage(900, 1000)


def test_a_disk_without_an_end_is_never_filled() -> None:
    disk = SimDisk()

    disk.fill(100)

    disk.mount().open("f", 1 << 20, create=True, mapped=True)
    assert disk.usage().percent == 0


def test_a_file_may_fill_the_disk_to_its_last_byte_and_no_further() -> None:
    mount = small_disk().mount()
    mount.open("f", 2 * PAGE_SIZE, create=True, mapped=False).close()

    assert mount.usage() == Usage(2 * PAGE_SIZE, 2 * PAGE_SIZE)
    with pytest.raises(OSError, match="1 bytes are needed") as caught:
        mount.open("g", 1, create=True, mapped=False)
    assert caught.value.errno == errno.ENOSPC
