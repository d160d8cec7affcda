"""A crash state chosen unit by unit, as ``Survivors`` of kind ``units`` list them.

A unit that is not listed is at version 0, the durable one. A listed unit that does not
exist is ignored, and a version beyond the newest means the newest. So a program stays
valid while it is shrunk. ``units`` defines the units.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.harness.disk.crash_state import Slot, UnitNames, in_no_order
from crashmq.harness.disk.inode import Inode, Store
from crashmq.harness.disk.namespace import Effect
from crashmq.harness.disk.profiles import DiskProfile
from crashmq.harness.disk.survivors import UpTo, tearable, versions_of
from crashmq.models.ops import UNIT_ORDER, UNIT_TAIL, KeptUnit

ORDER_SLOT: Slot = ("", UNIT_ORDER)
TAIL_VERSIONS = 3


class UnitChoice:
    """The choice that lists a version for each unit."""

    __slots__ = ("_kept", "_names", "_profile", "_up_to")

    def __init__(
        self,
        kept: Sequence[KeptUnit],
        profile: DiskProfile,
        names: UnitNames,
        ordered_actions: Sequence[int],
    ) -> None:
        self._kept = {(unit.path, unit.place): unit.version for unit in kept}
        self._profile = profile
        self._names = names
        count = min(self._kept.get(ORDER_SLOT, 0), len(ordered_actions))
        self._up_to = UpTo(ordered_actions[count - 1] if count > 0 else 0)

    def effects(self, pending: Sequence[Effect]) -> Sequence[Effect]:
        """As many effects as the version of their order says, or of each slot."""
        if self._profile.metadata != "subset":
            return self._up_to.effects(pending)
        return in_no_order(pending, self._names, self._stand)

    def merge(
        self, name: str, inode: Inode, base: bytearray, stores: Sequence[Store]
    ) -> None:
        """Apply the listed version of each stored sector to ``base``."""
        if self._profile.keeps_write_order and not inode.mapped:
            self._up_to.merge(name, inode, base, stores)
            return
        size = self._profile.sector_size
        for sector, pieces in tearable(self._profile, stores, len(base)).items():
            version = self._kept.get((name, sector), 0)
            if version > 0:
                versions = versions_of(self._profile, inode, base, sector, pieces)
                chosen = versions[min(version, len(versions) - 1)]
                base[sector * size : sector * size + len(chosen)] = chosen

    def tail(self, name: str) -> int:
        """What never synced space has, as listed; 0, zeros, if it is not listed."""
        return min(self._kept.get((name, UNIT_TAIL), 0), TAIL_VERSIONS - 1)

    def _stand(self, slot: Slot, count: int) -> int:
        return min(self._kept.get(slot, 0), count)
