"""What a stop tells of its disk: what is not synced, and what is still held."""

from __future__ import annotations

import pytest

from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.episodes.episode import run_program
from crashmq.models.observations import Stopped
from crashmq.models.ops import (
    Crash,
    Damage,
    DiskFault,
    During,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Subscribe,
)
from crashmq.models.program import Program, Setup
from crashmq.models.verdict import Outcome


def test_a_disk_tells_what_power_loss_could_take_and_what_is_open() -> None:
    disk = SimDisk()
    mount = disk.mount()
    file = mount.open("f", 8, create=True, mapped=True)
    lock = mount.lock("lock")
    mount.open("g", 8, create=True, mapped=True).close()
    mount.sync_dir("")
    file.write_at(0, b"x")

    assert disk.unsynced() == ("f",)
    assert disk.left_open() == ("f", "lock")
    file.sync()
    file.close()
    lock.release()
    assert disk.unsynced() == disk.left_open() == ()


def test_an_orderly_end_leaves_nothing_unsynced_or_open() -> None:
    result = run_program(Program(Setup(), (PutMessage("T0", 0, 16), Shutdown())))

    assert result.trace[-1].observation == Stopped(clean=True)
    assert result.law == ""


@pytest.mark.parametrize(("at_action", "cut"), [(8, 600), (9, 0), (9, 600)])
def test_an_end_that_damage_made_look_orderly_promises_nothing_durable(
    at_action: int, cut: int
) -> None:
    ops = (
        PutMessage("T0", 0, 16),
        RunService("reput"),
        During(Shutdown(), at_action, Crash("process_kill", cut=cut)),
        Damage("abort", "delete"),
        Restart(),
        Shutdown(),
        During(RunService("reput"), 1, Crash("power_loss")),
        Restart(),
    )

    result = run_program(Program(Setup(), ops))

    assert result.law == "", result.message


@pytest.mark.parametrize("after", range(8))
def test_an_orderly_end_may_fail_to_write_what_groups_subscribe(after: int) -> None:
    setup = Setup(
        keeps_progress=True, filters=True, queue_ext_size=512, disk_profile="posix_min"
    )
    stop = During(Shutdown(), 1, DiskFault("sync", "EIO", after=after))

    result = run_program(Program(setup, (Subscribe("g", "T0", "a > 5", "SQL92"), stop)))

    assert result.outcome is Outcome.PASSED, result.message
