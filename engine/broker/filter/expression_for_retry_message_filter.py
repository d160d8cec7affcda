"""ExpressionForRetryMessageFilter: filters a group's retries by their original topic.

What a group sent back waits in its retry topic, to which the group subscribes
completely. With this filter such a message is skipped if the group's expression for the
original topic is false for it by now. All other pulls are filtered as usual.

Source: org.apache.rocketmq.broker.filter.ExpressionForRetryMessageFilter, RocketMQ 5.3,
used where ``filterSupportRetry`` is set. Differs: only a living filter counts; in
RocketMQ one counts for a day after the group lost it, or subscribes by tags instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from crashmq.engine.broker.filter.consumer_filter_data import ConsumerFilterData
from crashmq.engine.broker.filter.consumer_filter_manager import ConsumerFilterManager
from crashmq.engine.broker.filter.expression_message_filter import (
    ExpressionMessageFilter,
    is_match,
)
from crashmq.engine.common.message_ext import PROPERTY_RETRY_TOPIC
from crashmq.engine.common.message_queue import RETRY_GROUP_TOPIC_PREFIX
from crashmq.engine.host.probe import probe
from crashmq.engine.remoting.subscription_data import SubscriptionData
from crashmq.engine.store.message.message_codec import properties_of

DROPPED = probe("retry_filter.dropped", "a retry was passed over by its real topic")
UNKNOWN = probe("retry_filter.unknown", "a retry came from a topic without a filter")


class ExpressionForRetryMessageFilter(ExpressionMessageFilter):
    """The two stages for one subscription, perhaps of a retry topic."""

    def __init__(
        self,
        subscription: SubscriptionData,
        data: ConsumerFilterData | None,
        manager: ConsumerFilterManager,
    ) -> None:
        """The arguments are those of ``ExpressionMessageFilter``."""
        super().__init__(subscription, data, manager)
        self._group: str | None = None
        if subscription.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            self._group = subscription.topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX)

    def is_matched_by_commit_log(
        self, record: bytes | None, properties: Mapping[str, str] | None
    ) -> bool:
        """Whether a message matches; also true if its expression fails.

        Source: ExpressionForRetryMessageFilter#isMatchedByCommitLog.
        """
        if self._group is None:
            return super().is_matched_by_commit_log(record, properties)
        if properties is None:
            if record is None:
                return True
            properties = properties_of(record)
        real_topic = properties.get(PROPERTY_RETRY_TOPIC, "")
        data = self._manager.get(real_topic, self._group)
        if data is None or data.is_dead or data.condition is None:
            UNKNOWN.hit()
            return True
        is_wanted = is_match(data.condition, properties)
        if not is_wanted:
            DROPPED.hit()
        return is_wanted
