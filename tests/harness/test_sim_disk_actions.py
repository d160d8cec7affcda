"""Where the world steps in on the simulated disk: counted actions, faults, forks."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from crashmq.engine.host.disk import PAGE_SIZE
from crashmq.harness.disk.crash import PowerLost, ProcessKilled
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.sim_file import SimFile
from crashmq.models.ops import Crash, DiskFault, Survivors

NONE = Survivors("none")
ALL = Survivors("all")
SECTOR = 512


def power_loss(survivors: Survivors, cut: int = 0) -> Crash:
    return Crash("power_loss", survivors, cut)


def prefix(number: int) -> Survivors:
    return Survivors("prefix", number)


KILL = Crash("process_kill")


def new_disk(profile: str = "ext4_ordered") -> tuple[SimDisk, Mount]:
    disk = SimDisk(PROFILES[profile])
    return disk, disk.mount()


def synced_file(size: int = PAGE_SIZE) -> tuple[SimDisk, Mount, SimFile]:
    """A disk with one file ``f`` of zeros that is certain."""
    disk, mount = new_disk()
    file = mount.open("f", size, create=True, mapped=True)
    file.sync()
    return disk, mount, file


def left_by(disk: SimDisk, survivors: Survivors) -> dict[str, bytes]:
    """What a power loss now would leave; the disk itself goes on."""
    other = SimDisk.fork(disk.snapshot())
    other.crash(power_loss(survivors))
    return other.files()


def crash_at(disk: SimDisk, n: int, crash: Crash) -> None:
    def end() -> None:
        raise disk.crash(crash)

    disk.at_action(n, crash.cut, end)


# The counted action, and what steps in there


def test_actions_are_pages_written_pages_synced_and_directory_changes() -> None:
    disk, mount = new_disk()
    seen: list[tuple[str, int]] = []

    def step(call: Callable[[], object]) -> None:
        before = disk.actions
        call()
        seen.append((disk.last_action, disk.actions - before))

    step(lambda: mount.make_dir("d"))
    step(lambda: mount.open("d/f", 3 * PAGE_SIZE, create=True, mapped=True))
    file = mount.open("d/f", 3 * PAGE_SIZE, create=False, mapped=True)
    step(lambda: file.write_at(PAGE_SIZE - 1, b"x" * (PAGE_SIZE + 2)))
    step(file.sync)
    step(file.sync)
    step(lambda: mount.sync_dir("d"))
    step(lambda: mount.rename("d/f", "d/g"))
    step(lambda: mount.remove("d/g"))
    assert seen == [
        ("make_dir:d", 1),
        ("size:d/f", 2),
        ("write:d/f", 3),
        ("sync:d/f", 3),
        ("sync:d/f", 0),
        ("sync_dir:d", 1),
        ("rename:d/g", 1),
        ("remove:d/g", 1),
    ]


@pytest.mark.parametrize("cut", [0, 1, 4, 99])
def test_a_store_into_a_mapping_is_cut_where_it_was_told(cut: int) -> None:
    disk, _, file = synced_file()
    crash_at(disk, 1, Crash("process_kill", cut=cut))

    with pytest.raises(ProcessKilled):
        file.write_at(10, b"abcd")

    assert disk.end_watch()
    assert disk.files()["f"][10:14] == b"abcd"[:cut].ljust(4, b"\0")


def test_a_write_that_is_not_mapped_is_cut_between_pages_only() -> None:
    disk, mount = new_disk()
    file = mount.open("f", 2 * PAGE_SIZE, create=True, mapped=False)
    crash_at(disk, 2, Crash("process_kill", cut=1))

    with pytest.raises(ProcessKilled):
        file.write_at(PAGE_SIZE - 2, b"abcd")

    assert disk.files()["f"][PAGE_SIZE - 2 :][:4] == b"ab\0\0"


def test_the_part_before_the_cut_is_a_version_of_its_own() -> None:
    disk, _, file = synced_file()
    crash_at(disk, 1, power_loss(ALL, cut=2))

    with pytest.raises(PowerLost):
        file.write_at(0, b"abcd")

    assert disk.files()["f"][:4] == b"ab\0\0"


def test_an_event_that_returns_lets_the_action_go_on() -> None:
    disk, _, file = synced_file()
    seen: list[bytes] = []
    disk.at_action(1, 2, lambda: seen.append(file.read_at(0, 4)))
    file.write_at(0, b"abcd")
    file.write_at(4, b"ef")

    assert seen == [b"ab\0\0"]
    assert file.read_at(0, 6) == b"abcdef"
    assert disk.end_watch()


def test_a_watch_that_is_ended_does_not_happen() -> None:
    disk, _, file = synced_file()
    crash_at(disk, 2, KILL)
    file.write_at(0, b"x")

    assert not disk.end_watch()
    assert not disk.end_watch()
    file.write_at(0, b"y")


def test_watches_nest_and_each_knows_whether_it_happened() -> None:
    disk, _, file = synced_file()
    happened: list[str] = []

    def outer() -> None:
        happened.append("outer")
        disk.at_action(1, 0, lambda: happened.append("inner"))
        file.write_at(8, b"x")
        assert disk.end_watch()
        disk.at_action(9, 0, lambda: happened.append("never"))

    disk.at_action(1, 0, outer)
    file.write_at(0, b"y")

    assert [disk.end_watch(), disk.end_watch()] == [False, True]
    assert happened == ["outer", "inner"]


def test_two_watches_on_one_action_happen_in_the_order_of_their_cuts() -> None:
    disk, _, file = synced_file()
    seen: list[bytes] = []
    for cut in (3, 1):
        disk.at_action(1, cut, lambda: seen.append(file.read_at(0, 4)))
    file.write_at(0, b"abcd")

    assert seen == [b"a\0\0\0", b"abc\0"]
    assert file.read_at(0, 4) == b"abcd"


@pytest.mark.parametrize(("n", "cut"), [(0, 0), (-1, 0), (1, -1)])
def test_a_watch_out_of_range_is_refused(n: int, cut: int) -> None:
    disk, _ = new_disk()

    with pytest.raises(ValueError, match="cannot watch"):
        disk.at_action(n, cut, lambda: None)


def test_a_crash_between_name_and_size_leaves_an_empty_file() -> None:
    disk, mount = new_disk()
    crash_at(disk, 2, KILL)

    with pytest.raises(ProcessKilled):
        mount.open("f", PAGE_SIZE, create=True, mapped=True)

    assert disk.files() == {"f": b""}
    with pytest.raises(OSError, match="0 bytes") as caught:
        disk.mount().open("f", PAGE_SIZE, create=True, mapped=True)
    assert caught.value.errno == errno.EINVAL


def test_a_crash_in_a_sync_leaves_its_first_pages_certain() -> None:
    disk, _, file = synced_file(3 * PAGE_SIZE)
    for page in (2, 0, 1):
        file.write_at(page * PAGE_SIZE, b"x")
    crash_at(disk, 3, power_loss(NONE))

    with pytest.raises(PowerLost):
        file.sync()

    left = disk.files()["f"]
    assert [left[page * PAGE_SIZE] for page in range(3)] == [ord("x"), ord("x"), 0]


def test_a_crash_before_a_directory_change_leaves_it_undone() -> None:
    disk, mount, _ = synced_file()
    crash_at(disk, 1, KILL)

    with pytest.raises(ProcessKilled):
        mount.rename("f", "g")

    assert list(disk.files()) == ["f"]


def test_a_crash_in_the_recovery_of_a_crash_loses_again() -> None:
    disk, _, file = synced_file()
    file.write_at(0, b"ab")
    disk.crash(power_loss(ALL))
    again = disk.mount().open("f", PAGE_SIZE, create=False, mapped=True)
    again.write_at(0, b"\0")
    disk.crash(power_loss(NONE))

    assert disk.files()["f"][:2] == b"ab"


# Calls that fail


def test_a_failed_sync_leaves_bytes_that_only_writing_again_makes_durable() -> None:
    disk, _, file = synced_file()
    file.write_at(0, b"lost")
    disk.fail(DiskFault("sync", "EIO"))
    with pytest.raises(OSError, match="made to fail") as caught:
        file.sync()
    assert caught.value.errno == errno.EIO

    file.sync()
    assert file.read_at(0, 4) == b"lost"
    assert left_by(disk, ALL)["f"] == bytes(PAGE_SIZE)

    file.write_at(0, b"lost")
    file.sync()
    assert left_by(disk, NONE)["f"][:4] == b"lost"
    assert disk.heal() == 1


def test_a_sync_that_fails_half_way_keeps_its_first_pages() -> None:
    disk, _, file = synced_file(2 * PAGE_SIZE)
    file.write_at(0, b"x")
    file.write_at(PAGE_SIZE, b"x")
    disk.at_action(2, 0, lambda: disk.fail(DiskFault("sync", "EIO")))

    with pytest.raises(OSError, match="made to fail"):
        file.sync()

    left = left_by(disk, ALL)["f"]
    assert (left[0], left[PAGE_SIZE]) == (ord("x"), 0)


@pytest.mark.parametrize("mapped", [True, False])
def test_a_write_that_fails_half_way_leaves_a_prefix(mapped: bool) -> None:
    disk, mount = new_disk()
    file = mount.open("f", 2 * PAGE_SIZE, create=True, mapped=mapped)
    disk.at_action(2, 1, lambda: disk.fail(DiskFault("write", "EIO")))

    with pytest.raises(OSError, match="made to fail"):
        file.write_at(PAGE_SIZE - 2, b"abcd")

    assert disk.files()["f"][PAGE_SIZE - 2 :][:4] == b"abc\0"
    assert disk.heal() == 1


@pytest.mark.parametrize("action", [1, 2])
def test_a_failed_create_leaves_nothing(action: int) -> None:
    disk, mount = new_disk()
    disk.at_action(action, 0, lambda: disk.fail(DiskFault("create", "ENOSPC")))

    with pytest.raises(OSError, match="made to fail") as caught:
        mount.open("f", PAGE_SIZE, create=True, mapped=True)

    assert caught.value.errno == errno.ENOSPC
    assert disk.files() == {} == left_by(disk, ALL)


def test_faults_meet_so_many_calls_of_their_kind_and_no_others() -> None:
    disk, mount, file = synced_file()
    disk.fail(DiskFault("create", "ENOSPC", times=3))
    file.write_at(0, b"x")
    file.sync()
    calls: tuple[Callable[[], object], ...] = (
        lambda: mount.make_dir("d"),
        lambda: mount.open("g", 1, create=True, mapped=False),
        lambda: mount.lock("lock"),
    )
    for call in calls:
        with pytest.raises(OSError, match="made to fail"):
            call()

    mount.make_dir("d")
    assert disk.heal() == 3
    assert disk.heal() == 0


def test_healing_disarms_what_no_call_has_met() -> None:
    disk, _, file = synced_file()
    disk.fail(DiskFault("read", "EIO", times=5))
    with pytest.raises(OSError, match="made to fail"):
        file.read_at(0, 1)

    assert disk.heal() == 1
    assert file.read_at(0, 1) == b"\0"


def test_a_file_that_grows_meets_a_full_disk_and_one_that_shrinks_does_not() -> None:
    disk, mount, file = synced_file()
    file.close()
    disk.fail(DiskFault("create", "ENOSPC"))
    mount.truncate("f", 10)

    with pytest.raises(OSError, match="made to fail"):
        mount.truncate("f", 20)
    assert mount.file_size("f") == 10


def test_a_failed_sync_of_a_directory_commits_nothing() -> None:
    disk, mount = new_disk()
    mount.make_dir("d")
    mount.open("d/f", 0, create=True, mapped=False)
    disk.fail(DiskFault("sync", "EIO"))

    with pytest.raises(OSError, match="made to fail"):
        mount.sync_dir("d")

    assert left_by(disk, NONE) == {}


# Snapshots, and the harness's hands in the files


def test_a_fork_and_its_origin_do_not_touch_each_other() -> None:
    disk, mount, file = synced_file()
    file.write_at(0, b"a")
    fork = SimDisk.fork(disk.snapshot())
    forked = fork.mount()
    forked.open("f", PAGE_SIZE, create=False, mapped=True).write_at(0, b"B")
    forked.remove("f")
    forked.make_dir("d")
    file.write_at(1, b"c")
    file.sync()
    mount.make_dir("e")

    assert disk.files()["f"][:3] == b"ac\0"
    assert fork.files() == {}
    assert left_by(fork, prefix(1))["f"][:3] == b"a\0\0"
    assert forked.list_dir("") == ["d"]
    fork.crash(power_loss(NONE))
    assert fork.files() == {"f": bytes(PAGE_SIZE)}


def test_one_snapshot_gives_many_forks() -> None:
    disk, _, file = synced_file()
    file.write_at(0, b"a")
    snapshot = disk.snapshot()
    actions = disk.actions
    file.write_at(2, b"later")
    for survivors, left in ((NONE, b"\0\0\0"), (ALL, b"a\0\0")):
        fork = SimDisk.fork(snapshot)
        fork.crash(power_loss(survivors))
        assert fork.files()["f"][:3] == left
        fork.mount().open("f", PAGE_SIZE, create=False, mapped=True).write_at(1, b"x")

    fork = SimDisk.fork(snapshot)
    assert fork.files()["f"][:2] == b"a\0"
    assert fork.actions == actions
    assert fork.last_action == "write:f"


def test_unchanged_files_are_the_identical_object() -> None:
    disk, mount, file = synced_file()
    mount.open("g", SECTOR, create=True, mapped=True).sync()
    before = disk.files()
    file.write_at(0, b"x")
    file.sync()
    disk.crash(power_loss(NONE))

    after = disk.files()
    assert after["g"] is before["g"]
    assert after["f"] != before["f"]


def test_files_are_loaded_with_their_directories_and_are_certain() -> None:
    disk = SimDisk(PROFILES["ext4_ordered"])
    disk.load({"z": b"1", "a/b/c": b"22"})

    assert disk.files() == {"a/b/c": b"22", "z": b"1"} == disk.durable_files()
    assert list(disk.files()) == ["a/b/c", "z"]
    mount = disk.mount()
    assert mount.list_dir("a") == ["b"]
    assert disk.actions == 0


def test_a_file_can_be_damaged_on_both_images() -> None:
    disk, _, file = synced_file()
    file.write_at(0, b"pending")
    disk.crash(KILL)

    disk.replace_file("f", b"damaged")
    assert disk.files() == {"f": b"damaged"} == left_by(disk, ALL)
    disk.replace_file("f", None)
    assert disk.files() == {} == left_by(disk, ALL)
    with pytest.raises(FileNotFoundError):
        disk.replace_file("f", None)


def test_a_fault_of_an_event_meets_the_call_it_steps_into() -> None:
    disk, mount, _ = synced_file()
    disk.at_action(1, 0, lambda: disk.fail(DiskFault("sync", "EIO")))

    with pytest.raises(OSError, match="made to fail"):
        mount.sync_dir("")


def test_a_change_that_an_event_made_impossible_is_refused_in_the_end() -> None:
    disk, mount, _ = synced_file()
    disk.at_action(1, 0, lambda: mount.remove("f"))

    with pytest.raises(FileNotFoundError):
        mount.remove("f")
    assert disk.files() == {} == left_by(disk, ALL)


def test_a_file_that_an_event_made_first_is_opened() -> None:
    disk, mount = new_disk()
    disk.at_action(
        1, 0, lambda: mount.open("f", 9, create=True, mapped=True).write_at(0, b"x")
    )

    assert mount.open("f", 9, create=True, mapped=True).read_at(0, 1) == b"x"
