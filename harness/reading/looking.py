"""Looks up messages and queues in a store: by place, id, key and time.

A queue's own files are used where they are right; otherwise the log is read from its
beginning, which finds every intact record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from crashmq.harness.reading.stream import Gap, Tell, record_at, records_in, tell_nobody
from crashmq.models.files.index import (
    ENTRY_SIZE,
    HEADER_SIZE,
    SLOT_SIZE,
    guessed_slots,
    index_hash,
    keys_of,
)
from crashmq.models.files.places import base_of, misnamed_base
from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.files.record import Bytes, Record, as_listed

Files: TypeAlias = Mapping[str, Bytes]
QueueFiles: TypeAlias = dict[tuple[str, int], list[tuple[int, Bytes]]]
_ENTRY: Final = struct.Struct(">iqii")
_UNIT: Final = struct.Struct(">qiq")
_CHAIN_MAX: Final = 1_000_000


@dataclass(slots=True)
class QueueOverview:
    """One queue: offsets and times of its whole messages, and their bytes in the log.

    ``listed_min`` and ``listed_max`` are the range of its files' units, max past the
    last one; -1 without a file.
    """

    topic: str
    queue_id: int
    messages: int = 0
    size: int = 0
    min_offset: int = -1
    max_offset: int = -1
    first_time: int = 0
    last_time: int = 0
    listed_min: int = -1
    listed_max: int = -1

    def add(self, record: Record) -> None:
        """Count a message."""
        if not self.messages:
            self.min_offset = record.queue_offset
            self.first_time = record.store_timestamp
        self.messages += 1
        self.size += record.size
        self.min_offset = min(self.min_offset, record.queue_offset)
        self.max_offset = max(self.max_offset, record.queue_offset)
        self.last_time = record.store_timestamp


def listings_of(record: Record) -> Iterator[Record]:
    """A record once for each queue and light queue that lists it; none if none does."""
    if record.is_indexed:
        yield record
        for name, _ in record.light_places:
            listed = as_listed(record, name)
            if listed is not record:
                yield listed


def queues_of(
    files: Files, tell: Tell = tell_nobody
) -> tuple[list[QueueOverview], int]:
    """Every queue that has a message or a file, and how many gaps the log has."""
    found: dict[tuple[str, int], QueueOverview] = {}
    gaps = 0
    for part in records_in(files, tell):
        if isinstance(part, Gap):
            gaps += part.is_written or not part.at_end
            continue
        for listed in listings_of(part):
            key = listed.topic, listed.queue_id
            if key not in found:
                found[key] = QueueOverview(*key)
            found[key].add(listed)
    for key, units in queue_files(files).items():
        queue = found.setdefault(key, QueueOverview(*key))
        queue.listed_min, queue.listed_max = _range_of(units)
    return [found[key] for key in sorted(found)], gaps


def queue_files(files: Files) -> QueueFiles:
    """The files of each queue by base, ascending."""
    found: QueueFiles = {}
    for path, data in files.items():
        parts = path.split("/")
        if len(parts) != 4 or parts[0] != "consumequeue":
            continue
        is_queue = parts[2].isascii() and parts[2].isdecimal() and len(parts[2]) < 11
        base = base_of(parts[3])
        if base is None:
            base = misnamed_base(parts[3])
        if is_queue and base is not None:
            key = parts[1], int(parts[2])
            found.setdefault(key, []).append((base, data))
    return {key: sorted(of, key=lambda one: one[0]) for key, of in found.items()}


def _range_of(files: list[tuple[int, Bytes]]) -> tuple[int, int]:
    first, end = files[0][0] // UNIT_SIZE, files[0][0] // UNIT_SIZE
    for number, *_ in units_in(files):
        end = number + 1
    return first, end


def units_in(files: list[tuple[int, Bytes]]) -> Iterator[tuple[int, int, int, int]]:
    """(queue_offset, phy_offset, size, tags_code), to a file's first unit of zeros."""
    for base, data in files:
        number = base // UNIT_SIZE
        whole = len(data) - len(data) % UNIT_SIZE
        for start in range(0, whole, UNIT_SIZE << 10):
            part = data[start : min(start + (UNIT_SIZE << 10), whole)]
            for phy_offset, size, code in _UNIT.iter_unpack(part):
                if size <= 0:
                    break
                yield number, phy_offset, size, code
                number += 1
            else:
                continue
            break


