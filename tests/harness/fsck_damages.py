"""Every kind of damage: to records, to what is made of them, to whole files."""

from __future__ import annotations

from random import Random

import fsck_copy_damages  # noqa: F401 - declares its kinds, as those below do
import fsck_derived_damages  # noqa: F401
import fsck_file_damages  # noqa: F401
import fsck_mixed_up_damages  # noqa: F401
import fsck_mixed_up_index  # noqa: F401
import fsck_record_damages  # noqa: F401
from fsck_archive import Archive
from fsck_breaking import KINDS, Broken


def broken_copies(store: Archive, seeds: int) -> list[tuple[str, Broken]]:
    """Every kind with so many seeds; only those that change a byte."""
    found = []
    for name, damage in KINDS.items():
        for seed in range(seeds):
            broken = damage(store, Random(f"{name} {store.name} {seed}"))
            if broken is not None and broken.files != store.files:
                found.append((f"{name} #{seed}", broken))
    return found
