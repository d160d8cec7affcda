"""The walk through the periodic tasks of clients: what each round has to do at least.

Only rounds count that ran alone, without a failed call, while the broker was up.
"""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.history import (
    HeartbeatTaken,
    LocksAnswered,
    MembersAnswered,
    OneQueue,
    PullSent,
)
from crashmq.models.knowledge.allocation import share_of
from crashmq.models.knowledge.consumption import NOTHING_TOLD, queues_of
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.moments_of_consumers import (
    HeartbeatOver,
    LocksRenewed,
    PullsSuspended,
    QueuePersisted,
    QueuesTaken,
)
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.observations import Ran
from crashmq.models.ops import StartConsumer, TurnConsumer


def walk_tasks(at: At) -> Iterator[Moment]:
    """Yield what a round of a client's task had to do."""
    op, known = at.step.op, at.known.consumption
    suspended = at.known.progress.due.suspended
    if not isinstance(op, TurnConsumer) or op.times < 1 or not _is_undisturbed(at):
        return
    one = known.living.get(op.client)
    if one is None or at.known.progress.due.halfway.get(op.client):
        return
    match op.task:
        case "heartbeat":
            yield HeartbeatOver(*at, one.client, one.group, _is_heard(at, one))
        case "lock" if known.is_locking(op.client):
            yield LocksRenewed(*at, one.client, _held(at, one), _asked_locks(at))
        case "persist":
            yield from _persisted(at, one)
        case "pull" if suspended.get(op.client) and op.times:
            yield PullsSuspended(*at, one.client, _pulled(at))
        case "rebalance" if op.client not in suspended:
            yield from _rebalanced(at, one)
        case _:
            pass


def _is_undisturbed(at: At) -> bool:
    step, is_up = at.step, at.now.max_phy_offset >= 0
    return step.is_undisturbed and isinstance(step.seen, Ran) and is_up


def _is_heard(at: At, one: StartConsumer) -> bool:
    heard = [each.event for each in at.step.entries]
    return HeartbeatTaken(one.client, one.group) in heard


def _held(at: At, one: StartConsumer) -> tuple[QueueKey, ...]:
    return at.known.consumption.held.get(one.client, ())


def _asked_locks(at: At) -> frozenset[QueueKey]:
    answers = [each.event for each in at.step.entries]
    return frozenset(
        [
            queue
            for answer in answers
            if isinstance(answer, LocksAnswered)
            for queue in (*answer.granted, *answer.refused)
        ]
    )


def _pulled(at: At) -> tuple[OneQueue, ...]:
    events = [each.event for each in at.step.entries]
    return tuple([each.queue for each in events if isinstance(each, PullSent)])


def _persisted(at: At, one: StartConsumer) -> Iterator[Moment]:
    known = at.known.consumption
    for topic, queue_id in _held(at, one):
        queue = OneQueue(one.client, one.group, topic, queue_id)
        until = known.worked_until(queue, at.known.model)
        if until >= 0:
            told = known.told.get(queue, NOTHING_TOLD)
            yield QueuePersisted(*at, queue, told, until)


def _rebalanced(at: At, one: StartConsumer) -> Iterator[Moment]:
    setup = at.known.setup
    events = [each.event for each in at.step.entries]
    told = {each.members for each in events if isinstance(each, MembersAnswered)}
    if not one.broadcasts and (len(told) != 1 or not all(told)):
        return  # it knows nobody, or not all of its topics the same
    members = () if one.broadcasts else next(iter(told))
    queues = queues_of(one, setup.topic_queues)
    share: frozenset[QueueKey] = frozenset()
    for topic in sorted({queue[0] for queue in queues}):
        its = [queue for queue in queues if queue[0] == topic]
        share |= share_of(one, its, members, setup)
    refused = {
        queue
        for each in events
        if isinstance(each, LocksAnswered)
        for queue in each.refused
    }
    yield QueuesTaken(*at, one.client, one.group, _held(at, one), share, refused)
