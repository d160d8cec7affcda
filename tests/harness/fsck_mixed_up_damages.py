"""Damages that mix up what is right in itself: another's field, place, number or file.

What makes a copy wrong here was once written by a store, so no field is out of range.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from zlib import crc32

from fsck_archive import INDEX_SLOTS, Archive, Row
from fsck_breaking import (
    ANY,
    KINDS,
    LAST,
    THROWN_AWAY,
    TORN,
    Broken,
    Damage,
    at_record,
    is_covered,
    is_expired,
    kind,
    of_record,
    spot,
    torn,
    unsettled,
    written,
)
from fsck_file_damages import folder_of, of_kind, without

LAGS = (
    "a round of the flush sets the time again that it read before, and an orderly end "
    "does not set it; 0 stands for none"
)


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


def header_pair_kind(one: int, other: int) -> Damage:
    """Two fields of an index header are exchanged."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        path = rng.choice(store.index)
        data = store.files[path]
        changed = written(store.files, path, one, data[other : other + 8])
        changed = written(changed, path, other, data[one : one + 8])
        places = tuple((path, at) for at in (one, other))
        return Broken(changed, places, "", THROWN_AWAY)

    return damage


KINDS |= {
    "index: begin and end times exchanged": header_pair_kind(0, 8),
    "index: begin and end places exchanged": header_pair_kind(16, 24),
}


def counted_kind(at: int, more: int) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        path = rng.choice(store.index)
        said = int.from_bytes(store.files[path][at : at + 4], "big")
        changed = written(store.files, path, at, struct.pack(">i", said + more))
        # One entry fewer is one that its slot names and nobody counts.
        places = ((path, at), (path, 24), (path, None))
        return Broken(changed, places, "", THROWN_AWAY)

    return damage


KINDS |= {
    f"index: {more:+d} in the header's {name}": counted_kind(at, more)
    for name, at in (("slot_count", 32), ("index_count", 36))
    for more in (1, -1)
}


