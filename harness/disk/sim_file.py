"""SimFile: one open file of the simulated disk, and the life it belongs to.

Every episode spends much of its time in ``write_at`` and ``read_at``: one integer
comparison decides whether any event or fault is due. ``Inode`` applies stores and syncs
to the bytes; names belong to ``mount``.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping

from crashmq.engine.host.disk import PAGE_SIZE, examine_by_reading
from crashmq.harness.disk.controls import Controls
from crashmq.harness.disk.crash import StoreCrashed
from crashmq.harness.disk.failed_sync import leave
from crashmq.harness.disk.inode import PAGE_BITS, Inode, whole_sectors
from crashmq.harness.disk.medium import Medium
from crashmq.harness.disk.namespace import os_error
from crashmq.harness.disk.profiles import SECTOR_SIZE

_SHUT = -1  # as a limit it turns every range away, so the hot path asks no more
_NO_PAGE = -1  # a sync that has directory changes alone to commit


Writer = Callable[[int, bytes], object]
"""Is told where a store is about to write which bytes of a file."""


class Life:
    """The files and locks of a mount, and the exception that ended it.

    Attributes:
        writers: by a file's path, who is told of each write to it.
    """

    __slots__ = ("_end", "files", "let_go_at", "locked_paths", "writers")

    def __init__(self, writers: Mapping[str, Writer] | None = None) -> None:
        self.writers = writers or {}
        self.files: list[SimFile] = []
        self.locked_paths: dict[str, object] = {}
        self.let_go_at = -1  # the disk action after which it let go of a lock
        self._end: StoreCrashed | None = None

    def left_open(self) -> tuple[str, ...]:
        """The files that are open, and the locks that are held; sorted."""
        return tuple(
            sorted([*self.locked_paths, *(f.path for f in self.files if f.is_open)])
        )

    def check(self) -> None:
        """Raise the exception that ended this life, if it has ended."""
        if self._end is not None:
            raise type(self._end)(*self._end.args)

    def end(self, crash: StoreCrashed) -> None:
        """End this life: close every file and release its locks."""
        self._end = crash
        for file in self.files:
            file.shut()
        self.files.clear()
        self.locked_paths.clear()


class SimFile:
    """One open file of the simulated disk."""

    __slots__ = (
        "_controls",
        "_inode",
        "_life",
        "_limit",
        "_mapped",
        "_medium",
        "_number",
        "_path",
        "_wrote",
        "size",
    )

    def __init__(
        self,
        medium: Medium,
        controls: Controls,
        life: Life,
        path: str,
        *,
        mapped: bool,
    ) -> None:
        self._medium = medium
        self._controls = controls
        self._life = life
        self._path = path
        self._wrote = ("write", path)
        self._number = medium.namespace.file(path)
        self._inode: Inode = medium.inodes[self._number]
        self._mapped = mapped
        self.size = len(self._inode.cache)
        self._limit = self.size
        self._inode.open_files += 1
        if mapped and not self._inode.mapped:
            self._inode.mapped = True
            medium.touch(self._number)
        life.files.append(self)

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes [offset, offset + size) from the cache."""
        end = offset + size
        controls = self._controls
        controls.reads_left = left = controls.reads_left - 1
        # Nothing but an armed fault stops before the first action.
        if (
            left < 0
            or end > self._limit
            or offset < 0
            or size < 0
            or not controls.stop_at
            or self._inode.bad
        ):
            controls.pause()
            self._check_range(offset, size)
            controls.refuse_read(self._path)
            controls.meet_fault("read", self._path)
            self._meet_bad_sectors(offset, end)
        image = self._inode.image
        if image is not None:
            return image[offset:end]
        return bytes(self._inode.cache[offset:end])

    examine = examine_by_reading

    def write_at(self, offset: int, data: bytes | bytearray) -> None:
        """Put bytes into the cache, a page's part at a time."""
        if type(data) is not bytes:
            data = bytes(data)  # it is kept, and the caller may change its own
        end = offset + len(data)
        controls = self._controls
        inode = self._inode
        action = controls.actions + 1
        if (
            action >= controls.stop_at
            or end > self._limit
            or offset < 0
            or offset >> PAGE_BITS != (end - 1) >> PAGE_BITS
            or offset == end
            or inode.shared
            or inode.bad
        ):
            self._write_in_pieces(offset, data)
            return
        controls.actions = action
        controls.last = self._wrote
        inode.cache[offset:end] = data
        inode.pending.append((action, offset, data))
        inode.image = None
        inode.mtime_ms = self._medium.now_ms()

    def sync(self) -> None:
        """Make the file's pages durable, then the names that its sync commits.

        It covers what was there when it was called (P11): changes during the sync stay
        pending. On a disk that does not honour syncs it counts the actions and does
        nothing (P15).
        """
        self._check_range(0, 0)
        inode, medium = self._inode, self._medium
        called = self._controls.actions
        if inode.late_errno:
            number, inode.late_errno = inode.late_errno, 0
            raise os_error(number, self._path, "an earlier sync failed unnoticed")
        self._meet_sync_fault()
        if inode.cuts:
            medium.commit_file(self._number, called)
        pages = inode.dirty_pages()
        if pages or medium.has_effects:
            self._sync_pages(pages, called)
            medium.commit_file(self._number, called)
        if inode.unwritten and medium.profile.honours_sync:
            medium.touch(self._number)
            inode.unwritten = ()

    def _sync_pages(self, pages: list[int], called: int) -> None:
        controls = self._controls
        steps = max(1, len(pages))  # directory changes alone are one action
        if controls.actions + steps >= controls.stop_at:
            self._sync_in_steps(pages, called)
            return
        controls.actions += steps
        controls.last = ("sync", self._path)
        if self._medium.profile.honours_sync:
            self._medium.touch(self._number)
            self._inode.write_back()

    @property
    def path(self) -> str:
        """The path by which it was opened."""
        return self._path

    @property
    def is_open(self) -> bool:
        """Whether it was not closed."""
        return self._limit != _SHUT

    def close(self) -> None:
        """Close the file; unsynced bytes stay unsynced."""
        self._life.check()
        self.shut()

    def shut(self) -> None:
        """Close the file even if this life has ended. Idempotent."""
        if self._limit != _SHUT:
            self._limit = _SHUT
            self._inode.open_files -= 1
            self._inode.late_errno = 0  # nobody is left to be told

    def _check_range(self, offset: int, size: int) -> None:
        self._life.check()
        if self._limit == _SHUT:
            raise ValueError(f"file {self._path} is closed; open it again first.")
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ValueError(
                f"bytes [{offset}, {offset + size}) leave file {self._path} of "
                f"{self.size} bytes. Keep the range inside the file."
            )

    def _write_in_pieces(self, offset: int, data: bytes) -> None:
        self._check_range(offset, len(data))
        try:
            self._controls.meet_fault("write", self._path)
        except OSError:
            self._write_pages(offset, data[: self._controls.written])
            raise
        if self._inode.bad:
            # Who writes part of a sector has to read the rest of it first.
            end, whole = offset + len(data), whole_sectors((0, offset, data))
            self._meet_bad_sectors(offset, whole.start * SECTOR_SIZE if whole else end)
            self._meet_bad_sectors(whole.stop * SECTOR_SIZE if whole else end, end)
        self._write_pages(offset, data)

    def _meet_bad_sectors(self, start: int, end: int) -> None:
        bad = self._inode.unreadable(start, end)
        if bad is not None:
            why = f"bytes [{bad.start}, {bad.stop}) cannot be read"
            raise os_error(errno.EIO, self._path, why)

    def _write_pages(self, offset: int, data: bytes) -> None:
        self._inode.mtime_ms = self._medium.now_ms()
        done = 0
        while done < len(data):
            room = PAGE_SIZE - (offset + done) % PAGE_SIZE
            self._write_piece(offset + done, data[done : done + room])
            done += room

    def _write_piece(self, offset: int, data: bytes) -> None:
        controls = self._controls
        controls.pause()
        action = controls.begin(self._wrote, (offset, data) if self._mapped else None)
        done = 0
        while (watch := controls.next_due(action)) is not None:
            prefix = data[done : max(done, watch.cut)]
            if self._mapped:
                # A kill ends a copy into a mapping anywhere, a write() between pages.
                self._inode.store(controls.actions, offset + done, prefix)
                done += len(prefix)
            controls.fire(watch)
            self._life.check()
            try:
                controls.meet_fault("write", self._path)
            except OSError:
                self._inode.store(controls.actions, offset, data[: watch.cut])
                raise
        self._inode.store(controls.actions, offset + done, data[done:])

    def _sync_in_steps(self, pages: list[int], called: int) -> None:
        controls = self._controls
        for page in pages or [_NO_PAGE]:
            controls.pause()
            action = controls.begin(("sync", self._path))
            while (watch := controls.next_due(action)) is not None:
                controls.fire(watch)
                self._life.check()
                self._meet_sync_fault()
            if self._medium.profile.honours_sync:
                self._medium.touch(self._number)
                self._write_back(page, called)

    def _write_back(self, page: int, called: int) -> None:
        """Make a page durable, unless a silent fault loses or misdirects it (E6)."""
        controls, inode = self._controls, self._inode
        fault = controls.take_page_fault(self._path) if page != _NO_PAGE else None
        if fault is None:
            inode.write_back_page(page, called)
            return
        start, end = inode.page_range(page)
        controls.spoil(self._path, start, end)
        if fault.call == "misdirect":
            landed = self._medium.misdirect(self._number, page, fault.written)
            controls.spoil(*landed)
        inode.forget_page(page)

    def _meet_sync_fault(self) -> None:
        try:
            self._controls.meet_fault("sync", self._path)
        except OSError as error:
            profile = self._medium.profile
            self._medium.touch(self._number)
            leave(self._inode, profile, self._controls.survivors)
            match profile.sync_failure:
                case "clean":
                    raise
                case "revert":
                    self._inode.evict()
                    raise
                case "late":
                    self._inode.late_errno = error.errno or errno.EIO


class ToldFile(SimFile):
    """A file of whose writes somebody is told, right before each of them."""

    __slots__ = ()

    def write_at(self, offset: int, data: bytes | bytearray) -> None:
        """As ``SimFile.write_at``, told before."""
        self._check_range(offset, len(data))
        self._life.writers[self._path](offset, bytes(data))
        super().write_at(offset, data)
