"""What a start of RocketMQ makes of queues whose files lack units, or are gone.

Each number is what 4.9.8, 5.3.0, 5.3.3 and 5.5.1 themselves lost of the store.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from golden_store import golden

from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.releases import RELEASES, Release

REFUSED = -1
UNIT = 20


def files(root: Path, name: str = "audit-log/0") -> list[Path]:
    """The queue's four files of twenty units each are all full."""
    return sorted((root / "consumequeue" / name).iterdir())


def zero(path: Path, start: int = 0, size: int = 20 * UNIT) -> None:
    data = bytearray(path.read_bytes())
    data[start : start + size] = bytes(size)
    path.write_bytes(data)


def second_gone(root: Path) -> None:
    files(root)[1].unlink()


def second_of_zeros(root: Path) -> None:
    zero(files(root)[1])


def last_of_zeros(root: Path) -> None:
    zero(files(root)[-1])


def last_without_its_first_unit(root: Path) -> None:
    zero(files(root)[-1], 0, UNIT)


def one_made_ahead(root: Path) -> None:
    path = files(root)[-1]
    path.with_name(f"{1600:020d}").write_bytes(bytes(path.stat().st_size))


def all_last_of_zeros(root: Path) -> None:
    for queue in sorted(root.glob("consumequeue/*/*")):
        zero(sorted(queue.iterdir())[-1])


LOST = {
    second_gone: (20, 20, 20, 20),
    second_of_zeros: (60, REFUSED, REFUSED, 60),
    last_of_zeros: (20, REFUSED, REFUSED, 20),
    last_without_its_first_unit: (20, REFUSED, REFUSED, 20),
    one_made_ahead: (0, 0, 0, 0),
    all_last_of_zeros: (120, REFUSED, 120, 120),
}
CASES = [
    (damage, release, lost)
    for damage, of in LOST.items()
    for release, lost in zip(RELEASES, of, strict=True)
]


@pytest.mark.parametrize(("damage", "release", "lost"), CASES)
def test_a_start_loses_so_many(
    damage: Callable[[Path], None], release: Release, lost: int, tmp_path: Path
) -> None:
    root = golden("rolled-clean").unpack(tmp_path / "store")
    damage(root)

    report = fsck(root, release=release)

    counts = report.counts
    told = REFUSED if counts.rocketmq_refuses else counts.lost_by_rocketmq
    assert told == lost
    refusals = [said for said in report.next_start if said.startswith("refuses: ")]
    assert bool(refusals) == (lost == REFUSED)
