"""The walk through consumers that are asked to consume, and their waiting messages."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.history import Consumed, ListenerReturned, OneQueue
from crashmq.models.knowledge.consumption import Share
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.moments_of_consumers import NothingToDo
from crashmq.models.knowledge.walk_due_pulls import walk_due_pulls
from crashmq.models.knowledge.walk_tasks import walk_tasks
from crashmq.models.limits import PUT_OFF_MS
from crashmq.models.observations import Ran
from crashmq.models.ops import Consume

_FAILURES = ("later", "raises", "hangs", "rollback", "suspends")
"""Results after which a consumer waits before it goes on with a queue."""


def saw_work(at: At) -> Iterator[Moment]:
    """Record what consumers were asked to do; yield what they had to do."""
    yield from walk_due_pulls(at)
    yield from walk_tasks(at)
    yield from _saw_consumption(at)


def _saw_consumption(at: At) -> Iterator[NothingToDo]:
    """Record which consumers were asked to consume; yield those that found nothing."""
    step, known = at.step, at.known.consumption
    asked_ms = at.known.progress.due.asked_ms
    asked = [one for one in step.acts if isinstance(one, Consume)]
    if not asked:
        return
    now_ms = step.entries[-1].at_ms
    op, seen = step.op, step.seen
    is_idle = isinstance(op, Consume) and isinstance(seen, Ran) and seen.work < op.times
    if is_idle and step.is_alone:
        assert isinstance(op, Consume), op
        before_ms = asked_ms.get(op.client)
        put_off_ms = None if before_ms is None else now_ms - before_ms
        for queue, share in sorted(known.shares.items()):
            if queue.client == op.client and _can_work_on(at, queue, share, now_ms):
                waiting = tuple(sorted(share.waiting - share.uncommitted))
                due_ms = _due_after_ms(share, before_ms)
                yield NothingToDo(*at, queue, waiting, put_off_ms, due_ms)
    for one in asked:
        asked_ms[one.client] = max([entry.at_ms for entry in step.entries])


def _due_after_ms(share: Share, asked_ms: int | None) -> int:
    """How long after its consumer was asked last a queue is put off at most.

    If something has failed then, as long as that has to wait.
    """
    waits = [one.most_ms for one in share.failed if one.at_ms == asked_ms]
    return max(waits, default=PUT_OFF_MS)


def _can_work_on(at: At, queue: OneQueue, share: Share, now_ms: int) -> bool:
    """Whether a consumer certainly may consume a queue, and has not just failed."""
    known = at.known.consumption
    is_held = (queue.topic, queue.queue_id) in known.held.get(queue.client, ())
    if not is_held or share.was_moved:
        return False
    events = [entry.event for entry in at.step.entries]
    given = [one for one in events if isinstance(one, Consumed | ListenerReturned)]
    if any(one.status in _FAILURES for one in given if one.queue == queue):
        return False
    if not known.is_locking(queue.client):
        return True
    return known.locks.is_lasting(queue, now_ms)
