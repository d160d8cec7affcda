"""Laws of puts: where the message went, or why it was refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from crashmq.models.files.record import SCHEDULE_TOPIC, message_id
from crashmq.models.laws.registry import law
from crashmq.models.limits import SYNC_TIMEOUT_MS
from crashmq.models.messages import (
    FILLER_SIZE_MIN,
    MULTI_QUEUE_OFFSET,
    PROPERTIES_SIZE_MAX,
    TOPIC_SIZE_MAX,
    MessageToPut,
    adds_up,
)
from crashmq.models.observations import Put, PutStatus
from crashmq.models.program import Setup
from crashmq.models.verdict import Violation

_FALSE_OVER_TRUE = len("false") - len("true")
_TOPIC = re.compile(r"(?!\.{1,2}\Z)[^/\0\n\ud800-\udfff]+")
_APPENDED = frozenset({"PUT_OK", "FLUSH_DISK_TIMEOUT"})
_INNER_BATCH_FLAG = 0x80
_I32 = 1 << 31
_GIVEN_BY_THE_STORE = frozenset({MULTI_QUEUE_OFFSET, "INNER_NUM"})


@law(
    "PUT-1",
    "an appended put returns its record's size, phy_offset and queue_offset, both the "
    "first free ones; a refused put returns no phy_offset",
    catalogue="I3 I5",
)
def put_takes_the_next_place(
    answer: Put,
    log_end: int,
    place: int,
    next_queue_offset: int,
    size: int,
    unanswered: int = 0,
) -> Iterator[Violation]:
    """Compares the answer to each put with the model's next place.

    ``log_end`` is where the newest message ends; a BLANK may follow it. ``place`` is
    where the record must lie; -1 if other ops ran at the same time. ``size`` is how
    many bytes it must take. After a crash, ``unanswered`` puts of the same queue may
    have come before it.

    Source: CommitLog#asyncPutMessage, AppendMessageResult.
    """
    where = f"put answered {answer.status}"
    if answer.status not in _APPENDED:
        if answer.phy_offset >= 0:
            yield Violation(where, f"at phy_offset {answer.phy_offset}", "no place")
        return
    if answer.phy_offset < log_end or answer.size <= 0:
        seen = f"phy_offset {answer.phy_offset}, {answer.size} bytes"
        yield Violation(where, seen, f"a place from {log_end} on")
    elif place not in (-1, answer.phy_offset):
        yield Violation(where, f"phy_offset {answer.phy_offset}", f"{place}")
    elif answer.size != size:
        yield Violation(where, f"{answer.size} bytes", f"{size} bytes")
    if not 0 <= answer.queue_offset - next_queue_offset <= unanswered:
        seen = f"queue_offset {answer.queue_offset}"
        yield Violation(where, seen, f"queue_offset {next_queue_offset}")


@law(
    "PUT-5",
    "an appended put returns the message id made of its store host and phy_offset; a "
    "refused put returns none",
    catalogue="I5",
)
def put_is_told_its_id(message: MessageToPut, answer: Put) -> Iterator[Violation]:
    """Compares the id with the one made of the message's store host and phy_offset.

    Asked of single messages; PUT-3 checks the ids of batches.

    Source: MessageDecoder#createMessageId.
    """
    ids: tuple[str, ...] = ()
    if answer.phy_offset >= 0:
        ids = (message_id(message.store_host, answer.phy_offset),)
    if answer.message_ids != ids:
        where = f"put answered {answer.status}"
        yield Violation(where, f"ids {answer.message_ids}", f"{ids}")


def gave_up(answer: Put, stalled_ms: int) -> bool:
    """Whether a put's wait for its sync timed out because the disk stalled."""
    return answer.status == "FLUSH_DISK_TIMEOUT" and stalled_ms >= SYNC_TIMEOUT_MS


