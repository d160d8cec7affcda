"""When the laws of a start are asked: what it found, answered and recovered."""

from __future__ import annotations

from crashmq.harness.judging.asking import (
    Breaches,
    Checks,
    asked,
    asked_together,
    hold_files,
)
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.knowledge import End
from crashmq.models.knowledge.moments import (
    FilesFound,
    LogRecovered,
    LogRecoveredAround,
    Moment,
    QueuesRecovered,
    RotRecovered,
    StartLeft,
    StartOver,
    StoreUp,
)
from crashmq.models.laws.around import (
    keeps_what_is_whole,
    refuses_what_cannot_be_located,
)
from crashmq.models.laws.checkpoint import (
    checkpoint_is_up_to_date,
    dispatched_offset_is_in_the_queues,
    dispatched_time_is_in_the_queues,
    durable_mark_is_in_the_log,
    flushed_time_is_in_the_log,
    marked_bytes_are_unchanged,
    marks_never_move_backwards,
)
from crashmq.models.laws.commit_log import every_record_is_whole
from crashmq.models.laws.deletion import (
    empty_queues_keep_their_end,
    log_begins_where_it_was_left,
)
from crashmq.models.laws.file_laws import FILE_LAWS
from crashmq.models.laws.index import ended_files_are_whole
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.recovery import (
    abort_tells_how_it_ended,
    mark_vouches_for_an_orderly_end,
    recovered_log_is_a_prefix,
    recovered_log_reaches_the_floor,
    refusal_changes_nothing,
    refusal_names_what_is_damaged,
    refuses_only_damage,
    same_store,
    second_start_changes_nothing,
    start_after_orderly_end_changes_nothing,
    start_knows_how_it_ended,
    start_reads_what_it_must,
)
from crashmq.models.laws.registry import Law
from crashmq.models.laws.topic_deletion import (
    deletions_are_remembered,
    expired_deletions_are_forgotten,
    record_of_deletions_is_whole,
)
from crashmq.models.observations import Refused, Started

AFTER_AN_ORDERLY_END = (Fact.UNDAMAGED_LOG, Fact.UNTOUCHED)
AFTER_A_CRASH = (Fact.UNDAMAGED_LOG, Fact.UNTOUCHED, Fact.FILES_ARE_OURS)


def is_after_orderly_end(at: FilesFound) -> bool:
    """Whether the run before ended with an orderly shutdown."""
    return at.known.end is End.ORDERLY


@asked_together(
    FILE_LAWS,
    on=FilesFound,
    needs=(*AFTER_AN_ORDERLY_END, Fact.WRITTEN_STAYS),
    where=is_after_orderly_end,
)
def _ask_file_laws_at_files_found(at: FilesFound, checks: Checks) -> None:
    # An orderly end says that everything was dispatched.
    end = at.image.commit_log.max_phy_offset
    hold_files(checks, at.known, at.image, end)


@asked(
    checkpoint_is_up_to_date,
    on=FilesFound,
    needs=(*AFTER_AN_ORDERLY_END, Fact.DISK_WORKED),
    where=is_after_orderly_end,
)
def _ask_cp_6_at_files_found(at: FilesFound) -> Breaches:
    return checkpoint_is_up_to_date.judge(at.image)


def _has_lived(at: Moment) -> bool:
    return at.known.end is not End.NEW


@asked(
    abort_tells_how_it_ended,
    on=FilesFound,
    needs=(*AFTER_A_CRASH, Fact.END_IS_KNOWN),
    where=_has_lived,
)
def _ask_rec_6(at: FilesFound) -> Breaches:
    ended = at.known.end is End.ORDERLY
    return abort_tells_how_it_ended.judge(at.image, ended=ended)


def _crash_proof(laws: tuple[Law[[Judged]], ...], *needs: Fact) -> None:
    """Declare laws of the files that hold after a crash, before any repair.

    They are judged without caching, since the files of a crash are rarely seen again.
    """

    @asked_together(laws, on=FilesFound, needs=(*AFTER_A_CRASH, *needs))
    def _ask_laws(at: FilesFound, checks: Checks) -> None:
        for law in laws:
            law.hold(checks, at.judged)


