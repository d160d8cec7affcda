"""Laws of ConsumeQueue files: a queue is the log, filtered by topic and queue id."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from crashmq.models.files.queue import QueueImage, Unit
from crashmq.models.files.record import Record, as_listed
from crashmq.models.files.store_image import UNIT_SIZE, StoreImage
from crashmq.models.laws.after_crash import settled_units, unwritten_units
from crashmq.models.laws.judged import Judged, tail_is_excused
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Place, Violation

# At or below this a tags_code is an address in consumequeue_ext.
_SECTOR = 512
_EXT_ADDRESS_MAX = -(1 << 31) - 1


@law(
    "CQ-1",
    "each ConsumeQueue unit between min and max offset points at an intact record of "
    "that queue with the unit's queue_offset, size and tags_code",
    catalogue="I3",
)
def units_point_at_their_records(judged: Judged) -> Iterator[Violation]:
    """Compares each unit in [min, max) with the record at its phy_offset.

    Units past the log's end are left to CQ-3; expired and pre-blank units are skipped.
    After a crash only units with a later correct unit in their sector are checked, and
    bytes that no store writes.

    Source: ConsumeQueue#putMessagePositionInfo.
    """
    image = judged.image
    end = image.commit_log.max_phy_offset
    for queue, live in _judged_queues(judged):
        wanted: dict[int, Record] = {}
        for unit in live:
            if unit.phy_offset < end:
                record = _listed(image, queue.topic, unit)
                seen = _disagreement(queue, unit, record, image)
                if seen:
                    wanted = wanted or _by_number(queue, image)
                    where = queue.where(unit.queue_offset)
                    yield Violation(where, seen, _expected(unit, wanted))
    if judged.whole_sectors and not judged.clean:
        yield from _never_written(image)


@law(
    "CQ-2",
    "between a ConsumeQueue's min and max offset no unit is missing, and phy_offset "
    "rises from unit to unit",
    catalogue="I3",
)
def units_are_contiguous(judged: Judged) -> Iterator[Violation]:
    """Looks for units of zeros before a written unit; phy_offset must rise strictly.

    Checked at rest; after a crash only holes with a later correct unit in their sector.

    Source: ConsumeQueue#putMessagePositionInfo, which refuses a unit out of order.
    """
    if judged.whole_sectors and not judged.clean:
        yield from _settled_holes(judged.image)
    if not judged.clean:
        return
    for queue, live in judged.image.suspect_queues:
        for before, after in pairwise(live):
            if after.phy_offset <= before.phy_offset:
                yield Violation(
                    queue.where(after.queue_offset),
                    f"phy_offset {after.phy_offset}",
                    f"more than {before.phy_offset}, that of the unit before",
                )
    for queue in judged.image.consume_queues:
        if queue.stray_units:
            yield from _hole(queue, judged)


@law("CQ-3", "no ConsumeQueue unit points past the CommitLog's end", catalogue="I3")
def no_unit_past_the_log(judged: Judged) -> Iterator[Violation]:
    """Compares phy_offset + size of each live unit with max_phy_offset.

    Units that an earlier cut left at a queue's end are excused where ``stale_allowed``
    is set. Where the log breaks off inside, intact records after the break are still
    there; their units are correct unless a record before it has the same number. After
    a crash as CQ-1.

    Source: ConsumeQueue#truncateDirtyLogicFiles.
    """
    image = judged.image
    end = image.commit_log.max_phy_offset
    for queue, live in _judged_queues(judged):
        ending = units_past_the_end(queue, live, image)
        past = [
            unit
            for unit in live[: len(live) - len(ending)]
            if unit.phy_offset + unit.size > end
        ]
        numbers = _by_number(queue, image) if past else {}
        for unit in past:
            if unit.queue_offset in numbers or _is_lost(queue, unit, image):
                where = queue.where(unit.queue_offset)
                yield Violation(where, _seen(unit), f"the log ends at {end}")
        if ending and not tail_is_excused(judged):
            yield from _ends_past_the_log(queue, ending, image)


@law(
    "CQ-4",
    "every record below reput_from_offset has a ConsumeQueue unit, unless it is "
    "prepared, rolled back, an inner batch or deleted",
    catalogue="I4",
)
def every_record_has_its_unit(judged: Judged) -> Iterator[Violation]:
    """Looks for a unit with each record's queue_offset in its queue.

    Checked at rest, where the dispatch progress is known.

    Source: DefaultMessageStore.CommitLogDispatcherBuildConsumeQueue#dispatch.
    """
    if judged.clean and judged.reput_from_offset is not None:
        yield from missing_units(judged.image, judged.reput_from_offset)


@law(
    "CQ-5",
    "all ConsumeQueue files have the same size; those of a queue are named by their "
    "first byte offset and are contiguous",
    catalogue="I18",
)
def queue_files_fit_together(judged: Judged) -> Iterator[Violation]:
    """Checks names and lengths, which say which units a file holds.

    The size is a multiple of a unit's 20 bytes. After a crash a file may be empty, and
    one may be missing.

    Source: MappedFileQueue#load.
    """
    image = judged.image
    size = image.queue_file_size
    for path in image.odd_queue_paths:
        yield Violation(path, "a name that is no offset", "20 digits, the file's base")
    for queue in image.consume_queues:
        for file in queue.files:
            length = len(file.data)
            is_amid = judged.whole_sectors and file is not queue.files[-1]
            is_told = judged.clean or length or is_amid
            if (length != size or length % UNIT_SIZE) and is_told:
                where = Place(file.path, min(length, size), f"length {length}")
                expected = f"{size} bytes, as other files, and whole units"
                yield Violation(where, f"{length} bytes", expected)
            if file.base % (size or UNIT_SIZE):
                yield Violation(
                    file.path, "a base inside another file", f"n * {size} bytes"
                )
        for before, after in pairwise(queue.files):
            is_told = judged.clean or judged.whole_sectors
            if is_told and after.base != before.base + size:
                path = f"consumequeue/{queue.name}/{before.base + size:020d}"
                seen = f"{after.path} follows {before.path}"
                yield Violation(Place(path, 0), seen, "this file")


def missing_units(
    image: StoreImage,
    reput_from_offset: int,
    before_ms: int | None = None,
    *,
    exact: bool = False,
    first: int = 0,
) -> Iterator[Violation]:
    """Records below ``reput_from_offset`` without a unit, one violation for each run.

    Args:
        image: the store's files.
        reput_from_offset: end of the records that must be listed, a phy_offset.
        before_ms: only records stored before that time count; None: all.
        exact: the unit must point at the record, not just have its queue_offset.
        first: records below this phy_offset do not count.
    """
    unlisted = image.unlisted_records
    if exact and image.suspect_queues:
        unlisted = _without_exact_unit(image)

    def is_asked(record: Record) -> bool:
        is_early = before_ms is None or record.store_timestamp < before_ms
        return is_early and first <= record.phy_offset < reput_from_offset

    for key, records in unlisted.items():
        if missing := image.commit_log.those(records, is_asked):
            yield from _missing_runs(image, key, missing)


def _without_exact_unit(image: StoreImage) -> dict[tuple[str, int], list[Record]]:
    """As ``unlisted_records``, but only a unit that agrees with its record counts."""
    suspects = {(q.topic, q.queue_id): units for q, units in image.suspect_queues}
    unlisted: dict[tuple[str, int], list[Record]] = {}
    for key, records in image.commit_log.indexed_records.items():
        if key in suspects:
            held = _exact_units(key[0], suspects[key], image)
            unlisted[key] = [r for r in records if r.queue_offset not in held]
        elif key in image.unlisted_records:
            unlisted[key] = image.unlisted_records[key]
    return unlisted


def _exact_units(topic: str, units: tuple[Unit, ...], image: StoreImage) -> set[int]:
    found = [(unit, _listed(image, topic, unit)) for unit in units]
    return {
        unit.queue_offset
        for unit, record in found
        if record is not None
        and (record.queue_offset, record.size) == (unit.queue_offset, unit.size)
    }


def units_past_the_end(
    queue: QueueImage, live: tuple[Unit, ...], image: StoreImage
) -> tuple[Unit, ...]:
    """A queue's last units, past the log's end and past its records' queue_offsets.

    Only such units can be left over from a cut; any other unit past the end is damaged.
    """
    end = image.commit_log.max_phy_offset
    records = image.commit_log.indexed_records.get(queue.key)
    accounted = records[-1].queue_offset + 1 if records else 0
    count = 0
    for unit in reversed(live):
        if unit.phy_offset < end or unit.queue_offset < accounted:
            break
        count += 1
    return live[len(live) - count :]


def _missing_runs(
    image: StoreImage, key: tuple[str, int], missing: list[Record]
) -> Iterator[Violation]:
    queue = image.queue_at.get(key) or QueueImage(*key, (), ())
    start = 0
    for number, record in enumerate(missing):
        is_last = number + 1 == len(missing)
        if is_last or not image.commit_log.follow(record, missing[number + 1]):
            first = missing[start]
            where = queue.where(first.queue_offset, image.queue_file_size)
            count = record.queue_offset + 1 - first.queue_offset
            units = "unit" if count == 1 else f"{count} units"
            expected = f"{units} from the record at phy_offset {first.phy_offset} on"
            yield Violation(where, "no unit", expected)
            start = number + 1


def _ends_past_the_log(
    queue: QueueImage, ending: tuple[Unit, ...], image: StoreImage
) -> Iterator[Violation]:
    """One violation for all last units of a queue that lost their records."""
    lost = [unit for unit in ending if _is_lost(queue, unit, image)]
    if lost:
        more = f", and {len(lost) - 1} units more" if len(lost) > 1 else ""
        where = queue.where(lost[0].queue_offset)
        end = image.commit_log.max_phy_offset
        yield Violation(where, f"{_seen(lost[0])}{more}", f"the log ends at {end}")


def _is_lost(queue: QueueImage, unit: Unit, image: StoreImage) -> bool:
    """Whether a unit past the log's end has no intact record behind a break either."""
    record = image.commit_log.record_beyond_at.get(unit.phy_offset)
    return bool(_disagreement(queue, unit, _as_listed(record, queue.topic), image))


