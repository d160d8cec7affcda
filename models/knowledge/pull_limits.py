"""How many messages of a queue may wait before a consumer stops pulling it."""

from __future__ import annotations

from crashmq.models.files.record import RETRY_PREFIX
from crashmq.models.history import Step
from crashmq.models.knowledge.due_pulls import PullLimit
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.knowledge.moments import At
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.ops import TurnConsumer


def limit_of(known: Knowledge, step: Step, client: str) -> PullLimit:
    """How many messages of a queue may wait before a consumer stops pulling it."""
    threshold = known.setup.pull_threshold
    its = PullLimit(threshold, threshold)
    limit = known.progress.due.limits.get(client, its)
    if client in _perhaps_divided(known, step):
        limit = limit.may_become(PullLimit(1, max(known.setup.topic_threshold, 1)))
    return limit


def limits_perhaps_divided(at: At) -> dict[str, PullLimit]:
    """The limits of clients that may have divided them in the step, by client."""
    clients = sorted(_perhaps_divided(at.known, at.step))
    return {one: limit_of(at.known, at.step, one) for one in clients}


def _perhaps_divided(known: Knowledge, step: Step) -> frozenset[str]:
    """The clients whose limits may change in the step in ways that are unknown."""
    if known.setup.topic_threshold < 0 or step.is_undisturbed:
        return frozenset()
    turns = [one for one in step.acts if isinstance(one, TurnConsumer)]
    return frozenset([one.client for one in turns if one.task == "rebalance"])


def divide_limit(at: At, client: str, queues: tuple[QueueKey, ...]) -> None:
    """Record that a consumer's queues are now ``queues``, which may change its limit.

    Only a rebalance changes it, and only if queues of a subscribed topic came or went.
    Then those of topics that are subscribed no more may still have counted.
    """
    threshold, op = at.known.setup.topic_threshold, at.step.op
    is_rebalance = isinstance(op, TurnConsumer) and op.task == "rebalance"
    if threshold < 0 or not (is_rebalance and at.step.is_undisturbed):
        return
    due, known = at.known.progress.due, at.known.consumption
    before, one = known.held.get(client, ()), known.living.get(client)
    now = PullLimit.divided(threshold, len(queues), len({*before, *queues}))
    topics = () if one is None else (*one.topics.split(","), RETRY_PREFIX + one.group)
    if not any(topic in topics for topic, _ in {*before} ^ {*queues}):
        now = limit_of(at.known, at.step, client).may_become(now)
    due.limits[client] = now
