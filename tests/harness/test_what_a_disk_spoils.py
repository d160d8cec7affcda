"""Episodes on disks that spoil what was written, and what may be asked of them."""

from __future__ import annotations

import pytest

from crashmq.harness.episodes.episode import EpisodeResult, run_program
from crashmq.models.ops import (
    AdvanceClock,
    Crash,
    DiskFault,
    During,
    KeptUnit,
    Op,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Survivors,
)
from crashmq.models.program import Program, Setup

TEAR = During(
    PutMessage("T0", 0, 1), 1, Crash("power_loss", Survivors("hashed", 0), cut=4)
)


def run(setup: Setup, *ops: Op) -> EpisodeResult:
    return run_program(Program(setup, ops))


@pytest.mark.parametrize("prop_crc", [False, True])
def test_a_torn_sector_may_spoil_names_that_no_crc_covers(*, prop_crc: bool) -> None:
    setup = Setup(flush_mode="SYNC_FLUSH", disk_profile="nvme_torn", prop_crc=prop_crc)

    result = run(setup, PutMessage("T0", 0, 3461), PutMessage("T0", 0, 398), TEAR)

    assert result.law == ""


def test_a_torn_sector_may_spoil_the_crc_that_covers_it() -> None:
    setup = Setup(disk_profile="nvme_torn", prop_crc=True)
    log = "commitlog/00000000000000000000"
    kept = (KeptUnit(log, 0, 4), KeptUnit(log, 1, 4), KeptUnit(log, 2, 1))
    crash = Crash("power_loss", Survivors("units", units=kept))

    result = run(
        setup,
        PutMessage("T0", 0, 891, tags="TagA"),
        During(AdvanceClock(1), 1, crash),
    )

    assert result.law == ""


@pytest.mark.slow
def test_a_file_beside_a_queue_that_is_not_there_may_be_empty() -> None:
    setup = Setup(queue_ext_size=100)
    killed = [
        During(RunService("reput"), action, Crash("process_kill"))
        for action in range(1, 40)
    ]

    broken = {
        run(setup, PutMessage("T0", 0, 1), PutMessage("T1", 0, 1), kill).law
        for kill in killed
    }

    assert broken == {""}


def test_pages_that_leave_memory_while_the_store_is_down_are_not_asked_for() -> None:
    result = run(
        Setup(),
        PutMessage("T0", 0, 1),
        During(Shutdown(), 1, DiskFault("sync", "EIO")),
        During(PutMessage("T0", 0, 1), 1, DiskFault("evict", "EIO")),
    )

    assert result.law == ""


def test_a_lost_page_may_leave_what_a_start_left_below_a_later_mark() -> None:
    """Seed 901, episode 455 of lost_writes: the second start is not of the same."""
    put, lost = PutMessage("T0", 0, 1), DiskFault("lose", "EIO", path="commitlog")

    result = run(
        Setup(on_damage="serve"),
        *(put, Restart(), put, During(Shutdown(), 1, lost)),
        During(Restart(), 1, Crash("power_loss")),
    )

    assert result.law == ""


def test_a_torn_block_may_take_both_slots_of_the_mark_and_no_law_is_broken() -> None:
    """Each sector of the checkpoint at each of its versions, slots alike."""
    setup = Setup(flush_mode="SYNC_FLUSH", disk_profile="physical_4k")
    marked = (PutMessage("T0", 0, 1), RunService("checkpoint"), PutMessage("T0", 0, 1))
    ends: list[str] = []
    for version in range(8):
        kept = tuple(KeptUnit("checkpoint", slot, version) for slot in (1, 2))
        crash = Crash("power_loss", Survivors("units", units=kept))
        result = run(
            setup, *marked, During(RunService("checkpoint"), 3, crash), Restart()
        )
        assert result.law == ""
        ends.append(str(result.trace[-1].observation))

    assert any("checkpoint" in end and "Refused" in end for end in ends)
    assert ends[1].startswith("Stopped(clean=True")  # both are garbage
