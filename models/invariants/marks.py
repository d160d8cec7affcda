"""Laws of the marks a running store reports, and of what they promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from models.appended import Appended
from models.invariants.registry import invariant
from models.observations import Positions, Put
from models.program import FlushMode, Setup
from models.verdict import Violation

PAGE_SIZE = 4096
_RISING = (
    "min_phy_offset",
    "max_phy_offset",
    "flushed_where",
    "committed_where",
    "confirm_offset",
)


@invariant("FL-1", "flushed_where and reput_from_offset lie in the log", law="I7")
def marks_lie_in_the_log(now: Positions) -> Iterator[Violation]:
    """0 <= min <= flushed_where, reput_from_offset <= max."""
    low, high = max(0, now.min_phy_offset), now.max_phy_offset
    if not low <= now.flushed_where <= high:
        yield Violation("flushed_where", f"{now.flushed_where}", f"in [{low}, {high}]")
    if not low <= now.reput_from_offset <= high:
        seen = f"{now.reput_from_offset}"
        yield Violation("reput_from_offset", seen, f"in [{low}, {high}]")


@invariant("FL-2", "a put acknowledged under SYNC_FLUSH is flushed", law="I1 I7")
def acknowledged_is_flushed(answer: Put, now: Positions) -> Iterator[Violation]:
    """For a put that waited for the store; ``now`` if nobody asked when it answered."""
    end = answer.phy_offset + answer.size
    flushed = now.flushed_where if answer.flushed_where < 0 else answer.flushed_where
    if answer.status == "PUT_OK" and flushed < end:
        yield Violation(
            f"put at phy_offset {answer.phy_offset}",
            f"PUT_OK while flushed_where is {flushed}",
            f"flushed_where at least {end}",
        )


@invariant(
    "FL-3", "under SYNC_FLUSH nothing is dispatched that could be lost", law="I13"
)
def dispatched_is_flushed(mode: FlushMode, now: Positions) -> Iterator[Violation]:
    """Else a consumer commits past a message whose offset is then given again."""
    if mode == "SYNC_FLUSH" and now.reput_from_offset > now.flushed_where:
        yield Violation(
            f"reput_from_offset {now.reput_from_offset}",
            "dispatch is past what is flushed",
            f"at most flushed_where {now.flushed_where}",
        )


@invariant("FL-4", "within a life no mark moves backwards", law="I7 I8")
def marks_only_rise(before: Positions, now: Positions) -> Iterator[Violation]:
    """Both reported by one life of the store, the older first."""
    for name in _RISING:
        old, new = getattr(before, name), getattr(now, name)
        if new < old:
            yield Violation(name, f"{new} after {old}", "no less than before")
    if now.reput_from_offset < before.reput_from_offset:
        seen = f"{now.reput_from_offset} after {before.reput_from_offset}"
        yield Violation("reput_from_offset", seen, "no less than before")


@invariant(
    "FL-8", "a round of the flush leaves less than it is to wait for", law="I1 I7"
)
def round_flushes_what_is_enough(
    before: Positions, now: Positions, setup: Setup
) -> Iterator[Violation]:
    """Of the file that the mark lay in: whole pages, or any byte of a full file."""
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


@invariant("FL-9", "what is told as flushed no power loss can take", law="I1 I7")
def flushed_is_on_the_medium(
    flushed_where: int, unsynced: Mapping[str, int]
) -> Iterator[Violation]:
    """Bytes and names of the log; ``unsynced`` as ``Subject.unsynced_from`` says."""
    for path, first in unsynced.items():
        folder, _, name = path.rpartition("/")
        is_log = folder == "commitlog" and name.isdecimal() and first >= 0
        if is_log and int(name) + first < flushed_where:
            where = f"{path} byte {first}"
            expected = f"synced below {flushed_where}"
            yield Violation(where, "a power loss could take it", expected)


@invariant(
    "FL-10", "a round of the flush syncs what has waited for an interval", law="I1 I7"
)
def what_waited_is_flushed(flushed_where: int, until: int) -> Iterator[Violation]:
    """What lay in the mark's file then, however little it was.

    Whatever rounds came between, one of them was due to take every byte.
    """
    if flushed_where < until:
        seen = f"{flushed_where} after a round"
        yield Violation("flushed_where", seen, f"at least {until}, which has waited")


@invariant(
    "FL-11", "a round of the commit takes what has waited for an interval", law="I1 I7"
)
def what_waited_is_committed(committed_where: int, until: int) -> Iterator[Violation]:
    """What was appended then, of all files; as FL-10."""
    if committed_where < until:
        seen = f"{committed_where} after a round"
        yield Violation("committed_where", seen, f"at least {until}, which has waited")


@invariant("FL-5", "flushed_where <= committed_where <= max_phy_offset", law="I7")
def marks_are_in_order(now: Positions) -> Iterator[Violation]:
    """What was never in the file cannot have been synced, nor committed unwritten."""
    low, high = now.flushed_where, now.max_phy_offset
    if not low <= now.committed_where <= high:
        seen = f"{now.committed_where}"
        yield Violation("committed_where", seen, f"in [{low}, {high}]")


@invariant("FL-6", "nothing is dispatched above what the mode confirms", law="I13")
def dispatched_is_confirmed(mode: FlushMode, now: Positions) -> Iterator[Violation]:
    """Under SYNC_FLUSH the flushed bytes are confirmed, else the committed ones."""
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


@invariant("FL-7", "no pull serves what the mode does not confirm", law="I13")
def served_is_confirmed(
    queue_offset: int, served: Sequence[Appended], confirm_offset: int
) -> Iterator[Violation]:
    """A crash that the mode survives must not take what a consumer has seen.

    ``served`` is what the pull returned; ``confirm_offset`` that of the store after
    it, since within a life it only rises.
    """
    for message in served:
        if message.end > confirm_offset:
            where = f"pull from {queue_offset}: queue_offset {message.queue_offset}"
            expected = f"at most confirm_offset {confirm_offset}"
            yield Violation(where, f"it ends at {message.end}", expected)
