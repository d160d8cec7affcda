"""Laws of reads that overlap other ops: some moment of the read explains its answer.

Each field of an answer is bounded on both sides, by what held when the read began and
by what held when it ended, queue by queue. Where bounds are all that can be known, the
fields are also checked against each other.

Source: Herlihy and Wing, TOPLAS 1990, for linearizability and its locality. What one
read does is DefaultMessageStore#getMessage: it reads the bounds of a queue, its units
and their records one after the other, so each has a moment of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from crashmq.models.appended import Appended, differs, differs_from_message
from crashmq.models.files.store_image import BadRecord, Record, decode_answer
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
from crashmq.models.ops import Boundary, LookMessage, PullFiltered, PullMessage
from crashmq.models.verdict import Violation

_NO_QUEUE = ("NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE")


@law(
    "RD-5",
    "a pull that overlaps other ops has the status, messages, next_begin_offset and "
    "bounds that fit some moment while it ran",
    catalogue="I6 I16",
)
def pull_sees_a_moment(
    pulled: Pulled,
    pull: PullMessage,
    queues: Sequence[QueueBetween],
    queue_file_units: int,
) -> Iterator[Violation]:
    """Bounds each field of the answer, and checks the fields against each other.

    A pull skips what its tags do not match and what has expired. It ends at the queue's
    end, at least as it was when the bounds were read; at the end of a queue file; after
    800 units, or as many as were asked for; or when its answer is full.

    Args:
        pulled: the answer.
        pull: what was asked.
        queues: the possible states of the queue during the pull; one of them must
            explain the answer.
        queue_file_units: units in one queue file.

    Source: DefaultMessageStore#getMessage, GetMessageStatus.
    """
    where = f"pull from {pull.queue_offset} among others, {pulled.status}"
    yield from _unless_one_fits(
        _sees_queue(pulled, pull, queue, queue_file_units, where) for queue in queues
    )


def _unless_one_fits(ways: Iterable[Iterator[Violation]]) -> Iterator[Violation]:
    """The violations of the first way, or none if any of the ways has none."""
    first: list[Violation] = []
    for way in ways:
        found = [*way]
        if not found:
            return
        first = first or found
    yield from first


def _sees_queue(
    pulled: Pulled, pull: PullMessage, queue: QueueBetween, units: int, where: str
) -> Iterator[Violation]:
    """What is wrong with a pull, if the queue was ``queue`` while it ran."""
    if queue.vanishes and _met_its_end(pulled, pull, queue, units):
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
    yield from _reads_on(pulled, pull, queue, units, where)


def _met_its_end(
    pulled: Pulled, pull: PullMessage | PullFiltered, queue: QueueBetween, units: int
) -> bool:
    """Whether a pull found the queue but no longer its files, since it was deleted."""
    begin, end = pull.queue_offset, pulled.next_begin_offset
    low, high = pulled.min_offset, pulled.max_offset
    is_within = 0 <= low <= queue.lows[1] and 0 <= high <= queue.highs[1]
    if pulled.messages or not is_within:
        return False
    if pulled.status == "OFFSET_FOUND_NULL":
        return end == begin + units - begin % units
    return pulled.status == "NO_MESSAGE_IN_QUEUE" and high == end == 0


def _is_between(pulled: Pulled, queue: QueueBetween, where: str) -> Iterator[Violation]:
    """Checks the two bounds of the queue that the pull reports."""
    for name, told, (least, last) in (
        ("min_offset", pulled.min_offset, queue.lows),
        ("max_offset", pulled.max_offset, queue.highs),
    ):
        if not least <= told <= last:
            yield Violation(where, f"{name} {told}", f"from {least} to {last}")


def _outside(pulled: Pulled, offset: int) -> tuple[bool, int] | None:
    """For an offset outside the queue: whether the status fits, and where to go on.

    None if the offset is inside.
    """
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


def _record_of(data: bytes) -> Record | None:
    try:
        return decode_answer(data)
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
    """Checks a pull inside the bounds: what it returns and skips, and where it ends."""
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


@law(
    "RD-14",
    "a filtered pull has the status, next_begin_offset and bounds that fit some "
    "moment while it ran",
    catalogue="I6 I16",
)
def filtered_pull_sees_a_moment(
    pulled: Pulled,
    pull: PullFiltered,
    queues: Sequence[QueueBetween],
    queue_file_units: int,
) -> Iterator[Violation]:
    """As RD-5, without knowing which messages match the group's expression.

    Whether the right messages are returned and skipped is left to FLT-1 and FLT-2. A
    pull that has found no message is never full, so it goes on up to an end of the
    queue, of the file or of its scan.

    Args:
        pulled: the answer.
        pull: what was asked.
        queues: the possible states of the queue during the pull; one of them must
            explain the answer.
        queue_file_units: units in one queue file.

    Source: DefaultMessageStore#getMessage, ExpressionMessageFilter.
    """
    yield from _unless_one_fits(
        _sees_filtered(pulled, pull, queue, queue_file_units) for queue in queues
    )


def _sees_filtered(
    pulled: Pulled, pull: PullFiltered, queue: QueueBetween, units: int
) -> Iterator[Violation]:
    begin, end, most = pull.queue_offset, pulled.next_begin_offset, pull.max_msg_nums
    where = f"pull of {pull.group} from {begin}, {pulled.status}"
    if queue.vanishes and _met_its_end(pulled, pull, queue, units):
        return
    yield from _is_between(pulled, queue, where)
    if (pulled.status == "FOUND") is not bool(pulled.messages):
        seen = f"{len(pulled.messages)} messages"
        yield Violation(where, seen, "FOUND with some, or another status with none")
    outside = _outside(pulled, begin)
    if outside is not None:
        if not outside[0] or end != outside[1]:
            seen = f"bounds {pulled.min_offset} and {pulled.max_offset}, next {end}"
            yield Violation(where, seen, "what the status says")
        return
    if most <= 0 or pulled.status == "OFFSET_FOUND_NULL":
        return
    scanned = min(begin + max(SCAN_UNITS_MAX, most), begin + units - begin % units)
    sure = min(scanned, max(queue.highs[0], pulled.max_offset))
    least = begin + len(pulled.messages) if pulled.messages else sure
    if not least <= end <= min(scanned, queue.highs[1]):
        seen = f"next_begin_offset {end}"
        last = min(scanned, queue.highs[1])
        yield Violation(where, seen, f"from {least} to {last}")


class _Page:
    """The answer of one pull, walked unit by unit and checked against the queue.

    Attributes:
        taken: how many messages of the answer were met so far.
        lacked: offsets of messages that match and have expired meanwhile.
        may_lack: a message that the pull looked at may have expired, or is unknown.
        is_wrong: a violation was found, so later units prove nothing.
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
        """Checks the unit at queue_offset ``number``, which the pull has gone past."""
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
        """Skips a unit whose message is unknown, or that never had one."""
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
        """Whether the next unit may have been too much, as far as can be known."""
        appended = self._queue.at(number)
        return appended is None or self._is_full(appended, self._queue.memory_from[1])


