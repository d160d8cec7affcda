"""Damages to the index, the checkpoint and names that leave every field in its range.

As in ``fsck_mixed_up_damages``, whose kinds these follow: what is wrong here was right
in another place, or a second, an entry or a file away.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from fsck_archive import INDEX_SLOTS, Archive
from fsck_breaking import (
    KINDS,
    THROWN_AWAY,
    Broken,
    Damage,
    is_expired,
    kind,
    spot,
    written,
)
from fsck_file_damages import folder_of, without

LAGS = (
    "a round of the flush sets the time again that it read before, and an orderly end "
    "does not set it; 0 stands for none"
)


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
