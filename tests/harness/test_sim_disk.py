"""Litmus tests of the simulated disk: tiny histories, and what a crash may leave.

Each says what is allowed and what is forbidden after a process kill or a power loss
under ``ext4_ordered``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crashmq.engine.host.disk import PAGE_SIZE
from crashmq.harness.disk.crash import PowerLost, ProcessKilled, StoreCrashed
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk
from crashmq.harness.disk.sim_file import SimFile
from crashmq.models.ops import Crash, Survivors

NONE = Survivors("none")
ALL = Survivors("all")
SECTOR = 512
SEEDS = 400


def prefix(number: int) -> Survivors:
    return Survivors("prefix", number)


def hashed(seed: int) -> Survivors:
    return Survivors("hashed", seed)


def power_loss(survivors: Survivors, cut: int = 0) -> Crash:
    return Crash("power_loss", survivors, cut)


KILL = Crash("process_kill")


def new_disk(profile: str = "ext4_ordered") -> tuple[SimDisk, Mount]:
    disk = SimDisk(PROFILES[profile])
    return disk, disk.mount()


def synced_file(
    size: int = PAGE_SIZE, *, profile: str = "ext4_ordered"
) -> tuple[SimDisk, Mount, SimFile]:
    """A disk with one file ``f`` of zeros that is certain."""
    disk, mount = new_disk(profile)
    file = mount.open("f", size, create=True, mapped=True)
    file.sync()
    return disk, mount, file


def left_by(disk: SimDisk, survivors: Survivors) -> dict[str, bytes]:
    """What a power loss now would leave; the disk itself goes on."""
    other = SimDisk.fork(disk.snapshot())
    other.crash(power_loss(survivors))
    return other.files()


def all_left_by(disk: SimDisk, path: str = "f") -> set[bytes | None]:
    """Every content of a file over many seeds; None where it is gone."""
    return {left_by(disk, hashed(seed)).get(path) for seed in range(SEEDS)}


# What a power loss may leave


def test_unsynced_bytes_need_not_survive() -> None:
    disk, _, file = synced_file()
    file.write_at(0, b"new")

    assert left_by(disk, NONE)["f"] == bytes(PAGE_SIZE)
    assert left_by(disk, ALL)["f"][:3] == b"new"


def test_synced_bytes_survive_every_power_loss() -> None:
    disk, _, file = synced_file()
    file.write_at(0, b"new")
    file.sync()

    assert all_left_by(disk) == {disk.files()["f"]}
    assert disk.durable_files() == disk.files() == left_by(disk, NONE)


def test_a_sector_that_is_written_by_a_call_is_whole_or_not_there() -> None:
    disk, mount, _ = synced_file()
    file = mount.open("g", PAGE_SIZE, create=True, mapped=False)
    file.sync()
    file.write_at(0, b"x" * SECTOR)

    assert all_left_by(disk, "g") == {bytes(PAGE_SIZE), disk.files()["g"]}


@pytest.mark.slow
@pytest.mark.parametrize("profile", sorted({*PROFILES} - {"kill9"}))
def test_write_back_meets_a_copy_into_a_mapping_at_any_moment(profile: str) -> None:
    disk, _, file = synced_file(profile=profile)
    file.write_at(32, b"x" * 160)
    file.write_at(300, b"y")

    whole = {left for left in all_left_by(disk) if left and left[300:301] == b"y"}
    cut = {left.count(b"x") for left in all_left_by(disk) if left and left not in whole}

    if profile == "nvme_torn":
        assert {0, 32, 96, 160} <= cut
    else:
        assert {left.count(b"x") for left in whole} == {160}
        assert cut == {0, 32, 96, 160}


def test_a_write_may_be_torn_between_sectors() -> None:
    disk, _, file = synced_file()
    file.write_at(SECTOR - 2, b"abcd")

    assert {left[SECTOR - 2 : SECTOR + 2] for left in all_left_by(disk) if left} == {
        b"abcd",
        b"ab\0\0",
        b"\0\0cd",
        bytes(4),
    }


def test_a_later_write_may_survive_an_earlier_one() -> None:
    disk, _, file = synced_file(2 * PAGE_SIZE)
    file.write_at(0, b"first")
    file.write_at(PAGE_SIZE, b"second")

    lefts = {(left[:5], left[PAGE_SIZE:][:6]) for left in all_left_by(disk) if left}
    assert lefts == {
        (first, second)
        for first in (b"first", bytes(5))
        for second in (b"second", bytes(6))
    }


def test_no_file_waits_for_another() -> None:
    disk, mount, one = synced_file()
    two = mount.open("g", PAGE_SIZE, create=True, mapped=True)
    two.sync()
    one.write_at(0, b"1")
    two.write_at(0, b"2")
    one.sync()

    lefts = {left_by(disk, hashed(seed))["g"][:1] for seed in range(SEEDS)}
    assert lefts == {b"\0", b"2"}
    assert left_by(disk, NONE)["f"][:1] == b"1"


def test_every_store_boundary_is_a_version_and_nothing_else() -> None:
    disk, _, file = synced_file()
    for letter in (b"a", b"b", b"c"):
        file.write_at(0, letter * 3)

    versions = {left[:3] for left in all_left_by(disk) if left}
    assert versions == {bytes(3), b"aaa", b"bbb", b"ccc"}


def test_over_many_seeds_every_pair_of_sector_versions_appears() -> None:
    disk, _, file = synced_file()
    for version in (b"1", b"2"):
        file.write_at(0, version)
        file.write_at(3 * SECTOR, version)

    pairs = {(left[:1], left[3 * SECTOR :][:1]) for left in all_left_by(disk) if left}
    marks = (b"\0", b"1", b"2")
    assert pairs == {(one, two) for one in marks for two in marks}


def test_neighbours_stand_or_fall_together_in_some_seeds_only() -> None:
    disk, _, file = synced_file()
    file.write_at(0, b"x" * PAGE_SIZE)

    kept = [
        sum(left[at] > 0 for at in range(0, PAGE_SIZE, SECTOR))
        for left in (left_by(disk, hashed(seed))["f"] for seed in range(SEEDS))
    ]
    assert set(kept) == set(range(9))
    # A tenth of the seeds loses all and a tenth nothing; runs of eight add to both.
    assert 0.18 < kept.count(0) / SEEDS < 0.35
    assert 0.18 < kept.count(8) / SEEDS < 0.35
    # Without runs the two would make up 38 in 100, with them it is 50.
    assert (kept.count(0) + kept.count(8)) / SEEDS > 0.44


def test_a_prefix_keeps_the_first_effects_in_order() -> None:
    disk, mount = new_disk()
    file = mount.open("f", PAGE_SIZE, create=True, mapped=True)
    file.write_at(0, b"a")
    file.write_at(1, b"b")

    lefts = [left_by(disk, prefix(number)).get("f") for number in range(6)]
    assert lefts[:3] == [None, b"", bytes(PAGE_SIZE)]
    assert [left[:2] for left in lefts[3:] if left] == [b"a\0", b"ab", b"ab"]


def test_the_same_seed_leaves_the_same_bytes() -> None:
    disk, _, file = synced_file()
    for at in range(0, PAGE_SIZE, 64):
        file.write_at(at, b"x" * 64)

    assert left_by(disk, hashed(7)) == left_by(disk, hashed(7))


def test_a_sector_keeps_its_version_when_other_writes_are_cut() -> None:
    disk, _, file = synced_file()
    file.write_at(0, b"one")
    shorter = [left_by(disk, hashed(seed))["f"][:3] for seed in range(50)]
    file.write_at(5 * SECTOR, b"two")

    longer = [left_by(disk, hashed(seed))["f"][:3] for seed in range(50)]
    assert longer == shorter


def test_after_a_power_loss_nothing_is_pending() -> None:
    disk, _, file = synced_file()
    file.write_at(0, b"x" * PAGE_SIZE)
    disk.crash(power_loss(hashed(3)))

    assert disk.files() == disk.durable_files() == left_by(disk, NONE)
    assert left_by(disk, NONE) == left_by(disk, ALL)


def test_what_survived_a_power_loss_survives_the_next() -> None:
    disk, mount = new_disk()
    mount.open("f", SECTOR, create=True, mapped=True)
    mount.open("g", SECTOR, create=True, mapped=True).write_at(0, b"x")
    disk.crash(power_loss(ALL))
    survived = disk.files()
    disk.crash(power_loss(NONE))

    assert (
        disk.files() == survived == {"f": bytes(SECTOR), "g": b"x".ljust(SECTOR, b"\0")}
    )


def test_a_store_keeps_its_bytes_when_the_writer_changes_its_own() -> None:
    disk, _, file = synced_file()
    buffer = bytearray(b"abc")
    file.write_at(0, buffer)
    buffer[0] = 0

    assert left_by(disk, ALL)["f"][:3] == b"abc"


# Names and sizes


def test_a_new_file_may_be_gone_or_empty_or_whole_and_its_data_alone_never() -> None:
    disk, mount = new_disk()
    mount.open("f", SECTOR, create=True, mapped=False).write_at(0, b"x" * SECTOR)

    assert all_left_by(disk) == {None, b"", bytes(SECTOR), b"x" * SECTOR}


def test_directory_changes_survive_as_a_prefix() -> None:
    disk, mount = new_disk()
    for path in ("a", "b", "c"):
        mount.make_dir(path)
        mount.open(f"{path}/f", 0, create=True, mapped=False)

    lefts = {tuple(left_by(disk, hashed(seed))) for seed in range(SEEDS)}
    assert lefts == {(), ("a/f",), ("a/f", "b/f"), ("a/f", "b/f", "c/f")}


def test_a_sync_of_any_file_commits_every_earlier_name() -> None:
    disk, mount, file = synced_file()
    mount.open("new", SECTOR, create=True, mapped=False)
    file.sync()
    mount.open("later", SECTOR, create=True, mapped=False)

    assert list(left_by(disk, NONE)) == ["f", "new"]


def test_a_sync_of_a_directory_commits_names_and_no_data() -> None:
    disk, mount = new_disk()
    file = mount.open("f", SECTOR, create=True, mapped=False)
    file.write_at(0, b"data")
    mount.sync_dir("")

    assert left_by(disk, NONE) == {"f": bytes(SECTOR)}


def test_a_removed_file_may_come_back_with_its_bytes() -> None:
    disk, mount, file = synced_file()
    file.write_at(0, b"old")
    file.sync()
    mount.remove("f")

    assert disk.files() == {}
    assert {left[:3] if left else None for left in all_left_by(disk)} == {None, b"old"}
    mount.sync_dir("")
    assert left_by(disk, NONE) == {}


def test_a_rename_shows_the_old_file_or_the_new_one_whole() -> None:
    disk, mount, file = synced_file(SECTOR)
    file.write_at(0, b"old")
    file.sync()
    new = mount.open("tmp", SECTOR, create=True, mapped=False)
    new.write_at(0, b"new")
    mount.rename("tmp", "f")

    # The new data goes out before the rename commits, though it was never synced.
    assert {left[:3] for left in all_left_by(disk) if left} == {b"old", b"new"}


def test_a_rename_to_a_free_name_may_show_a_file_without_its_data() -> None:
    disk, mount = new_disk()
    mount.open("tmp", SECTOR, create=True, mapped=False).write_at(0, b"new")
    mount.rename("tmp", "f")

    assert bytes(SECTOR) in all_left_by(disk)


def test_a_committed_rename_carries_its_data() -> None:
    disk, mount, _ = synced_file(SECTOR)
    new = mount.open("tmp", SECTOR, create=True, mapped=False)
    new.write_at(0, b"before")
    mount.rename("tmp", "f")
    new.write_at(0, b"after!")
    mount.sync_dir("")

    assert left_by(disk, NONE)["f"][:6] == b"before"
    assert left_by(disk, prefix(1))["f"][:6] == b"after!"


def test_a_lost_cut_brings_the_old_bytes_back_and_nothing_stored_after_it() -> None:
    disk, mount, file = synced_file(SECTOR)
    file.write_at(0, b"abcdef")
    file.sync()
    file.close()
    mount.truncate("f", 3)
    mount.truncate("f", SECTOR)
    mount.open("f", SECTOR, create=False, mapped=True).write_at(2, b"XYZ")

    lefts = {left.rstrip(b"\0") for left in all_left_by(disk) if left is not None}
    assert lefts == {b"abcdef", b"abXdef", b"abc", b"abX", b"abXYZ"}


def test_a_committed_cut_takes_what_was_stored_before_it() -> None:
    disk, mount, file = synced_file(SECTOR)
    file.write_at(0, b"abcdef")
    file.close()
    mount.truncate("f", 3)
    mount.sync_dir("")
    mount.truncate("f", SECTOR)
    mount.sync_dir("")

    assert left_by(disk, ALL)["f"].rstrip(b"\0") == b"abc"
    assert left_by(disk, NONE)["f"] == bytes(SECTOR)


def test_a_committed_cut_takes_what_was_certain_beyond_it() -> None:
    disk, mount, file = synced_file(SECTOR)
    file.write_at(0, b"abcdef")
    file.sync()
    file.close()
    mount.truncate("f", 3)
    mount.truncate("f", SECTOR)
    mount.sync_dir("")

    assert left_by(disk, NONE)["f"].rstrip(b"\0") == b"abc"


def test_a_sync_after_a_cut_makes_what_readers_see_certain() -> None:
    disk, mount, file = synced_file(SECTOR)
    file.write_at(0, b"abcdef")
    file.close()
    mount.truncate("f", 3)
    mount.truncate("f", 2 * SECTOR)
    grown = mount.open("f", 2 * SECTOR, create=False, mapped=True)
    grown.write_at(SECTOR, b"x")
    grown.sync()

    assert disk.durable_files() == disk.files()


# A process kill, and the profile that knows no other crash


def test_a_process_kill_keeps_all_and_what_was_pending_stays_so() -> None:
    disk, _, file = synced_file()
    file.write_at(0, b"new")
    disk.crash(KILL)

    assert disk.files()["f"][:3] == b"new"
    assert left_by(disk, NONE)["f"] == bytes(PAGE_SIZE)


def test_under_kill9_a_power_loss_takes_nothing() -> None:
    disk, mount = new_disk("kill9")
    mount.open("f", SECTOR, create=True, mapped=True).write_at(0, b"new")
    before = disk.files()
    disk.crash(power_loss(NONE))

    assert disk.files() == before == disk.durable_files()


@pytest.mark.parametrize(
    ("crash", "kind"), [(KILL, ProcessKilled), (power_loss(ALL), PowerLost)]
)
def test_an_ended_life_raises_its_crash_for_ever(
    crash: Crash, kind: type[StoreCrashed]
) -> None:
    disk, mount, file = synced_file()
    lock = mount.lock("lock")
    disk.crash(crash)
    disk.mount()

    calls: tuple[Callable[[], object], ...] = (
        lambda: file.read_at(0, 0),
        lambda: file.write_at(0, b""),
        file.sync,
        file.close,
        lock.release,
        lambda: mount.exists("f"),
        lambda: mount.open("f", PAGE_SIZE, create=False, mapped=True),
    )
    for call in calls:
        with pytest.raises(kind):
            call()
    assert disk.files()["f"] == bytes(PAGE_SIZE)


def test_a_crash_and_an_unmount_free_the_lock_and_the_open_files() -> None:
    disk, mount, _ = synced_file()
    mount.lock("lock")
    disk.crash(KILL)
    mount = disk.mount()
    mount.lock("lock")
    mount.truncate("f", 1)
    disk.unmount()
    disk.unmount()

    disk.mount().lock("lock")


def test_where_writes_keep_their_order_bytes_behind_a_cut_are_not_lost() -> None:
    """A sync of another file commits the cut, and the bytes put there after it."""
    disk = SimDisk(PROFILES["ext4_data"])
    disk.load({"f": b"old" * 30, "g": bytes(10)})
    mount = disk.mount()
    mount.truncate("f", 30)
    mount.truncate("f", 60)
    file = mount.open("f", 60, create=False, mapped=False)
    file.write_at(40, b"new")

    other = mount.open("g", 10, create=False, mapped=False)
    other.write_at(0, b"x")
    other.sync()

    assert disk.durable_files()["f"] == disk.files()["f"]
