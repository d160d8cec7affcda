"""LogScan: what a start made of the log, before it changed anything."""

from __future__ import annotations

from dataclasses import dataclass

from engine.host.probe import probe
from engine.store.damage import DamagedRange
from engine.store.dispatch import DispatchRequest
from engine.store.message_codec import BLANK_SIZE_MIN

SCANNED_HALF = probe(
    "commit_log.recover.half", "a scan met a record whose length is not its parts'"
)
SCANNED_ZEROS = probe("commit_log.recover.zeros", "a scan met bytes never written")
SCANNED_ILLEGAL = probe("commit_log.recover.illegal", "a scan met what is no record")


@dataclass(frozen=True, slots=True)
class LogScan:
    """Where the log ends: everything in [start, end) is records and fillers.

    Of the files before ``read_from`` that is taken on trust, but for their first
    records, ``old_firsts``. ``newest_timestamp`` is that of what was read. What lies
    in ``damaged`` ranges is neither; they are empty unless they are served around.
    """

    start: int
    end: int
    newest_timestamp: int
    records: int
    stopped_by: str
    read_from: int = 0
    old_firsts: tuple[DispatchRequest, ...] = ()
    damaged: tuple[DamagedRange, ...] = ()


def why_stopped(request: DispatchRequest, window: bytes, at: int) -> str:
    """What a scan met at ``window[at:]`` that is no record."""
    if request.msg_size > 0:
        SCANNED_HALF.hit()
        return "a record whose length is not its parts'"
    if not any(window[at : at + BLANK_SIZE_MIN]):
        SCANNED_ZEROS.hit()
        return "bytes never written"
    SCANNED_ILLEGAL.hit()
    return "bytes that are no record"
