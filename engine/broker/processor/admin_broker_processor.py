"""AdminBrokerProcessor: administrative changes of topics, groups and offsets.

Source: org.apache.rocketmq.broker.processor.AdminBrokerProcessor, RocketMQ 5.3.
Differs: the offsets of a deleted topic or group are removed durably before the topic
is, and commits are refused meanwhile; a query removes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from crashmq.engine.broker.broker_tables import BrokerTables
from crashmq.engine.broker.offset.consumer_offset_manager import Part
from crashmq.engine.broker.offset.recovered_ends import QueueKey, RecoveredEnds
from crashmq.engine.common.subscription_group_config import SubscriptionGroupConfig
from crashmq.engine.common.topic_config import TopicConfig
from crashmq.engine.host.probe import probe
from crashmq.engine.remoting.response_code import ResponseCode
from crashmq.engine.store.errors import SystemTopic
from crashmq.engine.store.message.message import is_system_topic, is_topic
from crashmq.engine.store.message_store import MessageStore

LATEST = -1
"""As the time of a reset: the end of the queue."""

OUT_OF_RANGE = probe("admin.reset.out_of_range", "a reset had no place in its queue")
TO_A_TIME = probe("admin.reset.to_a_time", "a reset went by the time of messages")
KEPT = probe("admin.delete.kept", "RocketMQ's own topic was to be deleted")


class ResetResponse(NamedTuple):
    """The answer to a reset; ``offset`` is -1 if it failed."""

    code: ResponseCode
    offset: int = -1
    remark: str = ""


class AdminBrokerProcessor:
    """Answers administrative requests; stateless."""

    def __init__(
        self, store: MessageStore, tables: BrokerTables, ends: RecoveredEnds
    ) -> None:
        self._store = store
        self._ends = ends
        self._offsets = tables.consumer_offset_manager
        self._topics = tables.topic_config_manager
        self._groups = tables.subscription_group_manager

    def delete_topic(self, topic: str) -> int:
        """Delete a topic, its configuration, and all groups' offsets on it.

        Returns:
            1 if it had messages, else 0.

        Raises:
            SystemTopic: the topic is one of RocketMQ's own, and is kept.
            StoreStopped: the store accepts no deletion; the groups keep their
                offsets.
            OSError: the disk failed, and some of it may be done.

        Source: AdminBrokerProcessor#deleteTopic.
        """
        if is_system_topic(topic):
            KEPT.hit()
            raise SystemTopic(f"topic {topic} is RocketMQ's own and is never deleted.")
        with self._offsets.removal(Part(topic=topic)):
            queues = self._queues_of(topic)
            self._topics.delete_topic_config(topic)
            with self._ends.removal(queues):
                return self._store.delete_topics((topic,))

    def delete_queue(self, topic: str, queue_id: int) -> int:
        """Delete one queue of a topic, and all groups' offsets on it.

        Returns 1 if it had messages, else 0; raises the exceptions of ``delete_topic``.
        """
        with (
            self._offsets.removal(Part(topic=topic, queue_id=queue_id)),
            self._ends.removal([(topic, queue_id)]),
        ):
            return self._store.delete_queue(topic, queue_id)

    def get_max_offset(self, topic: str, queue_id: int, client_id: str = "") -> int:
        """The next queue_offset of a queue, at which a new group may begin.

        A client that asks knows its place in this life of the log (``RecoveredEnds``);
        a broadcasting one asks nothing else.

        Raises:
            StoreStopped: the store is not started.
            OSError: the medium could not be read.

        Source: AdminBrokerProcessor#getMaxOffset.
        """
        self._ends.knows(client_id, topic, queue_id)
        return self._store.get_max_offset_in_queue(topic, queue_id)

    def search_offset_by_timestamp(
        self, topic: str, queue_id: int, timestamp: int, client_id: str = ""
    ) -> int:
        """The queue_offset of the first message stored at or after ``timestamp``.

        Without such a message the queue's end. A client that asks knows its place in
        this life of the log, as in ``get_max_offset``.

        Raises:
            StoreStopped: the store is not started.
            OSError: the medium could not be read.

        Source: AdminBrokerProcessor#searchOffsetByTimestamp.
        """
        self._ends.knows(client_id, topic, queue_id)
        return self._store.get_offset_in_queue_by_time(topic, queue_id, timestamp)

    def _queues_of(self, topic: str) -> set[QueueKey]:
        """The queues that a topic has, and those that a put may be creating now."""
        config = self._topics.topics.get(topic)
        count = max(config.read_queue_nums, config.write_queue_nums) if config else 0
        queues = self._store.next_queue_offsets
        return {key for key, _ in queues if key[0] == topic} | {
            (topic, queue_id) for queue_id in range(count)
        }

    def update_and_create_topic(self, config: TopicConfig) -> bool:
        """Create a topic or change it; returns False for a system topic or no name.

        Raises:
            OSError: the disk failed; the topic is as it was.

        Source: AdminBrokerProcessor#updateAndCreateTopic.
        """
        if not is_topic(config.topic_name) or is_system_topic(config.topic_name):
            return False
        self._topics.update_topic_config(config)
        return True

    def get_topic_config(self, topic: str) -> TopicConfig | None:
        """How a topic is configured; None: there is no such topic.

        Source: AdminBrokerProcessor#getTopicConfig.
        """
        return self._topics.select_topic_config(topic)

    def get_subscription_group(self, group: str) -> SubscriptionGroupConfig | None:
        """How a group is configured; None: there is no such group, and none is made.

        Source: AdminBrokerProcessor#getSubscriptionGroup.
        """
        return self._groups.groups.get(group)

    def update_and_create_subscription_group(
        self, config: SubscriptionGroupConfig
    ) -> None:
        """Set the configuration of a group, new or known.

        Raises:
            OSError: the disk failed; the group is as it was.

        Source: AdminBrokerProcessor#updateAndCreateSubscriptionGroup.
        """
        self._groups.update_subscription_group_config(config)

    def delete_subscription_group(
        self, group: str, *, clean_offset: bool = True
    ) -> None:
        """Delete a group's configuration, and its offsets unless told otherwise.

        Raises:
            OSError: the disk failed; the configuration is kept, the offsets may be
                gone.

        Source: AdminBrokerProcessor#deleteSubscriptionGroup.
        """
        if clean_offset:
            self._offsets.remove_offset(group)
        self._groups.delete_subscription_group_config(group)

    def reset_offset(
        self, group: str, topic: str, queue_id: int, offset: int
    ) -> ResetResponse:
        """Set a group to an offset between the queue's first one and its end.

        Raises:
            StoreStopped: the store is not started.

        Source: AdminBrokerProcessor#resetOffset, which also accepts one past the end.
        """
        least = self._store.get_min_offset_in_queue(topic, queue_id)
        most = self._store.get_max_offset_in_queue(topic, queue_id)
        if not least <= offset <= most or offset < 0:
            OUT_OF_RANGE.hit()
            why = f"offset {offset} is not in [{least}, {most}] of {topic}/{queue_id}."
            return ResetResponse(ResponseCode.SYSTEM_ERROR, remark=why)
        return self._reset(group, topic, queue_id, offset)

    def reset_offset_by_time(
        self, group: str, topic: str, queue_id: int, timestamp: int
    ) -> ResetResponse:
        """Set a group to the first message stored from a time on; ``LATEST``: the end.

        Raises:
            StoreStopped: the store is not started.
            OSError: the medium could not be read.

        Source: AdminBrokerProcessor#resetOffset, #searchOffsetByTimestamp.
        """
        if timestamp < 0:
            found = self._store.get_max_offset_in_queue(topic, queue_id)
        else:
            TO_A_TIME.hit()
            search = self._store.get_offset_in_queue_by_time
            found = search(topic, queue_id, timestamp)
        return self._reset(group, topic, queue_id, found)

    def _reset(
        self, group: str, topic: str, queue_id: int, offset: int
    ) -> ResetResponse:
        if queue_id < 0:
            OUT_OF_RANGE.hit()
            why = f"queue {queue_id} of topic {topic} cannot be: pass 0 or more."
            return ResetResponse(ResponseCode.SYSTEM_ERROR, remark=why)
        if self._offsets.assign_reset_offset(topic, group, queue_id, offset):
            return ResetResponse(ResponseCode.SUCCESS, offset)
        why = f"topic {topic} or group {group} is deleted meanwhile: ask again."
        return ResetResponse(ResponseCode.SYSTEM_ERROR, remark=why)

    def clone_group_offset(self, source: str, target: str, topic: str) -> None:
        """Copy the offsets of one group on a topic to another one.

        Source: AdminBrokerProcessor#cloneGroupOffset.
        """
        self._offsets.clone_offset(source, target, topic)

    def query_correction_offset(
        self, topic: str, filter_groups: Collection[str] = ()
    ) -> dict[int, int]:
        """The lowest offset on each queue of a topic, without ``filter_groups``.

        Raises:
            StoreStopped: the store is not started.

        Source: AdminBrokerProcessor#queryCorrectionOffset, which removes the offsets of
        ``filter_groups``.
        """
        least = self._store.get_min_offset_in_queue
        query = self._offsets.query_min_offset_in_all_group
        return query(topic, filter_groups, least)
