"""Judging what the medium holds of a store that runs, without taking the power away."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from harness.interpreter import Report
from harness.judging.deletion import runs
from harness.judging.promises import Promises
from harness.judging.terms import LookedAt
from models.image.checkpoint import CheckpointImage
from models.invariants.checkpoint import checkpoint_is_on_the_medium
from models.invariants.marks import flushed_is_on_the_medium
from models.invariants.medium import (
    names_are_durable_in_order,
    room_is_durable,
    start_leaves_nothing_to_lose,
    what_the_checkpoint_tells_of_is_on_the_medium,
)
from models.invariants.recovery import what_went_is_gone
from models.observations import Positions, Ran, Started
from models.ops import Event, RunService
from models.store_image import StoreImage


def judge_medium(
    checks: dict[str, int],
    op: Event,
    report: Report,
    promises: Promises,
    around: tuple[Positions | None, Positions],
    subject: LookedAt,
    image: Callable[[], StoreImage],
    known: CheckpointImage | None,
) -> CheckpointImage | None:
    """Judge a step whose disk keeps what it says, where anything was made durable.

    Args:
        checks: how often each law was asked.
        op: what was done.
        report: what came of it.
        promises: what the disk keeps.
        around: where the log stood before the step, None if nobody knows or if the
            disk has failed since, and where it stands now.
        subject: the store.
        image: reads the files.
        known: the checkpoint that no crash may take back.

    Returns:
        The same from here on. Its times stay, for they tell of records that a power
        loss may take from the log, and a start lowers them.
    """
    before, now = around
    if not promises.keeps_what_is_synced or now.max_phy_offset < 0:
        return known
    unsynced = cache(subject.unsynced_from)
    is_checkpoint = isinstance(op, RunService) and op.service == "checkpoint"
    has_run = is_checkpoint and isinstance(report.observation, Ran)
    if has_run and not promises.reverts:
        checkpoint_is_on_the_medium.hold(checks, unsynced())
        known = known and known._replace(mark=image().checkpoint.mark)
        if not report.fault_armed:
            what_the_checkpoint_tells_of_is_on_the_medium.hold(
                checks, unsynced(), image()
            )
    if report.fault_armed or (before is None and not report.starts):
        return known
    half_made = subject.half_made()
    room_is_durable.hold(checks, half_made)
    if half_made.names:
        names_are_durable_in_order.hold(checks, half_made, image().files)
    has_flushed = before is None or before.flushed_where < now.flushed_where
    cleans = runs(op, "clean_commit_log") or runs(op, "clean_consume_queue")
    removes = bool(report.starts or report.deletions or cleans)
    if not (has_flushed or removes):
        return known
    flushed_is_on_the_medium.hold(checks, now.flushed_where, unsynced())
    start = report.starts[-1] if report.starts else None
    if isinstance(start, Started) and not report.interrupted:
        start_leaves_nothing_to_lose.hold(
            checks,
            unsynced(),
            report.found[-1],
            subject.files() if unsynced() else {},
            ended=start.last_exit_ok,
            damaged=bool(start.damaged),
        )
    if removes and not report.failures:
        what_went_is_gone.hold(checks, unsynced())
    return known
