"""What the next start of a store would do with its files.

Without a durable mark the store is RocketMQ's, and the rules are those of its release
5.3.0: MappedFileQueue#load, CommitLog#recoverNormally and #recoverAbnormally,
ConsumeQueue#truncateDirtyLogicFiles. With a mark it is crashmq's own. Both stores are
started on broken copies and compared with this: ``docs/fsck.md`` says how well it
agrees.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from crashmq.harness.fsck.queues_left import (
    QueueLeft,
    dispatched_from,
    empty_file_at,
    highest,
    queues_left,
)
from crashmq.harness.fsck.releases import Release, release_of
from crashmq.models.files.checkpoint import Mark
from crashmq.models.files.log import LogFile, LogImage, LogStop, QueueKey
from crashmq.models.files.places import misnamed_base
from crashmq.models.files.queue import UNIT_SIZE, QueueFile
from crashmq.models.files.record import MAGIC_BLANK, BadRecord, Record, parse_record
from crashmq.models.files.sparse import written_size
from crashmq.models.files.store_image import StoreImage
from crashmq.models.laws.checkpoint import changed_files
from crashmq.models.laws.consume_queue import missing_units

_REPLAYED_FILES = 3
_SAFETY_MS = 3000
# RocketMQ's recovery asks for a record's magic, lengths and CRC, and for no more.
_PASSED_OVER = (
    *("phy_offset", "store_timestamp", "properties", "filler", "missing_file"),
)
_HEAD = struct.Struct(">iI")
_NAMED_MAX = 3
_SENTENCES_MAX = 20


def next_start(image: StoreImage, release: Release | None = None) -> Iterator[str]:
    """What it would refuse, pass over, cut, remove or dispatch, a sentence each."""
    is_ours, known = image.checkpoint.mark is not None, release or release_of(image)
    refused = [*(_refusals_of_ours(image) if is_ours else _refusals(image, known))]
    yield from some_of(refused, "such refusals")
    if not refused:
        cut = image.commit_log.stop if is_ours else cut_by_rocketmq(image, known)
        yield from _changes(image, cut, known)


def some_of(sentences: Iterable[str], others: str) -> Iterator[str]:
    """The first of many sentences of one kind, and how many ``others`` there are."""
    rest = iter(sentences)
    yield from islice(rest, _SENTENCES_MAX)
    if left := sum(1 for _ in rest):
        yield f"... and {left:,} {others} more."


def end_after_start(image: StoreImage) -> int | None:
    """Where the log would end then, a phy_offset; None if the start is refused."""
    is_ours, release = image.checkpoint.mark is not None, release_of(image)
    refused = _refusals_of_ours(image) if is_ours else _refusals(image, release)
    if next(refused, None) is not None:
        return None
    if is_ours:
        return image.commit_log.stop.phy_offset
    return cut_by_rocketmq(image, release).phy_offset


def is_refused_by_rocketmq(image: StoreImage, release: Release) -> bool:
    """Whether RocketMQ does not start there."""
    return next(_refusals(image, release), None) is not None


def _refusals(image: StoreImage, release: Release) -> Iterator[str]:
    """MappedFileQueue#load: by length and name.

    An empty last file is removed, but refused by 4.9.
    """
    log = image.commit_log
    takes_empty = release != "4.9"
    yield from _of_another_length(log.files, log.file_size, takes_empty=takes_empty)
    for queue in image.consume_queues:
        whole = image.queue_file_size - image.queue_file_size % UNIT_SIZE
        yield from _of_another_length(queue.files, whole, takes_empty=takes_empty)
    for path in (*log.odd_paths, *image.odd_queue_paths):
        base = misnamed_base(path.rpartition("/")[2])
        if base is None:
            yield f"refuses: {path} is not named by an offset."
        elif len(image.files[path]) != (size := _size_of(image, path)):
            yield f"refuses: {path} has {len(image.files[path])} bytes, not {size}."
    for path in ("abort/", "checkpoint/", "lock/"):
        if path in image.files:
            yield f"refuses: {path} is a directory."
    if release in ("5.1", "5.3.2"):
        yield from _empty_queue_files(image, release)


def _empty_queue_files(image: StoreImage, release: Release) -> Iterator[str]:
    """A queue's last file without a unit, to which nothing is dispatched.

    Source: ConsumeQueue#correctMinOffset, which reads 20 bytes before the file then.
    """
    log = image.commit_log
    if not any(empty_file_at(queue, queue.end) for queue in image.consume_queues):
        return
    cut = cut_by_rocketmq(image, release).phy_offset
    left = queues_left(image, cut)
    if highest(left.values()) >= cut:
        return  # then its first bytes are taken for a unit
    first = first_dispatched(image, release, cut, left)
    for key, one in left.items():
        path = empty_file_at(image.queue_at[key], one.end)
        unlisted = image.unlisted_records.get(key, ())
        is_met = any(record.phy_offset >= first for record in unlisted)
        if path and one.end * UNIT_SIZE > log.min_phy_offset and not is_met:
            yield f"refuses: {path} has no unit, and none is appended there."


def _size_of(image: StoreImage, path: str) -> int:
    is_log = path.startswith("commitlog/")
    return image.commit_log.file_size if is_log else image.queue_file_size


def _of_another_length(
    files: Sequence[LogFile] | Sequence[QueueFile], size: int, *, takes_empty: bool
) -> Iterator[str]:
    for file in files:
        is_empty_last = takes_empty and not file.data and file is files[-1]
        if len(file.data) != size and not is_empty_last:
            yield f"refuses: {file.path} has {len(file.data)} bytes, not {size}."


def _refusals_of_ours(image: StoreImage) -> Iterator[str]:
    """``engine.store.start_up``: what was durable once must be there, and unchanged."""
    log, mark = image.commit_log, image.checkpoint.mark
    assert mark is not None
    for path in (*log.odd_paths, *image.odd_queue_paths):
        yield f"refuses: {path} is not named by an offset."
    queued = [file for queue in image.consume_queues for file in queue.files]
    of_log = [(f.path, f.base, len(f.data), mark.log_file_size) for f in log.files]
    of_queue = [(f.path, f.base, len(f.data), mark.queue_file_size) for f in queued]
    for path, base, length, size in (*of_log, *of_queue):
        if size > 0 and (base % size or length > size):
            yield f"refuses: {path}, of {length} bytes, does not fit files of {size}."
    if log.min_phy_offset > mark.log_min_offset and not mark.is_empty:
        seen = f"the log begins at {log.min_phy_offset}, not at {mark.log_min_offset}"
        yield f"refuses: {seen}."
    if mark.durable_offset > log.max_phy_offset:
        yield (
            f"refuses: the log ends at {log.stop.where}, below its durable mark "
            f"{mark.durable_offset}."
        )
    elif log.breaks and _is_of_others(image, mark):
        yield f"refuses: others wrote behind the durable mark, up to {log.stop.where}."
    else:
        for path in changed_files(image):
            yield f"refuses: {path} has other bytes than were made durable."


def _is_of_others(image: StoreImage, mark: Mark) -> bool:
    """Whether what lies behind the mark is another program's.

    An orderly end of ours has its mark at the log's end, and nothing behind it; and a
    confirmed offset is RocketMQ's.
    """
    log = image.commit_log
    confirmed = image.checkpoint.is_confirmed_by_others
    if log.records_beyond and (confirmed or not image.abort):
        return True
    return not image.abort and mark.durable_offset < log.max_phy_offset


def cut_by_rocketmq(image: StoreImage, release: Release) -> LogStop:
    """The phy_offset at which a start of RocketMQ would find the log's end."""
    log = image.commit_log
    if (by_name := _as_named(image)) != log.files:
        return _end_by_name(by_name, image.commit_log.file_size, crashed=image.abort)
    first = replayed_from(image, release)
    for stop in log.breaks:
        if _is_seen(stop, first):
            return stop
        behind = strangers_at(log, stop).stop
        if behind is not None and behind.phy_offset >= first:
            return behind
    records = (*log.records, *log.records_beyond)
    if not log.breaks or not records:
        return log.stop
    end = records[-1].phy_offset + records[-1].size
    path = log.where(end).path
    at = end - next(file.base for file in log.files if file.path == path)
    return LogStop("zeros", path, at, end, "never written")


