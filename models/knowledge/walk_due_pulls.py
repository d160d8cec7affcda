"""The walk through the pulls of consumers: when they were sent, and had to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.history import (
    ConsumerBegan,
    ConsumerEnded,
    ConsumerSuspended,
    Happening,
    LocksAnswered,
    MembersAnswered,
    OffsetRead,
    OffsetSent,
    OffsetsLoaded,
    OneQueue,
    PullReceived,
    PullSent,
    QueuesHeld,
    ResetTold,
    Resubscribed,
    TimePassed,
)
from crashmq.models.knowledge.consumption import Share
from crashmq.models.knowledge.due_pulls import (
    ANY_NUMBER,
    ANY_TIME,
    FLOW_CONTROL_MS,
    REFUSED_MS,
    DuePull,
    DuePulls,
    PullState,
)
from crashmq.models.knowledge.moments import At, Moment
from crashmq.models.knowledge.moments_of_consumers import (
    MoveTaken,
    PullDue,
    PullTimed,
    QueueRetaken,
)
from crashmq.models.knowledge.pull_limits import limit_of, limits_perhaps_divided
from crashmq.models.observations import Ran, Skipped
from crashmq.models.ops import Consume, TurnConsumer

_READ = ("SUCCESS", "PULL_NOT_FOUND", "PULL_RETRY_IMMEDIATELY")
_MOVED = "PULL_OFFSET_MOVED"
_OF_PULLS = frozenset(
    {
        *(ConsumerBegan, ConsumerEnded, QueuesHeld, OffsetRead, OffsetsLoaded),
        *(PullSent, PullReceived, Resubscribed, TimePassed, LocksAnswered),
        *(ConsumerSuspended, ResetTold),
    }
)


def walk_due_pulls(at: At) -> Iterator[Moment]:
    """Record what consumers pulled; yield what they pulled or had to pull."""
    step, due = at.step, at.known.progress.due
    kinds = step.kinds
    due.limits |= limits_perhaps_divided(at)
    if not due.pulls and kinds.isdisjoint(_OF_PULLS):
        return
    began_ms, now_ms = step.entries[0].at_ms, step.entries[-1].at_ms
    client = _turned(at)
    before = {
        queue: pull for queue, pull in due.pulls.items() if queue.client == client
    }
    for queue, pull in before.items():
        if pull.state == "waits" and pull.is_due(began_ms):
            due.looked_ms[queue] = began_ms
    sent: set[OneQueue] = set()
    if not kinds.isdisjoint(_OF_PULLS):
        for at_ms, _, event in step.entries:
            if isinstance(event, PullSent):
                sent.add(event.queue)
                if step.is_alone and event.queue in due.pulls:
                    least_ms = due.pulls[event.queue].least_ms
                    yield PullTimed(*at, event.queue, at_ms, least_ms)
                    due.looked_ms[event.queue] = began_ms
            elif isinstance(event, OffsetRead):
                looked_ms = due.looked_ms.pop(event.queue, None)
                if looked_ms is not None and _is_rebalance(at, event.queue):
                    yield QueueRetaken(*at, event.queue, at_ms - looked_ms)
            elif isinstance(event, ResetTold):
                due.looked_ms.pop(event.queue, None)
            elif isinstance(event, OffsetSent) and event.queue.client == client:
                to = due.moved.pop(event.queue, None)
                if to is not None:  # a pull round commits nothing else
                    yield MoveTaken(*at, event.queue, event.offset, to)
            _saw(at, due, event, at_ms)
    if step.sets_back:
        due.unsure(now_ms)
    elif not client:
        due.unsure(now_ms, _perhaps_turned(at))
    else:
        yield from _judged(at, before, sent, now_ms)
        _put_off_at_once(at, client, now_ms)


def _turned(at: At) -> str:
    """The client of which the step was a round of its pull service alone; or ""."""
    step, op = at.step, at.step.op
    is_round = isinstance(op, TurnConsumer) and op.task == "pull" and op.times > 0
    if not (is_round and isinstance(step.seen, Ran) and step.is_undisturbed):
        return ""
    assert isinstance(op, TurnConsumer), op
    return op.client if op.client in at.known.consumption.living else ""


def _is_rebalance(at: At, queue: OneQueue) -> bool:
    """Whether the step is rounds of a consumer's rebalance, and it had the queue.

    A broker that has started tells other members once it has heard of the consumer,
    which may lose a queue in one round, and get it back in the next.
    """
    step, op = at.step, at.step.op
    if not (isinstance(op, TurnConsumer) and op.task == "rebalance"):
        return False
    events = [entry.event for entry in step.entries]
    told = {one.members for one in events if isinstance(one, MembersAnswered)}
    if len(told) > 1:
        return False
    held = at.known.consumption.held.get(queue.client, ())
    return step.is_undisturbed and (queue.topic, queue.queue_id) in held


def _perhaps_turned(at: At) -> frozenset[str]:
    """The clients whose pulls are in an unknown state after the step."""
    if at.step.is_undisturbed and isinstance(at.step.seen, Ran | Skipped):
        return frozenset()
    names = [getattr(act, "client", "") for act in at.step.acts]
    return frozenset([name for name in names if name])


def _saw(at: At, due: DuePulls, event: Happening, at_ms: int) -> None:
    match event:
        case ConsumerBegan(op):
            due.forget(op.client)
            due.halfway.pop(op.client, None)
            due.suspended.pop(op.client, None)
        case ConsumerEnded(client, _, _):
            due.ended(client)
        case ConsumerSuspended(client, is_suspended):
            certain = at.step.is_undisturbed
            due.suspends(client, is_suspended=is_suspended, certain=certain)
        case QueuesHeld(client, queues):
            due.forget(client, queues)
        case OffsetRead(queue, offset):
            if _turned(at) != queue.client:
                due.moved.pop(queue, None)  # it has the queue anew, and was not sent
            elif queue in due.moved and offset >= 0:
                due.moved[queue] = min(due.moved[queue], offset)
            if not at.known.consumption.is_broadcast(queue.client):
                due.heard[queue] = at.known.consumption.life
            else:
                due.heard.pop(queue, None)  # its file need not know who told it
            locks = at.known.consumption.is_locking(queue.client)
            consumes = not at.step.is_alone and _consumes(at, queue.client)
            brought = ANY_NUMBER if consumes else 0
            # Beside its rebalance it may have told last that it had no queue yet.
            had_it = locks and _turned(at) == queue.client and queue not in due.pulls
            due.given(queue, at_ms, locks=locks, brought=brought)
            if had_it:
                due.pulls[queue] = due.pulls[queue]._replace(least_ms=ANY_TIME)
        case LocksAnswered(client, group, granted, refused):
            its = {OneQueue(client, group, *queue) for queue in (*granted, *refused)}
            due.unsure_locks -= its
            if not at.step.is_undisturbed:
                due.unsure_locks |= its
        case OffsetsLoaded():
            due.unanswered.clear()
        case PullSent(queue):
            due.sent(queue, at_ms)
        case PullReceived(queue, code=code):
            state, pause_ms = _after(at, event)
            brought = len(event.messages)
            is_sure = due.answered(queue, at_ms, brought, state, pause_ms)
            if is_sure and code in (*_READ, _MOVED):
                due.heard[queue] = at.known.consumption.life
            if code == _MOVED:
                due.was_moved(queue, at_ms, is_sure=is_sure)
                if is_sure and not at.known.consumption.is_broadcast(queue.client):
                    due.moved[queue] = event.next_begin_offset
        case Resubscribed(op, is_done):
            due.subscribes(op.client, at_ms, is_done=is_done)
        case _:
            pass


def _after(at: At, answer: PullReceived) -> tuple[PullState, int]:
    """What an answer leaves a pull request in, and for how many ms at least it waits.

    A consumer takes no pause after an answer to what it no longer subscribes, or if
    none of the messages has a tag that it subscribes, but only the same hash.
    """
    if answer.code not in _READ:
        return "refused", REFUSED_MS
    interval_ms = at.known.setup.pull_interval
    if not (interval_ms and answer.messages):
        return "waits", 0
    client = answer.queue.client
    op = at.known.consumption.living.get(client)
    takes_all = op is not None and (op.expression == "*" or op.expression_type != "TAG")
    changes = client in at.known.progress.due.halfway
    return "found", interval_ms if takes_all and not changes else 0


def _consumes(at: At, client: str) -> bool:
    """Whether a client's listener may have run in the step."""
    acts = at.step.acts
    return any(isinstance(act, Consume) and act.client == client for act in acts)


