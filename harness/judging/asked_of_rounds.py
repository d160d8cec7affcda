"""When the laws of single rounds of services, and of waits for them, are asked."""

from __future__ import annotations

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.knowledge import LOG
from crashmq.models.knowledge.moments import PositionsSeen
from crashmq.models.knowledge.moments_of_rounds import (
    IndexFilesMade,
    PutsWaited,
    RoundCounted,
    RoundHindered,
    RoundTurned,
    ServiceAsked,
)
from crashmq.models.laws.checkpoint import (
    DurableUntil,
    times_reach_what_is_durable,
)
from crashmq.models.laws.filtering import (
    filters_are_written_as_they_are,
    filters_of_the_gone_are_forgotten,
)
from crashmq.models.laws.index import files_are_named_by_their_time
from crashmq.models.laws.marks import (
    failed_flush_moves_nothing,
    what_is_stored_is_confirmed,
)
from crashmq.models.laws.rounds import (
    checkpoint_tells_how_far_queues_are_durable,
    full_index_files_are_synced,
    group_commit_flushes_all,
    next_file_is_there,
    nobody_waits_for_longer,
    queue_flush_takes_what_is_enough,
    round_after_a_set_back_is_thorough,
    round_answers_whom_it_covers,
    round_commits_what_is_enough,
    round_deletes_a_batch_at_most,
    round_leaves_what_is_little,
    service_is_there,
)
from crashmq.models.laws.run import (
    dispatch_reaches_what_is_confirmed,
    hindered_rounds_raise,
    rounds_count_right,
)
from crashmq.models.observations import Failed

CALM = (Fact.ALONE, Fact.DISK_WORKS)
ON_THE_MEDIUM = (*CALM, Fact.SYNCED_STAYS, Fact.WRITTEN_STAYS)
OF_FILTERS = (*CALM, Fact.WRITTEN_STAYS, Fact.UNTOUCHED, Fact.FILTERS)


def _is_sync(at: RoundTurned) -> bool:
    return at.known.setup.flush_mode == "SYNC_FLUSH"


def _has_thorough_rounds(at: RoundTurned) -> bool:
    """Whether the service takes little of the log in most rounds, and all in some."""
    is_flush = at.done.service == "flush_commit_log" and not _is_sync(at)
    return at.done.service == "commit" or is_flush


def _writes_filters(at: RoundTurned) -> bool:
    is_persist = at.done.service == "persist_consumer_filter"
    return is_persist and at.step.must_have_written(at.done.work)


@asked(
    what_is_stored_is_confirmed,
    on=PositionsSeen,
    needs=(Fact.STORES_AS_ROCKETMQ,),
    where=lambda at: at.now.confirm_offset >= 0 and not at.known.setup.duplicates,
)
def _ask_fl_13(at: PositionsSeen) -> Breaches:
    return what_is_stored_is_confirmed.judge(at.known.model.flush_mode, at.now)


@asked(
    what_is_stored_is_confirmed,
    on=PositionsSeen,
    needs=(
        *(Fact.STORES_AS_ROCKETMQ, Fact.IS_REPLICATED, Fact.WRITTEN_STAYS),
        *(Fact.UNDAMAGED_LOG, Fact.UNTOUCHED),
    ),
    where=lambda at: at.now.confirm_offset >= 0 and at.known.setup.duplicates,
)
def _ask_fl_13_of_replicas(at: PositionsSeen) -> Breaches:
    replicated, _ = at.known.rounds.replicated
    mode = at.known.model.flush_mode
    return what_is_stored_is_confirmed.judge(mode, at.now, replicated)


def _is_flush(at: RoundCounted) -> bool:
    return at.done.service.startswith("flush_")


@asked(
    rounds_count_right,
    on=RoundCounted,
    needs=(
        *(*ON_THE_MEDIUM, Fact.DISK_WORKED, Fact.READABLE, Fact.LOSES_POWER),
        *(Fact.UNTOUCHED, Fact.UNDAMAGED_LOG, Fact.NOTHING_RAISED, Fact.STEPS_IN),
    ),
    where=_is_flush,
)
def _ask_run_10_of_flushes(at: RoundCounted) -> Breaches:
    return rounds_count_right.judge(at.done.service, at.done.work, at.least, at.most)


