"""Subject: the system under test as a port: one verb an op, and handles to break it.

A verb answers with an observation and never raises for what a store may do by its
contract. ``StoreCrashed`` passes through it when a crash ends it halfway.
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
    """A store that can be driven, stopped, broken and inspected."""

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
        """Read messages of one queue that match ``tags``: ``Pulled``."""

    def look(self, phy_offset: int) -> Observation:
        """Read the record at a phy_offset: ``Looked``."""

    def search(
        self, topic: str, queue_id: int, at_ms: int, boundary: Boundary
    ) -> Observation:
        """Search a queue by time: ``Searched``; ``at_ms`` is since the clock began."""

    def query(
        self, topic: str, key: str, max_num: int, begin_ms: int, end_ms: int
    ) -> Observation:
        """Read the messages with a key: ``Queried``; times since the clock began."""

    def run_service(self, service: ServiceName, times: int) -> Observation:
        """Run a service for some rounds: ``Ran``."""

    def advance_clock(self, ms: int) -> Observation:
        """Move the clock: ``ClockMoved``."""

    def stall(self, ms: int) -> Observation:
        """Let the op in progress stand still while others run: ``ClockMoved``."""

    def delete_manually(self) -> Observation:
        """Ask the cleaner to delete expired files in its next rounds: ``Done``."""

    def delete_topic(self, topic: str, queue_id: int) -> Observation:
        """Delete a topic, or one queue of it if ``queue_id`` >= 0: ``Deleted``."""

    def fill_disk(self, percent: int) -> Observation:
        """Let a foreign file fill the disk: ``DiskFilled``."""

    def disk_usage(self) -> tuple[int, int]:
        """Bytes in use, foreign files included, and the capacity; 0: no limit."""

    def mtime_ms(self, path: str) -> int:
        """The mtime of a file."""

    def shutdown(self) -> Observation:
        """Shut down in order: ``Stopped``."""

    def start(self) -> Observation:
        """Load, recover and start: ``Started`` or ``Refused``."""

    def open_beside(self) -> Observation:
        """Load the directory once more while the store is up: ``Refused``, rightly."""

    def damage(self, damage: Damage) -> Observation:
        """Change a file while down: ``Damaged``, or ``Skipped`` if there is none."""

    def plant(self, op: PlantFile) -> Observation:
        """Put a foreign file into the store while down: ``Planted``, or ``Skipped``."""

    def run(self, body: Callable[[], Observation]) -> Observation:
        """Run a verb, and everything interleaved with it, to the end."""

    def interleave(self, body: Callable[[], Observation]) -> Callable[[], Observation]:
        """Begin a second activity now; the callable waits for its observation."""

    def together(
        self, bodies: Sequence[tuple[str, Callable[[], Observation]]], turns: Turns
    ) -> list[Observation]:
        """Run named bodies at the same time, to their ends, by ``turns``."""

    def on_action(self, at_action: int, cut: int, event: Callable[[], None]) -> None:
        """Let ``event`` happen at the n-th disk action from now, once."""

    def end_watch(self) -> bool:
        """Remove the event that has not happened; return whether it had happened."""

    def fail(self, fault: DiskFault) -> None:
        """Make calls to the disk fail until ``heal``."""

    def unreadable(self) -> tuple[Damaged, ...]:
        """The sectors of files that cannot be read now."""

    def take_faults_met(self) -> Sequence[tuple[FaultCall, str]] | None:
        """The calls that met a fault since this was last asked, with their paths.

        None if nobody knows: then each fault counts as met, wherever that was.
        """

    def heal(self) -> Healed:
        """Disarm the disk's faults; return what they did."""

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
        """What a start that failed or was refused still held; () if unknown."""

    def late_actions(self) -> int:
        """Disk actions after the last stop had released its lock; 0 if unknown."""

    def unsynced_from(self) -> Mapping[str, int]:
        """The files that a power loss could change, with the first byte at risk.

        -1 for a removed file that could come back. Empty if unknown.
        """

    def half_made(self) -> HalfMade:
        """The files whose creation is not durable; none if unknown."""

    def positions(self) -> Positions:
        """The log's offsets; all -1 while the store is down."""

    def statistics(self) -> Statistics:
        """The store's counts since it started; empty while it is down."""

    def close(self) -> None:
        """Release everything."""
