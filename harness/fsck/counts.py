"""How many messages a store has, by topic and queue, and how many a start loses.

A message is *whole* if its record proves itself and no deletion took it; *damaged* if a
unit or a gap between numbers shows that there was one, and no whole record is left;
*lost at a start* if it is whole now and nobody can pull it once that start is over.

What a start of RocketMQ loses is worked out by its own rules: which bytes it cuts off
the log, which units off a queue, and from where on it dispatches again. They differ by
release, which ``Release`` names.

Source: CommitLog#recoverNormally, #recoverAbnormally, ConsumeQueue#recover,
#truncateDirtyLogicFiles, #putMessagePositionInfo, DefaultMessageStore#start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from crashmq.harness.fsck.next_start import (
    cut_by_rocketmq,
    end_after_start,
    first_dispatched,
    is_refused_by_rocketmq,
    replayed_from,
    strangers_at,
)
from crashmq.harness.fsck.queues_left import QueueLeft, queues_left
from crashmq.harness.fsck.releases import Release, release_of
from crashmq.models.files.inferred_deletions import LogAfterDeletions
from crashmq.models.files.log import LogImage, QueueKey
from crashmq.models.files.queue import Unit
from crashmq.models.files.record import Record, as_listed
from crashmq.models.files.store_image import ROCKSDB_PATH, StoreImage
from crashmq.models.laws.judged import Judged, listed_among, was_cut_here

_LIGHT_PREFIX = "%LMQ%"
_BATCH_DIR = "batchconsumequeue/"
_Read: TypeAlias = "tuple[int, Record]"
_GAP_MAX = 1 << 24  # a wider one is a number that was damaged


@dataclass(frozen=True, slots=True)
class QueueCount:
    """One queue's messages; offsets are queue_offsets, times are of storing, in ms.

    ``lost_by_rocketmq`` and ``lost_by_crashmq`` count messages that are whole now and
    cannot be pulled after the next start of each. Offsets are -1, times 0 without any.
    """

    topic: str
    queue_id: int
    whole: int
    damaged: int
    behind_damage: int
    lost_by_rocketmq: int
    lost_by_crashmq: int
    first_offset: int
    last_offset: int
    first_time: int
    last_time: int


@dataclass(frozen=True, slots=True)
class Counts:
    """A store's messages.

    Attributes:
        queues: by topic and queue.
        release: whose rules foretell the start of RocketMQ.
        rocketmq_refuses, crashmq_refuses: that start changes nothing and ends.
        is_ours: crashmq is the one that starts there.
    """

    queues: tuple[QueueCount, ...]
    release: Release
    rocketmq_refuses: bool
    crashmq_refuses: bool
    is_ours: bool

    @property
    def _own(self) -> list[QueueCount]:
        """Queues of messages' own topics: a light queue lists what another one has."""
        return [q for q in self.queues if not q.topic.startswith(_LIGHT_PREFIX)]

    @property
    def whole(self) -> int:
        """Messages that are whole."""
        return sum(queue.whole for queue in self._own)

    @property
    def damaged(self) -> int:
        """The number of messages of which no whole record is left."""
        return sum(queue.damaged for queue in self._own)

    @property
    def behind_damage(self) -> int:
        """Whole messages behind a place of the log that is damaged."""
        return sum(queue.behind_damage for queue in self._own)

    @property
    def lost_by_rocketmq(self) -> int:
        """Whole messages that the next start of RocketMQ loses."""
        return sum(queue.lost_by_rocketmq for queue in self._own)

    @property
    def lost_by_crashmq(self) -> int:
        """Whole messages that the next start of crashmq loses."""
        return sum(queue.lost_by_crashmq for queue in self._own)

    @property
    def loser(self) -> str:
        """Who loses ``lost`` by a start: the store's owner, unless it refuses."""
        by_ours = self.is_ours and not self.crashmq_refuses
        return "crashmq" if by_ours else "RocketMQ"

    @property
    def lost(self) -> int:
        """Whole messages that the next start of the ``loser`` loses."""
        by_ours = self.loser == "crashmq"
        return self.lost_by_crashmq if by_ours else self.lost_by_rocketmq


