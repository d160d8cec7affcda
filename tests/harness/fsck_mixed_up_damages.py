"""Damages that mix up what is right in itself: another's field, place, number or file.

What makes a copy wrong here was once written by a store, so no field is out of range.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from zlib import crc32

from fsck_archive import Archive, Row
from fsck_breaking import (
    ANY,
    KINDS,
    LAST,
    TORN,
    Broken,
    Damage,
    at_record,
    is_covered,
    kind,
    of_record,
    spot,
    torn,
    unsettled,
    written,
)
from fsck_file_damages import folder_of, of_kind, without


def record_of(store: Archive, row: Row) -> bytes:
    path, start = store.place(row)
    return store.files[path][start : start + row["size"]]


def forged(store: Archive, row: Row, data: bytes) -> dict[str, bytes]:
    """The files with a record in the place of one as long; its own place made right."""
    path, start = store.place(row)
    own = data[:28] + struct.pack(">q", row["phy_offset"]) + data[36:]
    return written(store.files, path, start, own)


def two_as_long(store: Archive, rng: Random, *, one_queue: bool) -> list[Row] | None:
    """Two records as long as each other, the earlier one first."""
    rows = store.rows[3:-3]
    pairs = [
        [one, other]
        for number, one in enumerate(rows)
        for other in rows[number + 1 : number + 40]
        if one["size"] == other["size"]
        and ((one["topic"], one["queue_id"]) == (other["topic"], other["queue_id"]))
        is one_queue
        and not is_covered(store, one)
        and not is_covered(store, other)
    ]
    return rng.choice(pairs) if pairs else None


def exchanged_kind(*, one_queue: bool) -> Damage:
    """Two whole records, each now in the other's place and true to it."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        pair = two_as_long(store, rng, one_queue=one_queue)
        if pair is None:
            return None
        one, other = pair
        changed = forged(store, one, record_of(store, other))
        later = forged(store, other, record_of(store, one))
        path = store.place(other)[0]
        if path == store.place(one)[0]:
            at = store.place(other)[1]
            new = later[path][at : at + other["size"]]
            changed = written(changed, path, at, new)
        else:
            changed = {**changed, path: later[path]}
        places = [place for row in pair for place in at_record(store, row, unit=True)]
        if one_queue:
            after = [r for r in store.rows if queue_of(r) == queue_of(one)]
            behind = [after[n + 1] for n, r in enumerate(after[:-1]) if r in pair]
            places += [store.place(row) for row in behind]
        proof = "" if one_queue else " ".join({unsettled(store, r) for r in pair})
        return Broken(changed, tuple(places), "", proof.strip())

    return damage


def queue_of(row: Row) -> tuple[str, int]:
    return row["topic"], row["queue_id"]


KINDS |= {
    "log: two whole records of a queue exchanged": exchanged_kind(one_queue=True),
    "log: two whole records of two queues exchanged": exchanged_kind(one_queue=False),
}


@kind("log: two neighbours exchanged as they are")
def swap_neighbours(store: Archive, rng: Random) -> Broken | None:
    number = rng.randrange(3, len(store.rows) - 5)
    one, other = store.rows[number : number + 2]
    path, start = store.place(one)
    if store.place(other)[0] != path:
        return None
    both = record_of(store, other) + record_of(store, one)
    changed = written(store.files, path, start, both)
    after = store.rows[number + 2]
    is_last = store.place(after)[0] != path
    proof = TORN if is_last else torn(changed, path, start, start + len(both))
    places = (store.place(one), store.place(other))
    return Broken(changed, places, "", proof)


@kind("record: another body, and its CRC made right")
def forge_body(store: Archive, rng: Random) -> Broken | None:
    row = spot(store, rng, body=True)
    field = store.fields(row)["body"]
    path, start = store.place(row)
    body = rng.randbytes(field.size)
    crc = struct.pack(">I", crc32(body) & 0x7FFFFFFF)
    changed = written(store.files, path, start + field.at, body)
    changed = written(changed, path, start + 8, crc)
    unseen = "" if is_covered(store, row) else "a body proves itself by its CRC alone"
    return of_record(store, row, changed, unseen)


