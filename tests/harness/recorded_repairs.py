"""A repair's calls on real files, done again on the simulated disk.

``recorded`` notes each call that changes a directory, in order: names, lengths, bytes
and syncs. ``Replayed`` does them on a ``SimDisk``, where power can be lost after any of
them. The simulated disk cannot rename a folder, and need not: as in a file system, a
folder is a number, and its name an entry of the folder above. Here it is the folder
``<number>`` at the disk's root, and each entry that leads to one an empty file, whose
inode stands for that number.
"""

from __future__ import annotations

import builtins
import io
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pytest

from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import DiskSnapshot, SimDisk
from crashmq.models.ops import Crash, Survivors

Verb: TypeAlias = Literal[
    "create", "write", "size", "rename", "remove", "make_dir", "sync", "sync_dir"
]


class Step(NamedTuple):
    """One call: on which path, and what else it was told."""

    verb: Verb
    path: str
    other: str = ""
    at: int = 0
    data: bytes = b""


Note: TypeAlias = Callable[[Step], None]


@contextmanager
def recorded(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Step]]:
    """Note what the body changes below ``home``, by any call that repairs make."""
    steps: list[Step] = []
    with monkeypatch.context() as patch:
        calls = _Calls(home.resolve(), steps.append)
        for name in ("pwrite", "truncate", "rename", "replace", "mkdir", "rmdir"):
            patch.setattr(os, name, getattr(calls, name))
        for name in ("unlink", "remove", "fsync", "open"):
            patch.setattr(os, name, getattr(calls, name))
        patch.setattr(io, "open", calls.io_open)
        patch.setattr(builtins, "open", calls.io_open)
        patch.setattr(mmap, "mmap", calls.mapping())
        yield steps