@law(
    "RD-11",
    "a lookup that overlaps other ops returns the record that begins at its "
    "phy_offset, unless the log may have lacked that record at some moment while it "
    "ran",
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
        log: the bounds of the log during the lookup.
        rivals: unanswered puts, whose records may lie anywhere.

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
    "a search by time that overlaps other ops returns an offset, the time of its "
    "message and the log's earliest time as a scan could have found them at some "
    "moment while it ran",
    catalogue="I17",
)
def search_sees_a_moment(
    searched: Searched,
    timestamp: int,
    boundary: Boundary,
    met: Sequence[tuple[QueueBetween, Mapping[int, int]]],
    firsts: Collection[int],
) -> Iterator[Violation]:
    """Looks for bounds of the queue between which a scan would find that offset.

    Args:
        searched: the answer.
        timestamp: the time searched for, in ms since the epoch.
        boundary: LOWER or UPPER.
        met: the possible states of the queue during the search, each with the
            store_timestamp of its messages by queue_offset; -1 is an unknown time.
        firsts: store_timestamps that the log's first message had during the search;
            -1: no message, or unknown.

    Source: ConsumeQueue#getOffsetInQueueByTime, BoundaryType.
    """
    where = f"search for {boundary} of {timestamp} among others"
    is_deleted = len(met) > 1  # then its times may be of another queue than it is
    found = searched.queue_offset
    yield from _unless_one_fits(
        _finds_in(found, timestamp, boundary, queue, times, where)
        for queue, times in met
    )
    if not is_deleted:
        yield from _tells_time(searched, *met[0], where)
    elif searched.stored_at >= 0:
        known = {time for _, times in met for time in times.values()}
        if not {searched.stored_at, -1} & known:
            yield Violation(where, f"stored at {searched.stored_at}", "a time of its")
    is_known = searched.earliest in (-2, *firsts)
    if not is_known and not (-1 in firsts and searched.earliest >= 0):
        seen = f"earliest time {searched.earliest}"
        yield Violation(where, seen, f"one of {sorted(firsts)}")