def _as_named(image: StoreImage) -> tuple[LogFile, ...]:
    """The log's files in the order of their names, as RocketMQ's load has them.

    A number that comes twice, once with too few or too many digits, is two files.
    """
    files = image.commit_log.files
    at_base = {file.base: file for file in files}
    known = {file.path for file in files}
    more = [
        at_base[base]._replace(path=path)
        for path in image.commit_log.odd_paths
        if path not in known
        and (base := misnamed_base(path.rpartition("/")[2])) is not None
        and base in at_base
    ]
    return tuple(sorted((*files, *more), key=lambda file: file.path))


def _end_by_name(files: Sequence[LogFile], size: int, *, crashed: bool) -> LogStop:
    """The log's end where a name has too few digits or too many.

    Recovery reads on from file to file whatever their numbers; whichever file is the
    last by name then is where the log ends and is appended to.

    Source: MappedFileQueue#truncateDirtyFiles, #getMaxOffset.
    """
    read = files if crashed else files[-_REPLAYED_FILES:]
    stopped = next((file for file in read if file.flaw is not None), read[-1])
    end = stopped.base + stopped.end
    last = next((file for file in reversed(files) if file.base <= end), files[-1])
    at = min(end - last.base, size)
    return LogStop("end", last.path, at, last.base + at, "the last file by its name")


