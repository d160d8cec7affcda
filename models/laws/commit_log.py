"""Laws of the CommitLog's files: intact records, end to end, in files without gaps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from crashmq.models.files.log import LogFile, LogImage, LogStop, read_on
from crashmq.models.files.oddity import are_odd, oddities
from crashmq.models.files.properties import property_names
from crashmq.models.files.record import written_part
from crashmq.models.files.store_image import Record, StoreImage
from crashmq.models.laws.after_crash import (
    damaged_heads,
    has_lost_a_file,
    proven_breaks,
)
from crashmq.models.laws.judged import Judged, trace_of_lost_tail
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Place, Violation

# At the other flaws there is a record, if a damaged one.
_FILLER_FLAWS = ("end", "zeros", "magic", "size", "filler")


NEAR_MS = 1_000
"""The times of neighbours often lie no further apart."""
SENT_MS = 60_000
"""So long a message may take from its producer to the store."""


@law(
    "CL-1",
    "every CommitLog record between min and max phy_offset is intact and stores its "
    "own phy_offset",
    catalogue="I2 I15",
)
def every_record_is_whole(judged: Judged) -> Iterator[Violation]:
    """Reports each break: a byte at which no intact record begins, yet the log goes on.

    At rest every break violates the law. Where bytes of an earlier cut may lie past the
    end, a break counts only if something proves that the log went on after it. After a
    crash it counts below the durable mark, or if no crash can have made it.

    Source: CommitLog#checkMessageAndReturnSize.
    """
    log = judged.image.commit_log
    if not judged.clean:
        yield from _lost_in_a_crash(judged)
    elif not judged.stale_allowed:
        yield from _breaks(log)
    elif trace := trace_of_lost_tail(judged.image):
        yield from _breaks(log)
        if not log.breaks:
            yield Violation(log.stop.where, log.stop.seen, f"more of the log: {trace}")


@law(
    "CL-2",
    "all CommitLog files have the same size, are named by their first phy_offset, and "
    "are contiguous",
    catalogue="I18",
)
def log_files_fit_together(judged: Judged) -> Iterator[Violation]:
    """Checks names and lengths, which say which bytes of the log a file holds.

    After a crash a file may be empty, and a gap counts only where a crash cannot make
    it.

    Source: MappedFileQueue#load.
    """
    log = judged.image.commit_log
    size = log.file_size
    for path in log.odd_paths:
        yield Violation(path, "a name that is no offset", "20 digits, the file's base")
    for file in log.files:
        length = len(file.data)
        is_amid = judged.whole_sectors and _is_in_use_behind(log, file)
        if length != size and (judged.clean or length or is_amid):
            where = Place(file.path, min(length, size), f"length {length}")
            yield Violation(where, f"{length} bytes", f"{size} bytes, as other files")
        if file.base % size if size else file.base:
            yield Violation(
                file.path, "a base inside another file", f"a multiple of {size}"
            )
    for before, after in pairwise(log.files):
        is_told = judged.clean or has_lost_a_file(judged)
        if is_told and after.base != before.base + size:
            missing = before.base + size
            where = Place(f"commitlog/{missing:020d}", 0, f"phy_offset {missing}")
            yield Violation(where, f"{after.path} follows {before.path}", "this file")


@law(
    "CL-3",
    "of the CommitLog files that hold records, all but the last end with a BLANK that "
    "reaches the file's last byte",
    catalogue="I2",
)
def closed_files_end_with_a_filler(judged: Judged) -> Iterator[Violation]:
    """At rest, looks for the BLANK in each file that has a later file with a record.

    Where units of an earlier cut may be left over, the law is also broken by a BLANK
    that covers intact records which ConsumeQueues still list.

    Source: CommitLog.DefaultAppendMessageCallback#doAppend, BLANK_MAGIC_CODE.
    """
    if not judged.clean:
        return
    files = judged.image.commit_log.files
    closed = max((n for n, file in enumerate(files) if file.records), default=0)
    for file in files[:closed]:
        is_whole = len(file.data) == judged.image.commit_log.file_size
        if file.flaw in _FILLER_FLAWS and is_whole and _lacks_filler(file):
            where = Place(file.path, file.end, f"phy_offset {file.base + file.end}")
            left = file.limit - file.end
            yield Violation(where, file.seen, f"a filler of {left} bytes")
    if judged.stale_allowed and judged.image.suspect_queues:
        yield from _over_records(judged.image)


@law(
    "CL-4",
    "store_timestamp never decreases from one CommitLog record to the next",
    catalogue="I17",
)
def store_timestamps_never_decrease(judged: Judged) -> Iterator[Violation]:
    """Compares neighbours; of two that disagree it names the one that is out of line.

    Checked at rest, on stores whose clock was never set back.
    """
    if not judged.monotonic_clock or not (judged.clean or judged.whole_sectors):
        return
    log = judged.image.commit_log
    if log.store_timestamps_rise:
        return
    records = log.records
    for number, (before, after) in enumerate(pairwise(records), 1):
        if after.store_timestamp < before.store_timestamp:
            around = (*records[number - 2 : number - 1], *records[number:][:2])
            if len(around) > 1 and _is_later_than_all(before, around):
                wrong, bound = before, f"at most {after.store_timestamp}"
            else:
                wrong, bound = after, f"at least {before.store_timestamp}"
            yield Violation(
                log.where(wrong.phy_offset),
                f"store_timestamp {wrong.store_timestamp}",
                f"{bound}, as at {(after if wrong is before else before).phy_offset}",
            )


@law("CL-5", "every field of a CommitLog record is in its valid range", catalogue="I15")
def fields_are_in_range(judged: Judged) -> Iterator[Violation]:
    """Checks the fields that neither the body's CRC nor the inner lengths cover.

    Checked after a crash too, if sectors of 512 bytes reach the medium completely or
    not at all: a record that the crash tore is not intact, so it is skipped.

    Source: MessageDecoder#decode.
    """
    if not (judged.clean or judged.whole_sectors):
        return
    log = judged.image.commit_log
    odd = [record for file in log.files for record in file.odd_records]
    names = None
    is_lenient = judged.stale_allowed or judged.takes_odd_properties
    if odd and (is_lenient or judged.whole_sectors):
        is_asked = any(are_odd(written_part(record.properties_raw)) for record in odd)
        names = property_names(log.every_record() if is_asked else ())
    for record in odd:
        for seen, expected in oddities(record, names):
            yield Violation(log.where(record.phy_offset), seen, expected)
        if names is not None and _lost_their_end(record, log):
            seen = f"properties {record.properties_raw[-20:]!r} at their end"
            yield Violation(log.where(record.phy_offset), seen, "a separator there")


def _lost_their_end(record: Record, log: LogImage) -> bool:
    """Whether properties end in a NUL where their neighbours' end in a separator.

    RocketMQ 5 writes a separator after the last value, 4.9 does not.
    """
    if not written_part(record.properties_raw).endswith(b"\0"):
        return False
    records = log.records
    at = bisect_left(records, record.phy_offset, key=lambda one: one.phy_offset)
    near = (*records[max(0, at - 2) : at], *records[at + 1 : at + 3])
    return any(written_part(one.properties_raw).endswith(b"\2") for one in near)


def clock_steps(image: StoreImage) -> tuple[Record, ...]:
    """Records before which the store's clock was set back.

    A single record out of line with its neighbours is damage and is not counted:
    without it, or without the one before it, the times rise again. The last record may
    be the first one after a step: then its producer's clock says the same, and no bit
    was flipped.
    """
    records = image.commit_log.records
    stamps = [record.store_timestamp for record in records]
    steps: list[Record] = []
    for number, (before, after) in enumerate(pairwise(stamps), start=1):
        if after < before:
            earlier, later = stamps[:number][-2:-1], stamps[number + 1 : number + 2]
            without_one = ([*earlier, before, *later], [*earlier, after, *later])
            is_one_of_many = all(around != sorted(around) for around in without_one)
            is_new = not later and _begins_a_step(before, records[number])
            if is_one_of_many or is_new:
                steps.append(records[number])
    return tuple(steps)


def _begins_a_step(before: int, record: Record) -> bool:
    """Whether a record is certainly of an earlier time than the one before it."""
    after = record.store_timestamp
    flipped = [after ^ (1 << bit) for bit in range(63)]
    is_damage = any(0 <= one - before < NEAR_MS for one in flipped)
    return 0 <= after - record.born_timestamp < SENT_MS and not is_damage


def _breaks(log: LogImage) -> Iterator[Violation]:
    for stop in log.breaks:
        yield Violation(stop.where, _seen_at(stop, log), "a whole record")


def _lost_in_a_crash(judged: Judged) -> Iterator[Violation]:
    """Breaks that no crash can have made: those below a mark that survived."""
    log, checkpoint = judged.image.commit_log, judged.image.checkpoint
    mark = checkpoint.mark
    newest, flushed_ms = log.newest_store_timestamp, checkpoint.physic_msg_timestamp
    if mark is None:
        proven = [*proven_breaks(judged)]
        for stop, after in proven:
            where = log.where(after.phy_offset)
            expected = f"a whole record, for a later one at {where} is whole"
            yield Violation(stop.where, _seen_at(stop, log), expected)
        told = {stop.phy_offset for stop, _ in proven}
        for stop in damaged_heads(judged):
            if stop.phy_offset not in told:
                expected = "a record or zeros, for nothing else is ever written there"
                yield Violation(stop.where, stop.seen, expected)
        if judged.whole_sectors and not log.files:
            yield from _log_that_is_gone(judged.image)
    if mark is not None and mark.durable_offset > log.stop.phy_offset:
        expected = f"whole records up to the durable mark {mark.durable_offset}"
        yield Violation(log.stop.where, _seen_at(log.stop, log), expected)
    elif newest < flushed_ms and log.breaks and judged.monotonic_clock:
        beyond = [
            record
            for record in log.records_beyond
            if newest <= record.store_timestamp < flushed_ms
        ]
        if beyond and not any(stop == log.stop for stop, _ in proven_breaks(judged)):
            expected = (
                f"a whole record: the one at phy_offset {beyond[0].phy_offset} was "
                f"stored before physic_msg_timestamp {flushed_ms}"
            )
            yield Violation(log.stop.where, _seen_at(log.stop, log), expected)


def _log_that_is_gone(image: StoreImage) -> Iterator[Violation]:
    """Units without a log, although its first file is created before any queue's."""
    units = sum(len(queue.units) for queue in image.consume_queues)
    if units:
        stop = image.commit_log.stop
        expected = f"log files, for {units} units point into them"
        yield Violation(stop.where, stop.seen, expected)


