"""The configuration of a push consumer: of its own op, and of the program's setup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crashmq.engine.client.consumer.pull_from_where import ConsumeFromWhere
from crashmq.engine.client.consumer.push_consumer_config import PushConsumerConfig
from crashmq.harness.subjects.allocation import strategy_of
from crashmq.harness.subjects.configured import told_fields
from crashmq.models.limits import LISTENERS_AWAITED_MS
from crashmq.models.ops import StartConsumer
from crashmq.models.program import Setup

_WHERE = {
    "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    "timestamp": ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
}
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "pull_batch": ("pull_batch_size",),
    "pull_threshold": ("pull_threshold_for_queue",),
    "topic_threshold": ("pull_threshold_for_topic",),
    "max_span": ("consume_concurrently_max_span",),
    "pull_interval": ("pull_interval",),
    "posts_subscription": ("post_subscription_when_pull",),
}
"""The options of a setup that are fields of a consumer's configuration."""


def config_of(op: StartConsumer, setup: Setup) -> PushConsumerConfig:
    """What a client starts its consumer with."""
    topics = op.topics.split(",")
    return PushConsumerConfig(
        op.client,
        op.group,
        message_model="BROADCASTING" if op.broadcasts else "CLUSTERING",
        consume_from_where=_WHERE[op.where],
        allocate_message_queue_strategy=strategy_of(op, setup),
        is_orderly=op.is_orderly,
        subscriptions=tuple(
            [(topic, op.expression, op.expression_type) for topic in topics]
        ),
        consume_message_batch_max_size=op.batch,
        max_reconsume_times=op.max_reconsume_times,
        await_terminate_millis_when_shutdown=LISTENERS_AWAITED_MS,
        **told_fields(setup, _FIELDS),
    )
