"""The walk through messages that consumers send back, and that producers send."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.record import BadRecord, Record, decode_record
from crashmq.models.history import (
    Consumed,
    OneQueue,
    PutOf,
    SendAnswered,
    SendBackRefused,
    SentBack,
)
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.moments_of_consumers import BackRefused, MessageSentBack
from crashmq.models.knowledge.names import key_in
from crashmq.models.knowledge.walk_expired import begins_beside, saw_given_up
from crashmq.models.knowledge.walk_sends import saw_send
from crashmq.models.knowledge.walk_topics import saw_topics_needed


def walk_sent(
    at: At, event: SentBack | SendBackRefused | SendAnswered, at_ms: int
) -> Iterator[Moment]:
    """Record what was sent to a broker; yield moments for the judge."""
    if isinstance(event, SendAnswered):
        yield from saw_send(at, event, at_ms)
    else:
        yield from _saw_back(at, event, at_ms)


def _saw_back(
    at: At, event: SentBack | SendBackRefused, at_ms: int
) -> Iterator[Moment]:
    known, unique_key = at.known.consumption, key_in(event.record)
    try:
        given = decode_record(event.record)
    except BadRecord:
        return  # the disk lost what was written, and reads gave zeros instead
    if isinstance(event, SendBackRefused):
        copies = [one for one, _ in _copies_of(at, given)]
        yield BackRefused(*at, event.queue, event.code, event.is_put, given, copies)
        return
    is_late = known.is_of_before(event.queue, unique_key, given.queue_offset)
    yield from saw_given_up(at, event.queue, event.record, at_ms)
    known.was_sent_back(event.queue, unique_key)
    kept = 0 if is_late else _kept_at_most(at, event.queue)
    if kept > 1 or (not is_late and begins_beside(at, event.queue)):
        known.was_cut_short(event.queue, unique_key)
    if kept == 1:
        known.done_uncommitted(event.queue, unique_key)
    else:
        consumed = known.consumed_before if is_late else known.consumed_one
        consumed(event.queue, unique_key)
        known.may_have_committed_all(event.queue)
    yield _sent_back(at, event.queue, given)
    yield from saw_topics_needed(at, event.queue.group)


def _kept_at_most(at: At, queue: OneQueue) -> int:
    """How many messages a listener in order may have failed for, without a commit.

    Of more than one it is unknown which of them its consumer has kept.
    """
    op = at.known.consumption.owner_of(queue)
    events = [entry.event for entry in at.step.entries]
    its = [one for one in events if isinstance(one, Consumed) and one.queue == queue]
    if op is None or not op.is_orderly or not its:
        return 0
    return op.batch if its[-1].status == "suspends" else 0


def _copies_of(at: At, given: Record) -> list[PutOf]:
    """The puts of the step that hold a message after one more try, with answers."""
    unique_key = given.properties.get("UNIQ_KEY", "")
    return [
        (message, answer)
        for message, answer in at.step.puts
        if message.unique_key == unique_key
        and message.reconsume_times == given.reconsume_times + 1
        and not message.is_delivered
    ]


def _sent_back(at: At, queue: OneQueue, given: Record) -> MessageSentBack:
    """The moment at which the broker has stored a message sent back."""
    events = [one.event for one in at.step.entries]
    unique_key, tries = given.properties.get("UNIQ_KEY", ""), given.reconsume_times
    copies = [
        message
        for message, answer in _copies_of(at, given)
        if answer is not None and answer.status == "PUT_OK"  # else its consumer has it
    ]
    # Several consumers may have had it, before or after a crash: then it came again
    # more than once, and may be given back as often in one step.
    told = [
        decode_record(event.record)
        for event in events
        if isinstance(event, SentBack) and event.queue.group == queue.group
    ]
    alike = [
        one
        for one in told
        if one.properties.get("UNIQ_KEY", "") == unique_key
        and one.reconsume_times == tries
    ]
    return MessageSentBack(*at, queue, given, copies, len(alike))
