"""What a failed sync leaves on the medium (E1).

Its pages are clean from then on, whether or not they were written, so no later sync
writes them. ``Survivors`` choose what was written, as at a power loss: a page may have
been written before the error or after it, and earlier write-back may have left any
older version of it. A disk that keeps writes in order is no exception: what fails is
the write of each page to its final place, behind the journal.

Source: Rebello and others, "Can Applications Recover from fsync Failures?", ATC'20.
"""

from __future__ import annotations

from dataclasses import replace

from crashmq.harness.disk.choices import choice_of
from crashmq.harness.disk.crash_state import without_cuts
from crashmq.harness.disk.inode import Inode
from crashmq.harness.disk.profiles import DiskProfile
from crashmq.models.ops import Survivors


def leave(inode: Inode, profile: DiskProfile, survivors: Survivors) -> None:
    """Mark every page of a file clean; what ``survivors`` says of them is durable.

    Names and sizes stay pending. So a pending cut has no effect yet, and what was
    stored beyond it since is lost. ``survivors`` refers to this file only, by the path
    at which it was created; a prefix counts its stores.
    """
    if survivors.kind != "none":
        # No power was lost: nothing is torn.
        of_errors = replace(
            profile, keeps_write_order=False, shorn_sectors=False, torn_block=0
        )
        choice = choice_of(survivors, of_errors, (), {0: inode})
        base, stores = without_cuts(inode)
        choice.merge(inode.birth_path, inode, base, stores)
        inode.take_over(base)
    inode.forget_dirty_pages()