def _finds_in(
    found: int,
    timestamp: int,
    boundary: Boundary,
    queue: QueueBetween,
    times: Mapping[int, int],
    where: str,
) -> Iterator[Violation]:
    """Checks the offset found in one queue; a queue being deleted allows any it had."""
    if queue.vanishes and 0 <= found <= queue.highs[1]:
        return
    if not _may_be_found(found, timestamp, boundary, queue, times):
        lows, highs = queue.lows, queue.highs
        seen = f"queue_offset {found}"
        yield Violation(where, seen, f"what a scan of {lows} to {highs} finds")


def _tells_time(
    searched: Searched, queue: QueueBetween, times: Mapping[int, int], where: str
) -> Iterator[Violation]:
    """Checks the time reported for the offset found."""
    found, told = searched.queue_offset, searched.stored_at
    if told not in (-2, times.get(found, -1)) and times.get(found, -1) >= 0:
        is_none = found < queue.lows[1] or found >= queue.highs[0]
        if told != -1 or not is_none:
            yield Violation(where, f"stored at {told}", f"at {times[found]}")
    if told >= 0 and found not in times and not queue.rivals:
        yield Violation(where, f"stored at {told}", "no time: no message is there")


def _may_be_found(
    found: int,
    timestamp: int,
    boundary: Boundary,
    queue: QueueBetween,
    times: Mapping[int, int],
) -> bool:
    """Whether a scan within some bounds of the queue would end at ``found``.

    A message that expired meanwhile counts as stored when the one after it was.
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
    "within one run of the store and one existence of the topic, no pull returns a "
    "min_offset or max_offset lower than one answered before it began",
    catalogue="I6 I16",
)
def reads_never_go_back(
    pulled: Pulled, pull: PullMessage, seen: tuple[int, int]
) -> Iterator[Violation]:
    """Compares the bounds with the highest that any earlier answer showed.

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
    "a query by key that overlaps other ops returns every match that was dispatched "
    "before it began and not deleted before it ended, unless newer matches fill the "
    "answer",
    catalogue="I11",
)
def query_misses_nothing(
    queried: Queried, max_num: int, sure: Sequence[int]
) -> Iterator[Violation]:
    """Compares the answer's phy_offsets with the matches that a scan finds.

    Args:
        queried: the answer.
        max_num: the most messages it asked for.
        sure: phy_offsets, in log order, of the matches that were dispatched before
            the query began and still exist when it ends.

    Source: IndexService#queryOffset, MessageStoreConfig#maxMsgsNumBatch.
    """
    most = max(0, min(max_num, QUERY_MAX))
    records = [_record_of(data) for data in queried.messages]
    seen = [-1 if record is None else record.phy_offset for record in records]
    oldest = seen[0] if len(seen) >= most > 0 else -1
    found = {*seen}
    for phy_offset in sure if most else ():
        if phy_offset > oldest and phy_offset not in found:
            text = f"phy_offsets {seen[:8]}, {len(seen)} in all"
            yield Violation("the answer", text, f"{phy_offset} among them")
            return


@law(
    "IX-12",
    "a query by key that overlaps other ops returns at most max_num messages, each "
    "byte for byte as it was put",
    catalogue="I11 I15",
)
def query_returns_what_was_put(
    queried: Queried, max_num: int, was_put: Callable[[Record], bool]
) -> Iterator[Violation]:
    """Decodes each message of the answer.

    Args:
        queried: the answer.
        max_num: the most messages it asked for.
        was_put: whether a record is that of a message that was put.

    Source: DefaultMessageStore#queryMessage.
    """
    most = max(0, min(max_num, QUERY_MAX))
    for number, data in enumerate(queried.messages):
        record = _record_of(data)
        if record is None or not was_put(record):
            where = f"message {number} of the answer"
            yield Violation(where, f"{len(data)} bytes", "a record that was put")
    if len(queried.messages) > most:
        seen = f"{len(queried.messages)} messages"
        yield Violation("the answer", seen, f"at most {most}")
