"""What chance draws of a power loss: every state that may be left, and no other."""

from __future__ import annotations

from itertools import chain

import pytest
from disk_programs import Call, Files, after, states

from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.units import PendingUnits
from crashmq.models.ops import Crash, Survivors

START: Files = {"f": bytes(1024)}
SEEDS = 600
HISTORIES: dict[str, tuple[Call, ...]] = {
    "two files written by calls": (
        ("create", "n", 8),
        ("sync", "n"),
        ("sync_dir", ""),
        ("write", "f", 0, b"a" * 8),
        ("write", "n", 0, b"b" * 8),
    ),
    "names made and moved": (
        ("create", "n", 8),
        ("rename", "n", "m"),
        ("create", "n", 16),
    ),
    "a file cut twice": (("truncate", "f", 700), ("truncate", "f", 10)),
}


@pytest.mark.slow
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("profile", PROFILES)
def test_chance_leaves_each_state_that_may_be_left(profile: str, history: str) -> None:
    disk = after(profile, START, HISTORIES[history])
    drawn: set[tuple[tuple[str, bytes], ...]] = set()
    for seed in range(SEEDS):
        other = SimDisk.fork(disk.snapshot())
        other.crash(Crash("power_loss", Survivors("hashed", seed)))
        drawn.add(tuple(other.files().items()))

    possible = {tuple(files.items()) for files in states(disk)}
    if disk.profile.torn_block:
        # Two torn blocks at once are rarer than that: each file by itself.
        assert drawn <= possible
        assert {*chain(*drawn)} == {*chain(*possible)}
    else:
        assert drawn == possible


def disks_left(disk: SimDisk) -> list[SimDisk]:
    """Every disk that a power loss may leave now."""
    found = []
    for survivors in PendingUnits.of(disk.snapshot()).choices():
        other = SimDisk.fork(disk.snapshot())
        other.crash(Crash("power_loss", survivors))
        found.append(other)
    return found


def test_a_synced_file_takes_the_new_directories_above_it_along() -> None:
    calls = (("mkdir", "d"), ("mkdir", "e"), ("create", "d/f", 8), ("sync", "d/f"))

    for left in disks_left(after("btrfs", START, calls)):
        mount = left.mount()
        assert mount.is_dir("d")
        assert mount.exists("d/f")


def test_a_committed_rename_takes_the_making_of_its_file_along() -> None:
    start = {"d/old": b"", "e/old": b""}
    calls = (("create", "d/n", 8), ("rename", "d/n", "e/n"), ("sync_dir", "e"))

    names = {tuple(left.files()) for left in disks_left(after("btrfs", start, calls))}

    assert names == {("d/old", "e/n", "e/old")}
