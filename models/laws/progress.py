"""Laws of consumer offsets: what a group commits is answered and kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from crashmq.models.files.offsets import (
    OFFSETS_BACKUP,
    OFFSETS_PATH,
    OffsetKey,
    OffsetRows,
    read_offsets,
    whole_offsets,
)
from crashmq.models.knowledge.progress import NO_OFFSET, Ends, Progress
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Violation

_NONE = frozenset({NO_OFFSET})


def _name(key: OffsetKey) -> str:
    group, topic, queue_id = key
    return f"{group} on {topic}/{queue_id}"


def _one_of(offsets: Set[int]) -> str:
    told = sorted(offsets)
    return f"{told[0]}" if len(told) == 1 else f"one of {told}"


def _of_each(
    rows: OffsetRows, possible: Mapping[OffsetKey, Set[int]]
) -> Iterator[tuple[OffsetKey, int, Set[int]]]:
    """Each offset of a table with the offsets it could have; -1: the group has none."""
    found = dict(rows)
    for key in sorted({*found, *possible}):
        yield key, found.get(key, NO_OFFSET), possible.get(key, _NONE)


def _in_queue(key: OffsetKey, possible: Set[int], ends: Ends) -> str:
    """The offsets that a start may come up with, as text."""
    least, most = ends.of(key)
    if max(possible) <= least:
        return _one_of(possible)
    end = f"{least}" if least == most else f"in [{least}, {most}]"
    return f"{_one_of(possible)}, and at most its queue's end, {end}"


@law(
    "OFS-1",
    "a broker answers an offset query with the offset that was last committed or "
    "reset for the group",
    catalogue="I12",
)
def answers_what_was_committed(
    key: OffsetKey, offset: int, possible: Set[int]
) -> Iterator[Violation]:
    """``possible`` are the offsets that the group may have; -1: it has none.

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
    """Asked of a commit that ran alone, with no reset pending.

    ``told`` is what the broker is sent, ``asked`` what the consumer has consumed.

    Source: RemoteBrokerOffsetStore#updateOffset, with increaseOnly.
    """
    least = max(asked, min(before))
    if told < least:
        yield Violation(_name(key), f"offset {told} is committed", f"{least} at least")


@law(
    "OFS-3",
    "an offset reset on the server stays in effect, whatever is committed, until the "
    "consumer's next pull picks it up",
    catalogue="I12",
)
def a_reset_holds(
    key: OffsetKey, offset: int, possible: Set[int]
) -> Iterator[Violation]:
    """Asked while the reset is pending.

    Source: AdminBrokerProcessor, #handleSetOffset.
    """
    if offset not in possible:
        yield Violation(_name(key), f"offset {offset}", f"{_one_of(possible)}, reset")


@law(
    "OFS-4",
    "a start finds each group at an offset that it had during or after the last "
    "persist, or at its queue's end if that is lower",
    catalogue="I12 I1",
)
def start_finds_what_was_kept(
    rows: OffsetRows, kept: Mapping[OffsetKey, Set[int]], ends: Ends
) -> Iterator[Violation]:
    """Not an older offset, not one never committed, and none lost once persisted.

    Asked if nothing but crashes happened in between.

    Source: ConfigManager#load.
    """
    for key, offset, possible in _of_each(rows, kept):
        if not ends.allows(key, offset, possible):
            told = _in_queue(key, possible, ends)
            yield Violation(_name(key), f"offset {offset}", told)


@law(
    "OFS-5",
    "once offsets have been persisted, every start finds their file or its backup "
    "intact",
    catalogue="I12 I9",
)
def a_copy_is_whole(files: Mapping[str, bytes]) -> Iterator[Violation]:
    """At most one of the two may be empty, torn, zeroed or missing.

    Asked if nothing but crashes happened in between.

    Source: ConfigManager#persist.
    """
    paths = [path for path in (OFFSETS_PATH, OFFSETS_BACKUP) if path in files]
    if not paths:
        yield Violation(OFFSETS_PATH, "it is missing, its backup too", "a whole table")
    elif whole_offsets(files) is None:
        sizes = ", ".join(f"{len(files[path])} bytes" for path in paths)
        yield Violation(OFFSETS_PATH, f"{sizes}, no table", "a whole table")


@law(
    "OFS-6",
    "a start loads the consumer offsets from their file or, if that is damaged, from "
    "its backup, and lowers those past their queues' ends",
    catalogue="I12 I9",
)
def start_loads_the_file(
    files: Mapping[str, bytes], rows: OffsetRows, ends: Ends
) -> Iterator[Violation]:
    """Without either file the broker starts without offsets.

    If there are files and none is intact, it must not start.

    Asked of every start that succeeds, also on files that were damaged.

    Source: ConfigManager#load, #loadBak.
    """
    expected = whole_offsets(files)
    if expected is None:
        yield Violation(OFFSETS_PATH, "a start, without a whole table", "a refusal")
        return
    in_file = {key: frozenset({offset}) for key, offset in expected}
    for key, seen, wanted in _of_each(rows, in_file):
        if not ends.allows(key, seen, wanted):
            told = _in_queue(key, wanted, ends)
            yield Violation(_name(key), f"offset {seen} is loaded", told)


