"""Queues, index and checkpoint made again from a log that is whole.

Nothing of the old ones is asked but their sizes, and when delayed messages are due,
which hangs on the levels that the broker had when they came. A topic that the broker's
list does not have was deleted, and is not listed again; a queue that counts from 0
again was made again, and its earlier messages are not listed.

In place, what is made again is prepared beside the store and then exchanged, one name
after the other. As long as that lasts the store has a file ``abort`` and no checkpoint,
so that whoever starts meanwhile reads the whole log; what was replaced is kept in
``rebuild.backup``, and undone from there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final

from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.store_files import Found
from crashmq.harness.reading.looking import (
    QueueFiles,
    is_unit_of,
    listings_of,
    queue_files,
)
from crashmq.harness.reading.stream import (
    Gap,
    Tell,
    log_pieces,
    records_in,
    tell_nobody,
)
from crashmq.harness.repair.copying import (
    MADE_AGAIN,
    CannotRepair,
    copy_file,
    copy_rest,
    erase,
    link_file,
    made_whole,
    sync_file,
    sync_folder,
    sync_tree,
)
from crashmq.harness.repair.due_times import DueTimes
from crashmq.harness.repair.units import Sizes, UnitWriter
from crashmq.models.files.deleted import DELETED_PATH, NOTHING_DELETED, read_deleted
from crashmq.models.files.index import guessed_slots
from crashmq.models.files.inferred_deletions import (
    is_kept_topic,
    may_be_deleted,
    topics_listed,
)
from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.files.record import Bytes, Record
from crashmq.models.files.store_image import ROCKSDB_PATH

BACKUP: Final = "rebuild.backup"
STAGE: Final = "rebuild.new"
UNDONE: Final = f"{STAGE}.undone"
_PLAN: Final = "plan.json"
_SWAPPED: Final = ("consumequeue", "index")
_WRITTEN_FILES: Final = 2


@dataclass(slots=True)
class Rebuilt:
    """What was made.

    Attributes:
        end: the phy_offset after the last record.
        deleted: topics that were not listed, since they were deleted.
        again: queues that count from 0 again.
        unlisted: records whose number does not follow, and that have no unit.
        was_rocksdb: RocksDB kept the queues, and keeps none of what was made.
        guessed_size: the length of queue files in bytes, if nothing showed it and
            RocketMQ's own was taken; 0 if something did.
    """

    messages: int = 0
    queues: int = 0
    units: int = 0
    index_files: int = 0
    end: int = 0
    deleted: set[str] = field(default_factory=set)
    anew: set[str] = field(default_factory=set)
    unlisted: int = 0
    was_rocksdb: bool = False
    guessed_size: int = 0

    @property
    def warnings(self) -> list[str]:
        """What whoever starts a broker on the result should know."""
        told = []
        if self.was_rocksdb:
            told.append(
                "RocksDB kept the queues, and these are files: a broker with storeType="
                "defaultRocksDB finds no message there"
            )
        if self.guessed_size:
            told.append(
                f"no queue file showed its size, so they have RocketMQ's "
                f"{self.guessed_size:,} B; a broker with another "
                f"mappedFileSizeConsumeQueue refuses them: tell it by --broker-conf"
            )
        return told


def sizes_of(files: Mapping[str, Bytes], places: Places) -> Sizes:
    """The configuration's sizes, else those of the store's own files, or RocketMQ's."""
    default = Sizes()
    shown = places.queue_file_size or _queue_size(files)
    queue_size, is_guessed = shown or default.queue_file_size, not shown
    index = [(p, d) for p, d in sorted(files.items()) if _is_of(p, "index", 2)]
    for _, data in index:
        slots = places.index_slots or guessed_slots(data)
        if slots:
            entries = (len(data) - 40 - 4 * slots) // UNIT_SIZE
            entries = places.index_entries or entries
            return Sizes(queue_size, slots, entries, is_guessed)
    return Sizes(
        queue_size,
        places.index_slots or default.index_slots,
        places.index_entries or default.index_entries,
        is_guessed,
    )


def _queue_size(files: Mapping[str, Bytes]) -> int:
    """The size that queue files are meant to have; 0 if they do not show it.

    Two files of a queue show it by their names, and more than half of all files by
    their lengths: those of a copy may have lost their zeros, each has another then.
    """
    bases: dict[str, list[int]] = {}
    lengths: Counter[int] = Counter()
    for path, data in files.items():
        if _is_of(path, "consumequeue", 4):
            folder, _, name = path.rpartition("/")
            bases.setdefault(folder, []).append(int(name))
            if size := len(data) - len(data) % UNIT_SIZE:
                lengths[size] += 1
    apart = [b - a for of in bases.values() for a, b in pairwise(sorted(of))]
    if apart:
        return min(apart)
    size, count = max(lengths.items(), key=itemgetter(1), default=(0, 0))
    return size if 2 * count > lengths.total() else 0


def _is_of(path: str, top: str, parts: int) -> bool:
    split = path.split("/")
    return split[0] == top and len(split) == parts and split[-1].isdecimal()


