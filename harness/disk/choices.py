"""Finds the choice that ``Survivors``, which is data, means on one disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from crashmq.harness.disk.crash_state import Choice, UnitNames
from crashmq.harness.disk.inode import Inode
from crashmq.harness.disk.namespace import Effect
from crashmq.harness.disk.profiles import DiskProfile
from crashmq.harness.disk.survivors import Hashed, UpTo
from crashmq.harness.disk.unit_choice import UnitChoice
from crashmq.models.ops import Survivors


def choice_of(
    survivors: Survivors,
    profile: DiskProfile,
    effects: Sequence[Effect],
    inodes: Mapping[int, Inode],
) -> Choice:
    """The choice that ``survivors`` means on this disk.

    Args:
        survivors: which of the pending changes survive the power loss, as data.
        profile: the disk's.
        effects: the pending directory changes, oldest first.
        inodes: every file, with its pending stores.
    """
    match survivors.kind:
        case "none":
            return UpTo(0)
        case "all":
            return UpTo(max(pending_actions(effects, inodes), default=0))
        case "prefix":
            ordered = sorted(pending_actions(effects, inodes))
            count = min(max(0, survivors.number), len(ordered))
            return UpTo(ordered[count - 1] if count else 0)
        case "hashed":
            return Hashed(
                survivors.number,
                profile,
                UnitNames(inodes),
                ordered_actions(profile, effects, inodes),
            )
        case "units":
            return UnitChoice(
                survivors.units,
                profile,
                UnitNames(inodes),
                ordered_actions(profile, effects, inodes),
            )
        case _:
            assert_never(survivors.kind)


def pending_actions(
    effects: Sequence[Effect], inodes: Mapping[int, Inode]
) -> list[int]:
    """The action of each pending store and directory change, unsorted."""
    return [
        *(effect.action for effect in effects),
        *(store[0] for inode in inodes.values() for store in inode.pending),
    ]


def ordered_actions(
    profile: DiskProfile, effects: Sequence[Effect], inodes: Mapping[int, Inode]
) -> list[int]:
    """The actions of the changes that survive in order, as a prefix; ascending."""
    if profile.metadata == "subset":
        return []
    actions = {effect.action for effect in effects}
    if profile.keeps_write_order:
        for inode in inodes.values():
            if not inode.mapped:
                actions.update(store[0] for store in inode.pending)
    return sorted(actions)