def counts_of(
    judged: Judged, *, is_ours: bool, release: Release | None = None
) -> Counts:
    """Count the messages of an image, without those of inferred deletions."""
    image, log = judged.image, judged.image.commit_log
    known = release or release_of(image)
    records = _alive(image, known)
    beyond = _beyond(image, records)
    refuses = is_refused_by_rocketmq(image, known)
    gone = {} if refuses else _lost_by_rocketmq(image, records, beyond, known)
    our_end = end_after_start(image) if is_ours else None
    queues = []
    batched = _batched(image)
    lost = _LostBytes(log, _written_end(judged))
    live = {queue.key: units for queue, units in image.live_units if units}
    for key in sorted({*records, *beyond, *live}):
        later = beyond.get(key, [])
        held = [*records.get(key, []), *later]
        numbers = {record.queue_offset for record in held}
        # A batch has one record and many numbers.
        of_units = set[int]() if key[0] in batched else numbers
        queues.append(
            QueueCount(
                *key,
                whole=log.count(held),
                damaged=_damaged(
                    live.get(key, ()), of_units, lost, log.undecoded(held)
                ),
                behind_damage=log.count(later),
                lost_by_rocketmq=gone.get(key, 0),
                lost_by_crashmq=log.count(later) if our_end is not None else 0,
                first_offset=min(numbers, default=-1),
                last_offset=max(numbers, default=-1),
                first_time=held[0].store_timestamp if held else 0,
                last_time=held[-1].store_timestamp if held else 0,
            )
        )
    counted = tuple([queue for queue in queues if queue.whole or queue.damaged])
    return Counts(counted, known, refuses, is_ours and our_end is None, is_ours)


def _alive(image: StoreImage, release: Release) -> dict[QueueKey, list[Record]]:
    """The chain's records by queue; of RocksDB's and batch queues those of the log."""
    log = image.commit_log
    if ROCKSDB_PATH in image.files and isinstance(log, LogAfterDeletions):
        return log.as_found
    batched = _batched(image)
    if image.abort and isinstance(log, LogAfterDeletions):
        return _with_replayed(image, log, release)
    if not batched:
        return log.indexed_records
    found = {
        key: of for key, of in log.indexed_records.items() if key[0] not in batched
    }
    for record in log.records:
        if record.topic in batched:
            found.setdefault((record.topic, record.queue_id), []).append(record)
    return found


def _with_replayed(
    image: StoreImage, log: LogAfterDeletions, release: Release
) -> dict[QueueKey, list[Record]]:
    """Also the topics without a folder of which a crash may have come before any unit.

    A deleted topic looks the same; but the next start lists what it replays of both.
    """
    first = replayed_from(image, release)
    found = dict(log.indexed_records)
    for key, records in log.as_found.items():
        replayed = [record for record in records if record.phy_offset >= first]
        if key not in found and replayed:
            found[key] = replayed
    return found


def _batched(image: StoreImage) -> set[str]:
    """The topics whose queues are batch queues."""
    return {p.split("/")[1] for p in image.files if p.startswith(_BATCH_DIR)}


def _beyond(
    image: StoreImage, chain: Mapping[QueueKey, list[Record]]
) -> dict[QueueKey, list[Record]]:
    """Whole records behind the chain's end that are no leftovers of an earlier cut.

    What was left over has a number that the chain gave again, or is older than the
    chain's last record and listed by no queue.
    """
    log = image.commit_log
    if was_cut_here(image) and not log.later_file_written:
        return {}
    newest = log.records[-1].store_timestamp if log.records else 0
    ends = {key: max(r.queue_offset for r in of) for key, of in chain.items() if of}
    gone = _taken_for_deleted(log)
    older = [one for one in log.records_beyond if one.store_timestamp < newest]
    left_over = {one.phy_offset for one in older} - listed_among(image, older)
    found: dict[QueueKey, list[Record]] = {}
    for record in log.records_beyond:
        if not record.is_indexed or record.phy_offset in left_over:
            continue
        names = [record.topic, *(name for name, _ in record.light_places)]
        for name in names:
            listed = as_listed(record, name)
            key = listed.topic, listed.queue_id
            if listed.queue_offset > ends.get(key, -1):
                dead_below = log.deleted.dead_below(*key)
                if record.phy_offset >= dead_below and key not in gone:
                    found.setdefault(key, []).append(listed)
    return found


