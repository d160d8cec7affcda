"""The command on directories that no store has left: a sentence, and never a trace."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from golden_store import golden

from crashmq.harness.fsck.fsck import NotAStore, fsck

LOG_FILE = "commitlog/00000000000000049152"
TERABYTE = 1 << 40
SECONDS_MAX = 120


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return golden("rolled-clean").unpack(tmp_path / "store")


def run_fsck(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "crashmq.harness.cli", "fsck", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS_MAX,
    )
    assert "Traceback" not in done.stderr
    return done


def put_in_place(
    root: Path, make: Callable[[Path], object], path: str = LOG_FILE
) -> None:
    (root / path).unlink()
    make(root / path)


def make_folder(root: Path, folder: str) -> None:
    (root / folder).mkdir()


def write_in_place(root: Path, folder: str) -> None:
    (root / folder).rename(root / "elsewhere")
    (root / folder).write_bytes(b"")


ODD: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "a pipe for a log file": (
        lambda root: put_in_place(root, os.mkfifo), 1, f"CL-2 {LOG_FILE} byte 0 ",
    ),
    "a directory for a log file": (
        lambda root: put_in_place(root, Path.mkdir), 1, f"CL-2 {LOG_FILE} byte 0 ",
    ),
    "a link to nothing for a log file": (
        lambda root: put_in_place(root, lambda at: at.symlink_to("/nowhere")),
        1, f"CL-2 {LOG_FILE} byte 0 ",
    ),
    "a terabyte of nothing in a log file": (
        lambda root: os.truncate(root / LOG_FILE, TERABYTE), 1, f"CL-2 {LOG_FILE} byte",
    ),
    "a terabyte of nothing in a checkpoint": (
        lambda root: os.truncate(root / "checkpoint", TERABYTE),
        1, "CP-5 checkpoint byte 4096",
    ),
    "a directory for a checkpoint": (
        lambda root: put_in_place(root, Path.mkdir, "checkpoint"),
        1, "CP-5 checkpoint: a directory",
    ),
    "names that are no text": (
        lambda root: (root / os.fsdecode(b"commitlog/\xff\x1b[31m\n")).write_bytes(b""),
        1, "CL-2 commitlog/\\udcff\\x1b[31m\\n: a name that is no offset",
    ),
    "what a file system of its own has": (
        lambda root: make_folder(root, "commitlog/lost+found"), 0, "CLEAN",
    ),
    "strangers' files": (
        lambda root: (root / "index/notes").write_bytes(b""), 0,
        "note: index/notes is no index file; nothing reads it.",
    ),
    "a file for the log's directory": (
        lambda root: write_in_place(root, "commitlog"), 2,
        "has no directory `commitlog`",
    ),
}  # fmt: skip


def test_the_store_that_was_meant_is_named(root: Path) -> None:
    # Two folders down, so that the search upwards meets no other test's store.
    home = root.parent / "srv" / "broker"
    home.mkdir(parents=True)
    root = root.rename(home / "store")
    for wrong, hint in (
        (root.parent, f"{root} has one: give that."),
        (root / "consumequeue", f"{root} has one: give that."),
        (root / "consumequeue/orders", f"{root} has one: give that."),
        (root.parent.parent, f"{root} has one: give that."),
    ):
        with pytest.raises(NotAStore, match=re.escape(hint)):
            fsck(wrong)

    (root / "commitlog").rename(root / "elsewhere")

    with pytest.raises(NotAStore, match="Name it with --commitlog"):
        fsck(root)


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_whatever_lies_there_is_told_in_a_sentence(name: str, root: Path) -> None:
    change, code, sentence = ODD[name]
    change(root)

    done = run_fsck(root)

    assert done.returncode == code, done
    told = " ".join((done.stdout + done.stderr).split())  # lines wrap
    assert " ".join(sentence.split()) in told


@pytest.mark.slow
def test_a_file_that_one_may_not_read_is_named(root: Path) -> None:
    (root / LOG_FILE).chmod(0)
    if os.access(root / LOG_FILE, os.R_OK):
        (root / LOG_FILE).unlink()  # root reads all but this
        (root / LOG_FILE).symlink_to("/proc/self/mem")

    done = run_fsck(root)

    assert done.returncode in (1, 2)
    assert LOG_FILE in done.stdout
    assert "cannot be read" in done.stdout or "DIR-1" in done.stdout


@pytest.mark.slow
def test_reading_leaves_the_times_of_the_last_reading(root: Path) -> None:
    for path in root.rglob("*"):
        os.utime(path, ns=(10**18, 10**18))
    files = [path for path in root.rglob("*") if path.is_file()]

    assert run_fsck(root).returncode == 0

    assert {path.stat().st_atime_ns for path in files} == {10**18}


@pytest.mark.slow
def test_the_json_has_the_fields_that_are_promised(root: Path) -> None:
    (root / LOG_FILE).unlink()

    told = json.loads(run_fsck(root, "--json").stdout)

    assert told["format"] == 2
    assert not told["is_clean"]
    assert {*told} == {
        *("format", "is_clean", "root", "mode", "summary"),
        *("violations", "notes", "next_start"),
        *("verdict", "messages", "counts", "causes", "advice"),
    }
    assert {*told["violations"][0]} == {
        *("law", "catalogue", "sentence", "where", "path", "byte", "seen", "expected"),
    }
