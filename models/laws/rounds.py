"""Laws of single service rounds: each does what is due in it, and no more.

``done`` is one round: the work it reports, and the store's positions when it began and
when it ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from crashmq.models.files.queue import UNIT_SIZE
from crashmq.models.files.store_image import StoreImage
from crashmq.models.history import RoundDone
from crashmq.models.laws.registry import law
from crashmq.models.limits import PAGE_SIZE, QUEUE_LEAST_PAGES, SYNC_TIMEOUT_MS
from crashmq.models.observations import Positions
from crashmq.models.ops import ServiceName
from crashmq.models.program import Setup
from crashmq.models.verdict import Place, Violation


def is_enough(start: int, end: int, least_pages: int, *, is_full: bool) -> bool:
    """Whether bytes [start, end) of one file are enough for a flush or commit.

    They must reach over the borders of ``least_pages`` pages of 4 KiB. In a full file
    any byte is enough, and with ``least_pages`` 0 in any file.

    Source: DefaultMappedFile#isAbleToFlush, #isAbleToCommit.
    """
    if is_full or not least_pages:
        return end > start
    return end // PAGE_SIZE - start // PAGE_SIZE >= least_pages


class _Waits(NamedTuple):
    """The bytes of one file that wait for a service's next round, as phy_offsets."""

    start: int
    end: int
    enough: bool


def _waits(service: str, at: Positions, setup: Setup) -> _Waits:
    """What waits for the service's next round in the file where the service stands."""
    size = setup.log_file_size
    start, end = at.flushed_where, at.committed_where
    if service == "commit":
        start, end = at.committed_where, at.max_phy_offset
    base = start - start % size
    end = min(end, base + size)
    # What was written fills it, be it that not all of that is committed.
    is_full = at.max_phy_offset >= base + size
    least = setup.flush_least_pages
    enough = is_enough(start - base, end - base, least, is_full=is_full)
    return _Waits(start, end, enough)


def _stands(service: str, now: Positions) -> int:
    return now.committed_where if service == "commit" else now.flushed_where


@law(
    "SVC-1",
    "a round of group commit answers every put that waited for its sync when the round "
    "began",
    catalogue="I19",
)
def round_answers_whom_it_covers(
    left: Sequence[tuple[int, int]],
) -> Iterator[Violation]:
    """``left`` are puts that still waited when the next round began.

    Each is the phy_offset of a record that was in the log when a round began while all
    callers waited, and the number of the event of that round's end.

    Source: CommitLog.GroupCommitService#doCommit, which goes through all requests.
    """
    for phy_offset, number in left:
        where = f"put at phy_offset {phy_offset}"
        seen = f"it waited on after the round that ended with event {number}"
        yield Violation(where, seen, "an answer in that round")


@law(
    "SVC-2",
    "until its thorough interval is over, a flush or commit round leaves a CommitLog "
    "file alone that is not full and has fewer than flush_least_pages dirty pages",
    catalogue="I19",
)
def round_leaves_what_is_little(done: RoundDone, setup: Setup) -> Iterator[Violation]:
    """Asked of a round that ran alone, before the interval was over.

    Source: DefaultMappedFile#isAbleToFlush, #isAbleToCommit,
    MessageStoreConfig#flushCommitLogLeastPages, #commitCommitLogLeastPages.
    """
    waits = _waits(done.service, done.before, setup)
    went_to = _stands(done.service, done.after)
    if went_to > waits.start and not waits.enough:
        seen = f"it went from {waits.start} to {went_to}"
        expected = (
            f"{waits.start}: {setup.flush_least_pages} pages, or a full file, are due"
        )
        yield Violation(done.service, seen, expected)


@law(
    "SVC-3",
    "a commit round commits the appended bytes of the CommitLog file that "
    "committed_where lies in, if it is full or has flush_least_pages dirty pages",
    catalogue="I7 I19",
)
def round_commits_what_is_enough(done: RoundDone, setup: Setup) -> Iterator[Violation]:
    """Compares committed_where after a round that ran alone with where it began.

    Source: DefaultMappedFile#isAbleToCommit,
    MessageStoreConfig#commitCommitLogLeastPages.
    """
    waits = _waits("commit", done.before, setup)
    if waits.enough and done.after.committed_where < waits.end:
        seen = f"{done.after.committed_where} after a round, {waits.start} before"
        yield Violation("committed_where", seen, f"at least {waits.end}")