class _Calls:
    """The calls of ``os``, ``io`` and ``mmap`` that note themselves."""

    def __init__(self, home: Path, note: Note) -> None:
        self._home, self._note = home, note
        names: tuple[str, ...] = ("pwrite", "truncate", "rename", "replace", "mkdir")
        names = (*names, "rmdir", "unlink", "remove", "fsync", "open")
        self._real = {name: getattr(os, name) for name in names}
        self._io_open, self._mmap = io.open, mmap.mmap

    def _path(self, where: Any, dir_fd: int | None = None) -> str | None:
        """The path below ``home`` of a path or handle; None elsewhere."""
        if isinstance(where, int):
            where = Path(f"/proc/self/fd/{where}").readlink()
        elif dir_fd is not None:
            where = Path(f"/proc/self/fd/{dir_fd}").readlink() / where
        path: Path = Path.cwd() / where
        if not path.is_relative_to(self._home):
            return None
        return path.relative_to(self._home).as_posix().removeprefix(".")

    def _tell(self, verb: Verb, path: str | None, **told: Any) -> None:
        if path is not None:
            self._note(Step(verb, path, **told))

    def pwrite(self, handle: int, data: Any, at: int) -> int:
        done: int = self._real["pwrite"](handle, data, at)
        self._tell("write", self._path(handle), at=at, data=bytes(data)[:done])
        return done

    def truncate(self, where: Any, size: int) -> None:
        self._real["truncate"](where, size)
        self._tell("size", self._path(where), at=size)

    def rename(self, source: Any, target: Any) -> None:
        self._real["rename"](source, target)
        self._tell("rename", self._path(source), other=self._path(target) or "")

    replace = rename

    def mkdir(self, path: Any, mode: int = 0o777) -> None:
        self._real["mkdir"](path, mode)
        self._tell("make_dir", self._path(path))

    def rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._real["rmdir"](path, dir_fd=dir_fd)
        self._tell("remove", self._path(path, dir_fd))

    def unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._real["unlink"](path, dir_fd=dir_fd)
        self._tell("remove", self._path(path, dir_fd))

    remove = unlink

    def fsync(self, handle: int) -> None:
        self._real["fsync"](handle)
        path = self._path(handle)
        is_folder = Path(f"/proc/self/fd/{handle}").is_dir()
        self._tell("sync_dir" if is_folder else "sync", path)

    def open(self, path: Any, flags: int, *args: Any, **options: Any) -> int:
        is_new = flags & os.O_CREAT and not os.path.lexists(path)
        handle: int = self._real["open"](path, flags, *args, **options)
        if is_new:
            self._tell("create", self._path(path))
        return handle

    def io_open(self, path: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        writes = isinstance(path, str | os.PathLike) and set(mode) & set("wax+")
        place = self._path(path) if writes else None
        if place is None:
            return self._io_open(path, mode, *args, **options)
        is_new = not os.path.lexists(path)
        before = b"" if is_new or "w" in mode else Path(path).read_bytes()
        opened = self._io_open(path, mode, *args, **options)
        if is_new:
            self._tell("create", place)
        elif "w" in mode:
            self._tell("size", place, at=0)
        return _Opened(opened, lambda: self._written(Path(path), place, before))

    def _written(self, path: Path, place: str, before: bytes) -> None:
        """What a buffered file has come to, once it is closed."""
        with self._io_open(path, "rb") as file:
            after = file.read()
        if len(after) != len(before):
            self._tell("size", place, at=len(after))
        before = before.ljust(len(after), b"\0")
        for at in range(0, len(after), 512):
            part = after[at : at + 512]
            if part != before[at : at + 512]:
                self._tell("write", place, at=at, data=part)

    def mapping(self) -> type[mmap.mmap]:
        calls = self

        class Mapping(mmap.mmap):
            """A mapping whose stores are noted."""

            place: str | None

            def __new__(cls, handle: int, *args: Any, **options: Any) -> Any:
                made = super().__new__(cls, handle, *args, **options)
                made.place = calls._path(handle) if handle >= 0 else None
                return made

            def __setitem__(self, key: Any, value: Any) -> None:
                super().__setitem__(key, value)
                at = key.start or 0 if isinstance(key, slice) else key
                calls._tell("write", self.place, at=at, data=bytes(value))

            def flush(self, *args: Any) -> None:
                super().flush(*args)
                calls._tell("sync", self.place)

        return Mapping


class _Opened:
    """A file that is open for writing; what was written is noted as it is closed."""

    def __init__(self, file: Any, closed: Callable[[], None]) -> None:
        self._file, self._closed = file, closed

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None:
        if not self._file.closed:
            self._file.close()
            self._closed()


@dataclass
class Replayed:
    """A directory on the simulated disk.

    Attributes:
        disk: has each folder as ``<number>``; the directory itself is ``0``.
        folders: the numbers of folders, by the inode that stands for their name.
    """

    disk: SimDisk
    folders: dict[int, int] = field(default_factory=dict)
    made: int = 0

    @staticmethod
    def of(home: Path, profile: str, room: int) -> Replayed:
        """A copy of a directory, durable; ``room`` more folders can be made."""
        disk = SimDisk(PROFILES[profile])
        found = Replayed(disk)
        every = sorted(home.rglob("*"))
        for number in range(room + 1 + sum(path.is_dir() for path in every)):
            disk.mount().make_dir(f"{number}")
            disk.unmount()
        for path in every:
            place = path.relative_to(home).as_posix()
            if path.is_dir():
                found.do(Step("make_dir", place))
            else:
                disk.replace_file(found.place(place), path.read_bytes())
        mount = disk.mount()
        for name in ("", *mount.list_dir("")):
            mount.sync_dir(name)
        disk.unmount()
        return found

    def place(self, path: str) -> str:
        """Where an entry lies on the simulated disk."""
        parts = path.split("/")
        folder = 0
        for name in parts[:-1]:
            folder = self.folders[self._names[f"{folder}/{name}"]]
        return f"{folder}/{parts[-1]}"

    def _folder(self, path: str) -> str:
        if not path:
            return "0"
        return f"{self.folders[self._names[self.place(path)]]}"

    @property
    def _names(self) -> Any:
        return self.disk.seen().names

    def do(self, step: Step) -> set[int]:
        """Do one call; the inodes of the folders that it removes."""
        gone = set[int]()
        if step.verb == "remove":
            inode = self._names[self.place(step.path)]
            gone = {inode} & self.folders.keys()
        mount = self.disk.mount()
        try:
            self._do(mount, step)
        finally:
            self.disk.unmount()
        return gone

    def _do(self, mount: Any, step: Step) -> None:
        if step.verb == "sync_dir":
            mount.sync_dir(self._folder(step.path))
            return
        place = self.place(step.path)
        match step.verb:
            case "create":
                mount.open(place, 0, create=True, mapped=False).close()
            case "make_dir":
                mount.open(place, 0, create=True, mapped=False).close()
                self.made += 1
                self.folders[self._names[place]] = self.made
            case "write":
                file = self._opened(mount, place)
                file.write_at(step.at, step.data)
                file.close()
            case "sync":
                file = self._opened(mount, place)
                file.sync()
                file.close()
            case "size":
                mount.truncate(place, step.at)
            case "rename":
                mount.rename(place, self.place(step.other))
            case "remove":
                mount.remove(place)

    @staticmethod
    def _opened(mount: Any, place: str) -> Any:
        size = mount.file_size(place)
        return mount.open(place, size, create=False, mapped=False)

    def left_by(self, snapshot: DiskSnapshot, survivors: Survivors) -> Tree:
        """What a power loss leaves of the directory at that moment."""
        disk = SimDisk.fork(snapshot)
        disk.crash(Crash("power_loss", survivors))
        names = dict(disk.seen().names)
        return Tree(self, names, disk.files())


@dataclass(frozen=True)
class Tree:
    """The files and folders that can be reached after a power loss."""

    of: Replayed
    names: dict[str, int]
    files: dict[str, bytes]

    @property
    def folders(self) -> set[int]:
        """The inodes of folders that have a name."""
        return {*self.names.values()} & self.of.folders.keys()

    def is_possible(self, certain: set[int]) -> bool:
        """Whether each folder has one name, as renames of folders leave them.

        Of a rename without a sync, POSIX promises neither name. But no file system
        gives a folder two, or takes one away whose name was certain: and no program
        could defend itself.
        """
        named = [inode for inode in self.names.values() if inode in self.of.folders]
        return len(named) == len({*named}) and certain <= {*named}

    @property
    def entries(self) -> dict[str, bytes | None]:
        """Each path with its bytes; None of a folder."""
        return dict(self._below(0, ""))

    def _below(self, folder: int, above: str) -> Iterator[tuple[str, bytes | None]]:
        for path, inode in sorted(self.names.items()):
            number, _, name = path.partition("/")
            if not name or number != f"{folder}":
                continue
            if inode in self.of.folders:
                yield f"{above}{name}", None
                yield from self._below(self.of.folders[inode], f"{above}{name}/")
            else:
                yield f"{above}{name}", self.files[path]

    def put_into(self, home: Path) -> None:
        """Write it out."""
        home.mkdir()
        for path, data in self.entries.items():
            if data is None:
                (home / path).mkdir()
            else:
                (home / path).write_bytes(data)
