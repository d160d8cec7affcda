"""Laws of a start: what it must find, what it may change, when it may refuse."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from crashmq.models.appended import Appended, differs, differs_from_message
from crashmq.models.files.checkpoint import Mark
from crashmq.models.files.deleted import DELETED_PATH
from crashmq.models.files.log import LogImage
from crashmq.models.files.offsets import OFFSETS_BACKUP, OFFSETS_PATH
from crashmq.models.files.record import RECORD_SIZE_MIN
from crashmq.models.files.store_image import Bytes, Record, StoreImage
from crashmq.models.laws.checkpoint import changed_files
from crashmq.models.laws.registry import law
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Positions, Refused, Started, Stopped
from crashmq.models.program import Setup
from crashmq.models.verdict import Violation


@law(
    "REC-1",
    "the recovered CommitLog holds the oldest answered puts, up to some put, in the "
    "order of their answers; unanswered puts may lie among or after them",
    catalogue="I2",
)
def recovered_log_is_a_prefix(
    records: Sequence[Record],
    messages: Sequence[Appended],
    in_flight: Sequence[MessageToPut],
) -> Iterator[Violation]:
    """Compares each record with the message that was appended there.

    A put without an answer may have been appended or not; it lies before an answered
    one only if both ran at the same time.

    Source: CommitLog#recoverNormally, CommitLog#recoverAbnormally.
    """
    unanswered = list(in_flight)
    answered = 0
    for record in records:
        expected = messages[answered] if answered < len(messages) else None
        if expected is not None and (
            not unanswered or record.phy_offset >= expected.phy_offset
        ):
            answered += 1
            if difference := differs(record, expected):
                yield _wrong(record, difference)
                return
            continue
        same = [
            n
            for n, message in enumerate(unanswered)
            if not differs_from_message(record, message)
        ]
        if not same:
            yield _wrong(record, "it was never appended in this history")
            return
        del unanswered[same[0]]


def _wrong(record: Record, difference: str) -> Violation:
    return Violation(
        f"commitlog phy_offset {record.phy_offset}",
        f"a record of {record.topic}/{record.queue_id}: {difference}",
        "the message that was appended there, or none",
    )


@law(
    "REC-2",
    "a process kill loses no message already written to its CommitLog file; a power "
    "loss loses no message already flushed",
    catalogue="I1",
)
def recovered_log_reaches_the_floor(
    records: Sequence[Record], messages: Sequence[Appended], floor: int
) -> Iterator[Violation]:
    """Looks for every message that ends at or below ``floor``, a phy_offset.

    After a process kill the floor is the end of what was written to files, after a
    power loss of what was flushed. A PUT_OK says that the message was flushed if it
    waited for its sync, else that it was written, unless appends lie in write buffers.
    """
    found = records[-1].phy_offset if records else -1
    for appended in reversed(messages):
        if appended.phy_offset <= found:
            break
        if appended.end <= floor:
            message = appended.message
            yield Violation(
                f"commitlog phy_offset {appended.phy_offset}",
                f"the message of {message.topic}/{message.queue_id} with queue_offset "
                f"{appended.queue_offset} is gone",
                f"every byte below {floor} survives this crash",
            )


@law(
    "REC-3",
    "once faults end and every service has had time to run, all services are idle and "
    "the log is flushed and dispatched",
    catalogue="I4 I19",
)
def services_have_caught_up(now: Positions, busy: Sequence[str]) -> Iterator[Violation]:
    """Compares flushed_where and reput_from_offset with the log's end.

    Asked at the end of an episode, before everything is read back. ``busy`` are the
    services whose last round still reported work.
    """
    for service in busy:
        yield Violation(service, "never without work", "a round that finds none")
    for name in ("flushed_where", "reput_from_offset"):
        mark = getattr(now, name)
        if mark < now.max_phy_offset:
            expected = f"{now.max_phy_offset}, the log's end"
            yield Violation(name, f"stands still at {mark}", expected)


@law(
    "REC-4",
    "a start refuses if and only if durable data is damaged or missing, unless "
    "on_damage=serve lets it serve the rest, or an option has a value that no store "
    "can work with",
    catalogue="I9 I15",
)
def refuses_only_damage(
    found: StoreImage,
    extended: StoreImage,
    refusal: str,
    *,
    log_is_damaged: bool,
    misfit: str = "",
    may_refuse: bool = False,
    adopts: bool = False,
) -> Iterator[Violation]:
    """Compares the start's answer with the files as it found them.

    Args:
        found: those files.
        extended: the same, with short log files filled up to their size with zeros.
        refusal: why the store did not start; "" if it did.
        log_is_damaged: whether anything outside the store changed its log.
        misfit: another reason: a file with the sizes of another store, put there
            from outside, bytes that a start needs and that cannot be read, or an option
            with a value that no store can work with.
        may_refuse: the start may have met a fault that other reads did not meet.
        adopts: it may take over what another program left.
    """
    reason = ""
    if log_is_damaged:
        reason = reason_to_refuse(found, extended, adopts=adopts)
    reason = misfit or reason
    may_refuse = may_refuse or (log_is_damaged and has_impossible_place(found))
    if refusal and not (reason or may_refuse):
        yield Violation("start", f"refused: {refusal}", "a start, for nothing is lost")
    if reason and not refusal:
        yield Violation("start", f"started, although {reason}", "a refusal")


def reason_to_refuse(
    found: StoreImage, extended: StoreImage, *, adopts: bool = False
) -> str:
    """Why the start must refuse: durable data that is damaged; "" if none is.

    First files that another program may have expired are no loss, nor is damage that it
    left where the start ``adopts`` its directory.
    """
    log, mark = extended.commit_log, found.checkpoint.mark
    if mark is None:
        for short in found.commit_log.files:
            is_short = 0 < len(short.data) < len(extended.files[short.path])
            was_cut = short.base + len(short.data) == log.max_phy_offset
            if is_short and not (was_cut and found.abort):
                return f"{short.path} is short, and no mark tells if it matters"
        return _misnumbered(log)
    lacks_first = log.files and log.min_phy_offset > mark.log_min_offset
    may_have_expired = adopts or _another_ran(extended, mark)
    if lacks_first and not mark.is_empty and not may_have_expired:
        return f"the log begins at {log.min_phy_offset}, not {mark.log_min_offset}"
    if log.max_phy_offset < mark.durable_offset:
        return f"the log ends at {log.max_phy_offset}, below {mark.durable_offset}"
    if changed := changed_files(extended):
        return f"{changed[0]} has other bytes than were made durable"
    return _misnumbered(log)


def _another_ran(image: StoreImage, mark: Mark) -> bool:
    """Whether another program ran on the files after their mark was written.

    RocketMQ has written its confirm offset since 5.0, and our store never does; and an
    orderly shutdown of ours leaves nothing behind the mark.
    """
    says_confirmed = image.checkpoint.confirm_phy_offset > 0 and not mark.others_until
    end = image.commit_log.max_phy_offset
    return says_confirmed or (not image.abort and end > mark.durable_offset)


def has_impossible_place(image: StoreImage) -> bool:
    """Whether a record has a queue_offset for which the log before it has no room.

    Whether dispatch would fill up to it depends on what its queue holds.
    """
    log = image.commit_log
    return any(
        not 0 <= place * RECORD_SIZE_MIN <= record.phy_offset
        for record in (*log.records, *log.records_beyond)
        for place in (record.queue_offset, *(at for _, at in record.light_places))
    )


def _misnumbered(log: LogImage) -> str:
    """The first record that skips more queue offsets than the log has room for."""
    skips = [
        after
        for key in log.misnumbered_queues
        for before, after in pairwise(log.indexed_records[key])
        if after.queue_offset - before.queue_offset - 1
        > after.phy_offset // RECORD_SIZE_MIN
    ]
    first = min(skips, key=lambda record: record.phy_offset, default=None)
    if first is None:
        return ""
    return f"{log.where(first.phy_offset)} has queue_offset {first.queue_offset}"


@law(
    "REC-5",
    "once faults are lifted and, if the disk had failed, the store is restarted, a put "
    "gets PUT_OK and the shutdown is orderly",
    catalogue="I9 I19",
)
def healed_store_works(put_status: str, is_clean: bool) -> Iterator[Violation]:
    """Judges the last put and the last shutdown of an episode.

    Every service has run its rounds before them.
    """
    if put_status != "PUT_OK":
        yield Violation("put", put_status, "PUT_OK on a healed store")
    if not is_clean:
        yield Violation("shutdown", "the abort file stays", "an orderly end")


@law(
    "REC-6",
    "the abort file exists from a start until an orderly shutdown, and not after one",
    catalogue="I4 I9",
)
def abort_tells_how_it_ended(found: StoreImage, *, ended: bool) -> Iterator[Violation]:
    """Compares the abort file with ``ended``: the previous shutdown was orderly.

    Source: DefaultMessageStore#isTempFileExist, which RocketMQ's recovery trusts.
    """
    if found.abort == ended:
        seen = "the file is there" if found.abort else "there is none"
        yield Violation(
            "abort", seen, "none" if ended else "a file: it was not shut down"
        )


@law(
    "REC-7",
    "a start reads the CommitLog from two file lengths below the lowest of "
    "durable_offset, dispatched_offset and its end minus start_window at the earliest, "
    "and from that offset itself at the latest",
    catalogue="I8",
)
def start_reads_what_it_must(
    found: StoreImage, log_bytes_read: int, setup: Setup
) -> Iterator[Violation]:
    """Compares ``log_bytes_read`` with the least and most that such a start needs.

    A record in the middle of which a read ends is read again completely, and of each
    older file the first record may be read. A start reads the whole log with an index
    or on_damage=serve, and where no mark says that all of it was whole. Not asked if
    files were damaged from outside.
    """
    mark, files = found.checkpoint.mark, found.commit_log.files
    reads_all = setup.index_slots or setup.on_damage == "serve"
    if not files:
        return
    size, end = setup.log_file_size, files[-1].base + setup.log_file_size
    if mark is None or reads_all or mark.damaged_until > files[0].base:
        yield from _reads_less(found, log_bytes_read, files[0].base)
        return
    replay = min(mark.durable_offset, mark.dispatched_offset, end - setup.start_window)
    yield from _reads_less(found, log_bytes_read, replay)
    firsts = sum(file.records[0].size + 8 for file in files if file.records)
    most = max(0, end - replay) + 2 * size + firsts
    if setup.read_window < size:
        most += setup.read_window * sum(len(file.records) + 1 for file in files)
    if log_bytes_read > most:
        seen = f"{log_bytes_read} bytes of the log were read"
        yield Violation("start", seen, f"at most {most}: replay begins at {replay}")


def _reads_less(
    found: StoreImage, log_bytes_read: int, begin: int
) -> Iterator[Violation]:
    """A start that reads less than the records from ``begin`` on, a phy_offset."""
    records = found.commit_log.records
    least = sum(record.size for record in records if record.end > begin)
    if log_bytes_read < least:
        seen = f"{log_bytes_read} bytes of the log were read"
        yield Violation("start", seen, f"at least {least}: the records from {begin} on")


@law(
    "REC-10",
    "after an orderly shutdown every file is synced: a power loss changes nothing",
    catalogue="I1 I7 I9",
)
def orderly_end_is_durable(stop: Stopped) -> Iterator[Violation]:
    """Looks for a byte or a name that a power loss could take after the shutdown.

    Asked on disks that keep what was synced. A file under a temporary name is excused:
    nothing reads it and a start removes it.

    Source: DefaultMessageStore#shutdown.
    """
    for path in stop.unsynced if stop.clean else ():
        if not path.endswith(".tmp"):
            expected = "a file that power loss cannot change"
            yield Violation(path, "not all synced", expected)


@law(
    "REC-19",
    "after a failed flush or a half-done topic deletion, a shutdown does not remove "
    "the abort file",
    catalogue="I1 I7 I9",
)
def no_orderly_end_after_a_failed_flush(
    stop: Stopped, failed: str
) -> Iterator[Violation]:
    """Judges the shutdown; ``failed`` names the flush, or the deletion.

    The next start writes again what the failed flush left unsynced, and completes a
    deletion that failed half-way.
    """
    if stop.clean:
        seen = f"an orderly end, though {failed} failed"
        yield Violation("shutdown", seen, "the abort file stays")


@law(
    "REC-13",
    "a start reports the previous shutdown as orderly if and only if it was",
    catalogue="I9",
)
def start_knows_how_it_ended(start: Started, *, ended: bool) -> Iterator[Violation]:
    """Compares last_exit_ok with ``ended``: the previous shutdown was orderly.

    Asked of files that were not damaged from outside.

    Source: DefaultMessageStore#load, lastExitOK.
    """
    if start.last_exit_ok != ended:
        seen = f"last_exit_ok {start.last_exit_ok}"
        yield Violation("start", seen, f"{ended}, as the life before ended")


@law(
    "REC-20",
    "a start treats the previous shutdown as orderly only if the checkpoint's "
    "durable_offset reaches the CommitLog's end",
    catalogue="I9",
)
def mark_vouches_for_an_orderly_end(
    start: Started, durable_offset: int, log_end: int
) -> Iterator[Violation]:
    """Compares durable_offset with the log's end; both are phy_offsets.

    If the abort file was removed from outside, bytes above durable_offset may be
    unsynced.
    """
    if start.last_exit_ok and durable_offset < log_end:
        seen = f"last_exit_ok, the log ends at {log_end}"
        yield Violation("start", seen, f"a recovery from {durable_offset} on")


@law(
    "REC-14",
    "a file in the store's directories that the store did not create is never changed "
    "or removed",
    catalogue="I9",
)
def foreign_files_stay(
    foreign: Mapping[str, Bytes], files: Mapping[str, Bytes]
) -> Iterator[Violation]:
    """Compares files whose names no store uses; a ``PlantFile`` op put them there."""
    for path, data in sorted(foreign.items()):
        if path not in files:
            yield Violation(path, "gone", f"{len(data)} B as they were put there")
        elif files[path] != data:
            yield Violation(path, f"{len(files[path])} other B", f"{len(data)} B")


@law(
    "REC-16",
    "the store syncs each file removal: a file that it removed cannot reappear after a "
    "power loss",
    catalogue="I10",
)
def what_went_is_gone(unsynced: Mapping[str, int]) -> Iterator[Violation]:
    """Looks for removed files that are unsynced; see ``Subject.unsynced_from``.

    Asked after a start, a deletion and a cleaner.

    Source: DefaultMappedFile#destroy.
    """
    for path, first in unsynced.items():
        if first < 0 and "/" in path:
            expected = "its removal synced"
            yield Violation(path, "power loss could bring it back", expected)


@law(
    "REC-17",
    "when a start refuses, its error names a file that really is damaged or missing",
    catalogue="I9 I15",
)
def refusal_names_what_is_damaged(
    refusal: Refused, damaged: Collection[str]
) -> Iterator[Violation]:
    """Compares the path that the error names with ``damaged``.

    Args:
        refusal: the start's answer; its path is "commitlog" if a part of the log is
            missing.
        damaged: the paths that were changed from outside; "commitlog" if it is
            unknown which of the log's files were.
    """
    named = refusal.path
    of_log = named.startswith("commitlog")
    is_right = named in damaged or (of_log and "commitlog" in damaged)
    if named == "commitlog":
        is_right = any(path.startswith("commitlog") for path in damaged)
    if not is_right:
        expected = f"one of {', '.join(sorted(damaged))}"
        yield Violation("start", f"refused: {refusal.reason}", expected)


_RUN_FILES = frozenset({"abort", "checkpoint", "lock"})


@law("REC-8", "a start that refuses changes no file", catalogue="I9 I15")
def refusal_changes_nothing(
    before: Mapping[str, Bytes], after: Mapping[str, Bytes]
) -> Iterator[Violation]:
    """Compares all files but ``lock``.

    An operator who restores the store from a copy must find it as it was.
    """
    yield from _changes(before, after, frozenset({"lock"}))


@law(
    "REC-9",
    "a second start on the files that the first start left changes none of them",
    catalogue="I10",
)
def second_start_changes_nothing(
    before: Mapping[str, Bytes], after: Mapping[str, Bytes]
) -> Iterator[Violation]:
    """Compares all files but abort, checkpoint and lock."""
    yield from _changes(before, after, _RUN_FILES)


@law(
    "REC-15",
    "a start after an orderly shutdown changes no CommitLog, ConsumeQueue, "
    "consumequeue_ext or index file; it may remove expired index files",
    catalogue="I10",
)
def start_after_orderly_end_changes_nothing(
    before: Mapping[str, Bytes],
    after: Mapping[str, Bytes],
    expired: Collection[str] = (),
) -> Iterator[Violation]:
    """Compares all files but abort, checkpoint, lock and the deleted-topics file.

    The start drops those deleted topics whose records have all expired, and may remove
    ``expired``: index files whose records have all expired. It may lower consumers'
    offsets, whose files have laws of their own.
    """
    forgotten = {path for path in expired if path not in after}
    but_for = {DELETED_PATH, OFFSETS_PATH, OFFSETS_BACKUP, *forgotten}
    yield from _changes(before, after, _RUN_FILES | but_for)


def same_store(one: Mapping[str, Bytes], other: Mapping[str, Bytes]) -> bool:
    """Whether two sets of files are equal but for abort, checkpoint and lock."""
    return all(one.get(p) == other.get(p) for p in {*one, *other} - _RUN_FILES)


def _changes(
    before: Mapping[str, Bytes], after: Mapping[str, Bytes], but_for: frozenset[str]
) -> Iterator[Violation]:
    for path in sorted({*before, *after} - but_for):
        old, new = before.get(path), after.get(path)
        if old is not new and old != new:
            sizes = [
                "none" if data is None else f"{len(data)} B" for data in (old, new)
            ]
            yield Violation(path, f"{sizes[1]}, other bytes", f"{sizes[0]} as before")
