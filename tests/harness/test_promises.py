"""What a law may still demand of a disk that has failed."""

from __future__ import annotations

import pytest

from crashmq.harness.disk.profiles import PROFILES
from crashmq.models.knowledge.promises import Promises
from crashmq.models.observations import Damaged
from crashmq.models.ops import DiskFault, During, RunService

FAILED_SYNC = During(RunService("flush_commit_log"), 1, DiskFault("sync", "EIO"))
EVICTED = During(RunService("reput"), 1, DiskFault("evict", "EIO"))


@pytest.mark.parametrize("profile", PROFILES)
def test_power_loss_breaks_promises_where_syncs_lie_or_sectors_tear(
    profile: str,
) -> None:
    promises = Promises(PROFILES[profile])

    assert promises.is_broken_by("power_loss") == (
        profile in ("nvme_torn", "physical_4k", "lying_disk")
    )
    assert not promises.is_broken_by("process_kill")


def test_an_error_that_comes_late_breaks_them_until_power_was_lost() -> None:
    promises = Promises(PROFILES["ext4_data"])
    promises.saw_fault(FAILED_SYNC)
    promises.renewed()

    assert promises.is_broken_by("power_loss")
    promises.lost_power()
    assert not promises.is_broken_by("power_loss")


@pytest.mark.parametrize(
    ("profile", "faults", "reverts"),
    [
        ("btrfs", (FAILED_SYNC,), True),
        ("xfs", (FAILED_SYNC,), False),
        ("xfs", (FAILED_SYNC, EVICTED), True),
        ("xfs", (EVICTED,), False),
        ("xfs", (EVICTED, FAILED_SYNC), False),
    ],
)
def test_memory_reverts_at_once_or_when_clean_pages_leave_it(
    profile: str, faults: tuple[During, ...], reverts: bool
) -> None:
    promises = Promises(PROFILES[profile])

    for fault in faults:
        promises.saw_fault(fault)

    assert promises.reverts == reverts


def test_memory_has_reverted_until_a_start_has_read_what_is_left() -> None:
    promises = Promises(PROFILES["btrfs"])
    promises.saw_fault(FAILED_SYNC)

    promises.renewed()

    assert not promises.reverts


def test_a_late_error_is_told_to_the_life_that_made_it() -> None:
    promises = Promises(PROFILES["ext4_data"])
    promises.saw_fault(FAILED_SYNC)
    assert promises.errors_come_late

    promises.renewed()

    assert not promises.errors_come_late


def test_a_copy_lives_on_its_own() -> None:
    promises = Promises(PROFILES["btrfs"])
    promises.fork().saw_fault(FAILED_SYNC)

    assert not promises.reverts


def test_a_lost_page_is_damage_once_memory_or_power_is_gone() -> None:
    page = Damaged("commitlog/00000000000000000000", 0, 4096)
    lost = During(RunService("flush_commit_log"), 1, DiskFault("lose", "EIO"))
    forgotten, cut = Promises(PROFILES["xfs"]), Promises(PROFILES["xfs"])
    for promises in (forgotten, cut):
        assert promises.saw_fault(lost, [page]) == ()
        assert not promises.keeps_what_is_synced

    assert forgotten.saw_fault(EVICTED) == (page,)
    assert forgotten.reverts
    assert cut.lost_power() == (page,)
    assert not cut.reverts
    for promises in (forgotten, cut):
        assert promises.keeps_what_is_synced
        assert promises.lost_power() == ()