# A store cut amid one of the checkpoint's times leaves a time nobody wrote. None of
# them has a CRC, and no start believes them.
_crash_proof((every_record_is_whole, durable_mark_is_in_the_log))
_crash_proof(
    (flushed_time_is_in_the_log, dispatched_time_is_in_the_queues),
    Fact.CHECKPOINT_IS_WHOLE,
)
_crash_proof((dispatched_offset_is_in_the_queues,))
# A failed sync may have left an index file that is told as durable and that nobody
# writes again before it is synced anew.
_crash_proof((ended_files_are_whole,), Fact.WRITTEN_STAYS, Fact.CHECKPOINT_IS_WHOLE)
_crash_proof((marked_bytes_are_unchanged, record_of_deletions_is_whole))


@asked(
    marks_never_move_backwards,
    on=FilesFound,
    # A start that was cut short may have lowered a time for what it missed.
    needs=(*AFTER_A_CRASH, Fact.WRITTEN_STAYS),
    where=lambda at: at.known.checkpoint is not None and at.image.has_checkpoint,
)
def _ask_cp_4_at_files_found(at: FilesFound) -> Breaches:
    assert at.known.checkpoint is not None
    return marks_never_move_backwards.judge(at.known.checkpoint, at.image.checkpoint)


@asked(
    refuses_what_cannot_be_located,
    on=StartOver,
    needs=(Fact.STORES_AS_ROCKETMQ,),
    where=lambda at: (
        at.log_is_damaged
        and at.known.setup.on_damage == "serve"
        and at.known.setup.is_usable
        and at.is_plain
    ),
)
def _ask_rec_12(at: StartOver) -> Breaches:
    return refuses_what_cannot_be_located.judge(
        at.found, at.at_full_size, at.start, is_foreign=at.is_foreign
    )


def _rested(at: StartOver) -> bool:
    """Whether the run before ended in order, and its files are unchanged since."""
    known = at.known
    is_whole = not (at.damaged or known.disk_failed)
    return known.end is End.ORDERLY and is_whole


@asked(refuses_only_damage, on=StartOver, where=lambda at: not at.listed)
def _ask_rec_4(at: StartOver) -> Breaches:
    return refuses_only_damage.judge(
        at.found,
        at.at_full_size,
        at.start.reason if isinstance(at.start, Refused) else "",
        log_is_damaged=at.log_is_damaged and not _rested(at),
        misfit=at.misfit or ("" if at.is_windowed else at.lost),
        may_refuse=bool(at.lost)
        or at.is_foreign
        or at.reads_failed
        or at.is_short
        or at.lost_its_mark,
        adopts=at.known.setup.adopt,
    )


def _knows_what_the_mark_covers(at: StartOver) -> bool:
    """Whether it is known what the mark covers; else REC-13 asks the same."""
    knows = bool(at.damaged) and at.is_plain and not at.is_windowed
    has_mark = at.found.checkpoint.mark is not None
    return knows and has_mark and isinstance(at.start, Started) and not at.listed


@asked(
    mark_vouches_for_an_orderly_end,
    on=StartOver,
    needs=(Fact.STORES_AS_ROCKETMQ,),
    where=_knows_what_the_mark_covers,
)
def _ask_rec_20(at: StartOver) -> Breaches:
    mark, end = at.found.checkpoint.mark, at.at_full_size.commit_log.max_phy_offset
    assert mark is not None
    assert isinstance(at.start, Started)
    return mark_vouches_for_an_orderly_end.judge(at.start, mark.durable_offset, end)


def _refused(at: StartOver) -> bool:
    return isinstance(at.start, Refused)


@asked(
    refusal_changes_nothing,
    on=StartOver,
    where=lambda at: _refused(at) and not (at.step.damaged or at.step.planted),
)
def _ask_rec_8(at: StartOver) -> Breaches:
    return refusal_changes_nothing.judge(at.found.files, at.look.files())


def _reads_files(at: StartOver) -> bool:
    """Whether a start that refuses has read files, and found them to be its own."""
    return at.known.setup.is_usable and not at.is_foreign


@asked(
    refusal_names_what_is_damaged,
    on=StartOver,
    needs=(Fact.STORES_AS_ROCKETMQ, Fact.READS_WORKED),
    where=lambda at: _refused(at) and bool(at.damaged) and _reads_files(at),
)
def _ask_rec_17(at: StartOver) -> Breaches:
    assert isinstance(at.start, Refused)
    named = {damage.path for damage in (*at.damaged, *at.unreadable)}
    older = at.known.tampering.mark_may_be_of_before
    if at.lost_its_mark or at.known.is_degraded or older:
        named.add("commitlog")  # of what was damaged before, too
    named.update(at.found.lost_tables)
    named.update(at.found.flawed_deletions)
    return refusal_names_what_is_damaged.judge(at.start, named)


