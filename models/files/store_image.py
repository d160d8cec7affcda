"""StoreImage: a whole store directory, decoded independently of the engine.

Laws judge this, never an engine object: the same laws hold for the Python
engine, for Apache RocketMQ and for a directory copied from a broken broker. Damaged
files are no error: ``read_store`` returns an image of any bytes and never raises.

Other modules of ``models.files`` decode the parts: a record, the log's chain, a queue,
the checkpoint. They use plain ``struct``: the harness judges stores of a few kilobytes
thousands of times a second, where one numpy call costs as much as five records.
"""

from __future__ import annotations

import re
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Mapping,
)
from dataclasses import dataclass
from functools import lru_cache
from operator import is_
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from crashmq.models.files.checkpoint import CheckpointImage, Mark, read_checkpoint
from crashmq.models.files.config_files import config_pairs
from crashmq.models.files.delays import DelayRows, whole_delays
from crashmq.models.files.deleted import (
    DELETED_PATH,
    NOTHING_DELETED,
    DeletedImage,
    read_deleted,
)
from crashmq.models.files.filters import FilterRows, whole_filters
from crashmq.models.files.index import (
    IndexImage,
    LogKey,
    keys_of_log,
    read_index,
    tag_keys_of_log,
)
from crashmq.models.files.lazy import lazy
from crashmq.models.files.left_out import NO_SKIPS, NOTHING, LeftOut
from crashmq.models.files.log import (
    LogFile,
    LogImage,
    LogStop,
    QueueKey,
    Writer,
    common_size,
    read_log,
    with_misnamed,
)
from crashmq.models.files.message_delay_level import DEFAULT_LEVELS, DelayLevels
from crashmq.models.files.offsets import OffsetRows, whole_offsets
from crashmq.models.files.places import base_of, is_queue_id
from crashmq.models.files.queue import (
    UNIT_SIZE,
    QueueFile,
    QueueImage,
    Unit,
    read_queue,
)
from crashmq.models.files.record import (
    BadRecord,
    Bytes,
    Record,
    decode_answer,
    decode_record,
    tags_code,
)

__all__ = [
    "StoreImage",
    "Reader",
    "read_store",
    "decode_answer",
    "decode_record",
    "tags_code",
    "BadRecord",
    "Bytes",
    "CheckpointImage",
    "LogFile",
    "LogImage",
    "LogStop",
    "Mark",
    "QueueFile",
    "QueueImage",
    "Record",
    "Unit",
    "UNIT_SIZE",
]

_NO_CHECKPOINT = read_checkpoint(b"")
_OF_LOG_AND_QUEUES = (
    *("queue_at", "live_units", "suspect_queues", "unlisted_records", "log_keys"),
    "tag_keys",
)
"""What an image works out of its log and its queues alone."""
ROCKSDB_PATH = "consumequeue/CURRENT"
_ROCKSDB_FILE = re.compile(
    r"CURRENT|IDENTITY|LOCK|LOG(\.old\.\d+)?|(MANIFEST|OPTIONS)-\d+|\d+\.(sst|log)"
)
_KNOWN_FILES = frozenset(
    {"abort.bak", "lock", "timerwheel", "timercheck"}
    | {DELETED_PATH, f"{DELETED_PATH}.tmp"}
)
_KNOWN_DIRS = frozenset(
    {"index", "config", "consumequeue_ext", "batchconsumequeue", "compaction"}
    | {"timerlog"}
)