@asked(
    rounds_count_right,
    on=RoundCounted,
    needs=(*CALM, Fact.LOSES_POWER, Fact.NOTHING_RAISED, Fact.STEPS_IN),
    where=lambda at: not _is_flush(at),
)
def _ask_run_10(at: RoundCounted) -> Breaches:
    return rounds_count_right.judge(at.done.service, at.done.work, at.least, at.most)


@asked(hindered_rounds_raise, on=RoundHindered)
def _ask_run_11(at: RoundHindered) -> Breaches:
    # A round of the host in a pause of this one says so by the op's own end.
    seen = at.step.seen
    of_host = [seen] if isinstance(seen, Failed) else []
    return hindered_rounds_raise.judge(at.service, at.calls, at.step.raised or of_host)


def _failed_to_flush(at: RoundHindered) -> bool:
    """Whether a sync of the log failed in a round that syncs one of its files."""
    is_flush = at.service == "flush_commit_log" and at.stood is not None
    failed = [path for call, path in at.calls if call == "sync"]
    is_of_log = any(path.startswith("commitlog") for path in failed)
    return is_flush and is_of_log and at.now.flushed_where >= 0


@asked(failed_flush_moves_nothing, on=RoundHindered, where=_failed_to_flush)
def _ask_fl_14(at: RoundHindered) -> Breaches:
    assert at.stood is not None
    return failed_flush_moves_nothing.judge(at.stood, at.now)


@asked(
    files_are_named_by_their_time,
    on=IndexFilesMade,
    needs=(Fact.DISK_WORKED, Fact.DISK_WORKS, Fact.UNTOUCHED),
)
def _ask_ix_13(at: IndexFilesMade) -> Breaches:
    return files_are_named_by_their_time.judge(at.names, at.newest, at.between)


@asked(
    round_answers_whom_it_covers,
    on=PutsWaited,
    needs=(Fact.LIVES, Fact.NOT_STOPPING, Fact.DISK_WORKS),
)
def _ask_svc_1(at: PutsWaited) -> Breaches:
    return round_answers_whom_it_covers.judge(at.left)


@asked(
    nobody_waits_for_longer,
    on=PutsWaited,
    needs=(Fact.LIVES, Fact.NOT_STOPPING),
    where=lambda at: not at.step.sets_back,
)
def _ask_put_9(at: PutsWaited) -> Breaches:
    worked = at.known.works(LOG) and not at.step.fails_calls
    gave_up = at.gave_up if worked and not at.step.raised else ()
    return nobody_waits_for_longer.judge(at.waits, gave_up)


@asked(
    round_leaves_what_is_little,
    on=RoundTurned,
    needs=CALM,
    where=lambda at: at.takes_all is False and _has_thorough_rounds(at),
)
def _ask_svc_2(at: RoundTurned) -> Breaches:
    return round_leaves_what_is_little.judge(at.done, at.known.setup)


@asked(
    round_commits_what_is_enough,
    on=RoundTurned,
    needs=(*CALM, Fact.LOG_WORKED),
    where=lambda at: (
        at.done.service == "commit" and at.done.before.committed_where >= 0
    ),
)
def _ask_svc_3(at: RoundTurned) -> Breaches:
    return round_commits_what_is_enough.judge(at.done, at.known.setup)


@asked(
    round_after_a_set_back_is_thorough,
    on=RoundTurned,
    needs=(*CALM, Fact.LOG_WORKED),
    where=lambda at: at.is_set_back and _has_thorough_rounds(at),
)
def _ask_svc_11(at: RoundTurned) -> Breaches:
    return round_after_a_set_back_is_thorough.judge(at.done, at.known.setup)


@asked(
    group_commit_flushes_all,
    on=RoundTurned,
    needs=(*CALM, Fact.LOG_WORKED),
    where=lambda at: at.done.service == "flush_commit_log" and _is_sync(at),
)
def _ask_svc_4(at: RoundTurned) -> Breaches:
    return group_commit_flushes_all.judge(at.done, at.known.setup)


@asked(
    queue_flush_takes_what_is_enough,
    on=RoundTurned,
    needs=(*ON_THE_MEDIUM, Fact.QUEUES_WORKED, Fact.LOSES_POWER, Fact.UNTOUCHED),
    where=lambda at: at.takes_all is False and at.done.unsynced is not None,
)
def _ask_svc_5(at: RoundTurned) -> Breaches:
    unsynced = at.look.unsynced_from()
    return queue_flush_takes_what_is_enough.judge(
        at.done, at.look.image(), at.known.setup, unsynced
    )


