"""TopicConfigManager: the topics of a broker, and how many queues each has.

The file is ``config/topics.json``, written again at each change. A topic that does not
exist when a message names it inherits the queues of topic ``TBW102``, if that is
allowed; a group's retry and dead-letter topics are created when they are first needed.

Source: org.apache.rocketmq.broker.topic.TopicConfigManager, RocketMQ 5.3.0, and its
file byte for byte. Differs: of RocketMQ's system topics only those exist that this
broker uses; a change that could not be written has not happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crashmq.engine.broker.config_table import ConfigTable
from crashmq.engine.common.mix_all import AUTO_CREATE_TOPIC, READ_WRITE, Perm
from crashmq.engine.common.topic_config import (
    TopicConfig,
    topic_from_json,
    topic_to_json,
)
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.message.message import (
    DELAYS_MS,
    SCHEDULE_TOPIC,
    is_light_queue,
)

PATH = "config/topics.json"
DEFAULT_TOPIC_QUEUE_NUMS = 8  # BrokerConfig#defaultTopicQueueNums
CLIENT_QUEUE_NUMS = 4  # DefaultMQProducer#defaultTopicQueueNums

CREATED = probe("topic_config.created", "a topic was created by its first use")
NOT_INHERITED = probe("topic_config.not_inherited", "no topic could be inherited")

_SYSTEM_TOPICS = {
    topic.topic_name: topic
    for topic in (
        TopicConfig(
            AUTO_CREATE_TOPIC,
            DEFAULT_TOPIC_QUEUE_NUMS,
            DEFAULT_TOPIC_QUEUE_NUMS,
            READ_WRITE | Perm.INHERIT,
        ),
        TopicConfig(SCHEDULE_TOPIC, len(DELAYS_MS), len(DELAYS_MS)),
    )
}


class TopicConfigManager:
    """The configuration of all topics, in memory, and their file."""

    def __init__(self, disk: Disk, runtime: Runtime) -> None:
        codec = topic_to_json, topic_from_json
        self.table = ConfigTable(disk, runtime, PATH, "topicConfigTable", codec)
        self.table.begin_with(_SYSTEM_TOPICS)

    @property
    def topics(self) -> Mapping[str, TopicConfig]:
        """All topics by name."""
        return self.table.rows

    def select_topic_config(self, topic: str) -> TopicConfig | None:
        """A topic's configuration; None: there is no such topic.

        A light queue always counts as a topic with one queue.

        Source: TopicConfigManager#selectTopicConfig, LmqTopicConfigManager.
        """
        known = self.table.get(topic)
        if known is None and is_light_queue(topic):
            return TopicConfig(topic, 1, 1)
        return known

    def update_topic_config(self, topic: TopicConfig) -> None:
        """Add a topic, or replace its configuration.

        Raises:
            OSError: the disk failed; nothing has changed.

        Source: TopicConfigManager#updateTopicConfig.
        """
        self.table.put(topic.topic_name, topic)

    def create_topic_in_send_message_method(
        self,
        topic: str,
        default_topic: str = AUTO_CREATE_TOPIC,
        queue_nums: int = CLIENT_QUEUE_NUMS,
    ) -> TopicConfig | None:
        """The topic of a message; a new one inherits from ``default_topic``.

        It gets ``queue_nums`` queues, but not more than ``default_topic`` has.

        Returns:
            None: there is no such topic, and ``default_topic`` cannot be inherited.

        Raises:
            OSError: the disk failed; nothing has changed.

        Source: TopicConfigManager#createTopicInSendMessageMethod.
        """
        self.table.make_sure()
        known = self.table.get(topic)
        if known is not None:
            return known
        model = self.table.get(default_topic)
        if model is None or Perm.INHERIT not in model.perm:
            NOT_INHERITED.hit()
            return None
        nums = max(0, min(queue_nums, model.write_queue_nums))
        perm = model.perm & ~Perm.INHERIT
        made = replace(
            model,
            topic_name=topic,
            read_queue_nums=nums,
            write_queue_nums=nums,
            perm=perm,
            order=False,
            attributes={},
        )
        return self._made(made)

    def create_topic_in_send_message_back_method(
        self, topic: str, queue_nums: int, perm: Perm = READ_WRITE
    ) -> TopicConfig:
        """A group's retry or dead-letter topic, created if it is new.

        Raises:
            OSError: the disk failed; nothing has changed.

        Source: TopicConfigManager#createTopicInSendMessageBackMethod.
        """
        return self._made(TopicConfig(topic, queue_nums, queue_nums, perm))

    def _made(self, topic: TopicConfig) -> TopicConfig:
        def make() -> TopicConfig:
            CREATED.hit()
            return topic

        return self.table.put_if_absent(topic.topic_name, make)

    def delete_topic_config(self, topic: str) -> bool:
        """Remove a topic; returns whether it existed.

        Raises:
            OSError: the disk failed; nothing has changed.

        Source: TopicConfigManager#deleteTopicConfig.
        """
        return self.table.remove((topic,)) > 0
