"""Mount: the simulated disk as one life of a store uses it: names, files, locks.

A ``Mount`` ends with the life for which it was made; from then on it, its files and its
locks raise the exception that ended the life. Every change is counted as a disk action
before it is done, so an event that stops it leaves the disk without it. ``Medium``
applies a change to the two images.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from crashmq.engine.host.disk import Usage
from crashmq.harness.disk.controls import Controls
from crashmq.harness.disk.medium import Medium
from crashmq.harness.disk.namespace import (
    DIRECTORY,
    ROOT,
    DirectoryMade,
    Removed,
    os_error,
)
from crashmq.harness.disk.sim_file import Life, SimFile, ToldFile
from crashmq.models.ops import FaultCall


class SimLock:
    """An exclusive lock on one path, for one life at most."""

    __slots__ = ("_controls", "_life", "_path")

    def __init__(self, controls: Controls, life: Life, path: str) -> None:
        self._controls = controls
        self._life = life
        self._path = path
        life.locked_paths[path] = self

    def release(self) -> None:
        """Release the lock, so that another store can take it. Idempotent."""
        self._life.check()
        if self._life.locked_paths.get(self._path) is self:
            del self._life.locked_paths[self._path]
            self._life.let_go_at = self._controls.actions


class Mount:
    """A ``Disk`` for one life of a store."""

    __slots__ = ("_controls", "_life", "_medium")

    def __init__(self, medium: Medium, controls: Controls, life: Life) -> None:
        self._medium = medium
        self._controls = controls
        self._life = life

    def open(self, path: str, size: int, *, create: bool, mapped: bool) -> SimFile:
        """Open a file of exactly ``size`` bytes; creating it is two actions."""
        self._life.check()
        if size < 0:
            raise ValueError(f"cannot open {path} of {size} bytes; give a size >= 0.")
        if create and not self.exists(path):
            self._create(path, size)
        found = len(self._medium.inode(path).cache)
        if found != size:
            raise os_error(
                errno.EINVAL, path, f"it has {found} bytes and {size} were asked for"
            )
        return self._opened(path, mapped=mapped)

    def _opened(self, path: str, *, mapped: bool) -> SimFile:
        kind = ToldFile if path in self._life.writers else SimFile
        return kind(self._medium, self._controls, self._life, path, mapped=mapped)

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this path."""
        self._life.check()
        return self._medium.namespace.has(path)

    def is_dir(self, path: str) -> bool:
        """Whether a directory has this path."""
        self._life.check()
        namespace = self._medium.namespace
        return namespace.has(path) and namespace.names[path] == DIRECTORY

    def list_dir(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        self._life.check()
        return self._medium.namespace.list_dir(path)

    def file_size(self, path: str) -> int:
        """A file's size in bytes."""
        self._life.check()
        return len(self._medium.inode(path).cache)

    def mtime_ms(self, path: str) -> int:
        """When a file's bytes last changed, in milliseconds since the epoch."""
        self._life.check()
        return self._medium.inode(path).mtime_ms

    def usage(self) -> Usage:
        """How full the disk is."""
        self._life.check()
        return self._medium.usage()

    def truncate(self, path: str, size: int) -> None:
        """Set the size of a file no one holds open; one action if it changes."""
        self._life.check()
        inode = self._medium.inode(path)
        if size < 0:
            raise ValueError(f"cannot cut {path} to {size} bytes; give a size >= 0.")
        if inode.open_files:
            raise ValueError(f"cannot resize {path} while it is open; close it first.")
        if size == len(inode.cache):
            return
        grows = size > len(inode.cache)

        def check() -> None:
            self._medium.namespace.file(path)
            self._medium.room_for(path, size - len(inode.cache))

        action = self._act(
            "size" if grows else "truncate",
            path,
            check,
            call="create" if grows else None,
        )
        self._medium.resize(action, path, size)

    def rename(self, source: str, target: str) -> None:
        """Give a file another path, replacing a file there; one action."""
        self._life.check()
        namespace = self._medium.namespace

        def check() -> None:
            namespace.file(source)
            namespace.room_for(target)
            if target in namespace.names:
                namespace.file(target)

        check()
        if source == target:
            return
        if self._controls.taker is not None:
            self._controls.taker("rename", source)
        action = self._act("rename", target, check, call="remove")
        self._medium.rename(action, source, target)

    def remove(self, path: str) -> None:
        """Remove a file; one action."""
        self._life.check()
        namespace = self._medium.namespace
        action = self._act("remove", path, lambda: namespace.file(path), call="remove")
        self._medium.record(Removed(action, path))

    def make_dir(self, path: str) -> None:
        """Make one directory; one action."""
        self._life.check()

        def check() -> None:
            if self.exists(path):
                raise os_error(errno.EEXIST, path, "the path is taken")
            self._medium.namespace.room_for(path)

        action = self._act("make_dir", path, check, call="create")
        self._medium.record(DirectoryMade(action, path))

    def remove_dir(self, path: str) -> None:
        """Remove one empty directory; one action."""
        self._life.check()
        if path == ROOT:
            raise ValueError('the path "" is the root itself, which cannot be removed.')

        def check() -> None:
            names = self._medium.namespace.list_dir(path)
            if names:
                raise os_error(errno.ENOTEMPTY, path, f"{names[0]!r} is still in it")

        action = self._act("remove_dir", path, check, call="remove")
        self._medium.record(Removed(action, path))

    def sync_dir(self, path: str) -> None:
        """Make a directory's changes durable, and others if the profile says so.

        One action.
        """
        self._life.check()
        namespace, called = self._medium.namespace, self._controls.actions
        self._act("sync_dir", path, lambda: namespace.directory(path), call="sync")
        self._medium.commit_dir(path, called)

    def lock(self, path: str) -> SimLock:
        """Hold ``path`` exclusively; one action if the file is created."""
        self._life.check()
        if path in self._life.locked_paths:
            raise BlockingIOError(
                errno.EWOULDBLOCK, "another store holds the lock; stop it first", path
            )
        if not self.exists(path):
            self._create(path, 0)
        self._medium.namespace.file(path)
        return SimLock(self._controls, self._life, path)

    def _create(self, path: str, size: int) -> None:
        namespace = self._medium.namespace
        action = self._act(
            "create", path, lambda: namespace.room_for(path), call="create"
        )
        if self.exists(path):
            return  # the event that happened here was first
        self._medium.create(action, path)
        if size:

            def check() -> None:
                namespace.file(path)
                self._medium.room_for(path, size)

            try:
                action = self._act("size", path, check, call="create")
            except OSError:
                if self.exists(path):
                    self._medium.record(Removed(self._controls.actions, path))
                raise
            self._medium.resize(action, path, size)

    def _act(
        self,
        verb: str,
        path: str,
        check: Callable[[], object],
        *,
        call: FaultCall | None = None,
    ) -> int:
        """Count an action; run the faults and events that come before it is done.

        Args:
            verb: the action's name in reports.
            path: the file or directory.
            check: raises if the action is impossible; called again after each event,
                which may have changed the disk.
            call: the kind of fault that this call meets.

        Returns:
            The number of the newest action, under which the change is made.
        """
        controls = self._controls
        controls.pause()
        check()
        if call is not None:
            controls.meet_fault(call, path)
        action = controls.begin((verb, path))
        if action >= controls.stop_at:
            while (watch := controls.next_due(action)) is not None:
                controls.fire(watch)
                self._life.check()
                check()
                if call is not None:
                    controls.meet_fault(call, path)
        return controls.actions
