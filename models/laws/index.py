"""Laws of the index: each key of the log is listed once and linked correctly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias

from crashmq.models.files.index import (
    SECONDS_MAX,
    IndexEntry,
    IndexFileImage,
    IndexImage,
    LogKey,
    guessed_slots,
)
from crashmq.models.files.log import common_size
from crashmq.models.files.record import Record
from crashmq.models.laws.index_after_crash import settled_entries
from crashmq.models.laws.judged import Judged
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Place, Violation

_YEAR_9999_MS: Final = 253_370_764_800_000
Placed: TypeAlias = tuple[str, IndexFileImage, int, IndexEntry]

_BYTE_OF = {
    "begin_timestamp": 0,
    "end_timestamp": 8,
    "begin_phy_offset": 16,
    "end_phy_offset": 24,
    "hash_slot_count": 32,
}


def index_of(judged: Judged) -> IndexImage:
    """The index of the judged image."""
    return judged.image.index(judged.index_slots)


@law(
    "IX-3",
    "an index file's header agrees with its entries: count, used slots, first and "
    "last phy_offset and time",
    catalogue="I11",
)
def headers_are_recounts(judged: Judged) -> Iterator[Violation]:
    """Counts the entries again; times are compared with records that still exist.

    Checked at rest.

    Source: IndexHeader.
    """
    if not judged.clean:
        return
    if judged.stale_allowed:
        yield from _says_nothing(judged)
    for path, file in index_of(judged).files:
        yield from _wrong_header(path, file)
        yield from _wrong_times(path, file, judged)


@law(
    "IX-4",
    "index entries are in log order, one for each key of a record that is not rolled "
    "back; no entry is doubled or skipped",
    catalogue="I11",
)
def entries_are_the_keys_of_the_log(judged: Judged) -> Iterator[Violation]:
    """Compares the index's entries, from the first unexpired one, with the log's keys.

    RocketMQ lists its last record again after a crash and lacks entries it threw away,
    so in its stores an entry need only be a key of its record, or its tags, which
    RocketMQ indexes since 5.4.0. After a crash only entries with a correct later entry
    in their sector are checked. Where a mark says that another program wrote, as
    RocketMQ 5.4.0 does, a record's tags may follow its keys.

    Source: IndexService#buildIndex, IndexFile#putKey.
    """
    if not judged.clean:
        for found in settled_entries(judged):
            if not found.is_right:
                expected = _key_there(judged, found.entry)
                where = _where(found.path, found.file, found.number)
                expected = f"{expected}, no later than the one behind it"
                yield Violation(where, _seen(found.entry), expected)
        return
    if judged.stale_allowed:
        yield from _entries_of_no_key(judged)
        return
    live = [*live_entries(judged)]
    asked = _asked_of(judged, live) if live else ()
    for number, (path, file, at, entry) in enumerate(live):
        wanted = asked[number] if number < len(asked) else None
        if wanted is None or (entry[0], entry[1]) != (wanted[0], wanted[1].phy_offset):
            expected = _told(wanted) if wanted else "none: the log has no key more"
            yield Violation(_where(path, file, at), _seen(entry), expected)
            return
        seconds = _seconds(file, wanted)
        if entry.seconds != seconds:
            seen = f"{entry.seconds} seconds after the file's begin"
            yield Violation(_where(path, file, at), seen, f"{seconds}")


@law(
    "IX-5",
    "each index slot names its newest entry, and each entry links to the one before "
    "it in its slot",
    catalogue="I11",
)
def chains_lead_back(judged: Judged) -> Iterator[Violation]:
    """Compares slots and links with those of an index that is built again.

    So every link is lower than its entry's number, and every chain ends. After a crash
    only entries with a correct later entry in their sector are checked.

    Source: IndexFile#putKey.
    """
    if not judged.clean:
        for found in settled_entries(judged):
            if found.is_right and found.leads_astray:
                expected = f"in [{found.newest}, {found.number}), as its slot has"
                where = _where(found.path, found.file, found.number)
                yield Violation(where, f"previous {found.entry.previous}", expected)
        return
    for path, file in index_of(judged).files:
        yield from _wrong_links(path, file)


@law(
    "IX-6",
    "every key of a record below reput_from_offset has an index entry, unless the "
    "record is rolled back",
    catalogue="I4 I11",
)
def every_key_is_listed(judged: Judged) -> Iterator[Violation]:
    """Compares the number of entries with the number of dispatched keys.

    Whether the entries are correct is left to IX-4. Checked at rest, on stores that
    keep an index, where the dispatch progress is known.

    Source: DefaultMessageStore.CommitLogDispatcherBuildIndex#dispatch.
    """
    reput = judged.reput_from_offset
    if not judged.clean or not judged.keeps_index or reput is None:
        return
    asked = judged.image.log_keys
    listed = sum(1 for _ in live_entries(judged))
    if listed < len(asked) and asked[listed].record.phy_offset < reput:
        missing = sum(key.record.phy_offset < reput for key in asked[listed:])
        seen = f"{listed} entries; {missing} keys of dispatched records have none"
        yield Violation("index", seen, f"next {_told(asked[listed])}")


@law(
    "IX-7",
    "all index files have the same size, are named by a 17-digit time, and all but the "
    "newest are full",
    catalogue="I18",
)
def index_files_fit_together(judged: Judged) -> Iterator[Violation]:
    """Checks names and lengths and, at rest, how full each file is.

    After a crash a file may be empty, since its creation was cut short, or not full.

    Source: IndexService#load, IndexService#getAndCreateLastIndexFile.
    """
    index = index_of(judged)
    for path in index.odd_paths:
        if not is_passed_over(judged, path):
            yield Violation(path, "a name that is no time", "17 digits")
    lengths = [len(file.data) for _, file in index.files if judged.clean or file.data]
    size = _size_told(index, lengths)
    for path, file in index.files:
        if len(file.data) != size and (judged.clean or file.data):
            expected = f"{size} bytes, as other files"
            where = Place(path, min(len(file.data), size))
            yield Violation(where, f"{len(file.data)} bytes", expected)
        elif _has_known_slots(judged, file) and len(file.data) != file.entry_at(
            file.index_num
        ):
            where = Place(path, file.entry_at(file.index_num))
            seen = f"{len(file.data)} bytes"
            yield Violation(where, seen, f"whole entries behind {file.slot_num} slots")
    if judged.clean:
        for path, file in index.files[:-1]:
            if file.index_num and not file.is_full:
                seen = f"{len(file.entries)} entries, and a later file exists"
                yield Violation(path, seen, f"{file.index_num - 1}, a full file")


@law(
    "IX-8",
    "index files whose end_timestamp is below the checkpoint's index_msg_timestamp are "
    "full, with correct headers and links",
    catalogue="I8 I11",
)
def ended_files_are_whole(judged: Judged) -> Iterator[Violation]:
    """Checked after a crash too: index_msg_timestamp is set once the file is durable.

    A crash may have torn anything in later files.

    Source: StoreCheckpoint#setIndexMsgTimestamp, IndexService#flush.
    """
    if not judged.monotonic_clock or judged.stale_allowed:
        return
    before = judged.image.checkpoint.index_msg_timestamp
    files = index_of(judged).files
    ended = 0
    for number, (_, file) in enumerate(files, 1):
        is_last_full = judged.whole_sectors and file.is_full
        # A kill amid the first header leaves half a time, and counts no entry.
        is_counted = file.header.index_count > 0
        if is_counted and 0 < file.header.end_timestamp < before + is_last_full:
            ended = number
    for path, file in files[:ended]:
        if file.index_num and not file.is_full:
            seen = f"index_count {file.header.index_count}"
            expected = f"{file.index_num}, as index_msg_timestamp {before} says"
            yield Violation(Place(path, 36), seen, expected)
        yield from _wrong_header(path, file)
        yield from _wrong_links(path, file)


@law(
    "IX-9",
    "even after a disk fault, a new index file is begun only when the one before it "
    "is full",
    catalogue="I19 I20",
)
def full_files_alone_are_left(judged: Judged) -> Iterator[Violation]:
    """A file that is abandoned early is never filled again.

    Asked where no crash came but the disk failed. Without a failure IX-7 says the same;
    what a crash left, the next start repairs.

    Source: IndexService#getAndCreateLastIndexFile.
    """
    is_running = judged.keeps_index and judged.reput_from_offset is not None
    if judged.clean or not is_running:
        return
    for path, file in index_of(judged).files[:-1]:
        if file.index_num and not file.is_full:
            seen = f"{len(file.entries)} entries, and a later file exists"
            yield Violation(path, seen, f"{file.index_num - 1}, a full file, or none")


@law(
    "IX-13",
    "a new index file is named by the time at which it was made, in UTC, or by one "
    "more than the newest name of this run, if that is later",
    catalogue="I11 I18",
)
def files_are_named_by_their_time(
    names: Sequence[int], newest: int, between: tuple[int, int]
) -> Iterator[Violation]:
    """So names rise, none is given twice, and a name says when its file was begun.

    Args:
        names: those of the files that were made, the oldest first, as numbers.
        newest: the newest name that an index file had before.
        between: bounds of the time at which they were made, in ms since the epoch.

    Source: IndexService#getAndCreateLastIndexFile, UtilAll#timeMillisToHumanString.
    Differs: there it is local time, and two files of one millisecond share a name.
    """
    first, last = (_name_at(timestamp) for timestamp in between)
    for name in names:
        least, most = max(first, newest + 1), max(last, newest + 1)
        if not least <= name <= most:
            expected = f"{least}" if least == most else f"{least} to {most}"
            yield Violation(f"index/{name:017d}", "this name", expected)
        newest = max(name, newest)


def _name_at(timestamp: int) -> int:
    """The name of a file that is made at a time; from 9999 on it stands still.

    A later year would not have four digits.
    """
    shown_ms = min(max(0, timestamp), _YEAR_9999_MS)
    at = datetime.fromtimestamp(shown_ms // 1000, UTC)
    return int(f"{at:%Y%m%d%H%M%S}{shown_ms % 1000:03d}")


def _size_told(index: IndexImage, lengths: list[int]) -> int:
    """The size that most lengths agree on; in a tie, the one of the first file."""
    if len(lengths) == 2 and len({*lengths}) == 2:
        first = index.files[0][1]
        if first.slot_num and first.entry_at(first.header.index_count) in lengths:
            return first.entry_at(first.header.index_count)
    return common_size([], lengths)


def is_passed_over(judged: Judged, path: str) -> bool:
    """Whether a file with an odd name is foreign; RocketMQ does not read it.

    A file that looks like an index file counts as one that lost its name, unless its
    name begins with that of another one. A hidden file is an editor's.
    """
    if path.rpartition("/")[2].startswith("."):
        return True
    if not (judged.stale_allowed or judged.whole_sectors):
        return False
    if path.endswith("/"):
        return True  # a folder, of which RocketMQ cannot make a number
    data = judged.image.files[path]
    lengths = [len(file.data) for _, file in index_of(judged).files]
    if any(path.startswith(name) for name, _ in index_of(judged).files):
        return True  # somebody kept a copy beside it
    is_like_one = len(data) in lengths or guessed_slots(data) > 0
    return not (path.rpartition("/")[2].isdecimal() or is_like_one)


def live_entries(judged: Judged) -> Iterator[Placed]:
    """The entries without the first ones whose records have expired."""
    minimum = judged.image.commit_log.min_phy_offset
    is_live = False
    for found in index_of(judged).entries:
        is_live = is_live or found[3].phy_offset >= minimum
        if is_live:
            yield found


def _wrong_header(path: str, file: IndexFileImage) -> Iterator[Violation]:
    header, entries = file.header, file.entries
    if not file.index_num:
        return
    if not 0 <= header.index_count <= file.index_num:
        seen = f"index_count {header.index_count}"
        yield Violation(Place(path, 36), seen, f"in [0, {file.index_num}]")
    written = file.written_entries if _is_miscounted(file) else len(entries)
    if written != len(entries):
        seen = f"index_count {header.index_count}"
        expected = f"{written + 1}, as end_phy_offset says"
        yield Violation(Place(path, 36), seen, expected)
    wanted = {
        "begin_phy_offset": entries[0].phy_offset if entries else 0,
        "end_phy_offset": entries[-1].phy_offset if entries else 0,
        "hash_slot_count": len(file.recounted[0]),
    }
    for name, value in wanted.items():
        seen = getattr(header, name)
        # An empty file of RocketMQ's names where the file before it ended.
        if seen != value and (entries or name == "hash_slot_count"):
            where = Place(path, _BYTE_OF[name])
            yield Violation(where, f"{name} {seen}", f"{value}, by its entries")


def _says_nothing(judged: Judged) -> Iterator[Violation]:
    """Index files without a readable entry: a file is created only for a key."""
    files = index_of(judged).files
    for path, file in files:
        if file.has_unknown_slots:
            seen = "slots and entries that no number of slots fits"
            yield Violation(f"{path} byte 0", seen, "those of an index file")
    is_empty = not any(file.entries or file.has_unknown_slots for _, file in files)
    if files and is_empty and judged.image.log_keys:
        path, file = files[0]
        seen = f"index_count {file.header.index_count}, no entry"
        expected = _told(judged.image.log_keys[0])
        yield Violation(Place(path, 36), seen, expected)


def _has_known_slots(judged: Judged, file: IndexFileImage) -> bool:
    """Whether the number of slots is certain: a crash may falsify a guessed one."""
    return bool(file.index_num) and (judged.clean or judged.index_slots > 0)


def _is_miscounted(file: IndexFileImage) -> bool:
    """Whether the header's end_phy_offset names another last entry than its count."""
    named = file.header.end_phy_offset
    counted = file.entries[-1].phy_offset if file.entries else 0
    if counted == named or not file.written_entries:
        return False
    return file.phy_offset_of(file.written_entries) == named


