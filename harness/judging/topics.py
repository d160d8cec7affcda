"""Judging deletions of topics and queues: what goes, and what a start remembers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TypeAlias

from harness.interpreter import Report
from models.image.deleted import ALL_QUEUES, DeletedImage
from models.invariants import topic_deletion
from models.observations import Deleted, Observation, Positions
from models.ops import DeleteTopic, Event
from models.reference import QueueKey, ReferenceModel

Deletions: TypeAlias = Sequence[tuple[DeleteTopic, Observation | None]]

_ANYWHERE = 1 << 62


def deletions_around_the_start(report: Report) -> tuple[Deletions, Deletions]:
    """Those of the life that ended, or of the only one, and those of the new one."""
    if report.crash is not None or report.started_end < 0:
        return report.deletions, []
    count = report.deletions_before_start
    return report.deletions[:count], report.deletions[count:]


def judge_left_overs(
    checks: dict[str, int],
    op: Event,
    report: Report,
    files: Callable[[], Iterable[str]],
) -> None:
    """Judge what a deletion that ran alone has left of the queues it took."""
    seen = report.observation
    if not (isinstance(op, DeleteTopic) and isinstance(seen, Deleted)):
        return
    if seen.dead_below >= 0:
        law = topic_deletion.nothing_is_left_of_the_deleted
        law.hold(checks, files(), op.topic, op.queue_id)


def may_be_emptied(report: Report, key: QueueKey) -> bool:
    """Whether a deletion took a queue in a step, and nobody knows when.

    Of one that has no answer, and of several of a topic, which all answer the last
    place, only a put that counts from zero again can tell.
    """
    deletions = [(op, seen) for op, seen in report.deletions if op.topic == key[0]]
    return any(
        op.queue_id in (ALL_QUEUES, key[1]) and (seen is None or len(deletions) > 1)
        for op, seen in deletions
    )


def is_amid_a_deletion(report: Report, topic: str) -> bool:
    """Whether something of a step may have seen a topic before or after it went."""
    return report.interrupted and any(op.topic == topic for op, _ in report.deletions)


def judge_deletions(
    checks: dict[str, int],
    report: Report,
    model: ReferenceModel,
    deletions: Deletions,
    before: Positions | None,
    after: Positions,
) -> list[tuple[QueueKey, int]]:
    """Judge the deletions of one life in one step; those that came to their end.

    The model is told of the others; of these, once it knows which puts were first.

    Raises:
        InvariantViolated: a deletion took too little or too much.
        InvariantUnknown: a law failed itself.
    """
    lowest = before.max_phy_offset if before is not None else 0
    is_up = report.crash is None and after.max_phy_offset >= 0
    highest = after.max_phy_offset if is_up else _ANYWHERE
    ended: list[tuple[QueueKey, int]] = []
    for op, seen in deletions:
        key = (op.topic, op.queue_id)
        if seen is None:
            model.may_have_deleted(key, lowest, max(lowest, highest))
        if isinstance(seen, Deleted):
            is_sure = not (report.interrupted or model.is_unsettled(key))
            topic_deletion.deletion_ends_where_the_log_did.hold(
                checks,
                seen.dead_below,
                lowest,
                highest,
                had_messages=is_sure and _has_messages(model, key),
            )
            if seen.dead_below >= 0:
                ended.append((key, seen.dead_below))
    return ended


def _has_messages(model: ReferenceModel, key: QueueKey) -> bool:
    topic, queue_id = key
    return any(
        known[0] == topic and queue_id in (ALL_QUEUES, known[1])
        for known in model.queues
    )


def judge_memory(
    checks: dict[str, int],
    model: ReferenceModel,
    found: DeletedImage,
    later: Deletions,
    built: Container[QueueKey],
    log_min: int,
    log_end: int,
) -> DeletedImage:
    """Judge which deletions a start went by; what the model is to adopt.

    ``found`` is what the files say now, when those ``later`` in the step count too;
    ``built`` has the queues that have files. Where all that is dead has expired, the
    store may forget it, and the model does not.
    """
    places = dict(found.places)
    for op, _ in later:
        for key in {key for key in (*places, *model.deleted) if key[0] == op.topic}:
            if key in model.deleted:
                places[key] = min(model.deleted[key], log_end)
            else:
                del places[key]
    topic_deletion.deletions_are_remembered.hold(
        checks, places, model.deleted, model.may_be_deleted, log_min, log_end
    )
    forgotten = {
        key: min(at, log_end)
        for key, at in model.deleted.items()
        if key not in places and 0 < min(at, log_end) <= log_min
    }
    for known in model.queues if log_min else ():
        is_told = known in places or (known[0], ALL_QUEUES) in places
        if model.is_unsettled(known) and known not in built and not is_told:
            # Nobody saw the deletion's end; what it took has expired, or was lost.
            forgotten[known] = log_min
    return DeletedImage(places | forgotten)