@law(
    "SVC-11",
    "after the clock was set back, the next commit round commits all that was "
    "appended, and under ASYNC_FLUSH the next flush round flushes all that its "
    "CommitLog file has",
    catalogue="I7 I19",
)
def round_after_a_set_back_is_thorough(
    done: RoundDone, setup: Setup
) -> Iterator[Violation]:
    """Asked of a round that ran alone, before its last thorough one by the clock.

    Else few bytes stay unreadable, or unsafe from a power loss, until the clock has
    caught up. How long they have waited nobody can say, so FL-10 and FL-11 are silent.

    Source: CommitRealTimeService#run, FlushRealTimeService#run. Differs: there they
    wait.
    """
    waits = _waits(done.service, done.before, setup)
    end = done.before.max_phy_offset if done.service == "commit" else waits.end
    went_to = _stands(done.service, done.after)
    if went_to < end:
        seen = f"it went from {waits.start} to {went_to}"
        yield Violation(done.service, seen, f"{end}: the clock was set back")


@law(
    "SVC-4",
    "under SYNC_FLUSH a flush round flushes all bytes of the CommitLog file that "
    "flushed_where lies in, however few, including those in write buffers",
    catalogue="I7 I19",
)
def group_commit_flushes_all(done: RoundDone, setup: Setup) -> Iterator[Violation]:
    """Compares flushed_where after a round that ran alone with where it began.

    So messages that do not wait for their sync are durable, and can be read, after the
    next round.

    Source: CommitLog.GroupCommitService#doCommit, its flush of no least pages.
    """
    start, size = done.before.flushed_where, setup.log_file_size
    end = min(done.before.max_phy_offset, start - start % size + size)
    if done.after.flushed_where < end:
        seen = f"{done.after.flushed_where} after a round, {start} before"
        yield Violation("flushed_where", seen, f"at least {end}")


@law(
    "SVC-5",
    "a ConsumeQueue flush before its thorough interval is over syncs files that are "
    "full or have flushConsumeQueueLeastPages dirty pages, and no others",
    catalogue="I4 I19",
)
def queue_flush_takes_what_is_enough(
    done: RoundDone, image: StoreImage, setup: Setup, unsynced: Mapping[str, int]
) -> Iterator[Violation]:
    """Compares the unsynced bytes of queue files before and after the round, alone.

    What is due is durable afterwards; of each queue at least one file, its first with
    unsynced units. A file that is not full and has too few pages stays as it is,
    whatever the others do; if there is no other file, nothing is done.

    Args:
        done: the round; it knows what was unsynced before.
        image: the files.
        setup: the store's configuration.
        unsynced: what ``Subject.unsynced_from`` returns after the round.

    Source: FlushConsumeQueueService#doFlush,
    MessageStoreConfig#flushConsumeQueueLeastPages.
    """
    size = setup.queue_file_units * UNIT_SIZE
    ends = {
        file.path: len(file.units) * UNIT_SIZE
        for queue in image.consume_queues
        for file in queue.files
    }
    is_some_large = any(
        is_enough(0, end, QUEUE_LEAST_PAGES, is_full=end == size)
        for end in ends.values()
    )
    # A queue's extension is synced in each round, whatever its units wait for.
    did = done.work or (done.actions and not setup.has_queue_ext)
    if did and not is_some_large:
        seen = f"{done.work} files, {done.actions} disk actions"
        expected = f"none: no file is full or has {QUEUE_LEAST_PAGES} dirty pages"
        yield Violation("flush_consume_queue", seen, expected)
    before, met = dict(done.unsynced or ()), set[str]()
    for path, end in ends.items():
        folder, first = path.rpartition("/")[0], before.get(path, -1)
        if first < 0:
            continue
        may_be_synced = is_enough(0, end, QUEUE_LEAST_PAGES, is_full=end == size)
        # At byte 0 the name may not be durable, which another file's sync changes.
        if first and not may_be_synced and unsynced.get(path, -1) != first:
            expected = f"not yet: it is not full, with {end} bytes"
            yield Violation(Place(path, first), "synced", expected)
        if folder in met:
            continue
        if is_enough(first, end, QUEUE_LEAST_PAGES, is_full=end == size):
            met.add(folder)
            if unsynced.get(path, -1) == first:
                yield Violation(Place(path, first), "not synced", "it is due")


