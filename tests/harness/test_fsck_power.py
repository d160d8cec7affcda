"""How good fsck is: every damage that the format shows must be seen, and where it is.

The family is what ``fsck_damages`` gathers; its labels are arguments.
``python tests/harness/test_fsck_power.py SEEDS`` prints the shares.
"""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from fsck_archive import ARCHIVES, Archive, archive
from fsck_breaking import KINDS, Broken, Place
from fsck_damages import broken_copies
from fsck_file_damages import OTHER_SIZE

from crashmq.harness.fsck.fsck import FsckReport, report_on

FAST = ("rolled-clean", "rolled-killed")
SEEDS = 1  # of seventeen stores: each kind of damage is drawn seventeen times
assert OTHER_SIZE


def judged(store: Archive, broken: Broken) -> FsckReport:
    paths = [path for path in broken.files if path.startswith("consumequeue/")]
    folders = {*broken.folders, *(path.split("/")[1] for path in paths)}
    return report_on(store.name, broken.files, folders)


def label(store: Archive, broken: Broken) -> str:
    """Why the damage need not be seen; "" if it must."""
    return broken.unseen or (broken.unproven if store.is_crashed else "")


def is_at(where: str, place: Place) -> bool:
    path, at = place
    if at is None:
        return where.startswith(path)
    return f"{where} ".startswith(f"{path} byte {at} ")


def is_located(report: FsckReport, broken: Broken) -> bool:
    places = [found.where for found in report.violations]
    return any(is_at(where, place) for where in places for place in broken.places)


def unnoticed(store: Archive, step: int = 1) -> list[str]:
    """What must be seen and is not, or not there; of each ``step``-th damage."""
    missed = []
    first = ARCHIVES.index(store.name) % step
    for name, broken in broken_copies(store, SEEDS)[first::step]:
        if not label(store, broken):
            report = judged(store, broken)
            if not is_located(report, broken):
                told = [str(found) for found in report.violations[:3]]
                missed.append(f"{name}: {broken.places[:2]}, told {told}")
    return missed


def test_the_family_is_as_large_as_it_says() -> None:
    assert len(KINDS) >= 80
    for name in FAST:
        copies = broken_copies(archive(name), 1)
        must = [n for n, broken in copies if not label(archive(name), broken)]
        assert len(copies) >= 80
        assert len(must) >= 50, must


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
def test_a_damage_that_shows_is_seen_where_it_is(name: str, deep: bool) -> None:
    """The gate takes every third of most stores, others in each."""
    step = 1 if deep or name in FAST else 3
    assert unnoticed(archive(name), step) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
def test_no_store_that_rocketmq_wrote_is_flagged(name: str) -> None:
    report = judged(archive(name), Broken(archive(name).files, ()))

    assert [str(found) for found in report.violations] == []


def shares(seeds: int) -> Counter[tuple[str, str, str]]:
    """(mode, label, what was seen): how many damages."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for name in ARCHIVES:
        store = archive(name)
        mode = "after a crash" if store.is_crashed else "at rest"
        for _, broken in broken_copies(store, seeds):
            report = judged(store, broken)
            seen = "flagged" if report.violations else "passed"
            seen = "located" if is_located(report, broken) else seen
            must = "may be missed" if label(store, broken) else "must be seen"
            counted[mode, must, seen] += 1
    return counted


if __name__ == "__main__":
    for key, count in sorted(shares(int(sys.argv[1])).items()):
        print(f"{', '.join(key)}: {count}")