@dataclass(frozen=True)
class StoreImage:
    """The decoded files of a store.

    Not slotted: rarely used properties are computed on first use and kept.

    Attributes:
        files: the bytes by path, as they were given.
        commit_log: the log and its chain of records.
        consume_queues: every queue that has a file, sorted by topic and queue_id.
        checkpoint: all zero and of size 0 if there is none.
        has_checkpoint: whether there is one.
        abort: whether the abort file is there: the store had no orderly shutdown.
        odd_queue_paths: paths in queues' directories that are not queue files.
        foreign: paths that are not part of a store.
        levels: the delay levels by which it was decoded.
    """

    files: Mapping[str, Bytes]
    commit_log: LogImage
    consume_queues: tuple[QueueImage, ...]
    checkpoint: CheckpointImage
    has_checkpoint: bool
    abort: bool
    odd_queue_paths: tuple[str, ...]
    foreign: tuple[str, ...]
    levels: DelayLevels = DEFAULT_LEVELS

    @lazy
    def offsets(self) -> OffsetRows | None:
        """The consumer offsets; None if there are such files and none is whole."""
        return whole_offsets(self.files)

    @lazy
    def filters(self) -> FilterRows | None:
        """The groups' filters; None if there are such files and none is whole."""
        return whole_filters(self.files)

    @lazy
    def delays(self) -> DelayRows | None:
        """The delay offsets; None if there are such files and none is whole."""
        return whole_delays(self.files)

    @lazy
    def lost_tables(self) -> tuple[str, ...]:
        """The config files of which neither the file nor its backup is whole."""
        pairs = config_pairs(self.files)
        return tuple([path for path, pair in pairs.items() if pair.loaded is None])

    @property
    def flawed_deletions(self) -> tuple[str, ...]:
        """The file of deleted topics, if it has a flaw."""
        return (DELETED_PATH,) if self.commit_log.deleted.flaw else ()

    @lazy
    def queue_at(self) -> dict[QueueKey, QueueImage]:
        """Queues by (topic, queue_id)."""
        return {queue.key: queue for queue in self.consume_queues}

    @lazy
    def is_of_others(self) -> bool:
        """Whether the files do not show that this store wrote all of the log.

        Its orderly end leaves a mark that covers the whole log, and nothing behind it.
        A confirm_phy_offset is RocketMQ's.
        """
        mark, log = self.checkpoint.mark, self.commit_log
        if mark is None or self.checkpoint.is_confirmed_by_others:
            return True
        if self.abort:
            return False
        ours = mark.durable_offset
        return log.max_phy_offset > ours or log.goes_on_behind(ours)

    @lazy
    def live_units(self) -> tuple[tuple[QueueImage, tuple[Unit, ...]], ...]:
        """Each queue with its units from its min offset on, the only ones ever read.

        Before it lie pre-blank units and those whose record has expired.
        """
        log = self.commit_log
        live = [(q, _live(q.units, log.min_phy_offset)) for q in self.consume_queues]
        if log.min_phy_offset:
            live = [
                (queue, _without_rotten(queue, units, log)) for queue, units in live
            ]
        return tuple(live)

    @lazy
    def suspect_queues(self) -> tuple[tuple[QueueImage, tuple[Unit, ...]], ...]:
        """The queues whose live units differ from those of the log's records.

        In all other queues each unit points at its own record, the units follow each
        other, and none points past the log.
        """
        asked = self.commit_log.unit_tuples
        return tuple(
            [
                (queue, live)
                for queue, live in self.live_units
                if live and asked.get(queue.key, ())[: len(live)] != live
            ]
        )

    @lazy
    def unlisted_records(self) -> dict[QueueKey, list[Record]]:
        """Records whose queue_offset has no live unit in their queue, by queue."""
        held = {
            queue.key: range(units[0].queue_offset, units[-1].queue_offset + 1)
            for queue, units in self.live_units
            if units
        }
        unlisted: dict[QueueKey, list[Record]] = {}
        for key, records in self.commit_log.indexed_records.items():
            numbers = held.get(key, ())
            missing = [r for r in records if r.queue_offset not in numbers]
            if missing:
                unlisted[key] = missing
        return unlisted

    def index(self, slot_num: int = 0) -> IndexImage:
        """The index; ``slot_num`` is how many slots each file has, 0: infer it."""
        known: tuple[int, IndexImage] | None = self.__dict__.get("_index")
        if known is None or known[0] != slot_num:
            known = self.__dict__["_index"] = slot_num, read_index(self.files, slot_num)
        return known[1]

    @lazy
    def kept_laws(self) -> set[Hashable]:
        """Keys of the groups of laws that were asked of this image and hold.

        The answer of a law of the files depends on the files alone, so it is not asked
        again.
        """
        return set()

    @lazy
    def log_keys(self) -> tuple[LogKey, ...]:
        """Every key of the log's records, in the order an index lists them."""
        return tuple(keys_of_log(self.commit_log.records))

    @lazy
    def tag_keys(self) -> frozenset[tuple[int, int]]:
        """(hash, phy_offset) of each tag of the log; RocketMQ 5.4.0 indexes them."""
        return tag_keys_of_log(self.commit_log.records)

    @lazy
    def has_queue_extension(self) -> bool:
        """Whether consumequeue_ext files exist, so that tags codes may be addresses."""
        return any(path.startswith("consumequeue_ext/") for path in self.files)

    @lazy
    def queue_file_size(self) -> int:
        """The length that most queue files have; 0 without files."""
        lengths = [len(f.data) for queue in self.consume_queues for f in queue.files]
        return common_size([], lengths)

    @property
    def all_has_expired(self) -> bool:
        """Whether the log has begun to expire and has no record left."""
        log = self.commit_log
        return log.min_phy_offset > 0 and not log.records

    @property
    def newest_store_timestamp(self) -> int:
        """The highest store timestamp of the log's chain; 0 without records."""
        return self.commit_log.newest_store_timestamp


