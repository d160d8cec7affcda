"""ConsumeMessageConcurrentlyService: gives messages to a listener in any order.

A failed message is sent back to the broker and counts as finished here; one that could
not be sent back stays, and is tried again here. The offset to commit is the smallest
one that is not finished.

Source: org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService,
RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashmq.engine.client.consumer.listener.message_listener_concurrently import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    MessageListenerConcurrently,
)
from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.store.offset_store import OffsetStore
from crashmq.engine.client.impl.consumer.process_queue import ProcessQueue
from crashmq.engine.client.impl.consumer.send_back import SendBack
from crashmq.engine.client.impl.consumer.waiting_requests import (
    ConsumeRequest,
    WaitingRequests,
)
from crashmq.engine.common.message_ext import MessageExt
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

RETRY_LOCALLY_MS = 5_000

DROPPED_BEFORE = probe("concurrently.dropped_before", "a queue went before its batch")
DROPPED_AMID = probe("concurrently.dropped_amid", "a queue went while consumed")
SWEPT = probe("concurrently.swept", "a failed message had been given up before")
LOCAL = probe("concurrently.local", "a failed message stays to be tried here")
GIVEN_UP = probe("concurrently.given_up", "a broadcast message failed and is skipped")


class ConsumeMessageConcurrentlyService:
    """Gives one consumer's listener messages in any order."""

    def __init__(
        self,
        config: PushConsumerConfig,
        listener: MessageListenerConcurrently,
        offset_store: OffsetStore,
        send_back: SendBack,
        runtime: Runtime,
    ) -> None:
        self.requests = WaitingRequests(runtime, one_a_queue=False)
        self._config = config
        self._listener = listener
        self._offset_store = offset_store
        self._send_back = send_back
        self._runtime = runtime

    def submit_consume_request(
        self,
        messages: Sequence[MessageExt],
        process_queue: ProcessQueue,
        queue: MessageQueue,
        *,
        dispatch_to_consume: bool,  # noqa: ARG002 - of the port; each batch waits
    ) -> None:
        """Add messages to those waiting for the listener, in batches.

        Source: ConsumeMessageConcurrentlyService#submitConsumeRequest.
        """
        size = self._config.consume_message_batch_max_size
        for at in range(0, len(messages), size):
            batch = tuple(messages[at : at + size])
            self.requests.add(ConsumeRequest(queue, process_queue, batch))

    def consume(self, nth: int) -> int:
        """Run the n-th waiting batch, modulo their number; returns how many ran."""
        return self.requests.run(nth, self._run)

    def _run(self, request: ConsumeRequest) -> None:
        if request.process_queue.dropped:
            DROPPED_BEFORE.hit()
            return
        context = ConsumeConcurrentlyContext(request.queue)
        for message in request.messages:
            self._send_back.reset_retry_topic(message)
            message.consume_start_timestamp = self._runtime.now_ms()
        status = self._status_of(request, context)
        self._process_consume_result(status, context, request)

    def _status_of(
        self, request: ConsumeRequest, context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        try:
            status = self._listener.consume_message(request.messages, context)
        except Exception:
            status = None
        return status or ConsumeConcurrentlyStatus.RECONSUME_LATER

    def _process_consume_result(
        self,
        status: ConsumeConcurrentlyStatus,
        context: ConsumeConcurrentlyContext,
        request: ConsumeRequest,
    ) -> None:
        """Finish what succeeded or was sent back. Source: #processConsumeResult."""
        messages, queue = request.messages, request.process_queue
        if queue.dropped:
            DROPPED_AMID.hit()
            return
        acked = 0
        if status is ConsumeConcurrentlyStatus.CONSUME_SUCCESS:
            acked = min(context.ack_index, len(messages) - 1) + 1
        failed = messages[max(0, acked) :]
        kept: tuple[MessageExt, ...] = ()
        if failed and self._config.is_clustering:
            level = context.delay_level_when_next_consume
            kept = tuple(m for m in failed if not self._is_finished(m, queue, level))
        elif failed:
            GIVEN_UP.hit()
        if kept:
            LOCAL.hit()
            again = ConsumeRequest(request.queue, queue, kept)
            self.requests.add_later(again, RETRY_LOCALLY_MS)
        finished = [message for message in messages if message not in kept]
        offset = queue.remove_message(finished)
        if offset >= 0:
            queue.commit_offset(
                request.queue, offset, self._offset_store, increase_only=True
            )

    def _is_finished(
        self, message: MessageExt, process_queue: ProcessQueue, delay_level: int
    ) -> bool:
        """Whether a failed message was sent back, now or before."""
        if not process_queue.contains_message(message):
            SWEPT.hit()
            return True
        if self._send_back.send_message_back(message, delay_level):
            return True
        message.reconsume_times += 1
        return False
