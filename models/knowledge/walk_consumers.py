"""The walk through what consumers do: what they are given, pull, work off and tell."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from crashmq.models.appended import Appended
from crashmq.models.files.store_image import BadRecord, decode_record
from crashmq.models.history import (
    Consumed,
    ConsumerBegan,
    ConsumerEnded,
    Happening,
    OffsetRead,
    OffsetSent,
    OneQueue,
    PullReceived,
    PullSent,
    QueuesHeld,
)
from crashmq.models.knowledge.consumption import Share
from crashmq.models.knowledge.moments import At, Moment, OffsetAnswered, QueueBegun
from crashmq.models.knowledge.moments_of_consumers import (
    MessageConsumed,
    OffsetKeptThen,
    OffsetTold,
    PullGoesOn,
)
from crashmq.models.knowledge.reference import QueueKey, ReferenceModel

NOT_KNOWN = -2
MOVED = "PULL_OFFSET_MOVED"
"""The answer to a pull that has to begin elsewhere."""


def walk_consumers(at: At, event: Happening) -> Iterator[Moment]:
    """Take note of what a consumer did; stop where laws speak of it."""
    known = at.known.consumption
    match event:
        case ConsumerBegan(op):
            known.began(op)
        case ConsumerEnded(client):
            known.ended(client)
        case QueuesHeld(client, queues):
            known.holds(client, queues)
        case OffsetRead(queue):
            known.shares.pop(queue, None)
        case PullSent(queue, queue_offset, commit_offset):
            yield from _saw_pull(at, queue, queue_offset)
            if commit_offset >= 0:
                yield from _saw_told(at, queue, commit_offset)
        case PullReceived():
            _saw_answer(at, event)
            if event.kept != NOT_KNOWN:
                yield from _saw_kept(at, event.queue, event.kept)
        case Consumed():
            yield from _saw_consumed(at, event)
        case OffsetSent(queue, offset, kept):
            yield from _saw_told(at, queue, offset)
            if kept != NOT_KNOWN:
                yield from _saw_kept(at, queue, kept)
        case _:
            pass


def _saw_pull(at: At, queue: OneQueue, queue_offset: int) -> Iterator[Moment]:
    known = at.known.consumption
    share = known.shares.get(queue)
    if share is not None:
        waiting = len(share.waiting)
        yield PullGoesOn(*at, queue, queue_offset, share.next_pull, waiting)
        return
    key = known.key_of(queue)
    if not known.is_broadcast(queue.client):
        possible = at.known.progress.of(key)
        end = at.known.model.next_queue_offset(key[1:])
        yield QueueBegun(*at, key, queue_offset, possible, end)
        is_anew = -1 in possible and queue_offset not in possible
        known.begins(key, queue_offset, is_anew=is_anew)
    known.shares[queue] = Share(queue_offset)


def _saw_answer(at: At, answer: PullReceived) -> None:
    known, queue = at.known.consumption, answer.queue
    share = known.shares.get(queue)
    if share is None or share.next_pull != answer.queue_offset:
        return  # it has given the queue back since
    if answer.code == MOVED:
        at.known.progress.pending.pop(known.key_of(queue), None)
        known.shares[queue] = Share(answer.next_begin_offset)
        return
    pulled = {_key_in(record) for record in answer.messages}
    known.shares[queue] = share._replace(
        next_pull=answer.next_begin_offset,
        waiting=share.waiting | (pulled - share.worked),
    )


def _saw_told(at: At, queue: OneQueue, offset: int) -> Iterator[Moment]:
    known = at.known.consumption
    key = known.key_of(queue)
    passed = list(known.passed_over(key, at.known.model, offset))
    yield OffsetTold(*at, key, offset, passed)
    if not known.is_broadcast(queue.client):
        at.known.progress.set(key, offset, is_certain=False)


def _saw_kept(at: At, queue: OneQueue, kept: int) -> Iterator[Moment]:
    progress, key = at.known.progress, at.known.consumption.key_of(queue)
    if not at.step.is_alone:
        return
    is_pending = bool(progress.pending.get(key))
    yield OffsetAnswered(*at, key, kept, progress.of(key), is_pending)
    if key not in progress.pending and kept in progress.of(key):
        progress.now[key] = frozenset({kept})
    end = at.known.model.next_queue_offset(key[1:])
    yield OffsetKeptThen(*at, key, kept, end)


def _saw_consumed(at: At, event: Consumed) -> Iterator[Moment]:
    known, queue = at.known.consumption, event.queue
    key, share = known.key_of(queue), known.shares.get(queue)
    op = known.living.get(queue.client)
    unique_key = _key_in(event.record)
    is_orderly = op is not None and op.is_orderly
    yield MessageConsumed(
        *at,
        event,
        _appended_at(at.known.model, key[1:], event.queue_offset),
        list(known.passed_over(key, at.known.model, event.queue_offset)),
        share is not None and unique_key in share.worked,
        is_orderly,
    )
    if event.status == "success":
        known.worked_off(queue, unique_key)


def _appended_at(model: ReferenceModel, key: QueueKey, offset: int) -> Appended | None:
    queue = model.queues.get(key, [])
    at = bisect_left(queue, offset, key=lambda one: one.queue_offset)
    found = queue[at] if at < len(queue) else None
    return found if found is not None and found.queue_offset == offset else None


def _key_in(record: bytes) -> str:
    """The unique key of a message; "" if its record cannot be read."""
    try:
        return decode_record(record).properties.get("UNIQ_KEY", "")
    except BadRecord:
        return ""
