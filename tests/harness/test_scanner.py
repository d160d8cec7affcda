"""The fast scanner agrees where the laws do, and differs where anything is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from fsck_archive import archive
from golden_store import golden

from crashmq.harness.cli import main
from crashmq.harness.fsck import scanner
from crashmq.harness.fsck.scanner import Scan, scan_store

NAMES = ("clean", "killed", "rolled-clean", "batch-killed", "ipv6-clean", "crc-killed")


def scanned(root: Path, workers: int = 1) -> Scan:
    return scan_store(root / "commitlog", root / "consumequeue", workers=workers)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return golden("clean").unpack(tmp_path / "store")


@pytest.mark.parametrize("window", [1 << 12, 1 << 25])
@pytest.mark.parametrize("name", [*NAMES, "expired-clean"])
def test_a_healthy_store_agrees_queue_by_queue(
    name: str, window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "WINDOW", window)
    root = golden(name).unpack(tmp_path / "store")
    rows = golden(name).manifest

    scan = scanned(root)

    assert scan.differs == ""
    assert scan.records == len(rows)
    for (topic, queue_id), span in scan.queues.items():
        numbers = [
            row["queue_offset"]
            for row in rows
            if (row["topic"], row["queue_id"]) == (topic, queue_id)
        ]
        assert (span.first, span.last) == (min(numbers), max(numbers))
        assert span.messages == len(numbers)


def test_workers_find_what_one_finds(store: Path) -> None:
    assert scanned(store, 2) == scanned(store)


FIELDS = (
    *("size", "magic", "body_crc", "queue_id", "queue_offset", "phy_offset"),
    *("body_length", "body", "topic_length", "properties_length"),
)


@pytest.mark.parametrize("name", FIELDS)
def test_a_bit_of_a_field_that_is_proven_differs(name: str, store: Path) -> None:
    known = archive("clean")
    row = next(r for r in known.rows[600:] if r["body_size"])
    path, start = known.place(row)
    field = known.fields(row)[name]
    data = bytearray((store / path).read_bytes())
    data[start + field.at + field.size - 1] ^= 1
    (store / path).write_bytes(data)

    assert scanned(store).differs != ""


@pytest.mark.parametrize("at", [0, 7, 11])
def test_a_bit_of_a_unit_differs(at: int, store: Path) -> None:
    path = store / "consumequeue/orders/1/00000000000000000000"
    data = bytearray(path.read_bytes())
    data[20 * 40 + at] ^= 1
    path.write_bytes(data)

    assert "orders/1" in scanned(store).differs


def test_units_too_many_or_too_few_differ(store: Path) -> None:
    path = store / "consumequeue/orders/1/00000000000000000000"
    data = path.read_bytes()
    end = 100 * 20

    path.write_bytes(data[: end - 20] + bytes(6000 - end + 20))
    fewer = scanned(store).differs
    path.write_bytes(data[:end] + data[:20] + data[end + 20 :])
    more = scanned(store).differs

    assert "orders/1" in fewer
    assert more == "consumequeue/orders/1 has units past 100"


def test_a_file_that_is_gone_or_torn_differs(store: Path) -> None:
    second = store / "commitlog/00000000000000065536"
    data = second.read_bytes()
    second.write_bytes(data[:30000].ljust(65536, b"\0"))
    torn = scanned(store).differs
    second.unlink()
    gone = scanned(store).differs

    assert torn != ""
    assert "does not follow" in gone or "units" in gone or "goes on" in gone


def test_the_command_scans_and_asks_the_laws_where_it_differs(store: Path) -> None:
    clean = CliRunner().invoke(main, ["fsck", str(store), "--fast"])
    path = store / "consumequeue/orders/1/00000000000000000000"
    path.write_bytes(bytes(6000))
    damaged = CliRunner().invoke(main, ["fsck", str(store), "--fast"])

    assert (clean.exit_code, clean.stdout.splitlines()[0]) == (0, "CLEAN")
    assert "not judged" in clean.stdout.replace("\n", " ")
    assert damaged.exit_code == 1
    assert damaged.stdout.startswith("DAMAGED: 0 messages unreadable, 1,200 whole")
