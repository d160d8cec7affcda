"""Laws of the checkpoint: its fields promise no more than the files hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from zlib import crc32

from crashmq.models.files.checkpoint import (
    CHECKPOINT_SIZE,
    SECTOR_SIZE,
    SLOT_POSITIONS,
    CheckpointImage,
    Mark,
    read_checkpoint,
)
from crashmq.models.files.index import IndexImage
from crashmq.models.files.store_image import StoreImage
from crashmq.models.history import CheckpointWritten
from crashmq.models.laws.consume_queue import missing_units
from crashmq.models.laws.judged import Judged, was_cut_here
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Place, Violation

_PATH = "checkpoint"
_FIELDS_END = 40
_RISING = ("physic_msg_timestamp", "logics_msg_timestamp", "index_msg_timestamp")
_BYTE_OF = {
    "physic_msg_timestamp": 0,
    "logics_msg_timestamp": 8,
    "index_msg_timestamp": 16,
    "master_flushed_offset": 24,
    "confirm_phy_offset": 32,
}
# RocketMQ says "none yet" by 0 and, where a replica is asked, by -1.
_NONE_YET = -1
_OF_A_MASTER = 1 << 56
"""A replica notes places of its master before it has them; no log ends beyond this."""
_SIXTH_LATE_MS = 86_400_000  # a broker may have idled a day after its last message


class DurableUntil(NamedTuple):
    """The phy_offsets up to which the checkpoint must vouch for durable data.

    Attributes:
        log: end of the durable records in the CommitLog.
        queues: end of the records whose ConsumeQueue units are durable.
        listing: end of the records that durable full index files list.
    """

    log: int
    queues: int
    listing: int


@law(
    "CP-1",
    "the CommitLog is intact from the checkpoint's log_min_offset up to its "
    "durable_offset",
    catalogue="I7 I8",
)
def durable_mark_is_in_the_log(judged: Judged) -> Iterator[Violation]:
    """Compares the mark with where the log begins and where it stops being intact.

    Checked after a crash too: the mark is written only after the bytes are durable.
    """
    mark = judged.image.checkpoint.mark
    if mark is None:
        return
    log, stop = judged.image.commit_log, judged.image.commit_log.stop
    first = log.min_phy_offset
    if mark.log_min_offset < first and mark.log_min_offset < mark.durable_offset:
        expected = f"at least {first}, where the first log file begins"
        seen = f"log_min_offset {mark.log_min_offset}"
        yield Violation(Place(_PATH, mark.position), seen, expected)
    if mark.durable_offset > stop.phy_offset:
        seen = f"durable_offset {mark.durable_offset}"
        expected = f"at most {stop.phy_offset}: {stop.seen} at {stop.where}"
        yield Violation(Place(_PATH, mark.position), seen, expected)


@law(
    "CP-2",
    "the checkpoint's physic_msg_timestamp is at most the store_timestamp of the "
    "newest CommitLog record",
    catalogue="I8",
)
def flushed_time_is_in_the_log(judged: Judged) -> Iterator[Violation]:
    """Compares physic_msg_timestamp with the newest store_timestamp in the log.

    Checked after a crash too: the time is written only after its record is flushed.
    RocketMQ writes the time of the last append, which a crash can still take from a
    write buffer, and does not lower it when a start cuts the log, so RocketMQ's own
    files are not judged after a crash.

    Source: StoreCheckpoint#setPhysicMsgTimestamp.
    """
    if judged.whole_sectors or (judged.stale_allowed and was_cut_here(judged.image)):
        return
    seen = judged.image.checkpoint.physic_msg_timestamp
    newest = judged.image.newest_store_timestamp
    if seen > newest and not judged.image.all_has_expired:
        text = f"physic_msg_timestamp {seen}"
        expected = (
            f"at most {newest}, stored last" if newest else "0: no record is left"
        )
        yield Violation(Place(_PATH, 0), text, expected)


@law(
    "CP-3",
    "every record that needs a ConsumeQueue unit has one if its store_timestamp is "
    "below the checkpoint's logics_msg_timestamp",
    catalogue="I8",
)
def dispatched_time_is_in_the_queues(judged: Judged) -> Iterator[Violation]:
    """Looks for the units.

    Prepared, rolled-back, inner-batch and deleted records need none.

    Checked after a crash too; then the unit must also point at the record. Not checked
    if the clock was set back.

    Source: StoreCheckpoint#setLogicsMsgTimestamp.
    """
    if judged.monotonic_clock:
        image = judged.image
        end = image.commit_log.max_phy_offset
        before_ms = image.checkpoint.logics_msg_timestamp
        for missing in missing_units(image, end, before_ms, exact=not judged.clean):
            expected = f"{missing.expected}, as logics_msg_timestamp {before_ms} says"
            yield Violation(missing.where, missing.seen, expected)


@law(
    "CP-7",
    "every record that needs a ConsumeQueue unit has one if it lies below the "
    "checkpoint's dispatched_offset",
    catalogue="I4 I8",
)
def dispatched_offset_is_in_the_queues(judged: Judged) -> Iterator[Violation]:
    """Looks for the units; dispatched_offset must also be at most durable_offset.

    Checked after a crash too, since no start dispatches those records again; then each
    unit must also point at its record.
    """
    image, mark = judged.image, judged.image.checkpoint.mark
    if mark is None:
        return
    end = min(mark.dispatched_offset, image.commit_log.max_phy_offset)
    for missing in missing_units(image, end, None, exact=not judged.clean):
        expected = f"{missing.expected}, as dispatched_offset {end} says"
        yield Violation(missing.where, missing.seen, expected)
    if mark.dispatched_offset > mark.durable_offset:
        seen = f"dispatched_offset {mark.dispatched_offset}"
        expected = f"at most durable_offset {mark.durable_offset}"
        yield Violation(Place(_PATH, mark.position), seen, expected)


@law(
    "CP-8",
    "each CRC-32 that the checkpoint holds for a CommitLog file matches that file's "
    "bytes below durable_offset",
    catalogue="I15",
)
def marked_bytes_are_unchanged(judged: Judged) -> Iterator[Violation]:
    """Computes the CRC-32 of each log file again for which the mark stores one.

    The mark stores those of the newest files. Checked after a crash too.
    """
    for changed in changed_files(judged.image):
        yield Violation(changed, "another CRC-32", "that of the durable mark")


@law(
    "CP-9",
    "after a checkpoint round, durable_offset equals flushed_where, the mark keeps a "
    "CRC-32 of the log file with the last byte below durable_offset, from the file's "
    "begin to there, and physic_msg_timestamp is not later than the last flushed "
    "record",
    catalogue="I7 I8",
)
def round_marks_what_is_flushed(
    image: StoreImage, flushed_where: int
) -> Iterator[Violation]:
    """Compares the checkpoint with ``flushed_where`` and the records below it.

    Checked after a checkpoint round that ran alone on a readable disk. The CRC-32 of
    the last file lets a start tell damage from loss; it may be absent if the file
    itself is missing, as can be with on_damage=serve.
    """
    mark = image.checkpoint.mark
    stored = image.commit_log.stored_before(flushed_where)
    said = image.checkpoint.physic_msg_timestamp
    if stored and said > stored:
        seen = f"physic_msg_timestamp {said}"
        expected = f"at most {stored}, the time of the last flushed record"
        yield Violation(Place(_PATH, 0), seen, expected)
    durable = -1 if mark is None else mark.durable_offset
    if durable != flushed_where:
        seen = f"durable_offset {durable}"
        yield Violation(_PATH, seen, f"{flushed_where}, flushed before the round")
    elif mark is not None and durable > 0:
        last = (durable - 1) // mark.log_file_size * mark.log_file_size
        is_there = any(file.base == last for file in image.commit_log.files)
        if is_there and mark.sum_of(last) is None:
            where = Place(_PATH, mark.position)
            yield Violation(where, "no sum", f"that of the log file at {last}")


@law(
    "CP-11",
    "after a checkpoint round the checkpoint file is synced: a power loss cannot "
    "change it",
    catalogue="I7 I8",
)
def checkpoint_is_on_the_medium(unsynced: Mapping[str, int]) -> Iterator[Violation]:
    """Looks for the checkpoint in ``unsynced``; see ``Subject.unsynced_from``.

    Asked even if the previous round failed.

    Source: StoreCheckpoint#flush.
    """
    if _PATH in unsynced:
        where = Place(_PATH, unsynced[_PATH])
        yield Violation(where, "a power loss could take it", "synced by the round")


@law(
    "CP-13",
    "after a checkpoint round, physic_msg_timestamp reaches the last flushed record, "
    "logics_msg_timestamp the last record whose unit a thorough ConsumeQueue flush "
    "made durable, and index_msg_timestamp the end of the newest full index file that "
    "was synced",
    catalogue="I4 I8 I11",
)
def times_reach_what_is_durable(
    image: StoreImage, index: IndexImage | None, until: DurableUntil
) -> Iterator[Violation]:
    """With older times a start reads more than it needs, or trusts no index file.

    Asked after a round that ran alone; ``index`` is None if the store keeps no index.

    Source: StoreCheckpoint#setPhysicMsgTimestamp, #setLogicsMsgTimestamp,
    #setIndexMsgTimestamp; MappedFileQueue#flush, FlushConsumeQueueService#doFlush,
    IndexService#flush.
    """
    records = image.commit_log.records
    flushed = [r.store_timestamp for r in records if r.end <= until.log]
    listed = [
        r.store_timestamp for r in records if r.is_indexed and r.end <= until.queues
    ]
    ended = [
        file.header.end_timestamp
        for _, file in (index.files if index else ())
        if file.is_full and file.header.end_phy_offset < until.listing
    ]
    for name, times in zip(_RISING, (flushed, listed, ended), strict=True):
        least, said = max(times, default=0), getattr(image.checkpoint, name)
        if said < least:
            where = Place(_PATH, _BYTE_OF[name])
            yield Violation(where, f"{name} {said}", f"at least {least}")


@law(
    "CP-14",
    "a write to the checkpoint leaves the newest mark on the medium as it is, unless "
    "the sync of that mark has failed",
    catalogue="I7 I8",
)
def newest_mark_stays(
    written: CheckpointWritten, *, may_be_unconfirmed: bool
) -> Iterator[Violation]:
    """A power loss amid the write may leave nothing whole of the sectors it touches.

    Asked at each write. The mark may be written again as it is. A failed sync may have
    brought its mark to the medium all the same; then the next attempt has the same
    sequence number, and the mark before it is the one that counts.
    """
    newest = read_checkpoint(written.medium).mark
    if newest is None:
        return
    first, end = written.position, written.position + len(written.data)
    if written.medium[first:end] == written.data:
        return
    first -= first % SECTOR_SIZE
    end += -end % SECTOR_SIZE
    torn = written.medium[:first] + bytes(end - first) + written.medium[end:]
    left, next_one = read_checkpoint(torn).mark, read_checkpoint(written.content).mark
    is_tried_again = next_one is not None and next_one.sequence == newest.sequence
    if may_be_unconfirmed and is_tried_again:
        return
    if left is None or left.sequence < newest.sequence:
        where = Place(_PATH, written.position)
        seen = f"it writes over the mark of sequence {newest.sequence}"
        yield Violation(where, seen, "the other slot: no newer mark is durable yet")


@law(
    "CP-15",
    "a mark is written to the checkpoint with the CRC-32s of the CommitLog files' "
    "bytes below its own durable_offset",
    catalogue="I8 I15",
)
def mark_is_written_with_its_sums(
    written: CheckpointWritten, image: StoreImage
) -> Iterator[Violation]:
    """As CP-8, at each write, whatever ran beside it; ``image`` is that after the step.

    What lies below durable_offset stays as it is. A start after a crash takes a log
    that does not match the mark for damaged.
    """
    mark = read_checkpoint(written.content).mark
    if mark is None or mark.position != written.position:
        return
    for path in _changed_below(mark, image):
        where = Place(_PATH, mark.position)
        seen = f"another CRC-32 of {path} below {mark.durable_offset}"
        yield Violation(where, seen, "that of its bytes")


def changed_files(image: StoreImage) -> list[str]:
    """Log files whose bytes below the mark differ from its CRC-32."""
    mark = image.checkpoint.mark
    return [] if mark is None else _changed_below(mark, image)


def _changed_below(mark: Mark, image: StoreImage) -> list[str]:
    return [
        file.path
        for file in image.commit_log.files
        if (said := mark.sum_of(file.base)) is not None
        and said != crc32(file.data[: mark.durable_offset - file.base])
    ]


@law(
    "CP-4",
    "the checkpoint's timestamps, sequence number, durable_offset and "
    "dispatched_offset never decrease, unless a start after a crash lowers them, and "
    "others_until only falls to the log's end",
    catalogue="I8",
)
def marks_never_move_backwards(
    before: CheckpointImage, after: CheckpointImage
) -> Iterator[Violation]:
    """Compares two checkpoints of one store, the older first; a mark may not disappear.

    Source: StoreCheckpoint#flush.
    """
    for name in _RISING:
        old, new = getattr(before, name), getattr(after, name)
        if new < old:
            where = Place(_PATH, _BYTE_OF[name])
            yield Violation(where, f"{name} {new}", f"at least {old}")
    if before.mark is None:
        return
    if after.mark is None:
        yield Violation(_PATH, "no durable mark", f"{before.mark.durable_offset}")
        return
    for name in ("sequence", "durable_offset", "dispatched_offset"):
        old, new = getattr(before.mark, name), getattr(after.mark, name)
        if new < old:
            where = Place(_PATH, after.mark.position)
            yield Violation(where, f"{name} {new}", f"at least {old}")
    # What another program wrote stays another program's, as long as it is there.
    others = min(before.mark.others_until, after.mark.durable_offset)
    if after.mark.others_until < others:
        where = Place(_PATH, after.mark.position)
        seen = f"others_until {after.mark.others_until}"
        yield Violation(where, seen, f"at least {others}")


@law(
    "CP-5",
    "the checkpoint has its fixed size, its fields are in range, and of its two "
    "checksummed copies of the durable mark at most one is invalid",
    catalogue="I7 I8",
)
def checkpoint_is_in_range(judged: Judged) -> Iterator[Violation]:
    """No time is negative, offsets lie in the log, the sizes are those of the files.

    Offsets in a checkpoint without a mark may be of a replica's master, which has more.
    Checked at rest; after a crash only the length and the signs, and only on stores
    without a mark.

    Source: StoreCheckpoint.
    """
    checkpoint = judged.image.checkpoint
    if f"{_PATH}/" in judged.image.files:
        yield Violation(_PATH, "a directory", "a file")
    if not judged.image.has_checkpoint:
        return
    if not judged.clean and not (judged.whole_sectors and checkpoint.size):
        return  # a crash amid its making leaves it empty
    if checkpoint.size != CHECKPOINT_SIZE:
        where = Place(_PATH, min(checkpoint.size, CHECKPOINT_SIZE))
        yield Violation(where, f"{checkpoint.size} bytes", f"{CHECKPOINT_SIZE} bytes")
    for name in _RISING:
        if getattr(checkpoint, name) < 0:
            where = Place(_PATH, _BYTE_OF[name])
            yield Violation(where, f"{name} {getattr(checkpoint, name)}", "0 or more")
    if not judged.clean:
        return
    yield from _times_of_no_record(judged)
    end = judged.image.commit_log.max_phy_offset
    if checkpoint.mark is None and checkpoint.master_flushed_offset > 0:
        end = _OF_A_MASTER  # of a replica, which may lag behind
    for name in ("master_flushed_offset", "confirm_phy_offset"):
        if not _NONE_YET <= getattr(checkpoint, name) <= end:
            where = Place(_PATH, _BYTE_OF[name])
            seen = f"{name} {getattr(checkpoint, name)}"
            yield Violation(where, seen, f"at most {end}, where a log may end")
    yield from _other_sizes(judged)
    if len(checkpoint.torn_slots) == 2:
        where = Place(_PATH, checkpoint.torn_slots[0])
        yield Violation(
            where, "neither slot is whole", "one: a write tears one at most"
        )


def _times_of_no_record(judged: Judged) -> Iterator[Violation]:
    """Times outside the range of all records, or that are no index file's end time."""
    image, checkpoint = judged.image, judged.image.checkpoint
    log = image.commit_log
    if not judged.stale_allowed or was_cut_here(image):
        return  # of a store of ours CP-6 says all this exactly
    beyond = [r.store_timestamp for r in log.records_beyond] if log.breaks else []
    newest = max([image.newest_store_timestamp, *beyond])
    for name in _RISING:
        seen = getattr(checkpoint, name)
        where = Place(_PATH, _BYTE_OF[name])
        if seen > newest and not image.all_has_expired and name != _RISING[0]:
            yield Violation(where, f"{name} {seen}", f"at most {newest}, stored last")
        is_whole = log.min_phy_offset == 0 and log.records and judged.monotonic_clock
        if is_whole:
            first = log.records[0].store_timestamp
            if 0 < seen < first:
                yield Violation(where, f"{name} {seen}", f"at least {first}, or 0")
    yield from _index_time_of_no_file(judged)


