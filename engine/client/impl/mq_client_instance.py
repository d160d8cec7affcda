"""MQClientInstance: a client's periodic tasks for its consumer.

It sends heartbeats, persists offsets, renews locks, and sends back messages that a
listener has had for too long. Before the start and after the shutdown a round does
nothing.

Source: org.apache.rocketmq.client.impl.factory.MQClientInstance, its scheduled tasks,
RocketMQ 5.3. Differs: a client has one consumer.
"""

from __future__ import annotations

from collections.abc import Callable

from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.engine.client.consumer.store.offset_store import OffsetStore
from crashmq.engine.client.consumer.store.remote_broker_offset_store import BrokerFailed
from crashmq.engine.client.impl.broker_api import BrokerApi
from crashmq.engine.client.impl.consumer.clean_expired_msg import CleanExpiredMsg
from crashmq.engine.client.impl.consumer.rebalance_impl import RebalanceImpl
from crashmq.engine.host.probe import probe
from crashmq.engine.host.service import Service
from crashmq.engine.remoting.heartbeat_data import ConsumerData

PERSIST_CONSUMER_OFFSET_INTERVAL_MS = 5_000
FIRST_PERSIST_MS = 10_000
HEARTBEAT_BROKER_INTERVAL_MS = 30_000
FIRST_HEARTBEAT_MS = 1_000
REBALANCE_LOCK_INTERVAL_MS = 20_000
FIRST_LOCK_MS = 1_000

UNHEARD = probe("mq_client_instance.unheard", "a heartbeat did not come to the broker")


class ScheduledTask:
    """A service that runs one task periodically."""

    def __init__(
        self, name: str, first_after_ms: int, interval_ms: int, body: Callable[[], int]
    ) -> None:
        self.name = name
        self.first_after_ms = first_after_ms
        self.interval_ms = interval_ms
        self._body = body

    def run_once(self) -> int:
        """Run the task; returns the work done."""
        return self._body()


class MQClientInstance:
    """One client with one consumer."""

    def __init__(
        self,
        config: PushConsumerConfig,
        api: BrokerApi,
        offset_store: OffsetStore,
        rebalance_impl: RebalanceImpl,
        clean_expired_msg: CleanExpiredMsg,
    ) -> None:
        self.is_running = False
        self._config = config
        self._api = api
        self._offset_store = offset_store
        self._rebalance_impl = rebalance_impl
        self._clean_expired_msg = clean_expired_msg
        self.services = self._services()

    def _services(self) -> tuple[Service, ...]:
        interval_ms = PERSIST_CONSUMER_OFFSET_INTERVAL_MS
        tasks: list[Service] = [
            ScheduledTask(
                "persist_all_consumer_offset",
                FIRST_PERSIST_MS,
                interval_ms,
                self._while_running(self.persist_all_consumer_offset),
            ),
            ScheduledTask(
                "heartbeat",
                FIRST_HEARTBEAT_MS,
                HEARTBEAT_BROKER_INTERVAL_MS,
                self._while_running(self.send_heartbeat),
            ),
        ]
        if self._config.is_locking:
            body = self._while_running(self._rebalance_impl.lock_all)
            interval_ms = REBALANCE_LOCK_INTERVAL_MS
            name = "lock_mq_periodically"
            tasks.append(ScheduledTask(name, FIRST_LOCK_MS, interval_ms, body))
        if not self._config.is_orderly:
            body = self._while_running(self._clean_expired_msg.sweep)
            interval_ms = self._clean_expired_msg.interval_ms
            tasks.append(
                ScheduledTask("clean_expired_msg", interval_ms, interval_ms, body)
            )
        return tuple(tasks)

    def _while_running(self, body: Callable[[], int]) -> Callable[[], int]:
        return lambda: body() if self.is_running else 0

    def persist_all_consumer_offset(self) -> int:
        """Persist the offsets of all queues; returns how many there are.

        Raises:
            OSError: a broadcasting client could not write them.
        """
        queues = self._rebalance_impl.process_queue_table.keys()
        self._offset_store.persist_all(queues)
        return len(queues)

    def send_heartbeat(self) -> int:
        """Send a heartbeat to the brokers; returns how many confirmed it."""
        subscriptions = self._rebalance_impl.subscriptions.all()
        config = self._config
        consumer = ConsumerData(config.group, config.message_model, subscriptions)
        try:
            self._api.send_heartbeat(config.client_id, (consumer,))
        except BrokerFailed:
            UNHEARD.hit()
            return 0
        return 1

    def unregister(self) -> None:
        """Remove the consumer from its group at the brokers."""
        try:
            self._api.unregister_client(self._config.client_id, self._config.group)
        except BrokerFailed:
            UNHEARD.hit()  # They find out by themselves, when no heartbeat comes.