def _live(units: tuple[Unit, ...], minimum: int) -> tuple[Unit, ...]:
    for number, unit in enumerate(units):
        has_expired = _has_expired(unit, minimum)
        if not has_expired and (unit.phy_offset or not unit.is_pre_blank):
            return units[number:] if number else units
    return ()


def _has_expired(unit: Unit, minimum: int) -> bool:
    return 0 <= unit.phy_offset < minimum


def _without_rotten(
    queue: QueueImage, live: tuple[Unit, ...], log: LogImage
) -> tuple[Unit, ...]:
    """The live units without broken ones of expired records at the front.

    Those point at no record, and lie before the unit of the queue's first record; if
    the log has none of the queue, before a unit that has expired.
    """
    asked = log.unit_tuples.get(queue.key)
    if asked and live:
        before = asked[0][0] - live[0].queue_offset
    else:
        minimum = log.min_phy_offset
        gone = [n for n, unit in enumerate(live, 1) if _has_expired(unit, minimum)]
        before = max(gone, default=0)
    if before <= 0:
        return live
    for number, unit in enumerate(live[:before]):
        if unit.phy_offset in log.record_at:
            return live[number:]
    return live[before:]


Reader: TypeAlias = Callable[
    [Mapping[str, bytes], StoreImage | None, DelayLevels], StoreImage
]
"""A function such as ``read_store``: it decodes files by a broker's delay levels."""


class StorePlace(NamedTuple):
    """What a path is: its ``kind``, and the base of a log or queue file."""

    kind: str
    base: int = 0
    topic: str = ""
    queue_id: int = 0


def read_store(
    files: Mapping[str, Bytes],
    previous: StoreImage | None = None,
    levels: DelayLevels = DEFAULT_LEVELS,
    watch: Callable[[str], None] | None = None,
    *,
    by_rocketmq: bool = False,
    left_out: LeftOut = NOTHING,
) -> StoreImage:
    """Decode a store.

    Args:
        files: contents by path relative to the store's root, parts joined by ``/``;
            bytes, or views of mapped files.
        previous: an older image of the same store. Files whose bytes are the same are
            not decoded again; if all are, ``previous`` itself is returned.
        levels: the delay levels of the broker.
        watch: called for each log file that has been decoded.
        by_rocketmq: whether RocketMQ wrote it, so that properties may have NULs.
        left_out: what not to decode, since it was found right; only without
            ``previous``.
    """
    if previous is not None and previous.levels != levels:
        previous = None
    if previous is not None and _unchanged(files, previous.files):
        return previous
    files = MappingProxyType(dict(files))
    layout = _layout(tuple(files))
    known = previous.queue_at if previous else {}
    old_log = previous.commit_log if previous else None
    checkpoint = _checkpoint(files, previous)
    log = read_log(
        _with_data(files, layout.log, layout.odd_log),
        layout.odd_log,
        old_log,
        _deleted(files),
        watch,
        by=Writer(by_rocketmq, _ours(checkpoint), levels),
        left_out=left_out,
    )
    queues = [
        read_queue(*key, of_queue, known.get(key), left_out.units.get(key, NO_SKIPS))
        for key, paths in layout.queues
        if (of_queue := _with_data(files, paths, _of_queue(key, layout.odd_queue)))
    ]
    image = StoreImage(
        files=files,
        commit_log=log,
        consume_queues=tuple([_behind_rot(queue, log) for queue in queues]),
        checkpoint=checkpoint,
        has_checkpoint="checkpoint" in files,
        abort="abort" in files,
        odd_queue_paths=layout.odd_queue,
        foreign=layout.foreign,
        levels=levels,
    )
    if previous is not None and _has_same_units(image, previous):
        kept = previous.__dict__
        for name in _OF_LOG_AND_QUEUES:
            if name in kept:
                image.__dict__[name] = kept[name]
    return image


def _with_data(
    files: Mapping[str, Bytes], named: Iterable[tuple[int, str]], odd: Collection[str]
) -> dict[int, tuple[str, Bytes]]:
    """Files by base, including those whose odd names RocketMQ reads as numbers."""
    found = {base: (path, files[path]) for base, path in named}
    return with_misnamed(found, {path: files[path] for path in odd}) if odd else found


def _of_queue(key: QueueKey, odd: Iterable[str]) -> tuple[str, ...]:
    start = f"consumequeue/{key[0]}/{key[1]}/"
    return tuple([path for path in odd if path.startswith(start)])