def _index_time_of_no_file(judged: Judged) -> Iterator[Violation]:
    """An index_msg_timestamp that is not the end time of any full index file.

    RocketMQ stores the end time of a full file, and files follow each other. The file
    may have been deleted, unless the log's first key is also the index's first.
    """
    image = judged.image
    indexed = image.checkpoint.index_msg_timestamp
    where = Place(_PATH, _BYTE_OF["index_msg_timestamp"])
    index = image.index(judged.index_slots)
    if indexed and _has_all_files(image, index):
        ends = [f.header.end_timestamp for _, f in index.files if f.is_full]
        if indexed not in ends:
            told = f"the end of a full file, as {ends[-1]}, or 0" if ends else ""
            expected = told or "0: no index file is full"
            yield Violation(where, f"index_msg_timestamp {indexed}", expected)
        return
    for path, file in index.files:
        if file.header.begin_timestamp < indexed < file.header.end_timestamp:
            expected = f"{file.header.end_timestamp}, the end of {path}, or another's"
            yield Violation(where, f"index_msg_timestamp {indexed}", expected)


def _has_all_files(image: StoreImage, index: IndexImage) -> bool:
    """Whether the index begins with the first key that the store ever had."""
    if image.commit_log.min_phy_offset or not image.log_keys or not index.entries:
        return False
    first, (_, file, _, entry) = image.log_keys[0], index.entries[0]
    is_first = (entry.key_hash, entry.phy_offset) == (
        first.key_hash,
        first.record.phy_offset,
    )
    return is_first and file is index.files[0][1]