class Strangers(NamedTuple):
    """Records that lie where others belong: RocketMQ's recovery asks for no place.

    Attributes:
        records: each with the phy_offset that it lies at.
        stop: where they end, unless a BLANK closes their file; None: it does, or there
            are none.
    """

    records: tuple[tuple[int, Record], ...] = ()
    stop: LogStop | None = None


def strangers_at(log: LogImage, stop: LogStop) -> Strangers:
    """The run of such records that begins at a break of the log."""
    if stop.kind != "phy_offset":
        return Strangers()
    file = next(one for one in log.files if one.path == stop.path)
    found: list[tuple[int, Record]] = []
    at = stop.position
    while at < file.limit:
        try:
            record = parse_record(file.data, at, file.limit, None, takes_nul=True)
        except BadRecord as flaw:
            size, magic = _HEAD.unpack(bytes(file.data[at : at + 8]).ljust(8, b"\0"))
            if magic == MAGIC_BLANK and at + size == file.limit:
                return Strangers(tuple(found))
            place = (flaw.kind, file.path, at, file.base + at)
            return Strangers(tuple(found), LogStop(*place, flaw.seen))
        if record.phy_offset == file.base + at:
            break
        found.append((file.base + at, record))
        at += record.size
    return Strangers(tuple(found))


def _is_seen(stop: LogStop, first: int) -> bool:
    # Without forceVerifyPropCRC, which is off by default, it proves bodies alone.
    is_looked_at = not stop.seen.startswith("property CRC")
    is_looked_at = is_looked_at and stop.kind not in _PASSED_OVER
    return stop.phy_offset >= first and is_looked_at


def first_dispatched(
    image: StoreImage, release: Release, cut: int, left: Mapping[QueueKey, QueueLeft]
) -> int:
    """The phy_offset from which the next start dispatches.

    It ends the log at ``cut``, and ``left`` are the queues then.
    """
    if image.abort:
        return replayed_from(image, release)
    return dispatched_from(release, cut, left.values())


def replayed_from(image: StoreImage, release: Release) -> int:
    """The base of the first log file whose records the next start reads.

    Source: CommitLog#recoverNormally, the last three files; #recoverAbnormally, the
    newest whose first record is older than the checkpoint by three seconds. After an
    orderly end since 5.3.2, after a crash since 5.4
    (ConsumeQueueStore#isMappedFileMatchedRecover): the newest whose first record some
    queue has reached; after a crash the checkpoint's sixth field says how far, or its
    second time, without three seconds.
    """
    files, checkpoint = image.commit_log.files, image.checkpoint
    if not files:
        return 0
    if release == "5.4" or (release == "5.3.2" and not image.abort):
        return _replayed_as_of_5_4(image)
    if not image.abort:
        return files[-_REPLAYED_FILES:][0].base
    flushed = min(checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp)
    before = max(0, flushed - _SAFETY_MS)
    for file in reversed(files):
        if file.records and file.records[0].store_timestamp <= before:
            return file.base
    return files[0].base


