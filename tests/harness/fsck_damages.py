"""A systematic family of damages to RocketMQ's store directories, each with a label.

A kind takes a store and a source of chance and gives a broken copy, with the places
where a finding may point. ``unseen`` says why nothing in a store at rest shows the
damage, and ``unproven`` why it may be a crash's doing where the abort file is there;
both are arguments about the format, and empty where the damage must be seen.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from fsck_archive import INDEX_SLOTS, Archive, Row

Place: TypeAlias = tuple[str, int | None]

ANY = "a crash loses or tears whatever was not synced, and nothing says what was"
TORN = "a sector that ends in zeros may have been lost or torn"
LAST = "what is written last may be lost, or be left from an earlier cut"
NO_PROOF = "no CRC and no other field covers it"
LEFT_OVER = "RocketMQ moves positions when it cuts and erases nothing"
EXPIRED = "the first files go when they expire"
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
    ends = range(start - start % SECTOR + SECTOR, end, SECTOR)
    is_shared = 0 < end % SECTOR <= SECTOR - 8
    last = () if is_shared else (end,)
    return TORN if any(not files[path][at - 1] for at in (*ends, *last)) else ""


def torn_head(files: Mapping[str, bytes], path: str, at: int) -> str:
    """The same of a filler, whose eight bytes have nothing behind them."""
    ends = (*range(at - at % SECTOR + SECTOR, at + 8, SECTOR), at + 8)
    return TORN if any(not files[path][end - 1] for end in ends) else ""


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


FIELD_LABELS = {
    "size": "",
    "magic": "",
    "body_crc": "",
    "queue_id": "",
    "flag": NO_PROOF,
    "queue_offset": "",
    "phy_offset": "",
    "born_timestamp": NO_PROOF,
    "born_host": NO_PROOF,
    "store_host": NO_PROOF,
    "prepared_transaction_offset": "",
    "body_length": "",
    "body": "",
    "topic_length": "",
    "topic": "",
    "properties_length": "",
}
# A record with another of these is as whole as before: no CRC covers them.
WHOLE = ("queue_id", "queue_offset", "topic", "prepared_transaction_offset")


def field_kind(name: str) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        row = spot(store, rng, body=name == "body")
        field = store.fields(row)[name]
        path, start = store.place(row)
        bit = rng.randrange(8 * field.size)
        files = flipped(store.files, path, start + field.at, bit)
        if name in WHOLE and not is_covered(store, row):
            places = at_record(store, row, unit=True)
            proof = (
                "" if name == "prepared_transaction_offset" else unsettled(store, row)
            )
            return Broken(files, places, FIELD_LABELS[name], proof)
        unseen = "" if is_covered(store, row) else FIELD_LABELS[name]
        return of_record(store, row, files, unseen)

    return damage


for _name in FIELD_LABELS:
    KINDS[f"record: a bit of {_name}"] = field_kind(_name)


def bits_kind(name: str, bits: tuple[int, ...], unseen: str, *, how: str) -> Damage:
    """A bit of a field, counted from its lowest.

    ``how``: the record is then ``broken``, or whole and ``odd``, or whole and
    ``unlisted``, so that its unit is one too many.
    """

    def damage(store: Archive, rng: Random) -> Broken | None:
        row = spot(store, rng, body=True)
        field = store.fields(row)[name]
        path, start = store.place(row)
        bit = 8 * field.size - 1 - rng.choice(bits)
        files = flipped(store.files, path, start + field.at, bit)
        if is_covered(store, row) or how == "broken":
            return of_record(store, row, files)
        unproven = unsettled(store, row) if how == "unlisted" else ""
        places = at_record(store, row, unit=how == "unlisted")
        return Broken(files, places, unseen, unproven)

    return damage


KINDS |= {
    "record: sys_flag, compression or commit": bits_kind(
        "sys_flag", (0, 1, 3, 6, 8, 9, 10), NO_PROOF, how="odd"
    ),
    "record: sys_flag, prepared": bits_kind("sys_flag", (2,), "", how="unlisted"),
    "record: sys_flag, inner batch": bits_kind("sys_flag", (7,), "", how="unlisted"),
    "record: sys_flag, a host's length": bits_kind(
        "sys_flag", (4, 5), "", how="broken"
    ),
    "record: sys_flag, no bit of RocketMQ's": bits_kind(
        "sys_flag", tuple(range(11, 32)), "", how="odd"
    ),
    "record: store_timestamp, years": bits_kind(
        "store_timestamp", tuple(range(37, 64)), "", how="odd"
    ),
    "record: reconsume_times, its sign": bits_kind(
        "reconsume_times", (31,), "", how="odd"
    ),
    "record: reconsume_times": bits_kind(
        "reconsume_times", tuple(range(31)), NO_PROOF, how="odd"
    ),
}


def property_kind(name: bytes, unseen: str, *, indexed: bool = False) -> Damage:
    """A letter of a property's value, changed for another letter."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        rows = [r for r in store.rows[3:-3] if name + b"\x01" in store.properties(r)]
        if not rows:
            return None
        row = rng.choice(rows)
        raw = store.properties(row)
        start = raw.index(name + b"\x01") + len(name) + 1
        value = raw[start : raw.find(b"\x02", start) % (len(raw) + 1)]
        letters = [n for n, byte in enumerate(value) if 65 <= byte & 0xDF <= 90]
        if not letters:
            return None
        at = start + rng.choice(letters)
        path, begin = store.place(row)
        at += begin + store.fields(row)["properties"].at
        places = at_record(store, row, unit=True)
        if indexed:
            places += tuple((path, None) for path in store.index)
        changed = written(store.files, path, at, bytes([store.files[path][at] ^ 0x01]))
        if is_covered(store, row):
            return of_record(store, row, changed)
        unproven = THROWN_AWAY if indexed else unsettled(store, row)
        return Broken(changed, places, unseen, unproven)

    return damage


