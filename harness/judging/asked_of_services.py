"""When the laws of services, and of what they have made durable, are asked."""

from __future__ import annotations

from typing import cast

from crashmq.harness.judging.asking import Breaches, asked
from crashmq.models.knowledge.expiry import CLEANERS
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.moments import (
    CleanerOver,
    MediumSeen,
    RoundDue,
    RoundOver,
)
from crashmq.models.laws.checkpoint import (
    checkpoint_is_on_the_medium,
    flushed_time_is_in_the_log,
    round_marks_what_is_flushed,
)
from crashmq.models.laws.deletion import (
    expired_queue_files_go,
    expired_side_files_go,
    what_has_expired_goes,
)
from crashmq.models.laws.marks import (
    flushed_is_on_the_medium,
    round_flushes_what_is_enough,
    what_waited_is_committed,
    what_waited_is_flushed,
)
from crashmq.models.laws.medium import (
    names_are_durable_in_order,
    room_is_durable,
    start_leaves_nothing_to_lose,
    waiting_units_are_on_the_medium,
    what_the_checkpoint_tells_of_is_on_the_medium,
)
from crashmq.models.laws.recovery import what_went_is_gone
from crashmq.models.laws.run import (
    dispatch_reaches_what_is_confirmed,
    rounds_tell_what_they_did,
)
from crashmq.models.observations import Ran, Started
from crashmq.models.ops import RunService, ServiceName


def _may_have_gaps(at: RoundOver) -> bool:
    return at.known.setup.on_damage == "serve" or at.known.is_degraded


def _tells_only_of_its_mark(at: RoundOver) -> bool:
    """Whether the work is not also the puts that a group commit has answered."""
    is_sync = at.known.setup.flush_mode == "SYNC_FLUSH"
    return not (is_sync and at.service == "flush_commit_log" and at.work > 0)


@asked(
    rounds_tell_what_they_did,
    on=RoundOver,
    where=_tells_only_of_its_mark,
    needs=(Fact.KNEW_POSITIONS, Fact.ALONE),
)
def _ask_run_3(at: RoundOver) -> Breaches:
    stood = at.known.positions
    assert stood is not None
    return rounds_tell_what_they_did.judge(
        cast(ServiceName, at.service),
        at.work,
        stood,
        at.now,
        at.known.setup.log_file_size,
        may_have_gaps=_may_have_gaps(at),
    )


def _is_checkpoint(at: RoundOver) -> bool:
    return at.service == "checkpoint"


# Nobody has a sum of bytes that nobody can read.
CHECKPOINT_ROUND = (Fact.WRITTEN_STAYS, Fact.READABLE)


@asked(
    round_marks_what_is_flushed,
    on=RoundOver,
    needs=CHECKPOINT_ROUND,
    where=_is_checkpoint,
)
def _ask_cp_9(at: RoundOver) -> Breaches:
    flushed = at.now.flushed_where
    return round_marks_what_is_flushed.judge(at.look.image(), flushed)


@asked(
    flushed_time_is_in_the_log,
    on=RoundOver,
    needs=(*CHECKPOINT_ROUND, Fact.LOG_WORKED, Fact.KNEW_POSITIONS),
    where=lambda at: _is_checkpoint(at) and not _may_have_gaps(at),
)
def _ask_cp_2(at: RoundOver) -> Breaches:
    judged = at.known.judged(at.look.image(), None, clean=True)
    return flushed_time_is_in_the_log.judge(judged)


@asked(
    round_flushes_what_is_enough,
    on=RoundOver,
    needs=(Fact.LOG_WORKED, Fact.KNEW_POSITIONS),
    where=lambda at: at.service == "flush_commit_log",
)
def _ask_fl_8(at: RoundOver) -> Breaches:
    stood = at.known.positions
    assert stood is not None
    return round_flushes_what_is_enough.judge(stood, at.now, at.known.setup)


@asked(
    dispatch_reaches_what_is_confirmed,
    on=RoundOver,
    needs=(
        Fact.ALONE,
        Fact.LIVES,
        Fact.LOG_WORKED,
        Fact.DISK_WORKS,
        Fact.READABLE,
        Fact.WRITTEN_STAYS,
        Fact.UNDAMAGED_LOG,
    ),
    where=lambda at: at.service == "reput" and at.now.confirm_offset >= 0,
)
def _ask_run_8(at: RoundOver) -> Breaches:
    until = at.now.confirm_offset
    if at.known.setup.duplicates:
        ends = [one.end for one in at.known.model.messages if one.end <= until]
        until = ends[-1] if ends else 0
    return dispatch_reaches_what_is_confirmed.judge(at.now, until)


def _after_checkpoint(at: MediumSeen) -> bool:
    op = at.step.op
    is_checkpoint = isinstance(op, RunService) and op.service == "checkpoint"
    return is_checkpoint and isinstance(at.step.seen, Ran)


@asked(
    checkpoint_is_on_the_medium,
    on=MediumSeen,
    needs=(Fact.WRITTEN_STAYS,),
    where=_after_checkpoint,
)
def _ask_cp_11(at: MediumSeen) -> Breaches:
    return checkpoint_is_on_the_medium.judge(at.unsynced)


@asked(
    what_the_checkpoint_tells_of_is_on_the_medium,
    on=MediumSeen,
    needs=(Fact.WRITTEN_STAYS, Fact.DISK_WORKS),
    where=_after_checkpoint,
)
def _ask_cp_12(at: MediumSeen) -> Breaches:
    return what_the_checkpoint_tells_of_is_on_the_medium.judge(
        at.unsynced, at.look.image()
    )