@law(
    "PUT-2",
    "unless the disk fails, fills or stalls, or the store stops, a valid message gets "
    "PUT_OK, an invalid one the refusal specified for it",
    catalogue="I19",
)
def put_is_refused_for_a_reason(
    message: MessageToPut,
    answer: Put,
    setup: Setup,
    sizes: tuple[int, int],
    *,
    may_refuse: bool,
) -> Iterator[Violation]:
    """Compares a single put's status with the one that its topic and sizes call for.

    ``may_refuse``: the disk failed in this run of the store or has no room, the put
    timed out on a stalled disk, or the store is stopping. ``sizes`` are the bytes of
    its record and of the properties in it.

    Source: HookUtils#checkBeforePutMessage, PutMessageStatus.
    """
    expected = _expected_status(message, setup, *sizes)
    if answer.status != expected and not may_refuse:
        yield Violation(f"put of a record of {sizes[0]} bytes", answer.status, expected)


@law(
    "PUT-3",
    "a batch is appended as one run of its messages in one CommitLog file, or refused "
    "as a whole",
    catalogue="I3 I5 I19",
)
def batch_is_put_as_one(
    messages: Sequence[MessageToPut],
    answer: Put,
    setup: Setup,
    *,
    may_refuse: bool,
) -> Iterator[Violation]:
    """Compares status, ids, size and place of the answer to the whole batch.

    PUT-1 judges each of its messages as well.

    Source: CommitLog#asyncPutMessages, MessageExtEncoder#encode.
    """
    batch = messages[0].batch if messages else None
    total = batch.total if batch is not None else 0
    where = f"put of a batch of {len(messages)} messages, {total} bytes"
    expected = _expected_of_batch(messages, total, setup)
    if answer.status not in _APPENDED or expected != "PUT_OK":
        if answer.status != expected and not may_refuse:
            yield Violation(where, answer.status, expected)
        return
    ids = tuple(
        [
            message_id(message.store_host, answer.phy_offset + at)
            for message in messages
            for at in (message.batch.before if message.batch is not None else 0,)
        ]
    )
    if answer.message_ids != ids:
        yield Violation(where, f"ids {answer.message_ids}", f"{ids}")
    if answer.size != total:
        yield Violation(where, f"{answer.size} bytes", f"{total} bytes")
    first = answer.phy_offset // setup.log_file_size
    if (answer.phy_offset + answer.size - 1) // setup.log_file_size != first:
        yield Violation(where, "in two log files", "one")


@law(
    "PUT-4",
    "if a put began after another put was answered, its record comes after the other's "
    "in the CommitLog",
    catalogue="I3 I19",
)
def puts_lie_in_the_order_they_were_made(
    puts: Sequence[tuple[Put, tuple[int, int]]],
) -> Iterator[Violation]:
    """Compares the order of overlapping puts with their phy_offsets.

    Each put comes with the logical times at which it began and was answered.

    Source: CommitLog#asyncPutMessage, under putMessageLock.
    """
    appended = [(put, span) for put, span in puts if put.phy_offset >= 0]
    appended.sort(key=lambda pair: pair[0].phy_offset)
    latest, behind = -1, -1
    for put, (begun, answered) in appended:
        if answered < latest:
            yield Violation(
                f"put at phy_offset {put.phy_offset}",
                f"it lies behind phy_offset {behind}, which was put after its answer",
                "in front of it",
            )
        if begun > latest:
            latest, behind = begun, put.phy_offset


@law(
    "PUT-7",
    "a put waits out the 5 s sync timeout only if the disk stalls; if its flush round "
    "fails, FLUSH_DISK_TIMEOUT comes at once",
    catalogue="I19",
)
def who_waits_is_answered(waited_ms: int, stalled_ms: int) -> Iterator[Violation]:
    """Compares how long a put waited with how long the disk stalled.

    Args:
        waited_ms: the longest that a put waited for FLUSH_DISK_TIMEOUT; 0: none
            did.
        stalled_ms: how long the disk stalled meanwhile.

    Source: CommitLog.GroupCommitService#doCommit, GroupCommitRequest.
    """
    if waited_ms >= SYNC_TIMEOUT_MS > stalled_ms:
        seen = f"after {waited_ms} ms, the disk stood still for {stalled_ms}"
        yield Violation("put answered FLUSH_DISK_TIMEOUT", seen, "an answer at once")


