"""Listeners: what a consumer's application does with messages, as an op says it.

Which result each message has, the client decides that the op is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from crashmq.engine.client.consumer.listener.message_listener_concurrently import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
)
from crashmq.engine.client.consumer.listener.message_listener_orderly import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
)
from crashmq.engine.common.message_ext import MessageExt
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.harness.scheduling.sim_runtime import SimRuntime
from crashmq.models.ops import PAUSE_MS_MAX, ConsumeStatus

_COMMITTED_BY_ITSELF = ("uncommitted", "commit", "rollback", "suspends")


class ListenerFailed(Exception):
    """What a listener raises if the op wants it to fail."""


class Listening(Protocol):
    """The part of a client that its listener asks.

    Attributes:
        again: what the listener says of messages that fail, as in ``Consume``.
    """

    again: int

    def take_batch(
        self, messages: Sequence[MessageExt], queue: MessageQueue
    ) -> list[ConsumeStatus]:
        """What the listener does with a batch, message by message."""

    def take_one(self, message: MessageExt, queue: MessageQueue) -> ConsumeStatus:
        """What a listener in order does with a message."""

    def calls(self, queue: MessageQueue) -> AbstractContextManager[None]:
        """Mark a queue as one of which the listener has a batch, for a while."""


class Calls:
    """The calls of a listener that have not returned.

    Attributes:
        takes_ms: how long each takes, unless it hangs.
        hanging: the batches of those that hang, with the times at which they began.
    """

    def __init__(self, runtime: SimRuntime) -> None:
        self.takes_ms = 0
        self.hanging: list[tuple[Sequence[MessageExt], int]] = []
        self._runtime = runtime
        self._queues: list[MessageQueue] = []

    def count(self, queue: MessageQueue) -> int:
        """How many calls have a batch of a queue."""
        return self._queues.count(queue)

    @contextmanager
    def begin(self, queue: MessageQueue) -> Iterator[None]:
        """Call the listener with a batch of a queue; it returns after a while."""
        self._queues.append(queue)
        try:
            yield
            if self.takes_ms:
                self._runtime.sleep_ms(self.takes_ms)
        finally:
            self._queues.remove(queue)


class Concurrently:
    """A listener whose result for each message the op decides."""

    def __init__(self, client: Listening) -> None:
        self._client = client

    def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        """Consume a batch."""
        with self._client.calls(context.queue):
            told = self._client.take_batch(messages, context.queue)
        context.delay_level_when_next_consume = self._client.again
        if "raises" in told:
            raise ListenerFailed
        acked = told.count("success")
        if not acked:
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        if acked < len(messages):
            context.ack_index = acked - 1
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


class Orderly:
    """The same for a consumer in order."""

    def __init__(self, client: Listening) -> None:
        self._client = client

    def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        """Consume a batch, up to the first message that fails."""
        status: ConsumeStatus = "success"
        with self._client.calls(context.queue):
            for message in messages:
                status = self._client.take_one(message, context.queue)
                if status in ("raises", "later", "rollback", "suspends"):
                    break
        if self._client.again:
            pause_ms = min(max(self._client.again, 0), PAUSE_MS_MAX)
            context.suspend_current_queue_time_millis = pause_ms
        context.auto_commit = status not in _COMMITTED_BY_ITSELF
        match status:
            case "raises":
                raise ListenerFailed
            case "later" | "suspends":
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            case "rollback":
                return ConsumeOrderlyStatus.ROLLBACK
            case "commit":
                return ConsumeOrderlyStatus.COMMIT
            case _:
                return ConsumeOrderlyStatus.SUCCESS
