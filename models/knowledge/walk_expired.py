"""The walk through messages that a listener has for long.

A consumer gives up a message that its listener has had for longer than the time-out: it
sends the message back, which then counts as finished, whatever the listener returns.
"""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.store_image import decode_record
from crashmq.models.history import (
    Consumed,
    ExpiredCleaned,
    ListenerReturned,
    OffsetRead,
    OneQueue,
    SentBack,
    Step,
)
from crashmq.models.knowledge.consumption import Begun, Failed
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.moments_of_consumers import (
    ExpiredLeft,
    FailureSentBack,
    GivenBackAgain,
    MessageGivenUp,
)
from crashmq.models.knowledge.names import key_in
from crashmq.models.limits import PAUSE_MS_MIN, PUT_OFF_MS
from crashmq.models.ops import Consume, ConsumeStatus, TurnConsumer, pause_ms


def is_to_end(at: At, event: Consumed | ListenerReturned) -> bool:
    """Whether a message is finished for its consumer, by what the listener returned.

    One that broadcasts drops what it could not consume.
    """
    known, client = at.known.consumption, event.queue.client
    op = known.living.get(client)
    drops = known.is_broadcast(client) and op is not None and not op.is_orderly
    return event.status in ("success", "commit") or (drops and event.status != "hangs")


def saw_given(at: At, event: Consumed, at_ms: int) -> None:
    """Record that a listener was given a message, which may expire unless it ends."""
    known, queue = at.known.consumption, event.queue
    share = known.shares.get(queue)
    if share is None:
        return
    if at.step.is_undisturbed and is_to_end(at, event):
        known.shares[queue] = share.finishes(event.queue_offset)
        return
    least_ms = min(at.step.entries[0].at_ms, at_ms)
    if key_in(event.record) not in share.may_come_again:
        one = Begun(event.queue_offset, least_ms, at_ms)
        known.shares[queue] = share.is_given(one)


def begins_beside(at: At, queue: OneQueue) -> bool:
    """Whether a consumer begins a queue while it may still do what it began before."""
    events = [entry.event for entry in at.step.entries]
    begun = any(isinstance(one, OffsetRead) and one.queue == queue for one in events)
    return begun and not at.step.is_alone


def walk_expired(
    at: At, event: ListenerReturned | ExpiredCleaned, at_ms: int
) -> Iterator[Moment]:
    """Record late results; yield what was left when expired messages were cleaned."""
    if isinstance(event, ListenerReturned):
        _saw_returned(at, event, at_ms)
    else:
        yield from _saw_what_is_left(at, event)


def _saw_returned(at: At, event: ListenerReturned, at_ms: int) -> None:
    """Record that a listener has ended a message after a while."""
    if not is_to_end(at, event):
        saw_failed(at, event, at_ms)
        return
    known, queue = at.known.consumption, event.queue
    unique_key = key_in(event.record)
    if at.step.crash is not None:
        known.was_cut_short(queue, unique_key)
    if known.is_of_before(queue, unique_key, event.queue_offset):
        known.consumed_before(queue, unique_key)
        return
    if begins_beside(at, queue):
        known.was_cut_short(queue, unique_key)
    known.consumed_one(queue, unique_key)
    share = known.shares.get(queue)
    if share is not None and at.step.is_undisturbed:
        known.shares[queue] = share.finishes(event.queue_offset)


def saw_failed(at: At, event: Consumed | ListenerReturned, at_ms: int) -> None:
    """Record that a listener has failed, so that its message is tried again."""
    known, queue = at.known.consumption, event.queue
    share = known.shares.get(queue)
    if share is None:
        return
    unique_key = key_in(event.record)
    kept = share.without_failed(unique_key, event.queue_offset)
    # Else the broker may have it and not have told so, or the wait may be over, or the
    # listener was called before the queue was begun anew.
    is_sure = at.step.crash is None and not at.step.sets_back
    if is_sure and not begins_beside(at, queue):
        waits = _waits_ms(at, queue.client)
        one = Failed(unique_key, event.queue_offset, at_ms, event.tries, *waits)
        kept += (one,)
    known.shares[queue] = share._replace(failed=kept)


