"""LogScan: what a start made of the log, before it changed anything."""

from __future__ import annotations

from dataclasses import dataclass

from engine.store.dispatch import DispatchRequest


@dataclass(frozen=True, slots=True)
class LogScan:
    """Where the log ends: everything in [start, end) is records and fillers.

    Of the files before ``read_from`` that is taken on trust, but for their first
    records, ``old_firsts``. ``newest_timestamp`` is that of what was read.
    """

    start: int
    end: int
    newest_timestamp: int
    records: int
    stopped_by: str
    read_from: int = 0
    old_firsts: tuple[DispatchRequest, ...] = ()
