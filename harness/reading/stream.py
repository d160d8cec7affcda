"""The log of a store as a stream of records and gaps, one at a time.

Records are not kept after they were yielded, so a log of any size is read in the memory
of one record. Each part has its place; parts come in log order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from crashmq.models.files.log import (
    LogFile,
    common_size,
    first_nonzero,
    next_record,
    with_misnamed,
)
from crashmq.models.files.places import base_of
from crashmq.models.files.record import BadRecord, Bytes, Record, parse_record
from crashmq.models.files.sparse import let_go

Tell: TypeAlias = Callable[[str, int, int], None]


def tell_nobody(what: str, done: int, total: int) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes [start, end) of the log, in phy_offsets, that hold no whole record.

    ``why`` is what is wrong at their beginning. ``is_written``: not all are zero.
    ``at_end``: no record follows in their file, so a BLANK belongs there.
    """

    path: str
    start: int
    end: int
    why: str
    is_written: bool
    at_end: bool


@dataclass(frozen=True, slots=True)
class LogPiece:
    """One log file: ``base`` is its first phy_offset, ``limit`` its length in use."""

    path: str
    base: int
    data: Bytes
    limit: int


def log_pieces(files: Mapping[str, Bytes]) -> tuple[list[LogPiece], int]:
    """The log files in order, and the size of each in bytes."""
    named: dict[int, tuple[str, Bytes]] = {}
    odd: dict[str, Bytes] = {}
    for path, data in files.items():
        folder, _, name = path.partition("/")
        if folder == "commitlog" and (base := base_of(name)) is not None:
            named[base] = path, data
        elif folder == "commitlog":
            odd[path] = data
    by_base = with_misnamed(named, odd)
    bases = sorted(by_base)
    size = common_size(bases, [len(by_base[base][1]) for base in bases])
    by_base = _as_their_records_say(by_base, size)
    found = [(base, *by_base[base]) for base in sorted(by_base)]
    pieces = [LogPiece(p, b, d, min(len(d), size)) for b, p, d in found]
    return pieces, size


def _as_their_records_say(
    by_base: Mapping[int, tuple[str, Bytes]], size: int
) -> dict[int, tuple[str, Bytes]]:
    """Files with a base that no file of that size has get the one of their records."""
    found = dict(by_base)
    for base, (_, data) in by_base.items():
        if size and base % size:
            with suppress(BadRecord):
                told = parse_record(data, 0, len(data), None, takes_nul=True).phy_offset
                if told % size == 0 and told not in found:
                    found[told] = found.pop(base)
    return found


def records_in(
    files: Mapping[str, Bytes], tell: Tell = tell_nobody
) -> Iterator[Record | Gap]:
    """Every whole record of a log, and the gaps between them."""
    pieces, size = log_pieces(files)
    expected = pieces[0].base if pieces else 0
    for number, piece in enumerate(pieces):
        tell("reading log files", number, len(pieces))
        if piece.base > expected and size:
            path = f"commitlog/{expected:020d}"
            beside = [one for one in files if one.startswith(path)]
            why = f", but {beside[0]} may hold it" if beside else ""
            yield Gap(path, expected, piece.base, f"no such file{why}", False, True)
        expected = max(expected, piece.base + size)
        yield from _parts_of(piece, size)
        let_go(piece.data)


def _parts_of(piece: LogPiece, size: int) -> Iterator[Record | Gap]:
    data, base, limit = piece.data, piece.base, piece.limit
    position = 0
    while position < limit:
        try:
            record = parse_record(
                data, position, limit, base + position, takes_nul=True
            )
            yield record
            position += record.size
        except BadRecord as bad:
            if bad.kind == "filler" and _reaches_end(data, position, limit):
                if limit < size:
                    yield _gap(piece, limit, size, "the file is too short")
                return
            file = LogFile(
                piece.path, base, data, limit, (), position, bad.kind, "", (), True
            )
            following = next_record(file, position + 1)
            end = following if following >= 0 else size
            yield _gap(piece, position, end, bad.seen, at_end=following < 0)
            if following < 0:
                return
            position = following
    if limit < size:
        yield _gap(piece, limit, size, "the file is too short")


def _reaches_end(data: Bytes, position: int, limit: int) -> bool:
    length = int.from_bytes(data[position : position + 4], "big", signed=True)
    return length == limit - position


def _gap(
    piece: LogPiece, start: int, end: int, why: str, *, at_end: bool = True
) -> Gap:
    is_written = first_nonzero(piece.data, start) < min(end, len(piece.data))
    return Gap(
        piece.path, piece.base + start, piece.base + end, why, is_written, at_end
    )


def record_at(files: Mapping[str, Bytes], phy_offset: int) -> Record | None:
    """The whole record that begins at a phy_offset; None if none does."""
    pieces, _ = log_pieces(files)
    for piece in pieces:
        if piece.base <= phy_offset < piece.base + piece.limit:
            position = phy_offset - piece.base
            try:
                return parse_record(
                    piece.data, position, piece.limit, phy_offset, takes_nul=True
                )
            except BadRecord:
                return None
    return None
