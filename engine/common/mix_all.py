"""The names of the topics that belong to groups, and other well-known names.

Source: org.apache.rocketmq.common.MixAll, PermName, TopicValidator, RocketMQ 5.3.
"""

from __future__ import annotations

from enum import IntFlag

from crashmq.engine.common.message_queue import RETRY_GROUP_TOPIC_PREFIX

DLQ_GROUP_TOPIC_PREFIX = "%DLQ%"
AUTO_CREATE_TOPIC = "TBW102"
"""The topic whose configuration a topic gets that a message names first."""


class Perm(IntFlag):
    """What clients may do with a topic. Source: PermName."""

    INHERIT = 0x1
    WRITE = 0x2
    READ = 0x4


READ_WRITE = Perm.READ | Perm.WRITE


def retry_topic_of(group: str) -> str:
    """A group's retry topic, with the messages to consume again.

    Source: MixAll#getRetryTopic.
    """
    return f"{RETRY_GROUP_TOPIC_PREFIX}{group}"


def dlq_topic_of(group: str) -> str:
    """A group's dead-letter topic. Source: MixAll#getDLQTopic."""
    return f"{DLQ_GROUP_TOPIC_PREFIX}{group}"