def rebuild(
    found: Found,
    places: Places,
    out: Path,
    *,
    link: bool = False,
    all_topics: bool = False,
    tell: Tell = tell_nobody,
) -> Rebuilt:
    """Make a store in ``out`` of the log of another one.

    Args:
        found: its files.
        places: where they lie, and its sizes.
        out: a directory that does not exist.
        link: log files that RocketMQ writes no more are linked, not copied.
        all_topics: list deleted topics too.
        tell: told how far it is.

    Raises:
        CannotRepair: the log is damaged, or ``out`` cannot be used.
    """
    with made_whole(out) as partial:
        made = make_units(found, places, partial, all_topics=all_topics, tell=tell)
        pieces, size = log_pieces(found.files)
        for number, piece in enumerate(pieces):
            tell("copying log files", number, len(pieces))
            if not piece.limit:
                continue
            source = found.paths[piece.path]
            target = partial / "commitlog" / f"{piece.base:020d}"
            is_fit = len(piece.data) == size
            if link and is_fit and number < len(pieces) - _WRITTEN_FILES:
                link_file(source, target)
            else:
                copy_file(source, target)
                os.truncate(target, size)  # RocketMQ refuses any other length
            if piece.base + piece.limit > made.end:
                erase(target, max(0, made.end - piece.base))
        (partial / "commitlog").mkdir(exist_ok=True)
        ours = {BACKUP, STAGE, UNDONE, f"{BACKUP}.new"}
        copy_rest(places.root, partial, {*MADE_AGAIN, "commitlog", *ours})
    return made


def make_units(
    found: Found,
    places: Places,
    out: Path,
    *,
    all_topics: bool = False,
    fills_holes: bool = False,
    tell: Tell = tell_nobody,
) -> Rebuilt:
    """Write queues, index and checkpoint of a log below ``out``.

    With ``fills_holes`` a number that no record has is listed as the next record is:
    its queue goes on, and serves that message twice.

    Raises:
        CannotRepair: the log is damaged, so that messages would be lost.
    """
    sizes = sizes_of(found.files, places)
    made = Rebuilt(
        was_rocksdb=ROCKSDB_PATH in found.files,
        guessed_size=sizes.queue_file_size if sizes.is_guessed else 0,
    )
    writer = UnitWriter(out, sizes)
    (out / "consumequeue").mkdir(parents=True, exist_ok=True)
    (out / "index").mkdir(exist_ok=True)
    taken = _deleted_topics(found)
    raw = found.files.get(DELETED_PATH)
    deleted = NOTHING_DELETED if raw is None else read_deleted(raw)
    queues = queue_files(found.files)
    times = DueTimes(queues, places.delay_ms)
    for record in whole_log(records_in(found.files, tell), queues):
        made.messages += record.is_indexed
        made.end = record.end
        writer.put_keys(record)
        if not all_topics and taken(record.topic):
            made.deleted.add(record.topic)
            continue
        for listed in listings_of(record):
            key = listed.topic, listed.queue_id
            if listed.phy_offset < deleted.dead_below(*key):
                continue
            if listed.queue_offset == 0 and writer.next_of(key) > 0:
                writer.restart(key)
                made.anew.add(f"{key[0]}/{key[1]}")
            due = times.due(listed)
            made.unlisted += not writer.put_unit(due, fills_holes=fills_holes)
    writer.close()
    made.queues, made.units = writer.queues, writer.units
    made.index_files = writer.index_files
    return made


def _deleted_topics(found: Found) -> Callable[[str], bool]:
    """Whether a topic was deleted: by the broker's list, or by its missing folder.

    A folder tells only if others are there, and if no crash came before it was made.
    """
    told, folders = topics_listed(found.files), found.folders
    if told is None and "abort" in found.files:
        return lambda _: False

    @cache
    def is_deleted(topic: str) -> bool:
        if is_kept_topic(topic) or topic in folders:
            return False
        return may_be_deleted(topic, folders, told, found.files)

    return is_deleted


def whole_log(parts: Iterable[Record | Gap], queues: QueueFiles) -> Iterable[Record]:
    """The records of a log, up to an end that a crash may leave.

    Behind it may be what an earlier cut left over: it is older, and no queue lists it.

    Raises:
        CannotRepair: whole records follow behind bytes that are none.
    """
    broken: Gap | None = None
    newest = 0
    for part in parts:
        if isinstance(part, Gap):
            broken = broken or part
            continue
        if broken is not None:
            if part.store_timestamp < newest and not is_unit_of(queues, part):
                return
            raise CannotRepair(
                f"{broken.path} byte {broken.start} of the log ({broken.why}) is "
                f"damaged, and whole messages follow. `crashmq salvage` keeps those."
            )
        newest = max(newest, part.store_timestamp)
        yield part


