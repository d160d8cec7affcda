"""The walk through a start: what it found, how it answered, what it recovered.

A start that succeeds decides what is left of the history before. Once it was judged,
the model adopts the recovered state, and known damage and disk failures are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from crashmq.models.appended import Appended, differs, differs_from_message
from crashmq.models.files.checkpoint import Mark
from crashmq.models.files.deleted import ALL_QUEUES, DELETED_PATH, DeletedImage
from crashmq.models.files.layouts import of_another_layout
from crashmq.models.files.log import LogImage
from crashmq.models.files.oddity import is_misnamed, oddities
from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.files.record import MAGIC_V1, MAGIC_V2, Record
from crashmq.models.files.rot import rotten_records
from crashmq.models.files.store_image import StoreImage, read_store
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
    StartOver,
    StoreUp,
)
from crashmq.models.knowledge.promises import SPOILT
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel
from crashmq.models.laws.around import Floors, Spoilt
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Damaged, Refused, Started
from crashmq.models.program import Setup

RECORD_MAGICS = tuple(magic.to_bytes(4, "big") for magic in (MAGIC_V1, MAGIC_V2))
HEAD_SIZE = 8  # length and magic of a record or filler
SEEN_BEHIND = 4  # bytes that a record's last NUL is told from a loss by
RECOVERED_FILES = 3  # of the log, by an orderly start of RocketMQ
_READ_AT_WILL = ("config/consumerFilter.json", "config/delayOffset.json")
_WHOLE_WINDOW = Setup().start_window


def reads_in_a_window(setup: Setup) -> bool:
    """Whether a start may leave old files unread, and so their damage unseen."""
    return setup.start_window < _WHOLE_WINDOW


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
        tampering.abort_taken &= seen.last_exit_ok or known.setup.has_index
        yield StoreUp(*at, found, seen, _left(at, start))
        yield from _adopt(at, start)
    left, known.left_by_start = known.left_by_start, None
    if at.step.is_alone:  # else what others wrote is there too
        files = at.look.files()
        yield StartLeft(*at, left, found, files, ended, takes_over)
        known.left_by_start = None if tampering.abort_taken else files


def start_over(
    at: At, start: Start, seen: Started | Refused, found: StoreImage
) -> StartOver:
    """The moment of a start that has ended, with what its files called for.

    That is whether the directory counts as another program's, whether anything in it
    gives a reason to refuse, and what the start must therefore have kept.

    Args:
        at: where the walk is.
        start: its events.
        seen: whether it came up or refused.
        found: the files before it, decoded.
    """
    known = at.known
    setup, damaged = known.setup, known.tampering.damaged
    log_is_damaged = known.is_degraded or known.tampering.log_is_damaged
    at_full_size = extended(found, setup.log_file_size) if log_is_damaged else found
    is_windowed = reads_in_a_window(setup)
    is_foreign = bool(damaged) and not setup.adopt
    is_foreign = is_foreign and (found.is_of_others or known.is_degraded)
    is_sound = not (known.disk_failed or known.is_degraded)
    if is_foreign and known.end is End.ORDERLY and is_sound:
        is_foreign = not _is_as_an_orderly_end_leaves(found, setup, damaged)
    misfit = _misfit(found, setup, {damage.path for damage in damaged})
    if found.checkpoint.mark is None and not setup.adopt:
        misnamed = [path for path in start.found if is_misnamed(path)]
        other = of_another_layout(start.found)
        is_foreign = is_foreign or bool(misnamed) or bool(other)
        misfit = misfit or (f"{misnamed[0]} is named by a number" if misnamed else "")
        misfit = misfit or (f"{other} is of another kind of store" if other else "")
    if is_foreign and _cuts_whole_records(at_full_size, setup):
        misfit = misfit or "whole records lie behind an end that no mark tells"
    if setup.keeps_progress and not misfit:
        misfit = _lost_offsets(found, start.unreadable) or _lost_configs(found)
    if setup.filters and not misfit and found.filters is None:
        misfit = "no table of the groups' filters is whole"
    if setup.delivers_delayed and not misfit:
        misfit = _lost_delays(found, start.unreadable) or _lost_configs(found)
    return StartOver(
        *at,
        found,
        seen,
        at_full_size,
        log_is_damaged,
        misfit,
        _lost(at_full_size, start.unreadable, is_around=setup.on_damage == "serve"),
        is_foreign,
        _has_lost_its_mark(found, damaged),
        is_windowed and _has_short_file(found, setup),
        is_windowed,
        start.unreadable,
    )


def _is_as_an_orderly_end_leaves(
    found: StoreImage, setup: Setup, damages: Sequence[Damaged]
) -> bool:
    """Whether the files look like an orderly end of RocketMQ, which loses nothing.

    Apart from the mark, only log files may be changed that RocketMQ does not read at an
    orderly start, and none may have another length.
    """
    if found.abort or found.checkpoint.mark is not None:
        return False
    log, size = found.commit_log, setup.log_file_size
    is_run = all(b.base - a.base == size for a, b in pairwise(log.files))
    is_full = all(len(file.data) == size for file in log.files)
    changed = [damage for damage in damages if damage.path != "checkpoint"]
    unread = {file.path: file.base for file in log.files[:-RECOVERED_FILES]}
    if not (is_run and is_full and {damage.path for damage in changed} <= {*unread}):
        return False
    ranges = [(unread[d.path] + d.start, unread[d.path] + d.end) for d in changed]
    # No CRC says so where a record is whole all the same.
    return not any(
        start < record.end and record.phy_offset < end
        for record in (*log.records, *log.records_beyond)
        for start, end in ranges
    )


def _cuts_whole_records(found: StoreImage, setup: Setup) -> bool:
    """Whether a start would cut off whole records that are not known to be its own.

    They are if a mark has been written since, but for those behind an orderly end. As
    RocketMQ after such an end, a start without a mark does not read the log before its
    last three files, if all files are there.
    """
    log = found.commit_log
    mark = found.checkpoint.mark
    if mark is not None:
        is_refused = setup.on_damage == "refuse" and not found.abort
        return is_refused and log.goes_on_behind(mark.durable_offset)
    bases = [file.base for file in log.files]
    is_run = all(after - base == log.file_size for base, after in pairwise(bases))
    if found.abort or not is_run or len(bases) <= RECOVERED_FILES:
        return bool(log.records_beyond)
    until = bases[-RECOVERED_FILES]
    return log.max_phy_offset >= until and bool(log.records_beyond)


def _lost_offsets(found: StoreImage, unreadable: Sequence[Damaged]) -> str:
    """Why consumer offsets are unknown; "" if a start can know them."""
    if _lacks_table(unreadable):
        return "the consumers' offsets cannot be read"
    is_lost = found.offsets is None
    return "no table of the consumers' offsets is whole" if is_lost else ""


def _lost_configs(found: StoreImage) -> str:
    """Which table that every broker reads is lost; "" if none."""
    lost = [path for path in found.lost_tables if path not in _READ_AT_WILL]
    return f"neither {lost[0]} nor its backup is whole" if lost else ""


def _lacks_table(unreadable: Sequence[Damaged]) -> bool:
    """Whether a table or its backup cannot be read; no start reads a temporary file."""
    paths = [place.path for place in unreadable]
    return any(one.startswith("config/") and not one.endswith(".tmp") for one in paths)


def _lost_delays(found: StoreImage, unreadable: Sequence[Damaged]) -> str:
    """Why delay offsets are unknown; "" if a start can know them."""
    if _lacks_table(unreadable):
        return "the offsets of the delay levels cannot be read"
    is_lost = found.delays is None or found.offsets is None
    return "no table of the delay levels is whole" if is_lost else ""


def extended(found: StoreImage, log_file_size: int) -> StoreImage:
    """The image with short log files filled with zeros, as a start may read them."""
    short = [f for f in found.commit_log.files if len(f.data) < log_file_size]
    if not short:
        return found
    files = dict(found.files)
    for file in short:
        files[file.path] = bytes(file.data).ljust(log_file_size, b"\0")
    return read_store(files, None, found.levels)


def _has_lost_its_mark(found: StoreImage, damages: Sequence[Damaged]) -> bool:
    """Whether an older mark is left, which names files that have expired since."""
    mark, log = found.checkpoint.mark, found.commit_log
    if mark is None or not any(damage.path == "checkpoint" for damage in damages):
        return False
    return log.min_phy_offset > mark.log_min_offset


def _has_short_file(found: StoreImage, setup: Setup) -> bool:
    """Whether a log file is shorter than its full size."""
    return any(len(file.data) < setup.log_file_size for file in found.commit_log.files)


def _lost(image: StoreImage, places: Sequence[Damaged], *, is_around: bool) -> str:
    """Which unreadable place a start needs to read; "" if none.

    It needs the log up to its end, and there the bytes that show that it ends.
    """
    if not places:
        return ""
    log, end = image.commit_log, image.commit_log.max_phy_offset
    ends = [end]
    mark = image.checkpoint.mark
    if is_around and mark is not None and end < mark.durable_offset:
        # The log goes on after other damage.
        ends += [mark.durable_offset, *[record.end for record in log.records_beyond]]
    until = max([at + max(HEAD_SIZE, _claimed(image, at)) for at in ends])
    base_of = {file.path: file.base for file in log.files}
    for place in places:
        base = base_of.get(place.path, -1)
        is_met = base >= log.min_phy_offset and base + place.start < until
        if (base >= 0 and is_met) or place.path == "checkpoint":
            return f"{place.path} cannot be read at byte {place.start}"
    return ""


def _claimed(image: StoreImage, offset: int) -> int:
    """What a start reads of a record at the log's end, by its head; 0: there is none.

    Where others may have written, bytes behind a NUL tell whether it was lost.
    """
    for file in image.commit_log.files:
        at = offset - file.base
        if 0 <= at <= len(file.data) - HEAD_SIZE:
            head = bytes(file.data[at : at + HEAD_SIZE])
            size = int.from_bytes(head[:4], "big", signed=True)
            left = len(file.data) - at
            if head[4:] not in RECORD_MAGICS or size > left:
                return 0
            takes_nul = file.by_rocketmq or offset not in file.ours
            is_open = takes_nul and size > 0 and not file.data[at + size - 1]
            return min(size + SEEN_BEHIND, left) if is_open else size
    return 0


def _misfit(found: StoreImage, setup: Setup, damaged: set[str]) -> str:
    """Which damaged file cannot belong to a store of this setup; "" if none.

    It is longer than the setup's files, or begins at an offset where none of them does.
    """
    if not damaged:
        return ""
    queue_file_size = setup.queue_file_units * UNIT_SIZE
    placed = [
        (file.path, file.base, len(file.data), setup.log_file_size)
        for file in found.commit_log.files
    ]
    placed += [
        (file.path, file.base, len(file.data), queue_file_size)
        for queue in found.consume_queues
        for file in queue.files
    ]
    for path, base, length, size in placed:
        if path in damaged and (length > size or base % size):
            return f"{path} is of a store with other sizes"
    if found.checkpoint.mark is None:
        lengths = {
            len(file.data) for queue in found.consume_queues for file in queue.files
        }
        is_full = queue_file_size in lengths and (found.abort or setup.adopt)
        if not is_full and any(0 < length < queue_file_size for length in lengths):
            return "queue files may be of a store with smaller ones"
    deleted = found.commit_log.deleted
    if deleted.flaw:
        return f"{DELETED_PATH} {deleted.flaw}"
    for path in sorted(damaged):
        if path.startswith("consumequeue_ext/") and setup.queue_ext_size:
            size, data = setup.queue_ext_size, found.files.get(path, b"")
            if len(data) > size or int(path.rpartition("/")[2]) % size:
                return f"{path} is of a store with other sizes"
    return ""


def _left(at: At, start: Start) -> StoreImage:
    """The files that a start left; others may have changed them later in the step."""
    return at.look.image() if start.left is None else at.look.image_of(start.left)


def _adopt(at: At, start: Start) -> Iterator[Moment]:
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
    yield LogRecovered(
        *at,
        log.records,
        model.live_messages(log.min_phy_offset),
        model.floor if model.floor is not None else model.floor_kill,
        log.min_phy_offset,
        deletions,
        end,
    )
    deleted = deletions_known(model, deletions, built, log.min_phy_offset, end)
    model.adopt(log.records, built, log.min_phy_offset, deleted)
    if known.works(LOG):
        model.min_certain = log.min_phy_offset
    model.min_certain = min(model.min_certain, log.min_phy_offset)
    if not is_damaged:
        ends = model.ends_of_empty_queues()
        counted = {k: max(at, model.numbered.get(k, 0)) for k, at in ends.items()}
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

    A start that was cut short may have noted in the mark where the log begins by now.
    """
    if mark is None:
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