@law("CP-10", "checkpoint bytes that belong to no field are zero", catalogue="I7 I8")
def rest_of_the_checkpoint_is_zero(image: StoreImage) -> Iterator[Violation]:
    """Checks the bytes between the fields and the slots, and those after the slots.

    RocketMQ has a sixth field since 5.5.0, a time or an offset. Asked only by fsck.
    """
    raw = bytes(image.files.get("checkpoint", b"")[:CHECKPOINT_SIZE])
    sixth = int.from_bytes(raw[_FIELDS_END : _FIELDS_END + 8], "big", signed=True)
    newest = max(image.newest_store_timestamp, image.commit_log.max_phy_offset)
    if _NONE_YET <= sixth <= newest + _SIXTH_LATE_MS:
        raw = raw[:_FIELDS_END] + bytes(8) + raw[_FIELDS_END + 8 :]
    slots_end = SLOT_POSITIONS[-1] + SLOT_POSITIONS[0]
    for start, end in ((_FIELDS_END, SLOT_POSITIONS[0]), (slots_end, len(raw))):
        written = raw[start:end].lstrip(b"\0")
        if written:
            where = Place(_PATH, end - len(written))
            yield Violation(where, f"0x{written[0]:02X}", "0: no field is there")


def _other_sizes(judged: Judged) -> Iterator[Violation]:
    """Sizes in the mark that differ from the files': it may be another store's."""
    image, mark = judged.image, judged.image.checkpoint.mark
    if mark is None:
        return
    pairs = (
        ("log_file_size", mark.log_file_size, image.commit_log.file_size),
        ("queue_file_size", mark.queue_file_size, image.queue_file_size),
    )
    for name, said, found in pairs:
        if found and said != found:
            where = Place(_PATH, mark.position)
            yield Violation(where, f"{name} {said}", f"{found}, as the files have")


