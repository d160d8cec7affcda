"""A wilder disk leaves whatever a milder one leaves: every state of small histories."""

from __future__ import annotations

from itertools import product

import pytest
from disk_programs import Call, Files, after, states

from crashmq.harness.disk.profiles import MILDER_THAN, PROFILES, mildest

START: Files = {"f": bytes(1024)}
CALLS: tuple[Call, ...] = (
    ("write", "f", 0, b"a" * 8),
    ("store", "f", 508, b"b" * 8),
    ("sync", "f"),
    ("create", "n", 8),
    ("write", "n", 0, b"c"),
    ("sync", "n"),
    ("rename", "n", "f"),
    ("truncate", "f", 10),
    ("remove", "f"),
    ("sync_dir", ""),
)
PAIRS = [(milder, wilder) for milder in PROFILES for wilder in MILDER_THAN[milder]]


def left(profile: str, calls: tuple[Call, ...]) -> set[tuple[tuple[str, bytes], ...]]:
    """Every state as a value; empty if the calls have no meaning in this order."""
    try:
        disk = after(profile, START, calls)
    except (OSError, ValueError):
        return set()
    return {tuple(files.items()) for files in states(disk)}


def break_of_order(length: int) -> list[tuple[str, str, tuple[Call, ...]]]:
    """Histories of which a milder disk leaves what a wilder one does not."""
    found: list[tuple[str, str, tuple[Call, ...]]] = []
    for calls in product(CALLS, repeat=length):
        of = {profile: left(profile, calls) for profile in PROFILES}
        found += [(a, b, calls) for a, b in PAIRS if not of[a] <= of[b]]
    return found


@pytest.mark.parametrize("length", [1, 2])
def test_every_state_of_a_milder_disk_is_one_of_a_wilder(length: int) -> None:
    assert break_of_order(length) == []


@pytest.mark.slow
def test_and_so_it_is_after_three_calls() -> None:
    assert break_of_order(3) == []


def test_mildness_is_a_partial_order_that_the_list_of_profiles_follows() -> None:
    names = list(PROFILES)
    for milder, wilder in PAIRS:
        assert milder not in MILDER_THAN[wilder]
        assert names.index(milder) < names.index(wilder)
        assert MILDER_THAN[wilder] <= MILDER_THAN[milder]


def test_the_mildest_of_several_are_those_none_is_milder_than() -> None:
    assert mildest(PROFILES) == ("kill9",)
    assert mildest(["posix_min", "btrfs", "xfs"]) == ("xfs", "btrfs")
    assert mildest(["lying_disk", "posix_min"]) == ("posix_min", "lying_disk")
