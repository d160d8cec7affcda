"""Laws of consumequeue_ext: an address leads to the data of its unit's record."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from crashmq.models.expressions import matches, may_match
from crashmq.models.files.bloom_bits import bits_of
from crashmq.models.files.filters import BitMapFilters, FilterKey
from crashmq.models.files.log import common_size
from crashmq.models.files.places import is_queue_id
from crashmq.models.files.queue import QueueImage, Unit
from crashmq.models.files.queue_ext import (
    EXT_ADDRESS_MAX,
    EXT_END_SIZE,
    EXT_UNIT_SIZE_MIN,
    end_of_ext_units,
    ext_files,
    ext_place,
    ext_unit_at,
    ext_unit_size,
    starts_of_ext_units,
)
from crashmq.models.files.record import Bytes, Record, is_light_queue
from crashmq.models.files.store_image import StoreImage
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import law
from crashmq.models.limits import BIT_MAP_BITS, FILTER_BITS
from crashmq.models.verdict import Place, Violation

_FOLDER = "consumequeue_ext/"
_SECTOR = 512


@law(
    "CQ-6",
    "if a unit holds a consumequeue_ext address, the entry there has its record's "
    "tags_code and store_timestamp",
    catalogue="I3",
)
def addresses_lead_to_their_records(judged: Judged) -> Iterator[Violation]:
    """Compares the entry's tags_code and store_timestamp with the record's.

    Which unit belongs to which record is left to CQ-1; a bit map cannot be proven here.
    After a crash only entries with a correct later entry in the same sector are
    checked.

    Source: ConsumeQueue#getExt, ConsumeQueueExt#get.
    """
    image = judged.image
    is_asked = judged.clean or judged.whole_sectors
    if not is_asked or not image.has_queue_extension:
        return
    for queue, live in image.suspect_queues:
        right: set[int] = set()
        led = [*_led_astray(queue, live, judged, right)][::-1]
        paths = [path for path, _ in ext_files(image.files, queue.name)] if led else []
        if led and not paths:
            seen = f"no file, yet {len(led)} units lead there"
            expected = "a file, which their addresses lead to"
            yield Violation(f"{_FOLDER}{queue.name}", seen, expected)
            continue
        starts = {path: starts_of_ext_units(image.files[path]) for path in paths}
        for unit, record in led:
            if unit.tags_code in right:
                yield _others_address(queue, unit, record)
            else:
                yield _wrong_address(queue, unit, record, image.files, starts)


def _led_astray(
    queue: QueueImage, live: tuple[Unit, ...], judged: Judged, right: set[int]
) -> Iterator[tuple[Unit, Record]]:
    """Units whose address does not lead to their record's data, the last first.

    Addresses that do are added to ``right``.
    """
    files, record_at = judged.image.files, judged.image.commit_log.record_at
    settled: set[tuple[str, int]] = set()
    for unit in reversed(live):
        record = record_at.get(unit.phy_offset)
        if unit.tags_code > EXT_ADDRESS_MAX or record is None:
            continue
        place = ext_place(files, queue.name, unit.tags_code)
        sector = None if place is None else (place[0], place[1] // _SECTOR)
        found = ext_unit_at(files, queue.name, unit.tags_code)
        if found is not None and found[:2] == (
            record.tags_code,
            record.store_timestamp,
        ):
            settled.update([sector] if sector else [])
            right.add(unit.tags_code)
        elif judged.clean or _is_settled(place, settled):
            yield unit, record


def _is_settled(
    place: tuple[str, int] | None, settled: Collection[tuple[str, int]]
) -> bool:
    if place is None:
        return False
    path, at = place
    last = (at + EXT_UNIT_SIZE_MIN - 1) // _SECTOR
    return at // _SECTOR == last and (path, last) in settled


def _others_address(queue: QueueImage, unit: Unit, record: Record) -> Violation:
    """A violation at the unit: the entry at its address belongs to another unit."""
    wanted = f"tags code {record.tags_code}, stored at {record.store_timestamp}"
    where, seen = queue.where(unit.queue_offset), "the address of another record's unit"
    return Violation(where, seen, f"the address of a unit with {wanted}")


def _wrong_address(
    queue: QueueImage,
    unit: Unit,
    record: Record,
    files: Mapping[str, Bytes],
    starts: Mapping[str, Collection[int]],
) -> Violation:
    """A violation at the entry, if one begins at the address; else at the unit."""
    where = queue.where(unit.queue_offset)
    place = ext_place(files, queue.name, unit.tags_code)
    wanted = f"tags code {record.tags_code}, stored at {record.store_timestamp}"
    if place is None:
        return Violation(where, "an address that leads to no unit", wanted)
    path, at = place
    if at not in starts[path]:
        seen = f"an address that leads to {path} byte {at}"
        return Violation(where, seen, f"the address of a unit with {wanted}")
    found = ext_unit_at(files, queue.name, unit.tags_code)
    seen = "no whole unit"
    if found is not None:
        seen = f"tags code {found.tags_code}, stored at {found.msg_store_time}"
    return Violation(Place(path, at), seen, f"{wanted}: {where} leads there")


@law(
    "CQ-8",
    "with consumequeue_ext on, each unit holds the address of an entry with its "
    "record's bit map, unless that entry exceeds one file",
    catalogue="I3 I4",
)
def units_lead_to_their_bit_maps(judged: Judged) -> Iterator[Violation]:
    """Compares each unit's entry with the bit map of its record.

    A unit holds its tags_code only if its entry is too large for a file. Judged at
    rest, where the extension is on and the bit maps are known.

    Source: ConsumeQueue#putMessagePositionInfoWrapper, ConsumeQueueExt#put.
    """
    image, bit_map_of = judged.image, judged.bit_map_of
    if not (judged.clean and judged.ext_size and bit_map_of):
        return
    room = judged.ext_size - EXT_END_SIZE
    for queue, unit, record in _units_with_records(image):
        bit_map = bit_map_of(record.phy_offset, record.size)
        fits = EXT_UNIT_SIZE_MIN + len(bit_map) <= min(room, 0x7FFF)
        where = queue.where(unit.queue_offset)
        if (unit.tags_code <= EXT_ADDRESS_MAX) is not fits:
            seen = f"tags code {unit.tags_code}"
            yield Violation(where, seen, "an address" if fits else "no address")
            continue
        found = ext_unit_at(image.files, queue.name, unit.tags_code)
        if fits and (found is None or found.bit_map != bit_map):
            seen = "nothing" if found is None else f"bit map {found.bit_map.hex()}"
            yield Violation(where, seen, f"bit map {bit_map.hex()}")


def _units_with_records(
    image: StoreImage,
) -> Iterator[tuple[QueueImage, Unit, Record]]:
    """Each live unit that may have an entry, with its record."""
    record_at = image.commit_log.record_at
    for queue, live in image.live_units:
        for unit in live if not is_light_queue(queue.topic) else ():
            record = record_at.get(unit.phy_offset)
            if record is not None and not unit.is_pre_blank:
                yield queue, unit, record


@law(
    "CQ-9",
    "a consumequeue_ext file that has a successor is closed by an end mark and had no "
    "room left for the successor's first entry",
    catalogue="I19 I20",
)
def files_beside_queues_are_filled(judged: Judged) -> Iterator[Violation]:
    """Compares the room after a file's last entry with the size of the next entry.

    Entries follow each other without a gap; a size of -1 is the end mark. Judged at
    rest.

    Source: ConsumeQueueExt#put.
    """
    image = judged.image
    if not (judged.clean and image.has_queue_extension):
        return
    for queue in image.consume_queues:
        for (path, base), (after, _) in pairwise(ext_files(image.files, queue.name)):
            data, next_size = image.files[path], ext_unit_size(image.files[after], 0)
            end, is_closed = end_of_ext_units(data)
            room = len(data) - EXT_END_SIZE - end
            if not is_closed or EXT_UNIT_SIZE_MIN <= next_size <= room:
                where = Place(path, end, f"address {base + end}")
                seen = f"{room} bytes left, {'closed' if is_closed else 'not closed'}"
                yield Violation(where, seen, f"the next unit, of {next_size} bytes")


@law(
    "CQ-10",
    "a queue's consumequeue_ext files hold no entry after the one that its last ext "
    "address points to nor, while no unit has expired, before its first",
    catalogue="I3 I20",
)
def nothing_lies_behind_the_last_address(judged: Judged) -> Iterator[Violation]:
    """Looks for entries that no unit leads to, where the extension is on.

    An entry is written before its ConsumeQueue unit, so a crash may leave an entry
    without a unit; the next start cuts it. Where a unit could not be appended, the
    entry of its record waits, since dispatch tries again. Checked at rest; not where no
    unit has an ext address and older units have expired: the entries may be theirs. A
    start that takes a queue away takes its entries too, or they lie before the next.

    Source: ConsumeQueueExt#truncateByMaxAddress.
    """
    image = judged.image
    if not (judged.clean and judged.ext_size and image.has_queue_extension):
        return
    for queue in image.consume_queues:
        led = [u.tags_code for u in queue.units if u.tags_code <= EXT_ADDRESS_MAX]
        if not led and queue.files and queue.files[0].base:
            continue
        yield from _in_front_of_the_first(image, queue, led)
        place = ext_place(image.files, queue.name, led[-1]) if led else None
        files = ext_files(image.files, queue.name)
        for path, base in files:
            end = 0
            if place is not None and path == place[0]:
                end = place[1] + ext_unit_size(image.files[path], place[1])
            elif place is not None and base < led[-1] + (1 << 63):
                continue  # CQ-9 says how far it is filled
            size = ext_unit_size(image.files[path], end)
            may_wait = size > 0 and judged.entry_may_wait
            if may_wait and _waits(image, queue.name, base + end - (1 << 63)):
                end += size
                size = ext_unit_size(image.files[path], end)
            if size > 0:
                where = Place(path, end, f"address {base + end}")
                yield Violation(
                    where, f"a unit of {size} bytes", "none: nothing leads there"
                )
    yield from _of_no_queue(judged)


def _in_front_of_the_first(
    image: StoreImage, queue: QueueImage, led: Sequence[int]
) -> Iterator[Violation]:
    """An entry in front of the one that the first unit of a whole queue points to.

    A first unit that points to none may have lost its address, of which a start that
    was stopped in order knows nothing.
    """
    is_whole = queue.files and not queue.files[0].base
    if not (led and is_whole) or queue.units[0].queue_offset:
        return
    if queue.units[0].tags_code != led[0]:
        return
    files = ext_files(image.files, queue.name)
    address = files[0][1] - (1 << 63) if files else led[0]
    if address < led[0] and ext_unit_at(image.files, queue.name, address) is not None:
        where = Place(files[0][0], 0, f"address {files[0][1]}")
        expected = f"none before address {led[0] + (1 << 63)}, that of the first unit"
        yield Violation(where, "a unit", expected)


def _of_no_queue(judged: Judged) -> Iterator[Violation]:
    """An entry of a queue of which there is no file, unless that was deleted."""
    image, deleted = judged.image, judged.image.commit_log.deleted
    there = {queue.name for queue in image.consume_queues}
    folders = {path.rpartition("/")[0] for path in image.files}
    for folder in sorted(folders):
        name = folder[len(_FOLDER) :]
        topic, _, number = name.rpartition("/")
        if not folder.startswith(_FOLDER) or name in there or not is_queue_id(number):
            continue
        if deleted.dead_below(topic, int(number)):
            continue
        for path, base in ext_files(image.files, name):
            address = base - (1 << 63)
            waits = judged.entry_may_wait and _waits(image, name, address)
            if ext_unit_size(image.files[path], 0) > 0 and not waits:
                where = Place(path, 0, f"address {base}")
                yield Violation(where, "a unit", "none: the queue has no unit")


def _waits(image: StoreImage, queue_name: str, address: int) -> bool:
    """Whether the entry belongs to the first record that still has to get a unit."""
    entry = ext_unit_at(image.files, queue_name, address)
    newest = max(
        (one.units[-1].phy_offset for one in image.consume_queues if one.units),
        default=-1,
    )
    records = image.commit_log.records
    first = bisect_right(records, newest, key=lambda record: record.phy_offset)
    record = next((one for one in records[first:] if one.is_indexed), None)
    if entry is None or record is None:
        return False
    said = (entry.tags_code, entry.msg_store_time)
    return said == (record.tags_code, record.store_timestamp)


@law(
    "CQ-11",
    "a bit map has no bits but those of groups whose expression is true of its record, "
    "or fails on it",
    catalogue="I15",
)
def bit_maps_name_no_group_in_vain(judged: Judged) -> Iterator[Violation]:
    """Otherwise a pull reads each record that it could pass over.

    A group has three bits on a topic. Any expression counts that the broker may ever
    have had of the group there, since it is unknown when a record was dispatched.
    Judged at rest. FLT-2 asks for the bits that must be there.

    Source: CommitLogDispatcherCalcBitMap#dispatch.
    """
    image, filters = judged.image, judged.filters
    if filters is None or not (judged.clean and judged.ext_size):
        return
    for queue, unit, record in _units_with_records(image):
        found = ext_unit_at(image.files, queue.name, unit.tags_code)
        if found is None or not any(found.bit_map):
            continue
        in_vain = sorted(_bits_in_vain(found.bit_map, record, filters))
        if in_vain:
            where = queue.where(unit.queue_offset)
            told = f"bits of groups that ask for {record.properties}"
            yield Violation(where, f"bits {in_vain} of its bit map are set", told)


def _bits_in_vain(bit_map: bytes, record: Record, filters: BitMapFilters) -> set[int]:
    bit_num = 8 * len(bit_map)
    left = {bit for bit in range(bit_num) if bit_map[bit // 8] >> bit % 8 & 1}
    properties = record.properties
    asking = {
        group
        for (group, topic), expression in filters.expressions
        if topic == record.topic and may_match(expression, properties)
    }
    for group in asking | filters.open_groups:
        left.difference_update(bits_of(group, record.topic, FILTER_BITS, bit_num))
    return left


@law(
    "CQ-12",
    "the bit map of a record has the bits of each group whose expression was in effect "
    "and true of it when it was dispatched",
    catalogue="I3 I4",
)
def bit_maps_name_who_asks(
    image: StoreImage, asking: Mapping[FilterKey, str], between: tuple[int, int]
) -> Iterator[Violation]:
    """Otherwise a pull passes the record over; without any map it reads each record.

    Asked after dispatch of records that were put in this run, since others may have
    been dispatched before, when other expressions were in effect.

    Args:
        image: the files.
        asking: by group and topic, the expression that certainly was in effect.
        between: the phy_offsets that were dispatched, from the first up to the second.

    Source: CommitLogDispatcherCalcBitMap#dispatch.
    """
    first, end = between
    for queue, unit, record in _units_with_records(image):
        if not first <= record.phy_offset < end:
            continue
        entry = ext_unit_at(image.files, queue.name, unit.tags_code)
        bit_map = entry.bit_map if entry is not None else b""
        for (group, topic), expression in sorted(asking.items()):
            if topic != record.topic:
                continue
            is_true = matches(expression, "SQL92", "", record.properties) == "yes"
            if is_true and not _has_bits(bit_map, group, topic):
                where = queue.where(unit.queue_offset)
                seen = f"bit map {bit_map.hex() or 'of no byte'}"
                expected = f"the bits of {group}, which asks for {expression}"
                yield Violation(where, seen, expected)


def has_room_for_bit_maps(ext_size: int) -> bool:
    """Whether a file of that size holds an entry with a bit map."""
    return ext_size - EXT_END_SIZE >= EXT_UNIT_SIZE_MIN + BIT_MAP_BITS // 8


def _has_bits(bit_map: bytes, group: str, topic: str) -> bool:
    if not bit_map:
        return False
    bits = bits_of(group, topic, FILTER_BITS, 8 * len(bit_map))
    return all(bit_map[bit // 8] >> bit % 8 & 1 for bit in bits)


@law(
    "CQ-7",
    "all consumequeue_ext files have the same size; those of a queue are named by "
    "their first byte offset and are contiguous",
    catalogue="I18",
)
def files_beside_queues_fit_together(judged: Judged) -> Iterator[Violation]:
    """Checks names and lengths; after a crash a file may be empty, or one missing.

    A file is created before its queue's first file. A start that finds no such queue
    leaves the empty file alone.

    Source: ConsumeQueueExt#load.
    """
    if not judged.image.has_queue_extension:
        return
    queues = {queue.name for queue in judged.image.consume_queues if queue.files}
    by_folder: dict[str, list[tuple[int, str, int]]] = {}
    for path, data in judged.image.files.items():
        folder, _, name = path.rpartition("/")
        if path.startswith(_FOLDER):
            if len(name) != 20 or not (name.isascii() and name.isdecimal()):
                yield Violation(path, "a name that is no offset", "20 digits, its base")
            elif data or (judged.clean and folder[len(_FOLDER) :] in queues):
                by_folder.setdefault(folder, []).append((int(name), path, len(data)))
    every = [file for files in by_folder.values() for file in files]
    size = common_size([], [length for _, _, length in every])
    for base, path, length in every:
        if length != size:
            where = Place(path, min(length, size), f"length {length}")
            yield Violation(where, f"{length} bytes", f"{size} bytes, as other files")
        if size and base % size:
            yield Violation(path, "a base inside another file", f"a multiple of {size}")
    for folder, files in by_folder.items():
        for before, after in pairwise(sorted(files)):
            if judged.clean and after[0] != before[0] + size:
                where = Place(f"{folder}/{before[0] + size:020d}", 0)
                yield Violation(where, f"{after[1]} follows {before[1]}", "this file")
