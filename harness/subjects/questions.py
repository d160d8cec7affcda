"""Questions: what an administrator asks and wants of a broker, and the answers."""

from __future__ import annotations

from crashmq.engine.broker.broker_controller import BrokerController
from crashmq.engine.common.message_queue import MessageQueue
from crashmq.engine.common.mix_all import READ_WRITE, Perm
from crashmq.engine.common.subscription_group_config import (
    SubscriptionGroupConfig,
    group_to_json,
)
from crashmq.engine.common.topic_config import TopicConfig, topic_to_json
from crashmq.engine.store.errors import StoreStopped
from crashmq.models.brokers import broker_of
from crashmq.models.files.config_files import fields_told
from crashmq.models.observations import (
    EPOCH_MS,
    Done,
    NamesTold,
    NumberTold,
    Observation,
    Skipped,
)
from crashmq.models.ops import AskBroker, ChangeTopic, ConfigureGroup
from crashmq.models.program import Setup

_STOPPING = Skipped("the store is stopping")


def answer_of_broker(
    broker: BrokerController, ask: AskBroker, setup: Setup
) -> Observation:
    """Let a broker answer a question."""
    if not broker.is_started:
        return _STOPPING
    offsets, queue_id = broker.consumer_offset_manager, ask.queue_id
    match ask.question:
        case "topics_of_group":
            return NamesTold(tuple(offsets.which_topic_by_consumer(ask.group)))
        case "groups_of_topic":
            return NamesTold(tuple(offsets.which_group_by_topic(ask.topic)))
        case "subscribers":
            return NamesTold(broker.consumer_manager.groups_of_topic(ask.topic))
        case "pull_offset":
            query = offsets.query_pull_offset
            return NumberTold(query(ask.group, ask.topic, queue_id))
        case "time":
            return _found_by_time(broker, ask)
        case "group":
            groups = broker.tables.subscription_group_manager
            return NumberTold(int(groups.contains_subscription_group(ask.group)))
        case "group_config":
            group = broker.admin_broker_processor.get_subscription_group(ask.group)
            return NamesTold(fields_told(group and group_to_json(group)))
        case "topic_config":
            topic = broker.admin_broker_processor.get_topic_config(ask.topic)
            return NamesTold(fields_told(topic and topic_to_json(topic)))
        case "lock":
            locks = broker.rebalance_lock_manager
            name = broker_of(ask.topic, queue_id, setup)
            queue = MessageQueue(ask.topic, name, queue_id)
            return NumberTold(int(locks.is_locked(ask.group, queue, ask.client)))


def _found_by_time(broker: BrokerController, ask: AskBroker) -> Observation:
    search = broker.admin_broker_processor.search_offset_by_timestamp
    timestamp = max(0, EPOCH_MS + ask.at_ms)
    try:
        return NumberTold(search(ask.topic, ask.queue_id, timestamp))
    except StoreStopped:
        return _STOPPING


def change_topic(broker: BrokerController, change: ChangeTopic) -> Observation:
    """Let a broker create or change a topic."""
    if not broker.is_started:
        return _STOPPING
    topic = change.topic
    if change.is_left_to_the_group:
        return Skipped("a topic of a group has the queues of its group")
    perm = READ_WRITE if change.is_writeable else Perm.READ
    wanted = TopicConfig(topic, change.read_queues, change.write_queues, perm)
    try:
        is_done = broker.admin_broker_processor.update_and_create_topic(wanted)
    except StoreStopped:
        return _STOPPING
    return Done() if is_done else Skipped(f"{topic} is no topic to be changed")


def configure_group(
    broker: BrokerController, config: ConfigureGroup, setup: Setup
) -> Observation:
    """Let a broker set the configuration of a group, new or known."""
    if not broker.is_started:
        return _STOPPING
    wanted = SubscriptionGroupConfig(
        config.group,
        consume_enable=config.consume_enable,
        consume_broadcast_enable=config.consume_broadcast_enable,
        retry_queue_nums=setup.retry_queues if config.is_retried else 0,
        retry_max_times=config.retry_max_times,
        consume_timeout_minute=config.consume_timeout_minute,
    )
    try:
        broker.admin_broker_processor.update_and_create_subscription_group(wanted)
    except StoreStopped:
        return _STOPPING
    return Done()
