"""Laws of the offsets that a running store reports, and of what they promise.

The offsets are phy_offsets of the CommitLog: max, committed, flushed, confirm and
reput.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crashmq.models.appended import Appended
from crashmq.models.laws.registry import law
from crashmq.models.limits import PAGE_SIZE
from crashmq.models.observations import Positions, Put
from crashmq.models.program import FlushMode, Setup
from crashmq.models.verdict import Place, Violation

_RISING = (
    "min_phy_offset",
    "max_phy_offset",
    "flushed_where",
    "committed_where",
    "confirm_offset",
)


@law(
    "FL-1",
    "flushed_where and reput_from_offset lie between the CommitLog's min_phy_offset "
    "and max_phy_offset",
    catalogue="I7",
)
def marks_lie_in_the_log(now: Positions) -> Iterator[Violation]:
    """0 <= min <= flushed_where, reput_from_offset <= max, after every step.

    Source: MappedFileQueue#getFlushedWhere, ReputMessageService#getReputFromOffset.
    """
    low, high = max(0, now.min_phy_offset), now.max_phy_offset
    if not low <= now.flushed_where <= high:
        yield Violation("flushed_where", f"{now.flushed_where}", f"in [{low}, {high}]")
    if not low <= now.reput_from_offset <= high:
        seen = f"{now.reput_from_offset}"
        yield Violation("reput_from_offset", seen, f"in [{low}, {high}]")


@law(
    "FL-2",
    "under SYNC_FLUSH, a put with waitStoreMsgOK gets PUT_OK only once flushed_where "
    "has reached the end of its record",
    catalogue="I1 I7",
)
def acknowledged_is_flushed(answer: Put, now: Positions) -> Iterator[Violation]:
    """Compares flushed_where, when the put was answered, with the end of its record.

    If flushed_where was not read at that moment, that of ``now`` is compared, which is
    no lower.

    Source: CommitLog.GroupCommitService.
    """
    end = answer.phy_offset + answer.size
    flushed = now.flushed_where if answer.flushed_where < 0 else answer.flushed_where
    if answer.status == "PUT_OK" and flushed < end:
        yield Violation(
            f"put at phy_offset {answer.phy_offset}",
            f"PUT_OK while flushed_where is {flushed}",
            f"flushed_where at least {end}",
        )


@law(
    "FL-3",
    "under SYNC_FLUSH, reput_from_offset never passes flushed_where",
    catalogue="I13",
)
def dispatched_is_flushed(mode: FlushMode, now: Positions) -> Iterator[Violation]:
    """Otherwise a power loss can take a message that a consumer has committed.

    Its offset is then given to another message, which the consumer never gets.

    Source: ReputMessageService#doReput, CommitLog#getConfirmOffset.
    """
    if mode == "SYNC_FLUSH" and now.reput_from_offset > now.flushed_where:
        yield Violation(
            f"reput_from_offset {now.reput_from_offset}",
            "dispatch is past what is flushed",
            f"at most flushed_where {now.flushed_where}",
        )


@law(
    "FL-4",
    "while a store runs, its min, max, flushed, committed, confirm and reput offsets "
    "never decrease",
    catalogue="I7 I8",
)
def marks_only_rise(before: Positions, now: Positions) -> Iterator[Violation]:
    """Compares the positions reported after two steps of one run, the older first."""
    for name in _RISING:
        old, new = getattr(before, name), getattr(now, name)
        if new < old:
            yield Violation(name, f"{new} after {old}", "no less than before")
    if now.reput_from_offset < before.reput_from_offset:
        seen = f"{now.reput_from_offset} after {before.reput_from_offset}"
        yield Violation("reput_from_offset", seen, "no less than before")


@law(
    "FL-14",
    "a flush round in which a sync of the CommitLog fails leaves flushed_where as it "
    "was",
    catalogue="I1 I7",
)
def failed_flush_moves_nothing(
    before: Positions, now: Positions
) -> Iterator[Violation]:
    """Asked of one round for which no put waits, since it syncs one file and the names.

    Whatever the disk makes of it: what the failed call stood for may be lost.

    Source: DefaultMappedFile#flush. Differs: there a failed force counts as done.
    """
    if now.flushed_where != before.flushed_where:
        seen = f"{now.flushed_where} after a failed sync"
        yield Violation("flushed_where", seen, f"{before.flushed_where}, as before it")


@law(
    "FL-8",
    "a flush round flushes the committed bytes of the CommitLog file that "
    "flushed_where lies in, if it is full or has flush_least_pages dirty pages",
    catalogue="I1 I7",
)
def round_flushes_what_is_enough(
    before: Positions, now: Positions, setup: Setup
) -> Iterator[Violation]:
    """Compares flushed_where after the round with the end of what had to be flushed.

    Only the file in which flushed_where lay before counts. Fewer dirty pages may wait;
    of a full file any byte is enough.

    Source: DefaultMappedFile#isAbleToFlush,
    MessageStoreConfig#flushCommitLogLeastPages.
    """
    start, size = before.flushed_where, setup.log_file_size
    base = start - start % size
    end = min(before.committed_where, base + size)
    pages = (end - base) // PAGE_SIZE - (start - base) // PAGE_SIZE
    is_full = end == base + size
    least = 1 if is_full else setup.flush_least_pages
    has = end - start if is_full or not setup.flush_least_pages else pages
    if start >= before.min_phy_offset and has >= max(1, least):
        seen = f"{now.flushed_where} after a round, {start} before"
        if now.flushed_where < end:
            yield Violation("flushed_where", seen, f"at least {end}")


@law(
    "FL-9",
    "below flushed_where, every CommitLog byte and every CommitLog file's directory "
    "entry is synced",
    catalogue="I1 I7",
)
def flushed_is_on_the_medium(
    flushed_where: int, unsynced: Mapping[str, int]
) -> Iterator[Violation]:
    """Compares flushed_where with what a power loss could take from the CommitLog.

    ``unsynced`` is what ``Subject.unsynced_from`` returns.

    Source: MappedFileQueue#flush.
    """
    for path, first in unsynced.items():
        folder, _, name = path.rpartition("/")
        is_log = folder == "commitlog" and name.isdecimal() and first >= 0
        if is_log and int(name) + first < flushed_where:
            where = Place(path, first)
            expected = f"synced below {flushed_where}"
            yield Violation(where, "a power loss could take it", expected)


@law(
    "FL-10",
    "a CommitLog flush round flushes committed bytes, however few, once they have "
    "waited at least flushCommitLogThoroughInterval",
    catalogue="I1 I7",
)
def what_waited_is_flushed(flushed_where: int, until: int) -> Iterator[Violation]:
    """``until`` is the end of the committed bytes that have waited that long.

    It lies in the file in which flushed_where lay when they began to wait, since one
    round flushes one file. Of all rounds since then, one was due to flush every byte.

    Source: MessageStoreConfig#flushCommitLogThoroughInterval (FlushRealTimeService).
    """
    if flushed_where < until:
        seen = f"{flushed_where} after a round"
        yield Violation("flushed_where", seen, f"at least {until}, which has waited")


@law(
    "FL-11",
    "a commit round commits appended bytes, however few, once they have waited at "
    "least commitCommitLogThoroughInterval",
    catalogue="I1 I7",
)
def what_waited_is_committed(committed_where: int, until: int) -> Iterator[Violation]:
    """``until`` is the end of the appended bytes, in any file, that waited that long.

    Source: MessageStoreConfig#commitCommitLogThoroughInterval (CommitRealTimeService).
    """
    if committed_where < until:
        seen = f"{committed_where} after a round"
        yield Violation("committed_where", seen, f"at least {until}, which has waited")


@law("FL-5", "flushed_where <= committed_where <= max_phy_offset", catalogue="I7")
def marks_are_in_order(now: Positions) -> Iterator[Violation]:
    """Bytes that are not in the file cannot be synced, nor unwritten bytes committed.

    Source: MappedFileQueue#flush, MappedFileQueue#commit.
    """
    low, high = now.flushed_where, now.max_phy_offset
    if not low <= now.committed_where <= high:
        seen = f"{now.committed_where}"
        yield Violation("committed_where", seen, f"in [{low}, {high}]")


@law(
    "FL-6",
    "reput_from_offset <= confirm_offset <= flushed_where (SYNC_FLUSH) or "
    "committed_where (ASYNC_FLUSH)",
    catalogue="I13",
)
def dispatched_is_confirmed(mode: FlushMode, now: Positions) -> Iterator[Violation]:
    """Compares the three, after every step of a store that reports committed_where.

    Source: CommitLog#getConfirmOffset; under SYNC_FLUSH our store is stricter.
    """
    limit = now.committed_where
    if mode == "SYNC_FLUSH":
        limit = now.flushed_where
    if now.confirm_offset > limit:
        seen = f"{now.confirm_offset}"
        yield Violation("confirm_offset", seen, f"at most {limit}")
    if now.reput_from_offset > now.confirm_offset:
        seen = f"{now.reput_from_offset}"
        expected = f"at most confirm_offset {now.confirm_offset}"
        yield Violation("reput_from_offset", seen, expected)


@law(
    "FL-13",
    "confirm_offset is not behind flushed_where (SYNC_FLUSH) or committed_where "
    "(ASYNC_FLUSH) or, with duplicationEnable, what replicas have confirmed of that, "
    "so that stored messages can be dispatched and pulled",
    catalogue="I13 I19",
)
def what_is_stored_is_confirmed(
    mode: FlushMode, now: Positions, replicated: int | None = None
) -> Iterator[Violation]:
    """Asked after every step.

    ``replicated`` is the phy_offset up to which replicas have confirmed the log in this
    run, or had before it; None for a store that waits for no replicas.

    Source: CommitLog#getConfirmOffset, DefaultMessageStore#getConfirmOffset.
    """
    least = now.flushed_where if mode == "SYNC_FLUSH" else now.committed_where
    if replicated is not None:
        least = min(least, replicated)
    if now.confirm_offset < least:
        yield Violation("confirm_offset", f"{now.confirm_offset}", f"at least {least}")


@law("FL-7", "no pull returns a message that ends past confirm_offset", catalogue="I13")
def served_is_confirmed(
    queue_offset: int, served: Sequence[Appended], confirm_offset: int
) -> Iterator[Violation]:
    """A crash that the flush mode survives must not take what a consumer has seen.

    ``served`` is what the pull returned; ``confirm_offset`` is read after the pull,
    since it only rises while the store runs.
    """
    for message in served:
        if message.end > confirm_offset:
            where = f"pull from {queue_offset}: queue_offset {message.queue_offset}"
            expected = f"at most confirm_offset {confirm_offset}"
            yield Violation(where, f"it ends at {message.end}", expected)
