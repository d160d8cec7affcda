"""MessageQueue: one queue of one topic at one broker, as clients name it.

Source: org.apache.rocketmq.common.message.MessageQueue.
"""

from __future__ import annotations

from typing import NamedTuple

from crashmq.engine.store.message.message import java_string_hash

RETRY_GROUP_TOPIC_PREFIX = "%RETRY%"


class MessageQueue(NamedTuple):
    """A queue; queues sort by topic, broker and number."""

    topic: str
    broker_name: str
    queue_id: int

    @property
    def is_retry(self) -> bool:
        """Whether it is a queue of a group's retry topic."""
        return self.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)

    @property
    def java_hash(self) -> int:
        """Its Java hash, as 32 bits; it decides the order of entries in Java's maps.

        Source: MessageQueue#hashCode.
        """
        hashed = 31 + java_string_hash(self.broker_name)
        hashed = 31 * hashed + self.queue_id
        return (31 * hashed + java_string_hash(self.topic)) & 0xFFFFFFFF
