"""Damages to whole files: missing, doubled, renamed, exchanged, of a wrong length."""

from __future__ import annotations

from random import Random

from fsck_archive import Archive
from fsck_breaking import (
    ANY,
    DELETED,
    EXPIRED,
    KINDS,
    LEFT_OVER,
    THROWN_AWAY,
    Broken,
    Damage,
    Place,
    kind,
    spot,
)

OTHER_SIZE = "a crash amid the making of a file leaves it short"


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def of_kind(store: Archive, what: str) -> list[str]:
    """Files that hold records, units or entries."""
    if what == "log":
        return list(store.log)
    if what == "index":
        return list(store.index)
    rows = [row for row in store.rows if store.unit(row)[0] in store.files]
    return sorted({store.unit(row)[0] for row in rows})


def without(store: Archive, path: str) -> dict[str, bytes]:
    return {name: data for name, data in store.files.items() if name != path}


def resized_kind(what: str, how: str) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        paths = of_kind(store, what)
        path = rng.choice(paths)
        data = store.files[path]
        if how == "emptied":
            changed, at = b"", 0
        elif how == "cut":
            at = rng.randrange(1, len(data))
            changed = data[:at]
        else:
            more = rng.randint(1, 5000)
            extra = bytes(more) if how == "longer by zeros" else rng.randbytes(more)
            changed, at = data + extra, len(data)
        alone = what != "queue" and len([*_siblings(store, path)]) == 1
        unseen = "no other file tells its length" if alone and what == "index" else ""
        if unseen and how == "emptied":
            unseen, at = "", 36  # it is made for a key, and lists none
        later = [p for p in of_kind(store, what) if p > path]
        is_amid = any(folder_of(other) == folder_of(path) for other in later)
        unproven = OTHER_SIZE if how == "emptied" and not is_amid else ""
        if what == "index":
            unproven = THROWN_AWAY
        places: tuple[Place, ...] = ((path, at),)
        return Broken({**store.files, path: changed}, places, unseen, unproven)

    return damage


def _siblings(store: Archive, path: str) -> list[str]:
    return [other for other in store.files if folder_of(other) == folder_of(path)]


for _what in ("log", "queue", "index"):
    for _how in ("emptied", "cut", "longer by zeros", "longer by garbage"):
        KINDS[f"{_what}: a file {_how}"] = resized_kind(_what, _how)


@kind("log: a file amid it removed")
def remove_log_file(store: Archive, rng: Random) -> Broken | None:
    path = rng.choice(store.log[1:-1])
    return Broken(without(store, path), ((path, 0),), "", "")


@kind("log: the first file removed")
def remove_first(store: Archive, rng: Random) -> Broken | None:
    return Broken(without(store, store.log[0]), (), EXPIRED, EXPIRED)


@kind("log: the last file with records removed")
def remove_last(store: Archive, rng: Random) -> Broken | None:
    path = store.log[-1]
    before = store.log[-2]
    end = (before, len(store.files[before]))
    is_amid = any(p > path for p in store.files if p.startswith("commitlog/"))
    return Broken(without(store, path), ((path, 0), end), "", "" if is_amid else ANY)


def renamed_kind(what: str, how: str) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        path = rng.choice(of_kind(store, what))
        folder, _, name = path.rpartition("/")
        digits = len(name)
        new = {
            "by one": f"{int(name) + 1:0{digits}d}",
            "to a word": f"{name}.old",
            "to a digit less": name[1:],
        }[how]
        changed = without(store, path) | {f"{folder}/{new}": store.files[path]}
        unseen = ""
        if what == "index" and how == "by one":
            unseen = "the name is a time that nothing else tells"
        places = ((path, 0), (path, None), (f"{folder}/{new}", None))
        return Broken(changed, places, unseen, unseen)

    return damage


for _what in ("log", "queue", "index"):
    for _how in ("by one", "to a word", "to a digit less"):
        KINDS[f"{_what}: a file renamed {_how}"] = renamed_kind(_what, _how)


def swapped_kind(what: str) -> Damage:
    def damage(store: Archive, rng: Random) -> Broken | None:
        paths = of_kind(store, what)
        if len(paths) < 2:
            return None
        one, other = rng.sample(paths, 2)
        files = store.files
        changed = {**files, one: files[other], other: files[one]}
        is_seen = what == "log" and max(one, other) < store.log[-1]
        return Broken(changed, ((one, None), (other, None)), "", "" if is_seen else ANY)

    return damage


for _what in ("log", "queue", "index"):
    KINDS[f"{_what}: two files exchanged"] = swapped_kind(_what)


@kind("log: a file copied behind the last")
def copy_log_file(store: Archive, rng: Random) -> Broken | None:
    base = int(max(p for p in store.files if p.startswith("commitlog/"))[-20:])
    new = f"commitlog/{base + store.log_file_size:020d}"
    data = store.files[rng.choice(store.log)]
    last = store.rows[-1]
    path, at = store.place(last)
    end = (path, at + last["size"])
    return Broken({**store.files, new: data}, ((new, 0), end))


