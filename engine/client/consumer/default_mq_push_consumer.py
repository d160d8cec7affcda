"""DefaultMQPushConsumer: a push consumer of one group in one client.

It has no threads. Its ``services`` are run by a host round by round, and ``consume``
gives the listener one of the waiting batches. Dropping the object kills the client:
nothing of it runs any more, and answers that still arrive are ignored.

Source: org.apache.rocketmq.client.consumer.DefaultMQPushConsumer,
DefaultMQPushConsumerImpl#start, #shutdown, MQClientInstance, RocketMQ 5.3. Differs: a
shutdown waits for running listeners before it commits the offsets, and unlocks queues
only after that; in RocketMQ both are lost, and what they consumed is consumed again.
"""

from __future__ import annotations

from collections.abc import Mapping

from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.store.offset_store import OffsetStore
from crashmq.engine.client.impl.broker_api import BrokerApi
from crashmq.engine.client.impl.consumer.consume_message_service import (
    MessageListener,
)
from crashmq.engine.client.impl.consumer.consumer_parts import ConsumerParts
from crashmq.engine.client.impl.consumer.process_queue import ProcessQueue
from crashmq.engine.client.impl.consumer.waiting_requests import ConsumeRequest
from crashmq.engine.common.message_queue import RETRY_GROUP_TOPIC_PREFIX, MessageQueue
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.host.service import Service
from crashmq.engine.remoting.subscription_data import SUB_ALL, ExpressionType


class DefaultMQPushConsumer:
    """A push consumer of one group in one client; see the module for who runs it.

    Attributes:
        is_started: it was started, and not shut down since.
    """

    def __init__(
        self,
        config: PushConsumerConfig,
        api: BrokerApi,
        offset_store: OffsetStore,
        runtime: Runtime,
        listener: MessageListener,
    ) -> None:
        """Create a consumer that is not started.

        Args:
            config: what it subscribes, and how it consumes.
            api: the way to the brokers.
            offset_store: a ``RemoteBrokerOffsetStore`` of the group, or with
                ``BROADCASTING`` a ``LocalFileOffsetStore``.
            runtime: its time and locks.
            listener: orderly if ``config.is_orderly``.

        Raises:
            ValueError: a subscription has no tag.
        """
        self.config = config
        self.is_started = False
        self._offset_store = offset_store
        self._parts = ConsumerParts.of(config, api, offset_store, runtime, listener)
        self._is_shut = False
        for topic, expression, expression_type in config.subscriptions:
            self._parts.subscriptions.subscribe(topic, expression, expression_type)

    @property
    def services(self) -> tuple[Service, ...]:
        """The services that a host runs; idle before start and after shutdown."""
        return self._parts.services

    @property
    def process_queue_table(self) -> Mapping[MessageQueue, ProcessQueue]:
        """The queues assigned to it, sorted; dropped ones are about to be removed."""
        return self._parts.rebalance_impl.process_queue_table

    @property
    def waiting(self) -> tuple[ConsumeRequest, ...]:
        """The batches that wait for the listener; ``consume`` runs one of them."""
        return self._parts.consume_message_service.requests.waiting

    def start(self) -> None:
        """Read the offsets and send a heartbeat; the first rebalance is due.

        Raises:
            RuntimeError: it was started before; create another one.
            StoreCorrupted: offsets of a broadcasting consumer cannot be read.
        """
        if self.is_started or self._is_shut:
            raise RuntimeError(
                f"consumer {self.config.client_id} of {self.config.group} was started "
                f"before; a consumer starts once, make another one."
            )
        self._offset_store.load()
        if self.config.is_clustering:
            retry_topic = RETRY_GROUP_TOPIC_PREFIX + self.config.group
            self._parts.subscriptions.subscribe(retry_topic, SUB_ALL)
        self._parts.start()
        self.is_started = True
        self._tell_and_rebalance()

    def _tell_and_rebalance(self) -> None:
        self._parts.client.send_heartbeat()
        self._parts.rebalance_service.rebalance_immediately()

    def shutdown(self) -> None:
        """Let listeners finish, commit the offsets, and give up the queues.

        Listeners are waited for as long as the configuration says; what a listener that
        is still running then consumes is consumed again. If the call is interrupted,
        call it again.

        Raises:
            OSError: a broadcasting consumer could not write its offsets; it has
                ended all the same.
        """
        if not self.is_started:
            return
        parts = self._parts
        parts.stop()
        await_ms = self.config.await_terminate_millis_when_shutdown
        parts.consume_message_service.requests.shutdown(await_ms)
        parts.rebalance_impl.drop_all()
        failure = None
        try:
            parts.client.persist_all_consumer_offset()
        except OSError as error:
            failure = error
        parts.rebalance_impl.destroy()
        parts.client.unregister()
        self.is_started, self._is_shut = False, True
        if failure is not None:
            raise failure

    def consume(self, nth: int = 0) -> int:
        """Consume the n-th batch that waits, modulo their number.

        The listener runs in this call. Several calls may run at once, as on the threads
        of RocketMQ's pool.

        Returns:
            How many batches the listener was given: 1, or 0 if none waits.
        """
        return self._parts.consume_message_service.consume(nth)

    def suspend(self) -> None:
        """Pull nothing and keep the queues; what was pulled is still consumed.

        Source: DefaultMQPushConsumerImpl#suspend.
        """
        self._parts.pause(paused=True)

    def resume(self) -> None:
        """Continue after ``suspend``; a rebalance is due.

        Source: DefaultMQPushConsumerImpl#resume.
        """
        self._parts.pause(paused=False)
        self._parts.rebalance_service.rebalance_immediately()

    def subscribe(
        self, topic: str, expression: str, expression_type: ExpressionType = "TAG"
    ) -> None:
        """Subscribe a topic, replacing its present subscription.

        Raises:
            ValueError: the expression has no tag.
        """
        self._parts.subscriptions.subscribe(topic, expression, expression_type)
        if self.is_started:
            self._tell_and_rebalance()

    def unsubscribe(self, topic: str) -> None:
        """Drop the subscription to a topic; the next rebalance gives up its queues."""
        self._parts.subscriptions.unsubscribe(topic)
        if self.is_started:
            self._tell_and_rebalance()

    def notify_consumer_ids_changed(self) -> None:
        """Handle the broker's notification that clients of the group joined or left."""
        self._parts.rebalance_service.rebalance_immediately()

    def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Restart queues of a topic at the given offsets; unassigned ones are skipped.

        Raises:
            OSError: a broadcasting consumer could not write an offset.

        Source: MQClientInstance#resetOffset, which waits ten seconds for completions;
        here none counts once its queue is dropped.
        """
        for queue in self.process_queue_table:
            if queue.topic == topic and queue in offsets:
                self._parts.rebalance_impl.begin_anew(queue, offsets[queue])
        self._parts.rebalance_service.rebalance_immediately()
