"""Reads a log past damaged ranges, and chooses a file to append to after them.

Below the durable mark everything was intact once, so what is not intact there was
damaged. A damaged range begins where reading stops. It ends at the next intact record,
recognised by its own phy_offset and its body's CRC, and at the mark or the end of the
file at the latest. Above the mark the log ends where it stops being intact, as ever.

No damaged file is appended to, and no damaged file below the mark is changed, so that
it can be examined, or replaced by a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from crashmq.engine.host.probe import probe
from crashmq.engine.store.damage import Damage, DamagedRange, Stop
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.log_scan import ALL_OURS, LogScan, RecordsMet
from crashmq.engine.store.logfile.mapped_file import MappedFile, file_name
from crashmq.engine.store.logfile.mapped_file_queue import MappedFileQueue
from crashmq.engine.store.message.message_codec import (
    check_message,
    encode_filler,
)
from crashmq.engine.store.unreadable import examined_with_zeros, with_zeros

_MAGIC_STARTS = b"\xda\xa3\x20"  # of both of a record's magics

FOUND = probe("scan_around.found", "a start met damage and serves around it")
FILE_MISSING = probe("scan_around.file_missing", "a file below the mark was missing")
RESYNCED = probe("scan_around.resynced", "an intact record was found behind damage")
TO_THE_END = probe(
    "scan_around.to_the_end", "damage reached its file's end or the mark"
)
CLOSED = probe("scan_around.closed", "a damaged last file was closed by a BLANK")
BEGUN = probe("scan_around.begun", "the log continues behind a missing first file")

Visit: TypeAlias = Callable[[DispatchRequest], None]
ScanFile: TypeAlias = Callable[[MappedFile, Visit, int], tuple[int, Stop]]


def scan_around(
    files: MappedFileQueue,
    bounds: tuple[int, int],
    damage: Damage,
    scan_file: ScanFile,
    visit: Visit,
    ours: range = ALL_OURS,
) -> LogScan:
    """Read a whole log, and continue after every damaged range.

    Args:
        files: the log's.
        bounds: log_min_offset and durable_offset of the mark.
        damage: receives each range before anything after it is visited.
        scan_file: reads the records of one file from a position on; returns where
            they end in it, and why.
        visit: called with each record, in log order.
        ours: the phy_offsets at which only this store can have begun a record.

    Raises:
        OSError: the medium could not be read.
    """
    met = RecordsMet(visit)
    FOUND.hit()
    end, why = _walk(files, bounds, damage, (scan_file, met.meet), ours)
    start = files.min_offset if files.files else end
    ranges = tuple(damage.ranges)
    return LogScan(
        start,
        end,
        met.newest,
        met.records,
        why,
        start,
        damaged=ranges,
        has_prop_crc=met.has_prop_crc,
        nul_until=met.nul_until,
    )


def _walk(
    files: MappedFileQueue,
    bounds: tuple[int, int],
    damage: Damage,
    reading: tuple[ScanFile, Visit],
    ours: range,
) -> tuple[int, Stop]:
    """Read file after file; return the phy_offset where the log ends, and why."""
    (at, durable), (scan_file, visit) = bounds, reading
    size = files.file_size
    while True:
        file = files.find_mapped_file_by_offset(at)
        if file is None:
            if at >= durable and files.files and at < files.min_offset:
                # What lies in front of all files has expired; the slot of the
                # checkpoint that says so has rotted.
                at = files.min_offset
                continue
            if at >= durable:
                return at, Stop.END
            FILE_MISSING.hit()
            later = [f.file_from_offset for f in files.files if f.file_from_offset > at]
            end = min([*later, durable - 1 - (durable - 1) % size + size])
            path = f"{files.path}/{file_name(at - at % size)}"
            damage.add(DamagedRange(at, end, path, Stop.MISSING_FILE))
            at = end
            continue
        position, why = scan_file(file, visit, at - file.file_from_offset)
        at = file.file_from_offset + position
        if position == size:
            continue
        if at >= durable:
            return at, why
        end = _end_of_damage(file, position, durable, ours)
        damage.add(DamagedRange(at, end, file.path, why))
        at = end


def _end_of_damage(file: MappedFile, position: int, durable: int, ours: range) -> int:
    """The end of a damaged range that begins at ``position`` of a file.

    At the latest ``durable``, which lies between two records: after it, broken bytes
    may be what a power loss left, and no later record counts. If the file is too short
    to have all bytes before ``durable``, the range extends to the file's end, so that
    it is neither changed nor appended to.
    """
    base = file.file_from_offset
    end = min(durable - base, file.file_size)
    if file.on_disk_size < end:
        end = file.file_size
    for at in whole_records(file, position, 1, ours):
        if at < end - position:
            RESYNCED.hit()
            return base + position + at
        break
    TO_THE_END.hit()
    return base + end


def whole_records(
    file: MappedFile, position: int, first: int, ours: range
) -> Iterator[int]:
    """Where intact records begin in a file, at ``position + first`` or later.

    A record counts if it contains its own phy_offset and its body's CRC is right. The
    places are counted from ``position``.
    """
    data, holes = with_zeros(file.read, position, file.file_size - position)
    yield from _whole_in(data, holes, file.file_from_offset + position, first, ours)


def count_whole_records(
    file: MappedFile, position: int, first: int, ours: range
) -> int:
    """How many ``whole_records`` would find; see ``File.examine``."""
    size, base = file.file_size - position, file.file_from_offset + position
    return examined_with_zeros(
        file.examine, file.read, position, size, _count_whole_in, base, first, ours
    )


def _count_whole_in(
    data: bytes, holes: Sequence[range], base: int, first: int, ours: range
) -> int:
    return sum(1 for _ in _whole_in(data, holes, base, first, ours))


def _whole_in(
    data: bytes, holes: Sequence[range], base: int, first: int, ours: range
) -> Iterator[int]:
    behind = first
    for at in _candidates(data, len(data), first):
        if at < behind:
            continue
        found = check_message(
            data,
            at,
            base + at,
            len(data) - at,
            check_crc=True,
            takes_nul=base + at not in ours,
        )
        record = range(at, at + found.msg_size)
        if found.success and found.msg_size > 0 and not _meets_any(record, holes):
            behind = record.stop
            yield at


def _meets_any(record: range, holes: Sequence[range]) -> bool:
    return any(_meet(record, hole) for hole in holes)


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


def _candidates(data: bytes, end: int, first: int = 1) -> Iterator[int]:
    """Where a record may begin, from ``first`` on and before ``end``, by its magic."""
    at = data.find(_MAGIC_STARTS, first + 4)
    while 0 <= at - 4 < end:
        yield at - 4
        at = data.find(_MAGIC_STARTS, at + 1)


def files_with(damage: Damage, file_size: int) -> frozenset[int]:
    """The first offsets of the files that have damage."""
    return frozenset([known.start - known.start % file_size for known in damage.ranges])


def files_cut_short(damage: Damage, file_size: int) -> frozenset[int]:
    """The first offsets of the files that are damaged at their end."""
    ends = [known.end for known in damage.ranges]
    return frozenset([end - file_size for end in ends if end % file_size == 0])


def end_behind(files: MappedFileQueue, damage: Damage, end: int) -> None:
    """Make the next append go to a file without damage.

    Raises:
        OSError: the disk failed; another start tries again.
    """
    if not files.files or files.files[-1].end_offset < end:
        BEGUN.hit()
        files.begin_at(end)
    last = files.files[-1]
    left = last.file_size - last.wrote
    if left and damage.meets(last.file_from_offset, last.end_offset):
        CLOSED.hit()
        last.append_declared(encode_filler(left), left)