def _ours(checkpoint: CheckpointImage) -> range:
    """The phy_offsets at which only our store can have begun a record.

    Past the mark another program may have appended.
    """
    mark = checkpoint.mark
    if mark is None:
        return range(0)
    return range(mark.others_until, max(mark.others_until, mark.durable_offset))


def _has_same_units(image: StoreImage, previous: StoreImage) -> bool:
    """Whether log and queues are the same objects as before."""
    queues, before = image.consume_queues, previous.consume_queues
    return (
        image.commit_log is previous.commit_log
        and len(queues) == len(before)
        and all(map(is_, queues, before))
    )


def _behind_rot(queue: QueueImage, log: LogImage) -> QueueImage:
    if not (queue.stray_units and log.min_phy_offset):
        return queue
    asked = log.unit_tuples.get(queue.key)
    if asked:
        return queue.behind_rot(asked[0][0])
    strays = queue.stray_units
    if any(unit.phy_offset >= log.min_phy_offset for unit in strays):
        return queue
    return queue.behind_rot(strays[-1].queue_offset + 1)


def _deleted(files: Mapping[str, Bytes]) -> DeletedImage:
    raw = files.get(DELETED_PATH)
    return NOTHING_DELETED if raw is None else read_deleted(raw)


def _unchanged(now: Mapping[str, Bytes], before: Mapping[str, Bytes]) -> bool:
    # A view may have changed below us, so only bytes can be known to be the same.
    return {*map(type, now.values())} <= {bytes} and now == before


def _checkpoint(
    files: Mapping[str, Bytes], previous: StoreImage | None
) -> CheckpointImage:
    raw = files.get("checkpoint")
    if raw is None:
        return _NO_CHECKPOINT
    known = previous.files.get("checkpoint") if previous else None
    if previous is not None and type(raw) is bytes and raw == known:
        return previous.checkpoint
    return read_checkpoint(raw)


class _Layout(NamedTuple):
    """The paths of a store by kind, as (base, path)."""

    log: tuple[tuple[int, str], ...]
    queues: tuple[tuple[QueueKey, tuple[tuple[int, str], ...]], ...]
    odd_log: tuple[str, ...]
    odd_queue: tuple[str, ...]
    foreign: tuple[str, ...]


@lru_cache(maxsize=1024)
def _layout(paths: tuple[str, ...]) -> _Layout:
    log: list[tuple[int, str]] = []
    queues: dict[QueueKey, list[tuple[int, str]]] = {}
    others: dict[str, list[str]] = {"odd_log": [], "odd_queue": [], "foreign": []}
    for path in paths:
        place = place_of(path)
        if place.kind == "log":
            log.append((place.base, path))
        elif place.kind == "queue":
            key = (place.topic, place.queue_id)
            queues.setdefault(key, []).append((place.base, path))
        elif place.kind in others:
            others[place.kind].append(path)
    for path in others["odd_queue"]:
        _, topic, queue_id, _ = path.split("/")
        queues.setdefault((topic, int(queue_id)), [])
    return _Layout(
        tuple(log),
        tuple((key, tuple(queues[key])) for key in sorted(queues)),
        tuple(sorted(others["odd_log"])),
        tuple(sorted(others["odd_queue"])),
        tuple(sorted(others["foreign"])),
    )


@lru_cache(maxsize=65536)
def place_of(path: str) -> StorePlace:
    """What a path relative to the store's root is."""
    parts = path.split("/")
    top = parts[0]
    if len(parts) == 1:
        known = path in _KNOWN_FILES or path in ("checkpoint", "abort")
        known = known or path.endswith(".bak")
        return StorePlace("known" if known else "foreign")
    if top == "commitlog":
        if len(parts) != 2:
            return StorePlace("foreign")  # RocketMQ passes over directories
        base = base_of(parts[1])
        return StorePlace("odd_log") if base is None else StorePlace("log", base)
    if top == "consumequeue":
        return _queue_place(parts)
    is_told = path in ("abort/", "checkpoint/", "lock/")  # in the place of a file
    return StorePlace("known" if is_told or top in _KNOWN_DIRS else "foreign")


def _queue_place(parts: list[str]) -> StorePlace:
    """The place of a queue's file, three levels deep; RocketMQ skips all others."""
    if len(parts) == 2 and _ROCKSDB_FILE.fullmatch(parts[1]):
        return StorePlace("known")
    if len(parts) != 4 or not is_queue_id(parts[2]):
        return StorePlace("foreign")
    base = base_of(parts[3])
    if base is None:
        return StorePlace("odd_queue")
    return StorePlace("queue", base, parts[1], int(parts[2]))