@law(
    "CP-6",
    "after an orderly shutdown, or once every service is idle, physic_msg_timestamp "
    "and logics_msg_timestamp equal the newest store_timestamp, and durable_offset is "
    "the log's end",
    catalogue="I8",
)
def checkpoint_is_up_to_date(image: StoreImage) -> Iterator[Violation]:
    """Compares both times and durable_offset with the log's newest records.

    If they lag, the next start does more work than it needs. Checked only if the
    store's clock was never set back, so that the last record is the newest.

    Source: StoreCheckpoint#flush, DefaultMessageStore#shutdown.
    """
    checkpoint, newest = image.checkpoint, image.newest_store_timestamp
    listed = image.commit_log.newest_listed_timestamp  # a later one may have no unit
    for name, least in (
        ("physic_msg_timestamp", newest),
        ("logics_msg_timestamp", listed),
    ):
        is_known = not image.all_has_expired
        if is_known and not least <= getattr(checkpoint, name) <= newest:
            where = Place(_PATH, _BYTE_OF[name])
            expected = f"{newest}" if least == newest else f"in [{least}, {newest}]"
            yield Violation(where, f"{name} {getattr(checkpoint, name)}", expected)
    end = image.commit_log.max_phy_offset
    durable = checkpoint.mark.durable_offset if checkpoint.mark else -1
    if durable != end:
        yield Violation(_PATH, f"durable_offset {durable}", f"{end}, the log's end")