def _judged(
    at: At, before: Mapping[OneQueue, DuePull], sent: set[OneQueue], now_ms: int
) -> Iterator[Moment]:
    """What a round had to do with each pull request, given its state ``before``."""
    began_ms, due = at.step.entries[0].at_ms, at.known.progress.due
    for queue, pull in sorted(before.items()):
        if queue not in due.pulls or not pull.is_due(began_ms):
            continue
        if pull.state == "waits":
            delay_ms = 0 if queue in sent else _delay_ms(at, queue, pull)
            if not delay_ms:
                is_sent = queue in sent
                yield PullDue(*at, queue, pull.most_ms, now_ms, is_sent)
                continue
            least_ms = pull.least_ms
            if delay_ms == FLOW_CONTROL_MS and _is_full(at, queue):
                least_ms = began_ms + FLOW_CONTROL_MS
            due.pulls[queue] = pull.put_off(least_ms, now_ms + delay_ms)
        elif queue not in sent:
            gave_up, delay_ms = pull.state == "sent", REFUSED_MS
            if pull.state == "found":  # or its pause is over, and it waits for more
                interval_ms = at.known.setup.pull_interval
                delay_ms = max(interval_ms, _delay_ms(at, queue, pull))
            least_ms = began_ms + REFUSED_MS if gave_up else pull.least_ms
            due.pulls[queue] = pull.put_off(least_ms, now_ms + delay_ms)