def slot_kind(choose: Callable[[Archive, str, int, Random], int | None]) -> Damage:
    """A slot that is in use names another entry, or none."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        path = rng.choice(store.index)
        number = rng.randint(1, store.entries(path))
        at = 40 + 4 * (hash_of(store, path, number) % INDEX_SLOTS)
        new = choose(store, path, at, rng)
        if new is None:
            return None
        changed = written(store.files, path, at, struct.pack(">i", new))
        return Broken(changed, ((path, at),), "", THROWN_AWAY)

    return damage


def hash_of(store: Archive, path: str, number: int) -> int:
    at = store.entry(number)
    return int.from_bytes(store.files[path][at : at + 4], "big")


def older_in_chain(store: Archive, path: str, at: int, rng: Random) -> int | None:
    newest = int.from_bytes(store.files[path][at : at + 4], "big")
    link = store.entry(newest) + 16
    return int.from_bytes(store.files[path][link : link + 4], "big") or None


def of_other_slot(store: Archive, path: str, at: int, rng: Random) -> int | None:
    slot = (at - 40) // 4
    every = range(1, store.entries(path) + 1)
    others = [n for n in every if hash_of(store, path, n) % INDEX_SLOTS != slot]
    return rng.choice(others) if others else None


KINDS |= {
    "index: a slot emptied": slot_kind(lambda store, path, at, rng: 0),
    "index: a slot of an older entry": slot_kind(older_in_chain),
    "index: a slot of another's entry": slot_kind(of_other_slot),
    "index: a slot past all entries": slot_kind(
        lambda store, path, at, rng: store.entries(path) + 1
    ),
}


@kind("index: two entries that lead to each other")
def loop_of_two(store: Archive, rng: Random) -> Broken | None:
    path = rng.choice(store.index)
    data = store.files[path]
    ends = range(store.entry(1) + 16, store.entry(store.entries(path) + 1), 20)
    links = [int.from_bytes(data[at : at + 4], "big") for at in ends]
    linked = [n for n, before in enumerate(links, 1) if before]
    if not linked:
        return None
    number = rng.choice(linked)
    at = store.entry(links[number - 1])
    changed = written(store.files, path, at + 16, struct.pack(">i", number))
    return Broken(changed, ((path, at),), "", THROWN_AWAY)


@kind("index: an entry doubled over the next")
def double_entry(store: Archive, rng: Random) -> Broken | None:
    path = rng.choice(store.index)
    if store.entries(path) < 4:
        return None
    at = store.entry(rng.randint(1, store.entries(path) - 2))
    data = store.files[path]
    changed = written(store.files, path, at + 20, data[at : at + 20])
    slots = [
        (path, 40 + 4 * (int.from_bytes(data[n : n + 4], "big") % INDEX_SLOTS))
        for n in (at, at + 20)
    ]
    return Broken(changed, ((path, at + 20), *slots), "", THROWN_AWAY)


@kind("index: an entry a second later")
def later_entry(store: Archive, rng: Random) -> Broken | None:
    path = rng.choice(store.index)
    at = store.entry(rng.randint(1, store.entries(path)))
    seconds = int.from_bytes(store.files[path][at + 12 : at + 16], "big")
    changed = written(store.files, path, at + 12, struct.pack(">i", seconds + 1))
    unseen = ""
    if is_expired(store, path, at):
        unseen = "an entry of an expired record is nobody's"
    return Broken(changed, ((path, at),), unseen, THROWN_AWAY)


@kind("index: the newest file named as the oldest")
def index_named_first(store: Archive, rng: Random) -> Broken | None:
    if len(store.index) < 2:
        return None
    path = store.index[-1]
    new = f"index/{int(store.index[0][6:]) - 1:017d}"
    changed = without(store, path) | {new: store.files[path]}
    return Broken(changed, (("index", None),), "", THROWN_AWAY)


@kind("index: a file copied behind the newest")
def index_copied(store: Archive, rng: Random) -> Broken | None:
    new = f"index/{int(store.index[-1][6:]) + 1000:017d}"
    changed = {**store.files, new: store.files[rng.choice(store.index)]}
    return Broken(changed, (("index", None),), "", THROWN_AWAY)


def checkpoint_value_kind(at: int, move: int | None) -> Damage:
    """A time that is 0, or another than it was."""

    def damage(store: Archive, rng: Random) -> Broken | None:
        said = int.from_bytes(store.files["checkpoint"][at : at + 8], "big")
        if not said:
            return None
        raw = struct.pack(">q", 0 if move is None else said + move)
        changed = written(store.files, "checkpoint", at, raw)
        first = store.rows[0]["store_timestamp"]
        is_early = move is not None and said + move < first
        is_first = store.rows[0]["phy_offset"] == 0
        unseen = "" if is_early and is_first else LAGS
        return Broken(changed, (("checkpoint", at),), unseen, LAGS)

    return damage


KINDS |= {
    f"checkpoint: {name} {how}": checkpoint_value_kind(at, move)
    for name, at in (("physic_msg_timestamp", 0), ("logics_msg_timestamp", 8))
    for how, move in (("0", None), ("an hour behind", -3_600_000))
}


@kind("checkpoint: index_msg_timestamp of no file's end")
def checkpoint_index(store: Archive, rng: Random) -> Broken | None:
    stamps = {row["store_timestamp"] for row in store.rows[3:-3]}
    ends = {int.from_bytes(store.files[p][8:16], "big") for p in store.index}
    if not (others := sorted(stamps - ends)):
        return None
    raw = struct.pack(">q", rng.choice(others))
    changed = written(store.files, "checkpoint", 16, raw)
    is_first = store.rows[0]["phy_offset"] == 0
    unseen = "" if is_first else "a file that ended then may have gone"
    return Broken(changed, (("checkpoint", 16),), unseen, THROWN_AWAY)


@kind("queue: every file named by the next one's base")
def queue_bases(store: Archive, rng: Random) -> Broken | None:
    folder = folder_of(store.unit(spot(store, rng))[0])
    moved = {p: d for p, d in store.files.items() if folder_of(p) != folder}
    for path in store.files.keys() - moved.keys():
        base = int(path[-20:]) + store.queue_file_size
        moved[f"{folder}/{base:020d}"] = store.files[path]
    return Broken(moved, ((folder, None),))


@kind("checkpoint: its fields eight bytes on")
def checkpoint_shifted(store: Archive, rng: Random) -> Broken | None:
    data = store.files["checkpoint"]
    changed = {**store.files, "checkpoint": bytes(8) + data[:-8]}
    places = tuple(("checkpoint", at) for at in range(0, 48, 8))
    stamped = int.from_bytes(data[16:24], "big")
    return Broken(changed, places, "" if stamped else LAGS, LAGS)


@kind("checkpoint: 8192 bytes")
def checkpoint_long(store: Archive, rng: Random) -> Broken | None:
    changed = {**store.files, "checkpoint": store.files["checkpoint"] + bytes(4096)}
    return Broken(changed, (("checkpoint", 4096),), "", "")


@kind("store: the lock's content")
def lock_content(store: Archive, rng: Random) -> Broken | None:
    why = "whatever is there, the lock is not its content"
    return Broken({**store.files, "lock": rng.randbytes(9)}, (("lock", None),), why)
