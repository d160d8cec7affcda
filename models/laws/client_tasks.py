"""Laws of a client's periodic tasks: each round does what is due in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from crashmq.models.history import OneQueue
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.laws.consumption import uncommitted
from crashmq.models.laws.registry import law
from crashmq.models.limits import REBALANCE_AGAIN_MS, REBALANCE_MS
from crashmq.models.verdict import Violation

Rows: TypeAlias = tuple[tuple[str, str, str], ...]
"""Topics with their expressions and the types of these, sorted."""


def _names(queues: Collection[QueueKey]) -> str:
    named = [f"{topic}/{queue_id}" for topic, queue_id in sorted(queues)]
    return ", ".join(named) or "no queue"


@law(
    "CON-23",
    "a heartbeat round tells the broker that the client lives, and a lock round asks "
    "for the lock of each queue that the consumer works on",
    catalogue="I12 I19",
)
def a_client_renews_what_runs_out(
    client: str, missing: Sequence[str]
) -> Iterator[Violation]:
    """``missing`` is what a round had to ask the broker for and did not.

    Source: MQClientInstance#sendHeartbeatToAllBroker, RebalanceImpl#lockAll.
    """
    if missing:
        told = ", ".join(missing)
        yield Violation(client, f"its round leaves out {told}", "a request for it")


@law(
    "CON-24",
    "a round that persists a consumer's offsets commits all that it has consumed of "
    "each queue without a gap",
    catalogue="I12 I19",
)
def a_persist_round_commits_progress(
    queue: OneQueue, told: int, worked_until: int
) -> Iterator[Violation]:
    """Otherwise those messages are consumed again after the client's end.

    Args:
        queue: the queue, with its group and client.
        told: the newest offset that the consumer has committed; -1: none.
        worked_until: the end of what it has consumed without a gap.

    Source: MQClientInstance#persistAllConsumerOffset.
    """
    yield from uncommitted(queue, told, worked_until)


@law(
    "CON-25",
    "after a rebalance round a consumer works on the queues that its strategy assigns "
    "to it among the members it was told, if their locks are granted, and on no others",
    catalogue="I12 I19",
)
def a_rebalance_round_takes_the_share(
    client: str,
    held: Collection[QueueKey],
    share: Collection[QueueKey],
    refused: Collection[QueueKey],
) -> Iterator[Violation]:
    """A queue that several or none work on is consumed twice, or not at all.

    Args:
        client: the consumer.
        held: the queues that it works on.
        share: those that its strategy assigns to it.
        refused: those whose locks it did not get in that round.

    Source: RebalanceImpl#rebalanceByTopic, AllocateMessageQueueStrategy#allocate.
    """
    too_many = {*held} - {*share}
    too_few = {*share} - {*held} - {*refused}
    if too_many or too_few:
        yield Violation(client, f"it works on {_names(held)}", _names(share))


@law(
    "CON-41",
    "a consumer rebalances again after 20 s or, if it could not ask its broker or did "
    "not get a queue of its own, after one",
    catalogue="I19",
)
def a_rebalance_is_repeated_in_time(
    client: str, after_ms: int, *, is_done: bool
) -> Iterator[Violation]:
    """Otherwise its queues stand still for long, or its broker is asked without need.

    Source: RebalanceService#run, MQClientInstance#doRebalance.
    """
    expected = REBALANCE_MS if is_done else REBALANCE_AGAIN_MS
    if after_ms != expected:
        how = "all that it should have" if is_done else "less than it should have"
        told = f"with {how}, it rebalances again after {after_ms} ms"
        yield Violation(client, told, f"{expected} ms")


@law(
    "CON-31",
    "a consumer that its broker tells to begin a queue elsewhere commits that offset "
    "next",
    catalogue="I12 I19",
)
def a_consumer_begins_where_it_is_told(
    queue: OneQueue, told: int, sent: int
) -> Iterator[Violation]:
    """``told`` is where, ``sent`` the next offset that it commits for the queue.

    Source: MQClientInstance#resetOffset.
    """
    if sent != told:
        yield Violation(queue.name, f"it commits {sent}", f"{told}, as it was told")


@law(
    "CON-36",
    "a consumer that starts, subscribes something else, or comes to have other queues "
    "tells its broker at once what it subscribes",
    catalogue="I12",
)
def a_consumer_tells_what_it_subscribes(
    client: str, subscribed: Rows, told: Rows | None
) -> Iterator[Violation]:
    """Otherwise the broker lists or filters it as it was, until the next heartbeat.

    ``told`` is what its last heartbeat in the step named; None: there was none.

    Source: DefaultMQPushConsumerImpl#start, #subscribe, RebalancePushImpl
    #messageQueueChanged; #unsubscribe tells nothing in RocketMQ.
    """
    if told is None:
        yield Violation(client, "it sends no heartbeat", _rows(subscribed))
    elif told != subscribed:
        yield Violation(client, f"its heartbeat has {_rows(told)}", _rows(subscribed))


def _rows(subscribed: Rows) -> str:
    told = [f"{topic} by {expression!r}" for topic, expression, _ in subscribed]
    return ", ".join(told) or "no topic"


@law(
    "CON-37",
    "a consumer that stops waits for its listeners alone: while none runs, for nothing",
    catalogue="I19",
)
def a_stop_waits_for_nothing_else(client: str, took_ms: int) -> Iterator[Violation]:
    """``took_ms`` is how long the stop took while no listener ran.

    Source: ThreadUtils#shutdownGracefully, awaitTerminateMillisWhenShutdown.
    """
    if took_ms > 0:
        yield Violation(client, f"it takes {took_ms} ms to stop", "no wait")


@law(
    "CON-38",
    "a round of a client's task reports its work: at least what its broker has seen of "
    "it, and of heartbeats, locks and messages given up no more than that",
    catalogue="I19",
)
def a_client_reports_its_rounds(
    client: str, task: str, work: int, seen: int, *, is_all: bool
) -> Iterator[Violation]:
    """Its host turns a service again until there is no more work.

    Args:
        client: the consumer.
        task: whose rounds ran.
        work: what they reported.
        seen: what is known of it: heartbeats taken, locks granted, offsets committed,
            pulls sent, queues taken or given up, messages sent back.
        is_all: nothing else counts.

    Source: ServiceThread, which ends its wait where there is work.
    """
    if work < seen or (is_all and work > seen):
        least = "" if is_all else " at least"
        yield Violation(client, f"{task} reports {work}", f"{seen}{least}")


@law(
    "CON-39",
    "before a consumer has started, and once it has stopped, a round of its services "
    "does nothing",
    catalogue="I12 I19",
)
def a_stopped_consumer_does_nothing(client: str, work: int) -> Iterator[Violation]:
    """``work`` is what a round of each service has done.

    Otherwise it pulls, or takes queues, that nobody knows it has, or that belong to
    others by now.

    Source: DefaultMQPushConsumerImpl#start, #shutdown, its serviceState.
    """
    if work:
        yield Violation(client, f"it does not run and does {work}", "nothing")
