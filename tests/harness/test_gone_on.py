"""Damage right behind a restart, and clocks that were set back: nothing whole is lost.

An outside reader made such directories: fsck called them CLEAN, and a salvage left out
half of the messages.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from fsck_archive import Row, archive
from golden_store import golden

from crashmq.harness.cli import main
from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.store_files import find_files
from crashmq.harness.repair.salvage import salvage

MAGIC_AT, STORED_AT = 4, 56  # in a record of a host with an IPv4 address
CONFIRMED_AT = 32  # in the checkpoint
BACK_MS = 1000
CLEAN = archive("clean")


def write(root: Path, where: tuple[str, int], data: bytes) -> None:
    path, at = where
    with (root / path).open("r+b") as file:
        file.seek(at)
        file.write(data)


def spoil(root: Path, row: Row) -> None:
    path, at = CLEAN.place(row)
    write(root, (path, at + MAGIC_AT), bytes(4))


@pytest.mark.slow
@pytest.mark.parametrize("number", [3, 600, 1100])
@pytest.mark.parametrize("killed", [False, True])
def test_damage_behind_the_confirmed_offset_hides_nothing(
    number: int, killed: bool, tmp_path: Path
) -> None:
    root = golden("clean").unpack(tmp_path / "store")
    rows = CLEAN.rows
    confirmed = rows[number]["phy_offset"].to_bytes(8, "big")
    write(root, ("checkpoint", CONFIRMED_AT), confirmed)
    spoil(root, rows[number + 1])
    if killed:
        (root / "abort").touch()

    report = fsck(root)

    assert report.counts.whole == len(rows) - 1
    assert report.verdict != "CLEAN"
    assert CliRunner().invoke(main, ["fsck", str(root)]).exit_code == 1


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_what_looks_older_behind_a_hole_is_kept_if_a_queue_lists_it(
    killed: bool, tmp_path: Path
) -> None:
    root, rows, number = golden("clean").unpack(tmp_path / "store"), CLEAN.rows, 600
    for row in rows[number:]:
        path, at = CLEAN.place(row)
        stored = int.from_bytes((root / path).read_bytes()[at + STORED_AT :][:8], "big")
        back = (stored - BACK_MS).to_bytes(8, "big")
        write(root, (path, at + STORED_AT), back)
    spoil(root, rows[number])
    if killed:
        (root / "abort").touch()

    done = salvage(find_files(Places(root)), Places(root), tmp_path / "new")

    assert (done.kept, done.lost) == (len(rows) - 1, 1)
    assert fsck(root).counts.whole == len(rows) - 1
    told = CliRunner().invoke(
        main, ["rebuild", str(root), "--out", str(tmp_path / "rebuilt")]
    )
    assert told.exit_code == 1
    assert "whole messages follow" in told.output


def test_the_first_record_of_a_log_is_covered_however_short_it_is(
    tmp_path: Path,
) -> None:
    root = golden("clean").unpack(tmp_path / "store")
    spoil(root, CLEAN.rows[0])

    done = salvage(find_files(Places(root)), Places(root), tmp_path / "new")

    assert (done.kept, done.lost) == (len(CLEAN.rows) - 1, 1)
    assert fsck(tmp_path / "new").verdict == "CLEAN"
