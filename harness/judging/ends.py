"""Judging what came to its end: a service's round, a life of the store, a start."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.interpreter import Report
from harness.judging import damage
from harness.judging.promises import Promises
from harness.judging.terms import End, judged_of
from models.image.checkpoint import CheckpointImage
from models.invariants.checkpoint import (
    flushed_time_is_in_the_log,
    marks_never_move_backwards,
    round_marks_what_is_flushed,
)
from models.invariants.marks import round_flushes_what_is_enough
from models.invariants.recovery import (
    orderly_end_is_durable,
    same_store,
    second_start_changes_nothing,
    start_after_orderly_end_changes_nothing,
    start_knows_how_it_ended,
    start_reads_what_it_must,
)
from models.invariants.run import (
    nothing_is_done_late,
    nothing_is_held,
    nothing_unnamed_is_raised,
    rounds_tell_what_they_did,
    stop_gives_dispatch_its_time,
    who_waits_is_told_the_end,
)
from models.observations import Positions, Ran, Started, Stopped
from models.ops import Event, RunService
from models.program import Setup
from models.store_image import Bytes, StoreImage


def judge_round(
    checks: dict[str, int],
    setup: Setup,
    op: Event,
    report: Report,
    around: tuple[Positions | None, Positions],
    image: Callable[[], StoreImage] | None,
) -> None:
    """Judge rounds that ran alone, by where the log stood ``around`` them.

    Where it stood before is None if nobody knows, or if the disk has failed since;
    ``image`` is None if memory has lost what was written to the files.
    """
    if not (isinstance(op, RunService) and isinstance(report.observation, Ran)):
        return
    before, now = around
    gaps = setup.on_damage == "serve"
    if before is not None and not report.interrupted:
        work, size = report.observation.work, setup.log_file_size
        rounds_tell_what_they_did.hold(
            checks, op.service, work, before, now, size, may_have_gaps=gaps
        )
    if op.service == "checkpoint" and image and not report.is_unreadable:
        # Nobody has a sum of bytes that nobody can read.
        round_marks_what_is_flushed.hold(checks, image(), now.flushed_where)
        if before is not None and not gaps:
            judged = judged_of(setup, image(), None, clean=True, knows_bit_maps=True)
            flushed_time_is_in_the_log.hold(checks, judged)
    if op.service == "flush_commit_log" and before is not None:
        round_flushes_what_is_enough.hold(checks, before, now, setup)


def judge_raised(
    checks: dict[str, int], setup: Setup, report: Report, promises: Promises
) -> None:
    """Judge what a step raised, and what a start that raised or refused still holds."""
    may_raise = damage.may_raise(report, promises, setup)
    nothing_unnamed_is_raised.hold(
        checks, report.failures, may_raise, setup.disk_capacity > 0
    )
    if report.crash is None:
        ended = Stopped(clean=False, left_open=report.left_by_start)
        nothing_is_held.hold(checks, ended)


def judge_stop(
    checks: dict[str, int],
    setup: Setup,
    stop: Stopped,
    report: Report,
    promises: Promises,
    before: Positions | None,
) -> None:
    """Judge what a stop left, as far as the disk keeps what it says.

    ``before`` is where the log stood; None if nobody knows, or the disk has failed.
    """
    is_well = not (report.fault_armed or report.is_unreadable or setup.disk_capacity)
    if before is not None and is_well and not report.interrupted:
        stop_gives_dispatch_its_time.hold(checks, stop, before, report.stop_took_ms)
    # The stop may have been looked at before clean pages left memory, and with them
    # what the medium did not hold.
    is_early = report.interrupted and promises.reverts
    if promises.keeps_what_is_synced and not is_early:
        orderly_end_is_durable.hold(checks, stop)
    if not report.interrupted:
        nothing_is_held.hold(checks, stop)
    nothing_is_done_late.hold(checks, report.late_actions)
    if report.ends_awaited and len(report.stops) == 1 and not report.starts:
        told = [awaited.clean for awaited in report.ends_awaited]
        who_waits_is_told_the_end.hold(checks, told, stop)


def judge_next_start(
    checks: dict[str, int],
    setup: Setup,
    left: Mapping[str, Bytes] | None,
    found: StoreImage,
    now: Mapping[str, Bytes],
    *,
    ended: bool,
) -> None:
    """Judge a start that ran alone, on files that leave it nothing to mend.

    ``left`` is what the start before has left, ``found`` what this one has found, and
    ``now`` what it leaves; ``ended``: the life before came to an orderly end.
    """
    files = found.files
    if left is not None and same_store(left, files):
        second_start_changes_nothing.hold(checks, files, now)
    if ended:
        log_min = found.commit_log.min_phy_offset
        index = found.index(setup.index_slots).files if setup.has_index else ()
        expired = [p for p, file in index if file.header.end_phy_offset < log_min]
        start_after_orderly_end_changes_nothing.hold(checks, files, now, expired)


def takes_abort(report: Report, end: End) -> bool:
    """Whether damage makes a life look ended in order that was not.

    What that life left in the page cache no start can know of, then; nor does a
    recovery write again what it left of full index files.
    """
    taken = any(damage.path == "abort" for damage in report.damages)
    return taken and end is not End.ORDERLY


def judge_start(
    checks: dict[str, int],
    setup: Setup,
    start: Started,
    end: End,
    found: StoreImage,
    checkpoint: CheckpointImage,
) -> None:
    """Judge a start on files that nobody damaged.

    ``end`` is how the life before ended, ``checkpoint`` what the start made of it.
    """
    start_reads_what_it_must.hold(checks, found, start.log_bytes_read, setup)
    if end is not End.UNKNOWN:
        start_knows_how_it_ended.hold(checks, start, ended=end is End.ORDERLY)
    if start.last_exit_ok and found.has_checkpoint:
        marks_never_move_backwards.hold(checks, found.checkpoint, checkpoint)
