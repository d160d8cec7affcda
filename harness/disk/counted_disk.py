"""CountedDisk: a directory of the real disk, with counted actions and faults.

It has the same methods as ``SimDisk``, over real files: changes are counted before they
are done, an event may happen in the middle of the n-th, and calls can be made to fail.
An action is one page's part of a write, one sync, or one directory change, so counts
can be compared only with this kind of disk. It loses nothing that a process kill would
keep: unsynced data stays in the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from crashmq.engine.host.disk import PAGE_SIZE, examine_by_reading
from crashmq.engine.host.real_disk import RealDisk, RealFile
from crashmq.harness.disk.controls import Controls, Healed
from crashmq.harness.disk.crash import StoreCrashed, crash_class
from crashmq.models.describe import describe
from crashmq.models.ops import Crash, DiskFault, FaultCall


class CountedFile:
    """One open file whose changes are counted."""

    __slots__ = ("_controls", "_file", "_mapped", "_path", "size")

    def __init__(
        self, file: RealFile, controls: Controls, path: str, *, mapped: bool
    ) -> None:
        self._file = file
        self._controls = controls
        self._path = path
        self._mapped = mapped
        self.size = file.size

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes [offset, offset + size), all of them."""
        self._controls.meet_fault("read", self._path)
        return self._file.read_at(offset, size)

    examine = examine_by_reading

    def write_at(self, offset: int, data: bytes | bytearray) -> None:
        """Replace the bytes from ``offset`` on, a page's part at a time."""
        self._controls.meet_fault("write", self._path)
        done = 0
        while done < len(data):
            room = PAGE_SIZE - (offset + done) % PAGE_SIZE
            self._write_piece(offset + done, data[done : done + room])
            done += room
        if not data:
            self._file.write_at(offset, data)

    def _write_piece(self, offset: int, data: bytes | bytearray) -> None:
        controls = self._controls
        action = controls.begin(("write", self._path))
        while (watch := controls.next_due(action)) is not None:
            if self._mapped:
                self._file.write_at(offset, data[: watch.cut])
            controls.fire(watch)
            controls.meet_fault("write", self._path)
        self._file.write_at(offset, data)

    def sync(self) -> None:
        """Make every byte written so far survive power loss; one action."""
        _act(self._controls, "sync", self._path, "sync")
        self._file.sync()

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()


class CountedMount(RealDisk):
    """The port to real files; every change is counted before it is done."""

    def __init__(self, root: Path, controls: Controls) -> None:
        super().__init__(root)
        self._controls = controls

    def open(  # type: ignore[override]
        self, path: str, size: int, *, create: bool, mapped: bool
    ) -> CountedFile:
        """Open a file of exactly ``size`` bytes; creating it is one action."""
        if create and not self.exists(path):
            _act(self._controls, "create", path, "create")
        file = super().open(path, size, create=create, mapped=mapped)
        return CountedFile(file, self._controls, path, mapped=mapped)

    def truncate(self, path: str, size: int) -> None:
        """Set the size of a file no one holds open; an action if it changes."""
        found = self.file_size(path)
        if found != size:
            call: FaultCall | None = "create" if size > found else None
            _act(self._controls, "truncate", path, call)
        super().truncate(path, size)

    def rename(self, source: str, target: str) -> None:
        """Give a file another path; one action."""
        _act(self._controls, "rename", source, "remove")
        super().rename(source, target)

    def remove(self, path: str) -> None:
        """Remove a file; one action."""
        _act(self._controls, "remove", path, "remove")
        super().remove(path)

    def make_dir(self, path: str) -> None:
        """Make one directory; one action."""
        _act(self._controls, "make_dir", path, "create")
        super().make_dir(path)

    def remove_dir(self, path: str) -> None:
        """Remove one empty directory; one action."""
        _act(self._controls, "remove_dir", path, "remove")
        super().remove_dir(path)

    def sync_dir(self, path: str) -> None:
        """Make the entries of this directory survive power loss; one action."""
        _act(self._controls, "sync_dir", path, "sync")
        super().sync_dir(path)


