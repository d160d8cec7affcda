"""A store that RocketMQ starts on, of every whole message of a damaged log.

Each whole record stays at its phy_offset, so ids of messages stay right. Bytes between
them that hold none are covered: by a filler that no queue lists, or by the BLANK of
their file. Where a message was lost, its queue keeps its numbers by a placeholder, or
the messages after it are renumbered and groups' offsets with them.

Then queues, index and checkpoint are made again from that log.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from crashmq.harness.fsck.places import Places
from crashmq.harness.fsck.store_files import Found, find_files
from crashmq.harness.reading.looking import (
    is_unit_of,
    listings_of,
    queue_files,
    units_in,
)
from crashmq.harness.reading.stream import (
    Gap,
    LogPiece,
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
    made_whole,
)
from crashmq.harness.repair.rebuild import Rebuilt, make_units
from crashmq.harness.repair.records import (
    BLANK_SIZE_MIN,
    LOST,
    blank,
    filler,
    filler_size_min,
    filler_topic,
    overhead,
    placeholder,
    renumbered,
)
from crashmq.models.files.broker_json import read_table
from crashmq.models.files.offsets import OFFSETS_BACKUP, OFFSETS_PATH
from crashmq.models.files.record import Bytes, Record, has_property_crc, is_light_queue

REPORT: Final = "salvage.json"
_LOST_MAX: Final = 1_000_000
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Hole:
    """Bytes [start, end) of the log, and the messages that were lost there.

    ``lost`` is (topic, queue_id, queue_offset) of each, as far as it is known.
    """

    path: str
    start: int
    end: int
    why: str
    lost: tuple[tuple[str, int, int], ...]


@dataclass(slots=True)
class Salvaged:
    """What was kept, what was lost where, and what was made of it.

    ``mended`` messages had a queue_offset with a flipped bit, as the units of their
    queues tell. ``unplaced`` are numbers for which no bytes were found: their queue
    lists nothing from there on but what follows them.
    """

    holes: list[Hole] = field(default_factory=list)
    kept: int = 0
    mended: int = 0
    renumbered: int = 0
    unplaced: list[tuple[str, int, int]] = field(default_factory=list)
    rebuilt: Rebuilt = field(default_factory=Rebuilt)

    @property
    def lost(self) -> int:
        """How many messages are known to be lost."""
        return sum(len(hole.lost) for hole in self.holes) + len(self.unplaced)

    def to_json(self) -> dict[str, Any]:
        """As the file ``salvage.json`` has it."""
        return {
            "kept": self.kept,
            "lost": self.lost,
            "mended": self.mended,
            "renumbered": self.renumbered,
            "holes": [asdict(hole) for hole in self.holes],
            "unplaced": self.unplaced,
            "taken_for_deleted": sorted(self.rebuilt.deleted),
        }


@dataclass(slots=True)
class _Span:
    """A gap that whole records follow, or a BLANK; what was lost in it."""

    path: str
    start: int
    end: int
    why: str
    at_end: bool
    stored: int
    lost: list[tuple[str, int, int]] = field(default_factory=list)
    used: int = 0


def salvage(
    found: Found,
    places: Places,
    out: Path,
    *,
    renumber: bool = False,
    tell: Tell = tell_nobody,
) -> Salvaged:
    """Make a store in ``out`` of every whole record of another one.

    Args:
        found: its files.
        places: where they lie, and its sizes.
        out: a directory that does not exist.
        renumber: close the gaps in queues' numbers instead of keeping them.
        tell: told how far it is.

    Raises:
        CannotRepair: there is no log, or ``out`` cannot be used.
    """
    pieces, size = log_pieces(found.files)
    if not pieces or not size:
        raise CannotRepair(f"{places.root} has no log file: nothing can be kept.")
    with made_whole(out) as partial:
        plan = _Plan(found.files, pieces, tell)
        if not plan.end:
            raise CannotRepair(f"{places.root}: the log has no whole record.")
        done = Salvaged(kept=plan.kept)
        (partial / "commitlog").mkdir()
        for number, piece in enumerate(pieces):
            tell("copying log files", number, len(pieces))
            if piece.base < plan.end and piece.limit:
                target = partial / "commitlog" / f"{piece.base:020d}"
                copy_file(found.paths[piece.path], target)
        log = _Log(partial / "commitlog", pieces[0].base, size, plan.has_crc)
        log.fit(plan.end)
        for record, number in plan.flipped:
            log.number(record, number)
        done.mended = len(plan.flipped)
        for span in plan.spans:
            log.cover(span, keeps_numbers=not renumber)
            hole = Hole(span.path, span.start, span.end, span.why, tuple(span.lost))
            done.holes.append(hole)
        done.holes += plan.behind([one for one in pieces if one.base <= plan.end])
        done.unplaced = [] if renumber else plan.unplaced
        copy_rest(places.root, partial, {*MADE_AGAIN, "commitlog"})
        if renumber:
            _refuse_light(plan.lost)
            done.renumbered = log.renumber(plan.lost, tell)
            _shift_offsets(partial, plan.lost)
        made = find_files(Places(partial))
        with_sizes = Found(
            {**_sizing(found), **made.files}, found.folders, (), made.paths
        )
        done.rebuilt = make_units(
            with_sizes, places, partial, fills_holes=True, tell=tell
        )
        done.rebuilt.deleted -= log.fillers
        text = json.dumps(done.to_json(), indent=1)
        (partial / REPORT).write_text(text + "\n")
    return done


def _refuse_light(lost: Mapping[Key, list[int]]) -> None:
    for topic, _ in lost:
        if is_light_queue(topic):
            raise CannotRepair(
                f"the light queue {topic} lost messages, and its numbers lie in other "
                f"topics' messages. Keep the offsets: leave --renumber out."
            )


def _sizing(found: Found) -> dict[str, Bytes]:
    """The old queues and index, whose sizes the new ones have; whether it crashed."""
    tops = ("consumequeue/", "index/", "abort")
    return {path: data for path, data in found.files.items() if path.startswith(tops)}


class _Plan:
    """Where the holes of a log are, and which messages were lost there."""

    def __init__(
        self, files: Mapping[str, Bytes], pieces: Sequence[LogPiece], tell: Tell
    ) -> None:
        self.spans: list[_Span] = []
        self.lost: dict[Key, list[int]] = {}
        self.unplaced: list[tuple[str, int, int]] = []
        self.flipped: list[tuple[Record, int]] = []
        self.kept = self.end = 0
        self.has_crc = False
        self._newest = 0
        self._last: dict[Key, tuple[int, int]] = {}
        self._waiting: list[_Span] = []
        self._queues = queue_files(files)
        self._first = pieces[0].base
        for part in records_in(files, tell):
            if isinstance(part, Gap):
                self._note_gap(part)
            else:
                self._note_record(part)
        self._ask_units()

    def _note_gap(self, gap: Gap) -> None:
        last = self._waiting[-1] if self._waiting else None
        if last is not None and last.end == gap.start and not last.at_end:
            last.end, last.at_end = gap.end, gap.at_end
            return
        stored = max(1, self._newest)
        self._waiting.append(
            _Span(gap.path, gap.start, gap.end, gap.why, gap.at_end, stored)
        )

    def _note_record(self, found: Record) -> None:
        record = self._as_its_queue_says(found)
        is_older = self._waiting and record.store_timestamp < self._newest
        if is_older and not self._is_listed(record):
            # Left over from before an earlier cut: nobody serves it any more.
            gap = Gap(
                self._waiting[-1].path,
                record.phy_offset,
                record.end,
                "left over from an earlier cut",
                True,
                False,
            )
            self._note_gap(gap)
            return
        self.spans += self._waiting
        self._waiting = []
        self._newest = max(self._newest, record.store_timestamp)
        self.end = record.end
        self.has_crc = has_property_crc(record.properties_raw)
        if record is not found:
            self.flipped.append((found, record.queue_offset))
        if record.is_indexed:
            self.kept += 1
            for listed in listings_of(record):
                self._note_number(listed)

    def _as_its_queue_says(self, record: Record) -> Record:
        """The record with the number of its unit, if one bit of its own was flipped."""
        key = record.topic, record.queue_id
        last, _ = self._last.get(key, (-1, -1))
        is_next = record.queue_offset == last + 1
        if not record.is_indexed or is_next or is_unit_of(self._queues, record):
            return record  # no unit is looked for where a queue has none of it
        for number, phy_offset, size, _ in units_in(self._queues.get(key, [])):
            flipped = number ^ record.queue_offset
            is_its = (phy_offset, size) == (record.phy_offset, record.size)
            if is_its and number > last and flipped.bit_count() == 1:
                return record._replace(queue_offset=number)
        return record

    def _is_listed(self, record: Record) -> bool:
        """Whether its queue still lists a message, and no newer one has its number.

        Then it is no leftover, even if it looks older: the clock was set back.
        """
        last, _ = self._last.get((record.topic, record.queue_id), (-1, -1))
        return record.queue_offset > last and is_unit_of(self._queues, record)

    def _note_number(self, record: Record) -> None:
        key = record.topic, record.queue_id
        number, after = self._last.get(key, (-1, -1))
        # Of a log from its very beginning no first number has expired.
        is_known = number >= 0 or (self.spans and not self._first)
        if is_known and 0 < record.queue_offset - number - 1 <= _LOST_MAX:
            for lost in range(number + 1, record.queue_offset):
                self._place((*key, lost), after, record.phy_offset)
        self._last[key] = record.queue_offset, record.end

    def _place(self, lost: tuple[str, int, int], after: int, before: int) -> None:
        """Give a lost message to a hole between two whole ones of its queue."""
        need = overhead(lost[0], has_crc=self.has_crc)
        insort(self.lost.setdefault(lost[:2], []), lost[2])
        for span in self.spans:
            room = span.end - span.start - span.used
            if after <= span.start and span.end <= before and room >= need:
                span.lost.append(lost)
                span.used += need
                return
        self.unplaced.append(lost)

    def _ask_units(self) -> None:
        """Messages at the ends of queues, of which the units alone tell."""
        holes = [span for span in self.spans if span.end <= self.end]
        for key, of in self._queues.items():
            last, _ = self._last.get(key, (-1, -1))
            for number, phy_offset, size, _ in units_in(of):
                if number <= last or size <= 0:
                    continue
                for span in holes:
                    need = overhead(key[0], has_crc=self.has_crc)
                    room = span.end - span.start - span.used
                    is_next = number == last + 1
                    if span.start <= phy_offset < span.end and room >= need and is_next:
                        span.lost.append((*key, number))
                        span.used += need
                        last = number
                        break

    def behind(self, pieces: Sequence[LogPiece]) -> list[Hole]:
        """The hole behind the last whole record, if units list messages there.

        Nothing stands for them in the new log: their numbers are given again.
        """
        lost, until = [], self.end
        for key, of in self._queues.items():
            last, _ = self._last.get(key, (-1, -1))
            for number, phy_offset, size, _ in units_in(of):
                if number > last and size > 0 and phy_offset >= self.end:
                    lost.append((*key, number))
                    until = max(until, phy_offset + size)
        if not lost:
            return []
        why = "the log ends here, and queues list what lay behind"
        return [Hole(pieces[-1].path, self.end, until, why, tuple(sorted(lost)))]


class _Log:
    """The log files of the new store, in which holes are covered."""

    def __init__(self, folder: Path, first: int, size: int, has_crc: bool) -> None:
        self._folder = folder
        self._first = first
        self._size = size
        self._has_crc = has_crc
        self.fillers: set[str] = set()

    def fit(self, end: int) -> None:
        """Give every file up to ``end`` its length, and erase what lies behind."""
        for base in range(self._first, end, self._size):
            with (self._folder / f"{base:020d}").open("ab") as file:
                length = file.seek(0, os.SEEK_END)
                file.truncate(min(length, end - base))
                file.truncate(self._size)

    def cover(self, span: _Span, *, keeps_numbers: bool) -> None:
        """Write over a hole: placeholders, then a filler or the end of a file."""
        lost = sorted(span.lost) if keeps_numbers else []
        at = span.start
        while at < span.end:
            number = (at - self._first) // self._size
            file_end = self._first + (number + 1) * self._size
            end = min(span.end, file_end)
            least = self._least(is_file_end=end == file_end)
            while lost and (size := self._size_of_next(lost, end - at, least)):
                where = lost.pop(0), at, span.stored, size
                self._write(at, placeholder(*where, has_crc=self._has_crc))
                at += size
            if at < end:
                self._close(at, end, span.stored, is_file_end=end == file_end)
            at = end

    def _size_of_next(
        self, lost: list[tuple[str, int, int]], left: int, least: int
    ) -> int:
        """How large the next placeholder is made; 0: it has no room.

        What is left behind it is nothing, or room for what closes the hole.
        """
        needs = [overhead(topic, has_crc=self._has_crc) for topic, *_ in lost]
        if left < needs[0]:
            return 0
        named = needs[0] + len(LOST)
        size = named if left - named >= sum(needs[1:]) else needs[0]
        is_last = len(lost) == 1 or left - size < needs[1]
        return left if is_last and 0 < left - size < least else size

    def _least(self, *, is_file_end: bool) -> int:
        """How many bytes what closes a hole takes at least."""
        if is_file_end:
            return BLANK_SIZE_MIN
        return filler_size_min(has_crc=self._has_crc)

    def _close(self, at: int, end: int, stored: int, *, is_file_end: bool) -> None:
        if is_file_end and end - at >= BLANK_SIZE_MIN:
            path, position = self._place(at)
            erase(path, position)
            self._write(at, blank(end - at))
        elif end - at >= self._least(is_file_end=False):
            self.fillers.add(filler_topic(end - at, has_crc=self._has_crc))
            self._write(at, filler(end - at, at, stored, has_crc=self._has_crc))
        else:
            raise CannotRepair(
                f"{end - at} bytes of the log at phy_offset {at} hold no record, and "
                f"are too few for a filler. Please report that with this file."
            )

    def _place(self, phy_offset: int) -> tuple[Path, int]:
        base = self._first + (phy_offset - self._first) // self._size * self._size
        return self._folder / f"{base:020d}", phy_offset - base

    def _write(self, phy_offset: int, data: bytes) -> None:
        path, position = self._place(phy_offset)
        with path.open("r+b") as file:
            file.seek(position)
            file.write(data)

    def renumber(self, lost: Mapping[Key, list[int]], tell: Tell) -> int:
        """Close the gaps in queues' numbers; says how many records were changed."""
        files = find_files(Places(self._folder.parent)).files
        changed = 0
        for record in records_in(files, tell):
            if isinstance(record, Gap) or not record.is_indexed:
                continue
            gone = lost.get((record.topic, record.queue_id), [])
            fewer = bisect_left(gone, record.queue_offset)
            if not fewer:
                continue
            self.number(record, record.queue_offset - fewer)
            changed += 1
        return changed

    def number(self, record: Record, queue_offset: int) -> None:
        """Give a record another queue_offset."""
        path, position = self._place(record.phy_offset)
        with path.open("r+b") as file:
            file.seek(position)
            raw = file.read(record.size)
            file.seek(position)
            file.write(renumbered(raw, record, queue_offset))


def _shift_offsets(root: Path, lost: Mapping[Key, list[int]]) -> None:
    """Lower the groups' offsets by what was lost below them, in file and backup."""
    for name in (OFFSETS_PATH, OFFSETS_BACKUP):
        path = root / name
        if not path.is_file():
            continue
        try:
            table = read_table(path.read_bytes())
            for key, offsets in table["offsetTable"].items():
                topic = key.partition("@")[0]
                for queue_id, offset in offsets.items():
                    gone = lost.get((topic, int(queue_id)), [])
                    offsets[queue_id] = offset - bisect_left(gone, offset)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # no whole table: it stays as it is
        path.write_text(json.dumps(table))
