"""Laws of the run: exceptions, released resources, rounds, shutdowns, digests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crashmq.models.laws.registry import law
from crashmq.models.limits import DISPATCH_TIMEOUT_MS
from crashmq.models.observations import (
    Failed,
    Observation,
    Positions,
    Started,
    Stopped,
    status_of,
)
from crashmq.models.ops import ServiceName
from crashmq.models.verdict import Violation

_NO_SPACE = "[Errno 28]"


@law(
    "RES-2",
    "only CommitLog files that are not fully committed hold a TransientStorePool "
    "buffer",
    catalogue="I20",
)
def buffers_come_back(
    now: Positions, buffers: int, log_files: Sequence[int], file_size: int
) -> Iterator[Violation]:
    """Compares how many of ``buffers`` are free with the files that may have one.

    A file created ahead may have one too, and a file found at a start has none.
    ``log_files`` is where each CommitLog file begins.

    Source: TransientStorePool#borrowBuffer, DefaultMappedFile#commit.
    """
    open_files = [at for at in log_files if at + file_size > now.committed_where]
    # What is appended and not in its file yet can lie in that file's buffer alone.
    in_use = [at for at in open_files if at < now.max_phy_offset]
    if now.committed_where == now.max_phy_offset:
        in_use = []
    least, most = max(0, buffers - len(open_files)), buffers - len(in_use)
    if not least <= now.free_buffers <= most:
        seen = f"{now.free_buffers} of {buffers} are free"
        yield Violation("write buffers", seen, f"{least} at least, {most} at most")


@law(
    "RUN-1",
    "no op raises an exception, except OSError while the disk fails or is full",
    catalogue="I9 I19",
)
def nothing_unnamed_is_raised(
    failures: Sequence[Failed], disk_fault_armed: bool, disk_may_fill: bool = False
) -> Iterator[Violation]:
    """Asked after every step; ``failures`` are the exceptions that left the store.

    After a start that has failed the host stops the store, as a ``finally`` does. Our
    subject raises ``StoppedInVain`` if that does anything, or says that it ended in
    order.
    """
    for failed in failures:
        is_full = disk_may_fill and failed.message.startswith(_NO_SPACE)
        if not (failed.error == "OSError" and (disk_fault_armed or is_full)):
            yield Violation("op", f"{failed.error}: {failed.message}", "an answer")


@law("RUN-2", "a store that has stopped holds no file open or locked", catalogue="I19")
def nothing_is_held(stop: Stopped) -> Iterator[Violation]:
    """Checks ``stop.left_open``; deleted files that are still open count as well.

    Asked if no other op was running in the store.

    Source: DefaultMessageStore#shutdown.
    """
    for path in stop.left_open:
        yield Violation(path, "still open or locked", "closed and let go")


@law(
    "RUN-5",
    "a caller that waits for another caller's shutdown gets the result of that "
    "shutdown",
    catalogue="I9",
)
def who_waits_is_told_the_end(
    told: Sequence[bool], stop: Stopped
) -> Iterator[Violation]:
    """``told`` is what each caller got: True for an orderly shutdown.

    ``stop`` is the result of the shutdown that they waited for.
    """
    for clean in told:
        if clean is not stop.clean:
            yield Violation("shutdown", f"clean {clean}", f"{stop.clean}, as it ended")


@law(
    "RUN-6",
    "a shutdown waits 5 s for dispatch to catch up before it gives up and keeps the "
    "abort file",
    catalogue="I4 I9",
)
def stop_gives_dispatch_its_time(
    stop: Stopped, before: Positions, took_ms: int
) -> Iterator[Violation]:
    """Compares ``took_ms`` with 5 s if records were not dispatched ``before``.

    Bytes that only the shutdown flushes count too. Asked if no fault or other op came
    between; dispatch gets no round then.

    Source: ReputMessageService#shutdown.
    """
    is_behind = before.reput_from_offset < before.max_phy_offset
    if is_behind and not stop.clean and took_ms < DISPATCH_TIMEOUT_MS:
        seen = f"it ended after {took_ms} ms, with records not dispatched"
        yield Violation("shutdown", seen, f"{DISPATCH_TIMEOUT_MS} ms first")


@law(
    "RUN-9",
    "a shutdown is orderly unless dispatch lags behind, or a disk call has failed or "
    "met a full disk since the start",
    catalogue="I9 I19",
)
def stop_is_orderly(stop: Stopped, before: Positions) -> Iterator[Violation]:
    """Asked if no call has failed: then only a lag ``before`` may keep the abort file.

    Source: DefaultMessageStore#shutdown, whose conditions are the lag and a store that
    was writeable; a full disk is no reason with us.
    """
    is_behind = before.reput_from_offset < before.max_phy_offset
    if not (stop.clean or is_behind):
        seen = "it kept the abort file, with every record dispatched"
        yield Violation("shutdown", seen, "an orderly end")


@law(
    "RUN-7",
    "once a store has released its directory lock, it changes nothing in the directory",
    catalogue="I9 I18",
)
def nothing_is_done_late(late_actions: int) -> Iterator[Violation]:
    """Counts the disk actions after that; ops and services still in the store count.

    Another store may have opened the directory by then.
    """
    if late_actions:
        seen = f"{late_actions} disk actions after the lock was released"
        yield Violation("shutdown", seen, "none")


@law(
    "RUN-4",
    "while a store is up, a second store cannot load its directory",
    catalogue="I9 I18",
)
def nobody_else_opens_it(seen: Observation) -> Iterator[Violation]:
    """``seen`` is the outcome of another store's attempt to load it.

    Source: DefaultMessageStore#start, the file ``lock``.
    """
    if isinstance(seen, Started | Failed):
        yield Violation("load", status_of(seen), "a refusal: the store is up")


@law(
    "RUN-3",
    "a service round reports its work: dispatch the bytes, a cleaner the files it "
    "deleted, a flush or commit whether flushed_where or committed_where rose",
    catalogue="I19",
)
def rounds_tell_what_they_did(
    service: ServiceName,
    work: int,
    before: Positions,
    now: Positions,
    file_size: int,
    *,
    may_have_gaps: bool = False,
) -> Iterator[Violation]:
    """Compares ``work`` with how the log's offsets moved in a round that ran alone.

    Dispatch reports bytes, the log's cleaner files of ``file_size``; a flush or commit
    reports 0 if and only if its offset did not move. The host lets a service rest when
    it reports 0. ``may_have_gaps``: files may be missing in the log, which the cleaner
    skips. Under SYNC_FLUSH a flush reports the puts that it answers, too: it is asked
    only if it reports none.
    """
    went = {
        "flush_commit_log": now.flushed_where - before.flushed_where,
        "commit": now.committed_where - before.committed_where,
    }
    if service in went:
        if (work > 0) is not (went[service] > 0):
            seen = f"work {work} while its mark rose by {went[service]}"
            yield Violation(service, seen, "work if and only if it rose")
        return
    wanted = work
    if service == "reput" and before.reput_from_offset >= before.min_phy_offset:
        wanted = now.reput_from_offset - before.reput_from_offset
    elif service == "clean_commit_log":
        wanted = (now.min_phy_offset - before.min_phy_offset) // file_size
        if may_have_gaps and 0 < work < wanted:
            return
    if work != wanted:
        yield Violation(service, f"work {work}", f"{wanted}")


@law(
    "RUN-10",
    "a service round counts right: a cleaner the files it removed, a delivery the "
    "messages it put, a check of held pulls those it answered, a flush of queues or of "
    "the index the files it synced; a checkpoint, a persist and an allocation report 1 "
    "if and only if they wrote",
    catalogue="I19",
)
def rounds_count_right(
    service: str, work: int, least: int, most: int
) -> Iterator[Violation]:
    """Compares ``work`` with bounds that are counted from outside.

    Of a flush the medium shows only files of which it lacked bytes before, so what it
    synced in vain is allowed. The host lets a service rest when it reports 0.
    """
    if not least <= work <= most:
        expected = f"{least}" if least == most else f"{least} to {most}"
        yield Violation(service, f"work {work}", expected)


@law(
    "RUN-11",
    "a service round that meets a failing call to the disk raises, so that the host "
    "knows and logs it",
    catalogue="I9 I19",
)
def hindered_rounds_raise(
    service: str, calls: Sequence[tuple[str, str]], raised: Sequence[Failed]
) -> Iterator[Violation]:
    """``calls`` failed, each with its path, and nobody else was told of them.

    Else the round looks as if all was done, and what it left waits in silence.

    Source: ours; RocketMQ's services log what they meet, and go on.
    """
    if not raised:
        call, path = calls[0]
        yield Violation(service, f"no error, yet a {call} of {path} failed", "one")


@law(
    "RUN-8",
    "a dispatch round reaches confirm_offset, even if an earlier round failed because "
    "of a fault",
    catalogue="I4 I19",
)
def dispatch_reaches_what_is_confirmed(
    now: Positions, until: int
) -> Iterator[Violation]:
    """Compares both offsets after a round that ran alone on a working disk.

    What an earlier round could not dispatch, this one does. ``until`` is
    confirm_offset, or the end of the last record that is completely below it.

    Source: ReputMessageService#doReput.
    """
    if now.reput_from_offset < until:
        seen = f"{now.reput_from_offset} after a round"
        expected = f"{until}, of confirm_offset {now.confirm_offset}"
        yield Violation("reput_from_offset", seen, expected)


@law(
    "DET-1",
    "two runs of the same program (setup and ops) give the same digest of observations "
    "and files",
    catalogue="I10",
)
def same_digest(first: str, second: str) -> Iterator[Violation]:
    """Compares two runs by the same version of the code."""
    if first != second:
        yield Violation("digest", second, first)


@law(
    "RES-1",
    "a store that has stopped or refused to start leaves no file handle, mapping or "
    "thread behind",
    catalogue="I20",
)
def everything_is_given_back(
    before: Mapping[str, int], after: Mapping[str, int]
) -> Iterator[Violation]:
    """Compares how many handles, mappings and threads the process has, by kind.

    ``before`` is counted before the store exists, ``after`` once it is gone. Asked on
    real disks only.
    """
    for kind, count in sorted(after.items()):
        if count > before.get(kind, 0):
            yield Violation(kind, f"{count}", f"{before.get(kind, 0)}, as before")