def _waits_ms(at: At, client: str) -> tuple[int, int]:
    """How long a consumer waits, at least and at most, before it tries again.

    Source: ConsumeMessageConcurrentlyService#submitConsumeRequestLater;
    ConsumeMessageOrderlyService#submitConsumeRequestLater.
    """
    op, turns = at.known.consumption.living.get(client), _turns_of(at.step, client)
    takes_ms = max([one.takes_ms for one in turns], default=0)
    if op is None or not op.is_orderly:
        return PUT_OFF_MS, PUT_OFF_MS + takes_ms
    pauses = [pause_ms(again) for again in again_of(at.step, client)]
    # Beside others it may have to wait for a lock, too.
    most_ms = max(pauses) if pauses and at.step.is_undisturbed else PUT_OFF_MS
    return min(pauses, default=PAUSE_MS_MIN), most_ms + takes_ms


def _turns_of(step: Step, client: str) -> list[Consume]:
    turns = [one for one in step.acts if isinstance(one, Consume)]
    return [one for one in turns if one.client == client]


def again_of(step: Step, client: str) -> list[int]:
    """What a client's listener said in a step of messages that failed."""
    return [one.again for one in _turns_of(step, client)]


def saw_given_up(
    at: At, queue: OneQueue, record: bytes, at_ms: int
) -> Iterator[Moment]:
    """Record that a message was sent back; yield whether it may be, if known."""
    known, step, unique_key = at.known.consumption, at.step, key_in(record)
    share = known.shares.get(queue)
    queue_offset = decode_record(record).queue_offset
    cleans = _cleans(at, queue.client)
    if not cleans:
        results = _results(at, queue, queue_offset)
        yield FailureSentBack(*at, queue, queue_offset, results)
    if share is None:
        return
    is_one = unique_key not in known.owed.doubled and not share.was_moved
    is_one = is_one and unique_key not in share.cut_short
    if step.is_alone and is_one:
        yield GivenBackAgain(*at, queue, unique_key, unique_key in share.sent_back)
    if cleans and step.is_alone and is_one:
        begun = share.when_given(queue_offset)
        is_pulled = unique_key in share.newest | share.waiting
        if begun is not None or is_pulled:
            had_ms = None if begun is None else at_ms - begun.least_ms
            yield MessageGivenUp(*at, queue, queue_offset, had_ms)
    now = share.finishes(queue_offset)
    if cleans:
        now = now._replace(given_up=now.given_up | {unique_key})
    if step.crash is not None:
        now = now._replace(cut_short=now.cut_short | {unique_key})
    if step.is_undisturbed:
        now = now._replace(sent_back=now.sent_back | {unique_key})
    known.shares[queue] = now


def _results(at: At, queue: OneQueue, queue_offset: int) -> list[ConsumeStatus]:
    """What a listener returned for a message in the step.

    One in order fails for its whole batch, though it stops at the first failure.
    """
    known = at.known.consumption
    op = known.owner_of(queue)
    is_orderly = op is not None and op.is_orderly
    events = [entry.event for entry in at.step.entries]
    given = [one for one in events if isinstance(one, Consumed | ListenerReturned)]
    its = [one for one in given if one.queue == queue]
    return [one.status for one in its if is_orderly or one.queue_offset == queue_offset]


def _cleans(at: At, client: str) -> bool:
    """Whether a client may have given up expired messages in the step."""
    turns = [one for one in at.step.acts if isinstance(one, TurnConsumer)]
    return any(one.client == client and one.task == "clean" for one in turns)


def _saw_what_is_left(at: At, event: ExpiredCleaned) -> Iterator[Moment]:
    """Yield what a consumer had to give up of the messages that it still has first."""
    step, known = at.step, at.known.consumption
    op = known.living.get(event.client)
    if op is None or op.is_orderly or event.refused:
        return  # a listener in order may take its time
    if not step.is_undisturbed or step.sets_back:
        return
    if at.now.max_phy_offset < 0 or not at.known.setup.delivers_delayed:
        return
    began_ms = step.entries[0].at_ms
    events = [entry.event for entry in step.entries]
    sent = [one.queue for one in events if isinstance(one, SentBack)]
    for topic, queue_id, queue_offset in event.first:
        queue = OneQueue(event.client, op.group, topic, queue_id)
        share = known.shares.get(queue)
        begun = None if share is None else share.when_given(queue_offset)
        if begun is not None and share is not None and not share.was_moved:
            had_ms, given_up = began_ms - begun.most_ms, sent.count(queue)
            yield ExpiredLeft(*at, queue, queue_offset, had_ms, given_up)