@law(
    "SVC-6",
    "a flush of the index syncs every full index file whose records are flushed",
    catalogue="I11 I19",
)
def full_index_files_are_synced(
    flushed_where: int,
    image: StoreImage,
    setup: Setup,
    unsynced: Mapping[str, int],
) -> Iterator[Violation]:
    """Asked after a round; ``flushed_where`` is its value when the round began.

    Source: IndexService#getAndCreateLastIndexFile, its flush of the file before.
    """
    for path, file in image.index(setup.index_slots).files:
        is_full = file.header.index_count >= setup.index_entries
        is_due = is_full and file.header.end_phy_offset < flushed_where
        if is_due and unsynced.get(path, -1) >= 0:
            where = Place(path, unsynced[path])
            yield Violation(where, "a power loss could take it", "synced")


@law(
    "SVC-7",
    "after an allocation round, the CommitLog file that follows the newest one with a "
    "record exists",
    catalogue="I19",
)
def next_file_is_there(
    before: Positions, begun_at: int, setup: Setup, files: Mapping[str, bytes]
) -> Iterator[Violation]:
    """Asked of a round that ran alone, with ``preallocate``.

    ``begun_at`` is where the log's files ended when this run of the store began.

    Source: AllocateMappedFileService#putRequestAndReturnMappedFile, #mmapOperation.
    """
    size = setup.log_file_size
    newest, oldest = (before.max_phy_offset - 1) // size, (begun_at - 1) // size
    path = f"commitlog/{(newest + 1) * size:020d}"
    if newest > oldest and path not in files:
        yield Violation(path, "no such file", "a file that is ready for the next put")


@law(
    "SVC-10",
    "a store that is up, and the broker around it, have every service that their "
    "configuration calls for",
    catalogue="I19",
)
def service_is_there(
    service: ServiceName, setup: Setup, *, is_there: bool
) -> Iterator[Violation]:
    """Asked whenever a service is to run, whether it exists or not.

    Source: DefaultMessageStore#start, BrokerController#startBasicService.
    """
    if not is_there and service in setup.services:
        yield Violation(service, "no such service", "it runs")


@law(
    "SVC-8",
    "after a checkpoint round, dispatched_offset covers what a thorough ConsumeQueue "
    "flush has made durable, as far as the CommitLog is flushed",
    catalogue="I4 I8 I19",
)
def checkpoint_tells_how_far_queues_are_durable(
    image: StoreImage, flushed_where: int, durable_until: int
) -> Iterator[Violation]:
    """Otherwise a start reads the log from further back than it needs.

    Source: FlushConsumeQueueService#doFlush, StoreCheckpoint#flush.
    """
    mark = image.checkpoint.mark
    told = mark.dispatched_offset if mark else 0
    due = min(flushed_where, durable_until)
    if told < due:
        yield Violation("checkpoint", f"dispatched_offset {told}", f"at least {due}")


@law(
    "DEL-14",
    "a round of CleanCommitLogService deletes at most deleteFileBatchMax files",
    catalogue="I14 I19",
)
def round_deletes_a_batch_at_most(
    done: RoundDone, setup: Setup, *, is_alone: bool
) -> Iterator[Violation]:
    """Counts what the round reports and, if it ran alone, the files that are gone.

    Source: MappedFileQueue#deleteExpiredFileByTime, its batchMax.
    """
    went = done.after.min_phy_offset - done.before.min_phy_offset
    files = max(done.work, went // setup.log_file_size if is_alone else 0)
    if files > setup.delete_batch:
        yield Violation("commitlog", f"{files} files went", f"{setup.delete_batch}")


@law(
    "PUT-9",
    "a put that waits for its sync is answered after 5 s at the latest; unless a call "
    "to the disk failed, FLUSH_DISK_TIMEOUT does not come earlier",
    catalogue="I19",
)
def nobody_waits_for_longer(
    waits: Sequence[tuple[int, int]], gave_up: Sequence[int]
) -> Iterator[Violation]:
    """Compares the waits of appended SYNC_FLUSH puts, by the store's clock, in ms.

    Args:
        waits: how long each took, and how long it may have been held up itself.
        gave_up: how long those took that got FLUSH_DISK_TIMEOUT though no call had
            failed; empty if one had.

    Source: MessageStoreConfig#syncFlushTimeout, CommitLog.FlushDiskWatcher.
    """
    for waited_ms, stood_still_ms in waits:
        if waited_ms > SYNC_TIMEOUT_MS + stood_still_ms:
            expected = f"at most {SYNC_TIMEOUT_MS + stood_still_ms} ms"
            yield Violation("put", f"it took {waited_ms} ms", expected)
    for waited_ms in gave_up:
        if waited_ms < SYNC_TIMEOUT_MS:
            seen = f"after {waited_ms} ms"
            expected = f"not before {SYNC_TIMEOUT_MS} ms"
            yield Violation("put answered FLUSH_DISK_TIMEOUT", seen, expected)
