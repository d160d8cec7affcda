"""Laws of expiry: only expired files are deleted, from the front, for good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from crashmq.models.files.log import LogImage
from crashmq.models.files.queue_ext import EXT_ADDRESS_MAX, ext_files
from crashmq.models.files.store_image import StoreImage
from crashmq.models.laws.registry import law
from crashmq.models.limits import STOP_FROM_PERCENT
from crashmq.models.observations import Positions, Put
from crashmq.models.verdict import Violation


@law(
    "DEL-1",
    "after a start, the CommitLog's min_phy_offset is exactly the one that file "
    "deletion left",
    catalogue="I14",
)
def log_begins_where_it_was_left(
    found_min: int, lowest: int, highest: int
) -> Iterator[Violation]:
    """Compares min_phy_offset after a start with where deletions left it.

    Asked if nothing outside the store removed a file.

    Args:
        found_min: the log's min_phy_offset.
        lowest: where the last completed deletion left it.
        highest: how far an interrupted deletion can have come.

    Source: MappedFileQueue#deleteExpiredFileByTime.
    """
    if not lowest <= found_min <= highest:
        seen = f"the log begins at {found_min}"
        expected = f"{lowest}" if lowest == highest else f"in [{lowest}, {highest}]"
        yield Violation("commitlog", seen, expected)


@law(
    "DEL-2",
    "a queue whose records have all expired keeps its next queue_offset across a "
    "restart; where the log has no file left, every queue begins at 0",
    catalogue="I5 I6",
)
def empty_queues_keep_their_end(
    found_ends: Mapping[tuple[str, int], int], ends: Mapping[tuple[str, int], int]
) -> Iterator[Violation]:
    """Compares where queues end with where those without a record must end.

    Asked of queues whose own files nothing outside the store changed. If all of the log
    was taken away, it is asked of all queues: nothing has expired from a log that
    begins at 0.

    Args:
        found_ends: the next queue_offset of each queue, by its files.
        ends: the correct one, of each queue that has no record in the log.

    Source: ConsumeQueue#correctMinOffset, ConsumeQueueStore#recoverOffsetTable.
    """
    for (topic, queue_id), end in ends.items():
        found = found_ends.get((topic, queue_id), 0)
        if found != end:
            where = f"consumequeue/{topic}/{queue_id}"
            yield Violation(where, f"it ends at queue_offset {found}", f"{end}")


@law(
    "DEL-3",
    "CommitLog files are deleted only by a cleaner that is due (by hour, request or "
    "full disk) and, unless the disk forces it, only past their retention",
    catalogue="I14",
)
def only_what_has_expired_goes(
    now: Positions,
    stored_ms: Sequence[int],
    old_ms: int | None,
    *,
    is_cleaning: bool,
    is_due: bool,
) -> Iterator[Violation]:
    """Checks deleted CommitLog files: who deleted them, and how old they were.

    A cleaner is due at its hour, on a disk that is too full, and for 20 rounds after a
    request.

    Args:
        now: the log's offsets after the deletion.
        stored_ms: when the deleted messages were stored, or somewhat earlier.
        old_ms: what was stored by then has expired; None: a full disk may force
            more.
        is_cleaning: whether the cleaner ran.
        is_due: whether it may have been due.

    Source: DefaultMessageStore.CleanCommitLogService#deleteExpiredFiles.
    """
    where = f"commitlog before {now.min_phy_offset}"
    if not is_cleaning:
        yield Violation(where, "it is gone", "nothing: no cleaner has run")
    elif not is_due:
        expected = "nothing: not the hour, no request, the disk has room"
        yield Violation(where, "it is gone", expected)
    young = [stored for stored in stored_ms if old_ms is not None and stored > old_ms]
    if young:
        seen = f"{len(young)} messages are gone, one stored at {max(young)}"
        yield Violation(where, seen, f"none stored after {old_ms}")


@law(
    "DEL-4",
    "a cleaner that is due deletes the oldest CommitLog files that are past their "
    "retention, dispatched and flushed, up to deleteFileBatchMax; with forced "
    "cleaning on a too full disk, files of any age",
    catalogue="I14 I19",
)
def what_has_expired_goes(
    log: LogImage, before: Positions, first_mtime_ms: int, old_ms: int | None
) -> Iterator[Violation]:
    """Checks the first file left by a due round that deleted less than a batch.

    It has expired if it was last modified by ``old_ms`` and the next file's first
    record was stored by then, too. ``old_ms`` is None where the disk forces any file to
    go. ``before`` is what the store reported when the round began.

    Source: DefaultMessageStore.CleanCommitLogService#deleteExpiredFiles.
    """
    if len(log.files) < 2:
        return
    first, second = log.files[0], log.files[1]
    is_needed = second.base > min(before.reput_from_offset, before.flushed_where)
    if old_ms is None and not is_needed:
        expected = "no such file: the disk is too full"
        yield Violation(first.path, "it is still there", expected)
        return
    if is_needed or not second.records or old_ms is None or first_mtime_ms > old_ms:
        return
    if second.records[0].store_timestamp <= old_ms:
        expected = f"no such file: it last changed at {first_mtime_ms}"
        yield Violation(first.path, "it is still there", expected)


@law(
    "DEL-5",
    "after a CleanConsumeQueueService round, every ConsumeQueue file except a queue's "
    "last holds a unit at or past min_phy_offset",
    catalogue="I14 I20",
)
def expired_queue_files_go(image: StoreImage) -> Iterator[Violation]:
    """Compares the last unit of each file with the log's min_phy_offset.

    Source: MappedFileQueue#deleteExpiredFileByOffset.
    """
    log_min = image.commit_log.min_phy_offset
    for queue in image.consume_queues:
        for file in queue.files[:-1]:
            if file.units and file.units[-1].phy_offset < log_min:
                seen = f"its last unit points at {file.units[-1].phy_offset}"
                yield Violation(file.path, seen, f"no file that ends before {log_min}")


@law(
    "DEL-12",
    "a put that needs a new CommitLog file is refused if that file would fill the "
    "disk beyond 90 %",
    catalogue="I19",
)
def no_put_fills_the_disk(
    answer: Put, before_end: int, file_size: int, used: int, total: int
) -> Iterator[Violation]:
    """A put that makes a new file leaves the disk ``STOP_FROM_PERCENT`` full at most.

    Judged only if the put ran alone, on a disk with a capacity.

    Args:
        answer: the put's.
        before_end: where the log ended before it; at a file's end, a new one is needed.
        file_size: of each CommitLog file.
        used: bytes of the disk in use after the put.
        total: bytes the disk has room for.
    """
    last = (before_end - 1) // file_size if before_end else -1
    if answer.phy_offset // file_size <= last or answer.phy_offset < 0:
        return
    if used * 100 > total * STOP_FROM_PERCENT:
        seen = f"it was taken, in a new file; {used} of {total} bytes are in use"
        yield Violation(f"put at {answer.phy_offset}", seen, "a refusal")


@law(
    "DEL-11",
    "after a CleanConsumeQueueService round, each index file but the newest, and each "
    "of a queue's consumequeue_ext files but its newest, holds an entry of a record "
    "that has not expired",
    catalogue="I14 I20",
)
def expired_side_files_go(image: StoreImage, index_slots: int) -> Iterator[Violation]:
    """A consumequeue_ext file has expired if the first live address lies past it.

    An index file has expired if its last record lies below the log's min_phy_offset.

    Source: ConsumeQueueExt#truncateByMinAddress, IndexService#deleteExpiredFile.
    """
    log_min = image.commit_log.min_phy_offset
    for queue, live in image.live_units:
        if not live or live[0].tags_code > EXT_ADDRESS_MAX:
            continue
        least = live[0].tags_code + (1 << 63)
        files = ext_files(image.files, queue.name)
        for (path, _), (_, after) in pairwise(files):
            if after <= least:
                expected = f"no file of units before {least}"
                yield Violation(path, "it is still there", expected)
    for path, file in image.index(index_slots).files[:-1] if index_slots else ():
        if file.header.end_phy_offset < log_min:
            seen = f"its last record was at {file.header.end_phy_offset}"
            yield Violation(path, seen, f"no file that ends before {log_min}")


@law(
    "DEL-6",
    "once a CleanCommitLogService round finds the disk too full, every put is refused "
    "until a round finds room or the store restarts",
    catalogue="I19",
)
def a_full_disk_takes_no_put(answer: Put) -> Iterator[Violation]:
    """Asked of each put from a round that finds the disk too full to one with room.

    A put that was appended breaks the law. The remaining room is for the queues, so
    that all of the log can be dispatched.

    Source: DefaultMessageStore.CleanCommitLogService#isSpaceToDelete.
    """
    if answer.phy_offset >= 0:
        yield Violation(f"put answered {answer.status}", "it was taken", "a refusal")