def _wrong_times(
    path: str, file: IndexFileImage, judged: Judged
) -> Iterator[Violation]:
    if not file.entries:
        return
    for name, entry in (
        ("begin_timestamp", file.entries[0]),
        ("end_timestamp", file.entries[-1]),
    ):
        record = judged.image.commit_log.record_at.get(entry.phy_offset)
        seen = getattr(file.header, name)
        if record is not None and seen != record.store_timestamp:
            expected = f"{record.store_timestamp}, as the record at {entry.phy_offset}"
            where = Place(path, _BYTE_OF[name])
            yield Violation(where, f"{name} {seen}", expected)


def _wrong_links(path: str, file: IndexFileImage) -> Iterator[Violation]:
    if not file.slot_num:
        return
    newest, links = file.recounted
    for number, (entry, link) in enumerate(zip(file.entries, links, strict=True), 1):
        if entry.previous != link:
            seen = f"previous {entry.previous}"
            yield Violation(_where(path, file, number), seen, f"{link}")
            return
    said = file.written_slots
    if said != newest:
        slot = min(dict(sorted(said.items() ^ newest.items())))
        seen = f"slot {slot} names entry {said.get(slot, 0)}"
        yield Violation(Place(path, 40 + 4 * slot), seen, f"{newest.get(slot, 0)}")


