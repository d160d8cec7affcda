"""The system under test, as a port: one verb an op, and the handles to break it.

A verb answers with an observation and never raises for what a store may do by its
contract. ``StoreCrashed`` passes through it when the world ends mid-way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from harness.disk.controls import Healed
from harness.scheduling.turns import Turns
from models.messages import MessageToPut
from models.observations import (
    Damaged,
    HalfMade,
    Observation,
    Positions,
    Statistics,
)
from models.ops import (
    Boundary,
    Capability,
    Crash,
    Damage,
    DiskFault,
    FaultCall,
    PlantFile,
    ServiceName,
)


class Subject(Protocol):
    """A store that can be driven, stopped, broken and looked into."""

    name: str
    capabilities: frozenset[Capability]
    epoch_ms: int

    @property
    def is_up(self) -> bool:
        """Whether the store is started."""

    def now_ms(self) -> int:
        """The subject's wall clock."""

    def put(self, message: MessageToPut) -> Observation:
        """Store one message: ``Put``."""

    def put_batch(self, messages: Sequence[MessageToPut]) -> Observation:
        """Store several messages of one queue by one put: ``Put``."""

    def pull(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_msg_nums: int,
        tags: str,
    ) -> Observation:
        """Read one queue, messages of these tags alone: ``Pulled``."""

    def look(self, phy_offset: int) -> Observation:
        """Read the record at a place of the log: ``Looked``."""

    def search(
        self, topic: str, queue_id: int, at_ms: int, boundary: Boundary
    ) -> Observation:
        """Find a time in a queue: ``Searched``; ``at_ms`` is since the clock began."""

    def query(
        self, topic: str, key: str, max_num: int, begin_ms: int, end_ms: int
    ) -> Observation:
        """Read what carries a key: ``Queried``; times are since the clock began."""

    def run_service(self, service: ServiceName, times: int) -> Observation:
        """Turn a service: ``Ran``."""

    def advance_clock(self, ms: int) -> Observation:
        """Move the clock: ``ClockMoved``."""

    def stall(self, ms: int) -> Observation:
        """Let the op in progress stand still, and others run: ``ClockMoved``."""

    def delete_manually(self) -> Observation:
        """Ask for a deletion at the next rounds of the cleaner: ``Done``."""

    def delete_topic(self, topic: str, queue_id: int) -> Observation:
        """Delete a topic, or one queue of it if ``queue_id`` >= 0: ``Deleted``."""

    def fill_disk(self, percent: int) -> Observation:
        """Let a foreign file fill the disk: ``DiskFilled``."""

    def disk_usage(self) -> tuple[int, int]:
        """Bytes in use by everybody, and all there are; 0 if there is no end."""

    def mtime_ms(self, path: str) -> int:
        """When a file says that it last changed."""

    def shutdown(self) -> Observation:
        """Stop in an orderly way: ``Stopped``."""

    def start(self) -> Observation:
        """Load, recover and start: ``Started`` or ``Refused``."""

    def open_beside(self) -> Observation:
        """Open the directory once more while the store is up: ``Refused``, rightly."""

    def damage(self, damage: Damage) -> Observation:
        """Change a file while down: ``Damaged``, or ``Skipped`` if there is none."""

    def plant(self, op: PlantFile) -> Observation:
        """Put a foreign file into the store while down: ``Planted``, or ``Skipped``."""

    def run(self, body: Callable[[], Observation]) -> Observation:
        """Run a verb, and all that was interleaved with it, to the end."""

    def interleave(self, body: Callable[[], Observation]) -> Callable[[], Observation]:
        """Begin a second activity now; the callable waits for what it observed."""

    def together(
        self, bodies: Sequence[tuple[str, Callable[[], Observation]]], turns: Turns
    ) -> list[Observation]:
        """Run named bodies at the same time, to their ends; ``turns`` says who when."""

    def on_action(self, at_action: int, cut: int, event: Callable[[], None]) -> None:
        """Let ``event`` happen at the n-th disk action from now, once."""

    def end_watch(self) -> bool:
        """Forget the event that has not happened; whether it had happened."""

    def fail(self, fault: DiskFault) -> None:
        """Make calls to the disk fail until ``heal``."""

    def unreadable(self) -> tuple[Damaged, ...]:
        """The sectors of files that nobody can read now."""

    def take_faults_met(self) -> Sequence[tuple[FaultCall, str]] | None:
        """The calls that met a fault since this was last asked, with their paths.

        None if nobody knows: then each fault counts as met, wherever that was.
        """

    def heal(self) -> Healed:
        """Let the disk work again; what its faults did."""

    def crash(self, crash: Crash) -> BaseException:
        """End this life of the store as ``crash`` says; the store is down after.

        Returns the ``StoreCrashed`` that a verb in progress must raise to unwind.
        """

    def disk_actions(self) -> int:
        """Disk actions since the subject was made."""

    def last_action(self) -> str:
        """The newest disk action as ``verb:path``."""

    def files(self) -> Mapping[str, bytes]:
        """The store's files as a reader sees them now, by path."""

    def left_by_start(self) -> tuple[str, ...]:
        """What a start that failed or was refused still held; () if nobody knows."""

    def late_actions(self) -> int:
        """What the last stop did to the disk when it had let go of it; 0 if unknown."""

    def unsynced_from(self) -> Mapping[str, int]:
        """The files that a power loss could change, and from which byte on.

        -1 for one that is gone and could come back. Nothing if nobody knows.
        """

    def half_made(self) -> HalfMade:
        """The files that were not made for good; none if nobody knows."""

    def positions(self) -> Positions:
        """Where the log stands; all -1 while the store is down."""

    def statistics(self) -> Statistics:
        """What the store counts since it started; nothing while it is down."""

    def close(self) -> None:
        """Give everything back."""