@asked(
    full_index_files_are_synced,
    on=RoundTurned,
    needs=(
        *ON_THE_MEDIUM,
        Fact.DISK_WORKED,
        Fact.LOSES_POWER,
        Fact.UNTOUCHED,
        Fact.ABORT_IS_OURS,
    ),
    where=lambda at: at.done.service == "flush_index",
)
def _ask_svc_6(at: RoundTurned) -> Breaches:
    flushed_where, unsynced = at.done.before.flushed_where, at.look.unsynced_from()
    return full_index_files_are_synced.judge(
        flushed_where, at.look.image(), at.known.setup, unsynced
    )


@asked(
    next_file_is_there,
    on=RoundTurned,
    needs=(*CALM, Fact.LOG_WORKED),
    where=lambda at: at.done.service == "allocate" and at.begun_at >= 0,
)
def _ask_svc_7(at: RoundTurned) -> Breaches:
    before, files = at.done.before, at.look.files()
    return next_file_is_there.judge(before, at.begun_at, at.known.setup, files)


@asked(service_is_there, on=ServiceAsked)
def _ask_svc_10(at: ServiceAsked) -> Breaches:
    return service_is_there.judge(at.service, at.known.setup, is_there=at.is_there)


@asked(
    checkpoint_tells_how_far_queues_are_durable,
    on=RoundTurned,
    needs=(*CALM, Fact.WRITTEN_STAYS, Fact.READABLE, Fact.DISK_WORKED),
    where=lambda at: at.done.service == "checkpoint",
)
def _ask_svc_8(at: RoundTurned) -> Breaches:
    flushed_where = at.done.before.flushed_where
    return checkpoint_tells_how_far_queues_are_durable.judge(
        at.look.image(), flushed_where, at.durable_until
    )


@asked(
    filters_are_written_as_they_are,
    on=RoundTurned,
    needs=OF_FILTERS,
    where=_writes_filters,
)
def _ask_svc_9(at: RoundTurned) -> Breaches:
    now = at.known.progress.filters.registered
    return filters_are_written_as_they_are.judge(at.look.files(), now)


@asked(
    filters_of_the_gone_are_forgotten,
    on=RoundTurned,
    needs=OF_FILTERS,
    where=_writes_filters,
)
def _ask_flt_8(at: RoundTurned) -> Breaches:
    filters = at.known.progress.filters
    return filters_of_the_gone_are_forgotten.judge(
        at.look.files(), filters.gone_ms, at.step.world.now_ms
    )


@asked(
    times_reach_what_is_durable,
    on=RoundTurned,
    needs=(
        *(*CALM, Fact.WRITTEN_STAYS, Fact.READABLE, Fact.DISK_WORKED),
        *(Fact.UNDAMAGED_LOG, Fact.UNTOUCHED),
    ),
    where=lambda at: at.done.service == "checkpoint",
)
def _ask_cp_13(at: RoundTurned) -> Breaches:
    setup, image = at.known.setup, at.look.image()
    index = image.index(setup.index_slots) if setup.has_index else None
    until = DurableUntil(at.done.before.flushed_where, at.durable_until, at.index_until)
    return times_reach_what_is_durable.judge(image, index, until)


@asked(
    round_deletes_a_batch_at_most,
    on=RoundTurned,
    needs=(Fact.UNDAMAGED_LOG,),
    where=lambda at: at.done.service == "clean_commit_log",
)
def _ask_del_14(at: RoundTurned) -> Breaches:
    setup, is_alone = at.known.setup, at.step.is_alone
    return round_deletes_a_batch_at_most.judge(at.done, setup, is_alone=is_alone)


@asked(
    dispatch_reaches_what_is_confirmed,
    on=RoundTurned,
    needs=(
        Fact.LIVES,
        Fact.NOT_STOPPING,
        Fact.LOG_WORKED,
        Fact.QUEUES_WORKED,
        Fact.DISK_WORKS,
        Fact.READABLE,
        Fact.WRITTEN_STAYS,
        Fact.UNDAMAGED_LOG,
    ),
    where=lambda at: (
        at.done.service == "reput"
        and not at.step.is_alone
        and not at.known.setup.duplicates
    ),
)
def _ask_run_8(at: RoundTurned) -> Breaches:
    done = at.done
    return dispatch_reaches_what_is_confirmed.judge(
        done.after, done.before.confirm_offset
    )
