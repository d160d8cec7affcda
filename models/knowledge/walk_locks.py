"""The walk through locks of queues that consumers ask for, get and give back."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.history import LocksAnswered, LocksReturned, OneQueue
from crashmq.models.knowledge.locks import UNSURE, Lock
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.moments_of_consumers import LockAnswered


def saw_locks(at: At, answer: LocksAnswered, at_ms: int) -> Iterator[Moment]:
    """Record the answers to lock requests; yield a moment for each."""
    locks = at.known.consumption.locks
    asked = [
        *((queue, True) for queue in answer.granted),
        *((queue, False) for queue in answer.refused),
    ]
    for (topic, queue_id), is_granted in asked:
        queue = OneQueue(answer.client, answer.group, topic, queue_id)
        key = queue[1:]
        yield LockAnswered(*at, queue, is_granted, locks.of(key), at_ms)
        if is_granted:
            client = queue.client if _is_sure(at, queue) else UNSURE
            locks.granted(queue, Lock(client, at.step.entries[0].at_ms, at_ms))
        else:
            locks.refused(queue)


def saw_returned(at: At, event: LocksReturned) -> None:
    """Record locks that consumers give back."""
    for topic, queue_id in event.queues:
        queue = OneQueue(event.client, event.group, topic, queue_id)
        at.known.consumption.locks.returned(queue, is_sure=_is_sure(at, queue))


def granted_beside(at: At, client: str) -> tuple[tuple[str, int], ...]:
    """The queues whose locks a client got in a step in which others act.

    It may be about to take one, while another of its turns tells which it has.
    """
    if at.step.is_alone:
        return ()
    events = [entry.event for entry in at.step.entries]
    return tuple(
        queue
        for event in events
        if isinstance(event, LocksAnswered) and event.client == client
        for queue in event.granted
    )


def _is_sure(at: At, queue: OneQueue) -> bool:
    """Whether the broker certainly acted in the order of the step's events."""
    step = at.step
    if step.is_alone:
        return True
    if step.starts or step.crash is not None:
        return False
    place = (queue.topic, queue.queue_id)
    seen = [
        entry.event
        for entry in step.entries
        if isinstance(entry.event, LocksAnswered | LocksReturned)
        and entry.event.group == queue.group
        and place in _queues_of(entry.event)
    ]
    kinds = {type(event) for event in seen}
    # A lock may run out before its grant is told, and be granted to another.
    granted = {one.client for one in seen if isinstance(one, LocksAnswered)}
    return max(len(kinds), len(granted)) <= 1


def _queues_of(event: LocksAnswered | LocksReturned) -> tuple[tuple[str, int], ...]:
    return event.queues if isinstance(event, LocksReturned) else event.granted
