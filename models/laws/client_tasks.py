"""Laws of a client's periodic tasks: each round does what is due in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from crashmq.models.history import OneQueue
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.laws.consumption import uncommitted
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Violation


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
