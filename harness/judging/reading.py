"""Judging all that a step read: pulls, queries, looks and searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harness.interpreter import Report
from harness.judging.around import judge_around
from harness.judging.lookups import judge_lookups, judge_pulls_together
from harness.judging.pulls import judge_pull
from harness.judging.queries import judge_queries
from harness.judging.topics import is_amid_a_deletion
from models.invariants.around import Spoilt
from models.observations import Positions
from models.program import Setup
from models.reference import QueueKey, ReferenceModel, VisibleQueue
from models.store_image import StoreImage


class Reading(NamedTuple):
    """What a step that read is judged by.

    Attributes:
        image: the files after it.
        before: what could be read of the queues before it, where that matters.
        positions: where the log stands; None if nobody knows.
        is_unsettled: whether a queue may be dispatched in part.
        spoilt: what it serves around, if it does.
        reverts: what only memory held is gone.
        dispatch_failed: a record may be half dispatched, since the disk failed.
    """

    image: Callable[[], StoreImage]
    before: dict[QueueKey, VisibleQueue]
    positions: Positions | None
    is_unsettled: Callable[[QueueKey], bool]
    epoch_ms: int
    spoilt: Spoilt
    reverts: bool
    dispatch_failed: bool


def judge_reads(
    checks: dict[str, int],
    setup: Setup,
    model: ReferenceModel,
    report: Report,
    known: Reading,
) -> None:
    """Judge whatever was read of the store in one step.

    Raises:
        InvariantViolated: the law that was broken first.
        InvariantUnknown: a law failed itself.
    """
    if known.reverts:
        return
    may_fail = known.dispatch_failed or setup.disk_capacity > 0
    if known.spoilt.is_on:
        judge_around(
            *(checks, report, model, known.spoilt, known.image),
            epoch_ms=known.epoch_ms,
            dispatch_failed=may_fail,
        )
        return
    confirmed, end = -1, model.end
    if known.positions is not None:
        confirmed, end = known.positions.confirm_offset, known.positions.max_phy_offset
    for pull, pulled in report.pulls:
        if is_amid_a_deletion(report, pull.topic):
            continue
        key = (pull.topic, pull.queue_id)
        exactly = not report.interrupted and not known.is_unsettled(key)
        gone = model.may_expire if report.interrupted else 0
        said = setup if exactly else None
        judge_pull(checks, model, pull, pulled, confirmed, said, gone, end)
    if report.queries:
        judge_queries(
            checks,
            report,
            known.image(),
            model,
            epoch_ms=known.epoch_ms,
            dispatch_failed=may_fail,
        )
    if (report.looks or report.searches) and not report.interrupted:
        judge_lookups(
            checks,
            report,
            known.image(),
            model,
            known.positions if setup.transient_store_pool else None,
            epoch_ms=known.epoch_ms,
            is_unsettled=known.is_unsettled,
        )
    judge_pulls_together(checks, report, model, setup, known.before, end)
