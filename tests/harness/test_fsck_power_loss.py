"""What a power loss may leave of a RocketMQ store is never taken for damage."""

from __future__ import annotations

from random import Random

import pytest
from fsck_archive import ARCHIVES, Archive, archive
from fsck_breaking import SECTOR, Broken
from test_fsck_power import judged

KILLED = [name for name in ARCHIVES if archive(name).is_crashed]
SEEDS = 12


def flushed(store: Archive, at: int) -> int:
    """A time of the checkpoint."""
    return int.from_bytes(store.files["checkpoint"][at : at + 8], "big")


def loses_from(store: Archive) -> dict[str, int]:
    """By file of the log and the queues: the first byte that nobody synced.

    RocketMQ's checkpoint says so by the store times of what it flushed.
    """
    first: dict[str, int] = {}
    logged, listed = flushed(store, 0), flushed(store, 8)
    for row in store.rows:
        path, at = store.place(row)
        if row["store_timestamp"] > logged:
            first.setdefault(path, at)
        path, at = store.unit(row)
        if row["store_timestamp"] >= listed and path in store.files:
            first.setdefault(path, at)
    return first


def is_open(store: Archive, path: str) -> bool:
    """Whether an index file is not yet flushed: RocketMQ does that once it is full."""
    ended = int.from_bytes(store.files[path][8:16], "big")
    return ended > flushed(store, 16)


def appends(store: Archive) -> dict[str, set[int]]:
    """Where each append to a file of the log and the queues begins."""
    begins: dict[str, set[int]] = {}
    for row in store.rows:
        for path, at in (store.place(row), store.unit(row)):
            begins.setdefault(path, set()).add(at)
    return begins


def kept_size(begins: set[int], sector: int, rng: Random) -> int:
    """How much a sector had when it was written last: nothing, or whole appends."""
    start = sector * SECTOR
    inside = [at - start for at in begins if start < at < start + SECTOR]
    return rng.choice([0, *sorted(inside)])


def after_power_loss(store: Archive, rng: Random) -> dict[str, bytes]:
    """The files with sectors lost that were written and not synced; the index too."""
    begins = appends(store)
    files = dict(store.files)
    share = rng.choice((0.02, 0.2, 0.6, 1.0))
    first = loses_from(store) | {
        path: 0 for path in store.index if is_open(store, path)
    }
    for path, start in first.items():
        data = bytearray(files[path])
        for sector in range(-(-start // SECTOR), len(data) // SECTOR):
            if rng.random() < share:
                kept = kept_size(begins.get(path, set()), sector, rng)
                data[sector * SECTOR + kept : (sector + 1) * SECTOR] = bytes(
                    SECTOR - kept
                )
        files[path] = bytes(data)
    return files


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
def test_sectors_that_were_lost_are_notes(name: str) -> None:
    store = archive(name)

    for seed in range(SEEDS):
        files = after_power_loss(store, Random(f"{name} {seed}"))
        report = judged(store, Broken(files, ()))
        assert [str(found) for found in report.violations] == [], seed


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
def test_a_put_that_was_cut_short_is_a_note(name: str) -> None:
    store = archive(name)
    row = store.rows[-1]
    path, start = store.place(row)
    unit, at = store.unit(row)

    for done in (4, 8, 40, 90, row["size"] - 1):
        data = store.files[path]
        rest = bytes(len(data) - start - done)
        queue = store.files[unit]
        files = {
            **store.files,
            path: data[: start + done] + rest,
            unit: queue[:at] + bytes(20) + queue[at + 20 :],
        }
        report = judged(store, Broken(files, ()))
        if row["store_timestamp"] >= max(flushed(store, 0), flushed(store, 8)):
            assert [str(found) for found in report.violations] == [], done


def test_the_power_losses_lose_something() -> None:
    changed = [
        after_power_loss(archive(name), Random(0)) != archive(name).files
        for name in KILLED
    ]

    assert all(changed)