def _taken_for_deleted(log: LogImage) -> frozenset[QueueKey]:
    """Queues of which no record is listed, since their topic was deleted."""
    if not isinstance(log, LogAfterDeletions):
        return frozenset()
    end = log.max_phy_offset
    return frozenset([key for key, first in log.listed_from.items() if first >= end])


class _LostBytes:
    """The bytes of a log that were written and belong to no whole record."""

    def __init__(self, log: LogImage, end: int) -> None:
        self._range = range(log.max_phy_offset, end)
        records = [(record.phy_offset, record.end) for record in log.records_beyond]
        skips = [
            (file.base + at, file.base + skip.end)
            for file in log.files
            for at, skip in file.skips.items()
        ]
        whole = sorted([*records, *skips])
        self._starts = [start for start, _ in whole]
        self._ends = [end for _, end in whole]

    def __contains__(self, phy_offset: int) -> bool:
        number = bisect_right(self._starts, phy_offset) - 1
        is_whole = number >= 0 and phy_offset < self._ends[number]
        return phy_offset in self._range and not is_whole


def _damaged(
    live: tuple[Unit, ...], numbers: set[int], lost: _LostBytes, undecoded: list[range]
) -> int:
    """How many numbers of a queue have had a message, and have no whole record.

    ``undecoded`` has those of whole records that are not among ``numbers``. A record
    whose number was damaged may say one of them.
    """
    lacking = {
        unit.queue_offset
        for unit in live
        if unit.phy_offset in lost
        and unit.size > 0
        and unit.queue_offset not in numbers
    }
    if not numbers:
        return len(lacking)
    singles = [range(number, number + 1) for number in numbers | lacking]
    gaps = _gaps_between([*singles, *undecoded])
    return len(lacking) + sum(gap for gap in gaps if gap <= _GAP_MAX)


def _gaps_between(spans: list[range]) -> Iterator[int]:
    """How many numbers lie between any two spans next to each other."""
    end = min(span.start for span in spans)
    for span in sorted(spans, key=lambda one: one.start):
        if span.start > end:
            yield span.start - end
        end = max(end, span.stop)


def _written_end(judged: Judged) -> int:
    """Up to where units tell of messages: a crash leaves units of none behind it."""
    image = judged.image
    log = image.commit_log
    last = max([r.end for r in log.records_beyond], default=0)
    if judged.clean and not judged.stale_allowed:
        return 1 << 62
    if judged.clean and not was_cut_here(image):
        return 1 << 62
    return max(log.max_phy_offset, last)


def _lost_by_rocketmq(
    image: StoreImage,
    chain: Mapping[QueueKey, list[Record]],
    beyond: Mapping[QueueKey, list[Record]],
    release: Release,
) -> dict[QueueKey, int]:
    """How many whole messages of each queue cannot be pulled after RocketMQ's start."""
    if ROCKSDB_PATH in image.files:
        return {}  # its queues are built again from the log
    cut = cut_by_rocketmq(image, release).phy_offset
    left = queues_left(image, cut)
    first = first_dispatched(image, release, cut, left)
    log = image.commit_log
    strangers = _strangers(log)
    lost: dict[QueueKey, int] = {}
    batched = _batched(image)
    for key in {*chain, *beyond}:
        if key[0] in batched:
            continue  # it has units of another kind
        held = [*chain.get(key, ()), *beyond.get(key, ())]
        read = [(record.phy_offset, record) for record in held]
        read += strangers.get(key, [])
        served = _Served(log, left.get(key, QueueLeft()))
        served.dispatch(sorted(read, key=_by_place), first, cut)
        is_gone = _is_not_in(served, cut)
        if gone := log.those(held, is_gone):
            lost[key] = log.count(gone)
    return lost