def _replayed_as_of_5_4(image: StoreImage) -> int:
    files, checkpoint = image.commit_log.files, image.checkpoint
    raw = bytes(image.files.get("checkpoint", b"")[40:48]).ljust(8, b"\0")
    reached = int.from_bytes(raw, "big", signed=True)
    if not image.abort:
        ends = [units[-1] for _, units in image.live_units if units]
        reached = max([unit.phy_offset + unit.size for unit in ends], default=0)
    goes_by_time = image.abort and reached <= 0
    for file in reversed(files):
        first = file.records[0] if file.records else None
        if first is None:
            continue
        if goes_by_time:
            is_met = first.store_timestamp <= checkpoint.logics_msg_timestamp
        else:
            is_met = first.phy_offset <= reached
        if is_met:
            return file.base
    return files[0].base


def _changes(image: StoreImage, cut: LogStop, release: Release) -> Iterator[str]:
    log = image.commit_log
    if (by_name := _as_named(image)) != log.files:
        names = ", ".join([file.path for file in by_name][-_NAMED_MAX:])
        yield f"reads log files in the order of their names: {names} are the last."
    passed = [stop for stop in log.breaks if stop.phy_offset < cut.phy_offset]
    for stop in passed[:_NAMED_MAX]:
        yield f"passes over {stop.where} ({stop.seen}): it does not look there."
    if len(passed) > _NAMED_MAX:
        yield f"passes over {len(passed) - _NAMED_MAX} places more."
    if any(stop == cut for stop in log.breaks):
        last = max(file.base + written_size(file.data) for file in log.files)
        whole = sum(r.phy_offset > cut.phy_offset for r in log.records_beyond)
        whole += log.left_out_in(range(cut.phy_offset, 1 << 63))
        yield (
            f"cuts the log at {cut.where} because of what is there ({cut.seen}): "
            f"{last - cut.phy_offset} bytes and {whole} whole records behind it "
            f"are dropped."
        )
    yield from _removals(log, cut.phy_offset)
    yield from some_of(_cut_units(image, cut.phy_offset), "queues to cut")
    yield from _dispatched(image, cut.phy_offset, release)


def _cut_units(image: StoreImage, end: int) -> Iterator[str]:
    for queue, live in image.suspect_queues:
        past = [n for n, unit in enumerate(live) if unit.phy_offset >= end]
        if past:
            where = queue.where(live[past[0]].queue_offset)
            count = queue.count(live[past[0] :])
            yield f"cuts {count} units at {where}, which points past the log's end."


def _dispatched(image: StoreImage, end: int, release: Release) -> Iterator[str]:
    """Records of no unit: RocketMQ dispatches what it replays after a crash.

    After an orderly end it begins where ``dispatched_from`` says.
    """
    is_ours, log = image.checkpoint.mark is not None, image.commit_log
    lists = image.unlisted_records.values()
    below = end
    if image.abort:
        below = replayed_from(image, release)
    elif not is_ours and any(lists):
        below = dispatched_from(release, end, queues_left(image, end).values())
    if image.abort or not is_ours:
        first = 0 if is_ours else below
        runs = (
            f"dispatches to {missing.where}: {missing.expected}."
            for missing in missing_units(image, end, first=first)
        )
        yield from some_of(runs, "runs of units to dispatch")
    left_out = [log.those(records, lambda r: r.phy_offset < below) for records in lists]
    if any(left_out) and not is_ours:
        first = min(records[0].phy_offset for records in left_out if records)
        yield (
            f"leaves {sum(map(log.count, left_out))} records without a unit, the first "
            f"of them at {log.where(first)}: it does not look at them. A start "
            f"of a copy that has a file `abort` and no `checkpoint` dispatches all."
        )


def _removals(log: LogImage, end: int) -> Iterator[str]:
    later = [file.path for file in log.files if file.base > end]
    if later:
        more = ", ..." if len(later) > _NAMED_MAX else ""
        names = ", ".join(later[:_NAMED_MAX]) + more
        yield f"removes {len(later)} log file(s) past the end: {names}."
