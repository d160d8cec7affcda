"""What only the real disk can show: read only, allocated space, descriptors, links."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crashmq.engine.host.disk import PAGE_SIZE
from crashmq.engine.host.real_disk import RealDisk

MIB = 1 << 20


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """The lowest free descriptor is the same before and after."""
    before = os.open(os.devnull, os.O_RDONLY)
    os.close(before)
    yield
    after = os.open(os.devnull, os.O_RDONLY)
    os.close(after)
    assert after == before


@pytest.mark.parametrize("mapped", [True, False])
def test_the_bytes_are_in_the_file(tmp_path: Path, mapped: bool) -> None:
    file = RealDisk(tmp_path).open("f", PAGE_SIZE, create=True, mapped=mapped)
    file.write_at(10, b"bytes")
    file.sync()
    file.close()

    assert (tmp_path / "f").read_bytes() == b"bytes".rjust(15, b"\0").ljust(
        PAGE_SIZE, b"\0"
    )


def test_the_space_of_a_new_file_is_allocated(tmp_path: Path) -> None:
    RealDisk(tmp_path).open("f", MIB, create=True, mapped=True).close()

    assert (tmp_path / "f").stat().st_blocks * 512 >= MIB


def test_a_file_that_finds_no_space_leaves_nothing_behind(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    with (
        no_descriptor_left(),
        files_limited_to(MIB),
        pytest.raises(OSError, match="too large") as caught,
    ):
        disk.open("f", 2 * MIB, create=True, mapped=True)

    assert caught.value.errno == errno.EFBIG
    assert disk.list_dir("") == []


def test_a_file_that_cannot_grow_keeps_its_size(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk.open("f", PAGE_SIZE, create=True, mapped=False).close()
    with files_limited_to(MIB), pytest.raises(OSError, match="too large"):
        disk.truncate("f", 2 * MIB)

    assert disk.file_size("f") == PAGE_SIZE


def test_closing_gives_every_descriptor_back(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    with no_descriptor_left():
        for mapped in (True, False):
            disk.open("f", PAGE_SIZE, create=True, mapped=mapped).close()
        with pytest.raises(OSError, match="asked for"):
            disk.open("f", 1, create=False, mapped=True)
        lock = disk.lock("lock")
        with pytest.raises(BlockingIOError):
            disk.lock("lock")
        lock.release()
        disk.sync_dir("")


def test_a_lock_holds_against_another_disk_object(tmp_path: Path) -> None:
    lock = RealDisk(tmp_path).lock("lock")

    with pytest.raises(BlockingIOError):
        RealDisk(tmp_path).lock("lock")
    lock.release()


@pytest.mark.parametrize("size", [1, 0], ids=["the first byte", "all bytes"])
def test_a_lock_respects_the_record_lock_of_another_program(
    tmp_path: Path, size: int
) -> None:
    holder = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); "
        "fcntl.lockf(f, fcntl.LOCK_EX, int(sys.argv[2])); "
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path / "lock"), str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"

        with pytest.raises(BlockingIOError):
            RealDisk(tmp_path).lock("lock")

        other.communicate()
    RealDisk(tmp_path).lock("lock").release()


@pytest.mark.parametrize("mapped", [True, False])
def test_a_read_only_disk_reads(tmp_path: Path, mapped: bool) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_bytes(b"content")
    (tmp_path / "d/f").chmod(0o444)
    disk = RealDisk(tmp_path, read_only=True)

    file = disk.open("d/f", 7, create=True, mapped=mapped)

    assert file.read_at(3, 4) == b"tent"
    assert disk.list_dir("d") == ["f"]
    file.close()


@pytest.mark.parametrize("mapped", [True, False])
def test_a_read_only_disk_refuses_every_change(tmp_path: Path, mapped: bool) -> None:
    (tmp_path / "f").write_bytes(b"content")
    (tmp_path / "d").mkdir()
    disk = RealDisk(tmp_path, read_only=True)
    file = disk.open("f", 7, create=False, mapped=mapped)

    changes: tuple[Callable[[], object], ...] = (
        lambda: file.write_at(0, b"x"),
        file.sync,
        lambda: disk.open("g", 1, create=True, mapped=mapped),
        lambda: disk.rename("f", "g"),
        lambda: disk.remove("f"),
        lambda: disk.make_dir("e"),
        lambda: disk.remove_dir("d"),
        lambda: disk.sync_dir("d"),
        lambda: disk.lock("f"),
    )
    for change in changes:
        with pytest.raises(PermissionError, match="opened read only"):
            change()
    file.close()
    with pytest.raises(PermissionError, match="opened read only"):
        disk.truncate("f", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "f"]
    assert (tmp_path / "f").read_bytes() == b"content"


def test_a_directory_that_is_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root/commitlog").symlink_to(tmp_path / "elsewhere")
    disk = RealDisk(tmp_path / "root")

    disk.open("commitlog/f", 1, create=True, mapped=True).close()

    assert (tmp_path / "elsewhere/f").read_bytes() == b"\0"


def test_a_file_that_shrank_under_its_reader_is_an_error(tmp_path: Path) -> None:
    file = RealDisk(tmp_path).open("f", 10, create=True, mapped=False)
    os.truncate(tmp_path / "f", 4)

    with pytest.raises(OSError, match="it shrank"):
        file.read_at(0, 10)
    file.close()
