"""Judging a start that serves around damage, and what such a store gives."""

from __future__ import annotations

from collections.abc import Sequence

from harness.interpreter import Report
from harness.judging.lookups import judge_looks
from models.invariants.around import Spoilt, keeps_what_is_whole, pull_goes_around
from models.observations import Damaged, Started
from models.reference import ReferenceModel
from models.store_image import Record, StoreImage


def note_damage(spoilt: Spoilt, damages: Sequence[Damaged]) -> None:
    """Take note of what was changed of log and queues, also of files that are gone."""
    for damage in damages:
        folder, _, name = damage.path.rpartition("/")
        spoilt.queues.append(folder)
        if folder == "commitlog" and name.isdecimal() and damage.start < damage.end:
            spoilt.ranges.append((int(name) + damage.start, int(name) + damage.end))
        elif damage.path == "commitlog":  # nobody knows where
            spoilt.ranges.append((0, 1 << 62))


def adopts_around(
    checks: dict[str, int],
    model: ReferenceModel,
    spoilt: Spoilt,
    found: StoreImage,
    image: StoreImage,
    start: Started,
    end: int,
) -> bool:
    """Judge what a start has kept, and let the model adopt it; whether it could.

    It cannot where a record rotted that still proves itself whole.

    Args:
        checks: how often each law was judged.
        model: what the store held before.
        spoilt: what was ever changed of its log.
        found: the files as the start found them.
        image: the files now.
        start: what it said of itself.
        end: where the log ended then; what lies behind was put since.
    """
    log = image.commit_log
    whole = {
        record.phy_offset: record
        for record in (*log.records, *log.records_beyond)
        if record.phy_offset < end
    }
    if any(spoilt.touches(r.phy_offset, r.end) for r in whole.values()):
        return False
    floor = model.floor if model.floor is not None else model.floor_kill
    mark = found.checkpoint.mark
    keeps_what_is_whole.hold(
        checks,
        whole,
        model.live_messages(model.log_min),
        model.in_flight,
        (floor, mark.durable_offset if mark is not None else 0),
        spoilt,
        start.damaged,
    )
    _adopt(model, list(whole.values()), image, spoilt.queues)
    spoilt.is_on, spoilt.queues = True, []
    spoilt.ranges = [(begin, min(e, end)) for begin, e in spoilt.ranges if begin < end]
    return True


def _adopt(
    model: ReferenceModel, whole: list[Record], image: StoreImage, damaged: list[str]
) -> None:
    offsets = {record.phy_offset for record in whole}
    keys = {**model.numbered, **model.queues}
    numbered = {key: model.next_queue_offset(key) for key in keys}
    model.messages = [m for m in model.messages if m.phy_offset in offsets]
    ends = {(queue.topic, queue.queue_id): queue.end for queue in image.consume_queues}
    model.adopt(whole, ends, image.commit_log.min_phy_offset)
    # The numbers of damaged messages stay taken as far as their queue has units, though
    # nobody can tell those from what damage made of a damaged queue.
    model.numbered = {key: min(ends.get(key, 0), n) for key, n in numbered.items()}
    for queue in image.consume_queues:
        if f"consumequeue/{queue.name}" in damaged:
            key = (queue.topic, queue.queue_id)
            model.numbered[key] = queue.end
            model.trusted[key] = queue.end_of_last_file - queue.end


def judge_reads_around(
    checks: dict[str, int], report: Report, model: ReferenceModel
) -> None:
    """Judge every pull and every look of one step."""
    reput = -1 if report.interrupted else model.reput_from_offset
    gone = model.may_expire if report.interrupted else model.log_min
    for pull, pulled in report.pulls:
        queue = model.queues.get((pull.topic, pull.queue_id), [])
        pull_goes_around.hold(checks, pull, pulled, queue, reput, gone)
    if not report.interrupted:
        judge_looks(checks, report, model.live_messages(model.log_min))