def hole_kind(size: int) -> Damage:
    """Zeros amid a body, bound to no sector."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        rows = [r for r in store.rows[3:-3] if r["body_size"] > size + 8]
        if not rows:
            return None
        row = rng.choice(rows)
        path, start = store.place(row)
        at = start + store.fields(row)["body"].at + 3
        return of_record(store, row, written(store.files, path, at, bytes(size)))

    return damage


KINDS |= {f"record: {n} zeros amid its body": hole_kind(n) for n in (3, 16, 100)}


def time_kind(move: int) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        number = rng.randrange(3, len(store.rows) - 3)
        row = store.rows[number]
        stamps = [store.rows[number + n]["store_timestamp"] for n in (-1, 0, 1)]
        later = stamps[1] + move
        field = store.fields(row)["store_timestamp"]
        path, start = store.place(row)
        raw = struct.pack(">q", later)
        changed = written(store.files, path, start + field.at, raw)
        if is_covered(store, row):
            return of_record(store, row, changed)
        is_within = stamps[0] <= later <= stamps[2]
        unseen = "it lies within its neighbours' times" if is_within else ""
        return Broken(changed, at_record(store, row), unseen, unseen)

    return damage


KINDS |= {
    "record: stored an hour earlier": time_kind(-3_600_000),
    "record: stored an hour later": time_kind(3_600_000),
    "record: stored a millisecond earlier": time_kind(-1),
}


def port_kind(name: str) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        row = spot(store, rng, body=True)
        field = store.fields(row)[name]
        path, start = store.place(row)
        at = start + field.at + field.size - 4
        raw = struct.pack(">I", rng.randrange(1 << 16, 1 << 32))
        changed = written(store.files, path, at, raw)
        if is_covered(store, row):
            return of_record(store, row, changed)
        return Broken(changed, at_record(store, row), "", "")

    return damage


KINDS |= {
    "record: a port of born_host that none is": port_kind("born_host"),
    "record: a port of store_host that none is": port_kind("store_host"),
}


@kind("record: a way of compression that none is")
def odd_compression(store: Archive, rng: Random) -> Broken | None:
    row = spot(store, rng, body=True)
    path, start = store.place(row)
    at = start + store.fields(row)["sys_flag"].at + 2
    raw = bytes([store.files[path][at] | 4])
    changed = written(store.files, path, at, raw)
    if is_covered(store, row):
        return of_record(store, row, changed)
    return Broken(changed, at_record(store, row), "", "")


def property_zeros_kind(part: Callable[[bytes], tuple[int, int]], why: str) -> Damage:
    """Zeros over a part of the properties."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        every = [(r, store.properties(r)) for r in store.rows[3:-3]]
        # What RocketMQ 5.3.0 leaves behind those of light queues nobody reads.
        rows = [r for r, raw in every if b"KEYS\x01" in raw and b"MULTI" not in raw]
        row = rng.choice(rows)
        first, size = part(store.properties(row))
        path, start = store.place(row)
        at = start + store.fields(row)["properties"].at + first
        changed = written(store.files, path, at, bytes(size))
        places = at_record(store, row, unit=True)
        if is_covered(store, row):
            return of_record(store, row, changed)
        places += tuple((p, None) for p in store.index)
        proof = why or torn(changed, path, start, start + row["size"])
        return Broken(changed, places, why, proof)

    return damage


KINDS |= {
    "record: zeros for a property's name": property_zeros_kind(
        lambda raw: (raw.index(b"KEYS"), 4), ""
    ),
    "record: zeros from name to value": property_zeros_kind(
        lambda raw: (raw.index(b"KEYS") + 2, 4), ""
    ),
    "record: zeros at the properties' end": property_zeros_kind(
        lambda raw: (len(raw) - 2, 2), ""
    ),
}


@kind("record: a digit of a light queue's offset")
def light_offset(store: Archive, rng: Random) -> Broken | None:
    name = b"INNER_MULTI_QUEUE_OFFSET\x01"
    rows = [r for r in store.rows[3:-3] if name in store.properties(r)]
    if not rows:
        return None
    row = rng.choice(rows)
    path, start = store.place(row)
    at = store.properties(row).index(name) + len(name)
    at += start + store.fields(row)["properties"].at
    digit = store.files[path][at]
    changed = written(store.files, path, at, bytes([digit ^ 1]))
    listed = tuple((p, None) for p in store.queues if "LMQ" in p)
    return Broken(changed, (*at_record(store, row), *listed))


