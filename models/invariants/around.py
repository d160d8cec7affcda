"""Laws of a store that serves around damage: what it keeps, lists, gives, refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from models.appended import Appended, differs, differs_from_message
from models.invariants.checkpoint import changed_files
from models.invariants.reading import wanted_tags
from models.invariants.recovery import reason_to_refuse
from models.invariants.registry import invariant
from models.messages import MessageToPut
from models.observations import Pulled, Refused, Started
from models.ops import PullMessage
from models.plain_state import fork_of_fields
from models.store_image import BadRecord, Record, StoreImage, decode_record
from models.verdict import Violation

Range = tuple[int, int]


@dataclass(slots=True)
class Spoilt:
    """What was changed of a log from outside, as places of the log.

    Attributes:
        is_on: the store serves around damage from here on.
        ranges: [start, end) of the bytes that differ.
        queues: the directories of queues that were changed since the last start.
    """

    is_on: bool = False
    ranges: list[Range] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)

    def fork(self) -> Spoilt:
        """One that goes on by itself."""
        return fork_of_fields(self)

    def touches(self, start: int, end: int) -> bool:
        """Whether a byte of [start, end) was changed."""
        return _meets(self.ranges, start, end)


def _meets(ranges: Sequence[Range], start: int, end: int) -> bool:
    return any(begin < end and start < until for begin, until in ranges)


@invariant(
    "REC-12",
    "a start that is to serve around damage refuses only what nobody can locate",
    law="I9 I15",
)
def refuses_what_cannot_be_located(
    found: StoreImage, extended: StoreImage, start: Started | Refused
) -> Iterator[Violation]:
    """Judged on the files as the start found them, as REC-4 is.

    A file whose bytes changed under whole records has damage that nobody can locate.
    """
    reason, mark = reason_to_refuse(found, extended), found.checkpoint.mark
    if isinstance(start, Refused):
        if mark is None:
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
    if listed and not reason:
        yield Violation("start", f"lists {listed[0]}", "no damage, for nothing is lost")
    if reason and not listed:
        yield Violation("start", "lists no damage", f"some, since {reason}")


@invariant(
    "REC-11",
    "around damage a start keeps every message that is whole, and lists the others",
    law="I1 I15",
)
def keeps_what_is_whole(
    whole: Mapping[int, Record],
    messages: Sequence[Appended],
    in_flight: Sequence[MessageToPut],
    floors: tuple[int, int],
    spoilt: Spoilt,
    listed: Sequence[Range],
) -> Iterator[Violation]:
    """``floors``: what the crash spares, and what the mark says was durable.

    Above the mark a log ends where it stops being whole, so a message counts there
    only if nothing in front of it was damaged.
    """
    floor, durable = floors
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
        if appended.end <= min(floor, durable) and not is_listed:
            yield Violation(where, "gone, and not listed", "a damaged range")
    known = {appended.phy_offset for appended in messages}
    for phy_offset, record in whole.items():
        if phy_offset not in known and all(
            differs_from_message(record, message) for message in in_flight
        ):
            where = f"commitlog phy_offset {phy_offset}"
            yield Violation(where, f"a record of {record.topic}", "nobody put it")


@invariant(
    "RD-6",
    "around damage a pull gives every whole message in its place, and goes on behind",
    law="I3 I15 I16",
)
def pull_goes_around(
    pull: PullMessage,
    pulled: Pulled,
    queue: Sequence[Appended],
    reput_from_offset: int,
    gone_below: int = 0,
) -> Iterator[Violation]:
    """``queue`` is what is whole of it; what lies before ``reput_from_offset`` counts.

    -1: nobody knows how far dispatch has come. Before ``gone_below`` messages may have
    expired.
    """
    by_offset = {appended.queue_offset: appended for appended in queue}
    first, end = pull.queue_offset, pulled.next_begin_offset
    seen: list[int] = []
    for data in pulled.messages:
        try:
            record = decode_record(data)
        except BadRecord as flaw:
            yield Violation("pull", str(flaw), "a whole record")
            return
        where = f"message {record.queue_offset} of the queue"
        appended = by_offset.get(record.queue_offset)
        if appended is None:
            yield Violation(where, f"{len(data)} bytes", "none: it was damaged")
            return
        if difference := differs(record, appended):
            yield Violation(where, difference, "what was appended")
        seen.append(record.queue_offset)
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
    if ready and end <= first and pull.max_msg_nums > 0:
        yield Violation("pull", f"next_begin_offset {end}", f"more than {first}")
