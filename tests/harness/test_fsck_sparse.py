"""Files with holes: as long as a default store's, and read in no time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from golden_store import golden

from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.store_files import read_files
from crashmq.models.files.log import first_nonzero
from crashmq.models.files.sparse import next_data, written_size

LONG = 1 << 40
FIRST = "commitlog/00000000000000000000"


def test_a_log_file_that_grew_by_a_terabyte_of_nothing_is_named(tmp_path: Path) -> None:
    root = golden("clean").unpack(tmp_path / "store")
    os.truncate(root / FIRST, LONG)

    found = fsck(root).violations

    assert [breach.where for breach in found] == [f"{FIRST} byte 65536 (length {LONG})"]


def test_what_is_written_behind_a_hole_is_found(tmp_path: Path) -> None:
    file = tmp_path / FIRST
    file.parent.mkdir()
    with file.open("wb") as opened:
        opened.write(b"x")
        opened.seek(LONG)
        opened.write(b"y")

    data = read_files(tmp_path)[FIRST]

    assert len(data) == LONG + 1
    assert next_data(data, 0) == 0
    assert first_nonzero(data, 1) == LONG
    assert first_nonzero(data, LONG + 1) == LONG + 1


@pytest.mark.slow
def test_a_file_of_nothing_but_a_hole_has_no_data(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / FIRST).touch()
    os.truncate(tmp_path / FIRST, LONG)

    data = read_files(tmp_path)[FIRST]

    assert next_data(data, 5) == LONG
    assert fsck(tmp_path).summary.records == 0


def test_bytes_have_no_holes() -> None:
    assert next_data(bytes(10), 3) == 3


def test_what_is_written_last_is_found_without_reading_holes(tmp_path: Path) -> None:
    file = tmp_path / FIRST
    file.parent.mkdir()
    with file.open("wb") as opened:
        opened.seek(LONG)
        opened.write(b"y\0")
        opened.truncate(2 * LONG)

    data = read_files(tmp_path)[FIRST]

    assert written_size(data) == LONG + 1
    assert written_size(bytes(3)) == 0
    assert written_size(b"\0x" + bytes(1 << 21)) == 2


def test_a_terabyte_behind_a_broken_record_is_no_burden(tmp_path: Path) -> None:
    root = golden("clean").unpack(tmp_path / "store")
    os.truncate(root / FIRST, LONG)
    with (root / FIRST).open("r+b") as opened:
        opened.seek(4)
        opened.write(b"\xff")

    report = fsck(root)

    assert report.violations[0].where == f"{FIRST} byte 0 (phy_offset 0)"
    assert any(line.startswith("refuses: ") for line in report.next_start)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 1 << 30])
def test_an_index_file_of_a_terabyte_of_nothing_is_no_burden(
    count: int, tmp_path: Path
) -> None:
    root = golden("clean").unpack(tmp_path / "store")
    index = max((root / "index").iterdir())
    with index.open("r+b") as file:
        file.seek(36)
        file.write(count.to_bytes(4, "big"))  # index_count
    os.truncate(index, LONG)

    report = fsck(root)

    assert f"index/{index.name}" in {
        breach.where.partition(" ")[0] for breach in report.violations
    }
