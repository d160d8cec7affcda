"""Laws of a store with on_damage=serve: what it keeps, lists, returns and refuses.

Such a store starts on a damaged log and serves the intact messages around the damage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from crashmq.models.appended import Appended, differs, differs_from_message
from crashmq.models.files.store_image import (
    BadRecord,
    Record,
    StoreImage,
    decode_answer,
)
from crashmq.models.laws.checkpoint import changed_files
from crashmq.models.laws.querying import QUERY_MAX
from crashmq.models.laws.reading import wanted_tags
from crashmq.models.laws.recovery import has_impossible_place, reason_to_refuse
from crashmq.models.laws.registry import law
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Pulled, Put, Queried, Refused, Searched, Started
from crashmq.models.ops import Boundary, PullMessage
from crashmq.models.plain_state import Forked
from crashmq.models.verdict import Violation

Range = tuple[int, int]


@dataclass(slots=True)
class Spoilt(Forked):
    """The bytes of a log that were changed from outside the store, by phy_offset.

    Attributes:
        log_file_size: size of each log file, in bytes.
        is_on: the store runs with on_damage=serve from here on.
        ranges: the changed byte ranges, each as [start, end).
        queues: directories of queues that were changed since the last start.
        listed: the ranges that the newest start reports as damaged.
        lost: phy_offsets of messages that are no longer intact.
    """

    log_file_size: int
    is_on: bool = False
    ranges: list[Range] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    listed: tuple[Range, ...] = ()
    lost: list[int] = field(default_factory=list)

    def touches(self, start: int, end: int) -> bool:
        """Whether a byte of [start, end) was changed."""
        return _meets(self.ranges, start, end)


class Floors(NamedTuple):
    """The phy_offsets that say what a start around damage must keep, and list.

    Attributes:
        spared: the end of what the crash must have spared.
        durable: up to where the start serves records around damage, by its mark.
        listed_from: from where it can tell that something is missing. That is where the
            found log begins if no mark says that it began before: its first files may
            as well have expired.
    """

    spared: int
    durable: int
    listed_from: int = 0


def _meets(ranges: Sequence[Range], start: int, end: int) -> bool:
    return any(begin < end and start < until for begin, until in ranges)


@law(
    "REC-12",
    "with on_damage=serve, a start lists damage and refuses only if the byte range of "
    "some damage cannot be determined",
    catalogue="I9 I15",
)
def refuses_what_cannot_be_located(
    found: StoreImage,
    extended: StoreImage,
    start: Started | Refused,
    *,
    is_foreign: bool = False,
) -> Iterator[Violation]:
    """Compares the start's answer and its damage list with the files it found.

    A start must list damage exactly when REC-4 would have it refuse. On a store without
    a durable mark it may also list what RocketMQ would ignore, and below the mark's
    ``damaged_until`` what was damaged before the mark. It may refuse if a
    file's CRC-32 differs although all its records are intact, since such damage has no
    place, or if it took the mark of a directory that it must not adopt
    (``is_foreign``).
    """
    reason, mark = reason_to_refuse(found, extended), found.checkpoint.mark
    if isinstance(start, Refused):
        if mark is None or is_foreign or has_impossible_place(found):
            return
        paths = {
            file.path
            for file in extended.commit_log.files
            if file.flaw is None or file.base + file.end >= mark.durable_offset
        }
        if not paths & {*changed_files(extended)}:
            yield Violation("start", f"refused: {start.reason}", "a start around it")
        return
    listed = start.damaged
    if not reason and mark is not None:
        for one in listed:
            if one[1] > mark.damaged_until:
                expected = "no damage, for nothing is lost"
                yield Violation("start", f"lists {one}", expected)
    if reason and not listed:
        yield Violation("start", "lists no damage", f"some, since {reason}")


@law(
    "REC-11",
    "with on_damage=serve, a start keeps every intact message and lists the ranges of "
    "the others",
    catalogue="I1 I15",
)
def keeps_what_is_whole(
    whole: Mapping[int, Record],
    messages: Sequence[Appended],
    in_flight: Sequence[MessageToPut],
    floors: Floors,
    spoilt: Spoilt,
    listed: Sequence[Range],
) -> Iterator[Violation]:
    """Looks for each message that was put among ``whole``, the records served.

    Above durable_offset a log ends where it stops being intact, so a message there is
    only missed if nothing before it was damaged. No range past the file that
    durable_offset lies in may be listed.

    Args:
        whole: the intact records after the start, by phy_offset.
        messages: what was put.
        in_flight: puts that got no answer; their records may or may not exist.
        floors: up to where messages must be there, and where they must be listed.
        spoilt: what was changed from outside.
        listed: the ranges that the start lists as damaged, each as [start, end).
    """
    floor, durable, listed_from = floors
    until = -(-durable // spoilt.log_file_size) * spoilt.log_file_size
    for begin, end in listed:
        if end > until:
            yield Violation("start", f"lists [{begin}, {end})", f"none past {until}")
    for appended in messages:
        where = f"commitlog phy_offset {appended.phy_offset}"
        record = whole.get(appended.phy_offset)
        is_listed = _meets(listed, appended.phy_offset, appended.end)
        if record is not None:
            if difference := differs(record, appended):
                yield Violation(where, difference, "what was appended there, or none")
            if is_listed:
                yield Violation(where, "listed as damaged", "not: it is whole")
            continue
        is_durable = appended.end <= durable
        begin = appended.phy_offset if is_durable else durable
        if appended.end <= floor and not spoilt.touches(begin, appended.end):
            yield Violation(where, "gone", "the message, which nothing has damaged")
        is_to_list = listed_from < appended.end <= min(floor, durable)
        if is_to_list and not is_listed:
            yield Violation(where, "gone, and not listed", "a damaged range")
    known = {appended.phy_offset for appended in messages}
    for phy_offset, record in whole.items():
        if phy_offset not in known and all(
            differs_from_message(record, message) for message in in_flight
        ):
            where = f"commitlog phy_offset {phy_offset}"
            yield Violation(
                where, f"a record of {record.topic}", "no record: it was never put"
            )


@law(
    "RD-6",
    "with on_damage=serve, a pull returns every intact message at its queue_offset and "
    "continues past damaged ones",
    catalogue="I3 I15 I16",
)
def pull_goes_around(
    pull: PullMessage,
    pulled: Pulled,
    queue: Sequence[Appended],
    reput_from_offset: int,
    gone_below: int = 0,
) -> Iterator[Violation]:
    """Compares the returned messages with ``queue``, the queue's intact messages.

    A message must be returned if its record ends at or below ``reput_from_offset``; -1
    means that it is unknown how far dispatch is, so that none must. Messages whose
    phy_offset is below ``gone_below`` may have expired. A pull that skips intact
    messages, or whose next_begin_offset does not advance, breaks the law too.
    """
    listed = {appended.phy_offset: appended for appended in queue}
    first, end = pull.queue_offset, pulled.next_begin_offset
    seen: list[int] = []
    for data in pulled.messages:
        try:
            record = decode_answer(data)
        except BadRecord as flaw:
            yield Violation("pull", str(flaw), "a whole record")
            return
        appended = listed.get(record.phy_offset)
        if appended is None:
            where = f"message at phy_offset {record.phy_offset}"
            yield Violation(where, f"{len(data)} bytes", "none: it was damaged")
            return
        number = appended.queue_offset  # a light queue counts for itself
        if difference := differs(record, appended):
            where = f"message {number} of the queue"
            yield Violation(where, difference, "what was appended")
        seen.append(number)
    if seen != sorted({*seen}) or (seen and not first <= seen[0] <= seen[-1] < end):
        yield Violation("pull", f"messages {seen}, next {end}", "rising, below next")
    wanted = wanted_tags(pull.tags)
    ready = [
        appended
        for appended in queue
        if first <= appended.queue_offset
        and gone_below <= appended.phy_offset
        and appended.end <= reput_from_offset
    ]
    for appended in ready:
        is_asked_for = not wanted or appended.message.tags in wanted
        number = appended.queue_offset
        if number < end and is_asked_for and number not in seen:
            yield Violation(f"message {number} of the queue", "passed over", "given")
    is_within = pulled.status in ("FOUND", "NO_MATCHED_MESSAGE")
    if is_within and reput_from_offset >= 0 and end > pulled.max_offset:
        told = f"next_begin_offset {end}"
        yield Violation("pull", told, f"at most the end, {pulled.max_offset}")
    if ready and end <= first and pull.max_msg_nums > 0:
        yield Violation("pull", f"next_begin_offset {end}", f"more than {first}")
    if (pulled.status == "FOUND") is not bool(seen):
        yield Violation("pull", f"{pulled.status}, messages {seen}", "FOUND with some")
    if pulled.status == "NO_MATCHED_MESSAGE" and not wanted and pull.max_msg_nums > 0:
        yield Violation("pull", pulled.status, "nothing was filtered")


@law(
    "PUT-6",
    "with on_damage=serve, no put is appended to a CommitLog file that the start "
    "listed as damaged",
    catalogue="I3 I15",
)
def put_spares_what_is_damaged(answer: Put, spoilt: Spoilt) -> Iterator[Violation]:
    """Looks for damaged ranges in the file that the put was appended to.

    An operator may want to restore such a file from a copy, or to inspect it.
    """
    if answer.phy_offset < 0:
        return
    base = answer.phy_offset - answer.phy_offset % spoilt.log_file_size
    if _meets(spoilt.listed, base, base + spoilt.log_file_size):
        where = f"put at phy_offset {answer.phy_offset}"
        yield Violation(where, "in a file that has damage", "one that has none")


@law(
    "RD-10",
    "with on_damage=serve, a search by time returns the same as if the queue held its "
    "intact messages alone",
    catalogue="I15 I17",
)
def search_goes_around(
    searched: Searched,
    timestamp: int,
    boundary: Boundary,
    stored_at: Mapping[int, int],
    ready: Sequence[int],
    earliest: int,
) -> Iterator[Violation]:
    """Compares the offset found with the times of the intact messages around it.

    LOWER: messages before the offset are earlier than ``timestamp``, the others are
    not. UPPER: messages up to the offset are not later than ``timestamp``, the others
    are. The time reported for the offset is its message's, or -1 if that message is
    damaged.

    Args:
        searched: the answer.
        timestamp: the time searched for, in ms since the epoch.
        boundary: LOWER or UPPER.
        stored_at: store_timestamp of each intact message, by queue_offset.
        ready: queue_offsets of the dispatched ones, which must be found.
        earliest: store_timestamp of the CommitLog's first intact message.
    """
    found, where = searched.queue_offset, f"search for {boundary} of {timestamp}"
    for number, queue_offset in enumerate(ready):
        time = stored_at[queue_offset]
        if boundary == "LOWER":
            is_right = (time >= timestamp) == (queue_offset >= found)
        else:
            is_first = number == 0 and queue_offset >= found
            is_right = is_first or (time <= timestamp) == (queue_offset <= found)
        if not is_right:
            seen = f"queue_offset {found}, but {queue_offset} was stored at {time}"
            yield Violation(where, seen, "one between earlier and later ones")
            return
    told = stored_at.get(found, -1)
    may_lack = found in stored_at and found not in ready
    if searched.stored_at not in (told, -2) and not (
        may_lack and searched.stored_at == -1
    ):
        yield Violation(f"time of {found}", f"{searched.stored_at}", f"{told}")
    if searched.earliest not in (earliest, -2):
        yield Violation("earliest time", f"{searched.earliest}", f"{earliest}")


@law(
    "IX-10",
    "with on_damage=serve, a query by key returns the newest max_num (at most 64) "
    "intact messages that match",
    catalogue="I11 I15",
)
def query_goes_around(
    queried: Queried, max_num: int, fitting: Sequence[Record]
) -> Iterator[Violation]:
    """Compares the answer's phy_offsets with those of the newest of ``fitting``.

    ``fitting`` are the intact, dispatched messages that match, in log order.
    """
    most = max(0, min(max_num, QUERY_MAX))
    expected = [record.phy_offset for record in fitting[-most:]] if most else []
    seen: list[int] = []
    for data in queried.messages:
        try:
            seen.append(decode_answer(data).phy_offset)
        except BadRecord as flaw:
            yield Violation("the answer", str(flaw), "whole records")
            return
    if seen != expected:
        yield Violation("the answer", f"phy_offsets {seen[:8]}", f"{expected[:8]}")