def _may_be_left_over(unit: Unit, end: int) -> bool:
    """Whether the unit may be left over from a cut, possibly torn."""
    start = unit.queue_offset * UNIT_SIZE
    is_torn = start // _SECTOR != (start + UNIT_SIZE - 1) // _SECTOR
    return is_torn or (unit.phy_offset >= end and unit.size > 0)


def _hole(queue: QueueImage, judged: Judged) -> Iterator[Violation]:
    """What lies behind a queue's end, unless everything up to there has expired.

    A start trusts the files before the one that leads to the log's first record. Damage
    there cannot be seen from the log, and no reader is shown it.
    """
    strays = queue.stray_units
    begin = judged.image.commit_log.min_phy_offset
    behind = [file for file in queue.files if file.base > queue.end * UNIT_SIZE]
    following = behind[0].units[:1] if behind else ()
    around = (*queue.units[-1:], *following)
    if following and all(unit.phy_offset < begin for unit in around):
        return
    end = judged.image.commit_log.max_phy_offset
    if all(_may_be_left_over(unit, end) for unit in strays) and tail_is_excused(judged):
        return
    first = strays[0]
    where = queue.where(queue.end)
    if first.queue_offset == queue.end:
        yield Violation(where, _seen(first), "a size above 0, or a unit of zeros")
    else:
        seen = f"no unit, yet {queue.count(strays)} follow from queue_offset"
        yield Violation(where, f"{seen} {first.queue_offset}", "a unit")


