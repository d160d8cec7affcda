"""Judging a start that serves around damage, and what such a store gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.interpreter import Report
from harness.judging.lookups import judge_looks
from harness.judging.queries import fitting_records, is_indexed
from models.invariants.around import (
    Spoilt,
    keeps_what_is_whole,
    pull_goes_around,
    put_spares_what_is_damaged,
    query_goes_around,
    search_goes_around,
)
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
    report: Report,
) -> bool:
    """Judge what a start has kept, and let the model adopt it; whether it could.

    It cannot where a record rotted that still proves itself whole, nor where one could
    not be read while the start looked for it.

    Args:
        checks: how often each law was judged.
        model: what the store held before.
        spoilt: what was ever changed of its log.
        found: the files as the start found them.
        image: the files now.
        start: what it said of itself.
        report: of the step; what lies behind the end of its start was put since.
    """
    log, end = image.commit_log, report.started_end
    whole = {
        record.phy_offset: record
        for record in (*log.records, *log.records_beyond)
        if record.phy_offset < end
    }
    if any(spoilt.touches(r.phy_offset, r.end) for r in whole.values()):
        return False
    listed = Spoilt(spoilt.log_file_size, ranges=[*start.damaged])
    is_listed = any(listed.touches(r.phy_offset, r.end) for r in whole.values())
    if is_listed and report.reads_failed:
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
    spoilt.lost += [m.phy_offset for m in model.messages if m.phy_offset not in whole]
    _adopt(model, list(whole.values()), image, spoilt.queues)
    spoilt.is_on, spoilt.queues, spoilt.listed = True, [], start.damaged
    spoilt.ranges = [(begin, min(e, end)) for begin, e in spoilt.ranges if begin < end]
    return True


def _adopt(
    model: ReferenceModel, whole: list[Record], image: StoreImage, damaged: list[str]
) -> None:
    offsets = {record.phy_offset for record in whole}
    keys = {**model.numbered, **model.queues}
    numbered = {key: model.next_queue_offset(key) for key in keys}
    model.messages = [m for m in model.messages if m.phy_offset in offsets]
    ends = {queue.key: queue.end for queue in image.consume_queues}
    model.adopt(whole, ends, image.commit_log.min_phy_offset)
    # The numbers of damaged messages stay taken as far as their queue has units, though
    # nobody can tell those from what damage made of a damaged queue.
    model.numbered = {key: min(ends.get(key, 0), n) for key, n in numbered.items()}
    for queue in image.consume_queues:
        if f"consumequeue/{queue.name}" in damaged:
            model.numbered[queue.key] = queue.end
            model.trusted[queue.key] = queue.end_of_last_file - queue.end


def judge_around(
    checks: dict[str, int],
    report: Report,
    model: ReferenceModel,
    spoilt: Spoilt,
    image: Callable[[], StoreImage],
    *,
    epoch_ms: int,
    dispatch_failed: bool,
) -> None:
    """Judge every put and every read of one step of a store served around damage.

    ``image`` reads the files after it; ``dispatch_failed``: the disk failed, so that a
    record may be listed in part.
    """
    reput = -1 if report.interrupted else model.reput_from_offset
    gone = model.may_expire if report.interrupted else model.log_min
    for pull, pulled in report.pulls:
        queue = model.queues.get((pull.topic, pull.queue_id), [])
        pull_goes_around.hold(checks, pull, pulled, queue, reput, gone)
    if report.starts:
        return
    for _, answer in report.puts:
        if answer is not None:
            put_spares_what_is_damaged.hold(checks, answer, spoilt)
    if report.interrupted:
        return
    judge_looks(checks, report, model.live_messages(model.log_min))
    if not (report.searches or report.queries) or dispatch_failed:
        return
    log = image().commit_log
    whole = {
        record.phy_offset: record
        for record in (*log.records, *log.records_beyond)
        if record.phy_offset >= model.log_min
    }
    known = [m.phy_offset for m in model.live_messages(model.log_min)]
    records = [whole[offset] for offset in known if offset in whole]
    _judge_searches(checks, report, model, whole, records, epoch_ms)
    for query, queried in report.queries:
        times = (epoch_ms + query.begin_ms, epoch_ms + query.end_ms)
        fitting = fitting_records(log, records, query, times)
        indexed = [r for r in fitting if is_indexed(r, query.key, model, reput)]
        query_goes_around.hold(checks, queried, query.max_num, indexed)


def _judge_searches(
    checks: dict[str, int],
    report: Report,
    model: ReferenceModel,
    whole: Mapping[int, Record],
    records: Sequence[Record],
    epoch_ms: int,
) -> None:
    earliest = records[0].store_timestamp if records else -1
    for search, searched in report.searches:
        queue = model.queues.get((search.topic, search.queue_id), [])
        times = {
            appended.queue_offset: whole[appended.phy_offset].store_timestamp
            for appended in queue
            if appended.phy_offset in whole
        }
        ready = [
            appended.queue_offset
            for appended in queue
            if appended.queue_offset in times
            and appended.end <= model.reput_from_offset
        ]
        timestamp = epoch_ms + search.at_ms
        search_goes_around.hold(
            checks, searched, timestamp, search.boundary, times, ready, earliest
        )
