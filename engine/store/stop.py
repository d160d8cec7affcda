"""Stop: what a scan of the log met where no whole record follows."""

from __future__ import annotations

from enum import StrEnum


class Stop(StrEnum):
    """Why a scan went no further; its value says so to people.

    Compare members: the words are for messages alone.
    """

    NOWHERE = ""
    NO_FILES = "no files"
    END = "the end of the last file"
    MISSING_FILE = "a missing file"
    CUT_SHORT = "a file cut short"
    UNREADABLE = "bytes that cannot be read"
    HALF = "a record whose length is not its parts'"
    ZEROS = "bytes never written"
    ILLEGAL = "bytes that are no record"