def _listed(image: StoreImage, topic: str, unit: Unit) -> Record | None:
    """The record that a unit points at, in the form its queue lists it."""
    return _as_listed(image.commit_log.record_at.get(unit.phy_offset), topic)


def _as_listed(record: Record | None, topic: str) -> Record | None:
    return None if record is None else as_listed(record, topic)


def _disagreement(
    queue: QueueImage, unit: Unit, record: Record | None, image: StoreImage
) -> str:
    if record is None:
        return f"{_seen(unit)}, where no record begins"
    if not record.is_indexed:
        kind = record.transaction_type if record.transaction_type != "none" else "batch"
        return f"{_seen(unit)}, a {kind} record, which has no unit"
    said = unit.queue_offset, unit.size, unit.tags_code
    is_of_queue = record.topic == queue.topic and record.queue_id == queue.queue_id
    if is_of_queue and said == (record.queue_offset, record.size, record.tags_code):
        return ""
    place = image.commit_log.where(record.phy_offset)
    if not is_of_queue:
        return f"{_seen(unit)}, a record of {record.topic}/{record.queue_id} at {place}"
    if record.queue_offset != unit.queue_offset:
        number = record.queue_offset
        return f"{_seen(unit)}, the record of queue_offset {number} at {place}"
    if record.size != unit.size:
        return f"size {unit.size}; the record at {place} has {record.size} bytes"
    if unit.tags_code <= _EXT_ADDRESS_MAX and image.has_queue_extension:
        return ""
    code = record.tags_code
    return f"tags_code {unit.tags_code}; that of the record at {place} is {code}"


