"""One suite over every disk: what ``engine.host.disk`` promises, errors included.

The fake is held to the real thing twice: by the sentences below, each run on all disks,
and by random sequences of calls that must answer alike on both, step by step.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashmq.engine.host.disk import PAGE_SIZE, Disk, File
from crashmq.engine.host.real_disk import RealDisk
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import SimDisk

SIZE = 2 * PAGE_SIZE

Open: TypeAlias = Callable[..., File]


@pytest.fixture(params=["real", *PROFILES])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "real":
        return RealDisk(tmp_path)
    return SimDisk(PROFILES[request.param]).mount()


@pytest.fixture(params=[True, False], ids=["mapped", "unmapped"])
def opened(request: pytest.FixtureRequest, disk: Disk) -> Open:
    def open_file(path: str, size: int = SIZE, *, create: bool = True) -> File:
        return disk.open(path, size, create=create, mapped=request.param)

    return open_file


def test_a_new_file_has_its_size_and_reads_as_zeros(disk: Disk, opened: Open) -> None:
    file = opened("f")

    assert file.size == SIZE == disk.file_size("f")
    assert file.read_at(0, SIZE) == bytes(SIZE)


def test_what_was_written_is_read_across_pages(opened: Open) -> None:
    file = opened("f")
    file.write_at(PAGE_SIZE - 3, b"abcdef")

    assert file.read_at(PAGE_SIZE - 4, 8) == b"\0abcdef\0"


def test_what_is_said_of_bytes_is_told(opened: Open) -> None:
    file = opened("f")
    file.write_at(PAGE_SIZE - 3, b"abcdef")

    def told(data: bytes, before: bytes, times: int) -> bytes:
        return before + data * times

    assert file.examine(PAGE_SIZE - 1, 2, told, b"<", 2) == b"<cdcd"
    with pytest.raises(ValueError, match="leave file f"):
        file.examine(SIZE - 1, 2, len)
    file.close()
    with pytest.raises(ValueError, match="is closed"):
        file.examine(0, 1, len)


def test_what_was_written_outlives_close(opened: Open) -> None:
    file = opened("f")
    file.write_at(7, b"kept")
    file.sync()
    file.close()

    assert opened("f", create=False).read_at(6, 6) == b"\0kept\0"


def test_what_a_writer_changes_after_writing_is_its_own(opened: Open) -> None:
    file = opened("f")
    buffer = bytearray(b"abc")
    file.write_at(0, buffer)
    buffer[0] = 0

    assert file.read_at(0, 3) == b"abc"


def test_two_handles_see_one_file(opened: Open) -> None:
    one, other = opened("f"), opened("f")
    one.write_at(1, b"x")

    assert other.read_at(0, 3) == b"\0x\0"


def test_a_file_may_be_empty(disk: Disk, opened: Open) -> None:
    file = opened("f", 0)
    file.write_at(0, b"")
    file.sync()

    assert file.read_at(0, 0) == b""
    assert disk.file_size("f") == 0


def test_nothing_may_be_read_or_written_at_the_end(opened: Open) -> None:
    file = opened("f")
    file.write_at(SIZE, b"")

    assert file.read_at(SIZE, 0) == b""


@pytest.mark.parametrize(("offset", "size"), [(-1, 1), (SIZE - 1, 2), (SIZE + 1, 0)])
def test_a_range_that_leaves_the_file_is_refused(
    opened: Open, offset: int, size: int
) -> None:
    file = opened("f")

    with pytest.raises(ValueError, match="leave file f"):
        file.read_at(offset, size)
    with pytest.raises(ValueError, match="leave file f"):
        file.write_at(offset, bytes(size))


def test_a_negative_size_is_refused(opened: Open) -> None:
    with pytest.raises(ValueError, match="leave file f"):
        opened("f").read_at(4, -1)
    with pytest.raises(ValueError, match="size >= 0"):
        opened("g", -1)


def test_a_closed_file_refuses_all_but_another_close(opened: Open) -> None:
    file = opened("f")
    file.close()
    file.close()

    calls: tuple[Callable[[], object], ...] = (
        lambda: file.read_at(0, 1),
        lambda: file.write_at(0, b"x"),
        file.sync,
    )
    for call in calls:
        with pytest.raises(ValueError, match="is closed"):
            call()


def test_another_size_than_the_files_is_refused(opened: Open) -> None:
    opened("f")

    with pytest.raises(OSError, match="asked for") as caught:
        opened("f", SIZE + 1)
    assert caught.value.errno == errno.EINVAL


def test_create_opens_a_file_that_is_there(opened: Open) -> None:
    opened("f").write_at(0, b"first")

    assert opened("f", create=True).read_at(0, 5) == b"first"


def test_an_absent_file_is_not_opened(disk: Disk, opened: Open) -> None:
    with pytest.raises(FileNotFoundError):
        opened("f", create=False)
    with pytest.raises(FileNotFoundError):
        opened("d/f", create=True)
    assert disk.list_dir("") == []


def test_a_directory_is_no_file(disk: Disk, opened: Open) -> None:
    disk.make_dir("d")

    calls: tuple[Callable[[], object], ...] = (
        lambda: opened("d", 0),
        lambda: disk.file_size("d"),
        lambda: disk.truncate("d", 0),
        lambda: disk.rename("d", "e"),
        lambda: disk.remove("d"),
        lambda: disk.lock("d"),
    )
    for call in calls:
        with pytest.raises(IsADirectoryError):
            call()


def test_a_file_is_no_directory(disk: Disk, opened: Open) -> None:
    opened("f")

    calls: tuple[Callable[[], object], ...] = (
        lambda: disk.list_dir("f"),
        lambda: disk.remove_dir("f"),
        lambda: disk.sync_dir("f"),
        lambda: disk.make_dir("f/d"),
        lambda: opened("f/g"),
    )
    for call in calls:
        with pytest.raises(NotADirectoryError):
            call()


def test_names_are_listed_sorted_and_one_level_deep(disk: Disk, opened: Open) -> None:
    disk.make_dir("d")
    disk.make_dir("d/b")
    for path in ("d/c", "d/a", "d/b/x", "z"):
        opened(path)

    assert disk.list_dir("d") == ["a", "b", "c"]
    assert disk.list_dir("") == ["d", "z"]
    assert disk.list_dir("d/b") == ["x"]


def test_a_listing_is_the_callers_own(disk: Disk) -> None:
    disk.make_dir("d")
    disk.list_dir("").clear()

    assert disk.list_dir("") == ["d"]


def test_existence_and_kind_are_told_apart(disk: Disk, opened: Open) -> None:
    disk.make_dir("d")
    opened("f")

    assert [disk.exists(p) for p in ("", "d", "f", "x", "f/x")] == [True] * 3 + [
        False
    ] * 2
    assert [disk.is_dir(p) for p in ("", "d", "f", "x")] == [True, True, False, False]


def test_what_is_absent_is_said_to_be(disk: Disk) -> None:
    calls: tuple[Callable[[], object], ...] = (
        lambda: disk.list_dir("x"),
        lambda: disk.file_size("x"),
        lambda: disk.truncate("x", 0),
        lambda: disk.rename("x", "y"),
        lambda: disk.remove("x"),
        lambda: disk.remove_dir("x"),
        lambda: disk.sync_dir("x"),
        lambda: disk.make_dir("x/y"),
        lambda: disk.lock("x/y"),
    )
    for call in calls:
        with pytest.raises(FileNotFoundError):
            call()


def test_a_cut_file_grows_again_with_zeros(disk: Disk, opened: Open) -> None:
    file = opened("f")
    file.write_at(0, b"abcdef")
    file.close()
    disk.truncate("f", 3)
    assert disk.file_size("f") == 3

    disk.truncate("f", 6)

    assert opened("f", 6, create=False).read_at(0, 6) == b"abc\0\0\0"


def test_an_open_file_is_not_resized(disk: Disk, opened: Open) -> None:
    file = opened("f")

    with pytest.raises(ValueError, match="while it is open"):
        disk.truncate("f", 1)
    file.close()
    with pytest.raises(ValueError, match="size >= 0"):
        disk.truncate("f", -1)
    disk.truncate("f", 1)
    assert disk.file_size("f") == 1


def test_a_rename_replaces_at_once(disk: Disk, opened: Open) -> None:
    opened("old", 4).write_at(0, b"old!")
    opened("new", 4).write_at(0, b"new!")

    disk.rename("new", "old")

    assert disk.list_dir("") == ["old"]
    assert opened("old", 4, create=False).read_at(0, 4) == b"new!"


def test_a_rename_to_itself_changes_nothing(disk: Disk, opened: Open) -> None:
    opened("f", 4).write_at(0, b"same")

    disk.rename("f", "f")

    assert opened("f", 4).read_at(0, 4) == b"same"


def test_a_rename_does_not_replace_a_directory(disk: Disk, opened: Open) -> None:
    opened("f")
    disk.make_dir("d")

    with pytest.raises(IsADirectoryError):
        disk.rename("f", "d")
    with pytest.raises(FileNotFoundError):
        disk.rename("f", "x/f")
    assert disk.list_dir("") == ["d", "f"]


def test_a_removed_file_serves_those_who_hold_it(disk: Disk, opened: Open) -> None:
    file = opened("f")
    disk.remove("f")
    file.write_at(0, b"x")
    file.sync()

    assert file.read_at(0, 1) == b"x"
    assert not disk.exists("f")
    assert opened("f").read_at(0, 1) == b"\0"


def test_directories_are_made_once_and_removed_empty(disk: Disk, opened: Open) -> None:
    disk.make_dir("d")
    with pytest.raises(FileExistsError):
        disk.make_dir("d")
    opened("d/f")
    with pytest.raises(OSError, match="not empty") as caught:
        disk.remove_dir("d")
    assert caught.value.errno == errno.ENOTEMPTY

    disk.remove("d/f")
    disk.sync_dir("d")
    disk.remove_dir("d")
    disk.sync_dir("")

    assert disk.list_dir("") == []


def test_the_root_is_neither_made_nor_removed(disk: Disk, opened: Open) -> None:
    opened("f")
    with pytest.raises(FileExistsError):
        disk.make_dir("")
    with pytest.raises(ValueError, match="the root itself"):
        disk.remove_dir("")
    with pytest.raises(ValueError, match="the root itself"):
        disk.rename("f", "")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["..", "../f", "/f", "d//f", "d/", ".", "d/../f"])
def test_no_path_leaves_the_root(disk: Disk, opened: Open, path: str) -> None:
    calls: tuple[Callable[[], object], ...] = (
        lambda: opened(path),
        lambda: disk.exists(path),
        lambda: disk.is_dir(path),
        lambda: disk.list_dir(path),
        lambda: disk.make_dir(path),
        lambda: disk.lock(path),
    )
    for call in calls:
        with pytest.raises(ValueError, match="not one below the store's root"):
            call()


def test_a_lock_is_held_until_released(disk: Disk) -> None:
    lock = disk.lock("lock")
    assert disk.file_size("lock") == 0
    with pytest.raises(BlockingIOError, match="another store holds the lock"):
        disk.lock("lock")

    lock.release()
    lock.release()

    disk.lock("lock").release()


def test_releasing_an_old_lock_leaves_a_new_one(disk: Disk) -> None:
    old = disk.lock("lock")
    old.release()
    new = disk.lock("lock")
    old.release()

    with pytest.raises(BlockingIOError):
        disk.lock("lock")
    new.release()


PATHS = st.sampled_from(["a", "b", "d/a", "d/b", "d", "e", "a/a", "../a"])
SIZES = st.sampled_from([0, 1, 600, PAGE_SIZE, SIZE])
CALLS = st.one_of(
    st.tuples(st.just("open"), PATHS, SIZES, st.just(True), st.booleans()),
    st.tuples(st.just("open"), PATHS, SIZES, st.booleans(), st.booleans()),
    st.tuples(st.just("write"), st.integers(0, 9), SIZES, st.binary(max_size=40)),
    st.tuples(st.just("read"), st.integers(0, 9), SIZES, SIZES),
    st.tuples(st.sampled_from(["sync", "close"]), st.integers(0, 9)),
    st.tuples(st.just("truncate"), PATHS, SIZES),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(
        st.sampled_from(
            [
                *("exists", "is_dir", "list_dir", "file_size", "remove"),
                *("make_dir", "remove_dir", "sync_dir", "lock"),
            ]
        ),
        PATHS,
    ),
)


def answer(disk: Disk, files: list[File], call: tuple[object, ...]) -> object:
    """What one call returns, or the class and errno of what it raises."""
    try:
        match call:
            case ("open", str(path), int(size), bool(create), bool(mapped)):
                files.append(disk.open(path, size, create=create, mapped=mapped))
                return files[-1].size
            case (("write" | "read" | "sync" | "close"), *_) if not files:
                return None
            case ("write", int(handle), int(offset), bytes(data)):
                files[handle % len(files)].write_at(offset, data)
                return None
            case ("read", int(handle), int(offset), int(size)):
                return files[handle % len(files)].read_at(offset, size)
            case (("sync" | "close") as verb, int(handle)):
                return getattr(files[handle % len(files)], str(verb))()
            case ("lock", str(path)):
                disk.lock(path).release()
                return None
            case (str(verb), *arguments):
                return getattr(disk, verb)(*arguments)
    except (OSError, ValueError) as error:
        return type(error), getattr(error, "errno", None)
    raise AssertionError(call)


def everything_of(disk: Disk, directory: str = "") -> dict[str, bytes | None]:
    seen: dict[str, bytes | None] = {}
    for name in disk.list_dir(directory):
        path = f"{directory}/{name}" if directory else name
        if disk.is_dir(path):
            seen |= {path: None} | everything_of(disk, path)
        else:
            size = disk.file_size(path)
            file = disk.open(path, size, create=False, mapped=False)
            seen[path] = file.read_at(0, size)
            file.close()
    return seen


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(calls=st.lists(CALLS, max_size=30))
def test_the_fake_answers_as_the_real_disk(calls: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        real, fake = RealDisk(Path(root)), SimDisk(PROFILES["ext4_ordered"]).mount()
        real_files: list[File] = []
        fake_files: list[File] = []
        calls = [("make_dir", "d"), ("open", "a", 600, True, True), *calls]

        for call in calls:
            assert answer(fake, fake_files, call) == answer(real, real_files, call)

        for file in real_files + fake_files:
            file.close()
        assert everything_of(fake) == everything_of(real)