def is_unit_of(queues: QueueFiles, record: Record) -> bool:
    """Whether the unit of a record stands in the files of its queue."""
    return code_of_unit(queues, record) is not None


def code_of_unit(queues: QueueFiles, record: Record) -> int | None:
    """The tags code of a record's unit in its queue's files; None: it has none."""
    at = record.queue_offset * UNIT_SIZE
    for base, data in queues.get((record.topic, record.queue_id), ()):
        if base <= at <= base + len(data) - UNIT_SIZE:
            phy_offset, size, code = _UNIT.unpack_from(data, at - base)
            is_its = (phy_offset, size) == (record.phy_offset, record.size)
            return int(code) if is_its else None
    return None


def message_at(
    files: Files, topic: str, queue_id: int, queue_offset: int
) -> Record | None:
    """The message at a queue_offset: by its unit, else by reading the log."""
    at = queue_offset * UNIT_SIZE
    for base, data in queue_files(files).get((topic, queue_id), ()):
        if base <= at <= base + len(data) - UNIT_SIZE:
            phy_offset, *_ = _UNIT.unpack_from(data, at - base)
            record = record_at(files, phy_offset)
            if record is not None and _is_at(record, topic, queue_id, queue_offset):
                return record
    for part in records_in(files):
        if isinstance(part, Record) and _is_at(part, topic, queue_id, queue_offset):
            return part
    return None


def _is_at(record: Record, topic: str, queue_id: int, queue_offset: int) -> bool:
    return any(
        (one.topic, one.queue_id, one.queue_offset) == (topic, queue_id, queue_offset)
        for one in listings_of(record)
    )


def by_key(
    files: Files, key: str, topic: str, *, by_index: bool, tell: Tell = tell_nobody
) -> Iterator[Record]:
    """Messages that have a key, or this unique key.

    Args:
        files: of the store.
        key: one word of KEYS, or a UNIQ_KEY.
        topic: only messages of this topic; "": of any.
        by_index: ask the index, which takes a topic; else read the log.
        tell: called with the progress.
    """
    if by_index and topic:
        for phy_offset in sorted(_indexed(files, index_hash(f"{topic}#{key}"))):
            record = record_at(files, phy_offset)
            if record is not None and _has_key(record, key, topic):
                yield record
        return
    for part in records_in(files, tell):
        if isinstance(part, Record) and _has_key(part, key, topic):
            yield part


def _has_key(record: Record, key: str, topic: str) -> bool:
    return (not topic or record.topic == topic) and key in keys_of(
        record.properties_raw
    )


def _indexed(files: Files, key_hash: int) -> set[int]:
    """The phy_offsets that the index has for a hash."""
    found: set[int] = set()
    slots = 0
    for path in sorted(files):
        name = path.removeprefix("index/")
        data = files[path]
        if name == path or not name.isdecimal() or len(data) <= HEADER_SIZE:
            continue
        slots = slots or guessed_slots(data)
        if slots:
            found.update(_chained(data, slots, key_hash))
    return found


def _chained(data: Bytes, slots: int, key_hash: int) -> Iterator[int]:
    at = HEADER_SIZE + SLOT_SIZE * (key_hash % slots)
    number = int.from_bytes(data[at : at + SLOT_SIZE], "big", signed=True)
    first = HEADER_SIZE + SLOT_SIZE * slots
    for _ in range(_CHAIN_MAX):
        at = first + ENTRY_SIZE * number
        if number <= 0 or at + ENTRY_SIZE > len(data):
            return
        stored, phy_offset, _, previous = _ENTRY.unpack_from(data, at)
        if stored == key_hash:
            yield phy_offset
        if previous >= number:
            return  # a link that leads forward would go round
        number = previous


def by_message_id(files: Files, text: str) -> Record | None:
    """The message with an offset message id, if its store host is the id's."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return None
    if len(raw) not in (16, 28):
        return None
    record = record_at(files, int.from_bytes(raw[-8:], "big"))
    return record if record is not None and record.store_host == raw[:-8] else None
