"""When the laws of a run are asked: files at rest, positions, stop, end."""

from __future__ import annotations

from dataclasses import replace

from crashmq.harness.judging.asking import (
    Breaches,
    Checks,
    asked,
    asked_together,
    hold_all,
    hold_files,
)
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import (
    AfterFailedFlush,
    CaughtUp,
    FilesAtRest,
    LogShortened,
    PositionsSeen,
    StepOver,
    StopOver,
    TopicGone,
    TopicsGone,
)
from crashmq.models.laws.checkpoint import checkpoint_is_up_to_date
from crashmq.models.laws.deletion import only_what_has_expired_goes
from crashmq.models.laws.file_laws import DISPATCH_LAWS, FILE_LAWS
from crashmq.models.laws.marks import (
    dispatched_is_confirmed,
    dispatched_is_flushed,
    marks_are_in_order,
    marks_lie_in_the_log,
    marks_only_rise,
)
from crashmq.models.laws.recovery import (
    foreign_files_stay,
    no_orderly_end_after_a_failed_flush,
    orderly_end_is_durable,
    services_have_caught_up,
)
from crashmq.models.laws.run import (
    buffers_come_back,
    nothing_is_done_late,
    nothing_is_held,
    stop_gives_dispatch_its_time,
    stop_is_orderly,
    who_waits_is_told_the_end,
)
from crashmq.models.laws.topic_deletion import (
    nothing_is_left_of_the_deleted,
    what_is_retained_stays,
)


@asked(
    stop_gives_dispatch_its_time,
    on=StopOver,
    needs=(
        Fact.STORES_AS_ROCKETMQ,
        Fact.TELLS_POSITIONS,
        Fact.HAS_CLOCK,
        Fact.ABORT_IS_OURS,
        Fact.KNEW_POSITIONS,
        Fact.DISK_WORKED,
        Fact.DISK_WORKS,
        Fact.READABLE,
        Fact.NO_OTHER_OP,
    ),
    where=lambda at: not at.known.setup.disk_capacity,
)
def _ask_run_6(at: StopOver) -> Breaches:
    stood = at.known.positions
    assert stood is not None
    return stop_gives_dispatch_its_time.judge(at.stop, stood, at.step.stop_took_ms)


@asked(
    stop_is_orderly,
    on=StopOver,
    needs=(
        Fact.STORES_AS_ROCKETMQ,
        Fact.TELLS_POSITIONS,
        Fact.ABORT_IS_OURS,
        Fact.KNEW_POSITIONS,
        Fact.DISK_WORKED,
        Fact.DISK_WORKS,
        Fact.HAD_ROOM,
        Fact.READABLE,
        Fact.NO_OTHER_OP,
    ),
)
def _ask_run_9(at: StopOver) -> Breaches:
    stood = at.known.positions
    assert stood is not None
    return stop_is_orderly.judge(at.stop, stood)


@asked(
    orderly_end_is_durable,
    on=StopOver,
    needs=(Fact.LOSES_POWER, Fact.ABORT_IS_OURS, Fact.SYNCED_STAYS),
    # The stop may have been looked at before clean pages left memory, and with them
    # what the medium did not hold.
    where=lambda at: at.step.is_alone or not at.known.promises.reverts,
)
def _ask_rec_10(at: StopOver) -> Breaches:
    stop = at.stop
    if at.known.disk_failed or at.step.fails_calls:
        # A broker's table that could not be written is the older one for a start.
        left = [path for path in stop.unsynced if not path.startswith("config/")]
        stop = replace(stop, unsynced=tuple(left))
    return orderly_end_is_durable.judge(stop)


@asked(
    nothing_is_held,
    on=StopOver,
    needs=(Fact.TELLS_WHAT_IT_HOLDS, Fact.NO_OTHER_OP),
)
def _ask_run_2_at_stop_over(at: StopOver) -> Breaches:
    return nothing_is_held.judge(at.stop)


@asked(nothing_is_done_late, on=StopOver, needs=(Fact.TELLS_WHAT_IT_HOLDS,))
def _ask_run_7(at: StopOver) -> Breaches:
    return nothing_is_done_late.judge(at.step.late_actions)


def _others_waited(at: StopOver) -> bool:
    step = at.step
    return bool(step.ends_awaited) and len(step.stops) == 1 and not step.starts


@asked(
    who_waits_is_told_the_end,
    on=StopOver,
    needs=(Fact.RUNS_SEVERAL,),
    where=_others_waited,
)
def _ask_run_5(at: StopOver) -> Breaches:
    told = [awaited.clean for awaited in at.step.ends_awaited]
    return who_waits_is_told_the_end.judge(told, at.stop)


# What only memory held is gone after some failures, until a start has mended it.
READABLE_FILES = (Fact.WRITTEN_STAYS, Fact.UNDAMAGED_LOG)


@asked_together(FILE_LAWS, on=FilesAtRest, needs=READABLE_FILES)
def _ask_file_laws_at_files_at_rest(at: FilesAtRest, checks: Checks) -> None:
    hold_files(checks, at.known, at.image, at.reput_from_offset)


