"""Laws of what a listener is shown of the messages that it is given."""

from __future__ import annotations

from collections.abc import Iterator

from crashmq.models.files.record import RETRY_PREFIX, Record
from crashmq.models.history import OneQueue, Shown
from crashmq.models.laws.registry import law
from crashmq.models.verdict import Violation

_OF_THE_STORE = frozenset({"__CRC32#"})


@law(
    "CON-35",
    "a listener is shown each message as its record has it, and a retry of its group "
    "under the message's original topic",
    catalogue="I3 I12",
)
def a_listener_is_shown_what_was_stored(
    queue: OneQueue, shown: Shown, record: Record, tries: int
) -> Iterator[Violation]:
    """``tries`` is how often it was tried before, as the listener is told.

    Source: MessageDecoder#decode, DefaultMQPushConsumerImpl#resetRetryAndNamespace.
    """
    found, expected = _as_shown(shown), _as_stored(queue.group, record)
    where = f"{queue.name}, message {record.queue_offset}"
    for name, value in expected.items():
        if found[name] != value:
            yield Violation(where, f"its {name} is {found[name]}", value)
    if tries < record.reconsume_times:
        told = f"it is shown with {tries} tries"
        yield Violation(where, told, f"{record.reconsume_times} at least")


@law(
    "CON-40",
    "a listener in order has one batch of a queue at a time",
    catalogue="I12",
)
def a_listener_in_order_has_one_batch(
    queue: OneQueue, queue_offset: int, besides: int
) -> Iterator[Violation]:
    """``besides`` is how many other batches it has as it is given the message.

    Source: ConsumeMessageOrderlyService, MessageQueueLock, which outlasts the process
    queue.
    """
    if besides:
        told = f"message {queue_offset} is given beside {besides} other batches"
        yield Violation(queue.name, told, "one batch at a time")


def _as_shown(shown: Shown) -> dict[str, str]:
    fields = {name: f"{value}" for name, value in shown._asdict().items()}
    kept = {k: v for k, v in shown.properties.items() if k not in _OF_THE_STORE}
    return fields | {
        "body": bytes(shown.body).hex(),
        "properties": f"{sorted(kept.items())}",
    }


def _as_stored(group: str, record: Record) -> dict[str, str]:
    """The same fields of a record, with the topic that the listener is to see."""
    properties = record.properties
    topic = record.topic
    if topic == RETRY_PREFIX + group:
        topic = properties.get("RETRY_TOPIC") or topic
    return {
        "topic": topic,
        "queue_id": f"{record.queue_id}",
        "queue_offset": f"{record.queue_offset}",
        "phy_offset": f"{record.phy_offset}",
        "store_timestamp": f"{record.store_timestamp}",
        "body": bytes(record.body).hex(),
        "properties": f"{sorted(properties.items())}",
    }
