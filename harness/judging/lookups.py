"""Judging looks at single messages, and searches by time, against what may be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from harness.interpreter import Report
from models.appended import Appended
from models.invariants.reading import (
    looked_up_message_is_right,
    pull_sees_a_moment,
    searched_time_is_found,
    told_times_are_right,
)
from models.observations import Positions
from models.program import Setup
from models.reference import QueueKey, ReferenceModel, VisibleQueue
from models.store_image import StoreImage

Seen: TypeAlias = dict[QueueKey, VisibleQueue]


def judge_looks(
    checks: dict[str, int], report: Report, messages: Sequence[Appended]
) -> None:
    """Judge every look of one step; ``messages`` are those that lie in the files."""
    for look, looked in report.looks:
        looked_up_message_is_right.hold(checks, looked, look.phy_offset, messages)


def judge_lookups(
    checks: dict[str, int],
    report: Report,
    image: StoreImage,
    model: ReferenceModel,
    committed: Positions | None,
    *,
    epoch_ms: int,
    is_unsettled: Callable[[QueueKey], bool],
) -> None:
    """Judge every look and search of one step.

    Args as of ``judge_searches``; ``committed``, of a store with write buffers, says
    how far they are committed, and with it what can be looked at.
    """
    messages = model.live_messages(model.log_min)
    if committed is not None:
        messages = [m for m in messages if m.end <= committed.committed_where]
    judge_looks(checks, report, messages)
    judge_searches(
        checks, report, image, model, epoch_ms=epoch_ms, is_unsettled=is_unsettled
    )


def judge_searches(
    checks: dict[str, int],
    report: Report,
    image: StoreImage,
    model: ReferenceModel,
    *,
    epoch_ms: int,
    is_unsettled: Callable[[QueueKey], bool],
) -> None:
    """Judge every search of one step.

    Args:
        checks: how often each law was judged.
        report: what came of the step.
        image: the files after it, whose records tell when they were stored.
        model: what the store must hold.
        epoch_ms: where the subject's clock began.
        is_unsettled: whether nobody can say how far a queue is dispatched.
    """
    for search, searched in report.searches:
        key = (search.topic, search.queue_id)
        if is_unsettled(key):
            continue
        records = image.commit_log.indexed_records.get(key, [])
        visible = model.visible(key)
        times = [r.store_timestamp for r in records[: len(visible.messages)]]
        first = visible.min_offset
        searched_time_is_found.hold(
            checks, searched, epoch_ms + search.at_ms, search.boundary, first, times
        )
        if not model.buffers_appends:
            all_records = image.commit_log.records
            earliest = all_records[0].store_timestamp if all_records else -1
            told_times_are_right.hold(checks, searched, first, times, earliest)


def seen_before(report: Report, model: ReferenceModel) -> Seen:
    """Of ops that ran at the same time, what each pull must find at least, by queue."""
    ends = report.crash is not None or report.is_stopping
    if not report.together or ends or report.fault_armed or report.deletions:
        return {}
    keys = {(pull.topic, pull.queue_id) for pull, _ in report.pulls}
    return {key: model.visible(key) for key in sorted(keys)}


def judge_pulls_together(
    checks: dict[str, int],
    report: Report,
    model: ReferenceModel,
    setup: Setup,
    before: Seen,
    log_end: int,
) -> None:
    """Judge the pulls of ops that ran at the same time, by what lay before and after.

    ``before`` is what could be read of each queue when they began; {}: nothing is
    known of it. ``log_end`` is where the log ends now, be it with a filler.
    """
    for pull, pulled in report.pulls if before else ():
        key = (pull.topic, pull.queue_id)
        pull_sees_a_moment.hold(
            checks,
            pulled,
            pull,
            before[key],
            model.visible(key),
            setup.queue_file_units,
            all_in_memory=log_end <= setup.in_memory_size,
        )


def is_half_dispatched(
    setup: Setup, model: ReferenceModel, key: QueueKey, *, failed: bool
) -> bool:
    """Whether a queue may have a message that another listing lacks yet.

    The index, or a light queue, where the disk failed between the two; or a queue
    whose deletion did not come to its end.
    """
    if model.is_unsettled(key):
        return True
    may_fail = failed or setup.disk_capacity > 0  # a full disk fails calls too
    if not (may_fail and (setup.has_index or setup.multi_dispatch)):
        return False
    queue = model.queues.get(key, [])
    return any(m.phy_offset == model.reput_from_offset for m in queue)