def _by_number(queue: QueueImage, image: StoreImage) -> dict[int, Record]:
    """A queue's records by queue_offset; of two with the same one the first."""
    records = image.commit_log.indexed_records.get(queue.key, ())
    return {record.queue_offset: record for record in reversed(records)}


def _expected(unit: Unit, wanted: dict[int, Record]) -> str:
    if record := wanted.get(unit.queue_offset):
        return f"the record at phy_offset {record.phy_offset}, {record.size} bytes"
    return "no unit: the log has no record for it"


def _seen(unit: Unit) -> str:
    return f"phy_offset {unit.phy_offset}, size {unit.size}"


def _judged_queues(judged: Judged) -> Iterator[tuple[QueueImage, tuple[Unit, ...]]]:
    """The suspect queues with the units to check; after a crash only settled units."""
    for queue, live in judged.image.suspect_queues:
        if judged.clean:
            yield queue, live
        elif judged.whole_sectors:
            settled = settled_units(queue, live, _exact(queue, live, judged.image))
            yield queue, tuple([u for u in live if u.queue_offset in settled])


def _exact(
    queue: QueueImage, units: tuple[Unit, ...], image: StoreImage
) -> Iterator[int]:
    """The queue_offsets of units that agree with their records."""
    for unit in units:
        record = _listed(image, queue.topic, unit)
        if record is not None and not _disagreement(queue, unit, record, image):
            yield unit.queue_offset


def _settled_holes(image: StoreImage) -> Iterator[Violation]:
    """Units that are missing although a later one in their sector is there."""
    for queue in image.consume_queues:
        strays = queue.stray_units
        if not strays:
            continue
        hole = Unit(queue.end, 0, 0, 0)
        if settled_units(queue, (hole,), _exact(queue, strays, image)):
            seen = f"no unit, yet {queue.count(strays)} follow"
            yield Violation(queue.where(queue.end), seen, "a unit")


def _never_written(image: StoreImage) -> Iterator[Violation]:
    """Bytes that no store writes as a unit; one violation per queue."""
    suspects = {queue.name: live for queue, live in image.suspect_queues}
    for queue in image.consume_queues:
        units = (*suspects.get(queue.name, ()), *queue.stray_units)
        if found := unwritten_units(queue, units):
            first = found[0]
            more = f", and {len(found) - 1} units more" if len(found) > 1 else ""
            seen = f"{_seen(first)}, tags_code {first.tags_code}{more}"
            where = queue.where(first.queue_offset)
            yield Violation(where, seen, "a unit or zeros, as a crash leaves them")
