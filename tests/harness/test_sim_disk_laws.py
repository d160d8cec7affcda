"""Laws that hold for every history of calls on the simulated disk."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashmq.engine.host.disk import PAGE_SIZE
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.models.ops import Crash, Survivors

SIZES = (0, 700, PAGE_SIZE + 300)
PATHS = ("a", "b", "d/a")
CALLS = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"),
            st.sampled_from(PATHS),
            st.sampled_from([0, 500, 690, PAGE_SIZE - 5, SIZES[-1] - 5]),
            st.binary(min_size=1, max_size=30),
        ),
        st.tuples(st.just("truncate"), st.sampled_from(PATHS), st.sampled_from(SIZES)),
        st.tuples(st.just("rename"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
        st.tuples(st.sampled_from(["remove", "sync"]), st.sampled_from(PATHS)),
        st.tuples(st.just("sync_dir")),
    ),
    max_size=25,
)
SURVIVORS = st.one_of(
    st.just(Survivors("none")),
    st.just(Survivors("all")),
    st.builds(Survivors, st.just("prefix"), st.integers(0, 40)),
    st.builds(Survivors, st.just("hashed"), st.integers(0, 2**32)),
)


def new_disk() -> tuple[SimDisk, Mount]:
    disk = SimDisk(PROFILES["ext4_ordered"])
    mount = disk.mount()
    mount.make_dir("d")
    return disk, mount


def do(mount: Mount, call: tuple[object, ...]) -> None:
    """Do one call where it has a meaning; a file is made before it is written to."""
    match call:
        case ("write", str(path), int(offset), bytes(data)):
            size = mount.file_size(path) if mount.exists(path) else SIZES[-1]
            file = mount.open(path, size, create=True, mapped=True)
            if offset + len(data) <= size:
                file.write_at(offset, data)
            file.close()
        case ("truncate", str(path), int(size)) if mount.exists(path):
            mount.truncate(path, size)
        case ("rename", str(path), str(target)) if mount.exists(path):
            mount.rename(path, target)
        case ("remove", str(path)) if mount.exists(path):
            mount.remove(path)
        case ("sync", str(path)) if mount.exists(path):
            file = mount.open(path, mount.file_size(path), create=False, mapped=True)
            file.sync()
            file.close()
        case ("sync_dir",):
            mount.sync_dir("")


def left_by(disk: SimDisk, survivors: Survivors) -> dict[str, bytes]:
    other = SimDisk.fork(disk.snapshot())
    other.crash(Crash("power_loss", survivors))
    return other.files()


@settings(max_examples=60, deadline=None)
@given(calls=CALLS)
def test_all_is_what_readers_see_and_none_what_is_certain(
    calls: list[tuple[object, ...]],
) -> None:
    disk, mount = new_disk()
    for call in calls:
        do(mount, call)

        assert left_by(disk, Survivors("all")) == disk.files()
        assert left_by(disk, Survivors("none")) == disk.durable_files()


@settings(max_examples=60, deadline=None)
@given(calls=CALLS)
def test_when_all_is_synced_nothing_can_be_lost(
    calls: list[tuple[object, ...]],
) -> None:
    disk, mount = new_disk()
    for call in calls:
        do(mount, call)
    for path in PATHS:
        do(mount, ("sync", path))
    mount.sync_dir("")

    assert disk.durable_files() == disk.files() == left_by(disk, Survivors("hashed", 1))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(calls=CALLS, survivors=SURVIVORS)
def test_no_survivor_was_not_once_there(
    calls: list[tuple[object, ...]], survivors: Survivors
) -> None:
    """No path, size or byte is left that readers could not see at some time."""
    disk, mount = new_disk()
    sizes: dict[int, bool] = {0: True, SIZES[-1]: True}
    values: dict[int, set[int]] = defaultdict(lambda: {0})
    for call in calls:
        do(mount, call)
        for content in disk.files().values():
            sizes[len(content)] = True
            for offset, value in enumerate(content):
                if value:
                    values[offset].add(value)

    for path, content in left_by(disk, survivors).items():
        assert path in PATHS
        assert len(content) in sizes
        for offset, value in enumerate(content):
            if value:
                assert value in values[offset], (path, offset)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(calls=CALLS, later=CALLS, survivors=SURVIVORS)
def test_a_fork_lives_as_its_origin_would_have(
    calls: list[tuple[object, ...]],
    later: list[tuple[object, ...]],
    survivors: Survivors,
) -> None:
    disk, mount = new_disk()
    for call in calls:
        do(mount, call)
    fork = SimDisk.fork(disk.snapshot())
    forked = fork.mount()

    for call in later:
        do(mount, call)
        do(forked, call)

    assert fork.files() == disk.files()
    assert fork.durable_files() == disk.durable_files()
    assert left_by(fork, survivors) == left_by(disk, survivors)
    assert fork.actions == disk.actions


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    lives=st.lists(st.tuples(CALLS, SURVIVORS), min_size=1, max_size=3),
    profile=st.sampled_from(sorted(PROFILES)),
)
def test_a_fork_is_as_its_origin_at_every_moment_of_every_life(
    lives: list[tuple[list[tuple[object, ...]], Survivors]], profile: str
) -> None:
    disk = SimDisk(PROFILES[profile])
    for calls, survivors in lives:
        mount = disk.mount()
        if "d" not in mount.list_dir(""):
            mount.make_dir("d")
        for call in calls:
            do(mount, call)
            _assert_alike(SimDisk.fork(disk.snapshot()), disk)
        disk.crash(Crash("power_loss", survivors))
        _assert_alike(SimDisk.fork(disk.snapshot()), disk)


def _assert_alike(fork: SimDisk, disk: SimDisk) -> None:
    assert fork.files() == disk.files()
    assert fork.durable_files() == disk.durable_files()
    assert fork.is_certain == disk.is_certain
    assert fork.mtimes() == disk.mtimes()
