"""A systematic family of damages to RocketMQ's store directories, each with a label.

A kind takes a store and a source of chance and gives a broken copy, with the places
where a finding may point. ``unseen`` says why nothing in a store at rest shows the
damage, and ``unproven`` why it may be a crash's doing where the abort file is there;
both are arguments about the format, and empty where the damage must be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from fsck_archive import Archive, Row

Place: TypeAlias = tuple[str, int | None]

ANY = "a crash loses or tears whatever was not synced, and nothing says what was"
TORN = "a sector that holds nothing of the record may have been lost"
LAST = "what is written last may be lost, or be left from an earlier cut"
NO_PROOF = "no CRC and no other field covers it"
LEFT_OVER = "RocketMQ moves positions when it cuts and erases nothing"
EXPIRED = "the first files go when they expire"
DELETED = "RocketMQ deletes a topic so, and a store without a broker keeps no list"
THROWN_AWAY = (
    "a start after a crash throws away what index_msg_timestamp does not cover"
)
BUFFERED = "what is in a write buffer has its time there, and goes with the crash"
CUT_ONCE = "a recovery cut here, and what it cut may have been later"
SECTOR = 512


@dataclass(frozen=True, slots=True)
class Broken:
    """A broken copy: its files, and where a finding may rightly point."""

    files: Mapping[str, bytes]
    places: tuple[Place, ...]
    unseen: str = ""
    unproven: str = ANY
    folders: tuple[str, ...] = ()  # left in consumequeue, without a file


Damage: TypeAlias = Callable[[Archive, Random], Broken | None]
KINDS: dict[str, Damage] = {}


def kind(name: str) -> Callable[[Damage], Damage]:
    def keep(damage: Damage) -> Damage:
        assert name not in KINDS
        KINDS[name] = damage
        return damage

    return keep


def written(
    files: Mapping[str, bytes], path: str, at: int, data: bytes
) -> dict[str, bytes]:
    """The files with ``data`` over those bytes of one."""
    old = files[path]
    assert 0 <= at <= len(old) - len(data)
    return {**files, path: old[:at] + data + old[at + len(data) :]}


def flipped(
    files: Mapping[str, bytes], path: str, at: int, bit: int
) -> dict[str, bytes]:
    """The files with one bit turned; bits count from ``at``'s highest on."""
    byte = files[path][at + bit // 8] ^ (0x80 >> bit % 8)
    return written(files, path, at + bit // 8, bytes([byte]))


def spot(store: Archive, rng: Random, *, body: bool = False) -> Row:
    """A record with records of its file before and behind it."""
    rows = [r for r in store.rows[3:-3] if not body or r["body_size"] >= 8]
    return rng.choice(rows)


def torn(files: Mapping[str, bytes], path: str, start: int, end: int) -> str:
    """Why a crash may have made what lies at [start, end) of an appended file.

    ``end`` is where something whole begins, and shows its sector to be written.
    """
    is_shared = 0 < end % SECTOR <= SECTOR - 8
    return torn_part(files[path], start, end - end % SECTOR if is_shared else end)


def torn_head(files: Mapping[str, bytes], path: str, at: int) -> str:
    """The same of a filler, whose eight bytes have nothing behind them."""
    return torn_part(files[path], at, at + 8)


def torn_part(data: bytes, start: int, end: int) -> str:
    """Whether a sector's part of [start, end) holds nothing, and so may be lost."""
    while start < end:
        following = min(start - start % SECTOR + SECTOR, end)
        if not any(data[start:following]):
            return TORN
        start = following
    return ""


def of_record(
    store: Archive, row: Row, files: Mapping[str, bytes], unseen: str = ""
) -> Broken:
    """A record is not whole any more, and the one behind it is."""
    path, start = store.place(row)
    after = store.rows[store.rows.index(row) + 1]
    is_last = store.place(after)[0] != path
    end = start + row["size"]
    unproven = TORN if is_last else torn(files, path, start, end)
    return Broken(files, at_record(store, row), unseen, unproven)


def unsettled(store: Archive, row: Row) -> str:
    """Why a crash may have kept a later unit of the queue and lost this one."""
    path, at = store.unit(row)
    later = at + 20
    while later % SECTOR > SECTOR - 20:
        later += 20
    is_there = any(store.files[path][later : later + 20])
    is_shared = at // SECTOR == (later + 19) // SECTOR and at % SECTOR <= SECTOR - 20
    return "" if is_there and is_shared else LAST


def of_pair(store: Archive, row: Row) -> str:
    """The same of a unit and the one behind it."""
    path, at = store.unit(row)
    is_third = any(store.files[path][at + 40 : at + 60])
    is_shared = at % SECTOR <= SECTOR - 60
    return "" if is_third and is_shared else LAST


def is_expired(store: Archive, path: str, entry_at: int) -> bool:
    """Whether the record of an index entry went with its log file."""
    at = int.from_bytes(store.files[path][entry_at + 4 : entry_at + 12], "big")
    return at < int(store.rows[0]["phy_offset"])


def at_record(store: Archive, row: Row, *, unit: bool = False) -> tuple[Place, ...]:
    """The record's own place, and that of its unit."""
    return (store.place(row), store.unit(row)) if unit else (store.place(row),)


def is_covered(store: Archive, row: Row) -> bool:
    """Whether a CRC covers the whole record."""
    return store.kind == "crc" and b"__CRC32#" in store.properties(row)
