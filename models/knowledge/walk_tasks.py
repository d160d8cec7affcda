"""The walk through the periodic tasks of clients: what each round has to do at least.

Only rounds count that ran alone, without a failed call, while the broker was up; of
others it is known that they did no less than nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.brokers import queues_of
from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.history import (
    ConsumerMade,
    HeartbeatTaken,
    LocksAnswered,
    MembersAnswered,
    NextRebalance,
    OffsetSent,
    OneQueue,
    PullSent,
    SentBack,
)
from crashmq.models.knowledge.allocation import share_of
from crashmq.models.knowledge.consumption import NOTHING_TOLD
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.moments_of_consumers import (
    ConsumerIdle,
    ConsumerTold,
    HeartbeatOver,
    LocksRenewed,
    PullsSuspended,
    QueuePersisted,
    QueuesTaken,
    RebalanceOver,
    TaskReported,
)
from crashmq.models.knowledge.pull_limits import divide_limit
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.knowledge.subscriptions import EVERYTHING
from crashmq.models.limits import LISTENERS_AWAITED_MS
from crashmq.models.observations import Done, Ran
from crashmq.models.ops import (
    Consume,
    EndConsumer,
    Resubscribe,
    Session,
    StartConsumer,
    Together,
    TurnConsumer,
)


def walk_tasks(at: At) -> Iterator[Moment]:
    """Yield what a round of a client's task had to do."""
    op, known = at.step.op, at.known.consumption
    suspended = at.known.progress.due.suspended
    if isinstance(op, StartConsumer | Resubscribe):
        yield from _subscribed(at, op)
    if not isinstance(op, TurnConsumer) or op.times < 1:
        return
    if not _is_undisturbed(at):
        yield from _reported_to_nobody(at, op)
        yield from _asked_nobody(at, op)
        return
    one = known.living.get(op.client)
    if one is None or at.known.progress.due.halfway.get(op.client):
        return
    yield from _reported(at, op)
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


def stops_amid_its_listeners(at: At, client: str) -> bool:
    """Whether a consumer stops while its listeners run, for which it waits long enough.

    Nothing else happens in the step.
    """
    step = at.step
    if step.crash is not None or step.starts or step.fails_calls:
        return False
    acts = [act for act in step.acts if not isinstance(act, Together | Session)]
    takes = [act for act in acts if isinstance(act, Consume) and act.client == client]
    stops = [act for act in acts if act == EndConsumer(client, "stop")]
    is_brief = all(act.takes_ms < LISTENERS_AWAITED_MS for act in takes)
    return is_brief and len(stops) == 1 and len(takes) + 1 == len(acts)


def _subscribed(at: At, op: StartConsumer | Resubscribe) -> Iterator[Moment]:
    """Yield what a consumer did before its start, and had to tell of what it asks."""
    is_up = at.now.max_phy_offset >= 0
    for entry in at.step.entries if at.step.is_undisturbed else ():
        if isinstance(entry.event, ConsumerMade):
            yield ConsumerIdle(*at, entry.event.client, entry.event.work)
    if at.step.is_undisturbed and isinstance(at.step.seen, Done) and is_up:
        yield from _has_told(at, op.client)


def walk_change(at: At, client: str, queues: tuple[QueueKey, ...]) -> Iterator[Moment]:
    """Yield what a rebalance had to tell and report if it changes a client's queues."""
    divide_limit(at, client, queues)
    op, known = at.step.op, at.known.consumption
    is_rebalance = isinstance(op, TurnConsumer) and op.task == "rebalance"
    if not is_rebalance or not _is_undisturbed(at) or client not in known.living:
        return
    assert isinstance(op, TurnConsumer), op
    assert isinstance(at.step.seen, Ran), at.step.seen
    changed = {*known.held.get(client, ())} ^ {*queues}
    work = at.step.seen.work
    yield TaskReported(*at, client, op.task, work, len(changed), False)
    topics = [row[0] for row in _subscriptions_of(at, client) or ()]
    if any(topic in topics for topic, _ in changed):
        yield from _has_told(at, client)


def _has_told(at: At, client: str) -> Iterator[Moment]:
    subscribed = _subscriptions_of(at, client)
    if subscribed is None:
        return
    beats = [
        one.event.subscribed
        for one in at.step.entries
        if isinstance(one.event, HeartbeatTaken) and one.event.client == client
    ]
    yield ConsumerTold(*at, client, subscribed, beats[-1] if beats else None)