@asked_together(
    DISPATCH_LAWS,
    on=FilesAtRest,
    needs=READABLE_FILES,
    where=lambda at: at.dispatched and at.known.disk_failed,
)
def _ask_dispatch_laws(at: FilesAtRest, checks: Checks) -> None:
    judged = at.known.judged(at.image, at.reput_from_offset, clean=True)
    hold_all(checks, "dispatch", DISPATCH_LAWS, judged)


@asked(what_is_retained_stays, on=TopicsGone)
def _ask_del_15(at: TopicsGone) -> Breaches:
    deleted = [topic for topic, _ in at.cleaned.rows]
    retained = at.op.retained.split(",")
    return what_is_retained_stays.judge(retained, deleted, at.cleaned.count)


@asked(nothing_is_left_of_the_deleted, on=TopicGone)
def _ask_del_13(at: TopicGone) -> Breaches:
    files = at.look.files()
    if not at.known.setup.has_queue_ext:  # then nobody knows what is planted there
        kept = [path for path in files if not path.startswith("consumequeue_ext/")]
        files = {path: files[path] for path in kept}
    return nothing_is_left_of_the_deleted.judge(files, at.topic, at.queue_id)


@asked(only_what_has_expired_goes, on=LogShortened)
def _ask_del_3(at: LogShortened) -> Breaches:
    step, expiry, model = at.step, at.known.expiry, at.known.model
    return only_what_has_expired_goes.judge(
        at.now,
        model.stored_between(model.log_min, at.now.min_phy_offset),
        expiry.may_go_until(step.op, step.world, step.set_back_ms),
        is_cleaning="clean_commit_log" in step.services,
        is_due=expiry.may_be_due(step.op, step.world),
    )


@asked(marks_lie_in_the_log, on=PositionsSeen)
def _ask_fl_1(at: PositionsSeen) -> Breaches:
    return marks_lie_in_the_log.judge(at.now)


@asked(dispatched_is_flushed, on=PositionsSeen, needs=(Fact.STORES_AS_ROCKETMQ,))
def _ask_fl_3(at: PositionsSeen) -> Breaches:
    return dispatched_is_flushed.judge(at.known.model.flush_mode, at.now)


@asked(
    marks_only_rise,
    on=PositionsSeen,
    needs=(Fact.KNEW_POSITIONS,),
    where=lambda at: not at.step.starts,
)
def _ask_fl_4(at: PositionsSeen) -> Breaches:
    assert at.known.positions is not None
    return marks_only_rise.judge(at.known.positions, at.now)


def _says_what_is_committed(at: PositionsSeen) -> bool:
    return at.now.committed_where >= 0


@asked(
    marks_are_in_order,
    on=PositionsSeen,
    needs=(Fact.STORES_AS_ROCKETMQ,),
    where=_says_what_is_committed,
)
def _ask_fl_5(at: PositionsSeen) -> Breaches:
    return marks_are_in_order.judge(at.now)


@asked(
    dispatched_is_confirmed,
    on=PositionsSeen,
    needs=(Fact.STORES_AS_ROCKETMQ,),
    where=_says_what_is_committed,
)
def _ask_fl_6(at: PositionsSeen) -> Breaches:
    return dispatched_is_confirmed.judge(at.known.model.flush_mode, at.now)


@asked(
    buffers_come_back,
    on=PositionsSeen,
    needs=(Fact.STORES_AS_ROCKETMQ,),
    where=lambda at: at.now.free_buffers >= 0,
)
def _ask_res_2(at: PositionsSeen) -> Breaches:
    setup = at.known.setup
    log_files = [
        int(path.partition("/")[2])
        for path in at.look.files()
        if path.startswith("commitlog/")
    ]
    buffers, file_size = setup.transient_store_buffers, setup.log_file_size
    return buffers_come_back.judge(at.now, buffers, log_files, file_size)


@asked(
    no_orderly_end_after_a_failed_flush,
    on=AfterFailedFlush,
    where=lambda at: bool(at.step.stops),
)
def _ask_rec_19(at: AfterFailedFlush) -> Breaches:
    failed = ", ".join(sorted(at.failed))
    return no_orderly_end_after_a_failed_flush.judge(at.step.stops[0], failed)


@asked(
    foreign_files_stay,
    on=StepOver,
    needs=(Fact.LIVES,),
)
def _ask_rec_14(at: StepOver) -> Breaches:
    return foreign_files_stay.judge(at.known.tampering.must_stay, at.look.all_files())


@asked(services_have_caught_up, on=CaughtUp)
def _ask_rec_3(at: CaughtUp) -> Breaches:
    return services_have_caught_up.judge(at.now, at.busy)


@asked(
    checkpoint_is_up_to_date,
    on=CaughtUp,
    needs=(Fact.DISK_WORKED, Fact.UNDAMAGED_LOG),
)
def _ask_cp_6_at_caught_up(at: CaughtUp) -> Breaches:
    return checkpoint_is_up_to_date.judge(at.look.image())
