"""Aims: moves damage to bytes with a meaning, by the contents of the store's files.

``whereabouts`` estimates where a program's records will lie before it runs. Here the
files exist and are decoded, so damage can hit a field of the first record or the last,
the BLANK that closes a file, the last unit of a queue, a slot of the checkpoint, or two
fields of one record at once. The result is plain damage of a byte and a size, so it
replays without this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from crashmq.models.files.checkpoint import SLOT_POSITIONS
from crashmq.models.files.index import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE
from crashmq.models.files.log import LogFile
from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.files.queue_ext import EXT_UNIT_SIZE_MIN, starts_of_ext_units
from crashmq.models.files.record import MAGIC_BLANK, Bytes, Record
from crashmq.models.files.store_image import StoreImage
from crashmq.models.ops import Damage
from crashmq.scenarios.programs.chance import Chance
from crashmq.scenarios.programs.space import often
from crashmq.scenarios.programs.whereabouts import RECORD_FIELDS

AIMED = ("truncate", "zero", "flip", "repeat", "unreadable")
"""Kinds of damage that have a place."""

HEAD_SIZE = 8  # of a filler: its length and its magic
TORN_SIZE = 88  # of what may have been left of a record's header
_UNIT_FIELDS = ((0, 8), (8, 4), (12, 8))
_EXT_FIELDS = ((0, 2), (2, 8), (10, 8), (18, 2))
_ENTRY_FIELDS = ((0, 4), (4, 8), (12, 4), (16, 4))
_HEADER_FIELDS = ((0, 8), (8, 8), (16, 8), (24, 8), (32, 4), (36, 4))
_CHECKPOINT_FIELDS = ((0, 8), (8, 8), (16, 8), (24, 8), (32, 8))
_SLOT_FIELDS = (
    *((0, 4), (4, 4), (8, 8), (16, 8), (24, 8)),
    *((32, 4), (36, 4), (40, 8), (48, 4), (52, 4)),
)

SECOND_PART = 4  # one aim of so many hits another part of the same piece as well
Extent = Literal["rare", "all of the piece", "common"]
EXTENTS: tuple[Extent, ...] = often(("rare", 1), ("all of the piece", 1), ("common", 4))
"""How much goes: a field that is zero says something, so a whole one is common then;
of one that is inverted a byte is."""

Which = Literal["first", "last", "last but one", "any"]
WHICH: tuple[Which, ...] = often(
    ("first", 1), ("last", 1), ("last but one", 1), ("any", 2)
)
"""Those at a file's ends more often than those amid."""


class Part(NamedTuple):
    """Bytes of a file with one meaning."""

    at: int
    size: int


Piece: TypeAlias = tuple[Part, ...]
"""A record, a unit, a header: parts of which several may be damaged together."""


def aimed(
    damage: Damage, path: str, image: StoreImage, index_slots: int, chance: Chance
) -> tuple[Damage, ...]:
    """The damage, moved to bytes with a meaning; perhaps two damages at two places.

    Args:
        damage: what to do with the file at ``path``.
        path: a file of the image.
        image: the files as they are.
        index_slots: the number of slots of an index file.
        chance: decides where.
    """
    pieces = list(_pieces_of(path, image, index_slots))
    if not pieces or damage.kind not in AIMED:
        return (damage,)
    piece = _chosen(pieces, chance)
    first = _at(damage, piece, chance)
    if damage.kind == "truncate" or not chance.one_in(SECOND_PART):
        return (first,)
    other = replace(damage, kind=chance.pick(("zero", "flip")))
    return first, _at(other, piece, chance)


def _chosen(pieces: list[Piece], chance: Chance) -> Piece:
    number = chance.word()
    match chance.pick(WHICH):
        case "first":
            return pieces[0]
        case "last":
            return pieces[-1]
        case "last but one":
            return pieces[-2:][0]
        case "any":
            return pieces[number % len(pieces)]


