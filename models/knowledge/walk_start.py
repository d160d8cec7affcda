"""The walk through a start: what it found, how it answered, what it recovered.

A start that succeeds decides what is left of the history before. Once it was judged,
the model adopts the recovered state, and known damage and disk failures are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crashmq.models.appended import Appended, differs, differs_from_message
from crashmq.models.files.checkpoint import Mark
from crashmq.models.files.deleted import ALL_QUEUES, DeletedImage
from crashmq.models.files.log import LogImage
from crashmq.models.files.oddity import oddities
from crashmq.models.files.record import Record
from crashmq.models.files.rot import rotten_records
from crashmq.models.files.store_image import StoreImage
from crashmq.models.history import Start, Step
from crashmq.models.knowledge.knowledge import LOG, End, Knowledge
from crashmq.models.knowledge.moments import (
    At,
    FilesAtRest,
    LogRecovered,
    LogRecoveredAround,
    Moment,
    QueuesRecovered,
    RotRecovered,
    StartLeft,
    StoreUp,
)
from crashmq.models.knowledge.promises import SPOILT
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel
from crashmq.models.knowledge.start_over import (
    RECOVERED_FILES,
    start_over,
)
from crashmq.models.laws.around import Floors, Spoilt
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Refused, Started


def walk_start(at: At, start: Start, found: StoreImage) -> Iterator[Moment]:
    """Update what is known by one start of a step; yields the moments."""
    known = at.known
    seen, tampering = start.seen, known.tampering
    ended = known.end is End.ORDERLY and not (tampering.damaged or known.disk_failed)
    takes_over = tampering.is_found and not tampering.damaged
    if not isinstance(seen, Started | Refused):
        known.end = End.UNKNOWN  # it failed somewhere on its way
        return
    tampering.begin_start()
    if tampering.damaged:
        known.left_by_start = None
    log_was_damaged = tampering.log_is_damaged
    over = start_over(at, start, seen, found)
    yield over
    if isinstance(seen, Refused):
        return
    if seen.damaged or known.is_degraded:
        yield from _adopt_around(at, start, seen, found)
    else:
        if log_was_damaged:
            known.model.log_damaged(over.at_full_size.commit_log.max_phy_offset)
        yield StoreUp(*at, found, seen, _left(at, start))
        yield from _adopt(at, start, seen)
    left, known.left_by_start = known.left_by_start, None
    if at.step.is_alone:  # else what others wrote is there too
        files = at.look.files()
        full = over.at_full_size
        yield StartLeft(*at, left, found, full, files, ended, takes_over)
        known.left_by_start = None if tampering.abort_taken else files


def _left(at: At, start: Start) -> StoreImage:
    """The files that a start left; others may have changed them later in the step."""
    return at.look.image() if start.left is None else at.look.image_of(start.left)


def _adopt(at: At, start: Start, seen: Started) -> Iterator[Moment]:
    """Adopt what a start recovered."""
    step, known, look, now = at
    model, image, end = known.model, _left(at, start), start.log_end
    log = image.commit_log
    rotten = _rotten(known, log)
    if rotten:
        places = {record.phy_offset for record in rotten}
        records = [r for r in log.records if r.phy_offset not in places]
        messages = model.live_messages(log.min_phy_offset)
        sound = [m for m in messages if m.phy_offset not in places]
        yield RotRecovered(*at, records, sound)
        known.tampering.log_has_hidden_rot = True
        return
    built = {queue.key: queue.end for queue in image.consume_queues}
    is_damaged = bool(known.tampering.damaged)
    log_is_gone = is_damaged and not log.files
    if log_is_gone:
        # Then no unit of theirs has a record, nor did one expire.
        built = {queue.key: queue.first_number for queue in image.consume_queues}
    deletions = log.deleted.places
    were_empty = model.ends_of_empty_queues()
    yield LogRecovered(
        *at,
        log.records,
        model.live_messages(log.min_phy_offset),
        model.floor if model.floor is not None else model.floor_kill,
        log.min_phy_offset,
        deletions,
        end,
    )
    # Until here: a start that failed may have noted what looked like a deletion.
    known.tampering.abort_taken &= seen.last_exit_ok or known.setup.has_index
    deleted = deletions_known(model, deletions, built, log.min_phy_offset, end)
    model.adopt(log.records, built, log.min_phy_offset, deleted)
    if known.works(LOG):
        model.min_certain = log.min_phy_offset
    model.min_certain = min(model.min_certain, log.min_phy_offset)
    if log_is_gone:
        ends = {queue.key: queue.end for queue in image.consume_queues}
        yield QueuesRecovered(*at, ends, dict.fromkeys(ends, 0))
    else:
        ends = model.ends_of_empty_queues()
        counted = {k: max(at, model.numbered.get(k, 0)) for k, at in ends.items()}
        if is_damaged:
            kept = known.tampering.untouched_queues(were_empty)
            counted = {key: counted[key] for key in kept if key in counted}
        yield QueuesRecovered(*at, built, counted)
    model.forget_lost_numbers()
    if log_is_gone:
        model.number_empty_queues(built)
    elif is_damaged and log.min_phy_offset:
        queues = image.consume_queues
        model.number_empty_queues({q.key: q.end_of_last_file for q in queues})
    known.started(image, step.failed_since_its_start)
    if step.ends_as_it_ran and start is step.starts[-1]:
        yield FilesAtRest(*at, look.image(), now.reput_from_offset)
    else:  # nobody knows how far it had dispatched
        yield FilesAtRest(*at, image, 0)


def deletions_known(
    model: ReferenceModel,
    places: Mapping[QueueKey, int],
    built: Mapping[QueueKey, int],
    log_min: int,
    log_end: int,
) -> DeletedImage:
    """The deletions that the model is to adopt.

    ``built`` has the queues that have files. A store may forget a deletion once all
    records it killed have expired; the model does not.
    """
    forgotten = {
        key: min(at, log_end)
        for key, at in model.deleted.items()
        if key not in places and 0 < min(at, log_end) <= log_min
    }
    for known in {**model.queues, **model.numbered} if log_min else ():
        is_told = known in places or (known[0], ALL_QUEUES) in places
        if model.is_unsettled(known) and known not in built and not is_told:
            # Nobody saw the deletion's end; what it took has expired, or was lost.
            forgotten[known] = log_min
    return DeletedImage({**places, **forgotten})


def _rotten(known: Knowledge, log: LogImage) -> frozenset[Record]:
    """Damaged records that a start took over and could not detect.

    No mark covered them, and no CRC covers the changed bytes. On a disk that tears
    sectors it is also unknown which bytes are damaged.
    """
    damages = known.tampering.damaged
    if not damages:
        return frozenset()
    rotten = rotten_records(log, damages)
    if known.promises.kind.tears and SPOILT in damages:
        rotten |= _torn_records(log, known.model)
    return rotten


def _torn_records(log: LogImage, model: ReferenceModel) -> frozenset[Record]:
    """Records with an intact body whose header and names no CRC covers.

    The CRC property itself may be torn: if what is left of it is no property, the other
    properties can be intact and the record still be malformed.
    """
    messages = model.live_messages(log.min_phy_offset)
    known = {appended.phy_offset: appended for appended in messages}
    return frozenset(
        record
        for record in log.records
        if not record.has_property_crc
        and _is_torn(record, known.get(record.phy_offset), model.in_flight)
    )


def _is_torn(
    record: Record, appended: Appended | None, in_flight: Sequence[MessageToPut]
) -> bool:
    if appended is not None and record.body == appended.message.body:
        return bool(differs(record, appended)) or _is_odd(record)
    alike = [message for message in in_flight if message.body == record.body]
    differ = all(differs_from_message(record, message) for message in alike)
    return bool(alike) and (differ or _is_odd(record))


def _is_odd(record: Record) -> bool:
    return any(True for _ in oddities(record))


def _adopt_around(
    at: At, start: Start, seen: Started, found: StoreImage
) -> Iterator[Moment]:
    """Adopt what a start with on_damage=serve has kept.

    Nothing can be judged from here on if a record was damaged in bytes that no checksum
    covers, or could not be read while the start looked for it.
    """
    step, known = at.step, at.known
    tampering, model = known.tampering, known.model
    tampering.note_degraded()
    degraded, image, end = tampering.degraded, _left(at, start), start.log_end
    log = image.commit_log
    whole = {
        record.phy_offset: record
        for record in (*log.records, *log.records_beyond)
        if record.phy_offset < end
    }
    # Adopted without a mark after a crash, the log ends at the first damage.
    is_unmarked = found.checkpoint.mark is None and known.setup.adopt
    is_cut = is_unmarked and not seen.damaged
    if is_cut or _is_unsure_around(step, seen, degraded, whole):
        tampering.log_has_hidden_rot = True
    else:
        floor = model.floor if model.floor is not None else model.floor_kill
        mark = found.checkpoint.mark
        begin = _listed_from(known, found, mark)
        floors = Floors(floor, _served_until(found, mark), begin)
        yield LogRecoveredAround(*at, whole, floors, seen)
        degraded.lost += [
            m.phy_offset for m in model.messages if m.phy_offset not in whole
        ]
        _adopt_whole(model, list(whole.values()), image, degraded.queues, end)
        degraded.is_on, degraded.queues, degraded.listed = True, [], seen.damaged
        degraded.ranges = [
            (begin, min(e, end)) for begin, e in degraded.ranges if begin < end
        ]
    known.started(image, step.failed_since_its_start)
    known.checkpoint = None


def _listed_from(known: Knowledge, found: StoreImage, mark: Mark | None) -> int:
    """From which phy_offset on a start around damage can tell that something is gone.

    Another program may have expired the log's first files: a store that adopts, and
    does not serve around damage of its own, takes it so. A start that was cut short may
    have noted in the mark where the log begins by now.
    """
    takes_all = known.setup.adopt and known.setup.on_damage == "refuse"
    if mark is None or found.is_of_others or takes_all:
        return min([file.base for file in found.commit_log.files], default=0)
    return mark.log_min_offset if known.end is End.UNKNOWN else 0


def _served_until(found: StoreImage, mark: Mark | None) -> int:
    """Up to which phy_offset a start serves records around damage.

    That is the mark's durable_offset, or its damaged_until, of a directory that was
    damaged when it was taken over; without a mark, where RocketMQ's orderly start would
    begin to read.
    """
    if mark is not None:
        return max(mark.durable_offset, mark.damaged_until)
    bases = [file.base for file in found.commit_log.files]
    return bases[-RECOVERED_FILES] if len(bases) > RECOVERED_FILES else 0


def _is_unsure_around(
    step: Step, start: Started, degraded: Spoilt, whole: Mapping[int, Record]
) -> bool:
    if any(degraded.touches(r.phy_offset, r.end) for r in whole.values()):
        return True
    listed = Spoilt(degraded.log_file_size, ranges=[*start.damaged])
    is_listed = any(listed.touches(r.phy_offset, r.end) for r in whole.values())
    return is_listed and step.fails_reads


def _adopt_whole(
    model: ReferenceModel,
    whole: list[Record],
    image: StoreImage,
    damaged: list[str],
    log_end: int,
) -> None:
    offsets = {record.phy_offset for record in whole}
    keys = {**model.numbered, **model.queues}
    numbered = {key: model.next_queue_offset(key) for key in keys}
    model.messages = [m for m in model.messages if m.phy_offset in offsets]
    ends = {queue.key: queue.end for queue in image.consume_queues}
    places, log_min = image.commit_log.deleted.places, image.commit_log.min_phy_offset
    deleted = deletions_known(model, places, ends, log_min, log_end)
    model.adopt(whole, ends, log_min, deleted)
    # The numbers of damaged messages stay taken as far as their queue has units, though
    # nobody can tell those from what damage made of a damaged queue.
    model.numbered = {key: min(ends.get(key, 0), n) for key, n in numbered.items()}
    for queue in image.consume_queues:
        if f"consumequeue/{queue.name}" in damaged:
            model.numbered[queue.key] = queue.end
            model.trusted[queue.key] = queue.end_of_last_file - queue.end