def _act(
    controls: Controls, verb: str, path: str, call: FaultCall | None = None
) -> None:
    """Count a change that is about to be made, and fire the events at it."""
    if call is not None:
        controls.meet_fault(call, path)
    action = controls.begin((verb, path))
    while (watch := controls.next_due(action)) is not None:
        controls.fire(watch)
        if call is not None:
            controls.meet_fault(call, path)


class CountedDisk:
    """The harness's side of a real directory: mount it, let it fail, read it."""

    def __init__(self, root: Path, *, actions: int = 0) -> None:
        self.root = root
        self._controls = Controls(actions)

    @property
    def actions(self) -> int:
        """Disk actions begun since the disk was made."""
        return self._controls.actions

    @property
    def last_action(self) -> str:
        """The newest disk action as ``kind:path``; "" before the first."""
        verb, path = self._controls.last
        return f"{verb}:{path}" if verb else ""

    def mount(self) -> CountedMount:
        """Begin a life of the store; return the disk for it."""
        return CountedMount(self.root, self._controls)

    def beside(self) -> CountedMount:
        """The same directory for another store during this life."""
        return self.mount()

    def late_actions(self) -> int:
        """Always 0: a real directory does not record when a store releases its lock."""
        return 0

    def unmount(self) -> None:
        """End the life of a store that has stopped; it has closed its files itself."""

    def crash(self, crash: Crash) -> StoreCrashed:
        """The exception for an op in progress whose process was killed."""
        return crash_class(crash.kind)(describe(crash))

    def at_action(self, n: int, cut: int, event: Callable[[], None]) -> None:
        """Let ``event`` happen once, in the middle of the n-th action from now."""
        self._controls.at_action(n, cut, event)

    def end_watch(self, event: Callable[[], None] | None = None) -> bool:
        """Remove the newest ``at_action``, or ``event``'s; whether it had fired."""
        return self._controls.end_watch(event)

    def allow(self, actions: int, reads: int) -> None:
        """Allow this many actions and reads from now on; one more raises ``Hang``."""
        self._controls.allow(actions, reads)

    def fail(self, fault: DiskFault) -> None:
        """Make the next ``fault.times`` calls of its kind fail."""
        self._controls.fail(fault)

    def heal(self) -> int:
        """Disarm every fault; return how many calls failed since the last ``heal``."""
        return self._controls.heal()

    def take_faults_met(self) -> tuple[tuple[FaultCall, str], ...]:
        """The calls that met a fault since the last call of this, with their paths."""
        return self._controls.take_met()

    def healed(self) -> Healed:
        """Disarm every fault; return what they did since the last call."""
        return self._controls.healed()

    def unsynced(self) -> tuple[str, ...]:
        """Empty: the kernel does not tell what is synced."""
        return ()

    def unsynced_from(self) -> dict[str, int]:
        """Empty, as ``unsynced``."""
        return {}

    def left_open(self) -> tuple[str, ...]:
        """Empty: the kernel closes files with their process."""
        return ()

    def files(self) -> Mapping[str, bytes]:
        """Every file below the root by path, sorted."""
        paths = sorted(path for path in self.root.rglob("*") if path.is_file())
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes() for path in paths
        }

    def place_new(self, path: str, data: bytes | None) -> bool:
        """Create a file, or with None a directory, if the path is free.

        From outside, while the store is down; returns whether it was created.
        """
        target = self.root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if data is None:
                target.mkdir()
            else:
                with target.open("xb") as file:
                    file.write(data)
        except (FileExistsError, NotADirectoryError):
            return False
        return True

    def replace_file(self, path: str, data: bytes | None) -> None:
        """Change one file while the store is down; None removes it."""
        target = self.root / path
        if data is None:
            target.unlink()
        else:
            target.write_bytes(data)
