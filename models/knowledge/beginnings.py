"""Where a consumer begins a queue: with a group without an offset, or sent elsewhere.

A broker sends a consumer elsewhere that pulls an offset outside its queue.

Source: RebalancePushImpl#computePullFromWhere; PullMessageProcessor, its
PULL_OFFSET_MOVED; DefaultMessageStore#getMessage, its next_begin_offset for
OFFSET_TOO_SMALL, OFFSET_OVERFLOW_BADLY and an empty queue.
"""

from __future__ import annotations

from bisect import bisect_left

from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.history import OneQueue, PullReceived, PullSent
from crashmq.models.knowledge.consumption import Share, Taken
from crashmq.models.knowledge.facts import is_half_dispatched
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.progress import NO_OFFSET
from crashmq.models.knowledge.walk_questions import stored_times

Offsets = frozenset[int]
NOT_KNOWN = -2
HALF_AN_HOUR_MS = 30 * 60_000


def taken_at(at: At, queue: OneQueue, offset: int, kept: int) -> Taken:
    """What is known as a consumer is answered ``offset`` and asks where to begin.

    ``kept`` is the offset that the broker keeps; ``NOT_KNOWN``: that is unknown.
    """
    known = at.known.consumption
    possible = at.known.progress.of(known.key_of(queue))
    begins = _begins(at, queue, offset)
    if known.is_broadcast(queue.client):
        possible = frozenset({known.reads_file(queue, offset)})
    before = known.taken.get(queue)
    if begins is not None and before is not None and known.is_locking(queue.client):
        # It asks twice, and keeps the lower one, be it that it could not commit that.
        begins = None if before.told == NO_OFFSET else begins | {before.told}
    told = offset if kept == NOT_KNOWN else min(offset, kept)
    return Taken(possible, begins, known.life, told=told)


def _begins(at: At, queue: OneQueue, answer: int) -> frozenset[int] | None:
    """Where a group without an offset may begin; None: anywhere in the queue.

    A broker may answer 0 for a queue whose first message is in memory. If it has found
    nothing, the consumer alone decides.
    """
    op = at.known.consumption.living.get(queue.client)
    key = queue.topic, queue.queue_id
    if op is None or not at.step.is_alone or is_half_dispatched(Moment(*at), key):
        return None
    there = at.known.model.visible(key)
    # What its own consumers gave back is never too old for a group.
    is_retry = queue.topic.startswith(RETRY_PREFIX)
    begin: int | None = 0
    if op.where == "timestamp":
        begin = there.max_offset if is_retry else _half_an_hour_before(at, queue)
    elif op.where == "last" and not is_retry:
        begin = there.max_offset
    if begin is None:
        return None
    may_be_told = answer != NO_OFFSET and there.min_offset <= 0
    return frozenset({0, begin} if may_be_told else {begin})


def _half_an_hour_before(at: At, queue: OneQueue) -> int | None:
    """The first message stored since half an hour before the consumer's start.

    Source: DefaultMQPushConsumer#consumeTimestamp.
    """
    begun_ms = at.known.progress.due.begun_ms.get(queue.client)
    if begun_ms is None:
        return None
    first, times = stored_times(at, (queue.topic, queue.queue_id))
    if times != sorted(times):
        return None  # the clock was set back: a binary search may end anywhere
    return first + bisect_left(times, begun_ms - HALF_AN_HOUR_MS)


def where_it_must_go(at: At, answer: PullReceived, share: Share) -> Offsets | None:
    """Where a broker has to send the consumer of a pull; None: nowhere, or unknown.

    Its group was reset, or its offset lies past what a start has found of its queue
    since it heard of it. It is known of the first pull of the queue in a step, and if
    no other one is without an answer.
    """
    step, known, queue = at.step, at.known, answer.queue
    if not step.is_alone or step.met or step.is_unreadable or step.raised:
        return None
    events = [one.event for one in step.entries]
    sent = [one for one in events if isinstance(one, PullSent) and one.queue == queue]
    got = [one for one in events if isinstance(one, PullReceived)]
    is_first = next((one for one in got if one.queue == queue), None) is answer
    if not (sent and is_first) or known.progress.due.unanswered.get(queue, 0):
        return None
    pending = known.progress.pending.get(queue[1:])
    if pending is not None:
        return known.progress.of(queue[1:]) if pending else None
    heard, place = known.progress.due.heard.get(queue), queue[2:]
    if heard is None or heard != share.life or known.is_degraded:
        return None
    lives = known.progress.pulls.lives
    end = lives.end_since(place, heard, known.consumption.life)
    if end is None or answer.queue_offset <= end:
        return None
    if known.consumption.is_broadcast(queue.client):
        return None  # its broker may not know that it broadcasts
    consumed = frozenset({sent[0].commit_offset})
    if consumed == {-1}:
        consumed = known.progress.of(queue[1:])
    return frozenset(min(max(0, one), end) for one in consumed)


def where_moved(at: At, answer: PullReceived, share: Share) -> Offsets | None:
    """The offsets to which an answer may send its consumer; None: unknown.

    Without a pending reset it is known only if the pull was answered in the step in
    which it was sent, by a broker that the consumer has heard from in this run, or in
    one since which the queue has lost nothing before the offset, and if it is known
    what can be read of the queue.
    """
    step, known, queue = at.step, at.known, answer.queue
    consumption, key = known.consumption, queue[1:]  # resets are of groups
    if not step.is_alone or step.met or step.is_unreadable or step.raised:
        return None
    pending = known.progress.pending.get(key)
    if pending is not None:
        return known.progress.of(key) if pending else None
    sent = [one.event for one in step.entries if isinstance(one.event, PullSent)]
    if not any(one.queue == queue for one in sent):
        return None  # it was read when it came, or again since
    heard = known.progress.due.heard.get(queue)
    place, offset = (queue.topic, queue.queue_id), answer.queue_offset
    is_current = heard is not None and share.life == heard
    if is_current and heard != consumption.life:
        now, lives = consumption.life, known.progress.pulls.lives
        is_current = lives.are_good(place, offset, share.life, now)
    is_known = not (known.is_degraded or known.tampering.damaged or known.doubts(place))
    if not (is_current and is_known) or is_half_dispatched(Moment(*at), place):
        return None
    there = known.model.visible(place)
    if offset < there.min_offset:
        return frozenset({there.min_offset})
    if offset > there.max_offset:
        return frozenset({there.max_offset})
    return frozenset()
