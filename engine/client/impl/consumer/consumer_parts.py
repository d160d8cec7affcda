"""ConsumerParts: creates the parts of one push consumer and connects them.

Source: DefaultMQPushConsumerImpl#start, which does the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.store.offset_store import OffsetStore
from crashmq.engine.client.impl.broker_api import BrokerApi
from crashmq.engine.client.impl.consumer.clean_expired_msg import CleanExpiredMsg
from crashmq.engine.client.impl.consumer.consume_message_service import (
    ConsumeMessageService,
    MessageListener,
    consume_message_service_of,
)
from crashmq.engine.client.impl.consumer.default_mq_push_consumer_impl import (
    DefaultMQPushConsumerImpl,
)
from crashmq.engine.client.impl.consumer.pull_api_wrapper import PullAPIWrapper
from crashmq.engine.client.impl.consumer.rebalance_impl import RebalanceImpl
from crashmq.engine.client.impl.consumer.rebalance_service import RebalanceService
from crashmq.engine.client.impl.consumer.send_back import SendBack
from crashmq.engine.client.impl.consumer.subscription_table import SubscriptionTable
from crashmq.engine.client.impl.mq_client_instance import MQClientInstance
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.host.service import Service


@dataclass(frozen=True, slots=True)
class ConsumerParts:
    """The parts of one push consumer, connected."""

    config: PushConsumerConfig
    rebalance_impl: RebalanceImpl
    rebalance_service: RebalanceService
    consume_message_service: ConsumeMessageService
    impl: DefaultMQPushConsumerImpl
    client: MQClientInstance

    @classmethod
    def of(
        cls,
        config: PushConsumerConfig,
        api: BrokerApi,
        offset_store: OffsetStore,
        runtime: Runtime,
        listener: MessageListener,
    ) -> ConsumerParts:
        """Create the parts of a consumer that is not started."""
        send_back = SendBack(config, api)
        rebalance_impl = RebalanceImpl(config, api, offset_store, runtime)
        rebalance_service = RebalanceService(rebalance_impl)
        consume_message_service = consume_message_service_of(
            config, listener, offset_store, send_back, rebalance_impl.lock, runtime
        )
        impl = DefaultMQPushConsumerImpl(
            config,
            PullAPIWrapper(config, api, offset_store),
            offset_store,
            rebalance_service,
            consume_message_service,
            runtime,
        )
        sweeps = CleanExpiredMsg(config, rebalance_impl, send_back, runtime)
        client = MQClientInstance(config, api, offset_store, rebalance_impl, sweeps)
        return cls(
            config,
            rebalance_impl,
            rebalance_service,
            consume_message_service,
            impl,
            client,
        )

    @property
    def subscriptions(self) -> SubscriptionTable:
        """What the consumer subscribes."""
        return self.rebalance_impl.subscriptions

    @property
    def services(self) -> tuple[Service, ...]:
        """The services that a host runs, in order."""
        pulls = self.impl.pull_message_service
        return (self.rebalance_service, pulls, *self.client.services)

    def start(self) -> None:
        """Let the rounds of its services work."""
        pulls = self.impl.pull_message_service
        self.rebalance_impl.start(
            pulls.execute_pull_request_later, self._message_queue_changed
        )
        pulls.start(self.impl)
        self.rebalance_service.is_running = True
        self.client.is_running = True

    def stop(self) -> None:
        """Make the rounds of its services do nothing."""
        self.rebalance_service.is_running = False
        self.impl.pull_message_service.stop()
        self.client.is_running = False

    def pause(self, *, paused: bool) -> None:
        """Neither pull nor rebalance while paused."""
        self.impl.paused = paused
        self.rebalance_service.paused = paused

    def _message_queue_changed(self, topic: str) -> None:
        """React to a changed set of queues of a topic. Source: #messageQueueChanged."""
        self.subscriptions.bump(topic)
        queues = self.rebalance_impl.process_queue_table
        self.impl.limits.divide(self.config, len(queues))
        self.client.send_heartbeat()
