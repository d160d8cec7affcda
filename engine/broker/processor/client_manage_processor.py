"""ClientManageProcessor: heartbeats of clients, and their end.

A heartbeat creates the group and its retry topic if they are new; both are durable
before the group has the member.

Source: org.apache.rocketmq.broker.processor.ClientManageProcessor, RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Collection

from crashmq.engine.broker.client.consumer_manager import ConsumerManager
from crashmq.engine.broker.subscription.subscription_group_manager import (
    SubscriptionGroupManager,
)
from crashmq.engine.broker.topic.topic_config_manager import TopicConfigManager
from crashmq.engine.common.mix_all import retry_topic_of
from crashmq.engine.host.probe import probe
from crashmq.engine.remoting.heartbeat_data import ConsumerData

UNKNOWN = probe(
    "client_manage.unknown_group", "a heartbeat named a group that does not exist"
)


class ClientManageProcessor:
    """Answers heartbeats and unregistrations; stateless."""

    def __init__(
        self,
        consumers: ConsumerManager,
        topics: TopicConfigManager,
        groups: SubscriptionGroupManager,
    ) -> None:
        self._consumers = consumers
        self._topics = topics
        self._groups = groups

    def heart_beat(
        self, client_id: str, consumers: Collection[ConsumerData], channel: str = ""
    ) -> None:
        """Record a client's heartbeat; a group that may not be created is skipped.

        Args:
            client_id: the client that sent it.
            consumers: its consumers, each of another group.
            channel: the connection on which it came; "": one of that client alone.

        Raises:
            OSError: a group or its retry topic could not be written; the consumers
                before it are registered.

        Source: ClientManageProcessor#heartBeat.
        """
        for consumer in consumers:
            group = self._groups.find_subscription_group_config(consumer.group)
            if group is None:
                UNKNOWN.hit()
                continue
            if group.retry_queue_nums > 0:
                self._topics.create_topic_in_send_message_back_method(
                    retry_topic_of(consumer.group), group.retry_queue_nums
                )
            self._consumers.register_consumer(
                client_id,
                consumer,
                channel,
                notify=group.notify_consumer_ids_changed_enable,
            )

    def unregister_client(self, client_id: str, group: str) -> None:
        """Remove a client from a group.

        Source: ClientManageProcessor#unregisterClient.
        """
        known = self._groups.groups.get(group)
        notify = known is None or known.notify_consumer_ids_changed_enable
        self._consumers.unregister_consumer(group, client_id, notify=notify)
