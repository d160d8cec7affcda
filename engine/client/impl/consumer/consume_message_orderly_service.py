"""ConsumeMessageOrderlyService: gives a listener the messages of a queue in order.

There is one request for each queue: when it runs it takes the next batch, and then it
waits again. It runs only while the client certainly holds the queue's lock. Failed
messages go back to the front of the queue, which then pauses.

Source: org.apache.rocketmq.client.impl.consumer.ConsumeMessageOrderlyService, RocketMQ
5.3. Differs: a run is one batch, so it need not be ended after a minute; a message that
failed too often goes to the dead-letter topic directly, there through the retry topic,
and is finished, there the whole batch is consumed again; and a shutdown unlocks queues
only after it has committed the offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crashmq.engine.client.consumer.listener.message_listener_orderly import (
    BY_CONFIG,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageListenerOrderly,
)
from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.store.offset_store import OffsetStore
from crashmq.engine.client.impl.consumer.process_queue import (
    NOTHING_TO_COMMIT,
    ProcessQueue,
)
from crashmq.engine.client.impl.consumer.send_back import SendBack
from crashmq.engine.client.impl.consumer.waiting_requests import (
    ConsumeRequest,
    WaitingRequests,
)
from crashmq.engine.common.message_ext import MessageExt
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

LOCKED_MS = 10
NOT_LOCKED_MS = 3_000
SUSPEND_MS_MIN, SUSPEND_MS_MAX = 10, 30_000
TO_DEAD_LETTERS = -1

UNLOCKED = probe("orderly.unlocked", "a batch was due without the queue's lock")
SUSPENDED = probe("orderly.suspended", "a queue stands still after a failure")
SENT_AWAY = probe("orderly.sent_away", "a message failed too often to be tried here")
ROLLED_BACK = probe("orderly.rolled_back", "a listener took back several batches")

Status = ConsumeOrderlyStatus
Lock = Callable[[MessageQueue, ProcessQueue], bool]


class ConsumeMessageOrderlyService:
    """Gives one consumer's listener the messages of each queue in order."""

    def __init__(
        self,
        config: PushConsumerConfig,
        listener: MessageListenerOrderly,
        offset_store: OffsetStore,
        send_back: SendBack,
        lock: Lock,
        runtime: Runtime,
    ) -> None:
        self.requests = WaitingRequests(runtime, one_a_queue=True)
        self._config = config
        self._listener = listener
        self._offset_store = offset_store
        self._send_back = send_back
        self._lock = lock
        self._runtime = runtime

    def submit_consume_request(
        self,
        messages: Sequence[MessageExt],  # noqa: ARG002 - of the port; a run takes them
        process_queue: ProcessQueue,
        queue: MessageQueue,
        *,
        dispatch_to_consume: bool,
    ) -> None:
        """Begin a run of a queue, unless it has one. Source: #submitConsumeRequest."""
        if dispatch_to_consume:
            self.requests.add(ConsumeRequest(queue, process_queue))

    def consume(self, nth: int) -> int:
        """Run the n-th queue that waits, modulo their number; returns how many ran."""
        return self.requests.run(nth, self._run)

    def _run(self, request: ConsumeRequest) -> None:
        queue = request.process_queue
        if queue.dropped:
            return
        if self._config.is_clustering and not queue.lease.holds(self._runtime.now_ms()):
            self._try_lock_later_and_reconsume(request)
            return
        if not queue.hold():
            return
        messages: list[MessageExt] = []
        try:
            messages = queue.take_messages(self._config.consume_message_batch_max_size)
            if messages and self._consume(messages, request):
                self.requests.add(request)
        except BaseException:
            queue.make_message_to_consume_again(messages)
            raise
        finally:
            queue.let_go()

    def _try_lock_later_and_reconsume(self, request: ConsumeRequest) -> None:
        """Try to lock the queue again later, and then consume it.

        Source: #tryLockLaterAndReconsume.
        """
        UNLOCKED.hit()
        is_locked = self._lock(request.queue, request.process_queue)
        self.requests.add_later(request, LOCKED_MS if is_locked else NOT_LOCKED_MS)

    def _consume(self, messages: list[MessageExt], request: ConsumeRequest) -> bool:
        """Give the listener a batch; returns whether the queue continues at once."""
        context = ConsumeOrderlyContext(request.queue)
        for message in messages:
            self._send_back.reset_retry_topic(message)
        try:
            status = self._listener.consume_message(messages, context)
        except Exception:
            status = None
        status = status or Status.SUSPEND_CURRENT_QUEUE_A_MOMENT
        goes_on, offset = self._process_consume_result(
            messages, status, context, request
        )
        if offset >= 0:
            request.process_queue.commit_offset(
                request.queue, offset, self._offset_store, increase_only=False
            )
        return goes_on

    def _process_consume_result(
        self,
        messages: list[MessageExt],
        status: ConsumeOrderlyStatus,
        context: ConsumeOrderlyContext,
        request: ConsumeRequest,
    ) -> tuple[bool, int]:
        """Returns whether the queue continues at once, and the offset to commit."""
        queue = request.process_queue
        if status is Status.SUSPEND_CURRENT_QUEUE_A_MOMENT:
            kept = self._to_be_tried_here(messages)
            if not kept:
                offset = queue.commit() if context.auto_commit else NOTHING_TO_COMMIT
                return True, offset
            SUSPENDED.hit()
            queue.forget_taken([m for m in messages if m not in kept])
            queue.make_message_to_consume_again(kept)
            self._suspend(request, context)
            return False, NOTHING_TO_COMMIT
        if status is Status.ROLLBACK and not context.auto_commit:
            ROLLED_BACK.hit()
            queue.rollback()
            self._suspend(request, context)
            return False, NOTHING_TO_COMMIT
        if status is Status.SUCCESS and not context.auto_commit:
            return True, NOTHING_TO_COMMIT
        # With auto_commit RocketMQ takes a ROLLBACK, too, for a success.
        return True, queue.commit()

    def _to_be_tried_here(self, messages: Sequence[MessageExt]) -> list[MessageExt]:
        """Send back what failed too often; returns the other messages.

        Source: #checkReconsumeTimes.
        """
        kept = []
        for message in messages:
            if self._is_sent_away(message):
                SENT_AWAY.hit()
                continue
            message.reconsume_times += 1
            kept.append(message)
        return kept

    def _is_sent_away(self, message: MessageExt) -> bool:
        if message.reconsume_times < self._send_back.max_reconsume_times:
            return False
        return self._send_back.send_message_back(message, TO_DEAD_LETTERS)

    def _suspend(self, request: ConsumeRequest, context: ConsumeOrderlyContext) -> None:
        """Pause the queue. Source: #submitConsumeRequestLater."""
        ms = context.suspend_current_queue_time_millis
        if ms == BY_CONFIG:
            ms = self._config.suspend_current_queue_time_millis
        ms = min(max(ms, SUSPEND_MS_MIN), SUSPEND_MS_MAX)
        self.requests.add_later(request, ms)