WELL_FOUND = (Fact.UNTOUCHED, Fact.READS_WORKED, Fact.WRITTEN_STAYS)


@asked(start_reads_what_it_must, on=StoreUp, needs=WELL_FOUND)
def _ask_rec_7(at: StoreUp) -> Breaches:
    read = at.start.log_bytes_read
    return start_reads_what_it_must.judge(at.found, read, at.known.setup)


@asked(
    start_knows_how_it_ended,
    on=StoreUp,
    needs=(*WELL_FOUND, Fact.END_IS_KNOWN),
    where=_has_lived,
)
def _ask_rec_13(at: StoreUp) -> Breaches:
    ended = at.known.end is End.ORDERLY
    return start_knows_how_it_ended.judge(at.start, ended=ended)


@asked(
    marks_never_move_backwards,
    on=StoreUp,
    needs=(*WELL_FOUND, Fact.FILES_ARE_OURS),
    where=lambda at: at.start.last_exit_ok and at.found.has_checkpoint,
)
def _ask_cp_4_at_store_up(at: StoreUp) -> Breaches:
    left = at.left.checkpoint
    return marks_never_move_backwards.judge(at.found.checkpoint, left)


@asked(
    expired_deletions_are_forgotten,
    on=StoreUp,
    needs=(*WELL_FOUND, Fact.UNDAMAGED_LOG),
    where=lambda at: bool(at.left.commit_log.deleted.places),
)
def _ask_del_17(at: StoreUp) -> Breaches:
    log = at.left.commit_log
    return expired_deletions_are_forgotten.judge(
        log.deleted.places, max(0, log.min_phy_offset)
    )


@asked(recovered_log_is_a_prefix, on=RotRecovered)
def _ask_rec_1_at_rot_recovered(at: RotRecovered) -> Breaches:
    in_flight = at.known.model.in_flight
    return recovered_log_is_a_prefix.judge(at.records, at.messages, in_flight)


@asked(recovered_log_is_a_prefix, on=LogRecovered)
def _ask_rec_1_at_log_recovered(at: LogRecovered) -> Breaches:
    in_flight = at.known.model.in_flight
    return recovered_log_is_a_prefix.judge(at.records, at.messages, in_flight)


@asked(recovered_log_reaches_the_floor, on=LogRecovered)
def _ask_rec_2(at: LogRecovered) -> Breaches:
    return recovered_log_reaches_the_floor.judge(at.records, at.messages, at.floor)


@asked(
    log_begins_where_it_was_left,
    on=LogRecovered,
    needs=(Fact.TURNS_SERVICES, Fact.UNTOUCHED),
)
def _ask_del_1(at: LogRecovered) -> Breaches:
    model = at.known.model
    return log_begins_where_it_was_left.judge(
        at.log_min, model.min_certain, model.may_expire
    )


@asked(
    deletions_are_remembered,
    on=LogRecovered,
    needs=(Fact.ABORT_IS_OURS,),
    where=lambda at: at.known.tampering.deletions_stay,
)
def _ask_del_9(at: LogRecovered) -> Breaches:
    model = at.known.model
    return deletions_are_remembered.judge(
        at.deletions, model.deleted, model.may_be_deleted, at.log_min, at.log_end
    )


@asked(empty_queues_keep_their_end, on=QueuesRecovered)
def _ask_del_2(at: QueuesRecovered) -> Breaches:
    return empty_queues_keep_their_end.judge(at.found_ends, at.ends)


@asked(keeps_what_is_whole, on=LogRecoveredAround)
def _ask_rec_11(at: LogRecoveredAround) -> Breaches:
    model, degraded = at.known.model, at.known.tampering.degraded
    return keeps_what_is_whole.judge(
        at.whole,
        model.live_messages(model.log_min),
        model.in_flight,
        at.floors,
        degraded,
        at.start.damaged,
    )


def _starts_on_what_a_start_left(at: StartLeft) -> bool:
    return at.before is not None and same_store(at.before, at.found.files)


@asked(second_start_changes_nothing, on=StartLeft, where=_starts_on_what_a_start_left)
def _ask_rec_9(at: StartLeft) -> Breaches:
    return second_start_changes_nothing.judge(at.found.files, at.left)


@asked(
    start_after_orderly_end_changes_nothing,
    on=StartLeft,
    where=lambda at: at.after_orderly_end,
)
def _ask_rec_15(at: StartLeft) -> Breaches:
    return start_after_orderly_end_changes_nothing.judge(
        at.found.files, at.left, at.expired_index_files
    )