def _asked_of(judged: Judged, live: Sequence[Placed]) -> Sequence[LogKey]:
    """The log's keys and, where the index has them, each record's tags after its keys.

    Only an index that another program wrote to has tags.
    """
    asked, mark = judged.image.log_keys, judged.image.checkpoint.mark
    says_others = mark is not None and mark.others_until > 0
    if not (says_others or judged.takes_odd_properties):
        return asked
    more = Counter((entry.key_hash, entry.phy_offset) for _, _, _, entry in live)
    more -= Counter((key.key_hash, key.record.phy_offset) for key in asked)
    record_at = judged.image.commit_log.record_at
    of_tags = [
        LogKey(key_hash, record_at[phy_offset])
        for key_hash, phy_offset in sorted(judged.image.tag_keys & more.keys())
    ]
    return sorted([*asked, *of_tags], key=lambda key: key.record.phy_offset)


def _entries_of_no_key(judged: Judged) -> Iterator[Violation]:
    """Entries that belong to no record, or that precede an older record's.

    Entries past the log's end can be left over from a cut, but only after all others,
    and in a file that ended before ``index_msg_timestamp``: a start drops later ones.
    """
    listed = {(key.key_hash, key.record.phy_offset) for key in judged.image.log_keys}
    log = judged.image.commit_log
    end = log.max_phy_offset
    found = list(live_entries(judged))
    proper = [n for n, (_, _, _, entry) in enumerate(found) if entry.phy_offset < end]
    last = max(proper, default=-1)
    yield from _ends_past_the_log(judged, found[last + 1 :])
    for place, (path, file, number, entry) in enumerate(found[: last + 1]):
        if _is_miscounted(file) and number > file.written_entries:
            continue  # IX-3 tells of the count
        where = _where(path, file, number)
        key = entry.key_hash, entry.phy_offset
        if key not in listed and key not in judged.image.tag_keys:
            yield Violation(where, _seen(entry), _key_there(judged, entry))
            continue
        before = found[place - 1][3].phy_offset if place else 0
        # A wrong entry before this one was reported already.
        if entry.phy_offset < before < end and before in log.record_at:
            expected = f"at least {before}, as the one before"
            yield Violation(where, _seen(entry), expected)
        seconds = _seconds_of(file, log.record_at[entry.phy_offset], log.record_at)
        if entry.seconds != seconds:
            seen = f"{entry.seconds} seconds after the file's begin"
            yield Violation(where, seen, f"{seconds}")


