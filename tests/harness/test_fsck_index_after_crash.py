"""Entries of the index of a killed store: a right one settles those before it."""

from __future__ import annotations

import struct

import pytest
from fsck_archive import Archive, archive
from fsck_breaking import SECTOR, Broken, written
from test_fsck_power import judged

from crashmq.harness.fsck.fsck import FsckReport


@pytest.fixture
def store() -> Archive:
    return archive("killed")


@pytest.fixture
def path(store: Archive) -> str:
    return store.index[-1]


@pytest.fixture
def number(store: Archive, path: str) -> int:
    """An entry amid a sector, with a link."""
    return next(
        n
        for n in range(9, store.entries(path))
        if 100 < store.entry(n) % SECTOR < 300
        and any(store.files[path][store.entry(n) + 16 : store.entry(n) + 20])
    )


def with_bytes(store: Archive, path: str, at: int, data: bytes) -> FsckReport:
    return judged(store, Broken(written(store.files, path, at, data), ()))


def test_an_entry_of_no_key_is_damage(store: Archive, path: str, number: int) -> None:
    at = store.entry(number)

    report = with_bytes(store, path, at + 4, struct.pack(">q", 5))

    assert f"{path} byte {at} (entry {number})" in {
        found.where for found in report.violations if found.law == "IX-4"
    }


@pytest.mark.parametrize("past", [0, 1])
def test_a_link_that_leads_on_is_damage(
    store: Archive, path: str, number: int, past: int
) -> None:
    at = store.entry(number)

    report = with_bytes(store, path, at + 16, struct.pack(">i", number + past))

    places = {(found.law, found.where) for found in report.violations}
    assert ("IX-5", f"{path} byte {at} (entry {number})") in places


def test_a_link_past_an_entry_of_its_slot_is_damage(
    store: Archive, path: str, number: int
) -> None:
    at = store.entry(number)

    report = with_bytes(store, path, at + 16, bytes(4))

    places = {(found.law, found.where) for found in report.violations}
    assert ("IX-5", f"{path} byte {at} (entry {number})") in places


def test_a_sector_that_a_crash_took_is_none(
    store: Archive, path: str, number: int
) -> None:
    at = store.entry(number) // SECTOR * SECTOR

    assert with_bytes(store, path, at, bytes(SECTOR)).is_clean
