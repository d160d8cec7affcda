"""Delay levels that are a broker's own, or that were changed between two lives."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from corpus_store import real_store

from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.store_files import Found, find_files
from crashmq.harness.repair.rebuild import rebuild
from crashmq.harness.repair.salvage import salvage

UNIT = struct.Struct(">qiq")
DAY_MS = 86_400_000
DAYS = (3 * DAY_MS, 30 * DAY_MS, 300 * DAY_MS, 3000 * DAY_MS)
NAMES = ("4.9.8-delayed-days", "5.3.0-delayed-days", "5.5.1-delayed-days")


def delays(root: Path) -> dict[str, bytes]:
    """The written units of each level, by the folder's name."""
    folders = sorted((root / "consumequeue/SCHEDULE_TOPIC_XXXX").iterdir())
    return {
        folder.name: b"".join(
            [path.read_bytes().rstrip(b"\0") for path in sorted(folder.iterdir())]
        )
        for folder in folders
    }


def put_off(root: Path, level: int, numbers: range, by_ms: int) -> None:
    """Have some messages of a level due later, as if its delay had been longer."""
    folder = root / f"consumequeue/SCHEDULE_TOPIC_XXXX/{level - 1}"
    path = sorted(folder.iterdir())[0]
    data = bytearray(path.read_bytes())
    for number in numbers:
        phy_offset, size, code = UNIT.unpack_from(data, UNIT.size * number)
        assert size > 0
        UNIT.pack_into(data, UNIT.size * number, phy_offset, size, code + by_ms)
    path.write_bytes(data)


@pytest.mark.parametrize("make", [rebuild, salvage])
@pytest.mark.parametrize("name", NAMES)
def test_delayed_messages_are_due_when_their_units_said(
    name: str, make: Callable[[Found, Places, Path], object], tmp_path: Path
) -> None:
    root = real_store(name, tmp_path).root
    put_off(root, 2, range(7, 14), DAY_MS)
    places = Places(root)

    make(find_files(places), places, tmp_path / "new")

    assert delays(tmp_path / "new") == delays(root)
    assert fsck(tmp_path / "new").verdict == "CLEAN"


def test_without_units_the_configuration_says_when_they_are_due(
    tmp_path: Path,
) -> None:
    root = real_store(NAMES[1], tmp_path).root
    wanted = delays(root)
    shutil.rmtree(root / "consumequeue")
    places = Places(root, delay_ms=DAYS, queue_file_size=1200)

    rebuild(find_files(places), places, tmp_path / "new")

    assert delays(tmp_path / "new") == wanted


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("numbers", [range(7, 14), range(3, 5), range(13, 14)])
def test_levels_that_were_changed_between_two_lives_are_no_damage(
    name: str, numbers: range, tmp_path: Path
) -> None:
    root = real_store(name, tmp_path).root

    put_off(root, 2, numbers, DAY_MS)

    assert fsck(root).verdict == "CLEAN"


@pytest.mark.parametrize("numbers", [range(7), range(3, 5), range(7, 14)])
def test_levels_that_are_told_are_those_of_the_last_life(
    numbers: range, tmp_path: Path
) -> None:
    root = real_store(NAMES[2], tmp_path).root

    put_off(root, 2, numbers, DAY_MS)

    report = fsck(root, places=Places(root, delay_ms=DAYS))
    assert report.is_clean == (numbers.stop < 14)


@pytest.mark.parametrize("numbers", [range(4, 5), range(13, 14)])
@pytest.mark.parametrize("by_ms", [1, -(1 << 20), 1 << 40])
def test_a_due_time_that_no_level_gives_is_damage(
    numbers: range, by_ms: int, tmp_path: Path
) -> None:
    root = real_store(NAMES[1], tmp_path).root

    put_off(root, 2, numbers, by_ms)

    (found,) = fsck(root).violations
    assert found.law == "CQ-1"
    assert found.byte == UNIT.size * numbers[0]
