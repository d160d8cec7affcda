"""ExpressionMessageFilter: decides which messages a pull returns, by its subscription.

The first stage sees what is stored in the queue: a message's tags code, or its bit map.
It rejects a message only if that certainly does not match. The second stage sees the
message itself: it compares tags as text, and evaluates the expression.

Source: org.apache.rocketmq.broker.filter.ExpressionMessageFilter, RocketMQ 5.3.
Differs: tags are compared as text by the broker too, not only by the client; a message
on which the expression fails is delivered, in RocketMQ it is skipped and the group
never gets it.
"""

from __future__ import annotations

from collections.abc import Mapping

from crashmq.engine.broker.filter.consumer_filter_data import ConsumerFilterData
from crashmq.engine.broker.filter.consumer_filter_manager import ConsumerFilterManager
from crashmq.engine.filter.bits_array import BitsArray
from crashmq.engine.filter.errors import EvaluationFailed
from crashmq.engine.filter.expression import Condition
from crashmq.engine.host.probe import probe
from crashmq.engine.remoting.subscription_data import SUB_ALL, SubscriptionData
from crashmq.engine.store.message.message_codec import properties_of
from crashmq.engine.store.message.tags_filter import TagsFilter
from crashmq.engine.store.queue.consume_queue_ext import CqExtUnit

PASSED_OVER = probe("message_filter.passed_over", "a bit map was certain of no match")
HIT = probe("message_filter.hit", "a bit map said that a message may match")
UNCOVERED = probe(
    "message_filter.uncovered",
    "a bit map was computed before its filter, or by another",
)
NO_BIT_MAP = probe("message_filter.no_bit_map", "a message had no bit map of use")
EVALUATED = probe("message_filter.evaluated", "an expression was evaluated in a pull")
FAILED = probe("message_filter.failed", "an expression failed on a message in a pull")


class ExpressionMessageFilter:
    """The two stages for one subscription.

    Args:
        subscription: what the group subscribes; None: every message.
        data: its filter, if the subscription is an expression and is registered.
        manager: the manager of all filters.
    """

    def __init__(
        self,
        subscription: SubscriptionData | None,
        data: ConsumerFilterData | None,
        manager: ConsumerFilterManager,
    ) -> None:
        self._subscription = subscription
        self._data = data
        self._manager = manager
        self._tags: TagsFilter | None = None
        is_by_tags = subscription is None or subscription.expression_type == "TAG"
        self._is_by_tags = is_by_tags
        if is_by_tags and subscription and subscription.sub_string != SUB_ALL:
            tags, codes = frozenset(subscription.tags), frozenset(subscription.codes)
            self._tags = TagsFilter(tags, codes)

    def is_matched_by_consume_queue(
        self, tags_code: int | None, ext: CqExtUnit | None
    ) -> bool:
        """Whether a message may match; false only if it certainly does not.

        Source: ExpressionMessageFilter#isMatchedByConsumeQueue.
        """
        if self._is_by_tags:
            tags = self._tags
            return tags is None or tags.is_matched_by_consume_queue(tags_code, ext)
        data = self._data
        if data is None or data.condition is None or ext is None:
            return True
        if not ext.bit_map or len(ext.bit_map) * 8 != data.bloom_filter_data.bit_num:
            NO_BIT_MAP.hit()
            return True
        if not data.covers(ext.msg_store_time) or not self._manager.is_registered(data):
            UNCOVERED.hit()
            return True
        bits = BitsArray.of(ext.bit_map)
        is_hit = self._manager.bloom_filter.is_hit(data.bloom_filter_data, bits)
        (HIT if is_hit else PASSED_OVER).hit()
        return is_hit

    def is_matched_by_commit_log(
        self, record: bytes | None, properties: Mapping[str, str] | None
    ) -> bool:
        """Whether a message matches; also true if the expression fails on it.

        Source: ExpressionMessageFilter#isMatchedByCommitLog.
        """
        if self._is_by_tags:
            tags = self._tags
            return tags is None or tags.is_matched_by_commit_log(record, properties)
        if self._data is None or self._data.condition is None:
            return True
        if properties is None:
            if record is None:
                return True
            properties = properties_of(record)
        return is_match(self._data.condition, properties)


def is_match(condition: Condition, properties: Mapping[str, str]) -> bool:
    """Whether a message matches an expression; also true if that fails on it."""
    EVALUATED.hit()
    try:
        return condition.evaluate(properties) is True
    except EvaluationFailed:
        FAILED.hit()
        return True
