"""rebuild, undo and salvage, killed at every call that changes a directory.

The source is unchanged then, or can be put back, and a second run comes to its end.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from killed_repairs import Calls, Part, killed_at

from crashmq.harness.fsck.fsck import fsck
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.store_files import find_files
from crashmq.harness.reading.differing import differences
from crashmq.harness.repair.copying import CannotRepair
from crashmq.harness.repair.rebuild import (
    BACKUP,
    STAGE,
    UNDONE,
    rebuild,
    rebuild_in_place,
    undo,
)
from crashmq.harness.repair.salvage import salvage
from crashmq.scenarios.catalogue.found_stores import files_found

FAR = 1 << 30
OUR_FOLDERS = (BACKUP, STAGE, f"{BACKUP}.new", UNDONE)
Do = Callable[[Path, Path], object]
STRIDE = 5
"""The gate takes each fifth call, another one for each way."""


def store(root: Path) -> Path:
    """A small store without its queues' folder, written by RocketMQ 4.9.8."""
    for path, data in files_found("4.9.8-four-lives").items():
        if not path.startswith("consumequeue/T0/"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
    return root


def contents(root: Path, but_for: tuple[str, ...] = ()) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in but_for
    }


def places(root: Path) -> Places:
    return Places(root, queue_file_size=200, index_slots=8, index_entries=20)


def rebuild_to(root: Path, out: Path) -> object:
    return rebuild(find_files(places(root)), places(root), out)


def salvage_to(root: Path, out: Path) -> object:
    return salvage(find_files(places(root)), places(root), out)


def renumber_to(root: Path, out: Path) -> object:
    return salvage(find_files(places(root)), places(root), out, renumber=True)


def in_place(root: Path, out: Path) -> object:
    del out
    return rebuild_in_place(find_files(places(root)), places(root))


def damaged(root: Path) -> Path:
    """Zeros amid the first log file, so that there is something to salvage."""
    path = store(root) / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[1000:1400] = bytes(400)
    path.write_bytes(bytes(data))
    return root


COPIES: dict[str, tuple[Callable[[Path], Path], Do]] = {
    "rebuild": (store, rebuild_to),
    "salvage": (damaged, salvage_to),
    "salvage --renumber": (damaged, renumber_to),
}


@cache
def calls_of(kind: str, scratch: Path) -> int:
    """How many calls a whole run makes."""
    make, do = COPIES.get(kind, (store, in_place))
    root = make(scratch / "counted")
    with pytest.MonkeyPatch.context() as patch, killed_at(FAR, "none", patch) as calls:
        do(root, scratch / "counted.new")
    shutil.rmtree(root)
    shutil.rmtree(scratch / "counted.new", ignore_errors=True)
    return calls.made


def kills(total: int, first: int, *, every: bool) -> list[tuple[int, Part]]:
    parts: tuple[Part, ...] = ("none", "half")
    chosen = range(total) if every else range(first % STRIDE, total, STRIDE)
    return [(number, part) for number in chosen for part in parts]


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(COPIES))
def test_a_copy_killed_anywhere_leaves_its_source_and_can_be_made_again(
    kind: str, deep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, do = COPIES[kind]
    root, out = make(tmp_path / "store"), tmp_path / "new"
    before = contents(root)
    do(root, tmp_path / "whole")
    wanted = contents(tmp_path / "whole")
    total = calls_of(kind, tmp_path)
    assert total > 30

    for number, part in kills(total, len(kind), every=deep):
        with killed_at(number, part, monkeypatch) as calls:
            do(root, out)
        assert died(calls, number), number
        assert contents(root) == before, number
        assert not out.exists() or contents(out) == wanted, number
        if not out.exists():
            do(root, out)
        assert contents(out) == wanted, number
        shutil.rmtree(out)


def died(calls: Calls, number: int) -> bool:
    return calls.made == number + 1


@pytest.mark.slow
@pytest.mark.parametrize("then", ["undo", "again"])
def test_a_rebuild_in_place_killed_anywhere_can_be_undone_and_done_again(
    then: str, deep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store(tmp_path / "first")
    before, log = contents(first), contents(first / "commitlog")
    whole = shutil.copytree(first, tmp_path / "whole")
    in_place(whole, tmp_path)
    served = find_files(places(whole)).files
    total = calls_of("in place", tmp_path)

    for number, part in kills(total, len(then), every=deep):
        root = shutil.copytree(first, tmp_path / "store")
        with killed_at(number, part, monkeypatch):
            in_place(root, tmp_path)
        assert contents(root / "commitlog") == log, number
        begun = (root / BACKUP).exists()
        if not begun:
            assert contents(root, OUR_FOLDERS) == before, number
        elif not (root / "abort").exists():
            # Nobody would read the log again: then all is exchanged.
            now = find_files(places(root)).files
            is_old = contents(root, OUR_FOLDERS) == before
            assert is_old or not [*differences(served, now)], number
        if begun:
            undo(root)
            assert contents(root) == before, number
        if then == "again":
            in_place(root, tmp_path)
            assert not [*differences(served, find_files(places(root)).files)], number
            assert fsck(root).verdict == fsck(whole).verdict
        shutil.rmtree(root)


@pytest.mark.slow
def test_an_undo_killed_anywhere_is_finished_by_the_next(
    deep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store(tmp_path / "first")
    before = contents(first)
    done = shutil.copytree(first, tmp_path / "done")
    in_place(done, tmp_path)
    counted = shutil.copytree(done, tmp_path / "counted")
    with killed_at(FAR, "none", monkeypatch) as calls:
        undo(counted)

    for number, part in kills(calls.made, 0, every=deep):
        root = shutil.copytree(done, tmp_path / "store")
        with killed_at(number, part, monkeypatch):
            undo(root)
        with contextlib.suppress(CannotRepair):
            undo(root)  # else all of it had come back
        assert contents(root, OUR_FOLDERS) == before, number
        in_place(root, tmp_path)
        shutil.rmtree(root)
