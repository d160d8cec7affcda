"""Only a file of a disk is read, and everything else ends at once with a sentence."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from crashmq.harness.failures.case_file import BadCaseFile, CaseFile
from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.store_files import find_files
from crashmq.harness.guards.regular_file import NotReadable, read_regular
from crashmq.harness.mutants.mutant_file import BadMutantFile, read_mutants


def pipe_at(path: Path) -> None:
    os.mkfifo(path)


def socket_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path))


def zeros_at(path: Path) -> None:
    path.symlink_to("/dev/zero")


def made_up_at(path: Path) -> None:
    path.symlink_to("/proc/self/maps")


def nothing_at(path: Path) -> None:
    path.symlink_to(path.parent / "none")


def itself_at(path: Path) -> None:
    path.symlink_to(path)


NO_FILES = [pipe_at, socket_at, zeros_at, made_up_at, nothing_at, itself_at, Path.mkdir]


@pytest.mark.parametrize("make", NO_FILES)
def test_what_is_no_file_is_told_at_once(tmp_path: Path, make: object) -> None:
    path = tmp_path / "a.case.json"
    assert callable(make)
    make(path)

    for read in (lambda: read_regular(path, 1 << 20), lambda: CaseFile.load(path)):
        with pytest.raises((NotReadable, BadCaseFile), match=r"a\.case\.json: ") as why:
            read()
        assert str(why.value).isprintable()
    with pytest.raises(BadMutantFile, match=r"a\.case\.json: "):
        read_mutants(path, ())


def test_a_file_is_read_whole_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1000)

    assert read_regular(path, 1000) == b"x" * 1000
    with pytest.raises(NotReadable, match="has 1000 bytes, at most 999"):
        read_regular(path, 999)


def test_a_name_no_file_can_have_is_told() -> None:
    with pytest.raises(NotReadable, match="cannot be the name of a file"):
        read_regular(Path("a\0b"), 10)


def test_a_file_of_a_store_that_is_of_no_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "checkpoint").symlink_to("/proc/self/maps")

    found = find_files(Places(tmp_path))

    assert "checkpoint" not in found.files
    assert [path for path, _ in found.oddities] == ["checkpoint"]


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "a." * 100_000 + "a = 1",
        "[" + "a." * 100_000 + "a]",
        "'='." + "a." * 100_000 + "a = 1",
        f"a = {'9' * 5000}",
        "[[mutant]]\nid = 'X'\nlaws = []\nedit = 0x" + "f" * 5000,
        "[[mutant]]\nid = 'X'\nlaws = []\ndifficulty = 0x" + "f" * 5000 + "\n"
        "[[mutant.edit]]\nmodule = 'engine.x'\nbefore = 'a'\nafter = 'b'",
        '"\\u001b]0;x\\nGREEN" = 1',
    ],
)
def test_an_odd_file_of_mutants_gets_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)

    with pytest.raises(BadMutantFile, match=r"mine\.toml") as raised:
        read_mutants(path, ())

    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 1000