def rebuild_in_place(
    found: Found,
    places: Places,
    *,
    all_topics: bool = False,
    tell: Tell = tell_nobody,
) -> Rebuilt:
    """Exchange queues, index and checkpoint of a store for ones made from its log.

    May be interrupted anywhere: the next call, or ``undo``, goes on from there.

    Raises:
        CannotRepair: the log is damaged, or an earlier one is not finished or undone.
    """
    root = places.root
    backup, stage = root / BACKUP, root / STAGE
    if backup.exists():
        raise CannotRepair(
            f"{backup} exists: an earlier rebuild is not finished or not forgotten. "
            f"`crashmq rebuild {root} --in-place --undo` takes it back; or move that "
            f"directory away."
        )
    if ROCKSDB_PATH in found.files:
        raise CannotRepair(
            f"RocksDB keeps the queues of {root}, and its broker would find none in "
            f"files. Leave --in-place out. Nothing was changed."
        )
    pieces, size = log_pieces(found.files)
    for piece in pieces:
        if piece.limit and len(piece.data) != size:
            raise CannotRepair(
                f"{root / piece.path} has {len(piece.data)} bytes, and RocketMQ "
                f"refuses any but {size}. Leave --in-place out and name a directory "
                f"with --out. Nothing was changed."
            )
        if Path(piece.path).name != f"{piece.base:020d}":
            raise CannotRepair(
                f"{root / piece.path} holds the log from {piece.base} on. Give it the "
                f"name {piece.base:020d}; or leave --in-place out and name a directory "
                f"with --out. Nothing was changed."
            )
    for left in (stage, root / UNDONE):
        if left.exists():
            shutil.rmtree(left)
    stage.mkdir()
    made = make_units(found, places, stage, all_topics=all_topics, tell=tell)
    sync_tree(stage)
    was_there = [
        name for name in (*_SWAPPED, "checkpoint", "abort") if (root / name).exists()
    ]
    fresh = root / f"{BACKUP}.new"
    if fresh.exists():
        shutil.rmtree(fresh)
    fresh.mkdir()
    (fresh / _PLAN).write_text(json.dumps({"was_there": was_there}))
    sync_tree(fresh)
    fresh.rename(backup)
    sync_folder(root)
    _exchange(root)
    return made


def _exchange(root: Path) -> None:
    backup, stage = root / BACKUP, root / STAGE
    if not (root / "abort").exists():
        (root / "abort").write_bytes(b"")
        sync_folder(root)
    if (root / "checkpoint").exists():
        _keep(root / "checkpoint", backup)
    for name in _SWAPPED:
        if (root / name).exists():
            (root / name).rename(backup / name)
            sync_folder(backup)
        (stage / name).rename(root / name)
        sync_folder(root)
        sync_folder(stage)
    (stage / "checkpoint").rename(root / "checkpoint")
    sync_folder(root)
    _keep(root / "abort", backup)
    stage.rmdir()


def _keep(path: Path, backup: Path) -> None:
    """Move a file into the backup, so that no power loss takes both its names.

    A rename is two changes of two folders, and POSIX does not say which comes first.
    """
    begun = backup / f"{path.name}.partial"
    if begun.exists():
        begun.unlink()
    copy_file(path, begun)
    sync_file(begun)
    begun.rename(backup / path.name)
    sync_folder(backup)
    path.unlink()
    sync_folder(path.parent)


def undo(root: Path) -> list[str]:
    """Put back what a rebuild in place has replaced, finished or not.

    Returns:
        The names that were put back or taken away.

    Raises:
        CannotRepair: there is no backup.
    """
    backup, stage = root / BACKUP, root / STAGE
    try:
        plan = json.loads((backup / _PLAN).read_text())
        was_there = {str(name) for name in plan["was_there"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise CannotRepair(
            f"{root} has no backup of a rebuild, `{BACKUP}/{_PLAN}`. Nothing was done."
        ) from None
    undone = []
    aside = root / UNDONE
    aside.mkdir(exist_ok=True)
    if not (root / "abort").exists():
        (root / "abort").write_bytes(b"")  # until all is back
        sync_folder(root)
    for name in ("checkpoint", *reversed(_SWAPPED)):
        if (backup / name).exists():
            _move_aside(root / name, aside)
            if (backup / name).is_dir():
                (backup / name).rename(root / name)
            else:  # it stays there, too, until all is back
                copy_file(backup / name, root / name)
                sync_file(root / name)
            undone.append(name)
        elif name not in was_there and (root / name).exists():
            _move_aside(root / name, aside)
            undone.append(name)
        for folder in (root, backup, aside):
            sync_folder(folder)
    if "abort" not in was_there:
        (root / "abort").unlink()
    elif (backup / "abort").exists():
        (root / "abort").write_bytes((backup / "abort").read_bytes())
        sync_file(root / "abort")
    sync_folder(root)
    # All is back: what is left of a removal that is interrupted is no backup.
    _move_aside(backup, aside)
    sync_folder(root)
    for folder in (stage, aside):
        if folder.exists():
            shutil.rmtree(folder)
    return undone


def _move_aside(path: Path, aside: Path) -> None:
    if path.exists():
        target = aside / path.name
        if target.is_dir():
            shutil.rmtree(target)
        elif target.exists():
            target.unlink()
        path.rename(target)
