"""MessageReader: reads a queue from a queue_offset, and returns where to read on.

Source: DefaultMessageStore#getMessage, #isTheBatchFull, RocketMQ 5.3. Differs: a read
never creates a queue, a record that cannot be read is skipped alone, and where the hash
of the tags agrees their text is compared.
"""

from __future__ import annotations

from typing import NamedTuple

from crashmq.engine.host.probe import probe
from crashmq.engine.store.commit_log import CommitLog
from crashmq.engine.store.config import StoreConfig
from crashmq.engine.store.message.message_codec import BLANK_SIZE_MIN
from crashmq.engine.store.message.tags_filter import (
    ANY_TAGS,
    TagsFilter,
    Wanted,
    parse_tags,
)
from crashmq.engine.store.message_filter import MessageFilter
from crashmq.engine.store.queue.consume_queue import ConsumeQueue
from crashmq.engine.store.queue.consume_queue_store import ConsumeQueueStore
from crashmq.engine.store.queue.cq_unit import (
    BLANK_SIZE,
    CQ_STORE_UNIT_SIZE,
    decode_units,
)
from crashmq.engine.store.results import GetMessageResult, GetMessageStatus
from crashmq.engine.store.time_search import BoundaryType, offset_by_time

NO_QUEUE = probe("message_reader.no_queue", "a read asked for a queue never written")
EMPTY = probe("message_reader.empty", "a read met a queue without units")
TOO_SMALL = probe("message_reader.too_small", "a read asked below the queue's min")
OVERFLOW_ONE = probe("message_reader.overflow_one", "a read asked exactly for the max")
OVERFLOW_BADLY = probe("message_reader.overflow_badly", "a read asked beyond the max")
FOUND_NULL = probe("message_reader.found_null", "a read in range met no units")
REMOVING = probe("message_reader.removing", "a unit's record could not be read")
FILTERED = probe("message_reader.filtered", "a unit's tags code did not match")
COLLIDED = probe(
    "message_reader.collided",
    "a record's tags have the hash, but not the text, asked for",
)
UNMATCHED = probe(
    "message_reader.unmatched", "a message that was read does not match the filter"
)
FOUND = probe("message_reader.found", "a read returned messages")
DAMAGED = probe("message_reader.damaged", "a damaged record was not returned")
BATCH_FULL = probe("message_reader.batch_full", "a read stopped at a transfer limit")
FROM_DISK = probe(
    "message_reader.from_disk", "a read stopped at the limit for messages far behind"
)


class PullLimits(NamedTuple):
    """The limits of one answer: how many messages, and how many bytes.

    The first message is returned however large it is.
    """

    messages: int
    size: int


class ListedMessage(NamedTuple):
    """One unit of a queue; ``tags_code`` None: its consumequeue_ext entry is lost."""

    queue_offset: int
    phy_offset: int
    size: int
    tags_code: int | None


