"""Damages by whoever copied a store: bytes of elsewhere, lengths that lie, old files.

A disk that writes to a wrong place, a copy in text mode, a backup of one folder alone.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from fsck_archive import INDEX_SLOTS, Archive, Row
from fsck_breaking import (
    KINDS,
    SECTOR,
    THROWN_AWAY,
    TORN,
    Broken,
    Damage,
    at_record,
    kind,
    of_record,
    spot,
    torn,
    unsettled,
    written,
)

_BLANK_MAGIC = 0xCBD43194


def of_range(store: Archive, path: str, at: int, data: bytes) -> Broken:
    """Bytes of the log are others, from amid one record to amid another."""
    inside = [row for row in store.rows if store.place(row)[0] == path]
    hit = [
        row
        for row in inside
        if store.place(row)[1] < at + len(data)
        and store.place(row)[1] + row["size"] > at
    ]
    changed = written(store.files, path, at, data)
    start, end = store.place(hit[0])[1], store.place(hit[-1])[1] + hit[-1]["size"]
    unproven = TORN if hit[-1] is inside[-1] else torn(changed, path, start, end)
    places = [place for row in hit for place in at_record(store, row, unit=True)]
    return Broken(changed, tuple(places), "", unproven)


def place_kind(size: int, make: Callable[[Random], bytes]) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        path, start = store.place(spot(store, rng, body=True))
        at = start - start % size
        return of_range(store, path, at, make(rng))

    return damage


KINDS |= {
    "log: a sector of garbage": place_kind(SECTOR, lambda rng: rng.randbytes(SECTOR)),
    "log: a page of garbage": place_kind(4096, lambda rng: rng.randbytes(4096)),
    "log: a sector of ones": place_kind(SECTOR, lambda _: b"\xff" * SECTOR),
}


@kind("log: a sector of elsewhere")
def misdirected(store: Archive, rng: Random) -> Broken | None:
    path, start = store.place(spot(store, rng, body=True))
    at = start - start % SECTOR
    other, other_at = store.place(spot(store, rng))
    data = store.files[other][other_at - other_at % SECTOR :][:SECTOR]
    is_same = data == store.files[path][at : at + SECTOR]
    return None if is_same else of_range(store, path, at, data)


def shifted_kind(change: Callable[[bytes, int], bytes]) -> Damage:
    """What follows in the file lies at another byte; the next files do not."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        row = spot(store, rng, body=True)
        path, start = store.place(row)
        at = start + store.fields(row)["body"].at + 3
        data = store.files[path]
        changed = change(data, at)[: len(data)].ljust(len(data), b"\0")
        return Broken({**store.files, path: changed}, at_record(store, row))

    return damage


KINDS |= {
    "log: a byte lost": shifted_kind(lambda data, at: data[:at] + data[at + 1 :]),
    "log: a byte put in": shifted_kind(lambda d, at: d[:at] + b"\xa5" + d[at:]),
}


def lie_kind(name: str, value: int) -> Damage:
    """A length that says what a reader had better not believe."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        row = spot(store, rng)
        field = store.fields(row)[name]
        path, start = store.place(row)
        raw = value.to_bytes(field.size, "big", signed=value < 0)
        changed = written(store.files, path, start + field.at, raw)
        return of_record(store, row, changed)

    return damage


KINDS |= {
    f"record: a {name} of {value}": lie_kind(name, value)
    for name, value in (
        *(("size", 0x7FFFFFFF), ("size", -1), ("size", 0), ("size", 90)),
        *(("body_length", 0x7FFFFFFF), ("body_length", -1)),
        *(("topic_length", 127), ("topic_length", 255)),
        *(("properties_length", 0x7FFF), ("properties_length", 0xFFFF)),
    )
}


@kind("log: a filler over the rest of a file")
def early_filler(store: Archive, rng: Random) -> Broken | None:
    row = spot(store, rng, body=True)
    path, at = store.place(row)
    head = struct.pack(">iI", len(store.files[path]) - at, _BLANK_MAGIC)
    changed = written(store.files, path, at, head)
    behind = [r for r in store.rows if store.place(r)[0] == path]
    if path == store.log[-1] or behind[-1] is row:
        return None  # the first byte of the record is gone, and no later one is hidden
    return Broken(changed, at_record(store, row))


def whole_kind(make: Callable[[bytes, Random], bytes]) -> Damage:
    """A log file holds nothing that a store wrote."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        path = rng.choice(store.log)
        changed = {**store.files, path: make(store.files[path], rng)}
        return Broken(changed, ((path, 0),), "", "")

    return damage


KINDS |= {
    "log: a file of garbage": whole_kind(lambda data, rng: rng.randbytes(len(data))),
    "log: a file of ones": whole_kind(lambda data, rng: b"\xff" * len(data)),
    "log: a file of seven bits": whole_kind(lambda d, rng: bytes(b & 127 for b in d)),
}


@kind("log: every file named by the next one's base")
def bases_shifted(store: Archive, rng: Random) -> Broken | None:
    size = store.log_file_size
    moved = {p: d for p, d in store.files.items() if not p.startswith("commitlog/")}
    for path in store.files.keys() - moved.keys():
        moved[f"commitlog/{int(path[10:]) + size:020d}"] = store.files[path]
    path = f"commitlog/{int(store.log[0][10:]) + size:020d}"
    return Broken(moved, ((path, 0),), "", "")


