"""Damages to units, the index, the checkpoint and the abort file."""

from __future__ import annotations

import struct
from random import Random

from fsck_archive import INDEX_SLOTS, Archive
from fsck_breaking import (
    BUFFERED,
    CUT_ONCE,
    KINDS,
    LAST,
    THROWN_AWAY,
    Broken,
    Damage,
    flipped,
    is_expired,
    kind,
    of_pair,
    spot,
    unsettled,
    written,
)


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
