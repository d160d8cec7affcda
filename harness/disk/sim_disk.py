"""SimDisk: a disk with two images, on which a crash can happen at any action.

Readers see the *cache*; the *durable* image is what is certainly on the medium. Between
them lie *pending* changes: every store into a page, every creation, size, rename and
removal, in the order they were made. A sync of a file makes its pages durable one by
one, then commits the directory changes that its profile names; a sync of a directory
commits only directory changes. A *disk action* is one page's part of a write, one page
made durable, or one directory change; events happen at an action.

A process kill ends the life of the store and keeps the cache; pending changes stay
pending. A power loss keeps the durable image and those pending changes that
``Survivors`` names and the profile allows: directory changes in their order or in none,
each sector at any version it had at a store's boundary, independent of its neighbours.
A file whose creation is lost is gone with its bytes; a removed file may come back.
After it nothing is pending. A failed sync leaves pages clean, so that no later sync
makes them durable until they are written again; the profile says what readers see of
them meanwhile.

``DiskProfile`` has what differs between file systems. ``survivors`` and ``units``
choose survivors, ``crash_state`` computes the result, ``medium`` has the images, and a
store uses a ``Mount``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from crashmq.engine.host.disk import Usage
from crashmq.harness.disk.controls import Controls, Healed
from crashmq.harness.disk.crash import ProcessKilled, StoreCrashed, crash_class
from crashmq.harness.disk.inode import Inode
from crashmq.harness.disk.medium import Clock, Medium, MediumImage, stopped_clock
from crashmq.harness.disk.mount import Mount
from crashmq.harness.disk.profiles import EXT4_ORDERED, SECTOR_SIZE, DiskProfile
from crashmq.harness.disk.read_tracking import Asked, TrackingMount
from crashmq.harness.disk.sim_file import Life, Writer
from crashmq.models.describe import describe
from crashmq.models.observations import Damaged, HalfMade
from crashmq.models.ops import Crash, DiskFault, FaultCall

_ALL_MADE = HalfMade()


class DiskSnapshot(NamedTuple):
    """A disk at one moment with its pending changes; no life, watches or faults.

    Attributes:
        actions: disk actions begun so far.
        last: kind and path of the newest action.
        storing: for a store into a mapping that is about to be done: its position in
            the file, and its bytes.
        medium: the disk as it was then, or some stores earlier.
        done: the last action whose stores belong to it; None: none after ``medium``.
    """

    profile: DiskProfile
    medium: MediumImage
    actions: int
    last: tuple[str, str]
    storing: tuple[int, bytes] | None = None
    done: int | None = None


class Seen(NamedTuple):
    """All that readers can notice: names, the files they lead to, and the disk's use.

    ``has_bad``: there may be unreadable sectors.
    """

    names: Mapping[str, int]
    inodes: Mapping[int, Inode]
    foreign_size: int
    has_bad: bool


class SimDisk:
    """The harness's side of a simulated disk: mount it, break it, read it."""

    __slots__ = ("_asked", "_controls", "_life", "_medium", "_writers")

    def __init__(
        self,
        profile: DiskProfile = EXT4_ORDERED,
        *,
        now_ms: Clock = stopped_clock,
        capacity: int = 0,
    ) -> None:
        """Make a disk without files.

        Args:
            profile: what it promises about unsynced data.
            now_ms: the wall clock for the files' times.
            capacity: bytes that all files together may have; 0: no limit.
        """
        self._medium = Medium(profile, now_ms, capacity)
        self._controls = Controls()
        self._life: Life | None = None
        self._asked: Asked | None = None
        self._writers: dict[str, Writer] = {}

    @classmethod
    def fork(cls, snapshot: DiskSnapshot, cut: int = 0) -> SimDisk:
        """An independent disk that continues from ``snapshot``, not mounted.

        If a store into a mapping is in progress, its first ``cut`` bytes are done.
        """
        disk = cls.__new__(cls)
        disk._medium = Medium.of_image(snapshot.profile, snapshot.medium, snapshot.done)
        disk._controls = Controls(snapshot.actions, snapshot.last)
        disk._life = None
        disk._asked = None
        disk._writers = {}
        if cut and snapshot.storing is not None:
            offset, data = snapshot.storing
            inode = disk._medium.inode(snapshot.last[1])
            inode.store(snapshot.actions, offset, data[:cut])
            inode.mtime_ms = snapshot.medium.taken_ms
        return disk

    def snapshot(self) -> DiskSnapshot:
        """The disk as it is now; buffers are shared until either side changes them.

        Cheap to call at each action (``on_every_action``): only changes since the last
        snapshot are copied, and of stores only their number.
        """
        medium, controls = self._medium, self._controls
        actions = controls.actions
        lazily = controls.is_listening
        return DiskSnapshot(
            medium.profile,
            medium.lazy_image() if lazily else medium.image(),
            actions,
            controls.last,
            controls.storing,
            actions - 1 if lazily else None,
        )

    @property
    def profile(self) -> DiskProfile:
        """What this disk promises about unsynced data."""
        return self._medium.profile

    @property
    def actions(self) -> int:
        """Disk actions begun since the disk was made."""
        return self._controls.actions

    @property
    def last_action(self) -> str:
        """The newest disk action as ``kind:path``; "" before the first."""
        verb, path = self._controls.last
        return f"{verb}:{path}" if verb else ""

    def mount(self) -> Mount:
        """Begin a life of the store; return the disk for it."""
        assert self._life is None, "the disk is mounted; crash or unmount it first"
        self._life = Life(self._writers)
        if self._asked is not None:
            return TrackingMount(self._asked, self._medium, self._controls, self._life)
        return Mount(self._medium, self._controls, self._life)

    @property
    def has_life(self) -> bool:
        """Whether a store has it mounted."""
        return self._life is not None

    def note_reads(self) -> Asked:
        """Record from now on which bytes of the current files are read."""
        self._asked = Asked(self._medium)
        return self._asked

    def beside(self) -> Mount:
        """The same disk for another store during this life."""
        assert self._life is not None, "nobody is there to be beside"
        return Mount(self._medium, self._controls, self._life)

    def unmount(self) -> None:
        """End the life of a store that has stopped. Idempotent."""
        if self._life is not None:
            self._life.end(
                ProcessKilled("the store was stopped and gave its disk back")
            )
            self._life = None

    def crash(self, crash: Crash) -> StoreCrashed:
        """End the life as ``crash`` says, mounted or not.

        Returns:
            The exception that every later call of that life raises, and the caller too.
        """
        end = crash_class(crash.kind)(describe(crash))
        if self._life is not None:
            self._life.end(end)
            self._life = None
        if crash.kind == "power_loss":
            self._medium.lose_power(crash.survivors)
        return end

    def at_action(self, n: int, cut: int, event: Callable[[], None]) -> None:
        """Let ``event`` happen once, in the middle of the n-th action from now.

        Of a store into a mapping the first ``cut`` bytes of the page's part are in the
        cache by then; anything else has not been done. If ``event`` returns and this
        life goes on, so does the action.
        """
        self._controls.at_action(n, cut, event)

    def on_every_action(self, listener: Callable[[], None] | None) -> None:
        """Call ``listener`` at each action, before any of it is done.

        It may take a snapshot and must change nothing; None removes it.
        """
        self._controls.on_every_action(listener)

    def on_taking(self, taker: Callable[[str, str], object] | None) -> None:
        """Call ``taker`` with verb and path right before a file is removed or renamed.

        It must change nothing; None removes it.
        """
        self._controls.taker = taker

    def on_writing(self, path: str, writer: Writer) -> None:
        """Call ``writer`` with position and bytes right before a file is written to.

        It must change nothing. From the next mount on, unless reads are noted.
        """
        self._writers[path] = writer

    def is_synced(self, path: str) -> bool:
        """Whether a file's bytes are durable; its name may be pending."""
        inode = self._medium.inode(path)
        return inode.is_certain(inode.durable_size)

    def pause_by(self, pause: Callable[[], None] | None) -> None:
        """Call ``pause`` before each action and read; other activities may run in it.

        None removes it.
        """
        self._controls.pause_by(pause)

    def end_watch(self, event: Callable[[], None] | None = None) -> bool:
        """Remove the newest ``at_action``, or ``event``'s; whether it had fired."""
        return self._controls.end_watch(event)

    def allow(self, actions: int, reads: int) -> None:
        """Allow this many actions and reads from now on; one more raises ``Hang``."""
        self._controls.allow(actions, reads)

    def fail(self, fault: DiskFault) -> None:
        """Make the next ``fault.times`` calls of its kind fail, one in progress too."""
        if fault.call == "evict":
            self._medium.evict()
            return
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

    def files(self) -> dict[str, bytes]:
        """The files readers see, by path; unchanged ones are the same objects."""
        return self._medium.files()

    def seen(self) -> Seen:
        """Everything that a life of the store can see of the disk; read only."""
        medium = self._medium
        return Seen(
            names=medium.namespace.names,
            inodes=medium.inodes,
            foreign_size=medium.room.foreign_size,
            has_bad=medium.has_bad,
        )

    def durable_files(self) -> dict[str, bytes]:
        """The files after a power loss in which no pending change survives."""
        return self._medium.durable_files()

    def unsynced(self) -> tuple[str, ...]:
        """The files that a power loss could change, take or bring back; sorted."""
        return tuple(self.unsynced_from())

    @property
    def is_certain(self) -> bool:
        """Whether a power loss would change nothing, not even a directory entry."""
        if self._medium.has_effects:
            return False
        # The newest file is the likeliest to lack a sync.
        for inode in reversed(self._medium.inodes.values()):
            if not inode.is_certain(inode.durable_size):
                return False
        return True

    def unsynced_from(
        self, certain: Mapping[str, bytes] | None = None
    ) -> dict[str, int]:
        """As ``unsynced``, each with its first byte at risk; -1 for a removed file.

        ``certain``: the ``durable_files``, if the caller has them already.
        """
        if self.is_certain:
            return {}
        seen = self.files()
        certain = self.durable_files() if certain is None else certain
        return {
            path: _first_other(certain.get(path, b""), seen[path])
            if path in seen
            else -1
            for path in sorted({*seen, *certain})
            if seen.get(path) != certain.get(path)
        }

    def half_made(self) -> HalfMade:
        """Files whose creation a power loss could undo, or leave with old bytes."""
        medium, profile = self._medium, self._medium.profile
        names: list[str] = []
        if profile.metadata == "subset" and medium.has_effects:
            names = sorted({*self.files()} - {*self.durable_files()})
        rooms: list[str] = []
        if profile.tail == "any":
            rooms = [
                path
                for path, number in medium.namespace.files()
                if medium.inodes[number].unwritten
            ]
        return HalfMade(tuple(names), tuple(rooms)) if names or rooms else _ALL_MADE

    def left_open(self) -> tuple[str, ...]:
        """The files and locks that the mounted life holds, sorted."""
        return self._life.left_open() if self._life is not None else ()

    def late_actions(self) -> int:
        """How many actions the life did after it released its lock; normally 0."""
        at = self._life.let_go_at if self._life is not None else -1
        return self._controls.actions - at if at >= 0 else 0

    def keep_time_by(self, now_ms: Clock) -> None:
        """Use this clock for files' times from now on; a fork has no clock."""
        self._medium.now_ms = now_ms

    def usage(self) -> Usage:
        """How full the disk is."""
        return self._medium.usage()

    @property
    def full_calls(self) -> int:
        """How many calls were refused because the disk was full."""
        return self._medium.room.full_calls

    def fill(self, percent: int) -> None:
        """Let a foreign file take space until the disk is ``percent`` full.

        It takes nothing if the disk is fuller without it; 0 removes it. A disk without
        a capacity cannot be filled.
        """
        medium = self._medium
        medium.room.foreign_size = 0
        used, total = medium.usage()
        medium.room.foreign_size = max(0, total * min(percent, 100) // 100 - used)
        medium.changes += 1

    def mtimes(self) -> dict[str, int]:
        """When each file last changed, sorted by path."""
        medium = self._medium
        return {
            path: medium.inodes[number].mtime_ms
            for path, number in medium.namespace.files()
        }

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Set the mtime of a file."""
        medium = self._medium
        medium.inode(path).mtime_ms = mtime_ms
        medium.touch(medium.namespace.file(path))

    def load(self, files: Mapping[str, bytes]) -> None:
        """Create durable files, with the directories they need."""
        for path, content in files.items():
            self.replace_file(path, content)

    def make_unreadable(self, path: str, start: int, end: int) -> None:
        """Make the sectors of bytes [start, end) of a file unreadable, from outside."""
        assert self._life is None, "the disk is mounted; damage it while it is down"
        self._medium.make_unreadable(path, start, end)

    def unreadable(self) -> tuple[Damaged, ...]:
        """The sectors that cannot be read now, by path."""
        medium = self._medium
        if not medium.has_bad:
            return ()
        return tuple(
            Damaged(path, n * SECTOR_SIZE, (n + 1) * SECTOR_SIZE)
            for path, number in medium.namespace.files()
            for n in sorted(medium.inodes[number].bad)
            if medium.inodes[number].unreadable(n * SECTOR_SIZE, (n + 1) * SECTOR_SIZE)
        )

    def place_new(self, path: str, data: bytes | None) -> bool:
        """Create a file, or with None a directory; False if the path is taken.

        From outside, as ``replace_file``.

        Raises:
            ValueError: ``path`` is not one below the root.
        """
        assert self._life is None, "the disk is mounted; change it while it is down"
        return self._medium.place_new(path, data)

    def replace_file(self, path: str, data: bytes | None) -> None:
        """Change one file from outside, on both images; None removes it.

        Pending directory changes are committed first: damage is done to a mounted disk,
        whose journal was replayed.
        """
        assert self._life is None, "the disk is mounted; damage it while it is down"
        if data is None:
            self._medium.displace(path)
        else:
            self._medium.place(path, data)

    def renew_file(self, path: str, data: bytes) -> None:
        """Restore one file from outside; all of its sectors are readable then."""
        if path in self.files():
            self.replace_file(path, None)
        self.replace_file(path, data)


def _first_other(one: bytes, other: bytes) -> int:
    """The first byte at which two contents differ, or at which one of them ends."""
    alike, until = 0, min(len(one), len(other))
    if one[:until] == other[:until]:
        return until
    while until - alike > 1:  # they differ in [alike, until)
        middle = (alike + until) // 2
        if one[alike:middle] == other[alike:middle]:
            alike = middle
        else:
            until = middle
    return alike
