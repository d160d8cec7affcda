"""What a start would remove from a directory without this store's durable mark.

A mark says what was durable: where the log is not intact below it, the log is damaged.
Without a mark the directory may be another program's, may have another layout, or may
have lost its checkpoint. A start then may only do two things: add what dispatch
derives from the log, and cut what a crash can leave behind the last intact record.
Everything else that it would remove is counted here, before it changes anything.

Source: none in RocketMQ, which cuts and removes whatever it does not understand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from crashmq.engine.store.clean.deleted_topics import DeletedTopics
from crashmq.engine.store.damage import Stop
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.errors import Place
from crashmq.engine.store.log_scan import LogScan
from crashmq.engine.store.logfile.mapped_file import MappedFile
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.engine.store.message.message import INNER_BATCH_FLAG, SCHEDULE_TOPIC
from crashmq.engine.store.queue.consume_queue import ConsumeQueue
from crashmq.engine.store.queue.consume_queue_ext import is_address
from crashmq.engine.store.queue.cq_unit import BLANK_SIZE, CQ_STORE_UNIT_SIZE, UNIT
from crashmq.engine.store.queue.queue_audit import QueueAudit, QueueKey
from crashmq.engine.store.scan_around import count_whole_records
from crashmq.engine.store.unreadable import examined_with_zeros, with_zeros

_CHUNK = 1024 * 1024
_NEAR = 5  # chunks; a message has 4 MiB at most, by RocketMQ's default
_CODE_AT = 12  # in a unit
_WINDOW = 64 * 1024 // CQ_STORE_UNIT_SIZE * CQ_STORE_UNIT_SIZE


@dataclass(slots=True)
class Losses:
    """What a start would remove, and the first place that it does not understand.

    Attributes:
        where: that place; None if nothing would be removed.
        why: what was found there.
        log_bytes: bytes from the log's end to the last nonzero byte after it.
        records: intact records among these bytes.
        queues: queues that would lose ``units`` units in all.
        index_files: index files of another size, or with entries past the log's end.
    """

    where: Place | None = None
    why: str = ""
    log_bytes: int = 0
    records: int = 0
    queues: int = 0
    units: int = 0
    index_files: int = 0

    def note(self, where: Place, why: str) -> None:
        """Keep the first place that is not understood."""
        if self.where is None:
            self.where, self.why = where, why

    def __str__(self) -> str:
        counted = [
            (self.log_bytes, "bytes of the log"),
            (self.records, "whole records"),
            (self.units, f"units of {self.queues} queues"),
            (self.index_files, "index files"),
        ]
        told = [f"{count} {what}" for count, what in counted if count]
        return ", ".join(told) or "nothing yet"


@dataclass(slots=True)
class UnitsToCome:
    """The units that dispatch would build, for the queues that disagree with the log.

    Its ``visit`` needs the audit's result for the same record, so the audit visits
    first.
    """

    audit: QueueAudit
    units: dict[QueueKey, dict[int, bytes]] = field(default_factory=dict)
    inner_batch_at: int = -1

    def visit(self, request: DispatchRequest) -> None:
        """Note the units of one record."""
        if not request.has_unit:
            if request.sys_flag & INNER_BATCH_FLAG and self.inner_batch_at < 0:
                self.inner_batch_at = request.commit_log_offset
            return
        for place in (request, *request.in_light_queues()):
            key = (place.topic, place.queue_id)
            if key in self.audit.first_wrong and self.audit.has_queue(key):
                unit = self.audit.unit_of(place)
                # Of two records with one number dispatch takes the first.
                units = self.units.setdefault(key, {})
                units.setdefault(place.consume_queue_offset, unit)

    def note_unknown(self, losses: Losses, files: MappedFileQueue) -> None:
        """Note the first record of an inner batch: this store has no such queues."""
        if self.inner_batch_at >= 0:
            where = place_in(files, self.inner_batch_at)
            losses.note(where, "a record of a queue of inner batches")


def place_in(files: MappedFileQueue, offset: int) -> Place:
    """The file and byte of a phy_offset; the directory, if no file covers it."""
    file = files.find_mapped_file_by_offset(offset)
    if file is None:
        return Place(files.path, offset=offset)
    return Place(file.path, offset - file.file_from_offset, offset)


def goes_on(files: MappedFileQueue, end: int) -> bool:
    """Whether anything is written behind the log's end, or where a later file begins.

    Another program goes on right there. Its first message may be damaged, so as much is
    read as a message takes.
    """
    return any(
        _is_written(file, max(0, end - file.file_from_offset), _NEAR)
        for file in files.files
    )


def count_log(
    losses: Losses,
    files: MappedFileQueue,
    scan: LogScan,
    ours: range,
    *,
    crashed: bool,
) -> None:
    """Count what lies behind the log's end.

    After a crash, bytes there count only if intact records are among them.
    """
    records = 0
    behind: list[tuple[MappedFile, int]] = []
    for file in files.files:
        position = max(0, scan.end - file.file_from_offset)
        size = file.file_size - position
        if size <= 0 or not _is_written(file, position):
            continue
        behind.append((file, position))
        # The bytes at the end itself are what the log's reading stopped at.
        first = 1 if file.file_from_offset + position == scan.end else 0
        records += count_whole_records(file, position, first, ours)
    if records or (behind and not crashed):
        last = behind[-1][0].file_from_offset + _last_written(*behind[-1])
        losses.log_bytes, losses.records = last + 1 - scan.end, records
        why: str = scan.stopped_by
        if scan.stopped_by is Stop.MISSING_FILE:
            why += ", unless storePathCommitLog names another directory that has it"
        losses.note(place_in(files, scan.end), why)


def _is_written(file: MappedFile, position: int, most: int | None = None) -> bool:
    """Whether any byte from ``position`` on, in ``most`` chunks, is not zero."""
    return any(
        examined_with_zeros(file.examine, file.read, at, size, _has_written)
        for at, size in islice(_chunks(file, position), most)
    )


def _has_written(data: bytes, holes: Sequence[range]) -> bool:
    del holes  # they read as zeros
    return bool(data.rstrip(b"\0"))


def _chunks(file: MappedFile, position: int) -> Iterator[tuple[int, int]]:
    for at in range(position, file.file_size, _CHUNK):
        yield at, min(_CHUNK, file.file_size - at)


def _last_written(file: MappedFile, position: int) -> int:
    """The last byte from ``position`` on that is not zero; -1 if there is none."""
    last = -1
    for at, size in _chunks(file, position):
        data, _ = with_zeros(file.read, at, size)
        if stripped := data.rstrip(b"\0"):
            last = at + len(stripped) - 1
    return last


def count_queues(
    losses: Losses,
    queues: Mapping[QueueKey, ConsumeQueue],
    to_come: UnitsToCome,
    ends: Mapping[QueueKey, int | None],
    scan: LogScan,
    deleted: DeletedTopics,
    *,
    crashed: bool,
) -> None:
    """Count the units that a start would cut and dispatch would not build again.

    After a crash two kinds of units do not count: those that point past the end of the
    log, and those that are what a torn sector left of the unit that dispatch builds.
    """
    for key, queue in sorted(queues.items()):
        expected = to_come.units.get(key, {})
        dead_below = deleted.dead_below(*key) if deleted else 0
        lost = 0
        end = ends[key]
        if end is None:
            end = queue.first_unit_at_or_past(scan.read_from)
        for path, at, queue_offset, unit in _units_to_cut(queue, end):
            known = expected.get(queue_offset, b"")
            phy_offset, size, code = UNIT.unpack(unit)
            has_address = queue.has_ext and is_address(code)
            if unit == known or (has_address and unit[:_CODE_AT] == known[:_CODE_AT]):
                continue
            if size == BLANK_SIZE or phy_offset < dead_below:
                continue
            is_behind = scan.records and phy_offset >= scan.end and not known
            if crashed and (is_behind or _may_be_torn(unit, known)):
                continue
            lost += 1
            losses.note(Place(path, at), _why(key, unit, known))
        if lost:
            losses.queues += 1
            losses.units += lost


def _why(key: QueueKey, unit: bytes, known: bytes) -> str:
    """What is wrong with ``unit``; ``known`` is the unit of the record, b"" if none."""
    phy_offset, size, code = UNIT.unpack(unit)
    why = f"a unit of {size} bytes at offset {phy_offset}"
    if not known:
        return f"{why}, of which the log has no record"
    if unit[:_CODE_AT] != known[:_CODE_AT]:
        return why
    if is_address(code):
        return f"{why} leads to consumequeue_ext: set enable_consume_queue_ext"
    if key[0] == SCHEDULE_TOPIC:
        due = UNIT.unpack(known)[2]
        return (
            f"{why} is due at {code}, and at {due} by message_delay_level: give the "
            f"levels of the broker that wrote it"
        )
    return why


def _may_be_torn(unit: bytes, known: bytes) -> bool:
    """Whether the unit equals ``known`` but for bytes that are zero."""
    return bool(known) and all(a in (b, 0) for a, b in zip(unit, known, strict=True))


def _units_to_cut(
    queue: ConsumeQueue, end: int
) -> Iterator[tuple[str, int, int, bytes]]:
    """The units that a start would cut from queue_offset ``end`` on, but for zeros.

    Each as the file's path, the byte in it, the queue_offset and the unit's 20 bytes.
    """
    end = min(end, queue.recovered_units) * CQ_STORE_UNIT_SIZE
    for file in queue.mapped_files.files:
        base = file.file_from_offset
        for start in range(max(0, end - base), file.file_size, _WINDOW):
            size = min(_WINDOW, file.file_size - start)
            data, _ = with_zeros(file.read, start, size)
            if not any(data):
                continue
            for at in range(0, size, CQ_STORE_UNIT_SIZE):
                unit = data[at : at + CQ_STORE_UNIT_SIZE]
                if any(unit):
                    place = (base + start + at) // CQ_STORE_UNIT_SIZE
                    yield file.path, start + at, place, unit
