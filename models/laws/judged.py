"""The input of the laws of files: an image, and what is known about its origin.

A store at rest or running well must keep every law. An image found after a crash,
before recovery, must only keep what no crash may break: above the durable mark its log
may end in torn bytes, and its queues may have too few units or too many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crashmq.models.files.filters import BitMapFilters
from crashmq.models.files.message_delay_level import DEFAULT_LEVELS
from crashmq.models.files.record import Record
from crashmq.models.files.store_image import StoreImage
from crashmq.models.quickly_made import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True)
class Judged:
    """An image to be judged, with what is known about its origin.

    Attributes:
        image: the store's files.
        reput_from_offset: the dispatch progress, a phy_offset; None if unknown.
        clean: the store is at rest or runs well; false: found after a crash.
        monotonic_clock: the store's clock was never set back.
        stale_allowed: bytes past the ends of log and queues may be left over from
            an earlier cut, as RocketMQ leaves them. They are a breach only if
            something else shows that the log went on.
        index_slots: slots of each index file; 0: derive it from the files.
        keeps_index: the store indexes keys, so all that was dispatched is listed.
        whole_sectors: a crash left each sector as it was or as it was written, and
            files in the order they were created; then some damage can be proven.
        ext_size: size of each consumequeue_ext file in bytes, if the extension is
            on; 0: unknown.
        bit_map_of: a record's bit map by phy_offset and size; None if unknown.
        filters: what the bit maps may say; None if unknown.
        takes_odd_properties: RocketMQ may have put some of the records, whoever
            wrote the files since.
        entry_may_wait: the disk may have been full or failed while a unit was
            appended, so that its consumequeue_ext entry waits until dispatch tries
            again.
        level_max: the highest delay level of the broker.
    """

    image: StoreImage
    reput_from_offset: int | None = None
    clean: bool = True
    monotonic_clock: bool = True
    stale_allowed: bool = False
    index_slots: int = 0
    keeps_index: bool = False
    whole_sectors: bool = False
    ext_size: int = 0
    bit_map_of: Callable[[int, int], bytes] | None = None
    filters: BitMapFilters | None = None
    takes_odd_properties: bool = False
    entry_may_wait: bool = False
    level_max: int = DEFAULT_LEVELS.level_max


def tail_is_excused(judged: Judged) -> bool:
    """Whether bytes past the ends may be left over from an earlier cut."""
    return judged.stale_allowed and not trace_of_lost_tail(judged.image)


def trace_of_lost_tail(image: StoreImage) -> str:
    """The evidence that the log once went on past its end; "" if there is none."""
    log, checkpoint, end = image.commit_log, image.checkpoint, image.commit_log.stop
    if log.later_file_written:
        return f"{log.later_file_written} is written"
    mark = checkpoint.mark
    if mark is not None and mark.durable_offset >= end.phy_offset:
        beyond = mark.durable_offset > end.phy_offset
        return f"the durable mark is {mark.durable_offset}" if beyond else ""
    confirmed = checkpoint.confirm_phy_offset
    if was_cut_here(image):
        return ""
    if confirmed and confirmed >= end.phy_offset:
        return f"the checkpoint's confirm_phy_offset is {confirmed}"
    newest = image.newest_store_timestamp
    for name in ("physic_msg_timestamp", "logics_msg_timestamp"):
        if getattr(checkpoint, name) > newest:
            return f"the checkpoint's {name} is {getattr(checkpoint, name)}"
    if log.breaks:
        for queue, live in image.suspect_queues:
            for unit in live:
                if unit.phy_offset == end.phy_offset:
                    return f"{queue.where(unit.queue_offset)} points there"
    return ""


def was_cut_here(image: StoreImage) -> bool:
    """Whether the log ends where a recovery of RocketMQ has cut it.

    RocketMQ stores the start of the last record it kept as the confirmed offset, and
    leaves it so while it goes on. So it cut nothing there if a queue still lists a
    later record.
    """
    log, confirmed = image.commit_log, image.checkpoint.confirm_phy_offset
    if not log.records or not 0 < confirmed == log.records[-1].phy_offset:
        return False
    newest = log.records[-1].store_timestamp
    later = [one for one in log.records_beyond if one.store_timestamp > newest]
    return not listed_among(image, later)


def listed_among(image: StoreImage, records: Sequence[Record]) -> set[int]:
    """The phy_offsets of those of some records that a unit points at."""
    if not records:
        return set()
    places = {record.phy_offset for record in records}
    return {
        unit.phy_offset
        for _, live in image.live_units
        for unit in live
        if unit.phy_offset in places
    }
