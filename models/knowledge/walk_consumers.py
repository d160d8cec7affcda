"""The walk through what consumers do: what they are given, pull, work off and tell."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.store_image import BadRecord, decode_record
from crashmq.models.history import (
    Consumed,
    ConsumerBegan,
    ConsumerEnded,
    Happening,
    LocksAnswered,
    LocksReturned,
    OffsetRead,
    OffsetSent,
    OneQueue,
    PullReceived,
    PullSent,
    PutAsked,
    QueuesHeld,
    SentBack,
)
from crashmq.models.knowledge.consumption import NOTHING_TOLD, Share, Taken
from crashmq.models.knowledge.moments import At, Moment, OffsetAnswered, QueueBegun
from crashmq.models.knowledge.moments_of_consumers import (
    GroupIsAt,
    LockNeeded,
    MessageConsumed,
    MessageSentBack,
    MessagesPulled,
    OffsetTold,
    PullGoesOn,
    QueueBegunAnew,
    QueueGivenBack,
)
from crashmq.models.knowledge.progress import NO_OFFSET
from crashmq.models.knowledge.walk_locks import saw_locks, saw_returned

NOT_KNOWN = -2
_NO_OFFSET = frozenset({NO_OFFSET})
RETRY = "%RETRY%"
MOVED = "PULL_OFFSET_MOVED"
"""The answer to a pull that has to begin elsewhere."""
READ = ("SUCCESS", "PULL_NOT_FOUND", "PULL_RETRY_IMMEDIATELY")
"""The answers to a pull for which the broker has read the queue."""


def walk_consumers(at: At, event: Happening, at_ms: int) -> Iterator[Moment]:
    """Take note of what a consumer did; stop where laws speak of it."""
    known = at.known.consumption
    match event:
        case ConsumerBegan(op):
            known.began(op)
        case ConsumerEnded(client, how):
            if how == "stop":
                yield from _gives_back(at, client, ())
            known.ended(client)
        case QueuesHeld(client, queues):
            yield from _gives_back(at, client, queues)
            known.holds(client, queues)
        case LocksAnswered():
            yield from saw_locks(at, event, at_ms)
        case LocksReturned(client, group, queues):
            for topic, queue_id in queues:
                queue = OneQueue(client, group, topic, queue_id)
                yield from _hands_over(at, queue, at_ms)
            saw_returned(at, event)
        case OffsetRead(queue, offset):
            yield from _needs_lock(at, queue)
            known.shares.pop(queue, None)
            known.leaving.pop(queue, None)
            known.taken[queue] = _taken(at, queue)._replace(told=offset)
        case PullSent(queue, queue_offset, commit_offset):
            yield from _needs_lock(at, queue)
            yield from _saw_pull(at, queue, queue_offset)
            if commit_offset >= 0:
                _saw_told(at, queue, commit_offset)
        case PullReceived():
            yield from _saw_answer(at, event)
            if event.kept != NOT_KNOWN:
                yield from _saw_kept(at, event.queue, event.kept)
        case Consumed():
            yield from _saw_consumed(at, event, at_ms)
        case SentBack(queue, record):
            yield _saw_sent_back(at, queue, record)
        case OffsetSent(queue, offset, kept):
            _saw_told(at, queue, offset)
            if kept != NOT_KNOWN:
                yield from _saw_kept(at, queue, kept)
                yield from _was_told(at, queue, offset, kept)
        case _:
            pass


def _taken(at: At, queue: OneQueue) -> Taken:
    known = at.known.consumption
    key, begins = known.key_of(queue), _begins(at, queue)
    if known.is_broadcast(queue.client):
        return Taken(frozenset({known.local.get(key, NO_OFFSET)}), begins, known.life)
    return Taken(at.known.progress.of(key), begins, known.life)


def _begins(at: At, queue: OneQueue) -> frozenset[int] | None:
    """Where a group without an offset may begin; None: anywhere in the queue.

    A broker may answer 0 for a queue whose first message is in memory.
    """
    op = at.known.consumption.living.get(queue.client)
    if op is None or op.where == "timestamp" or not at.step.is_alone:
        return None
    there = at.known.model.visible((queue.topic, queue.queue_id))
    begin = there.max_offset if op.where == "last" else 0
    is_retry = queue.topic.startswith(RETRY)
    return frozenset({0, begin} if is_retry or there.min_offset <= 0 else {begin})


def _saw_pull(at: At, queue: OneQueue, queue_offset: int) -> Iterator[Moment]:
    known = at.known.consumption
    share = known.shares.get(queue)
    if share is not None:
        goes_on = share.pulls(queue_offset)
        expected = (share.asked, share.next_pull)
        yield PullGoesOn(*at, queue, queue_offset, expected, len(goes_on.waiting))
        known.shares[queue] = goes_on
        return
    taken, life = known.taken.pop(queue, None), known.life
    if taken is not None:
        key = known.key_of(queue)
        possible, begins, _, was_reset, _ = taken
        yield QueueBegun(*at, key, queue_offset, possible, begins)
        is_anew = NO_OFFSET in possible and queue_offset not in possible
        is_anew = is_anew and not was_reset
        known.begins(key, queue_offset, is_anew=is_anew)
        if possible == _NO_OFFSET and taken.life == life and not was_reset:
            yield QueueBegunAnew(*at, queue, taken.told)
    known.shares[queue] = Share(
        queue_offset, queue_offset, life=life, begun=queue_offset
    )


def _saw_answer(at: At, answer: PullReceived) -> Iterator[Moment]:
    known, queue = at.known.consumption, answer.queue
    share = known.shares.get(queue)
    if share is None or share.asked != answer.queue_offset:
        return  # it has given the queue back since
    if answer.code == MOVED:
        at.known.progress.pending.pop(known.key_of(queue), None)
        again = share.begins_again(answer.next_begin_offset)
        known.shares[queue] = again._replace(life=known.life)
        return
    if answer.code not in READ:
        return
    yield MessagesPulled(*at, answer)
    known.shares[queue] = share._replace(
        next_pull=answer.next_begin_offset,
        newest=frozenset(map(key_in, answer.messages)),
        life=known.life,
    )


def _saw_told(at: At, queue: OneQueue, offset: int) -> None:
    """Take note of an offset that the broker may have taken, or not."""
    known = at.known.consumption
    key = known.key_of(queue)
    known.tells(queue, offset)
    if known.is_broadcast(queue.client):
        known.local[key] = offset
    else:
        at.known.progress.set(key, offset, is_certain=False)


def _saw_kept(at: At, queue: OneQueue, kept: int) -> Iterator[Moment]:
    progress, known = at.known.progress, at.known.consumption
    if known.is_broadcast(queue.client):
        return  # it cannot know that the log has lost its end
    key, model = known.key_of(queue), at.known.model
    passed = list(known.passed_over(key, model, kept))
    yield GroupIsAt(*at, key, kept, passed, model.next_queue_offset(key[1:]))
    if not at.step.is_alone:
        return
    is_pending = bool(progress.pending.get(key))
    yield OffsetAnswered(*at, key, kept, progress.of(key), is_pending)
    if key not in progress.pending and kept in progress.of(key):
        progress.now[key] = frozenset({kept})


def _was_told(at: At, queue: OneQueue, offset: int, kept: int) -> Iterator[Moment]:
    """Stop where a broker was told an offset that the client has from it."""
    known = at.known.consumption
    share = known.shares.get(queue)
    if share is None or share.life != known.life or known.is_broadcast(queue.client):
        return  # it may name an offset of a log that has lost its end since
    if at.known.progress.pending.get(known.key_of(queue)):
        return  # until it has heard of a reset, what it tells is dropped
    end = at.known.model.next_queue_offset((queue.topic, queue.queue_id))
    yield OffsetTold(*at, queue, offset, kept, end)


def _saw_consumed(at: At, event: Consumed, at_ms: int) -> Iterator[Moment]:
    known, queue = at.known.consumption, event.queue
    key, share = known.key_of(queue), known.shares.get(queue)
    op = known.living.get(queue.client)
    unique_key = key_in(event.record)
    is_orderly = op is not None and op.is_orderly
    passed = known.passed_over(key, at.known.model, event.queue_offset)
    pulled = share.newest | share.waiting if share is not None else ()
    locked_ms = known.locks.of_clients.get(queue)
    yield MessageConsumed(
        *at,
        event,
        share,
        unique_key,
        [one for one in passed if one.message.unique_key in pulled],
        is_orderly,
        at_ms - locked_ms if locked_ms is not None else None,
    )
    # One that broadcasts drops what it could not consume.
    drops = known.is_broadcast(queue.client) and not is_orderly
    if event.status == "success" or drops:
        known.worked_off(queue, unique_key)


def _gives_back(
    at: At, client: str, stays: tuple[tuple[str, int], ...]
) -> Iterator[Moment]:
    """Stop at each queue that a consumer gives back; but for those that it locks."""
    known, step = at.known.consumption, at.step
    if known.is_locking(client) or not step.is_alone or at.now.max_phy_offset < 0:
        return  # others may have been at work on it, or nobody could be told
    for queue in sorted(known.shares):
        if queue.client == client and (queue.topic, queue.queue_id) not in stays:
            yield _given_back(at, queue)


def _hands_over(at: At, queue: OneQueue, at_ms: int) -> Iterator[Moment]:
    """Stop where a consumer gives a lock back, unless it may be another one's now."""
    known = at.known.consumption
    if known.is_locking(queue.client):
        if known.locks.is_kept(queue, at_ms):
            yield _given_back(at, queue)
        known.leaving.pop(queue, None)


def _given_back(at: At, queue: OneQueue) -> QueueGivenBack:
    known = at.known.consumption
    until = known.worked_until(queue, at.known.model)
    return QueueGivenBack(*at, queue, known.told.get(queue, NOTHING_TOLD), until)


def _needs_lock(at: At, queue: OneQueue) -> Iterator[Moment]:
    known = at.known.consumption
    if known.is_locking(queue.client):
        yield LockNeeded(*at, queue, queue in known.locks.of_clients)


def _saw_sent_back(at: At, queue: OneQueue, record: bytes) -> MessageSentBack:
    """Take note that the broker has a message that was not consumed once more."""
    unique_key, tries = key_in(record), decode_record(record).reconsume_times
    asked = [one.event for one in at.step.entries if isinstance(one.event, PutAsked)]
    copies = [
        message
        for event in asked
        for message in event.messages
        if message.unique_key == unique_key and message.reconsume_times == tries + 1
    ]
    at.known.consumption.worked_off(queue, unique_key)
    return MessageSentBack(*at, queue, unique_key, copies)


def key_in(record: bytes) -> str:
    """The unique key of a message; "" if its record cannot be read."""
    try:
        return decode_record(record).properties.get("UNIQ_KEY", "")
    except BadRecord:
        return ""