KINDS |= {
    "record: a letter of TAGS": property_kind(b"TAGS", ""),
    "record: a letter of KEYS": property_kind(b"KEYS", "", indexed=True),
    "record: a letter of a user's property": property_kind("买家".encode(), NO_PROOF),
}


@kind("record: a separator of the properties")
def lose_separator(store: Archive, rng: Random) -> Broken | None:
    rows = [r for r in store.rows[3:-3] if b"\x01" in store.properties(r)]
    row = rng.choice(rows)
    path, start = store.place(row)
    at = start + store.fields(row)["properties"].at
    hits = [m.start() for m in re.finditer(b"\x01", store.properties(row))]
    changed = written(store.files, path, at + rng.choice(hits), b"\x03")
    if is_covered(store, row):
        return of_record(store, row, changed)
    return Broken(changed, at_record(store, row, unit=True), "", "")


def zeros_kind(size: int) -> Damage:
    """An aligned range of the log between records, all of it lost."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        row = spot(store, rng)
        path, start = store.place(row)
        at = start - start % size
        inside = [r for r in store.rows if store.place(r)[0] == path]
        first = next(r for r in inside if store.place(r)[1] + r["size"] > at)
        if not any(store.files[path][at : at + size]):
            return None
        changed = written(store.files, path, at, bytes(size))
        return Broken(changed, at_record(store, first))

    return damage


KINDS |= {f"log: {size} bytes of zeros": zeros_kind(size) for size in (512, 4096)}


@kind("log: a record's first bytes zeroed")
def zero_head(store: Archive, rng: Random) -> Broken | None:
    row = spot(store, rng)
    return of_record(store, row, written(store.files, *store.place(row), bytes(8)))


@kind("log: a record zeroed")
def zero_record(store: Archive, rng: Random) -> Broken | None:
    row = spot(store, rng)
    changed = written(store.files, *store.place(row), bytes(row["size"]))
    return of_record(store, row, changed)


@kind("log: a record copied over the next")
def copy_over(store: Archive, rng: Random) -> Broken | None:
    number = rng.randrange(3, len(store.rows) - 4)
    row, after = store.rows[number : number + 2]
    path, start = store.place(row)
    other, at = store.place(after)
    data = store.files[path][start : start + row["size"]]
    if row["size"] > after["size"]:
        return None
    return of_record(store, after, written(store.files, other, at, data))


@kind("log: a whole record put twice")
def forge_copy(store: Archive, rng: Random) -> Broken | None:
    """Behind the log's end, its own place made right: nobody gives a number twice."""
    row, last = spot(store, rng, body=True), store.rows[-1]
    path, at = store.place(last)
    at += last["size"]
    if is_covered(store, row) or at + row["size"] + 8 > len(store.files[path]):
        return None
    own, start = store.place(row)
    base = int(path.split("/")[1])
    copy = bytearray(store.files[own][start : start + row["size"]])
    copy[28:36] = (base + at).to_bytes(8, "big")
    return Broken(written(store.files, path, at, bytes(copy)), ((path, at),), "", "")


@kind("log: garbage behind its end")
def garbage_behind(store: Archive, rng: Random) -> Broken | None:
    path, at = store.place(store.rows[-1])
    at += store.rows[-1]["size"]
    changed = written(store.files, path, at, rng.randbytes(64))
    return Broken(changed, ((path, at),), LEFT_OVER)


