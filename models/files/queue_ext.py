"""The consumequeue_ext files: what filters need of messages, beside the units.

Layout of an entry (CqExtUnit), big-endian: size i16 | tags_code i64 | msg_store_time
i64 | size of the bit map i16, bit map. An address, which replaces the tags code in a
unit, is the least i64 plus the entry's byte offset.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from crashmq.models.files.record import Bytes

EXT_ADDRESS_MAX = -(1 << 31) - 1
EXT_UNIT_SIZE_MIN = 20
EXT_END_SIZE = 4  # of each file, never used for a unit
_UNIT = struct.Struct(">hqqh")


class ExtUnit(NamedTuple):
    """One entry, decoded."""

    tags_code: int
    msg_store_time: int
    bit_map: bytes


def ext_place(
    files: Mapping[str, Bytes], queue_name: str, address: int
) -> tuple[str, int] | None:
    """The file and byte of a queue's ext address; None if no file covers it.

    Args:
        files: of the store, by path.
        queue_name: ``topic/queue_id``.
        address: a tags code of at most ``EXT_ADDRESS_MAX``.
    """
    offset = address + (1 << 63)
    folder = f"consumequeue_ext/{queue_name}/"
    for path, data in files.items():
        name = path[len(folder) :]
        if path.startswith(folder) and name.isdecimal():
            at = offset - int(name)
            if 0 <= at <= len(data) - EXT_UNIT_SIZE_MIN:
                return path, at
    return None


def ext_files(files: Mapping[str, Bytes], queue_name: str) -> list[tuple[str, int]]:
    """The consumequeue_ext files of ``topic/queue_id`` with their bases, ascending."""
    folder = f"consumequeue_ext/{queue_name}/"
    names = [path for path in files if path.startswith(folder)]
    bases = [(path, path[len(folder) :]) for path in names]
    return sorted(
        [(path, int(name)) for path, name in bases if name.isdecimal()],
        key=lambda file: file[1],
    )


def ext_unit_at(
    files: Mapping[str, Bytes], queue_name: str, address: int
) -> ExtUnit | None:
    """The entry at an ext address of a queue; None if there is no entry."""
    place = ext_place(files, queue_name, address)
    return None if place is None else _unit_in(files[place[0]], place[1])


def ext_unit_size(data: Bytes, at: int) -> int:
    """The size field at a byte of a consumequeue_ext file; 0 past its end."""
    return int.from_bytes(data[at : at + 2], "big", signed=True)


def end_of_ext_units(data: Bytes) -> tuple[int, bool]:
    """Where a consumequeue_ext file's entries end, and whether an end mark follows."""
    at = 0
    while (size := ext_unit_size(data, at)) >= EXT_UNIT_SIZE_MIN:
        at += size
    return at, size == -1


def starts_of_ext_units(data: Bytes) -> frozenset[int]:
    """The bytes at which entries begin in a consumequeue_ext file.

    Behind a broken entry the next one that can be found counts.
    """
    starts, at = [0], 0
    while (size := ext_unit_size(data, at)) >= EXT_UNIT_SIZE_MIN:
        at += size
        starts.append(at)
    return frozenset(starts)


def _unit_in(data: Bytes, at: int) -> ExtUnit | None:
    size, tags_code, stored_at, bit_map_size = _UNIT.unpack_from(data, at)
    if bit_map_size < 0 or size != EXT_UNIT_SIZE_MIN + bit_map_size:
        return None
    bit_map = bytes(data[at + EXT_UNIT_SIZE_MIN : at + size])
    return ExtUnit(tags_code, stored_at, bit_map) if at + size <= len(data) else None