def _put_off_at_once(at: At, client: str, now_ms: int) -> None:
    """Record requests that later rounds of the same op may have delayed."""
    due = at.known.progress.due
    for queue, pull in due.pulls.items():
        if queue.client != client or pull.state != "waits" or pull.most_ms > now_ms:
            continue
        delay_ms = _delay_ms(at, queue, pull)
        if delay_ms:
            is_full = delay_ms == FLOW_CONTROL_MS and _is_filled(at, queue)
            began_ms = at.step.entries[0].at_ms
            least_ms = began_ms + FLOW_CONTROL_MS if is_full else pull.least_ms
            due.pulls[queue] = pull.put_off(least_ms, now_ms + delay_ms)


def _delay_ms(at: At, queue: OneQueue, pull: DuePull) -> int:
    """By how long a round may delay a request, in ms; 0: not at all."""
    known, due = at.known.consumption, at.known.progress.due
    op = known.living[queue.client]
    topics = (*op.topics.split(","), RETRY_PREFIX + op.group)
    is_subscribed = queue.topic in topics and not due.halfway.get(queue.client)
    is_locked = queue not in due.unsure_locks and (
        queue in known.locks.of_clients or not known.is_locking(queue.client)
    )
    is_up = at.now.max_phy_offset >= 0
    is_suspended = queue.client in due.suspended
    if is_suspended or not (is_up and is_subscribed and is_locked):
        return REFUSED_MS  # as long as one that is suspended waits
    share = known.shares.get(queue)
    if share is None:
        return 0
    at_most = pull.brought - len(share.worked - share.cut_short)
    may_be_full = (
        share.was_moved
        or at_most > limit_of(at.known, at.step, queue.client).least
        or (not op.is_orderly and _may_lie_apart(at, queue, share, at_most))
    )
    return FLOW_CONTROL_MS if may_be_full else 0


def _may_lie_apart(at: At, queue: OneQueue, share: Share, at_most: int) -> bool:
    """Whether of ``at_most`` waiting messages some may lie more than max_span apart."""
    max_span = at.known.setup.max_span
    if share.reach <= max_span or at_most < 2:
        return False
    waiting = share.waiting | share.newest - share.worked
    places = at.known.consumption.places_of(queue, waiting, at.known.model)
    if len(places) < at_most:
        return True
    return max(places) - min(places) > max_span


def _is_filled(at: At, queue: OneQueue) -> bool:
    """Whether the newest answer alone exceeds the flow control limit."""
    share = at.known.consumption.shares.get(queue)
    if share is None or len(share.ends) != 1:
        return False
    return (
        len(share.newest - share.worked)
        > limit_of(at.known, at.step, queue.client).most
    )


def _is_full(at: At, queue: OneQueue) -> bool:
    """Whether flow control certainly stops a consumer's pulls of a queue."""
    share = at.known.consumption.shares.get(queue)
    if share is None:
        return False
    surely = share.waiting | share.newest - share.worked
    return (
        len(share.ends) < 2
        and len(surely) > limit_of(at.known, at.step, queue.client).most
    )
