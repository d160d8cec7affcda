"""PushConsumerConfig: the configuration of a push consumer, with RocketMQ's defaults.

Source: org.apache.rocketmq.client.consumer.DefaultMQPushConsumer, RocketMQ 5.3.
Differs: a shutdown waits for running listeners; there, by default, for none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crashmq.engine.client.consumer.pull_from_where import ConsumeFromWhere
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_averagely import (
    AllocateMessageQueueAveragely,
)
from crashmq.engine.client.consumer.rebalance.allocate_message_queue_strategy import (
    AllocateMessageQueueStrategy,
)
from crashmq.engine.remoting.heartbeat_data import MessageModel
from crashmq.engine.remoting.subscription_data import ExpressionType

OFF = -1
BY_DEFAULT = -1
MAX_RECONSUME_TIMES = 16
HALF_AN_HOUR_AGO = -1


@dataclass(frozen=True, slots=True)
class PushConsumerConfig:
    """The configuration of one push consumer.

    Attributes:
        consume_timestamp: where ``CONSUME_FROM_TIMESTAMP`` begins, in milliseconds
            since the epoch, or ``HALF_AN_HOUR_AGO``, before the start.
        subscriptions: topic, expression and expression type of each subscription.
        pull_threshold_for_queue: in messages; ``_size`` thresholds are in MiB, and
            those for a topic, unless ``OFF``, are divided by its number of queues.
        consume_concurrently_max_span: from the first to the last waiting
            queue_offset.
        pull_interval: milliseconds between an answer with messages and the next
            pull.
        consume_timeout: minutes that a listener may take before the message is sent
            back.
        max_reconsume_times: ``BY_DEFAULT``: 16 for concurrent consumers, unlimited
            for orderly ones.
        post_subscription_when_pull: each pull carries the expression itself.
        await_terminate_millis_when_shutdown: how long a shutdown waits for
            listeners.
    """

    client_id: str
    group: str
    message_model: MessageModel = "CLUSTERING"
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: int = HALF_AN_HOUR_AGO
    allocate_message_queue_strategy: AllocateMessageQueueStrategy = field(
        default_factory=AllocateMessageQueueAveragely
    )
    is_orderly: bool = False
    subscriptions: tuple[tuple[str, str, ExpressionType], ...] = ()
    pull_batch_size: int = 32
    consume_message_batch_max_size: int = 1
    pull_threshold_for_queue: int = 1000
    pull_threshold_size_for_queue: int = 100
    pull_threshold_for_topic: int = OFF
    pull_threshold_size_for_topic: int = OFF
    consume_concurrently_max_span: int = 2000
    pull_interval: int = 0
    consume_timeout: int = 15
    max_reconsume_times: int = BY_DEFAULT
    suspend_current_queue_time_millis: int = 1000
    post_subscription_when_pull: bool = False
    await_terminate_millis_when_shutdown: int = 30_000

    @property
    def is_clustering(self) -> bool:
        """Whether the queues are divided among the group's clients."""
        return self.message_model == "CLUSTERING"

    @property
    def is_locking(self) -> bool:
        """Whether queues are locked at the broker: orderly and clustering."""
        return self.is_orderly and self.is_clustering