def _seen_at(stop: LogStop, log: LogImage) -> str:
    if stop != log.stop or stop.kind not in ("zeros", "end"):
        return stop.seen
    written = log.first_written_past_stop
    if written is None:
        return stop.seen
    path, position = written
    return f"{stop.seen}, yet {path} is written at byte {position}"


def _over_records(image: StoreImage) -> Iterator[Violation]:
    """BLANKs over intact records that queues list: recovery would have cut those."""
    listed = {
        (unit.phy_offset, unit.size, queue.topic, queue.queue_id): queue.where(
            unit.queue_offset
        )
        for queue, live in image.suspect_queues
        for unit in live
    }
    for file in image.commit_log.files:
        if file.flaw is None:
            for record in read_on(file):
                if not isinstance(record, Record):
                    continue
                place = (record.phy_offset, record.size, record.topic, record.queue_id)
                if place in listed:
                    known_as = f"phy_offset {file.base + file.end}"
                    where = Place(file.path, file.end, known_as)
                    expected = f"the record that {listed[place]} points at"
                    seen = f"{file.seen}, yet a record is whole at {record.phy_offset}"
                    yield Violation(where, seen, expected)
                    break


def _lacks_filler(file: LogFile) -> bool:
    """Whether the BLANK itself is missing: no record follows in the file."""
    return next(read_on(file), None) is None


def _is_in_use_behind(log: LogImage, file: LogFile) -> bool:
    """Whether a later file of the log holds a record."""
    return any(later.records for later in log.files if later.base > file.base)


def _is_later_than_all(record: Record, others: tuple[Record, ...]) -> bool:
    """Whether the others' times rise without it, and it is later than each of them."""
    stamps = [other.store_timestamp for other in others]
    return stamps == sorted(stamps) and stamps[-1] < record.store_timestamp