class MessageReader:
    """Reads messages by queue and queue offset; stateless."""

    def __init__(
        self,
        config: StoreConfig,
        commit_log: CommitLog,
        consume_queues: ConsumeQueueStore,
    ) -> None:
        self._config = config
        self._commit_log = commit_log
        self._consume_queues = consume_queues

    def get_message(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_msg_nums: int,
        wanted: Wanted = ANY_TAGS,
    ) -> GetMessageResult:
        """Up to ``max_msg_nums`` messages from ``queue_offset`` on.

        With a filter or a tag expression, only messages that match; the next read
        begins after those that were skipped.

        Raises:
            OSError: the medium could not be read.
        """
        queue = self._consume_queues.find(topic, queue_id)
        if queue is None:
            NO_QUEUE.hit()
            return GetMessageResult(GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        low, high = queue.min_offset, queue.max_offset
        if low <= queue_offset < high:
            asked = parse_tags(wanted) if isinstance(wanted, str) else wanted
            return self._read_units(queue, queue_offset, max_msg_nums, asked)
        status, next_begin = _out_of_range(queue_offset, low, high)
        return GetMessageResult(status, next_begin, low, high)

    def offset_by_time(
        self, topic: str, queue_id: int, timestamp: int, boundary: BoundaryType
    ) -> int:
        """The queue_offset for a store time in milliseconds; 0 without the queue.

        See ``time_search``.

        Source: DefaultMessageStore#getOffsetInQueueByTime.
        """
        queue = self._consume_queues.find(topic, queue_id)
        if queue is None:
            return 0

        def time_at(queue_offset: int) -> int:
            return self._time_at(queue, queue_offset)

        low, high = queue.min_offset, queue.max_offset
        return offset_by_time(low, high, timestamp, boundary, time_at)

    def store_timestamp(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Store time of the message at a queue_offset; -1 if there is none.

        Source: DefaultMessageStore#getMessageStoreTimeStamp, which for a pre-blank unit
        returns that of whatever its phy_offset points at.
        """
        queue = self._consume_queues.find(topic, queue_id)
        if queue is None or not queue.min_offset <= queue_offset < queue.max_offset:
            return -1
        for phy_offset, size, _ in decode_units(queue.unit_at(queue_offset)):
            if size != BLANK_SIZE:
                return self._commit_log.store_timestamp_at(phy_offset)
        return -1

    def listed_messages(
        self, topic: str, queue_id: int, queue_offset: int, count: int
    ) -> list[ListedMessage]:
        """Up to ``count`` units from ``queue_offset`` on, within one file.

        Source: ConsumeQueue#iterateFrom.
        """
        queue = self._consume_queues.find(topic, queue_id)
        if queue is None or not queue.min_offset <= queue_offset < queue.max_offset:
            return []
        units = queue.units_from(queue_offset, count)
        return [
            ListedMessage(queue_offset + n, phy, size, queue.tags_code_of(code))
            for n, (phy, size, code) in enumerate(decode_units(units))
        ]

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The first queue_offset that a queue still has; 0 without the queue."""
        queue = self._consume_queues.find(topic, queue_id)
        return queue.min_offset if queue is not None else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """The queue_offset of the next message dispatched; 0 without the queue."""
        queue = self._consume_queues.find(topic, queue_id)
        return queue.max_offset if queue is not None else 0

    def is_in_memory(self, topic: str, queue_id: int, queue_offset: int) -> bool:
        """Whether a queue has a message there, so near the log's end as to be cached.

        Source: DefaultMessageStore#checkInMemByConsumeOffset, which asks the page
        cache since 5.0.
        """
        queue = self._consume_queues.find(topic, queue_id)
        if queue is None or not queue.min_offset <= queue_offset < queue.max_offset:
            return False
        for phy_offset, _, _ in decode_units(queue.unit_at(queue_offset)):
            return phy_offset >= self._memory_from
        return False

    def _time_at(self, queue: ConsumeQueue, queue_offset: int) -> int:
        for phy_offset, _, _ in decode_units(queue.unit_at(queue_offset)):
            return self._commit_log.store_timestamp_at(phy_offset)
        return -1

    def _read_units(
        self,
        queue: ConsumeQueue,
        queue_offset: int,
        max_msg_nums: int,
        wanted: MessageFilter | None,
    ) -> GetMessageResult:
        low, high = queue.min_offset, queue.max_offset
        scan_max = max(
            self._config.max_filter_message_size // CQ_STORE_UNIT_SIZE, max_msg_nums
        )
        units = queue.units_from(queue_offset, scan_max)
        if not units:
            FOUND_NULL.hit()
            next_begin = queue.roll_next_file(queue_offset)
            status = GetMessageStatus.OFFSET_FOUND_NULL
            return GetMessageResult(status, next_begin, low, high)
        messages: list[bytes] = []
        taken = sent = 0
        filtered_only = True
        near, far = self._limits(max_msg_nums)
        memory_from = self._memory_from
        for phy_offset, size, code in decode_units(units):
            limits = near if phy_offset >= memory_from else far
            is_too_much = sent and sent + size > limits.size
            if is_too_much or len(messages) >= limits.messages:
                (BATCH_FULL if limits is near else FROM_DISK).hit()
                break
            taken += 1
            if wanted is not None and not queue.passes(wanted, code):
                FILTERED.hit()
                continue
            message = self._record_of(phy_offset, size)
            if message is None:
                REMOVING.hit()
                filtered_only = False
                continue
            if wanted and not wanted.is_matched_by_commit_log(message, None):
                (COLLIDED if isinstance(wanted, TagsFilter) else UNMATCHED).hit()
                continue
            messages.append(message)
            sent += size
        status = GetMessageStatus.MESSAGE_WAS_REMOVING
        if messages:
            FOUND.hit()
            status = GetMessageStatus.FOUND
        elif filtered_only:
            status = GetMessageStatus.NO_MATCHED_MESSAGE
        return GetMessageResult(
            status, queue_offset + taken, low, high, tuple(messages)
        )

    def _record_of(self, phy_offset: int, size: int) -> bytes | None:
        message = self._commit_log.get_message(phy_offset, size)
        if message is None or not self._config.check_crc_on_read:
            return message
        if self._commit_log.is_record(phy_offset, message):
            return message
        DAMAGED.hit()
        return None

    def earliest_timestamp(self) -> int:
        """Store time of the log's first intact message; -1 if it has none.

        Searches past damage: a damaged file may have a BLANK that was appended to close
        it.

        Raises:
            OSError: the medium could not be read.
        """
        log = self._commit_log
        at = log.damage.end_of(log.min_offset)
        while 0 <= at < log.max_offset:
            head = log.read_from(at, log.max_offset, BLANK_SIZE_MIN)
            found = log.check_message(at, head, 0)
            if not (found.success and found.msg_size == 0):
                return log.store_timestamp_at(at)
            at = log.damage.end_of(log.roll_next_file(at))
        return -1

    def _limits(self, max_msg_nums: int) -> tuple[PullLimits, PullLimits]:
        """The limits for messages near the log's end, and for those far from it.

        Messages far below the log's end have to come from the disk, so fewer of them
        are sent at a time; but at least one message, if any was asked for.

        Source: DefaultMessageStore#isTheBatchFull.
        """
        config = self._config
        near = config.max_transfer_count_on_message_in_memory
        far = config.max_transfer_count_on_message_in_disk
        return (
            PullLimits(
                min(max_msg_nums, max(1, near)),
                config.max_transfer_bytes_on_message_in_memory,
            ),
            PullLimits(
                min(max_msg_nums, max(1, far)),
                config.max_transfer_bytes_on_message_in_disk,
            ),
        )

    @property
    def _memory_from(self) -> int:
        """The phy_offset from which on the log counts as being in memory.

        Source: DefaultMessageStore#checkInMemByCommitOffset.
        """
        in_memory = self._config.access_message_in_memory_max_size
        return self._commit_log.max_offset - in_memory


def _out_of_range(
    queue_offset: int, low: int, high: int
) -> tuple[GetMessageStatus, int]:
    """The status of a read outside [low, high), and its next_begin_offset."""
    if high == 0:
        EMPTY.hit()
        return GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0
    if queue_offset < low:
        TOO_SMALL.hit()
        return GetMessageStatus.OFFSET_TOO_SMALL, low
    if queue_offset == high:
        OVERFLOW_ONE.hit()
        return GetMessageStatus.OFFSET_OVERFLOW_ONE, queue_offset
    OVERFLOW_BADLY.hit()
    return GetMessageStatus.OFFSET_OVERFLOW_BADLY, high
