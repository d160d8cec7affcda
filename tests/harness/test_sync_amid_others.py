"""A sync is of what was there when it was called; what comes meanwhile is pending."""

from __future__ import annotations

import pytest

from crashmq.engine.host.disk import PAGE_SIZE
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.sim_file import SimFile
from crashmq.models.ops import Crash, Survivors

ON_DISKS_THAT_LOSE = pytest.mark.parametrize(
    "profile", ["ext4_ordered", "xfs", "btrfs", "posix_min"]
)
LOSS = Crash("power_loss", Survivors("none"))


def mounted(profile: str) -> tuple[SimDisk, Mount, SimFile]:
    """A disk with one file of two pages, all of it certain."""
    disk = SimDisk(PROFILES[profile])
    mount = disk.mount()
    file = mount.open("a", 2 * PAGE_SIZE, create=True, mapped=True)
    file.sync()
    mount.sync_dir("")
    return disk, mount, file


def after_loss(disk: SimDisk) -> dict[str, bytes]:
    disk.crash(LOSS)
    return disk.files()


@ON_DISKS_THAT_LOSE
def test_what_is_stored_amid_a_sync_can_be_lost_and_nothing_older(profile: str) -> None:
    disk, _, file = mounted(profile)
    file.write_at(0, b"old")
    disk.at_action(1, 0, lambda: file.write_at(1, b"new"))

    file.sync()

    assert file.read_at(0, 4) == b"onew"
    assert disk.unsynced_from() == {"a": 1}
    assert after_loss(disk)["a"][:4] == b"old\0"


@ON_DISKS_THAT_LOSE
def test_what_is_stored_amid_a_sync_the_next_one_makes_certain(profile: str) -> None:
    disk, _, file = mounted(profile)
    file.write_at(0, b"old")
    disk.at_action(1, 0, lambda: file.write_at(PAGE_SIZE, b"new"))

    file.sync()
    file.sync()

    assert disk.is_certain
    assert after_loss(disk)["a"][PAGE_SIZE:][:3] == b"new"


def test_a_sync_amid_a_sync_is_not_undone_by_it() -> None:
    disk, _, file = mounted("ext4_ordered")
    file.write_at(0, b"old")

    def store_and_sync() -> None:
        file.write_at(1, b"new")
        file.sync()

    disk.at_action(1, 0, store_and_sync)
    file.sync()

    assert disk.is_certain
    assert after_loss(disk)["a"][:4] == b"onew"


@ON_DISKS_THAT_LOSE
def test_a_name_made_amid_a_sync_of_names_can_be_lost(profile: str) -> None:
    disk, mount, _ = mounted(profile)
    mount.open("b", 0, create=True, mapped=False)
    disk.at_action(1, 0, lambda: mount.open("c", 0, create=True, mapped=False).close())

    mount.sync_dir("")

    assert [*disk.files()] == ["a", "b", "c"]
    assert [*after_loss(disk)] == ["a", "b"]