def _ends_past_the_log(judged: Judged, ending: list[Placed]) -> Iterator[Violation]:
    """One violation for all entries past the log's end, unless it is broken."""
    log = judged.image.commit_log
    flushed = judged.image.checkpoint.index_msg_timestamp
    lost = [part for part in ending if part[1].header.end_timestamp > flushed]
    if lost and not log.breaks:
        path, file, number, entry = lost[0]
        more = f", and {len(lost) - 1} entries more" if len(lost) > 1 else ""
        where = _where(path, file, number)
        expected = f"the log ends at {log.max_phy_offset}"
        yield Violation(where, f"{_seen(entry)}{more}", expected)


def _key_there(judged: Judged, entry: IndexEntry) -> str:
    log = judged.image.commit_log
    if entry.phy_offset in log.record_at:
        return f"a key of the record at {log.where(entry.phy_offset)}"
    return "the phy_offset of a record"


def _seconds_of(
    file: IndexFileImage, record: Record, record_at: Mapping[int, Record]
) -> int:
    """The entry's seconds since the first entry's record: the header may be damaged."""
    first = record_at.get(file.entries[0].phy_offset)
    begin = file.header.begin_timestamp if first is None else first.store_timestamp
    return min(max(0, record.store_timestamp - begin) // 1000, SECONDS_MAX)


def _seconds(file: IndexFileImage, key: LogKey) -> int:
    since = key.record.store_timestamp - file.header.begin_timestamp
    return min(max(0, since) // 1000, SECONDS_MAX)


def _where(path: str, file: IndexFileImage, number: int) -> Place:
    return Place(path, file.entry_at(number), f"entry {number}")


def _seen(entry: IndexEntry) -> str:
    return f"hash {entry.key_hash}, phy_offset {entry.phy_offset}"


def _told(key: LogKey) -> str:
    return f"hash {key.key_hash}, phy_offset {key.record.phy_offset}"
