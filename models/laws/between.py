"""Laws of reads beside others: some point between begin and end explains the answer.

Each field of an answer is bounded from both sides, by what held at the begin and by
what held at the end, queue by queue. Where that is all that can be known, the fields
are held against each other too.

Source: Herlihy and Wing, TOPLAS 1990, for linearizability and its locality; what a
single read does is DefaultMessageStore#getMessage, which reads the bounds of a queue,
its units and their records one after the other, so each has a moment of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from crashmq.models.appended import Appended, differs, differs_from_message
from crashmq.models.files.store_image import BadRecord, Record, decode_record
from crashmq.models.knowledge.reads_beside import LogBetween, QueueBetween
from crashmq.models.laws.querying import QUERY_MAX
from crashmq.models.laws.reading import (
    FAR_TRANSFER_BYTES_MAX,
    FAR_TRANSFER_COUNT_MAX,
    SCAN_UNITS_MAX,
    TRANSFER_BYTES_MAX,
    TRANSFER_COUNT_MAX,
    wanted_tags,
)
from crashmq.models.laws.registry import law
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import Looked, Pulled, Queried, Searched
from crashmq.models.ops import Boundary, LookMessage, PullMessage
from crashmq.models.verdict import Violation

_NO_QUEUE = ("NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE")


@law(
    "RD-5",
    "a pull that overlaps other ops has the status, messages, next_begin_offset and "
    "bounds of some moment between its begin and its end",
    catalogue="I6 I16",
)
def pull_sees_a_moment(
    pulled: Pulled, pull: PullMessage, queue: QueueBetween, queue_file_units: int
) -> Iterator[Violation]:
    """Bounds each field of the answer, and holds them against each other.

    What a pull passes over is what its tags do not ask for, or what has expired. It
    ends where the queue did, at least as it was when the bounds were read; where a
    queue file ends; after 800 units, or as many as were asked for; or where it is full.

    Args:
        pulled: the answer.
        pull: what was asked.
        queue: what the queue was from its begin to its end.
        queue_file_units: units of a queue file.

    Source: DefaultMessageStore#getMessage, GetMessageStatus.
    """
    where = f"pull from {pull.queue_offset} among others, {pulled.status}"
    if not queue.stays:
        yield from _is_of_some_queue(pulled, pull, queue, where)
        return
    yield from _is_between(pulled, queue, where)
    if (pulled.status == "FOUND") is not bool(pulled.messages):
        seen = f"{len(pulled.messages)} messages"
        yield Violation(where, seen, "FOUND with some, or another status with none")
        return
    outside = _outside(pulled, pull.queue_offset)
    if outside is not None:
        is_right, next_begin = outside
        if not is_right or (pulled.status in _NO_QUEUE and queue.highs[0] > 0):
            expected = f"what {pulled.min_offset} to {pulled.max_offset} means"
            yield Violation(where, pulled.status, expected)
        elif pulled.next_begin_offset != next_begin:
            seen = f"next_begin_offset {pulled.next_begin_offset}"
            yield Violation(where, seen, f"{next_begin}")
        return
    if not queue.lows[0] <= pull.queue_offset < pulled.max_offset:
        seen = f"bounds {pulled.min_offset} and {pulled.max_offset}"
        yield Violation(where, seen, "an offset within them")
        return
    yield from _reads_on(pulled, pull, queue, queue_file_units, where)


def _is_between(pulled: Pulled, queue: QueueBetween, where: str) -> Iterator[Violation]:
    """Both bounds of the queue, as the pull tells them."""
    for name, told, (least, last) in (
        ("min_offset", pulled.min_offset, queue.lows),
        ("max_offset", pulled.max_offset, queue.highs),
    ):
        if not least <= told <= last:
            yield Violation(where, f"{name} {told}", f"from {least} to {last}")


def _outside(pulled: Pulled, offset: int) -> tuple[bool, int] | None:
    """Whether the status fits the bounds, and where to go on; None: it is within."""
    low, high = pulled.min_offset, pulled.max_offset
    match pulled.status:
        case "NO_MATCHED_LOGIC_QUEUE" | "NO_MESSAGE_IN_QUEUE":
            return high == 0, 0
        case "OFFSET_TOO_SMALL":
            return offset < low <= high, low
        case "OFFSET_OVERFLOW_ONE":
            return offset == high > 0, offset
        case "OFFSET_OVERFLOW_BADLY":
            return offset > high > 0, high
        case _:
            return None


def _is_of_some_queue(
    pulled: Pulled, pull: PullMessage, queue: QueueBetween, where: str
) -> Iterator[Violation]:
    """Of a queue that is deleted meanwhile: what it returns was once put there."""
    known = {(m.phy_offset, m.size): m for m in queue.messages}
    numbers: list[int] = []
    for data in pulled.messages:
        record = _record_of(data)
        if record is None:
            yield Violation(where, f"{len(data)} bytes", "a whole record")
            return
        number = record.queue_offset
        appended = known.get((record.phy_offset, record.size))
        if appended is None:
            if not _is_one_of(record, queue.rivals):
                seen = f"a record at phy_offset {record.phy_offset}"
                yield Violation(where, seen, "one that was put to the queue")
                return
        elif difference := differs(record, appended):
            yield Violation(where, difference, "what was appended")
        numbers.append(number if appended is None else appended.queue_offset)
    begin, end = pull.queue_offset, pulled.next_begin_offset
    is_light = pull.topic.startswith("%LMQ%")
    is_within = not numbers or begin <= numbers[0] <= numbers[-1] < end
    if not is_light and not (is_within and numbers == sorted({*numbers})):
        seen = f"messages {numbers}, next {end}"
        yield Violation(where, seen, "rising, from its offset to below next")
    if (pulled.status == "FOUND") is not bool(pulled.messages):
        seen = f"{len(pulled.messages)} messages"
        yield Violation(where, seen, "FOUND with some, or another status with none")
    outside = _outside(pulled, begin)
    if outside is not None and (not outside[0] or end != outside[1]):
        seen = f"bounds {pulled.min_offset} and {pulled.max_offset}, next {end}"
        yield Violation(where, seen, "what the status says")


def _record_of(data: bytes) -> Record | None:
    try:
        return decode_record(data)
    except BadRecord:
        return None


def _is_one_of(record: Record, puts: Sequence[MessageToPut]) -> bool:
    """Whether a record is that of one of these puts."""
    return any(not differs_from_message(record, message) for message in puts)


def _reads_on(
    pulled: Pulled,
    pull: PullMessage,
    queue: QueueBetween,
    units: int,
    where: str,
) -> Iterator[Violation]:
    """A pull within the bounds: what it returns, passes over, and where it ends."""
    begin, end, most = pull.queue_offset, pulled.next_begin_offset, pull.max_msg_nums
    file_end = begin + units - begin % units
    if pulled.status == "OFFSET_FOUND_NULL":
        first = queue.at(begin)
        may_be_gone = first is None or first.phy_offset < queue.gone_below
        if not may_be_gone or end != file_end:
            seen = f"next_begin_offset {end}"
            yield Violation(where, seen, f"message {begin}, which has not expired")
        return
    if most <= 0:
        if end != begin or pulled.status != "NO_MATCHED_MESSAGE":
            seen = f"next_begin_offset {end}"
            yield Violation(where, seen, f"{begin}, since no message was asked for")
        return
    scanned = min(begin + max(SCAN_UNITS_MAX, most), file_end)
    if not begin <= end <= min(scanned, queue.highs[1]):
        last = min(scanned, queue.highs[1])
        seen = f"next_begin_offset {end}"
        yield Violation(where, seen, f"from {begin} to {last}")
        return
    page = _Page(pull, queue)
    for number in range(begin, end):
        yield from page.look_at(number, pulled.messages, where)
        if page.is_wrong:
            return
    if page.taken < len(pulled.messages):
        left = len(pulled.messages) - page.taken
        yield Violation(where, f"{left} messages more", f"none before {end} is left")
        return
    sure = min(scanned, max(queue.highs[0], pulled.max_offset))
    if end < sure and not page.may_be_full_at(end):
        seen = f"next_begin_offset {end}"
        yield Violation(where, seen, f"up to {sure}, or where it is full")
    if pulled.status == "NO_MATCHED_MESSAGE" and page.lacked:
        yield Violation(where, pulled.status, f"message {page.lacked[0]} matches")
    if pulled.status == "MESSAGE_WAS_REMOVING" and not page.may_lack:
        yield Violation(where, pulled.status, "none of its messages has expired")


class _Page:
    """What one pull returns, unit by unit, held against what it may return.

    Attributes:
        taken: how many messages of the answer were met.
        lacked: the offsets of those that match, and have expired meanwhile.
        may_lack: some message that it looked at may have expired, or is unknown.
        is_wrong: a violation was found, so that nothing behind it says more.
    """

    def __init__(self, pull: PullMessage, queue: QueueBetween) -> None:
        self.taken = 0
        self.lacked: list[int] = []
        self.may_lack = self.is_wrong = False
        self._sent = 0
        self._most = pull.max_msg_nums
        self._wanted = wanted_tags(pull.tags)
        self._queue = queue

    def look_at(
        self, number: int, messages: Sequence[bytes], where: str
    ) -> Iterator[Violation]:
        """The unit of a queue_offset that the pull has gone behind."""
        queue, appended = self._queue, self._queue.at(number)
        data = messages[self.taken] if self.taken < len(messages) else None
        if appended is None:
            self._pass_unknown(data, number)
            return
        may_be_gone = appended.phy_offset < queue.gone_below
        self.may_lack = self.may_lack or may_be_gone
        if self._is_full(appended, queue.memory_from[0]):
            self.is_wrong = True
            yield Violation(where, f"goes behind {number}", "an end there: it is full")
            return
        if self._wanted and appended.message.tags not in self._wanted:
            return
        record = _record_of(data) if data is not None else None
        place = (appended.phy_offset, appended.size)
        if record is not None and (record.phy_offset, record.size) == place:
            if difference := differs(record, appended):
                yield Violation(where, difference, "what was appended")
            self.taken += 1
            self._sent += appended.size
        elif may_be_gone:
            self.lacked.append(number)
        else:
            self.is_wrong = True
            seen = "other bytes" if data is not None else "nothing"
            yield Violation(where, seen, f"message {number} of the queue")

    def _pass_unknown(self, data: bytes | None, number: int) -> None:
        """A place whose message has no known answer, or that no message ever had."""
        self.may_lack = True
        record = _record_of(data) if data is not None else None
        if record is None or not _is_one_of(record, self._queue.rivals):
            return
        if record.queue_offset == number or record.topic.startswith("%LMQ%"):
            self.taken += 1
            self._sent += record.size

    def _is_full(self, appended: Appended, memory_from: int) -> bool:
        is_near = appended.phy_offset >= memory_from
        most = TRANSFER_COUNT_MAX if is_near else FAR_TRANSFER_COUNT_MAX
        size_max = TRANSFER_BYTES_MAX if is_near else FAR_TRANSFER_BYTES_MAX
        is_enough = self.taken >= min(self._most, most)
        return bool(self.taken) and (is_enough or self._sent + appended.size > size_max)

    def may_be_full_at(self, number: int) -> bool:
        """Whether the next unit may have been too much, as far as anybody knows."""
        appended = self._queue.at(number)
        return appended is None or self._is_full(appended, self._queue.memory_from[1])


@law(
    "RD-11",
    "a lookup that overlaps other ops returns the record that begins there, unless the "
    "log may have lacked it at some moment",
    catalogue="I15",
)
def lookup_sees_a_moment(
    looked: Looked,
    look_up: LookMessage,
    appended: Appended | None,
    log: LogBetween,
    rivals: Sequence[MessageToPut],
) -> Iterator[Violation]:
    """Compares the answer with the message at that phy_offset, dispatched or not.

    Args:
        looked: the answer.
        look_up: what was asked.
        appended: the message that was ever appended there, if any.
        log: where the log was from its begin to its end.
        rivals: puts without an answer, whose records may lie anywhere.

    Source: DefaultMessageStore#lookMessageByOffset.
    """
    where = f"look at phy_offset {look_up.phy_offset} among others"
    if looked.message is None:
        if appended is None or appended.end > log.ends[0]:
            return
        if appended.phy_offset >= log.begins[1]:
            yield Violation(where, "none", f"{appended.size} bytes")
        return
    record = _record_of(looked.message)
    if record is None:
        yield Violation(where, f"{len(looked.message)} bytes", "a whole record")
    elif appended is None:
        if not _is_one_of(record, rivals):
            yield Violation(where, f"{record.size} bytes", "none begins there")
    elif difference := differs(record, appended):
        yield Violation(where, difference, "what was appended")
    elif not (log.begins[0] <= appended.phy_offset and appended.end <= log.ends[1]):
        seen = f"{record.size} bytes"
        yield Violation(where, seen, f"none: the log went from {log.begins[0]} on")


@law(
    "RD-12",
    "a search by time that overlaps other ops returns an offset, and times, that a "
    "scan of the queue finds at some moment between its begin and its end",
    catalogue="I17",
)
def search_sees_a_moment(
    searched: Searched,
    timestamp: int,
    boundary: Boundary,
    queue: QueueBetween,
    times: Mapping[int, int],
    firsts: Collection[int],
) -> Iterator[Violation]:
    """Looks for bounds of the queue between which a scan would find that offset.

    Args:
        searched: the answer.
        timestamp: the time searched for, in ms since the epoch.
        boundary: LOWER or UPPER.
        queue: what the queue was from its begin to its end.
        times: store_timestamp of each message by queue_offset; -1: nobody knows.
        firsts: store_timestamps that the log's first message had meanwhile; -1: none,
            or nobody knows.

    Source: ConsumeQueue#getOffsetInQueueByTime, BoundaryType.
    """
    where = f"search for {boundary} of {timestamp} among others"
    found = searched.queue_offset
    if not queue.stays:
        ends = [message.queue_offset + 1 for message in queue.messages]
        if not 0 <= found <= max(ends, default=0) + len(queue.rivals):
            yield Violation(where, f"queue_offset {found}", "one that the queue had")
        return
    if not _may_be_found(found, timestamp, boundary, queue, times):
        lows, highs = queue.lows, queue.highs
        seen = f"queue_offset {found}"
        yield Violation(where, seen, f"what a scan of {lows} to {highs} finds")
        return
    told = searched.stored_at
    if told not in (-2, times.get(found, -1)) and times.get(found, -1) >= 0:
        is_none = found < queue.lows[1] or found >= queue.highs[0]
        if told != -1 or not is_none:
            yield Violation(where, f"stored at {told}", f"at {times[found]}")
    if told >= 0 and found not in times and not queue.rivals:
        yield Violation(where, f"stored at {told}", "no time: no message is there")
    is_known = searched.earliest in (-2, *firsts)
    if not is_known and not (-1 in firsts and searched.earliest >= 0):
        seen = f"earliest time {searched.earliest}"
        yield Violation(where, seen, f"one of {sorted(firsts)}")


def _may_be_found(
    found: int,
    timestamp: int,
    boundary: Boundary,
    queue: QueueBetween,
    times: Mapping[int, int],
) -> bool:
    """Whether bounds within those of the queue make a scan end there.

    A message that has expired meanwhile counts as stored when the one after it was.
    """
    lows, highs = queue.lows, queue.highs
    if not lows[0] <= found <= highs[1]:
        return False

    def is_before(number: int) -> bool | None:
        time = times.get(number, -1)
        if time < 0 or number < lows[1]:
            return None  # nobody knows, or it may have been gone
        return time < timestamp if boundary == "LOWER" else time <= timestamp

    # What lies before an offset of the queue was in it too, if it had not expired; what
    # lies behind only if it was dispatched when the search began.
    behind = any(is_before(n) for n in range(max(lows[1], found + 1), highs[0]))
    if boundary == "LOWER":
        is_early = found < highs[0] and found >= lows[1] and is_before(found)
        early = any(is_before(n) is False for n in range(lows[1], found))
        return not (behind or is_early or early)
    if found >= highs[1] and found > lows[1]:
        return False
    early = any(is_before(n) is False for n in range(lows[1], found + 1))
    return not behind and (found <= lows[1] or not early)


@law(
    "RD-13",
    "no pull returns a min_offset or max_offset below one that was answered before it "
    "began, in one life of the store and of the topic",
    catalogue="I6 I16",
)
def reads_never_go_back(
    pulled: Pulled, pull: PullMessage, seen: tuple[int, int]
) -> Iterator[Violation]:
    """Compares the bounds with the greatest that were shown before.

    Source: ConsumeQueue#getMinOffsetInQueue, #getMaxOffsetInQueue, which only rise.
    """
    where = f"pull of {pull.topic}/{pull.queue_id} from {pull.queue_offset}"
    for name, told, before in (
        ("min_offset", pulled.min_offset, seen[0]),
        ("max_offset", pulled.max_offset, seen[1]),
    ):
        if told < before:
            yield Violation(where, f"{name} {told}", f"{before}, as was answered")


@law(
    "IX-11",
    "a query by key that overlaps other ops misses no match that was dispatched before "
    "it began, but for newer ones, and returns what was put alone",
    catalogue="I11",
)
def query_sees_a_moment(
    queried: Queried,
    max_num: int,
    sure: Sequence[int],
    was_put: Callable[[Record], bool],
) -> Iterator[Violation]:
    """Compares the phy_offsets of the answer with those of the matches of a scan.

    Args:
        queried: the answer.
        max_num: the most messages it asked for.
        sure: phy_offsets of the matches that were dispatched when it began and that
            stay to its end, in log order.
        was_put: whether a record is one of a message that was put.

    Source: IndexService#queryOffset, MessageStoreConfig#maxMsgsNumBatch.
    """
    most = max(0, min(max_num, QUERY_MAX))
    seen: list[int] = []
    for number, data in enumerate(queried.messages):
        record = _record_of(data)
        if record is None or not was_put(record):
            where = f"message {number} of the answer"
            yield Violation(where, f"{len(data)} bytes", "a record that was put")
            return
        seen.append(record.phy_offset)
    if len(seen) > most:
        yield Violation("the answer", f"{len(seen)} messages", f"at most {most}")
    oldest = seen[0] if len(seen) >= most > 0 else -1
    found = {*seen}
    for phy_offset in sure if most else ():
        if phy_offset > oldest and phy_offset not in found:
            text = f"phy_offsets {seen[:8]}, {len(seen)} in all"
            yield Violation("the answer", text, f"{phy_offset} among them")
            return
