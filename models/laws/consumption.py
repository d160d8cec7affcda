"""Laws of consumers: no message is skipped, forgotten or consumed twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crashmq.models.appended import Appended
from crashmq.models.files.offsets import OffsetKey
from crashmq.models.files.record import DLQ_PREFIX, RETRY_PREFIX
from crashmq.models.history import OneQueue
from crashmq.models.knowledge.consumption import Share
from crashmq.models.knowledge.locks import LOCK_MS, NOBODY, UNSURE, Lock
from crashmq.models.knowledge.reference import QueueKey
from crashmq.models.laws.registry import law
from crashmq.models.limits import PUT_OFF_MS
from crashmq.models.messages import MessageToPut
from crashmq.models.verdict import Violation


def _name(key: OffsetKey) -> str:
    group, topic, queue_id = key
    return f"{group} on {topic}/{queue_id}"


def _messages(passed: Sequence[Appended]) -> str:
    first = passed[0]
    more = f" and {len(passed) - 1} more" if len(passed) > 1 else ""
    return f"message {first.queue_offset} ({first.message.unique_key}){more}"


def uncommitted(queue: OneQueue, told: int, worked_until: int) -> Iterator[Violation]:
    """A violation if a consumer has committed less than it has consumed."""
    if told < worked_until:
        seen = f"offset {told}" if told >= 0 else "no offset"
        yield Violation(queue.name, f"{seen} is committed", f"offset {worked_until}")


@law(
    "CON-1",
    "the offset that a broker stores for a group never skips a message that the group "
    "has not consumed",
    catalogue="I12",
)
def no_offset_passes_a_message(
    key: OffsetKey, offset: int, passed: Sequence[Appended]
) -> Iterator[Violation]:
    """``passed`` are the messages below ``offset`` that no consumer has consumed.

    Asked whenever a consumer of the group has committed.

    Source: ProcessQueue#removeMessage, ConsumeMessageConcurrentlyService.
    """
    if passed:
        yield Violation(
            _name(key),
            f"offset {offset} is kept before {_messages(passed)} is consumed",
            f"at most offset {passed[0].queue_offset}",
        )


@law(
    "CON-2",
    "once the consumers of a group have nothing left to do, the group has consumed "
    "every message from its begin on that matches its subscription and has not "
    "expired",
    catalogue="I12",
)
def every_message_is_consumed(
    key: OffsetKey, left: Sequence[Appended]
) -> Iterator[Violation]:
    """``left`` are the messages of a queue that no consumer of the group has consumed.

    Source: RocketMQ's promise of delivery at least once.
    """
    if left:
        yield Violation(_name(key), f"{_messages(left)} was never consumed", "consumed")


@law(
    "CON-3",
    "a consumer's next pull of a queue begins where its last pull of that queue ended",
    catalogue="I12 I16",
)
def a_pull_goes_on(
    queue: OneQueue, queue_offset: int, expected: Sequence[int]
) -> Iterator[Violation]:
    """A pull may also repeat the last one, whose answer came too late or never.

    Args:
        queue: the queue, with its group and client.
        queue_offset: where it pulls from.
        expected: where its last pull began, and where the answers to it ended.

    Source: PullRequest#nextOffset, DefaultMQPushConsumerImpl#pullMessage.
    """
    if queue_offset not in expected:
        begun, *ended = expected
        told = [f"{one}" for one in (*ended, begun)]
        yield Violation(
            queue.name, f"it pulls from {queue_offset}", f"from {', or '.join(told)}"
        )


@law(
    "CON-4",
    "a listener is given only messages that its consumer's pulls of the queue have "
    "returned",
    catalogue="I3 I12",
)
def only_what_was_pulled_is_consumed(
    queue: OneQueue, queue_offset: int, unique_key: str, share: Share
) -> Iterator[Violation]:
    """Looks the message's unique key up in what the consumer's pulls have returned.

    Source: ProcessQueue#putMessage, ConsumeRequest#run.
    """
    if unique_key not in share.newest | share.waiting | share.worked:
        yield Violation(
            f"{queue.name}, message {queue_offset}",
            f"{unique_key or 'no message'} is given",
            "a message of its pulls",
        )


@law(
    "CON-5",
    "an orderly listener is given a message of a queue only after all earlier ones "
    "are consumed",
    catalogue="I12",
)
def an_orderly_consumer_is_given_the_next_message(
    queue: OneQueue, queue_offset: int, passed: Sequence[Appended]
) -> Iterator[Violation]:
    """``passed`` are the earlier messages of the queue that are not consumed yet.

    Source: ProcessQueue#takeMessages, ConsumeMessageOrderlyService.
    """
    if passed:
        yield Violation(
            queue.name,
            f"message {queue_offset} is given before {_messages(passed)}",
            f"message {passed[0].queue_offset}",
        )


@law(
    "CON-6",
    "a consumer is given a message that it has already consumed only if it gave up "
    "the queue in between",
    catalogue="I12",
)
def nothing_is_consumed_twice(
    queue: OneQueue, queue_offset: int, unique_key: str, share: Share
) -> Iterator[Violation]:
    """Looks the message's unique key up in what the consumer has consumed.

    What its listener has rolled back is not consumed.

    Source: ProcessQueue#putMessage, which keeps each offset once.
    """
    if unique_key in share.worked | share.uncommitted:
        yield Violation(
            queue.name, f"message {queue_offset} is given a second time", "once"
        )


@law(
    "CON-7",
    "once all consumers of a group have rebalanced, each queue is assigned to exactly "
    "one of them",
    catalogue="I12",
)
def each_queue_has_one_consumer(
    group: str, queues: Sequence[QueueKey], held: Mapping[str, Sequence[QueueKey]]
) -> Iterator[Violation]:
    """``held`` are the queues of each client, ``queues`` those of all topics.

    Source: RebalanceImpl#rebalanceByTopic, AllocateMessageQueueStrategy.
    """
    for queue in queues:
        owners = [client for client in sorted(held) if queue in held[client]]
        if len(owners) != 1:
            told = " and ".join(owners) or "no consumer"
            where = f"{group} on {queue[0]}/{queue[1]}"
            yield Violation(where, f"{told} has it", "exactly one consumer")


@law(
    "CON-8",
    "a consumer does not pull a queue while more than pullThresholdForQueue of its "
    "messages wait to be consumed, or more than its part of pullThresholdForTopic, or, "
    "unless it consumes in order, some that lie more than consumeConcurrentlyMaxSpan "
    "apart",
    catalogue="I12",
)
def a_full_consumer_does_not_pull(
    queue: OneQueue, waiting: int, threshold: int, span: int = 0, max_span: int = 0
) -> Iterator[Violation]:
    """``waiting`` are the messages pulled and not yet consumed when the pull is sent.

    ``span`` is the distance from the first to the last of them that is known, 0 for a
    consumer in order.

    Source: DefaultMQPushConsumerImpl#pullMessage, pullThresholdForQueue,
    consumeConcurrentlyMaxSpan; RebalancePushImpl#messageQueueChanged.
    """
    if waiting > threshold:
        yield Violation(
            queue.name,
            f"it pulls while {waiting} messages wait",
            f"at most {threshold}",
        )
    if span > max_span:
        yield Violation(
            queue.name,
            f"it pulls while messages wait that lie {span} apart",
            f"at most {max_span}",
        )


@law(
    "CON-10",
    "a message that a consumer sends back is stored again exactly once, with one more "
    "reconsume time, in the group's retry or dead-letter topic",
    catalogue="I12",
)
def what_was_given_back_is_put_again(
    queue: OneQueue, unique_key: str, copies: Sequence[MessageToPut], times: int = 1
) -> Iterator[Violation]:
    """Counts the copies in the group's retry and dead-letter topic.

    ``times`` is how often it was sent back: several consumers may have had it.

    Source: AbstractSendMessageProcessor#consumerSendMsgBack.
    """
    topics = {f"{prefix}{queue.group}" for prefix in (RETRY_PREFIX, DLQ_PREFIX)}
    right = [one for one in copies if one.destination[0] in topics]
    if len(right) != times:
        found = [one.destination[0] for one in copies]
        told = f"put to {', '.join(found)}" if found else "put nowhere"
        yield Violation(
            f"{queue.name}, {unique_key}",
            told,
            f"{'once' if times == 1 else f'{times} times'} to {sorted(topics)[1]}",
        )


@law(
    "CON-9",
    "the offset that a broker stores for a group after a consumer's commit is never "
    "past the end of the queue",
    catalogue="I12 I16",
)
def no_kept_offset_is_past_the_end(
    key: OffsetKey, kept: int, end: int
) -> Iterator[Violation]:
    """``end`` is the queue_offset that the queue's next message gets.

    Source: example E4 of docs/sharp-edges.md: RocketMQ checks no offset it is sent.
    """
    if kept > end:
        yield Violation(_name(key), f"offset {kept} is stored", f"at most {end}")


LEASE_MS = 30_000
"""A client goes on so long without having asked again.

