"""Properties with a NUL, which RocketMQ takes, beside those that lost a sector."""

from __future__ import annotations

import pytest
from fsck_archive import Archive, Row, archive
from fsck_breaking import SECTOR, Broken, written
from test_fsck_power import judged

from crashmq.harness.fsck.fsck import FsckReport

BUYER = "买家".encode() + b"\x01"


@pytest.fixture(params=["rolled-clean", "rolled-killed"])
def store(request: pytest.FixtureRequest) -> Archive:
    return archive(request.param)


def place_in(store: Archive, row: Row, part: bytes) -> tuple[str, int]:
    """Where ``part`` ends in the properties of a record."""
    path, start = store.place(row)
    at = start + store.fields(row)["properties"].at
    return path, at + store.properties(row).index(part) + len(part)


def with_bytes(store: Archive, path: str, at: int, data: bytes) -> FsckReport:
    return judged(store, Broken(written(store.files, path, at, data), ()))


def test_a_nul_in_the_value_of_a_property_is_a_users(store: Archive) -> None:
    row = next(r for r in store.rows[5:] if BUYER in store.properties(r))
    path, at = place_in(store, row, BUYER)

    report = with_bytes(store, path, at, b"\0")

    assert report.is_clean
    assert any(n.startswith(f"{path} byte") and "client" in n for n in report.notes)


def test_a_nul_in_the_place_of_a_separator_is_damage(store: Archive) -> None:
    row = next(r for r in store.rows[5:] if BUYER in store.properties(r))
    path, at = place_in(store, row, BUYER)

    report = with_bytes(store, path, at - 1, b"\0")

    wanted = "{} byte {}".format(*store.place(row))
    assert [(f.law, f.where.partition(" (")[0]) for f in report.violations] == [
        ("CL-5", wanted)
    ]


def test_properties_of_which_a_sector_is_zeros_have_lost_it(store: Archive) -> None:
    row = next(
        r
        for r in store.rows[5:-20]
        if store.place(r)[1] // SECTOR != (store.place(r)[1] + r["size"]) // SECTOR
        and (store.place(r)[1] + r["size"]) % SECTOR > 12
        and BUYER in store.properties(r)
    )
    path, start = store.place(row)
    at = (start + row["size"]) // SECTOR * SECTOR

    report = with_bytes(store, path, at, bytes(SECTOR))

    flawed = report.violations if not store.is_crashed else report.notes
    assert any(f"{path} byte {start} " in str(found) for found in flawed)
