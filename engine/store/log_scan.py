"""LogScan: what a start has read of the log, before it changes anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from crashmq.engine.host.probe import probe
from crashmq.engine.store.damage import DamagedRange, Stop
from crashmq.engine.store.dispatch import DispatchRequest
from crashmq.engine.store.logfile.mapped_file import MappedFile
from crashmq.engine.store.message.message_codec import (
    BLANK_SIZE_MIN,
    SEEN_BEHIND,
    check_message,
    ends_with_crc,
    size_beyond,
)
from crashmq.engine.store.unreadable import examined

SCANNED_HALF = probe(
    "commit_log.recover.half",
    "a scan met a record whose length disagrees with its parts",
)
SCANNED_ZEROS = probe("commit_log.recover.zeros", "a scan met bytes never written")
SCANNED_ILLEGAL = probe(
    "commit_log.recover.illegal", "a scan met bytes that are no record"
)

OFFSET_MAX = 1 << 62  # no phy_offset comes near it
ALL_OURS = range(OFFSET_MAX)
NONE_OURS = range(0)

_STOPS = {
    Stop.HALF: SCANNED_HALF,
    Stop.ZEROS: SCANNED_ZEROS,
    Stop.ILLEGAL: SCANNED_ILLEGAL,
}


@dataclass(frozen=True, slots=True)
class LogScan:
    """The result of a scan: the phy_offsets [start, end) hold records and BLANKs.

    Attributes:
        newest_timestamp: the highest store time that was read, in milliseconds.
        records: how many were read.
        stopped_by: what lies at ``end``.
        read_from: of files that end before this phy_offset only the first record was
            read.
        old_firsts: these first records.
        damaged: ranges within [start, end) without records or BLANKs; empty unless the
            store serves around damage.
        has_prop_crc: whether the last record ends with a CRC over all of it.
        nul_until: the end of the last record with a NUL in its properties, which this
            store never writes; 0 if there is none.
    """

    start: int
    end: int
    newest_timestamp: int
    records: int
    stopped_by: Stop
    read_from: int = 0
    old_firsts: tuple[DispatchRequest, ...] = ()
    damaged: tuple[DamagedRange, ...] = ()
    has_prop_crc: bool = False
    nul_until: int = 0


@dataclass(slots=True)
class RecordsMet:
    """What a scan has noted of the records that it read, in log order.

    Attributes:
        visit: called with each record.
        newest: the highest store time, in milliseconds.
        records: how many there were.
        last: the properties of the last record, as stored.
        nul_until: the end of the last record with a NUL in its properties; 0: none.
    """

    visit: Callable[[DispatchRequest], None]
    newest: int = 0
    records: int = 0
    last: bytes = b""
    nul_until: int = 0

    def meet(self, request: DispatchRequest) -> None:
        """Note one record, and pass it to ``visit``."""
        self.newest = max(self.newest, request.store_timestamp)
        self.records += 1
        self.last = request.properties
        if 0 in self.last:
            self.nul_until = request.commit_log_offset + request.msg_size
        self.visit(request)

    @property
    def has_prop_crc(self) -> bool:
        """As in ``LogScan``."""
        return ends_with_crc(self.last)


class FoundRecords(NamedTuple):
    """The records found in a part of a log file.

    Attributes:
        records: the intact ones, one directly after the other.
        size: bytes of all of them.
        wanted: bytes to read for the next record, if it is not all in this part; else
            0.
        has_filler: whether a BLANK follows them.
        stopped_by: what follows them, if it is neither a record nor a BLANK.
    """

    records: tuple[DispatchRequest, ...] = ()
    size: int = 0
    wanted: int = 0
    has_filler: bool = False
    stopped_by: Stop = Stop.NOWHERE


def look_at(
    file: MappedFile,
    position: int,
    size: int,
    wanted: int,
    *,
    prop_crc: bool,
    ours: range,
) -> FoundRecords:
    """``records_in`` for ``size`` bytes of a file from ``position`` on.

    Raises:
        OSError: the read failed, and not because of an unreadable sector (EIO).
    """
    return examined(
        file.examine,
        file.read,
        position,
        size,
        records_in,
        file.file_from_offset + position,
        file.file_size - position,
        wanted,
        prop_crc,
        ours,
    )


def records_in(
    window: bytes,
    phy_offset: int,
    left_in_file: int,
    wanted: int,
    prop_crc: bool,
    ours: range,
    /,
) -> FoundRecords:
    """The intact records at the beginning of ``window``.

    Args:
        window: bytes of one log file.
        phy_offset: where the window begins in the log.
        left_in_file: bytes from there to the end of the file.
        wanted: how many bytes the window must have; fewer mean an unreadable sector.
        prop_crc: check the CRC over all of a record, where a record has one.
        ours: the phy_offsets at which only this store can have begun a record; records
            at others may have NULs in their properties.
    """
    if len(window) < wanted:
        return FoundRecords(stopped_by=Stop.UNREADABLE)
    records: list[DispatchRequest] = []
    at = 0
    while at < left_in_file:
        left = left_in_file - at
        takes_nul = phy_offset + at not in ours
        request = check_message(
            window,
            at,
            phy_offset + at,
            left,
            check_crc=True,
            prop_crc=prop_crc,
            takes_nul=takes_nul,
        )
        if takes_nul and (needed := _behind_nul(window, at, left)):
            return FoundRecords(tuple(records), at, needed)
        if request.success and request.msg_size > 0:
            records.append(request)
            at += request.msg_size
        elif request.success:
            return FoundRecords(tuple(records), at, has_filler=True)
        elif wanted := size_beyond(window, at, left):
            return FoundRecords(tuple(records), at, wanted)
        else:
            why = why_stopped(request, window, at)
            return FoundRecords(tuple(records), at, stopped_by=why)
    return FoundRecords(tuple(records), at)


def _behind_nul(window: bytes, at: int, left: int) -> int:
    """How many bytes are needed to tell a record's last NUL from a loss; 0: no more."""
    size = int.from_bytes(window[at : at + 4], "big", signed=True)
    end, needed = at + size, min(size + SEEN_BEHIND, left)
    if not 0 < size <= left or not end <= len(window) < at + needed:
        return 0
    return 0 if window[end - 1] else needed


def why_stopped(request: DispatchRequest, window: bytes, at: int) -> Stop:
    """Why no intact record begins at ``window[at:]``."""
    if request.msg_size > 0:
        return Stop.HALF
    is_written = any(window[at : at + BLANK_SIZE_MIN])
    return Stop.ILLEGAL if is_written else Stop.ZEROS


def noted(why: Stop) -> Stop:
    """Hit the probe of this reason, and return the reason."""
    if why in _STOPS:
        _STOPS[why].hit()
    return why