@kind("log: no file left")
def log_gone(store: Archive, rng: Random) -> Broken | None:
    left = {p: data for p, data in store.files.items() if p[:10] != "commitlog/"}
    return Broken(left, (("commitlog", None),), "", "")


def settled_row(store: Archive, rng: Random) -> tuple[Row, str, int] | None:
    row = spot(store, rng)
    path, at = store.unit(row)
    return (row, path, at) if path in store.files else None


def unit_kind(start: int, data: bytes, unproven: str | None = None) -> Damage:
    """``unproven`` is None where it depends on what lies in the unit's sector."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        found = settled_row(store, rng)
        if found is None:
            return None
        row, path, at = found
        is_whole = at // SECTOR == (at + 19) // SECTOR
        why = unproven if unproven is not None and is_whole else unsettled(store, row)
        changed = written(store.files, path, at + start, data)
        return Broken(changed, ((path, at),), "", why)

    return damage


KINDS |= {
    "unit: a phy_offset below 0": unit_kind(0, b"\xff" * 8, ""),
    "unit: a size below 0": unit_kind(8, b"\xff" * 4, ""),
    "unit: a size of 1": unit_kind(8, b"\0\0\0\1", ""),
    "unit: a phy_offset past all": unit_kind(0, b"\x7f" + b"\xff" * 7),
    "unit: pre-blank": unit_kind(0, struct.pack(">qiq", 0, 0x7FFFFFFF, 0)),
}


@kind("unit: a phy_offset amid its record")
def unit_amid(store: Archive, rng: Random) -> Broken | None:
    found = settled_row(store, rng)
    if found is None:
        return None
    row, path, at = found
    changed = written(store.files, path, at, struct.pack(">q", row["phy_offset"] + 4))
    return Broken(changed, ((path, at),), "", unsettled(store, row))


def queue_kind(make: Callable[[bytes, Random], bytes]) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        found = settled_row(store, rng)
        if found is None:
            return None
        path = found[1]
        data = make(store.files[path], rng)
        return Broken({**store.files, path: data}, ((path, None),), "", "")

    return damage


KINDS |= {
    "queue: a file of garbage": queue_kind(lambda data, rng: rng.randbytes(len(data))),
    "queue: a file of ones": queue_kind(lambda data, rng: b"\xff" * len(data)),
}


@kind("queue: a topic's folder in capitals")
def folder_in_capitals(store: Archive, rng: Random) -> Broken | None:
    topic = spot(store, rng)["topic"]
    old, new = f"consumequeue/{topic}/", f"consumequeue/{topic.upper()}/"
    moved = {path.replace(old, new): data for path, data in store.files.items()}
    return Broken(moved, ((old, None), (new, None)))


def index_kind(start: int, size: int, make: Callable[[int], bytes]) -> Damage:
    """``size`` 0: up to the file's end."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        path = rng.choice(store.index)
        end = start + size if size else len(store.files[path])
        changed = written(store.files, path, start, make(end - start))
        return Broken(changed, ((path, None),), "", THROWN_AWAY)

    return damage


KINDS |= {
    "index: a file of zeros": index_kind(0, 0, bytes),
    "index: a file of ones": index_kind(0, 0, lambda size: b"\xff" * size),
    "index: a header of zeros": index_kind(0, 40, bytes),
    "index: slots of zeros": index_kind(40, 4 * INDEX_SLOTS, bytes),
    "index: entries of zeros": index_kind(40 + 4 * INDEX_SLOTS, 0, bytes),
    "index: a count of 2147483647": index_kind(36, 4, lambda _: b"\x7f\xff\xff\xff"),
    "index: a count below 0": index_kind(36, 4, lambda _: b"\xff" * 4),
}


@kind("index: two entries exchanged")
def swap_entries(store: Archive, rng: Random) -> Broken | None:
    path = rng.choice(store.index)
    if store.entries(path) < 3:
        return None
    one, other = rng.sample(range(1, store.entries(path) + 1), 2)
    data = store.files[path]
    first, second = store.entry(one), store.entry(other)
    changed = written(store.files, path, first, data[second : second + 20])
    changed = written(changed, path, second, data[first : first + 20])
    hashes = [int.from_bytes(data[at : at + 4], "big") for at in (first, second)]
    # Of entries whose records expired the slots alone tell.
    slots = [40 + 4 * (key_hash % INDEX_SLOTS) for key_hash in hashes]
    places = tuple((path, at) for at in (first, second, *slots))
    return Broken(changed, places, "", THROWN_AWAY)


def checkpoint_kind(make: Callable[[bytes, Random], bytes]) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        changed = {
            **store.files,
            "checkpoint": make(store.files["checkpoint"], rng),
        }
        return Broken(changed, (("checkpoint", None),), "", "")

    return damage


KINDS |= {
    "checkpoint: garbage": checkpoint_kind(lambda data, rng: rng.randbytes(len(data))),
    "checkpoint: ones": checkpoint_kind(lambda data, rng: b"\xff" * len(data)),
    "checkpoint: a text": checkpoint_kind(lambda data, rng: b"4096 bytes\n"),
    "checkpoint: 24 bytes": checkpoint_kind(lambda data, rng: data[:24]),
}