@kind("queue: a file removed")
def remove_queue_file(store: Archive, rng: Random) -> Broken | None:
    path = store.unit(spot(store, rng))[0]
    live = [store.unit(row) for row in store.rows]
    first = min(at for other, at in live if other == path)
    names = sorted(p for p in store.files if folder_of(p) == folder_of(path))
    is_amid = names[0] < path < names[-1]
    places = ((path, first), (path, 0))
    left = (path.split("/")[1],)
    return Broken(without(store, path), places, "", "" if is_amid else ANY, left)


@kind("queue: its folder removed")
def remove_queue(store: Archive, rng: Random) -> Broken | None:
    folder = folder_of(store.unit(spot(store, rng))[0])
    files = {p: d for p, d in store.files.items() if folder_of(p) != folder}
    return Broken(files, ((folder, None),), folders=(folder.split("/")[1],))


@kind("queue: a topic's folder removed")
def remove_topic(store: Archive, rng: Random) -> Broken | None:
    folder = f"consumequeue/{spot(store, rng)['topic']}/"
    files = {p: d for p, d in store.files.items() if not p.startswith(folder)}
    return Broken(files, ((folder, None),), DELETED)


@kind("queue: no file left")
def remove_queues(store: Archive, rng: Random) -> Broken | None:
    files = {p: d for p, d in store.files.items() if p not in store.queues}
    return Broken(files, (("consumequeue", None),))


@kind("queue: two folders exchanged")
def swap_queues(store: Archive, rng: Random) -> Broken | None:
    folders = sorted({folder_of(path) for path in of_kind(store, "queue")})
    one, other = rng.sample(folders, 2)
    files = {}
    for path, data in store.files.items():
        folder, _, name = path.rpartition("/")
        folder = {one: other, other: one}.get(folder, folder)
        files[f"{folder}/{name}"] = data
    return Broken(files, ((one, None), (other, None)))


@kind("queue: a topic renamed")
def rename_topic(store: Archive, rng: Random) -> Broken | None:
    topic = spot(store, rng)["topic"]
    old, new = f"consumequeue/{topic}/", f"consumequeue/{topic}2/"
    files = {path.replace(old, new): data for path, data in store.files.items()}
    return Broken(files, ((old, None), (new, None)))


@kind("queue: shifted by a unit")
def shift_queue(store: Archive, rng: Random) -> Broken | None:
    path = store.unit(spot(store, rng))[0]
    data = store.files[path]
    live = min(a for p, a in map(store.unit, store.rows) if p == path)
    places = tuple((path, at) for at in (live, live + 20, 0))
    return Broken({**store.files, path: data[20:] + bytes(20)}, places)


@kind("queue: a file copied behind the last")
def copy_queue_file(store: Archive, rng: Random) -> Broken | None:
    path = store.unit(spot(store, rng))[0]
    folder = folder_of(path)
    base = int(max(p for p in store.files if folder_of(p) == folder)[-20:])
    new = f"{folder}/{base + store.queue_file_size:020d}"
    if not any(store.files[path]):
        return None
    return Broken({**store.files, new: store.files[path]}, ((folder, None),))


@kind("index: the first file removed")
def remove_index(store: Archive, rng: Random) -> Broken | None:
    why = "index files go with what they list, and a broker may run without one"
    return Broken(without(store, store.index[0]), (), why, why)


@kind("store: a stray file in a folder of it")
def stray_file(store: Archive, rng: Random) -> Broken | None:
    folder = folder_of(rng.choice((store.log[0], store.queues[0])))
    path = f"{folder}/core.{rng.randrange(100)}"
    return Broken({**store.files, path: b"x"}, ((path, None),), "", "")


@kind("index: a stray file")
def stray_in_index(store: Archive, rng: Random) -> Broken | None:
    path = f"index/core.{rng.randrange(100)}"
    why = "RocketMQ passes over names in the index that are no numbers"
    return Broken({**store.files, path: b"x"}, ((path, None),), why, why)


@kind("queue: units left over behind its end")
def left_over(store: Archive, rng: Random) -> Broken | None:
    """As a recovery of RocketMQ leaves them: they point past the log's end."""
    last = store.rows[-1]
    end = last["phy_offset"] + last["size"]
    path, at = store.unit(last)
    if at + 40 > len(store.files[path]):
        return None
    unit = end.to_bytes(8, "big") + (200).to_bytes(4, "big") + bytes(8)
    data = store.files[path]
    changed = data[: at + 20] + unit + data[at + 40 :]
    return Broken({**store.files, path: changed}, ((path, at + 20),), LEFT_OVER, ANY)