def _is_not_in(served: _Served, cut: int) -> Callable[[Record], bool]:
    return lambda record: record.phy_offset >= cut or record not in served


def _place(record: Record) -> tuple[int, int, int]:
    return record.queue_offset, record.phy_offset, record.size


class _Served:
    """Which of a queue's messages its units list, once records were dispatched.

    Messages that are left out of the image follow each other, in number and in the log,
    and all have their units or none has one. So of a run those that a unit is left of
    are its first ones, and those that are dispatched its last ones; a run is decoded
    only where dispatch begins, or where the units end that a queue has of later ones.

    Source: ConsumeQueue#putMessagePositionInfo.
    """

    def __init__(self, log: LogImage, left: QueueLeft) -> None:
        units = left.units
        self._log = log
        self._places = {(one.queue_offset, one.phy_offset, one.size) for one in units}
        self._runs: list[tuple[int, int, int]] = []
        for before, after in pairwise(units):
            between = after.queue_offset - before.queue_offset - 1
            ends = before.phy_offset, after.phy_offset
            if between > 0 and log.runs.get(ends) == between:
                self._runs.append((*ends, before.queue_offset + 1))
        self._end = left.end
        self._newest = left.newest

    def __contains__(self, record: Record) -> bool:
        if _place(record) in self._places:
            return True
        number = bisect_right(self._runs, (record.phy_offset,)) - 1
        if number < 0:
            return False
        _, end, first = self._runs[number]
        return record.phy_offset < end and record.queue_offset >= first

    def dispatch(self, read: Sequence[_Read], start: int, cut: int) -> None:
        """Dispatch the records in [start, cut), each with the place that it lies at.

        One that ends before the newest unit's record, or has a number that is taken, is
        passed over; any other one gets the next number, whatever its own.
        """
        before: Record | None = None
        for at, record in read:
            if before is not None and at < cut:
                self._dispatch_between(before, record, start)
            if start <= at < cut:
                self._take(record)
            before = record
        self._runs.sort()

    def _dispatch_between(self, before: Record, after: Record, start: int) -> None:
        """Dispatch what is left out between two records, if anything is."""
        count = self._log.runs.get((before.phy_offset, after.phy_offset), 0)
        if not count or after.phy_offset < start or after.end <= self._newest:
            return
        if before.phy_offset < start or before.end < self._newest:
            for record in self._log.left_out_between(before, after):
                if record.phy_offset >= start:
                    self._take(record)
            return
        first = before.queue_offset + 1
        number = max(first, self._end)
        if number < after.queue_offset:
            if number == self._end:
                self._runs.append((before.phy_offset, after.phy_offset, number))
            self._end += after.queue_offset - number
            self._newest = after.phy_offset

    def _take(self, record: Record) -> None:
        if record.end <= self._newest or 0 < record.queue_offset < self._end:
            return
        self._end = record.queue_offset if self._end < 0 else self._end
        self._places.add((self._end, record.phy_offset, record.size))
        self._end, self._newest = self._end + 1, record.end


def _by_place(read: _Read) -> int:
    return read[0]


def _strangers(log: LogImage) -> dict[QueueKey, list[tuple[int, Record]]]:
    """Records that lie where others belong, each with the phy_offset it lies at.

    RocketMQ dispatches them by the place that they say themselves.
    """
    found: dict[QueueKey, list[tuple[int, Record]]] = {}
    for stop in log.breaks:
        for at, record in strangers_at(log, stop).records:
            if record.is_indexed:
                key = record.topic, record.queue_id
                found.setdefault(key, []).append((at, record))
    return found
