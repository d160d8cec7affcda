"""Episodes on disks that spoil what was written, and what may be asked of them."""

from __future__ import annotations

import pytest

from harness.episode import EpisodeResult, run_program
from models.ops import Crash, DiskFault, During, Op, PutMessage, Shutdown, Survivors
from models.program import Program, Setup

TEAR = During(
    PutMessage("T0", 0, 1), 1, Crash("power_loss", Survivors("hashed", 0), cut=4)
)


def run(setup: Setup, *ops: Op) -> EpisodeResult:
    return run_program(Program(setup, ops))


@pytest.mark.parametrize("prop_crc", [False, True])
def test_a_torn_sector_may_spoil_names_that_no_crc_covers(*, prop_crc: bool) -> None:
    setup = Setup(flush_mode="SYNC_FLUSH", disk_profile="nvme_torn", prop_crc=prop_crc)

    result = run(setup, PutMessage("T0", 0, 3461), PutMessage("T0", 0, 398), TEAR)

    assert result.invariant == ""


def test_pages_that_leave_memory_while_the_store_is_down_are_not_asked_for() -> None:
    result = run(
        Setup(),
        PutMessage("T0", 0, 1),
        During(Shutdown(), 1, DiskFault("sync", "EIO")),
        During(PutMessage("T0", 0, 1), 1, DiskFault("evict", "EIO")),
    )

    assert result.invariant == ""
