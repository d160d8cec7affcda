"""Laws of progress: what a group has committed is answered, kept, and never less."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from crashmq.models.files.offsets import (
    OFFSETS_BACKUP,
    OFFSETS_PATH,
    OffsetKey,
    OffsetRows,
    read_offsets,
    whole_offsets,
)
from crashmq.models.knowledge.progress import NO_OFFSET, Progress
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Violation


def _name(key: OffsetKey) -> str:
    group, topic, queue_id = key
    return f"{group} on {topic}/{queue_id}"


def _one_of(offsets: Set[int]) -> str:
    told = sorted(offsets)
    return f"{told[0]}" if len(told) == 1 else f"one of {told}"


def _impossible(
    rows: OffsetRows,
    known: Iterable[OffsetKey],
    possible_of: Callable[[OffsetKey], Set[int]],
) -> Iterator[tuple[OffsetKey, int, Set[int]]]:
    """The offsets of a table that cannot be, and what could; -1: it has none."""
    found = dict(rows)
    for key in sorted({*found, *known}):
        offset, possible = found.get(key, NO_OFFSET), possible_of(key)
        if offset not in possible:
            yield key, offset, possible


@law(
    "OFS-1",
    "a broker answers a group's offset as it was committed or reset last",
    catalogue="I12",
)
def answers_what_was_committed(
    key: OffsetKey, offset: int, possible: Set[int]
) -> Iterator[Violation]:
    """``possible`` are the offsets the group may have; -1: it has none.

    Source: ConsumerOffsetManager#queryOffset.
    """
    if offset not in possible:
        yield Violation(_name(key), f"offset {offset}", _one_of(possible))


@law(
    "OFS-2",
    "a consumer's commit never moves its group backwards; only a reset does",
    catalogue="I12",
)
def commits_never_go_back(
    key: OffsetKey, told: int, asked: int, before: Set[int]
) -> Iterator[Violation]:
    """Asked of a commit with nothing beside it and no reset pending.

    ``told`` is what the broker is told, ``asked`` what the consumer is done with.

    Source: RemoteBrokerOffsetStore#updateOffset, with increaseOnly.
    """
    least = max(asked, min(before))
    if told < least:
        yield Violation(_name(key), f"offset {told} is committed", f"{least} at least")


@law(
    "OFS-3",
    "a reset by the server holds, whatever is committed, until the consumer meets it",
    catalogue="I12",
)
def a_reset_holds(
    key: OffsetKey, offset: int, possible: Set[int]
) -> Iterator[Violation]:
    """Asked while the reset is pending. Source: #handleSetOffset."""
    if offset not in possible:
        yield Violation(_name(key), f"offset {offset}", f"{_one_of(possible)}, reset")


@law(
    "OFS-4",
    "a start finds each group at an offset that it had since the last persist began",
    catalogue="I12 I1",
)
def start_finds_what_was_kept(
    rows: OffsetRows, progress: Progress
) -> Iterator[Violation]:
    """Never an older one, nor one that was not committed, nor none of one persisted.

    Asked where nothing but crashes came between. Source: ConfigManager#load.
    """
    wrong = _impossible(rows, progress.in_files(), progress.may_be_kept)
    for key, offset, possible in wrong:
        yield Violation(_name(key), f"offset {offset}", _one_of(possible))


@law(
    "OFS-5",
    "once offsets were persisted, every start finds their file or its backup whole",
    catalogue="I12 I9",
)
def a_copy_is_whole(files: Mapping[str, bytes]) -> Iterator[Violation]:
    """Not both of them empty, torn, zeroed or missing.

    Asked where nothing but crashes came between. Source: ConfigManager#persist.
    """
    paths = [path for path in (OFFSETS_PATH, OFFSETS_BACKUP) if path in files]
    if not paths:
        yield Violation(OFFSETS_PATH, "it is missing, its backup too", "a whole table")
    elif whole_offsets(files) is None:
        sizes = ", ".join(f"{len(files[path])} bytes" for path in paths)
        yield Violation(OFFSETS_PATH, f"{sizes}, no table", "a whole table")


@law(
    "OFS-6",
    "a start loads the offsets of their file if that is whole, else of its backup",
    catalogue="I12 I9",
)
def start_loads_the_file(
    files: Mapping[str, bytes], rows: OffsetRows
) -> Iterator[Violation]:
    """With neither it begins without offsets; if none is whole it must not start.

    Asked of every start that succeeds, also on files that were damaged.

    Source: ConfigManager#load, #loadBak.
    """
    expected = whole_offsets(files)
    if expected is None:
        yield Violation(OFFSETS_PATH, "a start, without a whole table", "a refusal")
        return
    loaded, wanted = dict(rows), dict(expected)
    for key in sorted({*loaded, *wanted}):
        seen, in_file = loaded.get(key, NO_OFFSET), wanted.get(key, NO_OFFSET)
        if seen != in_file:
            yield Violation(_name(key), f"offset {seen} is loaded", f"{in_file}")


@law(
    "OFS-7",
    "a persist writes the offset of every group as it is",
    catalogue="I12",
)
def persist_writes_all(
    files: Mapping[str, bytes], progress: Progress
) -> Iterator[Violation]:
    """Asked of a round with nothing beside it. Source: ConsumerOffsetManager#encode."""
    rows = read_offsets(bytes(files.get(OFFSETS_PATH, b"")))
    if rows is None:
        yield Violation(OFFSETS_PATH, "no whole table", "the offsets of all groups")
        return
    for key, offset, possible in _impossible(rows, progress.now, progress.of):
        yield Violation(_name(key), f"offset {offset} is written", _one_of(possible))


@law(
    "OFS-8",
    "a consumer that is given a queue begins where its group is",
    catalogue="I12",
)
def begins_at_the_groups_offset(
    key: OffsetKey, begun: int, possible: Set[int], end: int
) -> Iterator[Violation]:
    """A group without an offset begins in the queue, which counts up to ``end``.

    Source: RebalancePushImpl#computePullFromWhere.
    """
    if begun in possible - {NO_OFFSET}:
        return
    if NO_OFFSET in possible and 0 <= begun <= end:
        return
    expected = _one_of(possible)
    if NO_OFFSET in possible:
        expected = f"in [0, {end}]"
    yield Violation(_name(key), f"it begins at {begun}", expected)
