"""rebuild, its undo and salvage, and power that is lost after any of their calls.

Each crash leaves some of what was not synced, as the simulated disk has it. The source
is unchanged then, or can be put back, and a second run comes to its end.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

import pytest
from recorded_repairs import Replayed, Step, recorded
from test_repair_killed import (
    COPIES,
    OUR_FOLDERS,
    contents,
    in_place,
    places,
    store,
)

from crashmq.harness.fsck.store_files import find_files
from crashmq.harness.reading.differing import differences
from crashmq.harness.repair.copying import CannotRepair
from crashmq.harness.repair.rebuild import BACKUP, undo
from crashmq.models.ops import Survivors

Work = Callable[[Path], object]
HASHES = 6
PREFIXES = (1, 2, 5)
PROFILES = pytest.mark.parametrize("profile", ["ext4_ordered", "btrfs", "posix_min"])
ONE_OF = 13
"""Of so many crash states the gate tries one; all of them take ten minutes."""


def survivors() -> Iterator[Survivors]:
    yield Survivors("none")
    yield Survivors("all")
    yield from (Survivors("prefix", number) for number in PREFIXES)
    yield from (Survivors("hashed", number) for number in range(HASHES))


def steps_of(home: Path, work: Work) -> list[Step]:
    """The calls that a whole run makes below ``home``."""
    with pytest.MonkeyPatch.context() as patch, recorded(home, patch) as steps:
        work(home)
    return steps


def states(
    first: Path, steps: list[Step], profile: str, scratch: Path, *, deep: bool
) -> Iterator[tuple[str, Path]]:
    """Each directory that a power loss leaves, once, and how it came about."""
    room = sum(step.verb == "make_dir" for step in steps)
    replayed = Replayed.of(first, profile, room)
    seen, met, certain = set[bytes](), 0, set[int]()
    for number, step in enumerate([None, *steps]):
        if step is not None:
            certain -= replayed.do(step)
        snapshot = replayed.disk.snapshot()
        certain |= replayed.left_by(snapshot, Survivors("none")).folders
        for choice in survivors():
            met += 1
            if not deep and met % ONE_OF:
                continue
            tree = replayed.left_by(snapshot, choice)
            if not tree.is_possible(certain):
                continue
            key = blake2b(repr(tree.entries).encode()).digest()
            if key in seen:
                continue
            seen.add(key)
            home = scratch / "crashed"
            tree.put_into(home)
            yield f"{number} of {len(steps)}, after {step}, {choice}", home
            shutil.rmtree(home)


def test_what_is_replayed_is_what_was_done(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store(home / "store")
    before = shutil.copytree(home, tmp_path / "before")
    steps = steps_of(home, lambda home: in_place(home / "store", home))
    replayed = Replayed.of(before, "ext4_ordered", len(steps))

    for step in steps:
        replayed.do(step)

    tree = replayed.left_by(replayed.disk.snapshot(), Survivors("all"))
    tree.put_into(tmp_path / "after")
    assert contents(tmp_path / "after") == contents(home)


@pytest.mark.slow
@PROFILES
@pytest.mark.parametrize("kind", list(COPIES))
def test_a_copy_without_power_leaves_its_source_and_can_be_made_again(
    kind: str, profile: str, deep: bool, tmp_path: Path
) -> None:
    make, do = COPIES[kind]
    root = make(tmp_path / "store")
    home = tmp_path / "home"
    home.mkdir()
    first = shutil.copytree(home, tmp_path / "first")
    before = contents(root)
    steps = steps_of(home, lambda home: do(root, home / "new"))
    wanted = contents(home / "new")
    assert contents(root) == before

    for what, crashed in states(first, steps, profile, tmp_path, deep=deep):
        out = crashed / "new"
        assert not out.exists() or contents(out) == wanted, what
        if not out.exists():
            do(root, out)
        assert contents(out) == wanted, what


@pytest.mark.slow
@PROFILES
def test_a_rebuild_in_place_without_power_can_be_undone_and_done_again(
    profile: str, deep: bool, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    store(home / "store")
    first = shutil.copytree(home, tmp_path / "first")
    before, log = contents(first / "store"), contents(first / "store" / "commitlog")
    steps = steps_of(home, lambda home: in_place(home / "store", home))
    served = find_files(places(home / "store")).files

    for what, crashed in states(first, steps, profile, tmp_path, deep=deep):
        root = crashed / "store"
        assert contents(root / "commitlog") == log, what
        begun = (root / BACKUP).exists()
        if not begun:
            assert contents(root, OUR_FOLDERS) == before, what
        elif not (root / "abort").exists():
            # Nobody would read the log again: then all is exchanged.
            now = find_files(places(root)).files
            is_old = contents(root, OUR_FOLDERS) == before
            assert is_old or not [*differences(served, now)], what
        if begun:
            undo(root)
            assert contents(root) == before, what
        in_place(root, crashed)
        assert not [*differences(served, find_files(places(root)).files)], what


@pytest.mark.slow
@PROFILES
def test_an_undo_without_power_is_finished_by_the_next(
    profile: str, deep: bool, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    root = store(home / "store")
    before = contents(root)
    in_place(root, home)
    served = find_files(places(root)).files
    first = shutil.copytree(home, tmp_path / "first")
    steps = steps_of(home, lambda home: undo(home / "store"))

    for what, crashed in states(first, steps, profile, tmp_path, deep=deep):
        root = crashed / "store"
        if not (root / "abort").exists():
            now = find_files(places(root)).files
            is_old = contents(root, OUR_FOLDERS) == before
            assert is_old or not [*differences(served, now)], what
        with contextlib.suppress(CannotRepair):
            undo(root)  # else all of it had come back
        assert contents(root, OUR_FOLDERS) == before, what
        in_place(root, crashed)
        assert not [*differences(served, find_files(places(root)).files)], what
