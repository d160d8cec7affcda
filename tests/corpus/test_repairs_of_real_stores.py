"""Repairs of real stores that have no queues in files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from corpus_store import real_store

from crashmq.harness.cli import main


@pytest.mark.parametrize("command", ["rebuild", "salvage"])
def test_whoever_repairs_queues_of_rocksdb_is_told_that_they_are_files_now(
    command: str, tmp_path: Path
) -> None:
    root = real_store("5.3.0-rocksdb", tmp_path).root
    asked = [command, str(root), "--out", str(tmp_path / "new")]

    done = CliRunner().invoke(main, asked)
    plain = real_store("5.3.0-plain", tmp_path).root
    other = CliRunner().invoke(
        main, [command, str(plain), "--out", str(tmp_path / "plain")]
    )

    assert done.exit_code == 0
    assert "RocksDB kept the queues" in done.stdout
    assert "RocksDB" not in other.stdout


def test_queues_of_rocksdb_are_not_replaced_in_place(tmp_path: Path) -> None:
    root = real_store("5.3.0-rocksdb", tmp_path).root
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}

    done = CliRunner().invoke(main, ["rebuild", str(root), "--in-place"])

    assert done.exit_code == 1
    assert "RocksDB keeps the queues" in " ".join(done.stdout.split())
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
