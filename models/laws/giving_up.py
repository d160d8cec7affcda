"""Laws of messages that a listener has for too long: their consumer gives them up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crashmq.models.history import OneQueue
from crashmq.models.laws.registry import law
from crashmq.models.ops import ConsumeStatus
from crashmq.models.verdict import Violation

CONSUME_TIMEOUT_MS = 15 * 60_000
"""Source: DefaultMQPushConsumer#consumeTimeout, in minutes."""
A_QUEUE_MAX = 16
"""So many messages of a queue a round gives up; source: #cleanExpiredMsg."""


@law(
    "CON-27",
    "a round that cleans expired messages gives up the first messages of each queue "
    "that the listener has had for longer than consumeTimeout, 16 of a queue at most",
    catalogue="I12 I19",
)
def what_has_expired_is_given_up(
    queue: OneQueue, queue_offset: int, had_ms: int, given_up: int
) -> Iterator[Violation]:
    """Otherwise they hold back the queue's offset, and nobody else gets them.

    Args:
        queue: the queue, with its group and client.
        queue_offset: of the first message that the consumer has after the round.
        had_ms: for how long its listener has had it, at least.
        given_up: how many messages of the queue the round has sent back.

    Source: ProcessQueue#cleanExpiredMsg.
    """
    if had_ms > CONSUME_TIMEOUT_MS and given_up < A_QUEUE_MAX:
        yield Violation(
            queue.name,
            f"message {queue_offset} stays, which its listener has had {had_ms} ms",
            f"it is given up after {CONSUME_TIMEOUT_MS} ms",
        )


@law(
    "CON-28",
    "a consumer gives up a message only after its listener has had it for longer than "
    "consumeTimeout",
    catalogue="I12",
)
def nothing_is_given_up_too_soon(
    queue: OneQueue, queue_offset: int, had_ms: int | None
) -> Iterator[Violation]:
    """Otherwise messages are consumed twice, and end as dead letters.

    ``had_ms`` is for how long its listener has had it, at most; None: never.

    Source: ProcessQueue#cleanExpiredMsg, ConsumeRequest#run, its start time.
    """
    if had_ms is None or had_ms <= CONSUME_TIMEOUT_MS:
        told = "that it never had" if had_ms is None else f"it has had {had_ms} ms"
        yield Violation(
            f"{queue.name}, message {queue_offset}",
            f"it is given up by a listener {told}",
            f"after {CONSUME_TIMEOUT_MS} ms",
        )


@law(
    "CON-29",
    "a consumer sends back a message once, whatever its listener returns after the "
    "message was given up",
    catalogue="I12",
)
def nothing_is_sent_back_twice(
    queue: OneQueue, unique_key: str, *, again: bool
) -> Iterator[Violation]:
    """Otherwise the group gets each of the copies, and these multiply.

    Source: ConsumeMessageConcurrentlyService#processConsumeResult, its
    containsMessage.
    """
    if again:
        where = f"{queue.name}, {unique_key}"
        yield Violation(where, "it is sent back a second time", "once")


@law(
    "CON-32",
    "a consumer sends back only messages that its listener has failed to consume, or "
    "has had for too long",
    catalogue="I12",
)
def only_what_failed_is_sent_back(
    queue: OneQueue, queue_offset: int, results: Sequence[ConsumeStatus]
) -> Iterator[Violation]:
    """``results`` are what the listener returned for the message in this step.

    Otherwise the group consumes again what it has consumed.

    Source: ConsumeMessageConcurrentlyService#processConsumeResult, its ackIndex.
    """
    if not any(result in ("later", "raises", "suspends") for result in results):
        told = f"its listener returned {', '.join(results) or 'nothing'}"
        where = f"{queue.name}, message {queue_offset}"
        yield Violation(where, f"it is sent back; {told}", "later, or an exception")
