"""What no crash can do to files that are only ever appended to.

Assumed: a sector of 512 bytes reaches the medium completely or not at all, appends are
written completely, space that was never written reads as zeros, and a file created
first exists before one created later. It follows:

- A sector that holds something later holds everything earlier in it, as written.
- A sector that holds one byte of a record holds all of that record's bytes in it.
- In a run of files none in the middle is missing or empty.

RocketMQ's recovery moves positions and erases nothing, so bytes past such a cut are
older than what replaced them. A break therefore only counts if the record after it was
stored no earlier than the record before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

from crashmq.models.files.log import LogFile, LogStop
from crashmq.models.files.queue import UNIT_SIZE, QueueFile, QueueImage, Unit
from crashmq.models.files.record import (
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    RECORD_SIZE_MIN,
    Bytes,
    Record,
)
from crashmq.models.laws.judged import Judged, was_cut_here

_SECTOR = 512
_HEAD_SIZE = 8
_MAGICS = tuple(n.to_bytes(4, "big") for n in (MAGIC_V1, MAGIC_V2, MAGIC_BLANK))
_SIZED = ("crc", "lengths", "properties", "phy_offset", "store_timestamp")


def proven_breaks(judged: Judged) -> Iterator[tuple[LogStop, Record]]:
    """Breaks that no crash can have made, each with an intact record after it."""
    log = judged.image.commit_log
    if not judged.whole_sectors or not judged.monotonic_clock:
        return
    if was_cut_here(judged.image):
        return
    newest = judged.image.newest_store_timestamp
    behind = [r for r in log.records_beyond if r.store_timestamp >= newest]
    places = [record.phy_offset for record in behind]
    whole = [record.phy_offset for record in log.records_beyond]
    files = {file.path: file for file in log.files}
    for stop in log.breaks:
        number = bisect_right(places, stop.phy_offset)
        file = files.get(stop.path)
        if file is None or number == len(behind):
            continue
        if _is_written(file, stop, whole):
            yield stop, behind[number]


def has_lost_a_file(judged: Judged) -> bool:
    """Whether a log file is missing although a later one exists."""
    return judged.whole_sectors and judged.image.commit_log.stop.kind == "missing_file"


def damaged_heads(judged: Judged) -> Iterator[LogStop]:
    """Log files that begin with bytes no store writes, not even in a torn write.

    A file is created full of zeros, and its first bytes are the first to be written.
    """
    log = judged.image.commit_log
    if not judged.whole_sectors:
        return
    for file in log.files:
        if file.end == 0 and len(file.data) == log.file_size and _is_no_head(file):
            yield LogStop(file.flaw or "end", file.path, 0, file.base, file.seen)


def unwritten_units(queue: QueueImage, units: Iterable[Unit]) -> tuple[Unit, ...]:
    """The units whose bytes no store writes, not even in a torn write.

    A torn unit is the first bytes of a unit, followed by zeros.
    """
    return tuple(
        [
            unit
            for unit in units
            if (
                unit.phy_offset < 0
                or unit.size < 0
                or 0 < unit.size < RECORD_SIZE_MIN
                or (unit.tags_code and not unit.size)
            )
            and _sector_of(queue, unit.queue_offset)
        ]
    )


def settled_units(
    queue: QueueImage, units: Iterable[Unit], exact: Iterable[int]
) -> set[int]:
    """The queue_offsets of ``units`` that have a later correct unit in their sector.

    Args:
        queue: the queue the units belong to.
        units: units of the queue, in any order.
        exact: the queue_offsets of units that agree with their records.
    """
    newest: dict[tuple[str, int], int] = {}
    for number in exact:
        sector = _sector_of(queue, number)
        if sector is not None:
            newest[sector] = max(number, newest.get(sector, number))
    found = set()
    for unit in units:
        sector = _sector_of(queue, unit.queue_offset)
        if sector is not None and unit.queue_offset < newest.get(sector, -1):
            found.add(unit.queue_offset)
    return found


def _is_no_head(file: LogFile) -> bool:
    if file.flaw == "phy_offset":
        return True  # asked of a record that is whole
    size = int.from_bytes(file.data[:4], "big", signed=True)
    magic = bytes(file.data[4:_HEAD_SIZE])
    if not any(magic):
        return size < 0
    written = magic.rstrip(b"\0")
    if not any(whole.startswith(written) for whole in _MAGICS):
        return True
    return not RECORD_SIZE_MIN <= size <= file.limit


def _sector_of(queue: QueueImage, queue_offset: int) -> tuple[str, int] | None:
    """The sector a unit lies in, as path and number; None if it spans two sectors."""
    file = _file_of(queue, queue_offset)
    if file is None:
        return None
    at = queue_offset * UNIT_SIZE - file.base
    first, last = at // _SECTOR, (at + UNIT_SIZE - 1) // _SECTOR
    return (file.path, first) if first == last else None


def _file_of(queue: QueueImage, queue_offset: int) -> QueueFile | None:
    at = queue_offset * UNIT_SIZE
    for file in queue.files:
        if file.base <= at < file.base + len(file.data):
            return file
    return None


def _is_written(file: LogFile, stop: LogStop, whole: list[int]) -> bool:
    """Whether every sector of the broken record was written, so that it is damage.

    Args:
        file: the log file of the break.
        stop: the break.
        whole: the phy_offsets at which intact records begin past the log's end, in
            order.
    """
    start = stop.position
    if start + _HEAD_SIZE > file.limit:
        return False
    number = bisect_right(whole, stop.phy_offset)
    if number < len(whole) and whole[number] < file.base + file.limit:
        following = whole[number] - file.base
        return _is_kept(file.data, start, following, has_next=True)
    end = start + _HEAD_SIZE
    if stop.kind in _SIZED:
        end = start + int.from_bytes(file.data[start : start + 4], "big")
    return _is_kept(file.data, start, min(end, file.limit), has_next=False)


def _is_kept(data: Bytes, start: int, end: int, *, has_next: bool) -> bool:
    """Whether no sector's part of [start, end) is all zeros, as if never written.

    ``has_next``: an intact record begins at ``end``.
    """
    is_shared = has_next and 0 < end % _SECTOR <= _SECTOR - _HEAD_SIZE
    bounds = [start, *range(start - start % _SECTOR + _SECTOR, end, _SECTOR)]
    if not is_shared:
        bounds.append(end)
    return all(any(data[first:last]) for first, last in pairwise(bounds))
