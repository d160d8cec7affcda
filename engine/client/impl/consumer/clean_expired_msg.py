"""CleanExpiredMsg: gives up messages that a listener has had for too long.

Until then they hold back the queue's offset. Each is sent back to the broker, and
counts as finished here; the listener's later result is ignored.

Source: ConsumeMessageConcurrentlyService#cleanExpireMsg, ProcessQueue#cleanExpiredMsg,
RocketMQ 5.3.
"""

from __future__ import annotations

from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.impl.consumer.process_queue import ProcessQueue
from crashmq.engine.client.impl.consumer.rebalance_impl import RebalanceImpl
from crashmq.engine.client.impl.consumer.send_back import SendBack
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime

A_QUEUE_MAX = 16
DELAY_LEVEL = 3
MINUTE_MS = 60_000

EXPIRED = probe("clean_expired_msg.expired", "a listener had a message for too long")


class CleanExpiredMsg:
    """Finds messages of one consumer that its listener has had for too long."""

    def __init__(
        self,
        config: PushConsumerConfig,
        rebalance_impl: RebalanceImpl,
        send_back: SendBack,
        runtime: Runtime,
    ) -> None:
        self.interval_ms = config.consume_timeout * MINUTE_MS
        self._rebalance_impl = rebalance_impl
        self._send_back = send_back
        self._runtime = runtime

    def sweep(self) -> int:
        """Check the first messages of each queue; returns how many were sent back."""
        queues = self._rebalance_impl.process_queue_table.values()
        return sum(map(self._sweep, queues))

    def _sweep(self, queue: ProcessQueue) -> int:
        for given_up in range(A_QUEUE_MAX):
            message = queue.first_begun()
            if message is None or queue.dropped:
                return given_up
            had_ms = self._runtime.now_ms() - message.consume_start_timestamp
            if had_ms <= self.interval_ms:
                return given_up
            if not self._send_back.send_message_back(message, DELAY_LEVEL):
                return given_up
            EXPIRED.hit()
            queue.remove_if_first(message)
        return A_QUEUE_MAX
