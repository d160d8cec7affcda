"""Repairs of real stores: RocketMQ serves what was rebuilt and salvaged."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from corpus_store import COMMITTED, TESTED, Real, feature_of, place_row, real_store
from rocketmq import Brokers, Row, Server

from crashmq.harness.cli import main

THREE = ("4.9.8", "5.3.0", "5.5.1")
PLAIN = [name for name in COMMITTED if name.removesuffix("-plain") in THREE]
REPAIRED = [
    name
    for name in TESTED
    if name in PLAIN or TESTED is not COMMITTED
    if feature_of(name).takes == "serves" and feature_of(name).has_units
]
"""One of three versions each, or all that were made."""
PAGE = 4096


def rows_in(queues: Iterable[Row]) -> Iterator[Row]:
    for queue in queues:
        for message in queue["messages"]:
            yield place_row(queue["topic"], queue["queue_id"], message)


def served_by_rocketmq(real: Real, root: Path, brokers: Brokers) -> list[Row]:
    """What the version that wrote a store serves of a repaired one."""
    scratch = root.parent / "started"
    scratch.mkdir()
    manifest = Server(real.version, brokers).served(root, real.settings, scratch)
    assert manifest["outcome"] == "served", manifest["why"]
    return [*rows_in(manifest["queues"])]


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize("name", REPAIRED)
def test_rocketmq_serves_all_of_a_store_whose_queues_and_index_were_rebuilt(
    name: str, brokers: Brokers, tmp_path: Path
) -> None:
    real = real_store(name, tmp_path)
    for folder in ("consumequeue", "index"):
        shutil.rmtree(real.root / folder, ignore_errors=True)
    new = tmp_path / "repaired" / "store"
    new.parent.mkdir()

    # Nothing is left that shows the sizes of its queues.
    conf = tmp_path / "broker.conf"
    conf.write_text(
        "".join(f"{key}={value}\n" for key, value in real.settings.store.items())
    )

    asked = ["rebuild", str(real.root), "--broker-conf", str(conf), "--out", str(new)]
    done = CliRunner().invoke(main, asked)

    assert done.exit_code == 0, done.output
    rows = served_by_rocketmq(real, new, brokers)
    assert [row for row in rows_in(real.manifest["queues"]) if row not in rows] == []


@pytest.mark.slow
@pytest.mark.rocketmq
@pytest.mark.parametrize("name", REPAIRED)
def test_rocketmq_serves_all_but_what_a_page_of_zeros_has_covered(
    name: str, brokers: Brokers, tmp_path: Path
) -> None:
    real = real_store(name, tmp_path)
    logs = sorted((real.root / "commitlog").iterdir())
    path = logs[len(logs) // 2]
    data = bytearray(path.read_bytes())
    at = min(2, len(data) // PAGE - 1) * PAGE
    data[at : at + PAGE] = bytes(PAGE)
    path.write_bytes(data)
    first = int(path.name) + at
    new = tmp_path / "repaired" / "store"
    new.parent.mkdir()

    done = CliRunner().invoke(main, ["salvage", str(real.root), "--out", str(new)])

    assert done.exit_code in (0, 1), done.output
    rows = served_by_rocketmq(real, new, brokers)
    whole = [
        row
        for row in rows_in(real.manifest["queues"])
        if row["phy_offset"] + row["size"] <= first or row["phy_offset"] >= first + PAGE
    ]
    assert [row for row in whole if row not in rows] == []


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
