"""ConsumeMessageService: gives pulled messages to a listener.

Source: org.apache.rocketmq.client.impl.consumer.ConsumeMessageService, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from crashmq.engine.client.consumer.listener.message_listener_concurrently import (
    MessageListenerConcurrently,
)
from crashmq.engine.client.consumer.listener.message_listener_orderly import (
    MessageListenerOrderly,
)
from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.store.offset_store import OffsetStore
from crashmq.engine.client.impl.consumer.consume_message_concurrently_service import (
    ConsumeMessageConcurrentlyService,
)
from crashmq.engine.client.impl.consumer.consume_message_orderly_service import (
    ConsumeMessageOrderlyService,
    Lock,
)
from crashmq.engine.client.impl.consumer.process_queue import ProcessQueue
from crashmq.engine.client.impl.consumer.send_back import SendBack
from crashmq.engine.client.impl.consumer.waiting_requests import WaitingRequests
from crashmq.engine.common.message_ext import MessageExt
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.host.runtime import Runtime

MessageListener = MessageListenerConcurrently | MessageListenerOrderly


class ConsumeMessageService(Protocol):
    """One way to consume: concurrently or in order."""

    requests: WaitingRequests

    def submit_consume_request(
        self,
        messages: Sequence[MessageExt],
        process_queue: ProcessQueue,
        queue: MessageQueue,
        *,
        dispatch_to_consume: bool,
    ) -> None:
        """Add messages for the listener; an orderly run begins only on dispatch."""

    def consume(self, nth: int) -> int:
        """Run the n-th waiting request, modulo their number; returns how many ran."""


def consume_message_service_of(
    config: PushConsumerConfig,
    listener: MessageListener,
    offset_store: OffsetStore,
    send_back: SendBack,
    lock: Lock,
    runtime: Runtime,
) -> ConsumeMessageService:
    """The service for a configuration; ``listener`` must be of its kind."""
    if config.is_orderly:
        orderly = cast(MessageListenerOrderly, listener)
        return ConsumeMessageOrderlyService(
            config, orderly, offset_store, send_back, lock, runtime
        )
    concurrently = cast(MessageListenerConcurrently, listener)
    return ConsumeMessageConcurrentlyService(
        config, concurrently, offset_store, send_back, runtime
    )