@law("OFS-7", "a persist writes the current offset of every group", catalogue="I12")
def persist_writes_all(
    files: Mapping[str, bytes], progress: Progress
) -> Iterator[Violation]:
    """Asked after a round that ran alone.

    Source: ConsumerOffsetManager#encode.
    """
    rows = read_offsets(bytes(files.get(OFFSETS_PATH, b"")))
    if rows is None:
        yield Violation(OFFSETS_PATH, "no whole table", "the offsets of all groups")
        return
    for key, offset, possible in _of_each(rows, progress.now):
        if offset not in possible:
            told = _one_of(possible)
            yield Violation(_name(key), f"offset {offset} is written", told)


@law(
    "OFS-8",
    "a consumer that is assigned a queue begins at its group's offset or, if there is "
    "none, where its consumeFromWhere says",
    catalogue="I12",
)
def begins_at_the_groups_offset(
    key: OffsetKey, begun: int, possible: Set[int], begins: Set[int]
) -> Iterator[Violation]:
    """``possible`` are the group's offsets; with -1 it may begin at ``begins``.

    Source: RebalancePushImpl#computePullFromWhere.
    """
    expected = set(possible - _NONE)
    if NO_OFFSET in possible:
        expected |= begins
    if begun not in expected:
        yield Violation(_name(key), f"it begins at {begun}", _one_of(expected))


@law(
    "OFS-9",
    "once a start has recovered the log, no group's offset is past the end of its "
    "queue, neither in memory nor in the file, nor in its backup if it had to lower "
    "one",
    catalogue="I12 I16",
)
def no_group_is_past_its_queue(
    rows: OffsetRows,
    files: Mapping[str, bytes],
    ends: Ends,
    found: Mapping[str, bytes],
) -> Iterator[Violation]:
    """New messages take the offsets past the end, and such a group would skip them.

    ``rows`` are the offsets in memory, ``files`` what the start left on disk, and
    ``found`` what it found there.

    Differs: RocketMQ does not lower them. Source: example E4 of docs/sharp-edges.md.
    """
    had = whole_offsets(found) or ()
    is_lowered = any(offset > ends.of(key)[1] for key, offset in had)
    written = (OFFSETS_PATH, OFFSETS_BACKUP) if is_lowered else (OFFSETS_PATH,)
    of_files = [
        (f" in {path}", read_offsets(bytes(files.get(path, b""))) or ())
        for path in written
    ]
    for where, found_there in (("", rows), *of_files):
        for key, offset in found_there:
            _, end = ends.of(key)
            if offset > end:
                seen = f"offset {offset}{where}"
                yield Violation(_name(key), seen, f"{end} at most, the queue's end")


@law(
    "OFS-10",
    "a broker accepts a committed offset if and only if it is not past the end of its "
    "queue",
    catalogue="I12 I16",
)
def no_commit_passes_the_end(
    key: OffsetKey, told: int, end: int, *, accepted: bool
) -> Iterator[Violation]:
    """``end`` is the offset that the queue's next message gets.

    A commit for a queue id below 0 must be refused.

    Differs: RocketMQ accepts any offset. Source: ConsumerOffsetManager#commitOffset.
    """
    if key[2] < 0:
        if accepted:
            yield Violation(
                _name(key), f"offset {told} is accepted", "a refusal: no such queue"
            )
    elif accepted is not (told <= end):
        taken = "accepted" if accepted else "refused"
        seen = f"offset {told} is {taken}"
        yield Violation(_name(key), seen, f"the queue ends at {end}")


@law(
    "OFS-11",
    "a reset sets the offset that it names, or the one at the end or time that it "
    "names, and is refused only if that lies outside the queue",
    catalogue="I12 I17",
)
def resets_go_where_they_are_told(
    key: OffsetKey, offset: int, targets: Set[int]
) -> Iterator[Violation]:
    """``offset`` is where the reset went, -1 if refused; ``targets`` are right answers.

    Source: AdminBrokerProcessor#resetOffset.
    """
    if offset not in targets:
        seen = f"reset to {offset}" if offset >= 0 else "refused"
        yield Violation(_name(key), seen, _one_of(targets))


@law(
    "OFS-12",
    "a query for a topic's lowest offsets returns, for each queue, the lowest offset "
    "among the groups that it does not leave out",
    catalogue="I12",
)
def lowest_offsets_are_answered(
    topic: str, rows: Sequence[tuple[int, int]], possible: Mapping[int, Set[int]]
) -> Iterator[Violation]:
    """``possible`` are those of each queue; -1: no group that counts has one.

    That the query changes no offset is left to OFS-1.

    Source: ConsumerOffsetManager#queryMinOffsetInAllGroup.
    """
    found = dict(rows)
    for queue_id in sorted({*found, *possible}):
        offset, expected = found.get(queue_id, NO_OFFSET), possible.get(queue_id, _NONE)
        if offset not in expected:
            where = f"{topic}/{queue_id}"
            yield Violation(where, f"lowest offset {offset}", _one_of(expected))
