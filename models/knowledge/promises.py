"""Which durability promises a disk still keeps after its faults.

A law that demands more than the disk can keep reports false alarms; one that is excused
for good finds nothing. So each fault voids only the promises that it breaks, and only
until a start has read what is left and written it again.

Source: section 6 of the disk fault model, and rule E1.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from crashmq.models.observations import Damaged
from crashmq.models.ops import CrashKind, DiskFault, Event, FaultCall, all_parts
from crashmq.models.plain_state import Forked

SPOILT = Damaged("commitlog", 0, 0)  # where, nobody knows


class DiskKind(Protocol):
    """What a kind of disk and file system promises of synced data.

    The rules P4, P15 and E1 of the disk fault model; see ``harness.disk.profiles``.
    """

    @property
    def loses_unsynced(self) -> bool:
        """Whether a power loss takes more than a process kill does."""

    @property
    def honours_sync(self) -> bool:
        """Whether a sync that succeeds has made anything durable."""

    @property
    def keeps_promises(self) -> bool:
        """Whether what was synced survives power loss as it was written."""

    @property
    def tears(self) -> bool:
        """Whether a write cut short can leave bytes that were never written."""

    @property
    def sync_failure(self) -> str:
        """What a failed sync leaves: ``clean``, ``late`` or ``revert``."""


@dataclass(slots=True)
class Promises(Forked):
    """Which of a store's durability floors its disk can keep, after the faults so far.

    Attributes:
        kind: the kind of disk.
        has_lied: a sync has succeeded without making its data durable.
        errors_come_late: a call may fail because of an earlier call that succeeded.
        hides_a_failed_sync: the page cache may hold pages that no later sync writes.
        reverts: a failed sync has taken back what only memory held, so that a kill
            spares no more than a power loss.
        spoilt: ranges of files that differ on the medium from what was synced, while
            the page cache still has it (E6).
        ever_spoilt: the files of which that was ever so.
    """

    kind: DiskKind = field(compare=False)
    has_lied: bool = False
    errors_come_late: bool = False
    hides_a_failed_sync: bool = False
    reverts: bool = False
    spoilt: tuple[Damaged, ...] = ()
    ever_spoilt: frozenset[str] = frozenset()

    def saw_fault(
        self,
        op: Event,
        spoilt: Sequence[Damaged] = (),
        unsynced: Callable[[], Container[str]] = tuple,
    ) -> tuple[Damaged, ...]:
        """Note what faults of ``op`` may have damaged; returns what readers see.

        ``unsynced`` are the files with dirty pages, which an eviction spares, and below
        which the medium may stay spoilt.
        """
        self.spoilt = tuple(dict.fromkeys((*self.spoilt, *spoilt)))
        self.ever_spoilt |= {one.path for one in spoilt}
        shown: tuple[Damaged, ...] = ()
        lies = self.has_lied or not self.kind.honours_sync
        if forgets(op) and (lies or self.hides_a_failed_sync or self.spoilt):
            self.reverts = True
            shown = self.spoilt
            spared = unsynced() if shown else ()
            self.spoilt = tuple([one for one in shown if one.path in spared])
            if lies:
                shown = (*shown, SPOILT)  # so may be what syncs that lied had covered
        if not _has(op, "sync"):
            return shown
        self.hides_a_failed_sync = True
        self.reverts = self.reverts or self.kind.sync_failure == "revert"
        if self.kind.sync_failure == "late":
            self.errors_come_late = self.has_lied = True
        return shown

    @property
    def keeps_what_is_synced(self) -> bool:
        """Whether data covered by a sync is on the medium."""
        return self.kind.honours_sync and not (self.has_lied or self.spoilt)

    def is_broken_by(self, crash: CrashKind) -> bool:
        """Whether synced bytes may be gone after this crash."""
        if crash != "power_loss":
            return False
        return self.has_lied or not self.kind.keeps_promises

    def renewed(self) -> None:
        """Note a start that has recovered: the files it found are on the medium."""
        self.errors_come_late = self.reverts = False

    def lost_power(self) -> tuple[Damaged, ...]:
        """Note a power loss; returns the damage of the medium that it shows.

        Where it takes no more than a kill does, the page cache stays as it was.
        """
        if not self.kind.loses_unsynced:
            return ()
        self.has_lied = self.hides_a_failed_sync = False
        shown, self.spoilt = self.spoilt, ()
        return shown


def forgets(op: Event) -> bool:
    """Whether the page cache drops clean pages during ``op``."""
    return _has(op, "evict")


def _has(op: Event, call: FaultCall) -> bool:
    return any(isinstance(one, DiskFault) and one.call == call for one in all_parts(op))
