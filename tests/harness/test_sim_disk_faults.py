"""What calls that fail leave behind, by kind of disk (E1 to E4)."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from crashmq.engine.host.disk import File
from crashmq.harness.disk.controls import Healed
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.observations import Damaged
from crashmq.models.ops import (
    UNIT_END,
    UNIT_TAIL,
    Crash,
    DiskFault,
    KeptUnit,
    Survivors,
)

EVICT = DiskFault("evict", "EIO")


def disk_with_a_file(profile: str) -> tuple[SimDisk, File]:
    disk = SimDisk(PROFILES[profile])
    disk.load({"f": b"old" + bytes(97)})
    return disk, disk.mount().open("f", 100, create=False, mapped=True)


def durable(disk: SimDisk) -> bytes:
    return disk.durable_files()["f"][:3]


@pytest.mark.parametrize("profile", ["ext4_ordered", "xfs", "posix_min"])
def test_after_a_failed_sync_memory_is_new_and_the_medium_old(profile: str) -> None:
    disk, file = disk_with_a_file(profile)
    file.write_at(0, b"new")
    disk.fail(DiskFault("sync", "EIO"))
    with pytest.raises(OSError, match="made to fail"):
        file.sync()

    file.sync()

    assert (file.read_at(0, 3), durable(disk)) == (b"new", b"old")
    disk.fail(EVICT)
    assert file.read_at(0, 3) == b"old"


def failed_sync(profile: str, survivors: Survivors) -> SimDisk:
    """A file of three pages, all of them stored to, whose sync failed."""
    disk = SimDisk(PROFILES[profile])
    disk.load({"f": bytes(12288)})
    file = disk.mount().open("f", 12288, create=False, mapped=False)
    for page, letter in enumerate((b"a", b"b", b"c")):
        file.write_at(page * 4096, letter)
    disk.fail(DiskFault("sync", "EIO", survivors=survivors))
    with suppress(OSError):
        file.sync()
    return disk


def pages(content: bytes) -> bytes:
    return content[::4096].replace(b"\0", b"-")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("survivors", "left"),
    [
        (Survivors(), b"---"),
        (Survivors("all"), b"abc"),
        (Survivors("prefix", 2), b"ab-"),
        (Survivors("units", units=(KeptUnit("f", 8, 1), KeptUnit("g", 0, 1))), b"-b-"),
    ],
)
def test_a_failed_sync_leaves_the_pages_that_survivors_choose(
    profile: str, survivors: Survivors, left: bytes
) -> None:
    disk = failed_sync(profile, survivors)
    reverts = PROFILES[profile].sync_failure == "revert"

    assert pages(disk.files()["f"]) == (left if reverts else b"abc")
    disk.fail(EVICT)
    assert pages(disk.files()["f"]) == left


def test_chance_leaves_each_subset_of_the_pages_of_a_failed_sync() -> None:
    found = set()
    for seed in range(200):
        disk = failed_sync("ext4_ordered", Survivors("hashed", seed))
        disk.fail(EVICT)
        found.add(pages(disk.files()["f"]))

    assert len(found) == 8


def test_what_a_failed_sync_left_is_certain_and_no_later_sync_adds_to_it() -> None:
    disk = failed_sync("posix_min", Survivors("prefix", 1))
    disk.crash(Crash("process_kill"))
    file = disk.mount().open("f", 12288, create=False, mapped=False)
    file.sync()

    disk.crash(Crash("power_loss", Survivors("all")))

    assert pages(disk.files()["f"]) == b"a--"


def test_what_is_stored_beyond_a_cut_that_pends_is_not_left_by_a_failed_sync() -> None:
    disk = SimDisk(PROFILES["ext4_ordered"])
    disk.load({"f": b"o" * 8192})
    mount = disk.mount()
    mount.truncate("f", 4096)
    mount.truncate("f", 8192)
    file = mount.open("f", 8192, create=False, mapped=False)
    file.write_at(0, b"a")
    file.write_at(4096, b"b")
    disk.fail(DiskFault("sync", "EIO", survivors=Survivors("all")))
    with pytest.raises(OSError, match="made to fail"):
        file.sync()

    assert pages(disk.durable_files()["f"]) == b"ao"


def test_room_that_a_failed_sync_has_written_holds_nothing_of_others() -> None:
    disk = SimDisk(PROFILES["posix_min"])
    disk.load({"o": b"o" * 8192})
    mount = disk.mount()
    file = mount.open("n", 8192, create=True, mapped=False)
    mount.sync_dir("")
    file.write_at(0, b"a" * 512)
    file.write_at(4096, b"b" * 512)
    kept = Survivors("units", units=(KeptUnit("n", 8, 1),))
    disk.fail(DiskFault("sync", "EIO", survivors=kept))
    with pytest.raises(OSError, match="made to fail"):
        file.sync()
    units = (KeptUnit("n", UNIT_END, 1), KeptUnit("n", UNIT_TAIL, 2))

    disk.crash(Crash("power_loss", Survivors("units", units=units)))

    assert disk.files()["n"][::512] == b"oooooooobooooooo"


def test_btrfs_takes_the_bytes_back_at_once() -> None:
    disk, file = disk_with_a_file("btrfs")
    file.write_at(0, b"new")
    disk.fail(DiskFault("sync", "EIO"))
    with pytest.raises(OSError, match="made to fail"):
        file.sync()

    assert (file.read_at(0, 3), durable(disk)) == (b"old", b"old")


def test_with_journalled_data_the_error_comes_with_the_next_sync_once() -> None:
    disk, file = disk_with_a_file("ext4_data")
    file.write_at(0, b"new")
    disk.fail(DiskFault("sync", "EIO"))
    file.sync()
    assert durable(disk) == b"old"

    with pytest.raises(OSError, match="failed unnoticed") as raised:
        file.sync()

    assert raised.value.errno == errno.EIO
    file.sync()


def test_pages_that_are_dirty_do_not_leave_memory() -> None:
    disk, file = disk_with_a_file("ext4_ordered")
    file.write_at(0, b"new")

    disk.fail(EVICT)

    assert file.read_at(0, 3) == b"new"


@pytest.mark.parametrize("watched", [False, True])
def test_a_page_that_was_lost_is_mended_by_the_next_store_to_it(
    *, watched: bool
) -> None:
    disk, file = disk_with_a_file("ext4_ordered")
    file.write_at(0, b"new")
    disk.fail(DiskFault("lose", "EIO"))
    file.sync()
    assert durable(disk) == b"old"
    if watched:  # then a sync goes page by page
        disk.at_action(2, 0, lambda: None)

    file.write_at(50, b"x")
    file.sync()

    assert durable(disk) == b"new"


def test_a_fault_is_for_the_paths_it_names() -> None:
    disk, file = disk_with_a_file("ext4_ordered")
    disk.fail(DiskFault("sync", "EIO", path="g"))

    file.sync()

    assert disk.heal() == 0


def test_a_fault_may_wait_for_some_calls_to_succeed() -> None:
    disk, file = disk_with_a_file("ext4_ordered")
    disk.fail(DiskFault("write", "EINTR", after=2))
    file.write_at(0, b"1")
    file.write_at(1, b"2")

    with pytest.raises(InterruptedError):
        file.write_at(2, b"3")

    file.write_at(2, b"4")
    assert file.read_at(0, 3) == b"124"


def test_a_fault_may_last_until_the_disk_is_healed() -> None:
    disk, file = disk_with_a_file("ext4_ordered")
    disk.fail(DiskFault("write", "EDQUOT", lasts=True))
    for _ in range(3):
        with pytest.raises(OSError, match="made to fail"):
            file.write_at(0, b"new")

    assert disk.heal() == 3
    file.write_at(0, b"new")


@pytest.mark.parametrize(("written", "left"), [(0, b"old"), (2, b"ned"), (9, b"new")])
def test_of_a_failing_write_a_prefix_may_be_done(written: int, left: bytes) -> None:
    disk, file = disk_with_a_file("ext4_ordered")
    disk.fail(DiskFault("write", "EIO", written=written))

    with pytest.raises(OSError, match="made to fail"):
        file.write_at(0, b"new")

    assert file.read_at(0, 3) == left


def test_what_memory_alone_held_after_a_failed_sync_is_lost_with_the_power() -> None:
    disk, file = disk_with_a_file("ext4_ordered")
    file.write_at(0, b"new")
    disk.fail(DiskFault("sync", "EIO"))
    with pytest.raises(OSError, match="made to fail"):
        file.sync()

    disk.crash(Crash("power_loss", Survivors("all")))

    assert disk.files()["f"][:3] == b"old"


def test_a_lost_page_is_told_to_whoever_judges_and_to_nobody_else() -> None:
    disk, file = disk_with_a_file("xfs")
    file.write_at(0, b"new")
    disk.fail(DiskFault("lose", "EIO"))

    file.sync()

    assert disk.healed() == Healed(1, (Damaged("f", 0, 100),))
    assert (file.read_at(0, 3), durable(disk)) == (b"new", b"old")


def test_a_misdirected_page_spoils_two_places() -> None:
    disk = SimDisk()
    disk.load({"f": bytes(100), "g": b"g" * 300})
    file = disk.mount().open("f", 100, create=False, mapped=True)
    file.write_at(0, b"new")
    disk.fail(DiskFault("misdirect", "EIO", written=1))

    file.sync()

    spoilt = (Damaged("f", 0, 100), Damaged("g", 0, 300))
    assert disk.healed() == Healed(1, spoilt)
    assert disk.durable_files()["g"] == b"new" + bytes(97) + b"g" * 200


def test_a_lying_disk_loses_no_page_of_its_own_accord() -> None:
    disk, file = disk_with_a_file("lying_disk")
    file.write_at(0, b"new")
    disk.fail(DiskFault("lose", "EIO"))

    file.sync()

    assert disk.healed() == Healed(0)
