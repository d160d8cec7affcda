"""Laws of the pull loop: a consumer pulls in time, and no more often than that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crashmq.models.history import OneQueue
from crashmq.models.laws.registry import law
from crashmq.models.limits import PULL_MAX_IDLE_MS
from crashmq.models.verdict import Violation


@law(
    "CON-21",
    "a round of a consumer's pull service pulls every queue whose time has come: 500 "
    "ms after the queue was assigned, at once after an answer, or pullInterval after "
    "one with messages, 50 ms after flow control, 1 s after an error or a missing "
    "lock, 31 s after a pull without an answer",
    catalogue="I12 I19",
)
def a_due_queue_is_pulled(
    queue: OneQueue, due_ms: int, now_ms: int, *, is_sent: bool
) -> Iterator[Violation]:
    """Otherwise its messages wait until the pull expires after two minutes.

    Asked of queues that are locked if they have to be, subscribed, and not full, while
    the broker is up.

    Source: PullMessageService#run, DefaultMQPushConsumerImpl#pullMessage.
    """
    if not is_sent:
        late = f"it does not pull at {now_ms} ms"
        yield Violation(queue.name, late, f"a pull: one is due since {due_ms} ms")


@law(
    "CON-30",
    "a suspended consumer sends no pull until it is resumed",
    catalogue="I12",
)
def a_suspended_consumer_does_not_pull(
    client: str, pulled: Sequence[OneQueue]
) -> Iterator[Violation]:
    """Otherwise it takes messages that its application does not want now.

    ``pulled`` are the queues that it has pulled in a round.

    Source: DefaultMQPushConsumerImpl#suspend, #pullMessage.
    """
    for queue in pulled:
        yield Violation(client, f"suspended, it pulls {queue.name}", "no pull")


@law(
    "CON-33",
    "a consumer goes on with a queue that it is assigned: a rebalance begins the queue "
    "again only if no round of the pull service has looked at it for two minutes",
    catalogue="I12 I19",
)
def an_assigned_queue_is_kept(queue: OneQueue, idle_ms: int) -> Iterator[Violation]:
    """Otherwise what it has pulled and not consumed is pulled, and consumed, again.

    ``idle_ms`` is the time since a round last looked at the queue, at most. Not asked
    once the broker has told the consumer to begin elsewhere.

    Source: RebalanceImpl#updateProcessQueueTableInRebalance,
    ProcessQueue#isPullExpired, which counts a pull that has to wait, too.
    """
    if idle_ms <= PULL_MAX_IDLE_MS:
        again = f"it begins the queue again {idle_ms} ms after a round looked at it"
        yield Violation(queue.name, again, f"not within {PULL_MAX_IDLE_MS} ms")


@law(
    "CON-22",
    "a consumer has one pull of a queue outstanding at a time, and sends the next no "
    "sooner than 500 ms after the queue was assigned, pullInterval after an answer "
    "with messages, 50 ms after flow control, 1 s after an error or a missing lock, "
    "31 s after a pull without an answer",
    catalogue="I12",
)
def no_queue_is_pulled_too_soon(
    queue: OneQueue, at_ms: int, least_ms: int
) -> Iterator[Violation]:
    """Otherwise it loads a broker that refuses, or pulls what is on its way to it.

    Source: PullRequest, of which a queue has one; #executePullRequestLater.
    """
    if at_ms < least_ms:
        soon = f"it pulls at {at_ms} ms"
        yield Violation(queue.name, soon, f"not before {least_ms} ms")