@law(
    "PUT-8",
    "after a failed flush of the CommitLog every put is refused until the next start",
    catalogue="I1 I7 I19",
)
def no_put_after_a_failed_flush(answer: Put) -> Iterator[Violation]:
    """Asked of each put after the failed flush: it may not be appended.

    No later sync of the same run proves that the bytes are durable.
    """
    if answer.status in _APPENDED:
        where = f"put at phy_offset {answer.phy_offset}"
        yield Violation(where, answer.status, "a refusal until the next start")


def _expected_of_batch(
    messages: Sequence[MessageToPut], total: int, setup: Setup
) -> PutStatus:
    inner = [len(message.own_properties) for message in messages]
    if any(size > PROPERTIES_SIZE_MAX for size in inner):
        return "PROPERTIES_SIZE_EXCEEDED"
    payload = sum(inner) + sum([len(message.body) + 22 for message in messages])
    if not messages or payload > setup.max_message_size:
        return "MESSAGE_ILLEGAL"
    if not adds_up(messages):
        return "MESSAGE_ILLEGAL"
    if setup.multi_dispatch and any(message.light_queues for message in messages):
        return "MESSAGE_ILLEGAL"  # a batch takes no offsets in light queues
    for message in messages:
        added = message.prop_crc_size if setup.prop_crc else 0
        size = message.record_size + added
        status = _expected_status(message, setup, size, message.properties_size + added)
        if status != "PUT_OK":
            return status
    fits = total + FILLER_SIZE_MIN <= setup.log_file_size
    return "PUT_OK" if fits else "MESSAGE_ILLEGAL"


def _expected_once_due(message: MessageToPut, setup: Setup) -> PutStatus:
    """The status that a delayed message must get when it is delivered.

    Its light queues are taken as long as they can be: they are not known yet.
    """
    delivered = message.delivered()
    added = delivered.prop_crc_size if setup.prop_crc else 0
    if setup.multi_dispatch and delivered.light_queues:
        places = 20 * len(delivered.light_queues) - 1
        added += len(MULTI_QUEUE_OFFSET) + places + 2
    sizes = (delivered.record_size + added, delivered.properties_size + added)
    return _expected_status(delivered, setup, *sizes)


def _expected_status(
    message: MessageToPut, setup: Setup, size: int, properties_size: int
) -> PutStatus:
    body, topic = message.body, message.topic
    if setup.delivers_delayed and not message.is_delivered:
        if message.topic == SCHEDULE_TOPIC and not message.real_topic:
            return "MESSAGE_ILLEGAL"
        if message.real_topic:
            once_due = _expected_once_due(message, setup)
            if once_due != "PUT_OK":
                return once_due
        elif message.sys_flag & 0x4 == 0 and abs(message.delay_level) >= _I32:
            return "MESSAGE_ILLEGAL"
    if not _GIVEN_BY_THE_STORE.isdisjoint(message.properties):
        return "MESSAGE_ILLEGAL"
    if topic == SCHEDULE_TOPIC and message.delay_level < 0:
        return "MESSAGE_ILLEGAL"  # dispatch takes no such number for a level
    lights = setup.multi_dispatch and message.light_queues
    if lights and message.asks_for_no_light_queue:
        return "MESSAGE_ILLEGAL"
    if message.sys_flag & _INNER_BATCH_FLAG or len(topic.encode()) > TOPIC_SIZE_MAX:
        return "MESSAGE_ILLEGAL"
    if _TOPIC.fullmatch(topic) is None:
        return "MESSAGE_ILLEGAL"
    if any("\0" in value for value in message.properties.values()):
        return "MESSAGE_ILLEGAL"
    if not (-_I32 <= message.flag < _I32 and 0 <= message.reconsume_times < _I32):
        return "MESSAGE_ILLEGAL"
    if not 0 <= message.queue_id < _I32:
        return "MESSAGE_ILLEGAL"
    if properties_size > PROPERTIES_SIZE_MAX:
        return "PROPERTIES_SIZE_EXCEEDED"
    too_long = len(body) > setup.max_message_size and not message.is_delivered
    if too_long or size + FILLER_SIZE_MIN > setup.log_file_size:
        return "MESSAGE_ILLEGAL"
    return "PUT_OK"
