"""Damages to records and fillers of the log."""

from __future__ import annotations

import re
from random import Random

from fsck_archive import Archive
from fsck_breaking import (
    KINDS,
    LEFT_OVER,
    NO_PROOF,
    THROWN_AWAY,
    Broken,
    Damage,
    at_record,
    flipped,
    is_covered,
    kind,
    of_record,
    spot,
    torn_head,
    unsettled,
    written,
)

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
        "sys_flag", (0, 1, 3, 6, 8, 9), NO_PROOF, how="odd"
    ),
    "record: sys_flag, prepared": bits_kind("sys_flag", (2,), "", how="unlisted"),
    "record: sys_flag, inner batch": bits_kind("sys_flag", (7,), "", how="unlisted"),
    "record: sys_flag, a host's length": bits_kind(
        "sys_flag", (4, 5), "", how="broken"
    ),
    "record: sys_flag, no bit of RocketMQ's": bits_kind(
        "sys_flag", tuple(range(10, 32)), "", how="odd"
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