@kind("log: the last record's body")
def damage_last(store: Archive, rng: Random) -> Broken | None:
    row = store.rows[-1]
    field = store.fields(row)["body"]
    path, start = store.place(row)
    at = start + field.at + rng.randrange(field.size)
    changed = written(store.files, path, at, bytes([store.files[path][at] ^ 0x55]))
    return Broken(changed, at_record(store, row))


@kind("log: a filler's size")
def filler_size(store: Archive, rng: Random) -> Broken | None:
    path = rng.choice(store.log[:-1])
    at = store.filler(path)
    changed = flipped(store.files, path, at, rng.randrange(32))
    return Broken(changed, ((path, at),), "", torn_head(changed, path, at))


@kind("log: a filler's magic")
def filler_magic(store: Archive, rng: Random) -> Broken | None:
    path = rng.choice(store.log[:-1])
    at = store.filler(path)
    changed = flipped(store.files, path, at + 4, rng.randrange(32))
    return Broken(changed, ((path, at),), "", torn_head(changed, path, at))


@kind("unit: a unit more than there are records")
def unit_more(store: Archive, rng: Random) -> Broken | None:
    """It points at a record of another number."""
    path = rng.choice(store.queues)
    data = store.files[path]
    last = [n for n in range(0, len(data), 20) if any(data[n : n + 20])][-1:]
    if not last or last[0] + 20 >= len(data):
        return None
    at = last[0]
    changed = written(store.files, path, at + 20, data[at : at + 20])
    return Broken(changed, ((path, at + 20),), "", LAST)


def unit_kind(start: int, size: int) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        row = spot(store, rng)
        path, at = store.unit(row)
        if path not in store.files:
            return None
        bit = rng.randrange(8 * size)
        changed = flipped(store.files, path, at + start, bit)
        return Broken(changed, ((path, at),), "", unsettled(store, row))

    return damage


KINDS |= {
    "unit: a bit of phy_offset": unit_kind(0, 8),
    "unit: a bit of size": unit_kind(8, 4),
    "unit: a bit of tags_code": unit_kind(12, 8),
}


@kind("unit: zeroed")
def zero_unit(store: Archive, rng: Random) -> Broken | None:
    row = spot(store, rng)
    path, at = store.unit(row)
    changed = written(store.files, path, at, bytes(20))
    return Broken(changed, ((path, at),), "", unsettled(store, row))


@kind("unit: the queue's last zeroed")
def zero_last_unit(store: Archive, rng: Random) -> Broken | None:
    last = {(row["topic"], row["queue_id"]): row for row in store.rows}
    path, at = store.unit(rng.choice([*last.values()]))
    changed = written(store.files, path, at, bytes(20))
    return Broken(changed, ((path, at),), "", LAST)


@kind("unit: two neighbours exchanged")
def swap_units(store: Archive, rng: Random) -> Broken | None:
    row = spot(store, rng)
    path, at = store.unit(row)
    data = store.files[path]
    pair = data[at : at + 40]
    if len(pair) < 40 or not any(pair[20:]):
        return None
    changed = written(store.files, path, at, pair[20:] + pair[:20])
    return Broken(changed, ((path, at), (path, at + 20)), "", of_pair(store, row))


@kind("unit: doubled over its neighbour")
def double_unit(store: Archive, rng: Random) -> Broken | None:
    row = spot(store, rng)
    path, at = store.unit(row)
    data = store.files[path]
    if len(data) < at + 40 or not any(data[at + 20 : at + 40]):
        return None
    changed = written(store.files, path, at + 20, data[at : at + 20])
    return Broken(changed, ((path, at + 20),), "", of_pair(store, row))


@kind("queue: a sector of zeros")
def zero_sector(store: Archive, rng: Random) -> Broken | None:
    path, at = store.unit(spot(store, rng))
    at -= at % 512
    size = min(512, len(store.files[path]) - at)
    first = at - at % 20
    changed = written(store.files, path, at, bytes(size))
    places = tuple((path, n) for n in range(first, at + size, 20))
    return Broken(changed, places)


def header_kind(name: str, at: int, size: int) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        path = rng.choice(store.index)
        changed = flipped(store.files, path, at, rng.randrange(8 * size))
        unseen = ""
        if name == "begin_timestamp" and is_expired(store, path, store.entry(1)):
            unseen = "the record of that time has expired"
        return Broken(changed, ((path, at),), unseen, THROWN_AWAY)

    return damage


KINDS |= {
    f"index: a bit of the header's {name}": header_kind(name, at, size)
    for name, at, size in (
        *(("begin_timestamp", 0, 8), ("end_timestamp", 8, 8)),
        *(("begin_phy_offset", 16, 8), ("end_phy_offset", 24, 8)),
        *(("slot_count", 32, 4), ("index_count", 36, 4)),
    )
}