Source: ProcessQueue#REBALANCE_LOCK_MAX_LIVE_TIME.
"""


@law(
    "CON-11",
    "a broker grants the lock of a queue to only one consumer of a group at a time",
    catalogue="I12",
)
def one_consumer_has_the_lock(
    queue: OneQueue, lock: Lock, at_ms: int
) -> Iterator[Violation]:
    """Another consumer gets it once it was released, or not renewed for a minute.

    Args:
        queue: the queue, and the client that was granted its lock.
        lock: what was known of the lock before.
        at_ms: when it was granted.

    Source: RebalanceLockManager#tryLockBatch.
    """
    others = lock.client not in (NOBODY, UNSURE, queue.client)
    if others and at_ms - lock.least_ms <= LOCK_MS:
        yield Violation(
            queue.name, "it gets the lock", f"{lock.client} holds it for a minute"
        )


@law(
    "CON-12",
    "a broker grants the lock of a queue to a consumer that asks for it while no "
    "other consumer holds it",
    catalogue="I12",
)
def a_free_lock_is_given(
    queue: OneQueue, lock: Lock, at_ms: int
) -> Iterator[Violation]:
    """``lock`` is what was known of it before ``queue.client`` was refused.

    Source: RebalanceLockManager#tryLockBatch.
    """
    is_free = lock.client in (NOBODY, queue.client)
    is_over = lock.client != UNSURE and at_ms - lock.most_ms > LOCK_MS
    if is_free or is_over:
        yield Violation(
            queue.name,
            "it does not get the lock",
            "the lock: no other consumer holds it",
        )


@law(
    "CON-13",
    "an orderly listener is given messages of a queue only within 30 s after the "
    "broker last confirmed the queue's lock",
    catalogue="I12",
)
def an_orderly_consumer_has_the_lock(
    queue: OneQueue, queue_offset: int, lock_ms: int | None
) -> Iterator[Violation]:
    """``lock_ms``: how long ago the lock was confirmed; None: never, or released since.

    Source: ProcessQueue#isLockExpired, ConsumeMessageOrderlyService.
    """
    if lock_ms is None or lock_ms > LEASE_MS:
        told = "without the lock" if lock_ms is None else f"{lock_ms} ms after that"
        yield Violation(
            queue.name,
            f"message {queue_offset} is given {told}",
            f"at most {LEASE_MS} ms after its lock was confirmed",
        )


@law(
    "CON-34",
    "a consumer in order that stops unlocks its queues, so that their next owner need "
    "not wait until the locks are over",
    catalogue="I12 I19",
)
def a_stop_unlocks(client: str, locked: Sequence[OneQueue]) -> Iterator[Violation]:
    """``locked`` are the queues whose locks the broker still keeps for the client.

    Source: ConsumeMessageOrderlyService#unlockAllMessageQueues, at its shutdown.
    """
    if locked:
        names = ", ".join([f"{one.topic}/{one.queue_id}" for one in locked])
        yield Violation(client, f"it has stopped and left {names} locked", "no lock")


@law(
    "CON-14",
    "an orderly consumer looks up where to begin in a queue, and pulls it, only while "
    "it holds the queue's lock",
    catalogue="I12",
)
def an_orderly_consumer_begins_locked(
    queue: OneQueue, *, has_lock: bool
) -> Iterator[Violation]:
    """Without the lock, the previous owner may not have committed its progress yet.

    Source: RebalanceImpl#updateProcessQueueTableInRebalance,
    DefaultMQPushConsumerImpl#pullMessage.
    """
    if not has_lock:
        yield Violation(
            queue.name,
            "it looks up or pulls the queue without its lock",
            "the lock first",
        )


@law(
    "CON-15",
    "a consumer that gives up a queue by a rebalance or its own stop has committed "
    "all that it has consumed there without a gap",
    catalogue="I12",
)
def a_queue_is_given_back_with_its_offset(
    queue: OneQueue, told: int, worked_until: int
) -> Iterator[Violation]:
    """Otherwise the next owner is given those messages a second time.

    Args:
        queue: the queue, with its group and client.
        told: the newest offset that the consumer has committed; -1: none.
        worked_until: the end of what it has consumed without a gap.

    Source: RebalancePushImpl#removeUnnecessaryMessageQueue,
    DefaultMQPushConsumerImpl#shutdown.
    """
    yield from uncommitted(queue, told, worked_until)


@law(
    "CON-16",
    "a consumer whose group has no offset for a queue commits the offset it begins at "
    "before it pulls",
    catalogue="I12",
)
def a_beginning_is_told(queue: OneQueue, told: int) -> Iterator[Violation]:
    """Otherwise the next owner begins behind messages that were put since.

    ``told`` is the offset that it committed, or that the broker answered for a group
    without one.

    Source: example E5 of docs/sharp-edges.md: RocketMQ's consumer commits nothing then.
    """
    if told < 0:
        yield Violation(
            queue.name, "it has committed no offset", "the one it begins at"
        )


@law(
    "CON-17",
    "once a consumer has nothing left to do, the offset that it has committed is the "
    "end of its queue",
    catalogue="I12 I16",
)
def an_idle_group_is_at_the_end(
    key: OffsetKey, told: int, end: int
) -> Iterator[Violation]:
    """``end`` is the queue_offset that the queue's next message gets.

    Source: DefaultMQPushConsumerImpl#correctTagsOffset; ProcessQueue#removeMessage.
    """
    if told != end:
        yield Violation(_name(key), f"offset {told} is committed", f"offset {end}")


@law(
    "CON-18",
    "a broker stores the offset that a consumer commits, if that consumer has pulled "
    "the queue since the broker started and no reset is pending",
    catalogue="I12",
)
def what_a_consumer_tells_is_kept(
    queue: OneQueue, told: int, kept: int
) -> Iterator[Violation]:
    """``told`` is the committed offset; it is not past the end of the queue.

    Source: ConsumerManageProcessor#updateConsumerOffset.
    """
    if kept != told:
        yield Violation(
            queue.name, f"offset {kept} is stored", f"offset {told}, as committed"
        )


@law(
    "CON-19",
    "a PULL_OFFSET_MOVED answer sends a consumer where its group was reset to, else to "
    "the queue's first message or its end, whichever is nearer, and never past the end",
    catalogue="I12 I16",
)
def nobody_is_sent_past_the_end(
    queue: OneQueue, to: int, end: int, possible: frozenset[int] | None = None
) -> Iterator[Violation]:
    """Otherwise it skips messages that are put there next, or gets others again.

    Args:
        queue: the queue, with its group and client.
        to: where the consumer is sent.
        end: the queue_offset that the queue's next message gets.
        possible: where it may be sent; empty: its offset is in the queue; None:
            unknown, as of a consumer of an earlier life of the broker that may have
            lost what it had pulled.

    Source: PullMessageProcessor, PULL_OFFSET_MOVED.
    """
    if not 0 <= to <= end:
        yield Violation(queue.name, f"it is sent to {to}", f"to 0 to {end}")
    elif possible is not None and to not in possible:
        places = " or ".join([f"to {one}" for one in sorted(possible)])
        yield Violation(queue.name, f"it is sent to {to}", places or "its messages")


@law(
    "CON-42",
    "a pull is answered with PULL_OFFSET_MOVED if its group was reset, to there, or if "
    "it lies past what a crash has left of its queue: then to what the consumer has "
    "consumed or, if that is lower, to where the queue was cut",
    catalogue="I12 I16",
)
def who_must_go_elsewhere_is_sent_there(
    queue: OneQueue, queue_offset: int, to: int, places: frozenset[int]
) -> Iterator[Violation]:
    """Else its group skips messages, or the reset is lost.

    Args:
        queue: the queue, with its group and client.
        queue_offset: of the pull.
        to: where the consumer is sent; -1: nowhere.
        places: where it has to be sent.

    Source: PullMessageProcessor, its hasOffsetReset; docs/sharp-edges.md for a crash,
    after which RocketMQ sends nobody back.
    """
    if to not in places:
        seen = f"it is sent to {to}" if to >= 0 else "it is served"
        expected = " or ".join([f"to {one}" for one in sorted(places)])
        yield Violation(f"{queue.name}, from {queue_offset} on", seen, expected)


@law(
    "CON-26",
    "after a PULL_OFFSET_MOVED answer a consumer continues at the offset of the "
    "answer or, if its group has committed a lower one, at that",
    catalogue="I12 I16",
)
def a_consumer_goes_where_it_is_sent(
    queue: OneQueue, told: int, to: int
) -> Iterator[Violation]:
    """Otherwise it skips messages, or falls behind and gets them a second time.

    Args:
        queue: the queue, with its group and client.
        told: the offset that it commits before it gives the queue up.
        to: the offset it was sent to, or its group's offset that it read afterwards,
            whichever is lower.

    Source: DefaultMQPushConsumerImpl, its case OFFSET_ILLEGAL.
    """
    if told != to:
        yield Violation(queue.name, f"it begins again at {told}", f"at {to}")


@law(
    "CON-20",
    "when a consumer's round finds no message to consume, none is ready, and each "
    "message that was put off after a failure is due again within 5 s, or after the "
    "pause of its queue",
    catalogue="I12",
)
def nothing_that_waits_is_forgotten(
    queue: OneQueue,
    waiting: Sequence[str],
    put_off_ms: int | None,
    due_ms: int = PUT_OFF_MS,
) -> Iterator[Violation]:
    """Otherwise it waits until the pull expires after two minutes, or for ever.

    Source: ConsumeMessageOrderlyService#tryLockLaterAndReconsume, 3,000 ms;
    ConsumeMessageConcurrentlyService#submitConsumeRequestLater, 5,000 ms;
    ConsumeMessageOrderlyService#submitConsumeRequestLater, as the listener says.
    """
    if not waiting or (put_off_ms is not None and put_off_ms < due_ms):
        return
    since = "never" if put_off_ms is None else f"{put_off_ms} ms ago"
    seen = f"{len(waiting)} messages wait, {waiting[0]} among them; asked {since}"
    yield Violation(queue.name, seen, "work on them")