def _at(damage: Damage, piece: Piece, chance: Chance) -> Damage:
    """The damage applied to a part of the piece, one byte of it, or all of it."""
    part = chance.pick(piece)
    inside = part.at + chance.below(part.size)
    if damage.kind in ("truncate", "unreadable"):
        at = inside if chance.coin() else part.at
        return replace(damage, at=at)
    byte = Part(inside, 1)
    common, rare = (byte, part) if damage.kind == "flip" else (part, byte)
    # What follows a piece is one of the same kind, as a rule.
    extent = chance.pick(EXTENTS)
    match "all of the piece" if damage.kind == "repeat" else extent:
        case "rare":
            return replace(damage, at=rare.at, size=rare.size)
        case "all of the piece":
            at = min(each.at for each in piece)
            end = max(each.at + each.size for each in piece)
            return replace(damage, at=at, size=end - at)
        case "common":
            return replace(damage, at=common.at, size=common.size)


def _pieces_of(path: str, image: StoreImage, index_slots: int) -> Iterator[Piece]:
    """The pieces of a file, front to back; the bytes past its end last."""
    data = image.files.get(path, b"")
    match path.split("/"):
        case ["commitlog", _]:
            for log_file in image.commit_log.files:
                if log_file.path == path:
                    yield from _pieces_of_log(log_file)
        case ["consumequeue", _, _, _]:
            units = [
                len(queue_file.units)
                for queue in image.consume_queues
                for queue_file in queue.files
                if queue_file.path == path
            ]
            yield from _run(data, _UNIT_FIELDS, UNIT_SIZE, sum(units) + 1)
        case ["consumequeue_ext", _, _, _]:
            for start in sorted(starts_of_ext_units(data)):
                end = min(len(data), start + EXT_UNIT_SIZE_MIN + 1)
                yield from _within(data, _EXT_FIELDS, start, end - 1)
        case ["index", _]:
            yield from _pieces_of_index(data, path, image, index_slots)
        case ["checkpoint"]:
            yield from _within(data, _CHECKPOINT_FIELDS, 0)
            for position in SLOT_POSITIONS:
                yield from _within(data, _SLOT_FIELDS, position)
        case _:
            yield from _within(data, ((0, len(data)),), 0)


def _pieces_of_log(file: LogFile) -> Iterator[Piece]:
    for record in file.records:
        yield _parts_of(record, file.base)
    at, left = file.end, file.limit - file.end
    if file.flaw is None and file.records:
        at = file.records[-1].end - file.base
        left = file.limit - at
    if bytes(file.data[at + 4 : at + HEAD_SIZE]) == MAGIC_BLANK.to_bytes(4, "big"):
        parts = [Part(at, 4), Part(at + 4, 4)]
        if left > HEAD_SIZE:
            # Nobody reads it, and yet all of it has to be there.
            parts.append(Part(at + HEAD_SIZE, left - HEAD_SIZE))
            parts.append(Part(file.limit - 1, 1))
        yield tuple(parts)
    elif left:
        yield from _within(file.data, ((0, 4), (4, 4), (0, TORN_SIZE)), at, file.limit)


def _parts_of(record: Record, base: int) -> Piece:
    start, body_size = record.phy_offset - base, len(record.body)
    names_size = 3 + len(record.topic.encode()) + len(record.properties_raw)
    parts = [Part(start + at, size) for at, size in RECORD_FIELDS]
    parts.append(Part(start + record.size - names_size, names_size))
    if body_size:
        parts.append(Part(start + record.size - names_size - body_size, body_size))
    return tuple(parts)


def _pieces_of_index(
    data: Bytes, path: str, image: StoreImage, slots: int
) -> Iterator[Piece]:
    yield from _within(data, _HEADER_FIELDS, 0)
    for file_path, file in image.index(slots).files:
        if file_path == path:
            for slot in sorted(file.written_slots):
                yield from _within(data, ((0, 4),), HEADER_SIZE + slot * SLOT_SIZE)
            begin = HEADER_SIZE + file.slot_num * SLOT_SIZE
            for number in range(1, file.written_entries + 1):
                yield from _within(data, _ENTRY_FIELDS, begin + number * ENTRY_SIZE)


def _run(
    data: Bytes, fields: tuple[tuple[int, int], ...], size: int, count: int
) -> Iterator[Piece]:
    for number in range(count):
        yield from _within(data, fields, number * size)


def _within(
    data: Bytes, fields: tuple[tuple[int, int], ...], start: int, end: int = 0
) -> Iterator[Piece]:
    """A piece, with those of its fields that lie within the file."""
    end = end or len(data)
    parts = [
        Part(start + at, min(size, end - start - at))
        for at, size in fields
        if start + at < end
    ]
    if parts:
        yield tuple(parts)
