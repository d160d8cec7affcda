"""What a sync that failed has left on the medium (E1).

Its pages are clean from then on, whether they were written or not: no later sync writes
them. Which of them were is a choice, made by ``Survivors`` as at a power loss: a page
may have gone out before the error or after it, and earlier write-back may have put it
there as it was at any store before. The journal of a disk that keeps writes in order
does not help: it fails where it puts each page in its place.

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

    Names and sizes pend as before, so a cut that pends has no effect yet, and what was
    stored beyond it since is lost. In a choice the file is alone: it is called by its
    first path, and a prefix counts its stores.
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
