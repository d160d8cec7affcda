"""The independent units of what is pending, and the states they make."""

from __future__ import annotations

from functools import partial

import pytest

from crashmq.engine.host.disk import PAGE_SIZE
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import DiskSnapshot, SimDisk
from crashmq.harness.disk.units import PendingUnits, Unit
from crashmq.models.ops import UNIT_ORDER, Crash, KeptUnit, Survivors

LOSSY = sorted(name for name in PROFILES if PROFILES[name].loses_unsynced)


def disk_of(profile: str) -> tuple[SimDisk, Mount]:
    disk = SimDisk(PROFILES[profile])
    return disk, disk.mount()


def left_by(disk: SimDisk, survivors: Survivors) -> dict[str, bytes]:
    fork = SimDisk.fork(disk.snapshot())
    fork.crash(Crash("power_loss", survivors))
    return fork.files()


def states(disk: SimDisk) -> list[dict[str, bytes]]:
    units = PendingUnits.of(disk.snapshot())
    return [left_by(disk, survivors) for survivors in units.choices()]


def test_each_sector_that_was_stored_to_is_a_unit() -> None:
    disk, mount = disk_of("ext4_ordered")
    file = mount.open("f", PAGE_SIZE, create=True, mapped=True)
    file.sync()
    file.write_at(500, b"x" * 30)
    file.write_at(500, b"y" * 10)

    units = PendingUnits.of(disk.snapshot())

    assert units.names == ()
    assert units.sectors() == (Unit("f", 0, 3), Unit("f", 1, 2))
    assert units.count() == (6, True)


def test_a_store_that_changes_nothing_makes_no_unit() -> None:
    disk, mount = disk_of("ext4_ordered")
    file = mount.open("f", PAGE_SIZE, create=True, mapped=True)
    file.sync()
    file.write_at(0, bytes(9))

    assert PendingUnits.of(disk.snapshot()).count() == (1, True)


def test_directory_changes_that_keep_their_order_are_one_unit() -> None:
    disk, mount = disk_of("xfs")
    mount.make_dir("d")
    mount.open("d/f", 10, create=True, mapped=False).write_at(0, b"x")

    units = PendingUnits.of(disk.snapshot())

    assert units.names == (Unit("", UNIT_ORDER, 4),)
    assert units.sectors() == ()
    assert units.sectors([KeptUnit("", UNIT_ORDER, 3)]) == (Unit("d/f", 0, 2),)
    assert units.count() == (5, True)


@pytest.mark.parametrize("profile", LOSSY)
def test_the_choices_are_as_many_as_counted_from_all_lost_to_all_kept(
    profile: str,
) -> None:
    disk, mount = disk_of(profile)
    file = mount.open("f", 1024, create=True, mapped=True)
    mount.sync_dir("")
    file.sync()
    file.write_at(500, b"x" * 30)
    mount.open("g", 8, create=True, mapped=True).write_at(0, b"g")

    found = states(disk)

    assert len(found) == PendingUnits.of(disk.snapshot()).count().states
    assert found[0] == disk.durable_files()
    assert found[-1] == disk.files()


@pytest.mark.parametrize("profile", LOSSY)
def test_whatever_a_hash_leaves_is_one_of_the_choices(profile: str) -> None:
    disk, mount = disk_of(profile)
    file = mount.open("f", 1024, create=True, mapped=True)
    mount.sync_dir("")
    file.sync()
    file.write_at(500, b"x" * 30)
    file.write_at(505, b"y" * 3)
    mount.rename("f", "g")
    mount.open("f", 8, create=True, mapped=False).write_at(0, b"f")

    found = states(disk)

    for seed in range(200):
        assert left_by(disk, Survivors("hashed", seed)) in found


def test_units_that_are_not_there_are_passed_over() -> None:
    disk, mount = disk_of("ext4_ordered")
    file = mount.open("f", 512, create=True, mapped=True)
    file.sync()
    file.write_at(0, b"x")
    kept = (KeptUnit("f", 0, 99), KeptUnit("f", 7, 1), KeptUnit("g", 0, 1))

    assert left_by(disk, Survivors("units", units=kept)) == disk.files()


def test_a_snapshot_at_an_action_is_the_disk_as_a_crash_there_finds_it() -> None:
    seen: list[DiskSnapshot] = []
    disk, mount = disk_of("ext4_ordered")
    disk.on_every_action(lambda: seen.append(disk.snapshot()))
    work(mount)
    disk.on_every_action(None)
    assert len(seen) == disk.actions

    for number, snapshot in enumerate(seen, start=1):
        other, mount = disk_of("ext4_ordered")
        found: list[dict[str, bytes]] = []
        look = partial(looked_into, other, found)
        other.at_action(number, 0, look)
        work(mount)
        fork = SimDisk.fork(snapshot)
        assert [fork.files(), fork.durable_files()] == found, number
        assert fork.actions == number


def looked_into(disk: SimDisk, found: list[dict[str, bytes]]) -> None:
    found += [disk.files(), disk.durable_files()]


def work(mount: Mount) -> None:
    """Stores, syncs, sizes and names, in an order that mixes them."""
    mount.make_dir("d")
    file = mount.open("d/f", 2 * PAGE_SIZE, create=True, mapped=True)
    for offset in (0, 10, PAGE_SIZE - 2):
        file.write_at(offset, b"abcd")
    file.sync()
    other = mount.open("g", 100, create=True, mapped=False)
    file.write_at(5, b"e")
    other.write_at(50, b"g")
    other.write_at(60, b"h")
    mount.sync_dir("d")
    file.write_at(6, b"f")
    other.close()
    mount.truncate("g", 55)
    mount.rename("g", "d/g")
    file.sync()
    file.write_at(7, b"i")
    mount.remove("d/g")
