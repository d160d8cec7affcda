"""Latent sector errors of the simulated disk, and what may be asked after them."""

from __future__ import annotations

import errno

import pytest

from crashmq.engine.host.disk import File
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.units import PendingUnits
from crashmq.harness.episodes.episode import run_program
from crashmq.harness.explore.crash_states import CrashStates, Vector
from crashmq.harness.explore.state_key import StateKeys
from crashmq.models.observations import Damaged, Refused, Started
from crashmq.models.ops import (
    Crash,
    Damage,
    DiskFault,
    KeptUnit,
    Op,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Survivors,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome

_PUT = PutMessage("T0", 0, 1000)


def bad_file(profile: str = "ext4_ordered") -> tuple[SimDisk, File]:
    """A file of four sectors, the second of which nobody can read."""
    disk = SimDisk(PROFILES[profile])
    disk.load({"f": b"x" * 2048})
    disk.make_unreadable("f", 600, 601)
    return disk, disk.mount().open("f", 2048, create=False, mapped=True)


def last_start(*ops: Op, on_damage: str = "refuse") -> object:
    """What a start came to behind ``ops``, no law broken."""
    setup = Setup(on_damage="serve" if on_damage == "serve" else "refuse")
    result = run_program(Program(setup, (*ops, Restart())))
    assert result.outcome is Outcome.PASSED, result.message
    return next(s.observation for s in result.trace if s.number == len(ops))


@pytest.mark.parametrize(("at", "size"), [(512, 1), (1023, 1), (0, 2048), (500, 13)])
def test_a_read_of_a_bad_sector_fails(at: int, size: int) -> None:
    with pytest.raises(OSError, match="cannot be read") as raised:
        bad_file()[1].read_at(at, size)

    assert raised.value.errno == errno.EIO


def test_what_lies_beside_it_can_be_read() -> None:
    _, file = bad_file()

    assert file.read_at(0, 512) + file.read_at(1024, 1024) == b"x" * 1536


def test_a_part_of_it_cannot_be_written_and_nothing_is_done() -> None:
    _, file = bad_file()

    with pytest.raises(OSError, match="cannot be read"):
        file.write_at(500, b"y" * 100)

    assert file.read_at(500, 12) == b"x" * 12


def test_written_whole_it_can_be_read_and_once_synced_for_good() -> None:
    disk, file = bad_file()
    file.write_at(512, b"y" * 512)
    assert file.read_at(500, 24) == b"x" * 12 + b"y" * 12
    assert disk.unreadable() == ()

    file.sync()
    disk.crash(Crash("power_loss"))

    assert disk.unreadable() == ()


@pytest.mark.parametrize(("kept", "is_bad"), [("none", True), ("all", False)])
def test_power_loss_leaves_it_bad_unless_the_write_got_out(
    kept: str, *, is_bad: bool
) -> None:
    disk, file = bad_file()
    file.write_at(512, b"y" * 512)

    disk.crash(Crash("power_loss", Survivors("all" if kept == "all" else "none")))

    assert bool(disk.unreadable()) == is_bad


@pytest.mark.parametrize(("kept", "is_bad"), [("none", True), ("all", False)])
def test_a_failed_sync_leaves_it_bad_unless_the_write_got_out(
    kept: str, *, is_bad: bool
) -> None:
    disk, file = bad_file()
    file.write_at(512, b"y" * 512)
    left = Survivors("all" if kept == "all" else "none")
    disk.fail(DiskFault("sync", "EIO", survivors=left))
    with pytest.raises(OSError, match="made to fail"):
        file.sync()

    disk.crash(Crash("power_loss", Survivors("all")))

    assert bool(disk.unreadable()) == is_bad


def test_a_copy_of_the_disk_has_it_too_and_a_cut_file_has_not() -> None:
    disk, file = bad_file()
    file.close()
    fork = SimDisk.fork(disk.snapshot())
    mount = fork.mount()
    mount.truncate("f", 512)
    mount.truncate("f", 2048)

    assert disk.unreadable() == (Damaged("f", 512, 1024),)
    assert fork.unreadable() == ()


def test_a_damaged_log_is_refused_and_with_leave_served_around() -> None:
    ops = (_PUT, _PUT, RunService("flush_commit_log", 9), RunService("reput"))
    bad = Damage("commitlog[0]", "unreadable", 600, 1)

    refused = last_start(*ops, Shutdown(), bad)
    served = last_start(*ops, Shutdown(), bad, on_damage="serve")

    assert isinstance(refused, Refused)
    assert "byte 0" in refused.reason
    assert isinstance(served, Started)
    assert served.damaged == ((0, 1115),)


@pytest.mark.parametrize("file", ["consumequeue[0]", "abort"])
def test_what_can_be_made_again_keeps_no_store_from_starting(file: str) -> None:
    ops = (_PUT, RunService("flush_commit_log", 9), RunService("reput"), Shutdown())

    seen = last_start(*ops, Damage(file, "unreadable", 0, 4096))

    assert isinstance(seen, Started)


def torn_disk() -> SimDisk:
    """A file of two durable pages; a sector of the second has been written since."""
    disk = SimDisk(PROFILES["physical_4k"])
    disk.load({"f": b"o" * 8192})
    disk.mount().open("f", 8192, create=False, mapped=False).write_at(4608, b"n" * 512)
    return disk


def lost(disk: SimDisk, *kept: KeptUnit) -> SimDisk:
    disk.crash(Crash("power_loss", Survivors("units", units=kept)))
    return disk


@pytest.mark.parametrize("is_explored", [False, True])
def test_a_torn_block_has_sectors_that_nobody_can_read(*, is_explored: bool) -> None:
    disk = torn_disk()
    if is_explored:
        spread = CrashStates(disk.snapshot(), StateKeys())
        disk = SimDisk.fork(spread.disk(Vector((), (2, 1, *[0] * 6))))
    else:
        lost(disk, KeptUnit("f", 8, 2), KeptUnit("f", 9, 1))

    assert disk.unreadable() == (Damaged("f", 4096, 4608),)
    file = disk.mount().open("f", 8192, create=False, mapped=False)
    assert file.read_at(0, 4096) == b"o" * 4096
    assert not {*file.read_at(4608, 512)} <= {*b"on"}
    with pytest.raises(OSError, match="cannot be read"):
        file.read_at(4000, 200)


def test_a_torn_sector_is_bad_until_it_is_written_whole_and_that_is_durable() -> None:
    disk = lost(torn_disk(), KeptUnit("f", 15, 2))
    file = disk.mount().open("f", 8192, create=False, mapped=False)
    file.write_at(7680, b"w" * 512)
    assert file.read_at(7680, 512) == b"w" * 512

    unsynced = SimDisk.fork(disk.snapshot())
    assert lost(unsynced).unreadable() == (Damaged("f", 7680, 8192),)
    file.sync()
    assert lost(disk).unreadable() == ()


def test_a_block_in_which_nothing_pends_is_not_torn() -> None:
    disk = torn_disk()

    units = PendingUnits.of(disk.snapshot()).sectors()

    assert {unit.place for unit in units} == {*range(8, 16)}


def test_what_a_sector_beside_holds_is_its_oldest_and_its_newest_version() -> None:
    kept = (KeptUnit("f", 8, 3), KeptUnit("f", 9, 3), KeptUnit("f", 10, 9))

    disk = lost(torn_disk(), *kept)

    assert disk.files()["f"] == b"o" * 4608 + b"n" * 512 + b"o" * 3072