WELL_MADE = (Fact.DISK_WORKS, Fact.LIFE_IS_KNOWN)


@asked(room_is_durable, on=MediumSeen, needs=WELL_MADE)
def _ask_dur_2(at: MediumSeen) -> Breaches:
    return room_is_durable.judge(at.half_made)


@asked(
    names_are_durable_in_order,
    on=MediumSeen,
    needs=WELL_MADE,
    where=lambda at: bool(at.half_made.names),
)
def _ask_dur_1(at: MediumSeen) -> Breaches:
    half_made = at.half_made
    return names_are_durable_in_order.judge(half_made, at.look.image().files)


def _removes(at: MediumSeen) -> bool:
    step = at.step
    return bool(step.starts or step.deletions) or not CLEANERS.isdisjoint(step.services)


def _has_flushed(at: MediumSeen) -> bool:
    stood = at.known.positions
    return stood is None or stood.flushed_where < at.now.flushed_where


@asked(
    flushed_is_on_the_medium,
    on=MediumSeen,
    # Also where calls fail: what one has kept from being durable is not flushed.
    where=lambda at: _has_flushed(at) or _removes(at),
)
def _ask_fl_9(at: MediumSeen) -> Breaches:
    unsynced = at.unsynced
    return flushed_is_on_the_medium.judge(at.now.flushed_where, unsynced)


@asked(
    start_leaves_nothing_to_lose,
    on=MediumSeen,
    needs=(*WELL_MADE, Fact.ALONE),
    where=lambda at: (
        bool(at.step.starts) and isinstance(at.step.starts[-1].seen, Started)
    ),
)
def _ask_rec_18(at: MediumSeen) -> Breaches:
    start, unsynced = at.step.starts[-1], at.unsynced
    assert isinstance(start.seen, Started)
    return start_leaves_nothing_to_lose.judge(
        unsynced,
        start.found,
        at.look.all_files() if unsynced else {},
        at.half_made.names,
        ended=start.seen.last_exit_ok,
        damaged=bool(start.seen.damaged),
    )


@asked(
    what_went_is_gone,
    on=MediumSeen,
    needs=(*WELL_MADE, Fact.NOTHING_RAISED),
    where=_removes,
)
def _ask_rec_16(at: MediumSeen) -> Breaches:
    return what_went_is_gone.judge(at.unsynced)


# With somebody beside a cleaner nobody can say what it met.
WELL_CLEANED = (Fact.ALONE, Fact.DISK_WORKED)


def _has_left_what_is_due(at: CleanerOver) -> bool:
    """Whether the newest round was due, and could have deleted more files."""
    if at.service != "clean_commit_log" or not at.step.turned:
        return False
    done = at.step.turned[-1][1]
    expiry, rounds = at.known.expiry, len(at.step.turned)
    had_more = done.work < at.known.setup.delete_batch
    is_due = had_more and expiry.is_due(at.step.world, rounds)
    return is_due and bool(at.look.image().commit_log.files)


@asked(
    what_has_expired_goes,
    on=CleanerOver,
    # The log's files stay as long as their queues' units may not be durable.
    needs=(Fact.ALONE, Fact.LOG_WORKED, Fact.QUEUES_WORKED),
    where=_has_left_what_is_due,
)
def _ask_del_4(at: CleanerOver) -> Breaches:
    log, step = at.look.image().commit_log, at.step
    # Time went on, and others had rounds, while it paused between two files.
    expiry, done = at.known.expiry, step.turned[-1][1]
    old_ms = expiry.old_ms(step.world._replace(now_ms=done.began_ms))
    first_ms, is_forced = step.first_mtime_ms, expiry.must_force(step.world)
    return what_has_expired_goes.judge(
        log, done.before, first_ms, None if is_forced else old_ms
    )


def _of_queues(at: CleanerOver) -> bool:
    return at.service == "clean_consume_queue"


@asked(expired_queue_files_go, on=CleanerOver, needs=WELL_CLEANED, where=_of_queues)
def _ask_del_5(at: CleanerOver) -> Breaches:
    return expired_queue_files_go.judge(at.look.image())


@asked(expired_side_files_go, on=CleanerOver, needs=WELL_CLEANED, where=_of_queues)
def _ask_del_11(at: CleanerOver) -> Breaches:
    slots = at.known.setup.index_slots
    return expired_side_files_go.judge(at.look.image(), slots)


@asked(
    what_waited_is_flushed,
    on=RoundDue,
    where=lambda at: at.service == "flush_commit_log",
)
def _ask_fl_10(at: RoundDue) -> Breaches:
    return what_waited_is_flushed.judge(at.now.flushed_where, at.waits.until)


@asked(what_waited_is_committed, on=RoundDue, where=lambda at: at.service == "commit")
def _ask_fl_11(at: RoundDue) -> Breaches:
    return what_waited_is_committed.judge(at.now.committed_where, at.waits.until)


@asked(
    waiting_units_are_on_the_medium,
    on=RoundDue,
    where=lambda at: at.service == "flush_consume_queue",
)
def _ask_fl_12(at: RoundDue) -> Breaches:
    unsynced, image = at.look.unsynced_from(), at.look.image()
    return waiting_units_are_on_the_medium.judge(unsynced, image, at.waits.until)