def entry_kind(start: int, size: int) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        path = rng.choice(store.index)
        at = store.entry(rng.randint(1, store.entries(path)))
        changed = flipped(store.files, path, at + start, rng.randrange(8 * size))
        unseen = ""
        if start < 16 and is_expired(store, path, at):
            unseen = "an entry of an expired record is nobody's"
        return Broken(changed, ((path, at),), unseen, THROWN_AWAY)

    return damage


KINDS |= {
    "index: a bit of an entry's key_hash": entry_kind(0, 4),
    "index: a bit of an entry's phy_offset": entry_kind(4, 8),
    "index: a bit of an entry's seconds": entry_kind(12, 4),
    "index: a bit of an entry's link": entry_kind(16, 4),
}


@kind("index: a chain that loops")
def index_loop(store: Archive, rng: Random) -> Broken | None:
    path = rng.choice(store.index)
    number = rng.randint(1, store.entries(path))
    at = store.entry(number)
    changed = written(store.files, path, at + 16, struct.pack(">i", number))
    return Broken(changed, ((path, at),), "", THROWN_AWAY)


@kind("index: a slot")
def index_slot(store: Archive, rng: Random) -> Broken | None:
    path = rng.choice(store.index)
    at = 40 + 4 * rng.randrange(INDEX_SLOTS)
    changed = flipped(store.files, path, at, rng.randrange(32))
    return Broken(changed, ((path, at),), "", THROWN_AWAY)


@kind("index: 512 bytes of zeros")
def zero_index(store: Archive, rng: Random) -> Broken | None:
    path = rng.choice(store.index)
    at = store.entry(rng.randint(1, store.entries(path)))
    at -= at % 512
    changed = written(store.files, path, at, bytes(512))
    return Broken(changed, ((path, None),), "", THROWN_AWAY)


CHECKPOINT = (
    ("physic_msg_timestamp", 0),
    ("logics_msg_timestamp", 8),
    ("index_msg_timestamp", 16),
)


def future_kind(at: int) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        later = store.rows[-1]["store_timestamp"] + rng.randint(1, 1 << 40)
        changed = written(store.files, "checkpoint", at, struct.pack(">q", later))
        confirmed = int.from_bytes(store.files["checkpoint"][32:40], "big")
        was_cut = confirmed == store.rows[-1]["phy_offset"]
        places = (("checkpoint", at),)
        return Broken(changed, places, CUT_ONCE if was_cut else "", BUFFERED)

    return damage


KINDS |= {
    f"checkpoint: {name} in the future": future_kind(at) for name, at in CHECKPOINT
}


@kind("checkpoint: bytes that are no field's")
def checkpoint_rest(store: Archive, rng: Random) -> Broken | None:
    at = rng.choice((*range(40, 512), *range(1536, 4096)))
    changed = flipped(store.files, "checkpoint", at, rng.randrange(8))
    return Broken(changed, (("checkpoint", at),), "", "")


@kind("checkpoint: confirm_phy_offset past the log")
def checkpoint_confirm(store: Archive, rng: Random) -> Broken | None:
    last = store.rows[-1]
    past = last["phy_offset"] + last["size"] + rng.randint(1, 1 << 40)
    changed = written(store.files, "checkpoint", 32, struct.pack(">q", past))
    return Broken(changed, (("checkpoint", 32),))


@kind("checkpoint: cut")
def checkpoint_cut(store: Archive, rng: Random) -> Broken | None:
    size = rng.randrange(4096)
    changed = {**store.files, "checkpoint": store.files["checkpoint"][:size]}
    unproven = "" if size else "a crash amid its making leaves it empty"
    return Broken(changed, (("checkpoint", size),), "", unproven)


@kind("abort: added")
def abort_added(store: Archive, rng: Random) -> Broken | None:
    if store.is_crashed:
        return None
    why = "a broker that was killed at rest leaves the same"
    return Broken({**store.files, "abort": b"1"}, (), why, why)


@kind("abort: removed")
def abort_removed(store: Archive, rng: Random) -> Broken | None:
    if not store.is_crashed:
        return None
    path, at = store.unit(store.rows[-1])
    is_dispatched = any(store.files[path][at : at + 20])
    why = "all was dispatched, so nothing differs from an orderly end"
    why = why if is_dispatched else ""
    files = {path: data for path, data in store.files.items() if path != "abort"}
    return Broken(files, ((path, at),), why, why)


def broken_copies(store: Archive, seeds: int) -> list[tuple[str, Broken]]:
    """Every kind with so many seeds; only those that change a byte."""
    found = []
    for name, damage in KINDS.items():
        for seed in range(seeds):
            broken = damage(store, Random(f"{name} {store.name} {seed}"))
            if broken is not None and broken.files != store.files:
                found.append((f"{name} #{seed}", broken))
    return found
