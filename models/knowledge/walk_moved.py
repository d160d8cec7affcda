"""Where a broker may send a consumer that pulls an offset outside its queue.

Source: PullMessageProcessor, PULL_OFFSET_MOVED; DefaultMessageStore#getMessage, its
next_begin_offset for OFFSET_TOO_SMALL, OFFSET_OVERFLOW_BADLY and an empty queue.
"""

from __future__ import annotations

from crashmq.models.history import PullReceived, PullSent
from crashmq.models.knowledge.consumption import Share
from crashmq.models.knowledge.facts import is_half_dispatched
from crashmq.models.knowledge.moments import At, Moment

Offsets = frozenset[int]


def where_moved(at: At, answer: PullReceived, share: Share) -> Offsets | None:
    """The offsets to which an answer may send its consumer; None: unknown.

    Without a pending reset it is known only if the pull was answered in the step in
    which it was sent, by a broker that the consumer has heard from in this run, and if
    it is known what can be read of the queue.
    """
    step, known, queue = at.step, at.known, answer.queue
    consumption, key = known.consumption, known.consumption.key_of(queue)
    if not step.is_alone or step.met or step.is_unreadable or step.raised:
        return None
    pending = known.progress.pending.get(key)
    if pending is not None:
        return known.progress.of(key) if pending else None
    sent = [one.event for one in step.entries if isinstance(one.event, PullSent)]
    if not any(one.queue == queue for one in sent):
        return None  # it was read when it came, or again since
    heard = known.progress.due.heard.get(queue)
    is_current = share.life == heard == consumption.life
    place = (queue.topic, queue.queue_id)
    is_known = not (known.is_degraded or known.tampering.damaged or known.doubts(place))
    if not (is_current and is_known) or is_half_dispatched(Moment(*at), place):
        return None
    there = known.model.visible(place)
    if answer.queue_offset < there.min_offset:
        return frozenset({there.min_offset})
    if answer.queue_offset > there.max_offset:
        return frozenset({there.max_offset})
    return frozenset()