def with_other_kind(start: int, size: int) -> Damage:
    """A field of a unit is that of another unit of the same file."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        row, other = spot(store, rng), spot(store, rng)
        path, at = store.unit(row)
        there, other_at = store.unit(other)
        if not {path, there} <= store.files.keys():
            return None
        field = store.files[there][other_at + start : other_at + start + size]
        changed = written(store.files, path, at + start, field)
        return Broken(changed, ((path, at),), "", unsettled(store, row))

    return damage


KINDS |= {
    "unit: another's phy_offset": with_other_kind(0, 8),
    "unit: another's size": with_other_kind(8, 4),
    "unit: another's tags_code": with_other_kind(12, 8),
    "unit: another queue's unit": with_other_kind(0, 20),
}


@kind("unit: a unit of another queue behind the last")
def foreign_unit(store: Archive, rng: Random) -> Broken | None:
    last = {queue_of(row): row for row in store.rows}
    row = rng.choice([*last.values()])
    path, at = store.unit(row)
    other = spot(store, rng)
    there, other_at = store.unit(other)
    if not {path, there} <= store.files.keys() or at + 40 > len(store.files[path]):
        return None
    unit = store.files[there][other_at : other_at + 20]
    changed = written(store.files, path, at + 20, unit)
    return Broken(changed, ((path, at + 20),), "", LAST)


@kind("queue: its first unit doubled, the others a place on")
def shift_on(store: Archive, rng: Random) -> Broken | None:
    path = store.unit(spot(store, rng))[0]
    data = store.files[path]
    live = min(a for p, a in map(store.unit, store.rows) if p == path)
    changed = {**store.files, path: (data[:20] + data)[: len(data)]}
    return Broken(changed, tuple((path, at) for at in (0, 20, live, live + 20)))


def moved_kind(*, is_copy: bool, of_topic: bool) -> Damage:
    """A queue's folder stands where no queue is, or stands there too."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        row = spot(store, rng)
        topic, queue_id = queue_of(row)
        old = f"consumequeue/{topic}/{queue_id}/"
        new = f"consumequeue/{topic}/{queue_id + 900}/"
        if of_topic:
            new = f"consumequeue/{topic}.new/{queue_id}/"
        moved = {p: d for p, d in store.files.items() if p.startswith(old)}
        kept = store.files if is_copy else store.files.keys() - moved.keys()
        files = {p: store.files[p] for p in sorted(kept)}
        files |= {path.replace(old, new): data for path, data in moved.items()}
        return Broken(files, ((old[:-1], None), (new[:-1], None)))

    return damage


KINDS |= {
    "queue: a folder of another id": moved_kind(is_copy=False, of_topic=False),
    "queue: a folder copied to another id": moved_kind(is_copy=True, of_topic=False),
    "queue: a folder in another topic": moved_kind(is_copy=False, of_topic=True),
    "queue: a folder copied to another topic": moved_kind(is_copy=True, of_topic=True),
}


def copied_kind(what: str) -> Damage:
    """A file's bytes stand in another file of the same kind, too."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        paths = of_kind(store, what)
        if len(paths) < 2:
            return None
        one, other = rng.sample(paths, 2)
        if not any(store.files[one]):
            return None
        changed = {**store.files, other: store.files[one]}
        is_seen = what == "log" and other < store.log[-1]
        return Broken(changed, ((other, None),), "", "" if is_seen else ANY)

    return damage


for _what in ("log", "queue", "index"):
    KINDS[f"{_what}: a file copied over another"] = copied_kind(_what)


@kind("log: the rest of a file cut and zeros put there")
def zero_rest(store: Archive, rng: Random) -> Broken | None:
    row = rng.choice([r for r in store.rows[3:] if store.place(r)[0] < store.log[-1]])
    path, start = store.place(row)
    data = store.files[path]
    changed = {**store.files, path: data[:start].ljust(len(data), b"\0")}
    return Broken(changed, ((path, start),))


@kind("queue: the first file removed")
def first_queue_file(store: Archive, rng: Random) -> Broken | None:
    folder = folder_of(store.unit(spot(store, rng))[0])
    names = sorted(p for p in store.files if folder_of(p) == folder)
    if len(names) < 2:
        return None
    live = [store.unit(row) for row in store.rows if store.unit(row)[0] == names[0]]
    unseen = "" if live else "all that it lists has expired"
    places = tuple((path, at) for path, at in [*live, (names[0], 0)])
    return Broken(without(store, names[0]), places, unseen)


@kind("queue: the last file emptied")
def last_queue_file(store: Archive, rng: Random) -> Broken | None:
    folder = folder_of(store.unit(spot(store, rng))[0])
    path = max(p for p in store.files if folder_of(p) == folder)
    return Broken({**store.files, path: b""}, ((path, 0),))