def _subscriptions_of(at: At, client: str) -> tuple[tuple[str, str, str], ...] | None:
    """The topics and expressions that a client subscribes now; None: unknown."""
    known = at.known.consumption
    one, topics = known.living.get(client), known.subscriptions.topics_told_by(client)
    if one is None or topics is None or at.known.progress.due.halfway.get(client):
        return None
    if not one.broadcasts:
        topics |= {f"{RETRY_PREFIX}{one.group}"}
    asked = known.subscriptions.asked_by
    rows = [(topic, *(asked(client, topic) or EVERYTHING)) for topic in topics]
    return tuple(sorted(rows))


def _reported(at: At, op: TurnConsumer) -> Iterator[Moment]:
    """Yield what the rounds of a task have reported, and what was seen of it."""
    assert isinstance(at.step.seen, Ran), at.step.seen
    events = [each.event for each in at.step.entries]
    match op.task:
        case "heartbeat" | "reconnect":
            seen, is_all = sum([isinstance(x, HeartbeatTaken) for x in events]), True
        case "lock":
            granted = [len(x.granted) for x in events if isinstance(x, LocksAnswered)]
            seen, is_all = sum(granted), True
        case "clean":
            seen, is_all = sum([isinstance(x, SentBack) for x in events]), True
        case "persist":
            seen, is_all = sum([isinstance(x, OffsetSent) for x in events]), False
        case "pull":
            seen, is_all = sum([isinstance(x, PullSent) for x in events]), False
        case _:
            return
    yield TaskReported(*at, op.client, op.task, at.step.seen.work, seen, is_all)


def _reported_to_nobody(at: At, op: TurnConsumer) -> Iterator[Moment]:
    """Yield what rounds have reported that a broker did not hear, or heard in part.

    Without a broker nobody takes a heartbeat or grants a lock.
    """
    seen, is_down = at.step.seen, at.now.max_phy_offset < 0
    if isinstance(seen, Ran) and at.step.is_alone:
        is_all = is_down and op.task in ("heartbeat", "reconnect", "lock")
        yield TaskReported(*at, op.client, op.task, seen.work, 0, is_all)


def _is_undisturbed(at: At) -> bool:
    step, is_up = at.step, at.now.max_phy_offset >= 0
    return step.is_undisturbed and isinstance(step.seen, Ran) and is_up


def _is_heard(at: At, one: StartConsumer) -> bool:
    heard = [each.event for each in at.step.entries]
    return any(
        isinstance(each, HeartbeatTaken)
        and (each.client, each.group) == (one.client, one.group)
        for each in heard
    )


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
    queues = queues_of(one, setup)
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
    held = _held(at, one)
    yield QueuesTaken(*at, one.client, one.group, held, share, refused)
    lacks, after_ms = {*share} - {*held}, _next_rebalance_ms(at, one.client)
    has_of_each = {topic for topic, _ in held} >= set(one.topics.split(","))
    # By a list a client has queues of others, too, for each of its topics.
    is_done = has_of_each and one.strategy != "CONFIG"
    if after_ms is not None and (lacks or is_done):
        yield RebalanceOver(*at, one.client, after_ms, not lacks)


def _next_rebalance_ms(at: At, client: str) -> int | None:
    """When the next round of a rebalance is due after the step; None: not told."""
    events = [each.event for each in at.step.entries]
    told = [one for one in events if isinstance(one, NextRebalance)]
    return told[-1].after_ms if told and told[-1].client == client else None


def _asked_nobody(at: At, op: TurnConsumer) -> Iterator[Moment]:
    """Yield what a rebalance that no broker answers leaves to the next one."""
    known, step = at.known.consumption, at.step
    is_down = at.now.max_phy_offset < 0 and step.is_alone and not step.starts
    one, due = known.living.get(op.client), at.known.progress.due
    if op.task != "rebalance" or not is_down or one is None:
        return
    is_sure = op.client not in due.suspended and not due.halfway.get(op.client)
    topics, after_ms = one.topics.split(","), _next_rebalance_ms(at, op.client)
    asks = not all(topic.startswith(RETRY_PREFIX) for topic in topics)
    if is_sure and asks and after_ms is not None:
        yield RebalanceOver(*at, op.client, after_ms, False)
