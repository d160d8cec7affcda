"""When the laws of removed files, and of writes to the checkpoint, are asked."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.files.places import is_of_a_store
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments_of_rounds import FileTaken, MarkWritten
from crashmq.models.laws.checkpoint import (
    mark_is_written_with_its_sums,
    newest_mark_stays,
)
from crashmq.models.laws.medium import what_the_checkpoint_will_tell_of_is_on_the_medium
from crashmq.models.laws.removals import (
    listing_is_needless,
    log_file_is_needless,
    orderly_end_is_durable_first,
    what_is_renamed_is_synced,
)

KEPT = (Fact.DISK_WORKED, Fact.DISK_WORKS, Fact.SYNCED_STAYS, Fact.WRITTEN_STAYS)
AS_IT_WAS = (Fact.SYNCED_STAYS, Fact.WRITTEN_STAYS, Fact.UNTOUCHED)
WHILE_IT_RUNS = (
    # Also after failures: what one has kept from being durable, nothing may build on.
    *(Fact.DISK_WORKS, Fact.SYNCED_STAYS, Fact.WRITTEN_STAYS),
    *(Fact.LIVES, Fact.UNTOUCHED, Fact.UNDAMAGED_LOG),
)


def _below(at: FileTaken, *folders: str) -> bool:
    """Whether a running store removed a file of one of these folders."""
    taken = at.taken
    removed = taken.verb == "remove" and not at.amid_start
    is_ours = removed and taken.path.startswith(folders)
    return is_ours and is_of_a_store(taken.path, has_index=True)


@asked(
    what_is_renamed_is_synced,
    on=FileTaken,
    needs=KEPT,
    # A page that is lost in the step is no longer known once power is lost in it.
    where=lambda at: at.taken.verb == "rename" and not at.step.spoilt,
)
def _ask_dur_3(at: FileTaken) -> Breaches:
    return what_is_renamed_is_synced.judge(at.taken)


@asked(
    orderly_end_is_durable_first,
    on=FileTaken,
    needs=(*KEPT, Fact.ALONE, Fact.ABORT_IS_OURS, Fact.UNTOUCHED),
    where=lambda at: at.taken.path == "abort" and not at.amid_start,
)
def _ask_dur_4(at: FileTaken) -> Breaches:
    return orderly_end_is_durable_first.judge(at.taken)


@asked(
    log_file_is_needless,
    on=FileTaken,
    needs=WHILE_IT_RUNS,
    where=lambda at: _below(at, "commitlog/") and any(at.taken.content),
)
def _ask_dur_5(at: FileTaken) -> Breaches:
    size = at.known.setup.log_file_size
    return log_file_is_needless.judge(at.taken, size, at.look.files())


@asked(
    listing_is_needless,
    on=FileTaken,
    needs=WHILE_IT_RUNS,
    where=lambda at: _below(at, "consumequeue/", "index/"),
)
def _ask_dur_6(at: FileTaken) -> Breaches:
    return listing_is_needless.judge(at.taken)


def _loses_nothing(at: MarkWritten) -> bool:
    """Whether the medium never had anything else than what was synced.

    Without the abort file a start takes what a kill left for an orderly end's mark.
    """
    is_spoilt = at.step.spoilt or at.known.promises.ever_spoilt
    return not (is_spoilt or at.lacked_abort)


@asked(newest_mark_stays, on=MarkWritten, needs=AS_IT_WAS, where=_loses_nothing)
def _ask_cp_14(at: MarkWritten) -> Breaches:
    return newest_mark_stays.judge(at.written, may_be_unconfirmed=at.had_failed)


@asked(
    mark_is_written_with_its_sums,
    on=MarkWritten,
    needs=(
        *AS_IT_WAS,
        Fact.READABLE,
        Fact.LIVES,
        Fact.UNDAMAGED_LOG,
        Fact.FILES_ARE_OURS,
    ),
    # A file of which nobody can read all keeps the sum that it had.
    where=lambda at: _loses_nothing(at) and at.known.setup.on_damage == "refuse",
)
def _ask_cp_15(at: MarkWritten) -> Breaches:
    return mark_is_written_with_its_sums.judge(at.written, at.look.image())


@asked(
    what_the_checkpoint_will_tell_of_is_on_the_medium,
    on=MarkWritten,
    needs=(*AS_IT_WAS, Fact.DISK_WORKS),
    where=_loses_nothing,
)
def _ask_dur_7(at: MarkWritten) -> Breaches:
    return what_the_checkpoint_will_tell_of_is_on_the_medium.judge(
        at.written, at.look.image()
    )
